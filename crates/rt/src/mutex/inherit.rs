//! Mutexes with priority inheritance: the kernel keeps the queue, lends the owner the priority of its waiters, and
//! appoints the next owner.

use super::attributes::{CHECKED, KERNEL_OWNED};
use super::cycle;
use super::error::{Acquired, Limit, RawError};
use super::nap;
use super::raw::RawMutex;
use super::word::{DIED, FREE, owner};
use lockwright_sys::SysError;
use lockwright_sys::futex::{self, Scope};
use lockwright_sys::pi_word::{self, PiError};
use lockwright_sys::sched::Tid;
use std::sync::atomic::{AtomicU32, Ordering};

/// Nanoseconds between two attempts to wait that would close a cycle.
const CYCLE_NAP_NS: u64 = 1_000_000;

/// Waits until the caller owns a word with priority inheritance. `passes` returns whether a cycle that the caller
/// closes ends by itself; the caller then waits for that.
///
/// # Errors
/// [`RawError::TimedOut`]; [`RawError::Deadlock`]; [`RawError::Sys`] with ESRCH if the owner has ended or is a thread
/// of the parent process, and with the kernel's other errors.
pub(crate) fn wait_inheriting(
    scope: Scope,
    word: &AtomicU32,
    limit: Limit,
    passes: impl Fn() -> bool,
) -> Result<(), RawError> {
    // BOUND: as `pi_word::wait`, or until the heir of an owner that ended has executed. Rounds with a nap end with the
    // cycle, which another thread's deadline or the caller's own ends.
    loop {
        return Err(match pi_word::wait(scope, word, limit.until()) {
            Ok(()) => return Ok(()),
            // The kernel refuses every wait that closes a cycle, even one that would end by itself.
            Err(PiError::Deadlock) if passes() => {
                if !nap(CYCLE_NAP_NS, limit) {
                    continue;
                }
                RawError::TimedOut
            }
            Err(PiError::Deadlock) => RawError::Deadlock(None),
            // The heir has not executed yet. It will, and then unlocks the word.
            Err(PiError::Sys(SysError { errno: libc::EINVAL, .. })) => continue,
            Err(PiError::OwnerDied) => RawError::Sys(SysError { call: "futex lock", errno: libc::ESRCH }),
            Err(PiError::Sys(SysError { errno: libc::ETIMEDOUT, .. })) => RawError::TimedOut,
            Err(PiError::Sys(error)) => RawError::Sys(error),
        });
    }
}

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
        if limit == Limit::Now {
            return self.try_inheriting(scope);
        }
        let passes = || self.owner() != me.0 && self.cycle_passes(me, attributes, limit);
        wait_inheriting(scope, &self.word, limit, passes).map(|()| self.settle_inherited())
    }

    fn try_inheriting(&self, scope: Scope) -> Result<Acquired, RawError> {
        match futex::trylock_pi(scope, &self.word) {
            Ok(()) => Ok(self.settle_inherited()),
            Err(error) => match error.errno {
                // EDEADLK: also if the caller has become the owner. ESRCH and EPERM: the owner ended, or is a thread of
                // the parent process. EINVAL: the owner ended, and the waiter after it has not executed since.
                libc::EAGAIN | libc::EINTR | libc::EDEADLK | libc::ESRCH | libc::EPERM | libc::EINVAL => {
                    Err(RawError::Busy)
                }
                _ => Err(RawError::Sys(error)),
            },
        }
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
