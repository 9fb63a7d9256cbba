//! The command line: verbs, options and the texts of `--help`, one file for each family of verbs.

mod help;
mod measure;
mod record;
mod serve;
mod study;
mod tasks;
mod values;
mod watch;

pub use measure::{Locks, Measure, MeasuredIcs, MeasuredObjects, MeasuredProtocols, Mutexes, Results};
pub use record::Record;
pub use serve::Serve;
pub use study::{Bpl, Rtas2008, Share, Study, StudyRun, StudyVerb};
pub use tasks::{
    BoundChoice, Check, Execution, OffsetsChoice, ProtocolChoice, Run, Schedules, Simulate, Subject, Verify,
};

pub use watch::Watch;

use crate::console::Color;
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;
use help::{OUTPUT, STATUSES_UNJUDGED};
use std::ffi::OsString;
use std::path::PathBuf;

/// Real-time locking that you can analyse, simulate and run.
///
/// The input is one task-set file: tasks, CPUs, resources and a locking protocol. `check` computes bounds on the
/// response times, `simulate` executes the tasks in virtual time, and `run` executes them as real-time threads.
/// All three print the same table. `verify` measures the overheads of this machine, computes bounds that include them,
/// executes the tasks, and compares the two.
#[derive(Parser, Debug)]
#[command(name = "lockwright", version, after_help = STATUSES, propagate_version = true)]
pub struct Cli {
    /// When to use colours
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", help_heading = OUTPUT)]
    pub color: Color,
    /// Show all columns and do not wrap lines, however narrow the terminal is
    ///
    /// Without it, the table of the tasks leaves out columns that do not fit, in this order: lock wait, prio,
    /// B local, B boosted, B remote, jobs, C charged, proof, again, B seen, p99.9, cpu, C, slack.
    #[arg(long, global = true, help_heading = OUTPUT)]
    pub wide: bool,
    /// The command.
    #[command(subcommand)]
    pub verb: Verb,
}

/// The commands.
#[derive(Subcommand, Debug)]
pub enum Verb {
    /// Compute bounds on blocking and response times
    ///
    /// A deadline is proved to hold if the response-time bound of its task is not greater.
    #[command(after_help = CHECK_HELP)]
    Check(Check),
    /// Simulate the schedule and compare it with the bounds
    #[command(after_help = SIMULATE_HELP)]
    Simulate(Simulate),
    /// Execute the tasks as real-time threads and compare their responses with the bounds
    #[command(after_help = RUN_HELP)]
    Run(Run),
    /// Measure overheads, compute bounds with them, execute the tasks, and compare
    ///
    /// The measurement takes some seconds. Its result is reused for one day on the same machine and kernel; it is
    /// stored in the user's cache directory.
    #[command(after_help = VERIFY_HELP)]
    Verify(Verify),
    /// Compare results that --json printed, and print what changed
    ///
    /// The first file is the one that the others are compared with. Files with the results of several protocols are
    /// compared protocol by protocol.
    #[command(after_help = REPORT_HELP)]
    Report(Compare),
    /// Show a task set in a browser: bounds and schedule follow each change of the file
    ///
    /// The server listens on 127.0.0.1 only, and its address has a token. The file may be changed in the browser or in
    /// an editor.
    #[command(after_help = SERVE_HELP)]
    Serve(Serve),
    /// Check whether this machine can execute real-time threads, and print how to fix what is missing
    #[command(after_help = DOCTOR_HELP)]
    Doctor(Doctor),
    /// Convert a workload of another tool to a task-set file
    #[command(after_help = IMPORT_HELP)]
    Import(Import),
    /// Convert a task-set file to a program in C, or to a workload of another tool
    #[command(after_help = EXPORT_HELP)]
    Export(Export),
    /// Execute a program, and infer a task set from its threads, locks and sleeps
    ///
    /// The program needs no change. The directory of the results gets the task set (system.toml), all results
    /// (report.json) and a trace (trace.pftrace). Standard output shows priority inversions, possible deadlocks, long
    /// waits, and the bounds of the task set.
    #[command(after_help = RECORD_HELP)]
    Record(Record),
    /// Show what the tasks and mutexes of a running process do
    ///
    /// The process shares its statistics in memory, and does nothing for this command. Shown are the tasks of
    /// `lockwright::tasks` or `lw_task_*` that are counted, the mutexes that the program counts itself
    /// (`Builder::counted`, or `lw_mutex_init` with `.counted`), and all mutexes of a program that was started with
    /// liblockwright_pthread.so and LOCKWRIGHT_STATS=1. On a terminal the picture is renewed until `q` is pressed or
    /// the process ends.
    #[command(after_help = WATCH_HELP)]
    Watch(Watch),
    /// Measure what locks cost on this machine
    #[command(subcommand, after_help = STATUSES_UNJUDGED)]
    Measure(Measure),
    /// Judge many generated systems, as a file describes, or repeat a published study
    ///
    /// A study draws systems at random and judges each by several methods. The file defines the systems, the values
    /// that vary, and the methods. The results do not depend on threads or interruptions.
    Study(Study),
    /// Print a completion script for a shell
    #[command(after_help = COMPLETIONS_HELP)]
    Completions(Completions),
    /// Write the manual pages into a directory
    #[command(hide = true)]
    Man(Man),
}

impl Verb {
    /// The arguments that the commands on one task-set file share.
    pub fn subject_mut(&mut self) -> Option<&mut Subject> {
        match self {
            Self::Check(check) => Some(&mut check.subject),
            Self::Simulate(simulate) => Some(&mut simulate.subject),
            Self::Run(run) => Some(&mut run.execution.subject),
            Self::Verify(verify) => Some(&mut verify.execution.subject),
            _ => None,
        }
    }

    /// Where the commands that write pages keep the whole command line.
    pub fn command_mut(&mut self) -> Option<&mut Vec<OsString>> {
        match self {
            Self::Record(record) => Some(&mut record.command),
            Self::Study(Study { verb: Some(StudyVerb::Rtas2008(study)), .. }) => Some(&mut study.run.command),
            Self::Study(Study { verb: Some(StudyVerb::Bpl(study)), .. }) => Some(&mut study.command),
            Self::Study(study) => Some(&mut study.run.command),
            _ => self.subject_mut().map(|subject| &mut subject.command),
        }
    }
}

/// Exit statuses of all commands.
const STATUSES: &str = "Exit status:
  0    success; a command that judges deadlines found that all of them hold; record inferred a task set
  1    a command that judges deadlines found that some do not hold; record inferred no task set
  2    the arguments or the file are invalid
  3    the machine refuses, for example permission for real-time priorities
  130  interrupted (Ctrl-C), except record and serve; the results so far are printed

The help of each command says what it judges.";

const CHECK_HELP: &str = "Examples:
  lockwright check system.toml
  lockwright check system.toml --protocol all
  lockwright check system.toml --explain camera
  lockwright check system.toml --sensitivity --json
  lockwright check system.toml --overheads overheads.toml
  lockwright check system.toml --scheduler g-edf
  lockwright check system.toml --scheduler p-edf --partition worst-fit

Exit status:
  0    all deadlines are proved to hold
  1    some deadlines are not proved to hold
  2    the arguments or the file are invalid
  3    the output cannot be written
  130  interrupted (Ctrl-C); the results so far are printed";

const SIMULATE_HELP: &str = "Examples:
  lockwright simulate system.toml
  lockwright simulate system.toml --overheads overheads.toml
  lockwright simulate system.toml --offsets random --runs 1000 --seed 7
  lockwright simulate system.toml --for 10s --trace out.pftrace

https://ui.perfetto.dev shows traces.

Exit status:
  0    no job missed its deadline
  1    a job missed its deadline
  2    the arguments or the file are invalid
  3    the output cannot be written
  130  interrupted (Ctrl-C); the results so far are printed";

const RUN_HELP: &str = "Examples:
  lockwright run system.toml
  lockwright run system.toml --for 10s --protocol pip --trace out.pftrace
  lockwright run system.toml --overheads overheads.toml
  lockwright run system.toml --audit

This command needs permission for real-time priorities; `lockwright doctor` prints how to get it.
https://ui.perfetto.dev shows traces.

Exit status:
  0    no job missed its deadline; with --overheads or --strict: and no response was above its bound; with --audit: and
       the kernel's trace has only what was ordered
  1    one of these does not hold
  2    the arguments or the file are invalid
  3    the machine refuses, for example permission for real-time priorities
  130  interrupted (Ctrl-C); the results so far are printed";

const VERIFY_HELP: &str = "Examples:
  lockwright verify system.toml
  lockwright verify system.toml --for 10s --protocol mpcp --json
  lockwright verify system.toml --overheads overheads.toml

This command needs permission for real-time priorities; `lockwright doctor` prints how to get it.
https://ui.perfetto.dev shows traces.

Exit status:
  0    all deadlines are proved to hold, no job missed one, and no response was above its bound
  1    one of these does not hold
  2    the arguments or the file are invalid
  3    the machine refuses, for example permission for real-time priorities
  130  interrupted (Ctrl-C); the results so far are printed";

const REPORT_HELP: &str = "Examples:
  lockwright check system.toml --json > before.json
  lockwright report before.json after.json
  lockwright report check.json run.json --html report.html

Exit status:
  0    success
  2    the arguments are invalid, or a file is not a result of this version
  3    the output cannot be written";

const SERVE_HELP: &str = "Examples:
  lockwright serve system.toml
  lockwright serve system.toml --protocol mpcp --port 8000 --save

Exit status:
  0    a signal ended the server (Ctrl-C)
  2    the arguments or a file are invalid
  3    the machine refuses, for example the port; or lockwright was built without the feature `serve`";

const DOCTOR_HELP: &str = "Example:
  lockwright doctor

Exit status:
  0    `lockwright run` works on this machine
  3    a requirement of `lockwright run` is missing";

const IMPORT_HELP: &str = "Examples:
  lockwright import rt-app workload.json > system.toml
  lockwright import schedcat taskset.ts --unit us > system.toml
  lockwright import cheddar architecture.xmlv3 --unit ms > system.toml

Exit status:
  0    success
  2    the arguments or the file are invalid, or the file has a part that a task set cannot express
  3    the output cannot be written";

const EXPORT_HELP: &str = "Examples:
  lockwright export c system.toml --protocol pip > system.c
  lockwright export rt-app system.toml > workload.json

Exit status:
  0    success
  2    the arguments or the file are invalid, or the file has a part that the form cannot express
  3    the output cannot be written";

const RECORD_HELP: &str = "Examples:
  lockwright record -- ./control --rate 100
  lockwright record --margin 20 --sections-longer 50us -o results -- ./control
  lockwright record --read record-control --job-at wait_frame

https://ui.perfetto.dev shows traces.

Exit status:
  0    a task set was inferred
  1    the program was recorded, and no task set follows from it
  2    the arguments are invalid, or the program cannot be recorded
  3    the machine refuses, for example to write the results";

const WATCH_HELP: &str = "Examples:
  lockwright watch 4711
  lockwright watch 4711 --every 1s
  lockwright watch 4711 --json

Exit status:
  0    success; also if the process ends meanwhile
  2    the arguments are invalid, there is no such process, or it has no statistics
  3    the machine refuses, for example to look at the process of another user
  130  interrupted (Ctrl-C); the last picture is printed";

const COMPLETIONS_HELP: &str = "Examples:
  lockwright completions bash > ~/.local/share/bash-completion/completions/lockwright
  lockwright completions zsh > ~/.zfunc/_lockwright
  lockwright completions fish > ~/.config/fish/completions/lockwright.fish

Exit status:
  0    success
  2    the arguments are invalid
  3    the output cannot be written";

/// `report`.
#[derive(Args, Debug)]
pub struct Compare {
    /// Files with the JSON of check, simulate, run or verify
    #[arg(value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// Write the comparison into this file as one page of HTML
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = OUTPUT)]
    pub html: Option<PathBuf>,
}

/// `doctor`.
#[derive(Args, Debug)]
pub struct Doctor {
    /// Print one JSON object (schema: docs/output.schema.json)
    #[arg(long, help_heading = OUTPUT)]
    pub json: bool,
}

/// `import`.
#[derive(Args, Debug)]
pub struct Import {
    /// Tool that the workload was written for
    #[arg(value_name = "TOOL")]
    pub tool: Tool,
    /// Workload file; `-` reads standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Unit of the times in the file, which SchedCAT and Cheddar leave open [default: us for schedcat, ms for cheddar]
    #[arg(long, value_name = "UNIT", hide_possible_values = true)]
    pub unit: Option<TimeUnit>,
}

/// A unit of time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum TimeUnit {
    /// Nanoseconds
    Ns,
    /// Microseconds
    Us,
    /// Milliseconds
    Ms,
    /// Seconds
    S,
}

/// A tool whose files can be imported.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Tool {
    /// JSON of rt-app: periodic threads with run, lock and unlock
    RtApp,
    /// XML of SchedCAT: one task set, with requests or critical sections
    Schedcat,
    /// XML of Cheddar 3: one architecture with processors, tasks and shared resources
    Cheddar,
}

/// `export`.
#[derive(Args, Debug)]
pub struct Export {
    /// Form of the result
    #[arg(value_name = "FORM")]
    pub form: ExportedForm,
    /// Task-set file; `-` reads standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Protocol of all resources for which the file names none
    #[arg(long, short, value_name = "PROTOCOL", default_value = "file", value_parser = tasks::protocols_of_mutexes())]
    pub protocol: ProtocolChoice,
}

/// A form in which a system can be exported.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum ExportedForm {
    /// A program in C: threads under SCHED_FIFO, pthread mutexes (none, pip, icpp), absolute sleeps
    C,
    /// JSON of rt-app (none, pip)
    RtApp,
}

/// `completions`.
#[derive(Args, Debug)]
pub struct Completions {
    /// Shell that reads the script
    #[arg(value_name = "SHELL")]
    pub shell: Shell,
}

/// `man`.
#[derive(Args, Debug)]
pub struct Man {
    /// Directory for the pages; it is created if it does not exist
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Arg, Command, CommandFactory};

    /// Calls `then` with the path of each command, such as `["measure", "locks"]`, and with the command.
    fn each(command: &Command, path: &[&str], then: &mut impl FnMut(&[&str], &Command)) {
        then(path, command);
        for inner in command.get_subcommands() {
            each(inner, &[path, &[inner.get_name()]].concat(), then);
        }
    }

    #[test]
    fn arguments_are_consistent() {
        Cli::command().debug_assert();
    }

    /// Numbers `A` and `B` of "[A to B]" in a help text.
    fn range(help: &str) -> Option<[String; 2]> {
        let (_, rest) = help.split_once('[')?;
        let (range, _) = rest.split_once(']')?;
        let (from, to) = range.split_once(" to ")?;
        Some([from, to].map(|end| end.replace([',', ' '], "")))
    }

    #[test]
    fn ranges_in_help_are_those_of_the_parser() {
        let mut ranges = 0;
        each(&Cli::command(), &[], &mut |path, command| {
            for arg in command.get_arguments() {
                let (Some([from, to]), Some(name)) =
                    (range(&arg.get_help().map(ToString::to_string).unwrap_or_default()), arg.get_long())
                else {
                    continue;
                };
                ranges += 1;
                let accepts = |value: &str| {
                    let option = format!("--{name}={value}");
                    let mut needed = Vec::new();
                    if command.get_positionals().any(|arg| !arg.is_last_set()) {
                        needed.push("file");
                    }
                    let is_output = |arg: &Arg| arg.get_long() == Some("output") && arg.is_required_set();
                    if command.get_arguments().any(is_output) {
                        needed.extend(["--output", "directory"]);
                    }
                    // A program follows behind all options.
                    let program: &[&str] = match command.get_positionals().any(Arg::is_last_set) {
                        true => &["--", "program"],
                        false => &[],
                    };
                    let words = [&["lockwright"], path, &needed[..], &[option.as_str()], program].concat();
                    Cli::try_parse_from(words).is_ok()
                };
                assert!(accepts(&from) && accepts(&to), "{path:?} --{name} accepts {from} and {to}");
                let number = from.trim_end_matches(|c: char| c.is_ascii_alphabetic());
                let below = from.replacen(number, "0", 1);
                let above = format!("1{to}");
                assert!(!accepts(&below) && !accepts(&above), "{path:?} --{name} refuses {below} and {above}");
            }
        });
        assert!(ranges >= 15, "only {ranges} options name a range");
    }

    #[test]
    fn numbers_and_durations_name_a_range_or_are_free() {
        // A seed is any number; `--for` has no upper end.
        let free = |arg: &Arg| ["seed", "duration"].contains(&arg.get_id().as_str());
        each(&Cli::command(), &[], &mut |path, command| {
            for arg in command.get_arguments().filter(|arg| !free(arg)) {
                let names = arg.get_value_names().unwrap_or_default();
                if names.iter().any(|name| ["N", "DURATION", "LIST"].contains(&name.as_str())) {
                    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
                    assert!(range(&help).is_some(), "{path:?} {}: {help}", arg.get_id());
                }
            }
        });
    }
}
