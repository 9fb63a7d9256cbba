//! `pip`: priority inheritance by the kernel (see [`PiWord`] for the states).

use super::error::ResourceError;
use lockwright_sys::held;
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
        let waited = self.0.lock(gettid())?;
        held::took_one();
        Ok(waited)
    }

    pub(super) fn unlock(&self) -> Result<(), ResourceError> {
        self.0.unlock(gettid())?;
        held::gave_one_back();
        Ok(())
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

#[test]
fn it_counts_as_held() {
    let [one, other] = [PipLock::new(), PipLock::new()];
    assert_eq!(one.lock(), Ok(false));
    assert!(!held::holds_two());
    assert_eq!(other.lock(), Ok(false));
    assert!(held::holds_two());
    assert_eq!((other.unlock(), one.lock()), (Ok(()), Err(ResourceError::Deadlock)));
    assert!(!held::holds_two(), "a refused lock does not count");
    assert_eq!(one.unlock(), Ok(()));
    assert_eq!((one.unlock().is_err(), other.lock()), (true, Ok(false)));
    assert!(!held::holds_two(), "a refused unlock does not count");
    assert_eq!(other.unlock(), Ok(()));
}
