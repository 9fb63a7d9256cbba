//! The failure of a thread of a run.

use crate::error::RunError;
use lockwright::tasks::ResourceError;
use lockwright_model::{ResourceId, TaskId};

/// Why a thread of a run failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Failure {
    Lock { task: TaskId, resource: ResourceId, error: ResourceError },
    Job { task: TaskId, error: ResourceError },
    Change { task: TaskId, error: ResourceError },
    Panicked(TaskId),
}

impl From<Failure> for RunError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Lock { task, resource, error } => Self::Lock { task, resource, error },
            Failure::Job { task, error } => Self::Job { task, error },
            Failure::Change { task, error } => Self::Change { task, error },
            Failure::Panicked(task) => Self::Panicked(task),
        }
    }
}
