//! Signals: waiters are taken from the kernel's queue, and woken or moved to their mutex.

use super::{INHERITS, RawCondvar, WAITER, levels};
use crate::mutex::raw::RawMutex;
use crate::mutex::{attributes, cycle};
use lockwright_sys::futex::{self, Scope};
use lockwright_sys::{KeepErrno, SysError, clock};
use std::sync::atomic::Ordering;

/// Nanoseconds between two attempts to move waiters if the kernel lacks memory.
const NO_MEMORY_NAP_NS: u64 = 100_000;

/// How often a signal may find that another signal came in between. More would need as many signals at the same
/// instant.
const ATTEMPTS_MAX: u32 = 1_000;

impl RawCondvar {
    /// Takes the most urgent waiter from the queue, and wakes it or moves it to the mutex.
    ///
    /// # Bound
    /// One system call if a thread waits, none otherwise; one more for each signal at the same instant. If several
    /// threads wait, two more for each real-time thread among the first 31. If the level of one of these has changed,
    /// again two for each of them, and those of [`RawCondvar::broadcast`].
    #[inline]
    pub fn signal(&self) {
        self.take_off(false);
    }

    /// Takes all waiters from the queue, and wakes them or moves them to the mutex.
    ///
    /// # Bound
    /// That of [`RawCondvar::signal`]; the kernel's own work grows with the number of waiters. If the level of a waiter
    /// has changed, waiters of a mutex without inheritance are woken one by one instead of moved; before each of them,
    /// two system calls for each of the others.
    #[inline]
    pub fn broadcast(&self) {
        self.take_off(true);
    }

    #[inline]
    fn take_off(&self, all: bool) {
        if self.is_waited_for() {
            self.take_off_waiters(all);
        }
    }

    #[cold]
    #[inline(never)]
    fn take_off_waiters(&self, all: bool) {
        // ORDERING: SeqCst: see `enlist`.
        self.signals.fetch_add(1, Ordering::SeqCst);
        if self.waiters.load(Ordering::SeqCst) < WAITER {
            return;
        }
        let _errno = KeepErrno::now();
        // ORDERING: Relaxed: see `enlist`.
        let inherits = self.flags.load(Ordering::Relaxed) & INHERITS != 0 && self.shown.load(Ordering::Relaxed) > 0;
        let is_mixed = self.strangers.load(Ordering::Relaxed) > 0;
        if !self.is_order_outdated() {
            self.take_off_seen(all, inherits, is_mixed);
        } else if inherits {
            self.take_off_seen(true, inherits, is_mixed);
        } else {
            // The kernel would wake all of them in the old order, and each may execute before the next is woken.
            // BOUND: another entry of the window each time.
            let is_woken = (0..if all { levels::WINDOW } else { 1 }).all(|_| self.wake_most_urgent());
            // Waiters that were moved would keep their places, so they are woken.
            if (all || !is_woken) && self.wake(i32::MAX).is_err() {
                self.take_off_mixed(true);
            }
        }
    }

    /// Wakes the waiter that is the most urgent one by now, wherever it stands in the kernel's queue. Returns whether a
    /// thread was woken: not if a waiter has no entry, because it may be more urgent.
    fn wake_most_urgent(&self) -> bool {
        // ORDERING: Relaxed: hints.
        let (waiters, watched) = (self.waiters.load(Ordering::Relaxed), self.watched.load(Ordering::Relaxed));
        // Waiters of other processes have no entries here, but perhaps the same marks.
        if self.scope() == Scope::Shared || waiters / WAITER > watched {
            return false;
        }
        levels::claim_most_urgent(self.address()).is_some_and(|first| {
            futex::try_wake_marked(self.scope(), &self.signals, 1, first.mark()).is_ok_and(|woken| woken == 1)
        })
    }

    /// Whether the kernel's order of the waiters is not that of their levels, because another thread has changed a
    /// waiter's level.
    fn is_order_outdated(&self) -> bool {
        // ORDERING: Relaxed: hints. One waiter has no order.
        self.watched.load(Ordering::Relaxed) > 0
            && self.waiters.load(Ordering::Relaxed) >= 2 * WAITER
            && levels::have_changed(self.address())
    }

    /// Takes waiters from the queue, given what the caller saw of them. Others may have come since and stand before
    /// those that were seen.
    pub(super) fn take_off_seen(&self, all: bool, inherits: bool, is_mixed: bool) {
        let is_taken = match (inherits, is_mixed) {
            (true, true) => false,
            (true, false) => self.give(all),
            (false, _) => self.try_to_move(all),
        };
        if !is_taken && (inherits && is_mixed || self.wake(if all { i32::MAX } else { 1 }).is_err()) {
            self.take_off_mixed(all);
        }
    }

    /// Takes waiters from a queue in which some wait for the kernel to give them the mutex and others to be woken, in
    /// any order. Each of the two system calls stops at the first waiter of the other sort.
    fn take_off_mixed(&self, all: bool) {
        let mut idle = 0;
        // ORDERING: Relaxed: a bound.
        let rounds = (self.waiters.load(Ordering::Relaxed) / WAITER).saturating_add(ATTEMPTS_MAX);
        // BOUND: one round for each waiter, and ATTEMPTS_MAX for those that come meanwhile. Three rounds in a row
        // without a woken waiter end it.
        for _ in 0..rounds {
            let woken = match self.wake(1) {
                // The kernel's queue is empty.
                Ok(0) => return,
                Ok(_) if !all || self.wake(i32::MAX).is_ok() => return,
                woken => woken.is_ok(),
            };
            if self.give(all) {
                return;
            }
            idle = if woken { 0 } else { idle + 1 };
            if idle > 2 {
                return;
            }
        }
    }

    /// Wakes up to `count` waiters. The call fails at a waiter to which the kernel is to give the mutex; those before
    /// it are woken all the same.
    fn wake(&self, count: i32) -> Result<usize, SysError> {
        futex::try_wake(self.scope(), &raw const self.signals, count)
    }

    /// Lets the kernel give the mutex to the first waiter or queue it there; with `all`, the others are queued as well.
    /// Returns whether the kernel did. It knows the mutex of each waiter and refuses another, so an outdated address
    /// does no harm.
    fn give(&self, all: bool) -> bool {
        // BOUND: ATTEMPTS_MAX rounds.
        for _ in 0..ATTEMPTS_MAX {
            // ORDERING: Relaxed: a value to compare with, and an address.
            let now = self.signals.load(Ordering::Relaxed);
            let word = RawMutex::word_of(self.mutex.load(Ordering::Relaxed));
            match futex::cmp_requeue_pi(self.scope(), &self.signals, now, if all { i32::MAX } else { 0 }, word) {
                Ok(_) => return true,
                Err(SysError { errno: libc::EAGAIN, .. }) => {}
                // Wait for memory: no other call would wake these waiters.
                Err(SysError { errno: libc::ENOMEM, .. }) => {
                    let _ = clock::sleep_until(clock::now_ns() + NO_MEMORY_NAP_NS);
                }
                Err(_) => return false,
            }
        }
        false
    }

    /// Moves the first waiter to its mutex if the caller owns that mutex. With `all`, moves all waiters, and wakes the
    /// first one unless the caller owns the mutex. Returns whether it did.
    fn try_to_move(&self, all: bool) -> bool {
        // Nothing is bound in a shared one, and `look` is for the threads of one process.
        if self.scope() == Scope::Shared {
            return false;
        }
        // BOUND: ATTEMPTS_MAX rounds.
        for _ in 0..ATTEMPTS_MAX {
            let moved = self.looking(|| {
                // ORDERING: Relaxed, here and below: only the holder of `look` uses these fields. The kernel would also
                // move waiters of another mutex, so a mixed queue is not moved.
                let inherits = self.flags.load(Ordering::Relaxed) & INHERITS != 0;
                if self.shown.load(Ordering::Relaxed) == 0 || self.strangers.load(Ordering::Relaxed) > 0 || inherits {
                    return Some(false);
                }
                // SAFETY: the mutex is shown, so a waiter for it has not called `unbind`, for which it needs `look`.
                // This thread holds `look`, so the mutex exists until this look ends.
                let mutex = unsafe { &*self.mutex.load(Ordering::Relaxed) };
                let is_mine = mutex.is_mine();
                if is_mine {
                    mutex.announce_waiters();
                } else if !all {
                    return Some(false);
                }
                // The woken waiter announces waiters when it locks the mutex, because it has waited.
                let (wake, count) = (i32::from(!is_mine), if all { i32::MAX } else { 1 });
                self.moves.fetch_add(1, Ordering::Relaxed);
                let now = self.signals.load(Ordering::Relaxed);
                // Inside the look, because the mutex stays that of all shown waiters only until the look ends.
                let moved = futex::requeue(self.scope(), &self.signals, now, wake, count, mutex.word());
                if !is_mine && mutex.attributes() & attributes::CHECKED != 0 {
                    cycle::look_after_move(mutex);
                }
                moved.map(|_| true)
            });
            // If the kernel refuses the look, nobody is moved.
            if let Some(moved) = moved.unwrap_or(Some(false)) {
                return moved;
            }
        }
        false
    }
}
