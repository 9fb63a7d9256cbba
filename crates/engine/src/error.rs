//! Why a run could not be, or could not go on.

use lockwright::SysError;
use lockwright::locks::SLOTS_MAX;
use lockwright::tasks::{MachineError, ResourceError};
use lockwright_model::{ResourceId, TaskId};
use std::fmt;

/// Why there is no outcome. Tasks are named by id; the system knows their names.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum RunError {
    /// The machine cannot execute the system: too few CPUs or levels, no permission, a protocol's limits; or a system call failed.
    Machine(MachineError),
    /// A scripted change names a task the system does not have.
    UnknownTask(TaskId),
    /// A scripted change lifts a task above the ceiling of a resource it uses.
    AboveCeiling {
        /// The task.
        task: TaskId,
        /// The resource, whose protocol has ceilings.
        resource: ResourceId,
    },
    /// The duration and the longest deadline do not fit the clock.
    TooLong,
    /// All slots of spinlocks are claimed (see [`Slot::claim`](lockwright::locks::Slot::claim)).
    NoSlot,
    /// A thread ended while it was set up, which is a fault of this crate.
    SetUp,
    /// A lock failed during the run.
    Lock {
        /// Whose.
        task: TaskId,
        /// Which.
        resource: ResourceId,
        /// Why.
        error: ResourceError,
    },
    /// A job could not begin or end.
    Job {
        /// Whose.
        task: TaskId,
        /// Why.
        error: ResourceError,
    },
    /// A scripted change failed during the run.
    Change {
        /// Whose priority.
        task: TaskId,
        /// Why.
        error: ResourceError,
    },
    /// The thread of a task panicked, which is a fault of this crate. It holds nothing any more.
    Panicked(TaskId),
    /// Tasks did not end in the time the watchdog gives. They are left behind under the ordinary policy.
    Stuck {
        /// Which.
        tasks: Vec<TaskId>,
    },
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Machine(error) => error.fmt(f),
            Self::UnknownTask(task) => write!(f, "a scripted change names task {}, which does not exist", task.0),
            Self::AboveCeiling { task, resource } => write!(
                f,
                "a scripted change lifts task {} above the ceiling of resource {}, which it uses; fix a higher \
                 ceiling for the resource (under ics_lock: another cutoff)",
                task.0, resource.0
            ),
            Self::NoSlot => {
                write!(f, "all {} slots of spinlocks are claimed by this process; drop some", SLOTS_MAX)
            }
            Self::SetUp => f.write_str("a thread ended while it was set up; this is a fault of Lockwright"),
            Self::TooLong => f.write_str("the duration and the longest deadline are too long together"),
            Self::Lock { task, resource, error } => {
                write!(f, "task {} failed at resource {}: {error}", task.0, resource.0)
            }
            Self::Job { task, error } => write!(f, "a job of task {} could not begin or end: {error}", task.0),
            Self::Change { task, error } => write!(f, "the priority of task {} could not be changed: {error}", task.0),
            Self::Panicked(task) => {
                write!(f, "the thread of task {} panicked; this is a fault, please report it", task.0)
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
