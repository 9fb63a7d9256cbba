//! The state of a task in a simulation.

use lockwright_model::{CpuId, Observation, Priority, ResourceId, Step};
use std::collections::VecDeque;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// The task has no job.
    Idle,
    Ready,
    Running,
    /// The task waits for a resource, or to start.
    Waiting,
}

/// The state of the job's request for the lock that is its next step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Asked {
    Not,
    /// Requested at this time, and not yet granted.
    Since(u64),
    /// Requested at this time, and not yet granted; the job spins.
    Spinning(u64),
    /// Requested at this time, and granted; the job has not executed since.
    Granted(u64),
}

/// A released job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    pub(crate) arrival: u64,
    pub(crate) release: u64,
    /// The time for which its processor had executed tasks of its rank or above when it was released.
    pub(crate) executed: u64,
    /// The time for which its task had executed on other processors when it was released.
    pub(crate) away: u64,
}

/// The part of a task's state that many events read.
///
/// The order of the fields is kept, so that dispatching and steps read one cache line.
#[repr(C, align(64))]
pub(crate) struct TaskState {
    pub(crate) asked: Asked,
    /// The next stage of the job. A run that was interrupted has become its rest.
    pub(crate) next: Stage,
    /// The place of the next stage in the stages of all tasks.
    pub(crate) stage: u32,
    /// The first stage of each job.
    pub(crate) first_stage: u32,
    /// The effective priority: the highest of the base priority and those from the machines.
    pub(crate) priority: Priority,
    /// The rank of its base priority on its processor; 0 is the most urgent.
    pub(crate) rank: u32,
    /// The processor on which the task is.
    pub(crate) cpu: CpuId,
    /// The processor to which the task is assigned.
    pub(crate) own_cpu: CpuId,
    /// The machine that moved the task to another processor.
    pub(crate) sent_by: Option<u16>,
    pub(crate) state: State,
    pub(crate) job: Option<Job>,
    /// The time of the job between requests and grants so far.
    pub(crate) waited: u64,
    /// The time for which the job has spun.
    pub(crate) spun: u64,
    /// The time for which the task has executed on other processors than its own.
    pub(crate) away: u64,
    pub(crate) next_arrival: u64,
    /// The period of the task, in nanoseconds, like the next two.
    pub(crate) period: u64,
    pub(crate) jitter: u64,
    pub(crate) deadline: u64,
}

impl TaskState {
    /// Returns whether the job has ended a step, or was preempted in its first one.
    pub(crate) fn has_begun(&self) -> bool {
        self.stage > self.first_stage || matches!(self.next, Stage::Rest(_))
    }
}

/// The part of a task's state that few events read.
pub(crate) struct Aside {
    /// Jobs that were released before an earlier one had finished.
    pub(crate) backlog: VecDeque<Job>,
    /// The delay of the job so far; only if there are clusters.
    pub(crate) delayed: u64,
    /// The processor on which the task executed last.
    pub(crate) last_cpu: usize,
    /// Whether the interrupt of the next release has been executed, and the release itself is due later.
    pub(crate) is_put_off: bool,
    pub(crate) seen: Observation,
}

/// A [`Step`] as it is executed. One list holds the stages of all tasks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    /// Execution for at most this time, in nanoseconds.
    Run(u64),
    /// The rest of a run, in nanoseconds.
    Rest(u64),
    Lock(ResourceId),
    Read(ResourceId),
    Unlock(ResourceId),
    /// The end of the job.
    End,
}

impl Stage {
    /// Returns the stages of a job, with its end.
    pub(crate) fn all(body: &[Step]) -> impl Iterator<Item = Self> {
        let stage = |&step: &Step| match step {
            Step::Run(worst) => Self::Run(worst.as_ns()),
            Step::Lock(resource) => Self::Lock(resource),
            Step::Read(resource) => Self::Read(resource),
            Step::Unlock(resource) => Self::Unlock(resource),
        };
        body.iter().map(stage).chain([Self::End])
    }
}
