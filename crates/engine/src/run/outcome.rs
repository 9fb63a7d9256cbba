//! What came of a run.

use crate::calibrate::Calibration;
use crate::occupancy::Occupancy;
use crate::throttling::Throttling;
use hdrhistogram::Histogram;
use lockwright_model::{Duration, Instant, Observation, Record};

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
    /// [`Control::stop`](crate::Control::stop) was called.
    Interrupted,
    /// Jobs were still unfinished when all deadlines had passed: the watchdog ended the run.
    Watchdog,
}
