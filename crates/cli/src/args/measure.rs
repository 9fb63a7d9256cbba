//! `measure`.

use super::help::{OUTPUT, with_statuses};
use super::values::{duration_in, number_in, up_to};
use clap::{Args, Subcommand, ValueHint};
use lockwright_model::Duration;
use std::path::PathBuf;

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

const OBJECT_EXAMPLES: &str = "Examples:
  lockwright measure objects
  lockwright measure objects --alone --json
  lockwright measure objects --csv results --svg figures --overheads overheads";

/// `measure`.
#[derive(Subcommand, Debug)]
pub enum Measure {
    /// Measure spinlocks: uncontended, with warm and cold caches, and under contention
    ///
    /// Under contention, one task on each CPU requests the lock at random times (a Poisson process). The tasks have the
    /// highest real-time priority and together execute for at most 0.7 s of each second. This part needs permission for
    /// real-time priorities; `--alone` skips it.
    #[command(after_help = with_statuses(LOCKS_EXAMPLES))]
    Locks(Locks),
    /// Measure mutexes, including those of the C library: uncontended, and the hand-over to waiters
    ///
    /// For a hand-over, an owner unlocks a mutex for which more urgent threads of the same CPU wait. The result is the
    /// time until the first of them executes, with warm and with cold caches. Hand-overs and ceilings need permission
    /// for real-time priorities; `--alone` skips the hand-overs.
    #[command(after_help = with_statuses(MUTEX_EXAMPLES))]
    Mutex(Mutexes),
    /// Measure multiprocessor protocols, and write overheads files
    ///
    /// Lock and unlock are measured without contention and under load, together with the costs of the machine and its
    /// kernel. The load is five tasks with different priorities on each of up to three CPUs, three resources, and one
    /// CPU for synchronisation. If the machine has no further CPU, that is the last of the three. This command needs
    /// permission for real-time priorities.
    #[command(after_help = with_statuses(PROTOCOL_EXAMPLES))]
    Protocols(MeasuredProtocols),
    /// Measure interruptible critical sections, and compare them with locks
    ///
    /// The experiment repeats a published one: three tasks of one priority execute for some ticks and then enqueue an
    /// element; a more urgent task sleeps and then dequeues one. All execute on one CPU. The queue is protected by a
    /// FIFO semaphore, a priority semaphore, a mutex with priority inheritance, interruptible sections, and an
    /// interruptible lock. The experiment needs permission for real-time priorities; `--alone` skips it.
    #[command(after_help = with_statuses(ICS_EXAMPLES))]
    Ics(MeasuredIcs),
    /// Measure lock-free and wait-free objects, and compare them with sequential objects under locks
    ///
    /// The objects are a buffer of ten words, a FIFO queue and a priority queue. One task measures the cost of an
    /// operation on an object that was built for 2 to 32 tasks. Then one task on each CPU uses the object as fast as
    /// it can; this part also counts the steps of operations, and compares them with their bounds. It needs permission
    /// for real-time priorities; `--alone` skips it.
    #[command(after_help = with_statuses(OBJECT_EXAMPLES))]
    Objects(MeasuredObjects),
}

/// Where results go. The help of each command names the files.
#[derive(Args, Debug)]
pub struct Results {
    /// Print one JSON object instead of tables (schema: docs/output.schema.json)
    #[arg(long, help_heading = OUTPUT)]
    pub json: bool,
    /// Write the results as CSV into this directory
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = OUTPUT)]
    pub csv: Option<PathBuf>,
    /// Draw figures into this directory
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = OUTPUT)]
    pub svg: Option<PathBuf>,
}

/// `measure locks`.
#[derive(Args, Debug)]
#[command(mut_arg("csv", |csv| csv.help("Write the results as CSV into this directory: cost.csv and contention.csv")))]
#[command(mut_arg("svg", |svg| {
    svg.help("Draw figures into this directory: uncontended costs with warm and cold caches, and delays over the rate")
}))]
pub struct Locks {
    /// Number of uncontended readings of each lock, each of a batch [1 to 10,000,000]
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = up_to::<usize>(10_000_000))]
    pub readings: usize,
    /// Measure without contention only
    #[arg(long, conflicts_with_all = ["section", "requests", "rate"])]
    pub alone: bool,
    /// Length of a critical section under contention [1 ns to 10 ms]
    #[arg(long, value_name = "DURATION", default_value = "70us",
        value_parser = duration_in(Duration::from_ns(1)..=SECTION_MAX, "1 ns to 10 ms"))]
    pub section: Duration,
    /// Number of requests by all tasks together, for each lock and rate [1 to 1,000,000]
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = up_to::<usize>(1_000_000))]
    pub requests: usize,
    /// Arrival rates of all tasks together, in requests per length of a section [0.01 to 100]
    #[arg(long, value_name = "LIST", value_delimiter = ',', allow_negative_numbers = true,
        default_value = "0.25,0.5,1,2", value_parser = number_in(0.01..=100.0, "requests per length of a section"))]
    pub rate: Vec<f64>,
    /// Seed of the arrivals [default: chosen at random and printed]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub results: Results,
}

/// Longest section under contention: even a task that waits for all others is served within a second.
const SECTION_MAX: Duration = Duration::from_ms(10);

/// `measure mutex`.
#[derive(Args, Debug)]
#[command(mut_arg("csv", |csv| csv.help("Write the results as CSV into this directory: cost.csv and hand-over.csv")))]
#[command(mut_arg("svg", |svg| {
    svg.help("Draw figures into this directory: uncontended costs with warm and cold caches, and hand-overs over the waiters")
}))]
pub struct Mutexes {
    /// Number of uncontended readings of each mutex, each of a batch [1 to 10,000,000]
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = up_to::<usize>(10_000_000))]
    pub readings: usize,
    /// Measure without contention only
    #[arg(long)]
    pub alone: bool,
    /// Numbers of waiting threads [1 to 10,000]
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1,2,5,10,15,50,100,500,1000,2000",
        value_parser = up_to::<usize>(10_000))]
    pub waiters: Vec<usize>,
    /// Number of hand-overs for each number of waiters, with warm and with cold caches [1 to 100,000]
    #[arg(long, value_name = "N", default_value_t = 101, value_parser = up_to::<usize>(100_000))]
    pub rounds: usize,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub results: Results,
}

/// `measure protocols`.
#[derive(Args, Debug)]
#[command(mut_arg("csv", |csv| csv.help("Write the results as CSV into this directory: machine.csv and protocols.csv")))]
#[command(mut_arg("svg", |svg| {
    svg.help("Draw figures into this directory: lock and unlock of each protocol, and the costs of the machine")
}))]
pub struct MeasuredProtocols {
    /// Number of uncontended readings of each operation [1 to 1,000,000]
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = up_to::<usize>(1_000_000))]
    pub readings: usize,
    /// Number of locks and unlocks under load by all tasks together, for each protocol [1 to 1,000,000]
    #[arg(long, value_name = "N", default_value_t = 9_000, value_parser = up_to::<usize>(1_000_000))]
    pub pairs: usize,
    /// Measure without the load only
    #[arg(long, conflicts_with = "pairs")]
    pub alone: bool,
    /// Write overheads files into this directory, for `check --overheads` and the like
    ///
    /// The files are worst.toml and average.toml for all protocols, and worst-PROTOCOL.toml and average-PROTOCOL.toml
    /// for each protocol.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub overheads: Option<PathBuf>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub results: Results,
}

/// `measure ics`.
#[derive(Args, Debug)]
#[command(mut_arg("csv", |csv| {
    csv.help("Write the results as CSV into this directory: cost.csv, response.csv and histogram.csv")
}))]
#[command(mut_arg("svg", |svg| {
    svg.help("Draw figures into this directory: costs, and the response times with each mechanism in each setting")
}))]
pub struct MeasuredIcs {
    /// Number of readings, each of 10,000 sections [1 to 100,000]
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = up_to::<usize>(100_000))]
    pub readings: usize,
    /// Measure without the experiment only
    #[arg(long, conflicts_with_all = ["tick", "operations"])]
    pub alone: bool,
    /// Unit of time of the experiment [50 us to 20 ms]
    #[arg(long, value_name = "DURATION", default_value = "1ms",
        value_parser = duration_in(Duration::from_us(50)..=Duration::from_ms(20), "50 us to 20 ms"))]
    pub tick: Duration,
    /// Number of enqueue operations by all tasks together, for each mechanism and setting [1 to 1,000,000]
    #[arg(long, value_name = "N", default_value_t = 400, value_parser = up_to::<usize>(1_000_000))]
    pub operations: usize,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub results: Results,
}

/// `measure objects`.
#[derive(Args, Debug)]
#[command(mut_arg("csv", |csv| {
    csv.help("Write the results as CSV into this directory: alone.csv, lines.csv and contention.csv")
}))]
#[command(mut_arg("svg", |svg| {
    svg.help("Draw figures into this directory: for each object, the cost over the number of tasks it is built for")
}))]
pub struct MeasuredObjects {
    /// Number of operations on each object [1 to 1,000,000]
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = up_to::<usize>(1_000_000))]
    pub operations: usize,
    /// Measure without contention only
    #[arg(long)]
    pub alone: bool,
    /// Write the costs of the objects as overheads files into this directory: worst-objects.toml and
    /// average-objects.toml
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub overheads: Option<PathBuf>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub results: Results,
}
