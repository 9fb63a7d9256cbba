//! One task's state in a simulation.

use lockwright_model::{Observation, Priority, ResourceId, Step};
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

/// What every event looks at, close together.
pub(crate) struct TaskState {
    pub(crate) job: Option<Job>,
    pub(crate) asked: Asked,
    /// What is left of a run, once it has begun.
    pub(crate) left: Option<u64>,
    pub(crate) next_arrival: u64,
    /// As the system says, in nanoseconds.
    pub(crate) period: u64,
    pub(crate) jitter: u64,
    pub(crate) deadline: u64,
    /// The job's time between requests and grants so far.
    pub(crate) waited: u64,
    /// How long the job has spun.
    pub(crate) spun: u64,
    /// How long the task has executed on other processors than its own.
    pub(crate) away: u64,
    /// The highest of what its base and the machines say.
    pub(crate) priority: Priority,
    /// The stage the job stands at, of all stages of the system.
    pub(crate) stage: u32,
    /// The first one of each job.
    pub(crate) first_stage: u32,
    /// Of its base priority on its processor, the most urgent first.
    pub(crate) rank: u32,
    /// Where it is.
    pub(crate) cpu: usize,
    /// Where it belongs.
    pub(crate) own_cpu: usize,
    /// Which machine sent it elsewhere.
    pub(crate) sent_by: Option<u32>,
    pub(crate) state: State,
}

/// What few events look at.
pub(crate) struct Aside {
    /// Jobs released while an earlier one is not finished.
    pub(crate) backlog: VecDeque<Job>,
    /// How long the job was delayed so far, where there are clusters.
    pub(crate) delayed: u64,
    /// Where it executed last.
    pub(crate) last_cpu: usize,
    pub(crate) seen: Observation,
}

/// A [`Step`] as it is executed; those of all tasks are in one list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    /// At worst, in nanoseconds.
    Run(u64),
    Lock(ResourceId),
    Unlock(ResourceId),
    /// The job is done.
    End,
}

impl Stage {
    /// The stages of a job, its end included.
    pub(crate) fn all(body: &[Step]) -> impl Iterator<Item = Self> {
        let stage = |&step: &Step| match step {
            Step::Run(worst) => Self::Run(worst.as_ns()),
            Step::Lock(resource) => Self::Lock(resource),
            Step::Unlock(resource) => Self::Unlock(resource),
        };
        body.iter().map(stage).chain([Self::End])
    }
}
