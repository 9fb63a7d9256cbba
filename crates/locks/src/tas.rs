//! The test-and-test-and-set lock: one word and no order.
//!
//! ```text
//!   locked   acquire           release
//!   0        -> 1              -
//!   1        checks until 0    -> 0
//! ```

use crate::sync::{AtomicU32, constructor, free_by_new};
use crate::{Abortable, Algorithm, Deadline, Priority, Relax, Slot, Spin};
use core::marker::PhantomData;
use core::sync::atomic::Ordering;

/// The test-and-test-and-set lock, which the fastest waiter acquires.
///
/// Waiters spin on a load. Each waiter may repeatedly delay each other waiter.
///
/// # Bound
/// None: a waiter may be passed without end. That is rare with random arrivals, but it is not excluded.
///
/// # Reference
/// L. Rudolph, Z. Segall: Dynamic decentralized cache schemes for MIMD parallel processors, ISCA 1984.
///
/// # Examples
/// ```
/// use lockwright_locks::{SpinLock, Tas};
///
/// static COUNT: SpinLock<Tas, u32> = SpinLock::new(0);
/// *COUNT.lock() += 1;
/// ```
#[derive(Debug)]
pub struct Tas<R = Spin> {
    locked: AtomicU32,
    relax: PhantomData<fn() -> R>,
}

impl<R> Tas<R> {
    constructor! {
        fn new() -> Self {
            Self { locked: AtomicU32::new(0), relax: PhantomData }
        }
    }

    #[cfg(feature = "lock_api")]
    pub(crate) fn is_locked(&self) -> bool {
        self.locked.load(Ordering::Relaxed) != 0
    }
}

// SAFETY: the only acquire is an exchange that finds 0, and only the holder writes 0. Acquire and Release order the
// sections.
#[allow(unsafe_code)]
unsafe impl<R: Relax> Algorithm for Tas<R> {
    type Request<'r> = ();
    type Hold = ();

    free_by_new!();

    fn request(_: &Slot, _: Priority) {}

    #[inline]
    fn acquire(&self, (): ()) {
        let mut relax = R::default();
        // BOUND: none, see the type.
        while self.try_acquire(()).is_none() {
            relax.relax();
        }
    }

    #[inline]
    fn try_acquire(&self, (): ()) -> Option<()> {
        // ORDERING: Acquire pairs with the Release of `release`. An exchange that finds the lock held writes nothing,
        // unlike a swap: the 0 of the holder is then never followed by the 1 of a late waiter. Swaps would also be
        // correct, but loom does not cover them.
        let free = self.locked.load(Ordering::Relaxed) == 0;
        (free && self.locked.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok()).then_some(())
    }

    #[inline]
    unsafe fn release(&self, (): ()) {
        // ORDERING: Release pairs with the Acquire of the exchange.
        self.locked.store(0, Ordering::Release);
    }
}

// SAFETY: it acquires by `try_acquire` only.
#[allow(unsafe_code)]
unsafe impl<R: Relax> Abortable for Tas<R> {
    #[inline]
    fn acquire_until(&self, (): (), mut deadline: impl Deadline) -> Option<()> {
        let mut relax = R::default();
        // BOUND: the deadline.
        while self.try_acquire(()).is_none() {
            if deadline.passed() {
                return None;
            }
            relax.relax();
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    testing::exclusion!(Tas<testing::Patient>);
    testing::orderings!(Tas<testing::Patient>, []);
    testing::abort!(Tas<testing::Patient>);
}
