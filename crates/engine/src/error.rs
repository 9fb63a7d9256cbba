//! Errors of a run.

use lockwright::SysError;
use lockwright::locks::SLOTS_MAX;
use lockwright::tasks::{MachineError, ResourceError};
use lockwright_model::{ResourceId, TaskId};
use std::fmt;

/// Why a run has no outcome. Tasks are named by id; the system has their names.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum RunError {
    /// The machine cannot execute the system (too few CPUs or levels, no permission, or a limit of a protocol), or a
    /// system call failed.
    Machine(MachineError),
    /// A scripted change names a task the system does not have.
    UnknownTask(TaskId),
    /// A scripted change of a base priority in a system under `p-edf`, which has none.
    NoPriorities(TaskId),
    /// A scripted change raises a task above the ceiling of a resource that it uses.
    AboveCeiling {
        /// The task.
        task: TaskId,
        /// The resource, whose protocol uses ceilings.
        resource: ResourceId,
    },
    /// The duration plus the longest deadline exceeds the range of the clock.
    TooLong,
    /// All slots of spinlocks are claimed (see [`Slot::claim`](lockwright::locks::Slot::claim)).
    NoSlot,
    /// A thread ended during set-up, which is a bug in Lockwright.
    SetUp,
    /// A lock failed during the run.
    Lock {
        /// The task that used the lock.
        task: TaskId,
        /// The resource.
        resource: ResourceId,
        /// The error.
        error: ResourceError,
    },
    /// A job could not begin or end.
    Job {
        /// The task.
        task: TaskId,
        /// The error.
        error: ResourceError,
    },
    /// A scripted change failed during the run.
    Change {
        /// The task whose priority was to change.
        task: TaskId,
        /// The error.
        error: ResourceError,
    },
    /// The thread of a task panicked, which is a bug in Lockwright. The task holds no locks any more.
    Panicked(TaskId),
    /// Tasks did not end within the watchdog's grace periods. They are left behind under the ordinary policy.
    Stuck {
        /// The tasks that did not end.
        tasks: Vec<TaskId>,
    },
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Machine(error) => error.fmt(f),
            Self::UnknownTask(task) => write!(f, "a scripted change names task {}, which does not exist", task.0),
            Self::NoPriorities(task) => {
                write!(f, "a scripted change sets the priority of task {}, and `p-edf` has no priorities", task.0)
            }
            Self::AboveCeiling { task, resource } => write!(
                f,
                "a scripted change lifts task {} above the ceiling of resource {}, which it uses; fix a higher \
                 ceiling for the resource (under ics_lock: another cutoff)",
                task.0, resource.0
            ),
            Self::NoSlot => {
                write!(f, "all {} slots of spinlocks are claimed by this process; drop some", SLOTS_MAX)
            }
            Self::SetUp => f.write_str("a thread ended while it was set up; this is a bug in Lockwright"),
            Self::TooLong => f.write_str("the duration and the longest deadline are too long together"),
            Self::Lock { task, resource, error } => {
                write!(f, "task {} failed at resource {}: {error}", task.0, resource.0)
            }
            Self::Job { task, error } => write!(f, "a job of task {} could not begin or end: {error}", task.0),
            Self::Change { task, error } => write!(f, "the priority of task {} could not be changed: {error}", task.0),
            Self::Panicked(task) => {
                write!(f, "the thread of task {} panicked; this is a bug in Lockwright, please report it", task.0)
            }
            Self::Stuck { tasks } => {
                f.write_str("the run did not end; still executing or waiting, under the ordinary policy: tasks")?;
                tasks.iter().try_for_each(|task| write!(f, " {}", task.0))
            }
        }
    }
}

impl std::error::Error for RunError {}

impl From<MachineError> for RunError {
    fn from(error: MachineError) -> Self {
        Self::Machine(error)
    }
}

impl From<SysError> for RunError {
    fn from(error: SysError) -> Self {
        Self::Machine(error.into())
    }
}
