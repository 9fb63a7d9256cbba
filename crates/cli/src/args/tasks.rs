//! `check`, `simulate`, `run` and `verify`: the commands on one task-set file.

use super::help::OUTPUT;
use super::values::{duration, job, one_of, up_to, window};
use crate::kept::Kept;
use clap::builder::RangedI64ValueParser;
use clap::builder::TypedValueParser;
use clap::{ArgGroup, Args, ValueEnum, ValueHint};
use lockwright_analysis::Fit;
use lockwright_model::{Duration, Protocol, Scheduler, System};
use lockwright_report::{By, Window, svg};
use std::ffi::OsString;
use std::path::PathBuf;

/// The arguments of all these commands.
#[derive(Args, Debug)]
pub struct Subject {
    /// Task-set file; `-` reads standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Protocol of all resources for which the file names none
    #[arg(long, short, value_name = "PROTOCOL", default_value = "file", value_parser = protocols())]
    pub protocol: ProtocolChoice,
    /// Charge the overheads in this file (format: docs/overheads.md)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub overheads: Option<PathBuf>,
    /// Print one JSON object instead of tables (schema: docs/output.schema.json)
    #[arg(long, help_heading = OUTPUT)]
    pub json: bool,
    /// Write everything into this file as one page of HTML, with pictures
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = OUTPUT)]
    pub html: Option<PathBuf>,
    /// The whole command line, for pages.
    #[arg(skip)]
    pub command: Vec<OsString>,
    /// Keeps the page instead of writing it, for the server.
    #[arg(skip)]
    pub kept: Option<Kept>,
}

/// The arguments that `run` and `verify` share.
#[derive(Args, Debug)]
pub struct Execution {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub subject: Subject,
    /// Length of the run, for example 10s [default: two hyperperiods, at least 1 s and at most 10 s]
    #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
    pub duration: Option<Duration>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub schedules: Schedules,
}

/// The pictures and traces of schedules that `simulate`, `run` and `verify` write.
#[derive(Args, Debug)]
#[command(group = ArgGroup::new("picture").args(["svg", "gantt"]).multiple(true))]
pub struct Schedules {
    /// Write the schedule into this file as a Perfetto trace; of several schedules, the worst
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = OUTPUT)]
    pub trace: Option<PathBuf>,
    /// Draw the schedule into this file, or the worst job of each task into this directory; of several schedules, the
    /// worst
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = OUTPUT)]
    pub svg: Option<PathBuf>,
    /// Draw the schedule as text, before the table
    #[arg(long, conflicts_with = "json", help_heading = OUTPUT)]
    pub gantt: bool,
    /// Rows of --svg and --gantt
    #[arg(long, value_name = "ROWS", default_value = "task", value_parser = one_of(ROWS), requires = "picture",
        help_heading = OUTPUT)]
    pub by: By,
    /// Width of the pictures in pixels; below 600, for example 360 for a phone, names stand above the rows
    #[arg(long, value_name = "PX", default_value_t = svg::WIDTH, requires = "svg", value_parser = widths(),
        help_heading = OUTPUT)]
    pub width: u32,
    /// Part of the schedule that --svg and --gantt draw, for example 100ms..200ms [default: the job with the least
    /// slack]
    #[arg(long, value_name = "FROM..UNTIL", value_parser = window, requires = "picture", help_heading = OUTPUT)]
    pub window: Option<Window>,
    /// Draw the time around the Nth job of this task, for example control:3
    #[arg(long, value_name = "TASK:N", value_parser = job, conflicts_with = "window", requires = "picture",
        help_heading = OUTPUT)]
    pub job: Option<(String, usize)>,
}

fn widths() -> RangedI64ValueParser<u32> {
    RangedI64ValueParser::new().range(i64::from(*svg::WIDTHS.start())..=i64::from(*svg::WIDTHS.end()))
}

const ROWS: [(&str, &str, By); 2] = [
    ("task", "One row for each task: its states, and the tasks for which it waits", By::Task),
    ("cpu", "One row for each CPU: the tasks that it executes", By::Cpu),
];

/// `check`.
#[derive(Args, Debug)]
pub struct Check {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub subject: Subject,
    /// Print every term of this task's bound
    #[arg(long, value_name = "TASK")]
    pub explain: Option<String>,
    /// Print how far execution times and critical sections can grow before the classic bounds exceed a deadline
    #[arg(long)]
    pub sensitivity: bool,
    /// Method that computes the bounds
    #[arg(long, value_name = "BOUND", default_value = "best")]
    pub bound: BoundChoice,
    /// Scheduler, instead of the one in the file
    #[arg(long, value_name = "SCHEDULER", value_parser = one_of(SCHEDULERS))]
    pub scheduler: Option<Scheduler>,
    /// Assign the tasks to CPUs, by decreasing utilization, instead of using the CPUs in the file
    ///
    /// Tasks that share a resource are assigned to one CPU if they fit.
    #[arg(long, value_name = "HEURISTIC", value_parser = one_of(FITS))]
    pub partition: Option<Fit>,
    /// Draw the bounds into this file: each as a bar of its terms, beside its deadline
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = OUTPUT)]
    pub svg: Option<PathBuf>,
}

/// `simulate`.
#[derive(Args, Debug)]
pub struct Simulate {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub subject: Subject,
    /// Virtual length of each schedule, for example 10s [default: two hyperperiods, within a limit; the output names
    /// it]
    #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
    pub duration: Option<Duration>,
    /// Scheduler, instead of the one in the file
    #[arg(long, value_name = "SCHEDULER", value_parser = one_of(SCHEDULERS))]
    pub scheduler: Option<Scheduler>,
    /// First release of each task
    #[arg(long, value_name = "OFFSETS", default_value = "file")]
    pub offsets: OffsetsChoice,
    /// Seed of the random numbers [default: chosen at random and printed]
    ///
    /// In a random series, the first schedule has this seed, and each next one a seed greater by one, so that each can
    /// be repeated alone. Two series have schedules in common if their seeds are closer than the number of schedules.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Number of schedules [1 to 1,000,000] [default: 100 with random offsets, 16 for each task with sweep, otherwise
    /// 1]
    #[arg(long, value_name = "N", value_parser = up_to::<u32>(1_000_000))]
    pub runs: Option<u32>,
    /// Let each job execute for a random time up to its worst-case execution time
    #[arg(long)]
    pub random_execution: bool,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub schedules: Schedules,
}

/// `run`.
#[derive(Args, Debug)]
pub struct Run {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub execution: Execution,
    /// Fail if a response is above its bound; --overheads implies this
    #[arg(long)]
    pub strict: bool,
    /// Hold the kernel's trace against what the protocol ordered (levels, CPUs, wake-ups); needs root
    #[arg(long, conflicts_with = "sched_deadline")]
    pub audit: bool,
    /// Under p-edf: let the kernel schedule the tasks (SCHED_DEADLINE), in a cpuset partition for each CPU
    ///
    /// It needs root. The partitions exist during the run; `lockwright doctor` removes those of a run that was killed.
    #[arg(long, conflicts_with = "overheads")]
    pub sched_deadline: bool,
}

/// `verify`.
#[derive(Args, Debug)]
#[command(mut_arg("overheads", |overheads| {
    overheads.help("Charge the overheads in this file (format: docs/overheads.md) instead of measuring them")
}))]
pub struct Verify {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub execution: Execution,
    /// Measure the overheads even if a measurement of the last day is stored
    #[arg(long, conflicts_with = "overheads")]
    pub remeasure: bool,
}

/// A protocol, several, or the file's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProtocolChoice {
    /// This protocol.
    One(Protocol),
    /// All protocols, one after the other.
    All,
    /// The protocol in the file; if it names none, omlp in clusters, otherwise mpcp if CPUs share a resource, otherwise
    /// icpp.
    File,
}

pub(super) fn protocols() -> impl TypedValueParser<Value = ProtocolChoice> {
    let one = |protocol: Protocol| (protocol.name(), in_a_line(protocol), ProtocolChoice::One(protocol));
    one_of(Protocol::ALL.map(one).into_iter().chain([
        ("all", "All of these, one after the other; `check` ranks them", ProtocolChoice::All),
        (
            "file",
            "The protocol in the file; if it names none, omlp in clusters, otherwise mpcp if CPUs share a resource, \
             otherwise icpp",
            ProtocolChoice::File,
        ),
    ]))
}

/// The protocols of pthread mutexes.
pub(super) fn protocols_of_mutexes() -> impl TypedValueParser<Value = ProtocolChoice> {
    let one = |protocol: Protocol| (protocol.name(), in_a_line(protocol), ProtocolChoice::One(protocol));
    let file = ("file", "The protocol in the file", ProtocolChoice::File);
    one_of([Protocol::None, Protocol::Pip, Protocol::Icpp].map(one).into_iter().chain([file]))
}

/// The description of a protocol in the help.
fn in_a_line(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::None => "Plain mutex without control of priority inversion",
        Protocol::Pip => "Priority inheritance",
        Protocol::Icpp => "Immediate priority ceiling (POSIX PTHREAD_PRIO_PROTECT)",
        Protocol::Pcp => "Original priority ceiling, for resources of one CPU",
        Protocol::Srp => "Stack resource policy, for resources of one CPU: a job starts only above the ceiling",
        Protocol::Ics => {
            "Interruptible critical sections, for resources of one CPU: no task waits, invalidated sections restart"
        }
        Protocol::IcsLock => "ics for tasks from a cutoff priority on; less urgent tasks lock at a ceiling first",
        Protocol::Mpcp => "Multiprocessor priority ceiling for resources shared across CPUs, icpp for the others",
        Protocol::MpcpVs => "mpcp with virtual spinning: at most one request from each CPU, its most urgent first",
        Protocol::Dpcp => "Distributed priority ceiling: sections execute on the resource's home CPU",
        Protocol::Dflp => "Distributed FIFO locking: as dpcp with FIFO queues",
        Protocol::FmlpLong => {
            "FIFO queues; waiting tasks suspend, the owner inherits their priorities (under p-edf it is before all jobs)"
        }
        Protocol::FmlpPlus => "FIFO queues; waiting tasks suspend, owners are boosted in the order of their requests",
        Protocol::FmlpShort => "FIFO queues; waiting tasks spin without preemption",
        Protocol::Msrp => "fmlp_short for resources shared across CPUs, icpp for the others",
        Protocol::Mrsp => "FIFO queues; waiting tasks spin at the CPU's ceiling and help a preempted owner",
        Protocol::Omlp => "FIFO queues with at most one request from each CPU; owners are boosted",
        Protocol::LockFree => {
            "Lock-free objects: no task waits, an attempt fails if another operation was committed meanwhile"
        }
        Protocol::WaitFree => "Wait-free objects: no task waits, and no operation is repeated",
        Protocol::PhaseFair => "Reader-writer spinlocks; phases of readers and of one writer alternate",
        Protocol::TaskFair => "Reader-writer spinlocks; FIFO queues, adjacent readers read together",
        _ => "",
    }
}

impl ProtocolChoice {
    /// The chosen protocols, for this system.
    #[must_use]
    pub fn protocols(self, system: &System) -> Vec<Protocol> {
        match self {
            Self::One(protocol) => vec![protocol],
            Self::All => Protocol::ALL.to_vec(),
            Self::File => vec![system.protocol_or_default()],
        }
    }
}

/// How bounds are computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum BoundChoice {
    /// The equations on the protocol's page; under p-edf, the processor demand
    Classic,
    /// As best; prints a note if linear programs do not cover the system
    Lp,
    /// For each task, the lesser of the classic bound and that of a linear program; under p-edf, either proves a CPU
    Best,
}

const SCHEDULERS: [(&str, &str, Scheduler); 5] = [
    ("p-fp", "Partitioned, fixed priorities", Scheduler::PFp),
    ("p-edf", "Partitioned, earliest deadline first", Scheduler::PEdf),
    ("c-fp", "Clustered, fixed priorities", Scheduler::CFp),
    ("g-fp", "Global, fixed priorities", Scheduler::GFp),
    ("g-edf", "Global, earliest deadline first", Scheduler::GEdf),
];

const FITS: [(&str, &str, Fit); 3] = [
    ("first-fit", "The first CPU on which the task fits", Fit::First),
    ("best-fit", "The CPU with the highest utilization on which the task fits", Fit::Best),
    ("worst-fit", "The CPU with the lowest utilization on which the task fits", Fit::Worst),
];

/// When each task is released first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum OffsetsChoice {
    /// The offsets in the file
    File,
    /// All tasks at the same time
    Synchronous,
    /// Each task at a random time within its period; several schedules
    Random,
    /// All tasks at the same time, except one that is shifted through its period in equal steps; each task in turn
    Sweep,
}

impl OffsetsChoice {
    /// The name of the value.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Synchronous => "synchronous",
            Self::Random => "random",
            Self::Sweep => "sweep",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Verb};
    use clap::Parser;

    fn check(options: &[&str]) -> Option<Check> {
        let words = [&["lockwright", "check", "file"], options].concat();
        match Cli::try_parse_from(words).ok()?.verb {
            Verb::Check(check) => Some(check),
            _ => None,
        }
    }

    #[test]
    fn every_protocol_can_be_chosen_by_its_name() {
        let chosen = |name| check(&["--protocol", name]).map(|check| check.subject.protocol);
        for protocol in Protocol::ALL {
            assert_eq!(chosen(protocol.name()), Some(ProtocolChoice::One(protocol)));
            assert!(!in_a_line(protocol).is_empty(), "{protocol}");
        }
        assert_eq!((chosen("all"), chosen("file")), (Some(ProtocolChoice::All), Some(ProtocolChoice::File)));
        assert_eq!(check(&[]).map(|check| check.subject.protocol), Some(ProtocolChoice::File));
        assert_eq!(chosen("fmlp-plus"), None);
    }

    #[test]
    fn every_scheduler_can_be_chosen_by_its_name() {
        for (name, _, scheduler) in SCHEDULERS {
            assert_eq!(name, scheduler.name());
            assert_eq!(check(&["--scheduler", name]).and_then(|check| check.scheduler), Some(scheduler));
        }
        assert!(check(&["--scheduler", "c-edf"]).is_none());
    }
}
