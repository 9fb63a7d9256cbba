//! The configuration of a run.

use lockwright_model::{Duration, Instant, Priority, Protocol, TaskId};

/// The default limit on the entries of all logs of a run together: 64 MiB.
pub const LOG_CAPACITY: usize = 1 << 22;

/// The configuration of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunConfig {
    /// The protocol of resources that do not name one.
    pub protocol: Protocol,
    /// How long jobs arrive. Jobs that have arrived may finish later.
    pub duration: Duration,
    /// Scripted changes of base priorities.
    pub changes: Vec<PriorityChange>,
    /// The most entries of all logs together. Less memory is allocated if less is needed.
    pub log_capacity: usize,
    /// Whether to keep the kernel's record of context switches, from which
    /// [`Outcome::occupancy`](crate::Outcome::occupancy) shows which other threads had the CPUs. Each switch then takes
    /// about a microsecond longer.
    pub watch: bool,
    /// Under `p-edf`: whether the kernel schedules the tasks by SCHED_DEADLINE, in a cpuset partition for each CPU. It
    /// needs root, and changes the cpusets of the machine while the run lasts. Without effect under other schedulers.
    pub sched_deadline: bool,
}

impl RunConfig {
    /// A configuration without scripted changes a record of context switches, or SCHED_DEADLINE, and with logs of
    /// at most [`LOG_CAPACITY`] entries.
    #[must_use]
    pub fn new(protocol: Protocol, duration: Duration) -> Self {
        Self {
            protocol,
            duration,
            changes: Vec::new(),
            log_capacity: LOG_CAPACITY,
            watch: false,
            sched_deadline: false,
        }
    }
}

/// A change of the base priority of a task. The task may be sleeping, executing, holding or waiting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PriorityChange {
    /// The time of the change, from the common start.
    pub at: Instant,
    /// The task.
    pub task: TaskId,
    /// The new base priority.
    pub priority: Priority,
}
