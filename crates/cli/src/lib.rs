//! The binary `lockwright`: glue between a task-set file, the analysis, the simulator and the runtime.
//!
//! Each verb has one file. Its result is a [`report::Report`], which [`table`] and [`json`] print.
//! Data goes to standard output, everything else to standard error.
#![forbid(unsafe_code)]

pub mod args;
mod bars;
mod beside;
mod charges;
pub mod check;
mod completions;
pub mod console;
pub mod diagnose;
pub mod doctor;
pub mod exit;
pub mod export;
pub mod fault;
pub mod figure;
pub mod import;
pub mod input;
pub mod interrupt;
pub mod json;
pub mod layout;
pub mod measure;
pub mod perfetto;
pub mod progress;
pub mod report;
pub mod run;
pub mod same;
pub mod schedule;
mod scheduled;
pub mod seed;
pub mod simulate;
pub mod study;
pub mod table;
mod tame;
mod terms;
pub mod units;
pub mod verify;

use args::{Cli, Verb};
use clap::Parser;
use console::Console;
use exit::Exit;
use std::process::ExitCode;

/// Executes the command line of this process.
#[must_use]
pub fn main() -> ExitCode {
    std::panic::set_hook(Box::new(|panic| {
        Console::new(console::Color::Never, false).error(
            format!("this is a bug in lockwright: {panic}"),
            "please report it, with the file and the arguments that led here",
        );
    }));
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version go to standard output, errors to standard error. A closed stream is not an error.
            let _ = error.print();
            if !error.use_stderr() {
                return Exit::Holds.into();
            }
            fault::keep(fault::Fault::of_arguments(&error));
            return gave_up(Exit::BadInput, &Console::new(console::Color::Never, false)).into();
        }
    };
    let console = Console::new(cli.color, cli.wide);
    let exit = match &cli.verb {
        Verb::Check(arguments) => check::check(arguments, &console),
        Verb::Simulate(arguments) => simulate::simulate(arguments, &console),
        Verb::Run(arguments) => run::run(arguments, &console),
        Verb::Verify(arguments) => verify::verify(arguments, &console),
        Verb::Doctor(arguments) => doctor::doctor(arguments, &console),
        Verb::Import(arguments) => import::import(arguments, &console),
        Verb::Measure(arguments) => measure::measure(arguments, &console),
        Verb::Study(arguments) => study::study(arguments, &console),
        Verb::Completions(arguments) => completions::completions(arguments, &console),
        Verb::Man(arguments) => completions::man(arguments, &console),
    };
    exit.unwrap_or_else(|exit| gave_up(exit, &console)).into()
}

/// With `--json`, prints the faults as one object, unless standard output already has one.
fn gave_up(exit: Exit, console: &Console) -> Exit {
    let mut faults = fault::kept().into_iter();
    if fault::wants_json(std::env::args_os())
        && !fault::is_printed()
        && let Some(error) = faults.next()
    {
        // If standard output cannot be written, a message says so, and the status stays.
        let _ = console.print(&json::to_text(&json::ErrorOutput { error, more: faults.collect() }));
    }
    exit
}
