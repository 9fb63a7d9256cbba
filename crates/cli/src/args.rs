//! The arguments as they are typed.

use crate::console::Color;
use crate::exit;
use clap::builder::{PossibleValue, RangedU64ValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use lockwright_analysis::Fit;
use lockwright_model::{Duration, Protocol, Scheduler, System};
use lockwright_study::bpl::{BURST_MAX, CORES_MAX, FreeLock, RATE_MAX, RATE_MIN};
use std::path::PathBuf;

/// Real-time locking you can prove, run and check.
///
/// One task-set file goes in. `check` proves bounds on its response times, `simulate` plays its schedule in virtual time, and
/// `run` executes it as real threads on this Linux; all three print the same table. `verify` proves and executes it with
/// what this machine takes, and says whether both agree.
#[derive(Parser, Debug)]
#[command(name = "lockwright", version, after_help = exit::HELP, propagate_version = true)]
pub struct Cli {
    /// When to colour the output
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub color: Color,
    /// Show all columns of tables and wrap nothing, however narrow the screen is
    #[arg(long, global = true)]
    pub wide: bool,
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What to do.
#[derive(Subcommand, Debug)]
pub enum Verb {
    /// Prove bounds: blocking, response times, slack
    #[command(after_help = with(CHECK_EXAMPLES, exit::HELP))]
    Check(Check),
    /// Play the schedule in virtual time and hold what is observed against the bounds
    #[command(after_help = with(SIMULATE_EXAMPLES, exit::HELP))]
    Simulate(Simulate),
    /// Execute the tasks as real-time threads on this machine and hold what is observed against the bounds
    #[command(after_help = with(RUN_EXAMPLES, exit::HELP))]
    Run(Run),
    /// Measure what this machine takes, prove bounds with that, execute the tasks and hold what is observed against the bounds
    ///
    /// Measuring takes some seconds. The overheads are kept for a day in the user's cache folder, for this machine and this kernel.
    #[command(after_help = with(VERIFY_EXAMPLES, exit::HELP))]
    Verify(Verify),
    /// Say what this machine lacks for real time, and the fix for each
    #[command(after_help = DOCTOR_HELP)]
    Doctor(Doctor),
    /// Turn a workload of another tool into a task-set file, on standard output
    #[command(after_help = IMPORT_HELP)]
    Import(Import),
    /// Measure what locks cost on this machine
    #[command(subcommand, after_help = STATUSES)]
    Measure(Measure),
    /// Repeat a published simulation
    #[command(subcommand, after_help = STATUSES)]
    Study(Study),
}

const CHECK_EXAMPLES: &str = "Examples:
  lockwright check system.toml
  lockwright check system.toml --protocol all
  lockwright check system.toml --explain camera
  lockwright check system.toml --sensitivity --json
  lockwright check system.toml --overheads overheads.toml
  lockwright check system.toml --scheduler g-edf
  lockwright check system.toml --scheduler p-edf --partition worst-fit";

const SIMULATE_EXAMPLES: &str = "Examples:
  lockwright simulate system.toml
  lockwright simulate system.toml --overheads overheads.toml
  lockwright simulate system.toml --offsets random --runs 1000 --seed 7
  lockwright simulate system.toml --for 10s --trace out.pftrace

Traces open in https://ui.perfetto.dev.";

const RUN_EXAMPLES: &str = "Examples:
  lockwright run system.toml
  lockwright run system.toml --for 10s --protocol pip --trace out.pftrace
  lockwright run system.toml --overheads overheads.toml

It needs the right to real-time priorities; `lockwright doctor` says what is missing.";

const VERIFY_EXAMPLES: &str = "Examples:
  lockwright verify system.toml
  lockwright verify system.toml --for 10s --protocol mpcp --json
  lockwright verify system.toml --overheads overheads.toml

It needs the right to real-time priorities; `lockwright doctor` says what is missing.";

const DOCTOR_HELP: &str = "Example:
  lockwright doctor

Exit status:
  0  `lockwright run` can work here
  3  it cannot: something it needs is missing";

const IMPORT_HELP: &str = "Example:
  lockwright import rt-app workload.json > system.toml

Exit status:
  0  imported
  2  the arguments or the file are wrong, or the file holds what cannot be modelled";

const LOCKS_EXAMPLES: &str = "Examples:
  lockwright measure locks
  lockwright measure locks --alone
  lockwright measure locks --section 70us --rate 0.5,2 --requests 10000 --csv results --svg figures";

const MUTEX_EXAMPLES: &str = "Examples:
  lockwright measure mutex
  lockwright measure mutex --alone
  lockwright measure mutex --waiters 1,10,100,1000 --rounds 1000 --csv results --svg figures";

const PROTOCOL_EXAMPLES: &str = "Examples:
  lockwright measure protocols
  lockwright measure protocols --alone --json
  lockwright measure protocols --csv results --svg figures --overheads overheads
  lockwright check system.toml --protocol mpcp --overheads overheads/worst-mpcp.toml";

const ICS_EXAMPLES: &str = "Examples:
  lockwright measure ics
  lockwright measure ics --alone --json
  lockwright measure ics --tick 10ms --operations 10000 --csv results --svg figures";

const BPL_EXAMPLES: &str = "Examples:
  lockwright study bpl
  lockwright study bpl --cores 64 --burst 8,32 --svg figures --csv figures.csv
  lockwright study bpl --cores 64 --burst 8 --rate 0.001,0.01,0.1,1 --requests 100000 --seed 7 --json";

/// Of the verbs that know no deadlines.
const STATUSES: &str = "Exit status:
  0  done
  2  the arguments are wrong
  3  the machine refuses, such as for want of permission or on a full disk
  130  interrupted (Ctrl-C); what came to its end until then is printed";

fn with(examples: &str, statuses: &str) -> String {
    format!("{examples}\n\n{statuses}")
}

/// A file and a protocol: what four verbs share.
#[derive(Args, Debug)]
pub struct Subject {
    /// The task-set file; - is standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// How resources are locked that name no protocol of their own
    #[arg(long, short, value_name = "PROTOCOL", default_value = "file")]
    pub protocol: ProtocolChoice,
    /// Print one JSON object instead of tables (docs/output.schema.json)
    #[arg(long)]
    pub json: bool,
}

/// `check`.
#[derive(Args, Debug)]
pub struct Check {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub subject: Subject,
    /// Take the bound of one task apart, term by term
    #[arg(long, value_name = "TASK")]
    pub explain: Option<String>,
    /// Say how far all execution times, or the sections on one resource, can grow before a deadline breaks by the classic bounds
    #[arg(long)]
    pub sensitivity: bool,
    /// Which bounds: those of the protocol's page, or those of linear programs where they are less
    #[arg(long, value_name = "BOUND", default_value = "best")]
    pub bound: BoundChoice,
    /// The scheduler, whatever the file says
    #[arg(long, value_name = "SCHEDULER")]
    pub scheduler: Option<SchedulerChoice>,
    /// Place the tasks on CPUs anew: the greatest utilization first, users of one resource together where they fit so
    #[arg(long, value_name = "FIT")]
    pub partition: Option<FitChoice>,
    /// Charge what the machine takes, from an overheads file (docs/overheads.md)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub overheads: Option<PathBuf>,
}

/// `simulate`.
#[derive(Args, Debug)]
pub struct Simulate {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub subject: Subject,
    /// How long each schedule is, in virtual time [default: long enough to see it repeat, within a limit; the output says which]
    #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
    pub duration: Option<Duration>,
    /// When each task is released first
    #[arg(long, value_name = "OFFSETS", default_value = "file")]
    pub offsets: OffsetsChoice,
    /// The seed of everything random [default: drawn, and printed]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// How many schedules: in all with random offsets [default: 100], for each task with swept ones [default: 16]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub runs: Option<u32>,
    /// Let every job execute for a random part of its worst-case time, instead of all of it
    #[arg(long)]
    pub random_execution: bool,
    /// Charge what the machine takes, from an overheads file (docs/overheads.md): in the bounds, and in what is executed
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub overheads: Option<PathBuf>,
    /// Write the schedule as a Perfetto trace (of the worst one, where there are several)
    #[arg(long, value_name = "OUT", value_hint = ValueHint::FilePath)]
    pub trace: Option<PathBuf>,
}

/// `run`.
#[derive(Args, Debug)]
pub struct Run {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub subject: Subject,
    /// How long to run [default: two hyperperiods, at least 1 s and at most 10 s]
    #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
    pub duration: Option<Duration>,
    /// Write the schedule as a Perfetto trace
    #[arg(long, value_name = "OUT", value_hint = ValueHint::FilePath)]
    pub trace: Option<PathBuf>,
    /// Charge what the machine takes, from an overheads file (docs/overheads.md); a response above its bound is a failure then
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub overheads: Option<PathBuf>,
    /// Without overheads as well, a response above its bound is a failure: exit status 1
    #[arg(long)]
    pub strict: bool,
}

/// `verify`.
#[derive(Args, Debug)]
pub struct Verify {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub subject: Subject,
    /// How long to run [default: two hyperperiods, at least 1 s and at most 10 s]
    #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
    pub duration: Option<Duration>,
    /// Write the schedule as a Perfetto trace
    #[arg(long, value_name = "OUT", value_hint = ValueHint::FilePath)]
    pub trace: Option<PathBuf>,
    /// Charge the overheads of this file (docs/overheads.md) instead of measuring them
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub overheads: Option<PathBuf>,
    /// Measure the overheads even where those of the last day are kept
    #[arg(long, conflicts_with = "overheads")]
    pub remeasure: bool,
}

/// `doctor`.
#[derive(Args, Debug)]
pub struct Doctor {
    /// Print one JSON object instead of lines
    #[arg(long)]
    pub json: bool,
}

/// `import`.
#[derive(Args, Debug)]
pub struct Import {
    /// What wrote the file
    #[arg(value_name = "TOOL")]
    pub tool: Tool,
    /// The workload; - is standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
}

/// `measure`.
#[derive(Subcommand, Debug)]
pub enum Measure {
    /// Every spinlock: alone, with warm and cold caches, and wanted by all CPUs at once
    ///
    /// Under contention, one task a CPU asks at random (Poisson), above everything else on the machine for at most 0.7 s of each
    /// second. That needs the right to real-time priorities; `--alone` does without.
    #[command(after_help = with(LOCKS_EXAMPLES, STATUSES))]
    Locks(Locks),
    /// Mutexes, ours beside the C library's: alone, and from one owner to the next behind many waiters
    ///
    /// The hand-over is on one CPU: an owner gives back to waiters more urgent than itself, and the time until the first of them
    /// executes is taken, with caches as they are and with empty ones. That, and ceilings, need the right to real-time priorities;
    /// `--alone` does without.
    #[command(after_help = with(MUTEX_EXAMPLES, STATUSES))]
    Mutex(Mutexes),
    /// Protocols for several processors: lock and unlock alone and under load, and what of it is the machine's; writes overheads files
    ///
    /// The load is five tasks of five priorities on each of up to three CPUs, three resources and a CPU for synchronisation, which is the last of
    /// those where the machine has no other. It needs the right to real-time priorities.
    #[command(after_help = with(PROTOCOL_EXAMPLES, STATUSES))]
    Protocols(MeasuredProtocols),
    /// Interruptible sections beside the C library's locks; and whom a more urgent task waits for with each of five mechanisms
    ///
    /// The published experiment: three tasks of one priority execute for some ticks and then enqueue, a more urgent one sleeps and then dequeues, all on one CPU. The
    /// queue is protected by a FIFO semaphore, a priority semaphore, a mutex with priority inheritance, interruptible sections, and an interruptible lock. It needs the
    /// right to real-time priorities; `--alone` does without.
    #[command(after_help = with(ICS_EXAMPLES, STATUSES))]
    Ics(MeasuredIcs),
}

/// Where results go: what all of `measure` share. Each says which files it writes.
#[derive(Args, Debug)]
pub struct Results {
    /// Print one JSON object instead of tables (docs/output.schema.json)
    #[arg(long)]
    pub json: bool,
    /// Write the results as CSV into this folder, too
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub csv: Option<PathBuf>,
    /// Draw figures into this folder
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub svg: Option<PathBuf>,
}

/// `measure mutex`.
#[derive(Args, Debug)]
#[command(mut_arg("csv", |csv| csv.help("Write the results as CSV into this folder, too: cost.csv and hand-over.csv")))]
#[command(mut_arg("svg", |svg| svg.help("Draw figures into this folder: costs alone with warm and cold caches, and hand-overs over the waiters")))]
pub struct Mutexes {
    /// How many readings of each mutex alone
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = up_to(10_000_000))]
    pub readings: usize,
    /// Only alone, without hand-overs
    #[arg(long)]
    pub alone: bool,
    /// How many threads wait; several with commas between them
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1,2,5,10,15,50,100,500,1000,2000", value_parser = up_to(10_000))]
    pub waiters: Vec<usize>,
    /// How many hand-overs for each number of waiters, with warm caches and with cold ones
    #[arg(long, value_name = "N", default_value_t = 101, value_parser = up_to(100_000))]
    pub rounds: usize,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub results: Results,
}

/// `measure protocols`.
#[derive(Args, Debug)]
#[command(mut_arg("csv", |csv| csv.help("Write the results as CSV into this folder, too: machine.csv and protocols.csv")))]
#[command(mut_arg("svg", |svg| svg.help("Draw figures into this folder: lock and unlock of each protocol alone and under load, and the machine's costs")))]
pub struct MeasuredProtocols {
    /// How many readings of everything alone
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = up_to(1_000_000))]
    pub readings: usize,
    /// How many locks and unlocks under load, of all tasks together, with each protocol
    #[arg(long, value_name = "N", default_value_t = 9_000, value_parser = up_to(1_000_000))]
    pub pairs: usize,
    /// Only alone, without the load
    #[arg(long, conflicts_with = "pairs")]
    pub alone: bool,
    /// Write what `check --overheads` charges into this folder: worst.toml and average.toml of all protocols, and worst-PROTOCOL.toml and average-PROTOCOL.toml of each
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub overheads: Option<PathBuf>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub results: Results,
}

/// `measure ics`.
#[derive(Args, Debug)]
#[command(mut_arg("csv", |csv| csv.help("Write the results as CSV into this folder, too: cost.csv, response.csv and histogram.csv")))]
#[command(mut_arg("svg", |svg| svg.help("Draw figures into this folder: what sections cost, and a histogram of response times for each mechanism and setting")))]
pub struct MeasuredIcs {
    /// How many readings, of 10,000 sections each
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = up_to(100_000))]
    pub readings: usize,
    /// Only what sections cost, without the experiment
    #[arg(long, conflicts_with_all = ["tick", "operations"])]
    pub alone: bool,
    /// The experiment's unit of time
    #[arg(long, value_name = "DURATION", default_value = "1ms", value_parser = tick)]
    pub tick: Duration,
    /// How many times something is enqueued, by all tasks together, with each mechanism in each setting
    #[arg(long, value_name = "N", default_value_t = 400, value_parser = up_to(1_000_000))]
    pub operations: usize,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub results: Results,
}

/// `measure locks`.
#[derive(Args, Debug)]
#[command(mut_arg("csv", |csv| csv.help("Write the results as CSV into this folder, too: cost.csv and contention.csv")))]
#[command(mut_arg("svg", |svg| svg.help("Draw figures into this folder: costs alone with warm and cold caches, and delays over the rate for each kind of arrivals")))]
pub struct Locks {
    /// How many readings of each lock alone
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = up_to(10_000_000))]
    pub readings: usize,
    /// Only alone, without contention
    #[arg(long, conflicts_with_all = ["section", "requests", "rate"])]
    pub alone: bool,
    /// Length of a critical section under contention
    #[arg(long, value_name = "DURATION", default_value = "70us", value_parser = section)]
    pub section: Duration,
    /// How many requests, of all tasks together, of each lock at each rate
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = up_to(1_000_000))]
    pub requests: usize,
    /// Arrivals of all tasks over the service rate (one section a section's length); several with commas between them
    #[arg(long, value_name = "LIST", value_delimiter = ',', allow_negative_numbers = true, default_value = "0.25,0.5,1,2", value_parser = arrival_rate)]
    pub rate: Vec<f64>,
    /// The seed of the arrivals [default: drawn, and printed]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub results: Results,
}

/// `study`.
#[derive(Subcommand, Debug)]
pub enum Study {
    /// Three orders of a lock under bursts of requests: FIFO, priority, batched priority
    ///
    /// The simulation of the batched priority lock, machine repairmen with bursts: a burst takes sources that have no request
    /// yet, each core being one, and all of them request the lock at one instant. Critical sections are exponential with a
    /// mean of 100 units of time; gaps between bursts are exponential, too, and sizes of bursts uniform. The three locks meet
    /// the same bursts and the same sections.
    #[command(after_help = with(BPL_EXAMPLES, STATUSES))]
    Bpl(Bpl),
}

/// `study bpl`.
#[derive(Args, Debug)]
pub struct Bpl {
    /// How many cores (sources of traffic), up to 64; several with commas between them
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "8,16,32,64", value_parser = clap::value_parser!(u32).range(1..=i64::from(CORES_MAX)))]
    pub cores: Vec<u32>,
    /// Mean sizes of a burst; each is uniform from 1 to twice that less 1 [default: the powers of two up to half the cores]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=i64::from(BURST_MAX)))]
    pub burst: Vec<u32>,
    /// Bursts per mean critical section: the paper's λ/μ
    #[arg(long, value_name = "LIST", value_delimiter = ',', allow_negative_numbers = true, default_value = "0.001,0.002,0.005,0.01,0.02,0.05,0.1,0.2,0.5,1", value_parser = rate)]
    pub rate: Vec<f64>,
    /// How many requests in each run; a few more, so that no batch is cut in two
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub requests: u64,
    /// How many runs of each; they count together
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub runs: u32,
    /// The seed, from which the seed of each run is drawn [default: drawn, and printed]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Who gets a lock that is free when a burst comes
    #[arg(long, value_name = "WHO", default_value = "random")]
    pub free_lock: FreeLockChoice,
    /// Print one JSON object instead of a table (docs/output.schema.json)
    #[arg(long)]
    pub json: bool,
    /// Write the results as CSV, too
    #[arg(long, value_name = "OUT", value_hint = ValueHint::FilePath)]
    pub csv: Option<PathBuf>,
    /// Draw figures over the rate into this folder, for each number of cores and mean burst: inversions-CORES-BURST.svg, and
    /// delay-CORES-BURST.svg, which is cut at 1.25
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub svg: Option<PathBuf>,
    /// How many threads; the results do not depend on it [default: one for each CPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
}

/// Who gets a lock that is free when a burst comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum FreeLockChoice {
    /// Any member of the burst, at random
    Random,
    /// The most important member of the burst
    Best,
}

impl FreeLockChoice {
    /// As the simulation has it.
    #[must_use]
    pub fn free_lock(self) -> FreeLock {
        match self {
            Self::Random => FreeLock::Random,
            Self::Best => FreeLock::Best,
        }
    }
}

/// Foreign tools whose files can be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Tool {
    /// The JSON of rt-app: periodic threads with run, lock and unlock
    RtApp,
}

/// A protocol, several, or the file's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProtocolChoice {
    /// That one.
    One(Protocol),
    /// Each in turn.
    All,
    /// What the file says; otherwise mpcp where a resource is shared across CPUs, icpp where none is.
    File,
}

impl ValueEnum for ProtocolChoice {
    fn value_variants<'a>() -> &'a [Self] {
        const CHOICES: [ProtocolChoice; Protocol::ALL.len() + 2] = {
            let mut choices = [ProtocolChoice::File; Protocol::ALL.len() + 2];
            let mut next = 0;
            while next < Protocol::ALL.len() {
                choices[next] = ProtocolChoice::One(Protocol::ALL[next]);
                next += 1;
            }
            choices[next] = ProtocolChoice::All;
            choices
        };
        &CHOICES
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let (name, help) = match self {
            Self::One(protocol) => (protocol.name(), in_a_line(*protocol)),
            Self::All => ("all", "Each of these in turn; `check` ranks them"),
            Self::File => (
                "file",
                "What the file says; otherwise mpcp where a resource is shared across CPUs, icpp where none is",
            ),
        };
        Some(PossibleValue::new(name).help(help))
    }
}

/// What a protocol is, for the help.
fn in_a_line(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::None => "A plain mutex: no control of priority inversion",
        Protocol::Pip => "Priority inheritance",
        Protocol::Icpp => "Immediate priority ceiling (the POSIX \"protect\" protocol)",
        Protocol::Pcp => "Classic priority ceiling, for resources of one CPU",
        Protocol::Srp => "Stack resource policy, for resources of one CPU: jobs start only above the ceiling",
        Protocol::Ics => "Interruptible sections, for resources of one CPU: nobody waits, work in vain is done again",
        Protocol::IcsLock => {
            "As ics from a cutoff priority on; less urgent tasks lock first, at the ceiling among them"
        }
        Protocol::Mpcp => "Multiprocessor priority ceiling for resources shared across CPUs, icpp for the others",
        Protocol::MpcpVs => "As mpcp with virtual spinning: of each CPU's tasks the most urgent that asked goes first",
        Protocol::Dpcp => "Distributed priority ceiling: sections execute on the resource's home CPU",
        Protocol::Dflp => "As dpcp, first come, first served",
        Protocol::FmlpLong => "First come, first served; waiting suspends, the owner inherits from who waits",
        Protocol::FmlpPlus => {
            "First come, first served; waiting suspends, owners are boosted in the order of their requests"
        }
        Protocol::FmlpShort => "First come, first served; waiting spins, without preemption",
        Protocol::Msrp => "As fmlp_short for resources shared across CPUs, icpp for the others",
        Protocol::Mrsp => "First come, first served; waiting spins at the CPU's ceiling, and helps a preempted owner",
        Protocol::Omlp => "First come, first served, one request of each CPU at a time, which is boosted",
        _ => "",
    }
}

impl ProtocolChoice {
    /// The protocols meant, for this system.
    #[must_use]
    pub fn protocols(self, system: &System) -> Vec<Protocol> {
        match self {
            Self::One(protocol) => vec![protocol],
            Self::All => Protocol::ALL.to_vec(),
            Self::File => vec![system.protocol_or_default()],
        }
    }
}

/// How a bound is found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum BoundChoice {
    /// The terms that the page of the protocol has
    Classic,
    /// As best; a note names what keeps linear programs from a system that they do not cover
    Lp,
    /// The least of both for each task
    Best,
}

/// How CPUs are given to jobs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum SchedulerChoice {
    /// Partitioned, fixed priorities
    PFp,
    /// Partitioned, earliest deadline first
    PEdf,
    /// Clustered, fixed priorities
    CFp,
    /// Global, fixed priorities
    GFp,
    /// Global, earliest deadline first
    GEdf,
}

impl SchedulerChoice {
    /// The scheduler meant.
    #[must_use]
    pub fn scheduler(self) -> Scheduler {
        match self {
            Self::PFp => Scheduler::PFp,
            Self::PEdf => Scheduler::PEdf,
            Self::CFp => Scheduler::CFp,
            Self::GFp => Scheduler::GFp,
            Self::GEdf => Scheduler::GEdf,
        }
    }
}

/// On which of the CPUs where a task fits it is placed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum FitChoice {
    /// The first
    FirstFit,
    /// The fullest
    BestFit,
    /// The emptiest
    WorstFit,
}

impl FitChoice {
    /// The fit meant.
    #[must_use]
    pub fn fit(self) -> Fit {
        match self {
            Self::FirstFit => Fit::First,
            Self::BestFit => Fit::Best,
            Self::WorstFit => Fit::Worst,
        }
    }
}

/// When each task is released first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum OffsetsChoice {
    /// As the file says
    File,
    /// All at the same time
    Synchronous,
    /// Each at random within its period; several schedules
    Random,
    /// Each task in turn moved through its period in equal steps while the others are released together
    Sweep,
}

impl OffsetsChoice {
    /// As typed.
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

/// Longest section under contention: a task that waits for all others must come to an end within a second.
const SECTION_MAX: Duration = Duration::from_ms(10);

/// From 1 to `most`.
fn up_to(most: u64) -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..=most)
}

fn section(text: &str) -> Result<Duration, String> {
    let section = duration(text)?;
    if section > SECTION_MAX { Err("it must be at most 10 ms".into()) } else { Ok(section) }
}

/// What the experiment with interruptible sections takes for a tick.
const TICKS: std::ops::RangeInclusive<Duration> = Duration::from_us(50)..=Duration::from_ms(20);

fn tick(text: &str) -> Result<Duration, String> {
    let tick = duration(text)?;
    if TICKS.contains(&tick) { Ok(tick) } else { Err("it must be from 50 us to 20 ms".into()) }
}

fn arrival_rate(text: &str) -> Result<f64, String> {
    match text.trim().parse() {
        Ok(rate) if (0.01..=100.0).contains(&rate) => Ok(rate),
        Ok(_) => Err("it must be from 0.01 to 100 arrivals in the length of a section".into()),
        Err(_) => Err("it must be a number, such as 0.5".into()),
    }
}

fn rate(text: &str) -> Result<f64, String> {
    match text.trim().parse() {
        Ok(rate) if (RATE_MIN..=RATE_MAX).contains(&rate) => Ok(rate),
        Ok(_) => Err(format!("it must be from {RATE_MIN} to {RATE_MAX} bursts per mean critical section")),
        Err(_) => Err("it must be a number, such as 0.01".into()),
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    match Duration::parse(text) {
        Ok(Duration::ZERO) => Err("it must be longer than nothing".into()),
        Ok(duration) => Ok(duration),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_arguments_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_protocol_can_be_chosen_by_its_name() {
        for protocol in Protocol::ALL {
            assert_eq!(ProtocolChoice::from_str(protocol.name(), false), Ok(ProtocolChoice::One(protocol)));
            assert!(!in_a_line(protocol).is_empty(), "{protocol}");
        }
        assert_eq!(ProtocolChoice::from_str("all", false), Ok(ProtocolChoice::All));
        assert_eq!(ProtocolChoice::from_str("file", false), Ok(ProtocolChoice::File));
        assert!(ProtocolChoice::from_str("fmlp-plus", false).is_err());
    }

    #[test]
    fn durations_are_read_as_in_the_file() {
        assert_eq!(duration("500 ms"), Ok(Duration::from_ms(500)));
        assert!(duration("10").is_err_and(|error| error.contains("unit")));
        assert!(duration("0 s").is_err());
    }

    #[test]
    fn rates_are_positive_and_finite() {
        assert_eq!((rate("0.01"), rate(" 1")), (Ok(0.01), Ok(1.0)));
        for wrong in ["0", "-1", "inf", "NaN", "1e-9", "1e9", "fast", ""] {
            assert!(rate(wrong).is_err(), "{wrong}");
        }
    }
}
