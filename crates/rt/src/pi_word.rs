//! A lock word with an owner: free and taken in user space, waited for in the kernel, which lends the
//! owner the priority of its waiters.
//!
//! ```text
//!   word                meaning                         lock                    unlock
//!   0                   free                            -> tid, one CAS         -
//!   tid                 owned, nobody waits             ask the kernel, wait    -> 0, one CAS
//!   tid | WAITERS       owned, the kernel has a queue   ask the kernel, wait    ask the kernel
//!   tid of the dead     the owner ended while it held   the kernel: ESRCH       -
//! ```
//!
//! A waiter that was queued when the owner ended is given the word, and is not told. Owners here end only after they unlocked.
//!
//! Nothing here spins in user space: a more urgent thread that spun for a less urgent one of its own processor would spin for ever.

use crate::sys::{SysError, futex, sched::Tid};
use std::sync::atomic::{AtomicU32, Ordering};

/// How often the kernel may answer "try again" (it does where the word changes under its hands, or where it
/// is short of memory) before that counts as an error.
const ATTEMPTS_MAX: u32 = 1_000;

/// Why a word could not be locked or unlocked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PiError {
    /// The caller would wait for itself.
    Deadlock,
    /// The owner has ended without unlocking.
    OwnerDied,
    /// Anything else.
    Sys(SysError),
}

/// See the table above.
#[derive(Debug)]
pub(crate) struct PiWord(AtomicU32);

impl PiWord {
    pub(crate) const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// `0 -> tid`, or waits. Says whether it asked the kernel.
    ///
    /// BOUND: until the owner, which has at least the caller's priority meanwhile, unlocks.
    #[inline]
    pub(crate) fn lock(&self, me: Tid) -> Result<bool, PiError> {
        // ORDERING: Acquire pairs with the Release of the CAS in `unlock`; the kernel's own path is a full barrier.
        match self.0.compare_exchange(0, me.0, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => Ok(false),
            Err(_) => self.lock_slow().map(|()| true),
        }
    }

    #[cold]
    fn lock_slow(&self) -> Result<(), PiError> {
        let mut last = None;
        // BOUND: ATTEMPTS_MAX rounds.
        for _ in 0..ATTEMPTS_MAX {
            let Err(error) = futex::lock_pi(&self.0) else { return Ok(()) };
            match error.errno {
                libc::EAGAIN | libc::EINTR | libc::ENOMEM => last = Some(error),
                libc::EDEADLK => return Err(PiError::Deadlock),
                libc::ESRCH => return Err(PiError::OwnerDied),
                _ => return Err(PiError::Sys(error)),
            }
        }
        last.map_or(Ok(()), |error| Err(PiError::Sys(error)))
    }

    /// `tid -> 0`, or lets the kernel hand the word to its most urgent waiter.
    #[inline]
    pub(crate) fn unlock(&self, me: Tid) -> Result<(), PiError> {
        // ORDERING: Release pairs with the Acquire of the CAS in `lock`.
        match self.0.compare_exchange(me.0, 0, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => Ok(()),
            Err(_) => self.unlock_slow(),
        }
    }

    #[cold]
    fn unlock_slow(&self) -> Result<(), PiError> {
        let mut last = None;
        // BOUND: ATTEMPTS_MAX rounds.
        for _ in 0..ATTEMPTS_MAX {
            match futex::unlock_pi(&self.0) {
                Ok(()) => return Ok(()),
                Err(error) if matches!(error.errno, libc::EAGAIN | libc::EINTR) => last = Some(error),
                Err(error) => return Err(PiError::Sys(error)),
            }
        }
        last.map_or(Ok(()), |error| Err(PiError::Sys(error)))
    }
}
