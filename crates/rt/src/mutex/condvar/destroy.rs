//! The end of a condition variable: its memory can be reused when all waiters have left.

use super::{DESTROYED, Destroyed, INHERITS, RawCondvar, WAITER};
use lockwright_sys::futex::{self, Deadline, Scope};
use lockwright_sys::{KeepErrno, clock};
use std::sync::atomic::Ordering;

/// Nanoseconds after which a destroying thread looks at the count again.
const LEAVE_NAP_NS: u64 = 10_000_000;
/// Nanoseconds without a leaving waiter after which the remaining ones count as gone. They were killed, or are threads
/// of the process that forked this one.
const LEAVE_MAX_NS: u64 = 1_000_000_000;

/// When the waiters that a signal took from the queue will leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Leaving {
    /// When they execute.
    Soon,
    /// When they own the mutex, which another thread holds.
    Later,
    /// When the caller unlocks the mutex.
    WithTheMutex,
}

impl RawCondvar {
    /// Ends the use of the condition variable: waits until the waiters that signals took from the queue have left, so
    /// that its memory can be reused. In a shared one, such waiters count as killed if none has left for 1 s.
    ///
    /// # Bound
    /// A few instructions of each waiter that was woken, plus the time until it executes; at most 1 s after the last
    /// one left. For waiters that were moved to an inheriting mutex that another thread holds: until that thread
    /// unlocks it.
    pub fn destroy(&self) -> Destroyed {
        let _errno = KeepErrno::now();
        let scope = self.scope();
        // ORDERING: Acquire, here and below, pairs with the Release of `leave`.
        let mut waiters = self.waiters.fetch_or(DESTROYED, Ordering::Acquire) | DESTROYED;
        let mut left_ns = clock::now_ns();
        // BOUND: see above; each round ends after LEAVE_NAP_NS.
        while waiters >= WAITER {
            let now_ns = clock::now_ns();
            let is_left_over = now_ns.saturating_sub(left_ns) > LEAVE_MAX_NS;
            let leaving = self.wake_moved();
            if futex::has_waiters(scope, &self.signals)
                || leaving == Leaving::WithTheMutex
                || leaving == Leaving::Soon && is_left_over && scope == Scope::Private
            {
                self.waiters.fetch_and(!DESTROYED, Ordering::Relaxed);
                return Destroyed::InUse;
            }
            if is_left_over && leaving == Leaving::Soon {
                break;
            }
            let until = Deadline::monotonic(now_ns + LEAVE_NAP_NS);
            let _ = futex::wait(scope, &self.waiters, waiters, Some(until));
            let before = std::mem::replace(&mut waiters, self.waiters.load(Ordering::Acquire));
            if waiters != before || leaving == Leaving::Later {
                left_ns = clock::now_ns();
            }
        }
        Destroyed::Done
    }

    /// Wakes the waiters that were moved to the mutex, so that they leave before they wait for it again. Waiters of an
    /// inheriting mutex are not woken.
    fn wake_moved(&self) -> Leaving {
        // As in `try_to_move`.
        if self.scope() == Scope::Shared {
            return Leaving::Soon;
        }
        let look = || {
            // ORDERING: Relaxed: only the holder of `look` uses these fields.
            if self.shown.load(Ordering::Relaxed) == 0 {
                return Leaving::Soon;
            }
            // SAFETY: the mutex is shown, so a waiter for it has not called `unbind`, for which it needs `look`. This
            // thread holds `look`, so the mutex exists until this look ends.
            let mutex = unsafe { &*self.mutex.load(Ordering::Relaxed) };
            if self.flags.load(Ordering::Relaxed) & INHERITS == 0 {
                futex::wake(self.scope(), mutex.word(), i32::MAX);
                return Leaving::Soon;
            }
            match (mutex.is_mine(), futex::has_waiters(self.scope(), mutex.word())) {
                (true, _) => Leaving::WithTheMutex,
                (false, true) => Leaving::Later,
                (false, false) => Leaving::Soon,
            }
        };
        // If the kernel refuses the look, the next round tries again.
        self.looking(look).unwrap_or(Leaving::Soon)
    }
}
