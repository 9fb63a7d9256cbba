//! One task's state in a simulation.

use lockwright_model::{Observation, Priority};
use std::collections::VecDeque;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// No job.
    Idle,
    Ready,
    Running,
    /// For a resource, or to start.
    Waiting,
}

/// What has become of the lock the job stands at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Asked {
    Not,
    /// Asked, and not yet granted.
    Since(u64),
    /// As before, and spins.
    Spinning(u64),
    /// Granted; the job has not executed since.
    Granted(u64),
}

/// A released job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    pub(crate) arrival: u64,
    pub(crate) release: u64,
    /// What its processor had executed at its rank or above when it was released.
    pub(crate) executed: u64,
    /// How long its task had executed elsewhere by then.
    pub(crate) away: u64,
}

pub(crate) struct TaskState {
    /// Where it is.
    pub(crate) cpu: usize,
    /// Where it belongs.
    pub(crate) own_cpu: usize,
    /// Which machine sent it elsewhere.
    pub(crate) sent_by: Option<usize>,
    /// Of its base priority on its processor, the most urgent first.
    pub(crate) rank: usize,
    pub(crate) state: State,
    /// The highest of what its base and the machines say.
    pub(crate) priority: Priority,
    pub(crate) job: Option<Job>,
    /// Jobs released while an earlier one is not finished.
    pub(crate) backlog: VecDeque<Job>,
    /// The step the job stands at.
    pub(crate) step: usize,
    /// What is left of a run, once it has begun.
    pub(crate) left: Option<u64>,
    pub(crate) asked: Asked,
    /// The job's time between requests and grants so far.
    pub(crate) waited: u64,
    /// How long the job has spun.
    pub(crate) spun: u64,
    /// How long the task has executed on other processors than its own.
    pub(crate) away: u64,
    /// How long the job was delayed so far, where there are clusters.
    pub(crate) delayed: u64,
    /// Where it executed last.
    pub(crate) last_cpu: usize,
    pub(crate) next_arrival: u64,
    pub(crate) seen: Observation,
}
