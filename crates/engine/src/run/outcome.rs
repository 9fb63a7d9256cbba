//! The outcome of a run.

use crate::audit::Audit;
use crate::calibrate::Calibration;
use crate::occupancy::Occupancy;
use crate::throttling::Throttling;
use hdrhistogram::Histogram;
use lockwright_model::{Duration, Instant, Observation, Record};

/// The outcome of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The outcome of each task, by id.
    pub tasks: Vec<TaskOutcome>,
    /// The events of all threads, in order of time since the common start.
    pub records: Vec<Record>,
    /// The requests, grants and releases of resources, if [`RunConfig::turns`](crate::RunConfig::turns) requested them.
    /// `at` is no time but a number, in one order for all tasks. A machine decides under its guard, and its decisions
    /// are in the order of their numbers. A request at the home of a resource counts from the arrival there. Other
    /// locks decide in an atomic operation: `Request` has a number before it, and `Stop` one after it, when the request
    /// has been decided and the task waits. `Priority` is the last decision before the grant that changed the priority
    /// of the task; under `omlp` and `mpcp_vs`, which hold requests back, this one admits the request. `Acquire` and
    /// `Release` have numbers of the time at which the task owns the resource. Requests that no call has returned from
    /// are missing, and so are those under `pip`, on which the kernel decides, under `none`, and for sections that do
    /// not exclude each other.
    pub turns: Vec<Record>,
    /// The number of entries that did not fit into a log. If it is not 0, `records` and the blocking derived from them
    /// are incomplete.
    pub dropped: u64,
    /// How the run ended.
    pub ended: Ended,
    /// Which threads had the CPUs, if that was requested and the kernel permits it.
    pub occupancy: Option<Occupancy>,
    /// How the kernel's trace compares with the orders of the protocols, if that was requested.
    pub audit: Option<Audit>,
    /// The costs of the machine, measured before the start.
    pub calibration: Calibration,
    /// The time from the common start to the end of the last task.
    pub elapsed: Duration,
    /// The Linux number of each CPU of the system.
    pub cpus: Vec<usize>,
    /// Whether the memory of the process was locked; it stays locked. If not, page faults may have delayed jobs.
    pub memory_locked: bool,
    /// The limits on the CPU time of real-time threads.
    pub throttling: Vec<Throttling>,
}

/// The outcome of one task.
#[derive(Clone, Debug)]
pub struct TaskOutcome {
    /// The worst values over all jobs. `blocking` is derived from the records, see
    /// [`observe`](crate::observe::observe); under `p-edf` and `g-edf` it is `None`.
    pub observation: Observation,
    /// Response times of finished jobs, in nanoseconds.
    pub responses: Histogram<u64>,
    /// The times from each request to its grant, in nanoseconds.
    pub lock_waits: Histogram<u64>,
    /// Under SCHED_DEADLINE, the number of jobs that executed for longer than their reservation. The kernel may have
    /// throttled them until their deadline.
    pub throttled: u64,
    /// The job with the longest response time.
    pub worst_job: Option<Job>,
}

/// One finished job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Job {
    /// Its arrival.
    pub arrival: Instant,
    /// Its completion.
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
    /// Jobs were unfinished when all deadlines had passed, and the watchdog ended the run.
    Watchdog,
}
