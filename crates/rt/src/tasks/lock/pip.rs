//! `pip`: priority inheritance by the kernel (see [`PiWord`] for the states).

use super::error::ResourceError;
use lockwright_sys::pi_word::{PiError, PiWord};
use lockwright_sys::sched::gettid;

/// A mutex whose owner inherits the priority of its waiters.
///
/// # Bound
/// On one processor at most one section of each less urgent task.
#[derive(Debug)]
pub(super) struct PipLock(PiWord);

impl PipLock {
    pub(super) const fn new() -> Self {
        Self(PiWord::new())
    }

    /// Locks the mutex. Returns whether it was held.
    pub(super) fn lock(&self) -> Result<bool, ResourceError> {
        Ok(self.0.lock(gettid())?)
    }

    pub(super) fn unlock(&self) -> Result<(), ResourceError> {
        Ok(self.0.unlock(gettid())?)
    }
}

impl From<PiError> for ResourceError {
    fn from(error: PiError) -> Self {
        match error {
            PiError::Deadlock => Self::Deadlock,
            PiError::OwnerDied => Self::OwnerDied,
            PiError::Sys(error) => Self::Sys(error),
        }
    }
}
