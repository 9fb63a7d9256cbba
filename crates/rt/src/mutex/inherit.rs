//! Mutexes with priority inheritance: the kernel keeps the queue, lends the owner the priority of its waiters, and
//! appoints the next owner.

use super::attributes::{CHECKED, KERNEL_OWNED, SHARED};
use super::cycle;
use super::error::{Acquired, Limit, RawError};
use super::nap;
use super::raw::RawMutex;
use super::word::{DIED, FREE, owner};
use lockwright_sys::SysError;
use lockwright_sys::futex::{self, Scope};
use lockwright_sys::sched::{Tid, is_ours};
use std::sync::atomic::Ordering;

/// How often the kernel may answer "try again" before that counts as an error.
const ATTEMPTS_MAX: u32 = 1_000;
/// Nanoseconds between two attempts to wait that would close a cycle.
const CYCLE_NAP_NS: u64 = 1_000_000;

impl RawMutex {
    pub(super) fn lock_inheriting(&self, me: Tid, attributes: u32, limit: Limit) -> Result<Acquired, RawError> {
        // ORDERING: Acquire pairs with the Release of the unlock; the kernel's own path is a full barrier.
        if attributes & KERNEL_OWNED == 0
            && self.word.compare_exchange(FREE, me.0, Ordering::Acquire, Ordering::Relaxed).is_ok()
        {
            return Ok(Acquired::Clean);
        }
        // ORDERING: Relaxed: a hint.
        let word = self.word.load(Ordering::Relaxed);
        // The kernel would let a more urgent try overtake the waiter that it has appointed, and the new owner would
        // then need the kernel to unlock.
        if limit == Limit::Now && owner(word) != 0 && word & DIED == 0 {
            return Err(RawError::Busy);
        }
        let _published = match (limit, attributes & CHECKED) {
            (Limit::Now, _) | (_, 0) => None,
            _ => Some(cycle::publish(me, self, matches!(limit, Limit::At(_))).map_err(RawError::Deadlock)?),
        };
        let scope = Self::scope(attributes);
        let mut last = SysError { call: "futex lock", errno: libc::EAGAIN };
        let mut attempts = 0;
        // BOUND: ATTEMPTS_MAX rounds, each until `limit` or until the owner and the waiters before the caller unlock.
        // Rounds with a nap are not counted: they end with the cycle, which another thread's deadline or the caller's
        // own ends.
        while attempts < ATTEMPTS_MAX {
            attempts += 1;
            let locked = match limit {
                Limit::Now => futex::trylock_pi(scope, &self.word),
                Limit::Never => futex::lock_pi(scope, &self.word, None),
                Limit::At(until) => futex::lock_pi(scope, &self.word, Some(until)),
            };
            let Err(error) = locked else { return Ok(self.settle_inherited()) };
            match error.errno {
                libc::EAGAIN if limit == Limit::Now => return Err(RawError::Busy),
                libc::EAGAIN | libc::EINTR => last = error,
                libc::ETIMEDOUT => return Err(RawError::TimedOut),
                // A try also gets this answer if the caller has become the owner.
                libc::EDEADLK if limit == Limit::Now => return Err(RawError::Busy),
                // The kernel refuses every wait that closes a cycle, even one that would end by itself.
                libc::EDEADLK if self.owner() != me.0 && self.cycle_passes(me, attributes, limit) => {
                    if nap(CYCLE_NAP_NS, limit) {
                        return Err(RawError::TimedOut);
                    }
                    attempts -= 1;
                }
                libc::EDEADLK => return Err(RawError::Deadlock(None)),
                // The owner ended and the mutex is not robust, so it is never unlocked.
                libc::ESRCH if limit == Limit::Now => return Err(RawError::Busy),
                // In a child process: the owner is a thread of the parent, and never unlocks it here.
                libc::EPERM if limit == Limit::Now && !self.is_owner_here() => return Err(RawError::Busy),
                libc::EPERM if !self.is_owner_here() => {
                    return Err(RawError::Sys(SysError { call: "futex lock", errno: libc::ESRCH }));
                }
                _ => return Err(RawError::Sys(error)),
            }
        }
        Err(RawError::Sys(last))
    }

    /// Whether the owner is a thread of this process.
    #[cold]
    fn is_owner_here(&self) -> bool {
        self.attributes() & SHARED != 0 || is_ours(Tid(self.owner()))
    }

    /// Whether the cycle that the caller closes ends by itself, because a thread on it waits until a deadline.
    fn cycle_passes(&self, me: Tid, attributes: u32, limit: Limit) -> bool {
        matches!(limit, Limit::At(_)) || attributes & CHECKED != 0 && cycle::passes(me, self)
    }

    /// Completes the lock after the kernel has made the caller the owner.
    pub(super) fn settle_inherited(&self) -> Acquired {
        // ORDERING: Relaxed: the caller owns the word, and no other thread clears DIED.
        if self.word.load(Ordering::Relaxed) & DIED == 0 {
            return Acquired::Clean;
        }
        self.word.fetch_and(!DIED, Ordering::Relaxed);
        Acquired::OwnerDied
    }

    pub(super) fn unlock_inheriting(&self, me: Tid, attributes: u32, scope: Scope) -> Result<(), RawError> {
        // ORDERING: Release pairs with the Acquire of the lock.
        if attributes & KERNEL_OWNED == 0
            && self.word.compare_exchange(me.0, FREE, Ordering::Release, Ordering::Relaxed).is_ok()
        {
            return Ok(());
        }
        futex::unlock_pi(scope, &self.word).map_err(RawError::Sys)
    }
}
