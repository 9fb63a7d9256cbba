//! The engine: a [`System`] as real SCHED_FIFO threads with real locks, for a while.
//!
//! | file | thread | level |
//! |---|---|---|
//! | `watchdog` | ends the run in bounded time | 99 |
//! | `script` | changes base priorities on time | 98 |
//! | `job` | one a task, bound to its CPU | 1..=97, see `priorities` |
//! | `set_up` | the caller, under its own policy: prepares, then waits for the watchdog | - |
//!
//! All threads are ready, their memory touched, before the common start is named; job k of a task arrives at
//! start + offset + k * period. Nothing on the way of a job allocates.

mod control;
mod error;
#[cfg(test)]
mod fault;
mod job;
mod script;
mod set_up;
mod shared;
mod watchdog;

pub use control::Control;
pub use error::RunError;
pub(crate) use error::check_system;
pub use set_up::run;
pub(crate) use set_up::{has_fair_server, throttling};

use crate::calibrate::Calibration;
use crate::lock::LockError;
use crate::occupancy::Occupancy;
use hdrhistogram::Histogram;
use lockwright_model::{Duration, Instant, Observation, Priority, Protocol, Record, ResourceId, TaskId};

/// Most entries all logs of a run have together, if nothing else is said: 64 MiB.
pub const LOG_CAPACITY: usize = 1 << 22;

/// How to run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunConfig {
    /// The protocol of resources that name none.
    pub protocol: Protocol,
    /// Jobs arrive for this long; those that have arrived may finish.
    pub duration: Duration,
    /// Scripted changes of base priorities.
    pub changes: Vec<PriorityChange>,
    /// Most entries of all logs together. Less is allocated where less is needed.
    pub log_capacity: usize,
    /// Whether the kernel's record of context switches is kept, so that [`Outcome::occupancy`] can tell who else had the CPUs. Each switch
    /// then takes about a microsecond longer.
    pub watch: bool,
}

impl RunConfig {
    /// Without scripted changes, with logs of at most [`LOG_CAPACITY`], and nobody watches the CPUs.
    #[must_use]
    pub fn new(protocol: Protocol, duration: Duration) -> Self {
        Self { protocol, duration, changes: Vec::new(), log_capacity: LOG_CAPACITY, watch: false }
    }
}

/// The base priority of a task becomes another, while it sleeps, executes, holds or waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PriorityChange {
    /// When, from the common start.
    pub at: Instant,
    /// Whose.
    pub task: TaskId,
    /// To what.
    pub priority: Priority,
}

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// By task id.
    pub tasks: Vec<TaskOutcome>,
    /// What all threads did, by time since the common start.
    pub records: Vec<Record>,
    /// Entries that found a log full. If there are any, `records` and the blocking read off it are not complete.
    pub dropped: u64,
    /// How the run ended.
    pub ended: Ended,
    /// Who had the CPUs, where that was asked for and the kernel allows it.
    pub occupancy: Option<Occupancy>,
    /// What the machine costs, measured before the start.
    pub calibration: Calibration,
    /// From the common start to the end of the last task.
    pub elapsed: Duration,
    /// By CPU of the system: the number Linux has for it.
    pub cpus: Vec<usize>,
    /// Whether the process's memory was locked; if not, a page fault may have delayed a job. It stays locked.
    pub memory_locked: bool,
    /// The limit on the CPU time of real-time threads, where there is one.
    pub throttling: Option<Throttling>,
}

/// Real-time threads get at most `runtime` of every `period` on a CPU that others want.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Throttling {
    /// For real-time threads.
    pub runtime: Duration,
    /// Of this.
    pub period: Duration,
}

/// What was seen of one task.
#[derive(Clone, Debug)]
pub struct TaskOutcome {
    /// The worst of everything. `blocking` is read off the records, see [`observe`](crate::observe::observe).
    pub observation: Observation,
    /// Response times of finished jobs, in nanoseconds.
    pub responses: Histogram<u64>,
    /// From each request to its grant, in nanoseconds.
    pub lock_waits: Histogram<u64>,
    /// The job with the longest response.
    pub worst_job: Option<Job>,
}

/// One finished job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Job {
    /// When it arrived.
    pub arrival: Instant,
    /// When it was complete.
    pub finish: Instant,
}

/// How a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Ended {
    /// Every job that arrived has finished.
    Completed,
    /// [`Control::stop`] was called.
    Interrupted,
    /// Jobs were still unfinished when all deadlines had passed: the watchdog ended the run.
    Watchdog,
}

/// Why a thread could not go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Failure {
    Lock { task: TaskId, resource: ResourceId, error: LockError },
    Job { task: TaskId, error: LockError },
    Change { task: TaskId, error: LockError },
    Panicked(TaskId),
}

impl From<Failure> for RunError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Lock { task, resource, error } => Self::Lock { task, resource, error },
            Failure::Job { task, error } => Self::Job { task, error },
            Failure::Change { task, error } => Self::Change { task, error },
            Failure::Panicked(task) => Self::Panicked(task),
        }
    }
}
