//! How to run.

use lockwright_model::{Duration, Instant, Priority, Protocol, TaskId};

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
    /// Whether the kernel's record of context switches is kept, so that [`Outcome::occupancy`](crate::Outcome::occupancy) can tell who else had the CPUs. Each switch
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
