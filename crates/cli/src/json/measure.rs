//! The objects of `measure`: one for each subject.

use schemars::JsonSchema;
use serde::Serialize;

/// The value of `verb` in all of them.
pub const MEASURE: &str = "measure";

/// The object that `measure locks` prints.
#[derive(Serialize, JsonSchema)]
pub struct LocksOutput {
    /// Always "measure".
    #[schemars(extend("const" = MEASURE))]
    pub verb: &'static str,
    /// Always "locks".
    #[schemars(extend("const" = Self::SUBJECT))]
    pub subject: &'static str,
    /// Cycles of the time-stamp counter per nanosecond.
    pub cycles_per_ns: f64,
    /// Mean cycles of an empty reading with warm caches; subtracted from each batch.
    pub harness_cycles: u64,
    /// Mean cycles of an empty reading with cold caches, subtracted from each lock and unlock; 0 if there are none.
    pub cold_harness_cycles: u64,
    /// Whether the costs were measured under SCHED_FIFO.
    pub realtime: bool,
    /// Number of readings of each lock.
    pub readings: usize,
    /// Length of a critical section under contention.
    pub section_ns: u64,
    /// The seed of the arrivals.
    pub seed: u64,
    /// Whether a signal ended the measurement early.
    pub interrupted: bool,
    /// Cost of an uncontended lock and unlock: each lock with warm caches, then each with cold caches.
    pub costs: Vec<LockCost>,
    /// Each lock under each rate and pattern of arrivals; empty with `--alone`.
    pub contention: Vec<LockContention>,
}

impl LocksOutput {
    /// The value of `subject`.
    pub const SUBJECT: &str = "locks";
}

/// Cost of an uncontended lock and unlock. Each reading is the mean of a batch.
#[derive(Default, Serialize, JsonSchema)]
pub struct LockCost {
    /// Name of the lock.
    pub lock: String,
    /// Whether all caches were emptied before each lock.
    pub cold: bool,
    /// The least reading, in cycles of the time-stamp counter, rounded; at least 1, like the others.
    pub min_cycles: u64,
    /// The median.
    pub median_cycles: u64,
    /// The 99.9th percentile.
    pub p999_cycles: u64,
    /// The greatest reading.
    pub max_cycles: u64,
    /// Number of locks and unlocks in each batch.
    pub pairs: u64,
    /// The median, in nanoseconds.
    pub median_ns: f64,
    /// Half the width of the 95 % confidence interval of the median, with the step of the counter. Fewer than 6
    /// readings have no such interval: this is half the distance of the least and the greatest.
    pub half_width_ns: f64,
}

/// One lock under contention.
#[derive(Default, Serialize, JsonSchema)]
pub struct LockContention {
    /// Name of the lock.
    pub lock: String,
    /// How the arrivals are distributed over the tasks.
    pub arrivals: LockArrivals,
    /// Arrival rate of all tasks together, divided by the service rate.
    pub rate: f64,
    /// Number of tasks, one on each CPU.
    pub tasks: usize,
    /// Number of requests that were granted.
    pub requests: u64,
    /// Number of granted requests delayed by more than critical sections (interrupts, the hypervisor, real-time
    /// throttling); they are left out of all means.
    pub disturbed: u64,
    /// Mean of the tasks' mean waits, weighted by importance; tasks without requests are left out of the sum and of the
    /// weights.
    pub weighted_delay_ns: f64,
    /// `weighted_delay_ns` divided by that of the ticket lock in the same measurement: the median of ten rounds; null
    /// if the ticket lock had no delay.
    pub weighted_delay_over_fifo: Option<f64>,
    /// The lower quartile of that ratio.
    pub weighted_delay_over_fifo_low: Option<f64>,
    /// The upper quartile of that ratio.
    pub weighted_delay_over_fifo_high: Option<f64>,
    /// Mean wait of the most important task; null if it made no request.
    pub top_delay_ns: Option<f64>,
    /// `top_delay_ns` divided by that of the ticket lock in the same measurement: the median of ten rounds.
    pub top_delay_over_fifo: Option<f64>,
    /// The lower quartile of that ratio.
    pub top_delay_over_fifo_low: Option<f64>,
    /// The upper quartile of that ratio.
    pub top_delay_over_fifo_high: Option<f64>,
    /// Mean number of critical sections that ended between a request and its own section.
    pub mean_sections_waited: f64,
    /// The greatest such number.
    pub max_sections_waited: u64,
}

/// How arrivals are distributed over the tasks.
#[derive(Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LockArrivals {
    /// All tasks request equally often.
    #[default]
    Equal,
    /// The less important a task, the more often it requests.
    Rising,
}

impl LockArrivals {
    /// The name in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::Rising => "rising",
        }
    }
}

/// The object that `measure mutex` prints.
#[derive(Serialize, JsonSchema)]
pub struct MutexOutput {
    /// Always "measure".
    #[schemars(extend("const" = MEASURE))]
    pub verb: &'static str,
    /// Always "mutex".
    #[schemars(extend("const" = Self::SUBJECT))]
    pub subject: &'static str,
    /// Cycles of the time-stamp counter per nanosecond.
    pub cycles_per_ns: f64,
    /// Mean cycles of an empty reading with warm caches; subtracted from each batch.
    pub harness_cycles: u64,
    /// Mean cycles of an empty reading with cold caches, subtracted from each lock and unlock; 0 if there are none.
    pub cold_harness_cycles: u64,
    /// Whether the costs were measured under SCHED_FIFO; those of ceilings are left out otherwise.
    pub realtime: bool,
    /// Number of readings of each mutex.
    pub readings: usize,
    /// Whether a signal ended the measurement early.
    pub interrupted: bool,
    /// Cost of an uncontended lock and unlock: each mutex with warm caches, then each with cold caches.
    pub costs: Vec<LockCost>,
    /// Time from an unlock until the first waiter executes: each mutex with warm and with cold caches; empty with
    /// `--alone`.
    pub hand_over: Vec<MutexHandOver>,
}

impl MutexOutput {
    /// The value of `subject`.
    pub const SUBJECT: &str = "mutex";
}

/// The hand-over of a mutex from its owner to the first waiter, on one CPU.
#[derive(Default, Serialize, JsonSchema)]
pub struct MutexHandOver {
    /// Name of the mutex.
    pub lock: String,
    /// Number of waiters.
    pub waiters: usize,
    /// Whether all caches were emptied before each unlock. If not, many waiters still evict each other's data.
    pub cold: bool,
    /// Number of readings.
    pub rounds: usize,
    /// The least time from the call of unlock until the first waiter executes.
    pub min_ns: u64,
    /// The median.
    pub median_ns: u64,
    /// The 90th percentile.
    pub p90_ns: u64,
    /// The greatest.
    pub max_ns: u64,
}

/// The object that `measure protocols` prints. All times are nanoseconds.
#[derive(Serialize, JsonSchema)]
pub struct ProtocolsOutput {
    /// Always "measure".
    #[schemars(extend("const" = MEASURE))]
    pub verb: &'static str,
    /// Always "protocols".
    #[schemars(extend("const" = Self::SUBJECT))]
    pub subject: &'static str,
    /// Number of CPUs that execute the tasks of the load.
    pub application_cpus: usize,
    /// Whether there was a further CPU for synchronisation; otherwise it was the last application CPU.
    pub synchronisation_cpu: bool,
    /// Whether a signal ended the measurement early.
    pub interrupted: bool,
    /// Period of the kernel's tick; null if no tick was seen.
    pub tick_period_ns: Option<u64>,
    /// Costs of the machine and its kernel.
    pub machine: Vec<MachineCost>,
    /// Costs of each protocol.
    pub protocols: Vec<ProtocolTimes>,
}

impl ProtocolsOutput {
    /// The value of `subject`.
    pub const SUBJECT: &str = "protocols";
}

/// Cost of one operation of the machine and its kernel.
#[derive(Default, Serialize, JsonSchema)]
pub struct MachineCost {
    /// Name of the operation.
    pub work: String,
    /// Number of readings.
    pub readings: usize,
    /// The least.
    pub min_ns: u64,
    /// The median.
    pub median_ns: u64,
    /// The mean without the top 1 %.
    pub average_ns: u64,
    /// The greatest without the top 1 %.
    pub worst_ns: u64,
    /// The greatest.
    pub max_ns: u64,
}

/// Cost of lock and unlock under one protocol. Values that were not measured are null.
#[derive(Default, Serialize, JsonSchema)]
pub struct ProtocolTimes {
    /// Name of the protocol, and of the variant if there are two.
    pub protocol: String,
    /// Uncontended lock and unlock together: the median.
    pub alone_median_ns: u64,
    /// Uncontended lock and unlock together: the 99th percentile.
    pub alone_p99_ns: u64,
    /// The value that the median should not exceed, computed from the machine's costs in the same measurement.
    pub target_ns: Option<u64>,
    /// The work of the protocol, and of the scheduler of p-edf, at the begin and at the end of a job together, without
    /// contention: the median.
    pub job_median_ns: Option<u64>,
    /// The same: the 99th percentile.
    pub job_p99_ns: Option<u64>,
    /// Number of locks and of unlocks measured under load.
    pub loaded_readings: usize,
    /// Lock under load: the least.
    pub lock_min_ns: Option<u64>,
    /// Lock under load: the mean.
    pub lock_mean_ns: Option<u64>,
    /// Lock under load: the 99th percentile.
    pub lock_p99_ns: Option<u64>,
    /// Lock under load: the greatest.
    pub lock_max_ns: Option<u64>,
    /// Unlock under load: the least.
    pub unlock_min_ns: Option<u64>,
    /// Unlock under load: the mean.
    pub unlock_mean_ns: Option<u64>,
    /// Unlock under load: the 99th percentile.
    pub unlock_p99_ns: Option<u64>,
    /// Unlock under load: the greatest.
    pub unlock_max_ns: Option<u64>,
}

/// The object that `measure ics` prints. All times are nanoseconds.
#[derive(Serialize, JsonSchema)]
pub struct IcsOutput {
    /// Always "measure".
    #[schemars(extend("const" = MEASURE))]
    pub verb: &'static str,
    /// Always "ics".
    #[schemars(extend("const" = Self::SUBJECT))]
    pub subject: &'static str,
    /// How the threads of one CPU commit on this machine.
    pub strategy: IcsStrategy,
    /// Whether the costs were measured under SCHED_FIFO; those of context switches are left out otherwise.
    pub realtime: bool,
    /// The experiment's unit of time.
    pub tick_ns: u64,
    /// Number of enqueue operations asked for, with each mechanism in each setting.
    pub operations: usize,
    /// Whether a signal ended the measurement early.
    pub interrupted: bool,
    /// Costs of uncontended sections, of the C library's locks for comparison, and of context switches.
    pub costs: Vec<IcsCost>,
    /// The experiment: each mechanism in each setting; empty with `--alone`.
    pub responses: Vec<IcsResponses>,
    /// The distribution of the response times; empty with `--alone`.
    pub histogram: Vec<IcsBin>,
}

impl IcsOutput {
    /// The value of `subject`.
    pub const SUBJECT: &str = "ics";
}

/// How an interruptible section commits.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum IcsStrategy {
    /// By compare-and-swap.
    Locked,
    /// By compare-and-swap without the LOCK prefix.
    Plain,
    /// In a restartable sequence.
    Rseq,
}

impl IcsStrategy {
    /// The name in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Locked => "locked",
            Self::Plain => "plain",
            Self::Rseq => "rseq",
        }
    }
}

/// Cost of one section, of one lock and unlock, or of one context switch.
#[derive(Default, Serialize, JsonSchema)]
pub struct IcsCost {
    /// Name of the operation.
    pub what: String,
    /// How it commits; null for operations without a commit.
    pub strategy: Option<IcsStrategy>,
    /// Number of readings.
    pub readings: usize,
    /// Number of operations in each reading; the times are of one operation.
    pub count: u64,
    /// The least.
    pub min_ns: f64,
    /// The median.
    pub median_ns: f64,
    /// The 99th percentile.
    pub p99_ns: f64,
    /// The greatest.
    pub max_ns: f64,
    /// The median divided by that of the C library's mutex with priority inheritance in the same measurement; null if
    /// that was not measured.
    pub over_pi_mutex: Option<f64>,
}

/// Response times with one mechanism in one setting, from the request to the end of its section. Null if no operation
/// was executed.
#[derive(Default, Serialize, JsonSchema)]
pub struct IcsResponses {
    /// The mechanism that protects the queue.
    pub mechanism: String,
    /// Ticks for which an enqueuing task executes outside its section.
    pub outside_ticks: u64,
    /// Ticks for which an enqueuing task executes inside its section.
    pub inside_ticks: u64,
    /// Ticks for which the dequeuing task sleeps; its section executes for one tick.
    pub sleep_ticks: u64,
    /// Median response of dequeuing while no other task executes.
    pub alone_ns: u64,
    /// Number of dequeue operations.
    pub dequeued: u64,
    /// Response of dequeuing: the median.
    pub dequeue_median_ns: Option<u64>,
    /// Response of dequeuing: the 99th percentile.
    pub dequeue_p99_ns: Option<u64>,
    /// Response of dequeuing: the greatest.
    pub dequeue_max_ns: Option<u64>,
    /// Number of enqueue operations.
    pub enqueued: u64,
    /// Response of enqueuing: the median.
    pub enqueue_median_ns: Option<u64>,
    /// Response of enqueuing: the 99th percentile.
    pub enqueue_p99_ns: Option<u64>,
    /// Response of enqueuing: the greatest.
    pub enqueue_max_ns: Option<u64>,
    /// Number of sections that were restarted after a conflict.
    pub repeated: u64,
}

/// Number of responses of one length.
#[derive(Default, Serialize, JsonSchema)]
pub struct IcsBin {
    /// The mechanism that protects the queue.
    pub mechanism: String,
    /// Ticks for which an enqueuing task executes outside its section.
    pub outside_ticks: u64,
    /// Ticks for which an enqueuing task executes inside its section.
    pub inside_ticks: u64,
    /// The operation.
    pub operation: IcsOperation,
    /// The response time, to the nearest tick.
    pub response_ticks: u64,
    /// Number of such responses.
    pub times: u64,
}

/// An operation on the queue.
#[derive(Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum IcsOperation {
    /// By one of the three less urgent tasks.
    #[default]
    Enqueue,
    /// By the urgent task.
    Dequeue,
}

/// The object that `measure objects` prints. All times are nanoseconds.
#[derive(Serialize, JsonSchema)]
pub struct ObjectsOutput {
    /// Always "measure".
    #[schemars(extend("const" = MEASURE))]
    pub verb: &'static str,
    /// Always "objects".
    #[schemars(extend("const" = Self::SUBJECT))]
    pub subject: &'static str,
    /// Cycles of the time-stamp counter per nanosecond.
    pub cycles_per_ns: f64,
    /// Whether the costs without contention were measured under SCHED_FIFO.
    pub realtime: bool,
    /// Number of operations on each object.
    pub operations: usize,
    /// Whether a signal ended the measurement early.
    pub interrupted: bool,
    /// The operations of one task alone.
    pub alone: Vec<ObjectAlone>,
    /// Straight lines through the costs in `alone`, over the number of tasks.
    pub lines: Vec<ObjectLine>,
    /// The operations of tasks on all CPUs at once; empty with `--alone`.
    pub contention: Vec<ObjectContention>,
}

impl ObjectsOutput {
    /// The value of `subject`.
    pub const SUBJECT: &str = "objects";
}

/// The operations of one task alone on an object.
#[derive(Default, Serialize, JsonSchema)]
pub struct ObjectAlone {
    /// The kind: "buffer", "queue" or "heap".
    pub object: String,
    /// How it is shared: "short" (not at all), "lock-free", "wait-free", "ticket lock" or "PI mutex".
    pub sharing: String,
    /// Number of tasks for which it was built; null if it does not depend on them.
    pub tasks: Option<u32>,
    /// The mean without the top 1 %.
    pub mean_ns: f64,
    /// The greatest time without the top 1 %.
    pub worst_ns: f64,
    /// The greatest time.
    pub max_ns: f64,
}

/// The cost of an object as a straight line over the number of tasks, without the top 1 % of the readings.
#[derive(Default, Serialize, JsonSchema)]
pub struct ObjectLine {
    /// The kind, as in `alone`.
    pub object: String,
    /// How it is shared, as in `alone`.
    pub sharing: String,
    /// The intercept of the line through the means.
    pub mean_ns: f64,
    /// The mean per task; 0 where the slope is not significant (95 %).
    pub mean_ns_per_task: f64,
    /// The greatest time for no task.
    pub worst_ns: f64,
    /// The greatest time per task; 0 where the slope is not significant (95 %).
    pub worst_ns_per_task: f64,
}

/// The operations of tasks on all CPUs at once on an object.
#[derive(Default, Serialize, JsonSchema)]
pub struct ObjectContention {
    /// The kind, as in `alone`.
    pub object: String,
    /// How it is shared, as in `alone`.
    pub sharing: String,
    /// Number of tasks, one on each CPU.
    pub tasks: usize,
    /// The mean without the top 1 %.
    pub mean_ns: f64,
    /// The greatest time without the top 1 %.
    pub worst_ns: f64,
    /// The greatest time.
    pub max_ns: f64,
    /// The most steps of an operation; null for objects under a lock, like the following.
    pub steps: Option<u64>,
    /// The greatest bound of an operation in steps, with the operations of others that overlapped it.
    pub steps_bound: Option<u64>,
    /// The most operations of others that overlapped one.
    pub interfering: Option<u64>,
    /// Number of operations that exceeded their bound.
    pub exceeded: Option<u64>,
}
