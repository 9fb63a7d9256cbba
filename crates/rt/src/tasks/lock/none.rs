//! `none`: a plain mutex.
//!
//! ```text
//!   word        meaning                    lock                      unlock
//!   FREE        nobody holds it            -> LOCKED, one CAS        -
//!   LOCKED      held, nobody waits         -> CONTENDED, wait        -> FREE
//!   CONTENDED   held, a task may wait      wait                      -> FREE, wake one
//!
//!   woken       FREE -> CONTENDED, because others may still wait;  else wait again
//! ```

use lockwright_sys::futex::{self, Scope};
use std::sync::atomic::{AtomicU32, Ordering};

const FREE: u32 = 0;
const LOCKED: u32 = 1;
const CONTENDED: u32 = 2;

/// A plain mutex; see the table above. Waiters are woken by their priority at the time they began to wait.
///
/// # Bound
/// None: a task of medium priority may execute without bound while a less urgent one holds the lock, and a woken waiter
/// may find the lock held again.
#[derive(Debug)]
pub(super) struct PlainLock(AtomicU32);

impl PlainLock {
    pub(super) const fn new() -> Self {
        Self(AtomicU32::new(FREE))
    }

    /// Locks the mutex. Returns whether it was held.
    pub(super) fn lock(&self) -> bool {
        // ORDERING: Acquire, here and below, pairs with the Release in `unlock`.
        if self.0.compare_exchange(FREE, LOCKED, Ordering::Acquire, Ordering::Relaxed).is_ok() {
            return false;
        }
        // BOUND: unbounded, as the type says; when the run ends every holder unlocks.
        while self.0.swap(CONTENDED, Ordering::Acquire) != FREE {
            futex::wait(Scope::Private, &self.0, CONTENDED, None).or_panic();
        }
        true
    }

    pub(super) fn unlock(&self) {
        // ORDERING: Release pairs with the Acquire in `lock`.
        if self.0.swap(FREE, Ordering::Release) == CONTENDED {
            futex::wake(Scope::Private, &self.0, 1);
        }
    }
}
