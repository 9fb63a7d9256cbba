//! The words of a FIFO queue: PI futexes, for which the kernel keeps the waiters.

pub(super) use super::super::error::Limit;
use lockwright_sys::futex::{self, Scope};
pub(super) use std::sync::atomic::{AtomicU32, Ordering};

/// The word of a holder that ended without unlocking.
pub(super) const LOST: u32 = libc::FUTEX_OWNER_DIED;

/// How often the kernel may answer "try again" before that counts as an error.
const ATTEMPTS_MAX: u32 = 1_000;

/// Why a word was not locked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum WordError {
    /// Another thread has locked it.
    Busy,
    /// The deadline passed.
    TimedOut,
    /// The caller would wait for itself, or so it seemed to the kernel.
    Deadlock,
    /// The owner ended without unlocking.
    OwnerDied,
    /// The kernel refused with this error number.
    Sys(i32),
}

/// Waits within `limit` until the owner of `word` unlocks it. Returns whether the caller asked the kernel.
///
/// BOUND: until `limit`, or until the owner unlocks; the owner has at least the caller's priority meanwhile.
#[inline]
pub(super) fn lock_word(word: &AtomicU32, limit: Limit) -> Result<bool, WordError> {
    // The caller is the only thread that waits for the word. So a word that is free stays free, and nothing is written.
    // ORDERING: Acquire pairs with the Release in `unlock_word`; the kernel's own path is a full barrier.
    match word.load(Ordering::Acquire) {
        0 => Ok(false),
        LOST => Err(WordError::OwnerDied),
        _ => wait_for(word, limit).map(|()| true),
    }
}

#[cold]
fn wait_for(word: &AtomicU32, limit: Limit) -> Result<(), WordError> {
    let until = match limit {
        Limit::Now => return Err(WordError::Busy),
        Limit::At(until) => Some(until),
        Limit::Never => None,
    };
    let mut last = libc::EAGAIN;
    // BOUND: ATTEMPTS_MAX rounds.
    for _ in 0..ATTEMPTS_MAX {
        let Err(error) = futex::lock_pi_once(Scope::Private, word, until) else {
            // ORDERING: Relaxed, here and below: the caller owns the word.
            if word.load(Ordering::Relaxed) & libc::FUTEX_OWNER_DIED == 0 {
                return Ok(());
            }
            word.store(LOST, Ordering::Relaxed);
            return Err(WordError::OwnerDied);
        };
        match error.errno {
            libc::EAGAIN | libc::EINTR | libc::ENOMEM => last = error.errno,
            libc::ETIMEDOUT => return Err(WordError::TimedOut),
            libc::EDEADLK => return Err(WordError::Deadlock),
            // EPERM: the owner's id now belongs to a kernel thread or to a process of another user.
            libc::ESRCH | libc::EPERM => {
                // Later requests must not wait for another thread that gets this id.
                // ORDERING: Relaxed: the next request reads it after this one has left the queue.
                word.store(LOST, Ordering::Relaxed);
                return Err(WordError::OwnerDied);
            }
            errno => return Err(WordError::Sys(errno)),
        }
    }
    Err(WordError::Sys(last))
}

/// Unlocks `word`, which the thread `me` has written or locked. Returns the kernel's error number if it refuses.
#[inline]
pub(super) fn unlock_word(word: &AtomicU32, me: u32) -> Result<(), i32> {
    // ORDERING: Release pairs with the Acquire in `lock_word`.
    if word.compare_exchange(me, 0, Ordering::Release, Ordering::Relaxed).is_ok() {
        return Ok(());
    }
    futex::unlock_pi(Scope::Private, word).map_err(|error| error.errno)
}
