//! The failure of a thread of a run.

use crate::error::RunError;
use lockwright::tasks::ResourceError;
use lockwright_model::{ResourceId, TaskId};
use lockwright_sys::SysError;

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

/// Whether the kernel refused to move a task to a CPU.
pub(super) fn lacks_cpu(error: &RunError) -> bool {
    let (RunError::Lock { error, .. } | RunError::Job { error, .. } | RunError::Change { error, .. }) = error else {
        return false;
    };
    matches!(error, ResourceError::Sys(SysError { call: "sched_setaffinity", errno: libc::EINVAL }))
}

/// The reason for an error: a task cannot be moved to a CPU that was taken.
pub(super) fn explain(error: RunError, taken: impl FnOnce() -> Option<usize>) -> RunError {
    let taken = if lacks_cpu(&error) { taken() } else { None };
    taken.map_or(error, |cpu| RunError::CpuTaken { cpu })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_missing_cpu_causes_is_told_by_the_cpu() {
        let failed = |call, errno| {
            let error = ResourceError::Sys(SysError { call, errno });
            RunError::Lock { task: TaskId(1), resource: ResourceId(0), error }
        };
        let refused = failed("sched_setaffinity", libc::EINVAL);
        assert_eq!(explain(refused.clone(), || Some(3)), RunError::CpuTaken { cpu: 3 });
        assert_eq!(explain(refused.clone(), || None), refused);
        let others = [failed("sched_setaffinity", libc::ESRCH), failed("futex", libc::EINVAL)];
        for other in others.into_iter().chain([RunError::Panicked(TaskId(1))]) {
            assert_eq!(explain(other.clone(), || Some(3)), other);
        }
    }
}
