//! The reasons why a generator cannot draw the requested values.

use lockwright_model::{RESOURCES_MAX, TASKS_MAX};

/// The number of draws after which [`uunifast_discard`](super::uunifast_discard) fails.
pub(super) const DRAWS: usize = 1_000;

/// The reason why a generator cannot draw the requested values.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Impossible {
    /// No vector of utilizations within the limits has the given sum.
    Sum {
        /// The number of tasks.
        tasks: usize,
    },
    /// No vector has the given sum within the limits of each value.
    Limits {
        /// The number of values.
        tasks: usize,
    },
    /// Every one of 1,000 vectors had a utilization above the limit.
    Discarded,
    /// The tasks need more resources than a system may have.
    Resources {
        /// The number of resources.
        count: usize,
    },
    /// A system has no task, or more than it may have.
    Tasks {
        /// The number of tasks.
        count: usize,
    },
}

impl std::fmt::Display for Impossible {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Sum { tasks } => write!(f, "the utilizations of {tasks} tasks cannot have this sum"),
            Self::Limits { tasks } => {
                write!(f, "the limits of {tasks} utilizations exclude this sum, or there are no such limits")
            }
            Self::Discarded => write!(f, "each of {DRAWS} draws had too high a utilization"),
            Self::Resources { count } => {
                write!(f, "the tasks would share {count} resources, and a system has at most {RESOURCES_MAX}")
            }
            Self::Tasks { count } => {
                write!(f, "the system would have {count} tasks, and it has at least 1 and at most {TASKS_MAX}")
            }
        }
    }
}

impl std::error::Error for Impossible {}
