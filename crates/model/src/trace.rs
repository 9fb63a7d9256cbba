//! What happened: the records that the simulator and the runtime both write, and what is read off them.

use crate::{CpuId, Duration, Instant, Priority, ResourceId, TaskId};

/// One thing that happened to one task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record {
    /// When.
    pub at: Instant,
    /// To whom.
    pub task: TaskId,
    /// What.
    pub event: Event,
}

/// The life of a job, as a trace shows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A job arrived (its deadline counts from here).
    Arrive,
    /// The task began or went on executing on its CPU.
    Run,
    /// The task left its CPU: preempted, waiting, or done.
    Stop,
    /// The running job asked for a resource.
    Request(ResourceId),
    /// The job owns the resource and goes on.
    Acquire(ResourceId),
    /// The job gave the resource back; of an interruptible section: it committed.
    Release(ResourceId),
    /// The job's interruptible section begins again: another one on the resource was committed since it began.
    Restart(ResourceId),
    /// The task's effective priority is now this.
    Priority(Priority),
    /// The task executes on this processor from now on.
    Migrate(CpuId),
    /// The oldest job of the task is complete.
    Finish,
}

/// What was seen of one task, in a simulation or on a machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Observation {
    /// Jobs that finished.
    pub jobs: u64,
    /// Jobs that finished, or were still unfinished at the end, later than their deadline.
    pub misses: u64,
    /// Longest response: from arrival to finish. `None` where no job finished.
    pub response: Option<Duration>,
    /// Longest blocking of one job: time during which it had been released and was not finished, and its CPU
    /// executed neither it nor a task of at least its base priority; and what it spun. Executing elsewhere is no blocking.
    /// Where there are clusters of several CPUs: time during which it was among the most urgent of its cluster, as many as that has CPUs, and did not execute.
    pub blocking: Option<Duration>,
    /// Longest time one job spent between its requests and their grants.
    pub lock_wait: Option<Duration>,
    /// How often interruptible sections began again.
    pub restarts: u64,
}
