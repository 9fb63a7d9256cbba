//! Passing on the word of a robust mutex that does not inherit.
//!
//! A thread can end at any instruction. So the word itself remembers the sleepers:
//!
//! > While a thread sleeps in the kernel's queue, the word has WAITERS.
//!
//! A thread suspends only if the word has WAITERS at that moment; the kernel compares the word under the lock of its
//! queue. Lock, unlock, and the kernel when an owner ends keep the bit. Only one operation clears it, and it wakes all
//! sleepers in the same step, under the same lock of the kernel (`FUTEX_WAKE_OP`). An owner does that when it finds no
//! sleeper.
//!
//! | who ends | where | who wakes a sleeper |
//! |---|---|---|
//! | the owner | before it has changed the word | the kernel: the word has WAITERS |
//! | the owner | between the change and the wake-up | the kernel: the word of the announced mutex has no id |
//! | a woken waiter | before another thread has locked the mutex | the kernel, for the same reason |
//! | a woken waiter | after that | that thread: it has kept WAITERS |
//! | the owner | after it cleared WAITERS | nobody sleeps |
//! | a waiter whose time is up | anywhere | nobody has woken it, or it locks the mutex if that is free |
//!
//! No condition variable moves its waiters to such a mutex, so there are no other sleepers. The walk in `walk` visits
//! all these interleavings for up to four threads.
//!
//! If unlocks are serial, a word with WAITERS alone is HANDED: the mutex belongs to the waiter that was woken. If they
//! are parallel, the mutex is *open*: any thread may lock it. `handed_at` tells which.

use crate::mutex::raw::RawMutex;
use crate::mutex::word::{FREE, HANDED, WAITERS};
use lockwright_sys::futex;
use lockwright_sys::sched::Tid;
use std::sync::atomic::Ordering;

/// The value of `handed_at` if the mutex is open. Ticks are smaller.
pub(in crate::mutex) const OPEN: u8 = u8::MAX;

/// How often an unlock may find that the waiters that it has just seen are gone. More would need as many time-outs in
/// as many system calls.
const ROUNDS_MAX: u32 = 16;

impl RawMutex {
    /// Unlocks the word of a recoverable mutex that does not inherit, and wakes a waiter if there is one.
    ///
    /// # Bound
    /// Two system calls, and up to four more for each waiter that announces itself and leaves meanwhile.
    pub(in crate::mutex) fn unlock_remembering(&self, me: Tid, attributes: u32) {
        let scope = Self::scope(attributes);
        // Only the address is used after the unlock, because the mutex may then no longer exist.
        let address = std::ptr::from_ref(&self.word);
        // BOUND: ROUNDS_MAX rounds.
        for _ in 0..ROUNDS_MAX {
            if self.free_word(me) {
                return;
            }
            // If the kernel refuses a call, the word keeps WAITERS, and later unlocks make system calls in vain.
            if !futex::has_waiters(scope, &self.word) {
                // Those that were counted and do not sleep have ended, or count themselves again before they sleep.
                // ORDERING: Relaxed: a hint.
                self.urgent.store(0, Ordering::Relaxed);
                if futex::clear_and_wake_all(scope, &self.word, WAITERS.trailing_zeros()).is_ok() {
                    continue;
                }
            }
            let is_open = !self.is_serial(attributes);
            // ORDERING: Relaxed: ordered by the store of the word. Release pairs with the Acquire of the next lock.
            self.handed_at.store(if is_open { OPEN } else { 0 }, Ordering::Relaxed);
            self.word.store(HANDED, Ordering::Release);
            // Any thread may have locked and removed an open mutex by now. If nobody was woken, a thread may begin to
            // wait for an heir because it read the mark of an earlier unlock; it looks again when the heir is late.
            if futex::wake(scope, address, 1) > 0 || is_open {
                return;
            }
            // The waiter gave up, so the mutex may have been handed to nobody. Other threads may have begun to wait for
            // an heir; unless one of them has locked the mutex, the caller owns it again.
            // ORDERING: Acquire pairs with the Release of another unlock, if one came in between.
            if self.word.compare_exchange(HANDED, me.0 | WAITERS, Ordering::Acquire, Ordering::Relaxed).is_err() {
                return;
            }
        }
        // Frees the mutex and wakes all waiters, so that the word has nothing to remember.
        if futex::zero_and_wake_all(scope, &self.word).is_err() {
            self.word.store(FREE, Ordering::Release);
            futex::wake(scope, address, i32::MAX);
        }
    }
}
