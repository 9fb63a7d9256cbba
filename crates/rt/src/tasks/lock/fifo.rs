//! `fmlp_long`: service in the order of requests, and priority inheritance by the kernel.

use super::error::ResourceError;
use crate::mutex::{FifoError, FifoNode, Limit, RawFifo};
use crate::tasks::executor::{Executor, Turn};
use lockwright_model::TaskId;
use lockwright_sys::SysError;

/// A mutex whose waiters lend the owner their priorities, and which serves them in the order of their requests.
///
/// # Bound
/// At most one section of each other user, and what can execute beside them; see `docs/fmlp_long.md`.
#[derive(Debug)]
pub(super) struct FifoLock(RawFifo<Box<[FifoNode]>>);

impl FifoLock {
    /// Creates a mutex for this number of tasks.
    pub(super) fn for_tasks(tasks: usize) -> Self {
        Self(RawFifo::for_threads(tasks))
    }

    /// Locks the mutex for `task`, the caller. Returns whether it was held.
    pub(super) fn lock(&self, executor: &Executor, task: TaskId) -> Result<bool, ResourceError> {
        executor.mark(task, Turn::Asking);
        let waited = self.0.lock_noting(Limit::Never, || executor.mark(task, Turn::Asked))?;
        executor.mark(task, Turn::Owned);
        Ok(waited)
    }

    /// Unlocks the mutex for `task`, the caller and owner.
    pub(super) fn unlock(&self, executor: &Executor, task: TaskId) -> Result<(), ResourceError> {
        executor.mark(task, Turn::Left);
        Ok(self.0.unlock()?)
    }
}

impl From<FifoError> for ResourceError {
    fn from(error: FifoError) -> Self {
        match error {
            FifoError::Deadlock => Self::Deadlock,
            FifoError::OwnerDied => Self::OwnerDied,
            FifoError::Sys(error) => Self::Sys(error),
            FifoError::Busy | FifoError::TimedOut | FifoError::TooManyThreads => {
                Self::Sys(SysError { call: "locking", errno: libc::EINVAL })
            }
        }
    }
}
