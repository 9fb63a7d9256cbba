//! The answers of a machine: actions, or a refusal.

use core::fmt;
use lockwright_model::{CpuId, Priority, ResourceId, TaskId};

/// An action that the caller carries out, in the order given.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Action {
    /// The task owns the resource from now on. Ownership has moved already, so nothing remains to be done.
    Grant {
        /// The new owner.
        task: TaskId,
        /// The resource that it owns.
        resource: ResourceId,
    },
    /// The task must wait: suspend it until a [`Wake`](Action::Wake).
    Block {
        /// The task that waits.
        task: TaskId,
        /// The resource that it waits for.
        resource: ResourceId,
    },
    /// The task must wait: it spins, at its effective priority, until a [`Grant`](Action::Grant).
    Spin {
        /// The task that waits.
        task: TaskId,
        /// The resource that it waits for.
        resource: ResourceId,
    },
    /// The job just released must not start: suspend it until a [`Wake`](Action::Wake).
    Hold {
        /// The task of the job.
        task: TaskId,
    },
    /// The task executes on this processor from now on. If it was not granted the resource that it requested, it calls
    /// `woken` when it runs there.
    Migrate {
        /// The task.
        task: TaskId,
        /// The processor.
        cpu: CpuId,
        /// As that of [`SetPriority`](Action::SetPriority); both count in one sequence.
        epoch: u32,
    },
    /// The task's interruptible section was invalidated, and executes again from its beginning. This is the answer to a
    /// release; the release has not happened.
    Restart {
        /// The task.
        task: TaskId,
        /// The resource of the section.
        resource: ResourceId,
    },
    /// The task may run again. If it was not granted the resource that it waits for, it calls `woken` when it runs.
    Wake {
        /// The task.
        task: TaskId,
    },
    /// From now on, this is the effective priority of the task.
    SetPriority {
        /// The task.
        task: TaskId,
        /// The absolute value.
        priority: Priority,
        /// Grows with every change to this task, and wraps. A change with an older epoch that arrives late is dropped.
        epoch: u32,
    },
}

/// The reason why an event has no meaning in the current state. A refused event changes nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Refusal {
    /// The task is beyond the machine's capacity.
    UnknownTask,
    /// The resource is beyond the machine's capacity.
    UnknownResource,
    /// The task holds the resource already: locks are not recursive.
    AlreadyHeld,
    /// The task does not hold what it wants to release.
    NotHeld,
    /// The task waits: it cannot request or release before it is woken.
    Waiting,
    /// The task does not wait: there is nothing to wake or cancel.
    NotWaiting,
    /// The task's base priority is above the ceiling of the resource (POSIX: `EINVAL`).
    AboveCeiling,
    /// The task holds or requests another resource: the protocol has no nested requests.
    Nested,
    /// The task has a job already, or none.
    Job,
    /// The task holds [`NESTING_MAX`](lockwright_model::NESTING_MAX) resources already.
    TooDeep,
    /// Waiting would close a cycle: the task would wait for itself.
    Deadlock,
    /// Waiting would make a chain of waiting longer than the machine allows.
    ChainTooLong,
    /// Another task holds the resource, and the caller does not want to wait.
    Taken,
    /// No owner of the resource died: there is nothing to make consistent.
    Healthy,
    /// The resource was released after the death of an owner without being made consistent: no task can lock it any
    /// more.
    NotRecoverable,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UnknownTask => "the task is beyond the machine's capacity",
            Self::UnknownResource => "the resource is beyond the machine's capacity",
            Self::AlreadyHeld => "the task holds the resource already",
            Self::NotHeld => "the task does not hold the resource",
            Self::Waiting => "the task is waiting",
            Self::NotWaiting => "the task is not waiting",
            Self::AboveCeiling => "the task's priority is above the ceiling of the resource",
            Self::Nested => "the task holds another resource already, and requests are not nested here",
            Self::Job => "the task has a job already, or none",
            Self::TooDeep => "the task holds too many resources already",
            Self::Deadlock => "the task would wait for itself",
            Self::ChainTooLong => "too many tasks would wait for one another",
            Self::Taken => "the resource is taken",
            Self::Healthy => "the resource is consistent",
            Self::NotRecoverable => "the resource is not recoverable",
        })
    }
}

impl core::error::Error for Refusal {}
