//! The test-and-test-and-set lock: one word, no order.
//!
//! ```text
//!   taken   acquire         release
//!   0       -> 1            -
//!   1       looks until 0   -> 0
//! ```

use crate::sync::{AtomicU32, constructor, free_by_new};
use crate::{Abortable, Algorithm, Deadline, Priority, Relax, Slot, Spin};
use core::marker::PhantomData;
use core::sync::atomic::Ordering;

/// Test-and-test-and-set: whoever is quickest gets it.
///
/// Waiters spin on a load; any of them may be delayed by any other, again and again.
///
/// # Bound
/// None: a waiter may be passed without end. With m cores and random arrivals that is rare, but it is not excluded.
///
/// # Reference
/// L. Rudolph, Z. Segall: Dynamic decentralized cache schemes for MIMD parallel processors, ISCA 1984.
#[derive(Debug)]
pub struct Tas<R = Spin> {
    taken: AtomicU32,
    relax: PhantomData<fn() -> R>,
}

impl<R> Tas<R> {
    constructor! {
        fn new() -> Self {
            Self { taken: AtomicU32::new(0), relax: PhantomData }
        }
    }

    #[cfg(feature = "lock_api")]
    pub(crate) fn is_taken(&self) -> bool {
        self.taken.load(Ordering::Relaxed) != 0
    }
}

// SAFETY: an exchange that finds 0 is the only acquire, and nobody but the holder writes 0.
#[allow(unsafe_code)]
unsafe impl<R: Relax> Algorithm for Tas<R> {
    type Request<'r> = ();
    type Hold = ();

    free_by_new!();

    fn request(_: &Slot, _: Priority) {}

    #[inline]
    fn acquire(&self, (): ()) {
        let mut relax = R::default();
        // BOUND: none; see the type.
        while self.try_acquire(()).is_none() {
            relax.relax();
        }
    }

    #[inline]
    fn try_acquire(&self, (): ()) -> Option<()> {
        // ORDERING: Acquire pairs with the Release of `release`. An exchange, not a swap: who finds it taken writes nothing, so
        // the holder's 0 is never followed by the 1 of somebody who came too late. Swaps would be right too, but loom lets that pass.
        let free = self.taken.load(Ordering::Relaxed) == 0;
        (free && self.taken.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok()).then_some(())
    }

    #[inline]
    unsafe fn release(&self, (): ()) {
        // ORDERING: Release pairs with the Acquire of the exchange.
        self.taken.store(0, Ordering::Release);
    }
}

// SAFETY: as above.
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
