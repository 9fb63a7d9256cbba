//! The ticket lock: two counters, FIFO.
//!
//! ```text
//!   next, serving   acquire                                      release
//!   equal: free     next += 1: the old value is my ticket        -
//!   apart: held     next += 1, looks until serving is my ticket  serving += 1
//! ```
//! Both counters wrap: only their difference counts, and it is below the number of those who ask.

use crate::sync::{AtomicU32, constructor, free_by_new};
use crate::{Algorithm, Priority, Relax, Slot, Spin};
use core::marker::PhantomData;
use core::sync::atomic::Ordering;

/// The ticket lock: first come, first served.
///
/// Waiters spin on one shared counter, so every release is seen by all of them: simple and quick with few cores.
///
/// # Bound
/// The critical sections of those who asked before: at most m − 1 with m cores, none of them preempted.
///
/// # Reference
/// J. Mellor-Crummey, M. Scott: Algorithms for scalable synchronization on shared-memory multiprocessors, ACM TOCS 9(1), 1991.
#[derive(Debug)]
pub struct Ticket<R = Spin> {
    next: AtomicU32,
    serving: AtomicU32,
    relax: PhantomData<fn() -> R>,
}

impl<R> Ticket<R> {
    constructor! {
        fn new() -> Self {
            Self::starting_at(0)
        }
    }

    constructor! {
        fn starting_at(ticket: u32) -> Self {
            Self { next: AtomicU32::new(ticket), serving: AtomicU32::new(ticket), relax: PhantomData }
        }
    }

    #[cfg(feature = "lock_api")]
    pub(crate) fn is_taken(&self) -> bool {
        self.next.load(Ordering::Relaxed) != self.serving.load(Ordering::Relaxed)
    }

    /// What the holder keeps for the release, for one that cannot keep it.
    #[cfg(feature = "lock_api")]
    pub(crate) fn after_serving(&self) -> u32 {
        self.serving.load(Ordering::Relaxed).wrapping_add(1)
    }
}

// SAFETY: each ticket is drawn once, and `serving` reaches it by the release of the one before; fewer than 2^32 ask at once.
#[allow(unsafe_code)]
unsafe impl<R: Relax> Algorithm for Ticket<R> {
    type Request<'r> = ();
    /// The ticket after the holder's.
    type Hold = u32;

    free_by_new!();

    fn request(_: &Slot, _: Priority) {}

    #[inline]
    fn acquire(&self, (): ()) -> u32 {
        let ticket = self.next.fetch_add(1, Ordering::Relaxed);
        let mut relax = R::default();
        // ORDERING: Acquire pairs with the Release of `release`.
        // BOUND: the sections of those with tickets before.
        while self.serving.load(Ordering::Acquire) != ticket {
            relax.relax();
        }
        ticket.wrapping_add(1)
    }

    #[inline]
    fn try_acquire(&self, (): ()) -> Option<u32> {
        // ORDERING: Acquire pairs with the Release of `release`. Whoever drew that ticket first made the exchange fail.
        let ticket = self.serving.load(Ordering::Acquire);
        let after = ticket.wrapping_add(1);
        self.next.compare_exchange(ticket, after, Ordering::Relaxed, Ordering::Relaxed).ok().map(|_| after)
    }

    #[inline]
    unsafe fn release(&self, after: u32) {
        // ORDERING: Release pairs with the Acquire of the next holder.
        self.serving.store(after, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{self, Probe};

    impl<R: Relax> Probe for Ticket<R> {
        fn has_asked(&self, _: usize, waiters: usize) -> bool {
            let asked = self.next.load(Ordering::Relaxed).wrapping_sub(self.serving.load(Ordering::Relaxed));
            asked as usize == 1 + waiters
        }
    }

    testing::exclusion!(Ticket<testing::Patient>);
    testing::order!(Ticket<testing::Patient>, Order::Fifo);

    #[test]
    #[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
    fn tickets_run_over() {
        let ticket = Ticket::<Spin>::starting_at(u32::MAX - 1);
        for _ in 0..4 {
            let hold = ticket.acquire(());
            assert!(ticket.try_acquire(()).is_none());
            // SAFETY: it was just acquired.
            #[allow(unsafe_code)]
            unsafe {
                ticket.release(hold);
            }
        }
        assert_eq!(ticket.next.load(Ordering::Relaxed), 2);
    }
}
