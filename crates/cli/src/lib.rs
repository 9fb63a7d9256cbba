//! The binary `lockwright`: glue between a task-set file, the analysis, the simulator and the runtime.
//!
//! Each verb has one file. Its result is a [`report::Report`], which [`table`] and [`json`] print.
//! Data goes to standard output, everything else to standard error.
#![forbid(unsafe_code)]

mod again;
pub mod args;
mod audit;
mod bars;
mod beside;
mod charges;
pub mod check;
mod compare;
mod completions;
pub mod console;
mod curves;
pub mod diagnose;
pub mod doctor;
pub mod exit;
pub mod export;
pub mod exported;
pub mod fault;
pub mod figure;
mod horizon;
mod html;
pub mod import;
pub mod input;
pub mod interrupt;
pub mod json;
mod kept;
pub mod layout;
pub mod measure;
mod paths;
mod placed;
pub mod progress;
mod ranking;
mod record;
pub mod report;
mod responses;
pub mod run;
pub mod same;
pub mod schedule;
mod scheduled;
pub mod seed;
mod serve;
pub mod simulate;
pub mod streams;
pub mod study;
pub mod table;
mod tame;
mod terms;
pub mod units;
pub mod verify;
mod watch;

use args::{Cli, Verb};
use clap::Parser;
use console::Console;
use exit::Exit;
use std::any::Any;
use std::ffi::OsString;
use std::io::Write;
use std::panic::UnwindSafe;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use streams::Written;

/// Executes the command line of this process.
#[must_use]
pub fn main() -> ExitCode {
    // Also after another version of the file has taken its place.
    command(&std::env::args_os().collect::<Vec<_>>(), &["/proc/self/exe".into()]).into()
}

/// Executes a command line on the streams of this process and with its signals. The first argument is the name of the
/// program. `again` are the program and its first arguments that execute another command line in a process of its own.
/// A panic is reported, and ends in [`Exit::Machine`].
#[must_use]
pub fn command(arguments: &[OsString], again: &[OsString]) -> Exit {
    again::set(again);
    std::panic::set_hook(Box::new(|panic| {
        Console::new(console::Color::Never, false).error(
            format!("this is a bug in lockwright: {panic}"),
            "please report it, with the file and the arguments that led here",
        );
    }));
    // The hook has reported it, with its place.
    caught(arguments, || execute(arguments), |_, _| {})
}

/// Executes, with [`Exit::Machine`] for a panic, which `tell` reports.
fn caught(
    arguments: &[OsString],
    execute: impl FnOnce() -> Exit + UnwindSafe,
    tell: impl FnOnce(&(dyn Any + Send), &Console),
) -> Exit {
    std::panic::catch_unwind(execute).unwrap_or_else(|panic| {
        let console = Console::new(console::Color::Never, false);
        tell(&*panic, &console);
        gave_up(Exit::Machine, arguments, &console)
    })
}

/// A command line that was executed inside another program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Called {
    /// The exit status.
    pub exit: Exit,
    /// Its output.
    pub written: Written,
}

/// Executes a command line inside another program, on the calling thread, with `input` as standard input. The first
/// argument is the name of the program. `check`, `simulate` and `study` stop when `stop` is set; the verbs that execute
/// real-time threads do not.
///
/// # Examples
/// ```
/// use lockwright_cli::{call, exit::Exit};
///
/// let called = call(&["lockwright".into(), "--version".into()], Vec::new(), Default::default());
/// assert_eq!(called.exit, Exit::Holds);
/// assert!(called.written.out.starts_with("lockwright "));
/// ```
#[must_use]
pub fn call(arguments: &[OsString], input: Vec<u8>, stop: Arc<AtomicBool>) -> Called {
    let tell = |panic: &(dyn Any + Send), console: &Console| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        console.error(format!("this is a bug in lockwright: {text}"), "please report it, with the file");
    };
    let (exit, written) = streams::collect(input, stop, || caught(arguments, || execute(arguments), tell));
    Called { exit, written }
}

fn execute(arguments: &[OsString]) -> Exit {
    fault::forget();
    let mut cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => return refused(&error, arguments),
    };
    if let Some(command) = cli.verb.command_mut() {
        *command = arguments.to_vec();
    }
    let console = Console::new(cli.color, cli.wide);
    if let Err(exit) = paths::refuse_clashes(&cli.verb, &console) {
        return gave_up(exit, arguments, &console);
    }
    let exit = match &cli.verb {
        Verb::Check(arguments) => check::check(arguments, &console),
        Verb::Simulate(arguments) => simulate::simulate(arguments, &console),
        Verb::Run(arguments) => run::run(arguments, &console),
        Verb::Verify(arguments) => verify::verify(arguments, &console),
        Verb::Report(arguments) => compare::report(arguments, &console),
        Verb::Serve(arguments) => serve::serve(arguments, &console),
        Verb::Doctor(arguments) => doctor::doctor(arguments, &console),
        Verb::Import(arguments) => import::import(arguments, &console),
        Verb::Export(arguments) => exported::export(arguments, &console),
        Verb::Record(arguments) => record::record(arguments, &console),
        Verb::Watch(arguments) => watch::watch(arguments, &console),
        Verb::Measure(arguments) => measure::measure(arguments, &console),
        Verb::Study(arguments) => study::study(arguments, &console),
        Verb::Completions(arguments) => completions::completions(arguments, &console),
        Verb::Man(arguments) => completions::man(arguments, &console),
    };
    exit.unwrap_or_else(|exit| gave_up(exit, arguments, &console))
}

/// Prints why the arguments are invalid, or the help or the version that they request.
fn refused(error: &clap::Error, arguments: &[OsString]) -> Exit {
    let console = Console::new(console::Color::Never, false);
    if streams::is_call() {
        let text = error.render().to_string();
        if error.use_stderr() { streams::write_err(text.as_bytes()) } else { drop(streams::write_out(text.as_bytes())) }
    } else {
        let printed = error.print().and_then(|()| std::io::stdout().flush());
        if !error.use_stderr()
            && let Err(exit) = console.check_written(printed)
        {
            return exit;
        }
    }
    if !error.use_stderr() {
        return Exit::Holds;
    }
    fault::keep(fault::Fault::of_arguments(error));
    gave_up(Exit::BadInput, arguments, &console)
}

/// With `--json`, prints the faults as one object, unless standard output already has one.
fn gave_up(exit: Exit, arguments: &[OsString], console: &Console) -> Exit {
    let mut faults = fault::take().into_iter();
    if fault::wants_json(arguments.iter().cloned())
        && !fault::is_printed()
        && let Some(error) = faults.next()
    {
        // If standard output cannot be written, a message says so, and the status stays.
        let _ = console.print(&json::to_text(&json::ErrorOutput { error, more: faults.collect() }));
    }
    exit
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Neither the status of a verdict nor that of a panic of Rust.
    #[test]
    fn a_panic_is_the_fault_of_the_machine() {
        let told = std::cell::Cell::new(0);
        let tell =
            |panic: &(dyn Any + Send), _: &Console| told.set(panic.downcast_ref::<&str>().map_or(0, |text| text.len()));
        assert_eq!(caught(&[], || panic!("a bug"), tell), Exit::Machine);
        assert_eq!(told.get(), "a bug".len());
    }
}
