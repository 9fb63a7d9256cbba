//! Tasks and what one job of a task does, step by step.

use crate::{CpuId, Duration, Priority, ResourceId};
use alloc::string::String;
use alloc::vec::Vec;

/// Most steps one job may have.
pub const MAX_STEPS: usize = 4096;
/// Most resources one job may hold at the same time.
pub const MAX_NESTING: usize = 8;

/// One thing a job does. Locking and unlocking take no time of their own.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Step {
    /// Execute for this long at worst.
    Run(Duration),
    /// Acquire a resource, waiting if it must.
    Lock(ResourceId),
    /// Release the resource acquired last.
    Unlock(ResourceId),
}

/// A recurring piece of work on one processor.
///
/// A job *arrives* every `period` (or later: the period is the least inter-arrival time), is *released*
/// at most `jitter` after its arrival, and must finish within `deadline` of its arrival.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Task {
    /// Unique in its system.
    pub name: String,
    /// Where its jobs execute; in a cluster of several, the first of its processors: see [`System::cpus_of`](crate::System::cpus_of).
    pub cpu: CpuId,
    /// Base priority, greater = more urgent. Tasks of one priority are served first come, first served.
    pub priority: Priority,
    /// Least time between two arrivals.
    pub period: Duration,
    /// Relative to the arrival; at most the period.
    pub deadline: Duration,
    /// Longest time from arrival to release.
    pub jitter: Duration,
    /// First arrival, for simulation and execution; the analysis holds for every offset.
    pub offset: Duration,
    /// Worst-case execution time of one job, its critical sections included: the sum of the runs in `body`.
    pub wcet: Duration,
    /// What a job does, in order.
    pub body: Vec<Step>,
}
