//! Traces: the records that the simulator and the runtime both write, and the observations derived from them.

use crate::{CpuId, Duration, Instant, Priority, ResourceId, TaskId};

/// One event of one task.
///
/// This is a plain value: users write it as a literal, and it gets no further fields.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Record {
    /// When the event happened.
    pub at: Instant,
    /// The task it happened to.
    pub task: TaskId,
    /// The event.
    pub event: Event,
}

/// An event in the life of a job, as a trace shows it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Event {
    /// A job arrived. Its deadline counts from here.
    Arrive,
    /// The task started or resumed execution on its CPU.
    Run,
    /// The task left its CPU: it was preempted, waits, or is done.
    Stop,
    /// The running job requested a resource.
    Request(ResourceId),
    /// The job acquired the resource and continues.
    Acquire(ResourceId),
    /// The job released the resource. For an interruptible section, the job committed it.
    Release(ResourceId),
    /// The job's interruptible section restarts, because another section on the resource was committed since it began.
    Restart(ResourceId),
    /// From now on, this is the task's effective priority.
    Priority(Priority),
    /// The task executes on this processor from now on.
    Migrate(CpuId),
    /// The oldest job of the task is complete.
    Finish,
}

/// The measurements of one task, in a simulation or on a machine.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub struct Observation {
    /// The number of jobs that finished.
    pub jobs: u64,
    /// The number of jobs that finished later than their deadline,
    /// or were still unfinished at the end after their deadline.
    pub misses: u64,
    /// The longest response time, from arrival to finish. `None` if no job finished.
    pub response: Option<Duration>,
    /// The longest blocking of one job. Blocking is the time during which the job has been released and is not
    /// finished, and its CPU executes neither it nor a task of at least its base priority, plus the time that it
    /// spins. Time during which the job executes on another CPU is not blocking.
    ///
    /// With clusters of m CPUs, blocking is the time during which the job is among the m most urgent jobs of its
    /// cluster and does not execute.
    pub blocking: Option<Duration>,
    /// The longest time that one job spent between its requests and their grants.
    pub lock_wait: Option<Duration>,
    /// The number of times that interruptible sections restarted.
    pub restarts: u64,
}
