//! The array queue lock: FIFO, each waiter spins on a place of its own.
//!
//! ```text
//!   next: the ticket to be drawn      place of ticket t: t modulo the number of places
//!
//!   acquire   next += 1: the old value t is my ticket; looks until my place shows t
//!   release   the place of t + 1 shows t + 1
//! ```
//! Places, with ticket 5 holding and 6 and 7 waiting, `next` at 8:
//! ```text
//!   | 4 | 5 | 2 | 3 |
//!           6   7     <- wait here
//! ```
//! A place shows a whole ticket rather than a flag: there is nothing to be reset, and who comes round to a place that is still in use
//! cannot take what is shown for its own.

use crate::sync::{AtomicUsize, array, constructor, free_by_new};
use crate::{Algorithm, Priority, Relax, SLOTS_MAX, Slot, Spin};
use core::marker::PhantomData;
use core::sync::atomic::Ordering;
use crossbeam_utils::CachePadded;

/// The array queue lock: first come, first served, each waiter on a line of its own.
///
/// The slot shows that no more than `SLOTS` ask, so that no two share a line.
///
/// A slot whose guard was leaked and that asks again waits for ever, and so do all others. It may share a line then; tickets are
/// still told apart.
///
/// # Bound
/// The critical sections of those who asked before: at most m − 1 with m cores, none of them preempted. A release is one store.
///
/// # Reference
/// T. Anderson: The performance of spin lock alternatives for shared-memory multiprocessors, IEEE TPDS 1(1), 1990. Places show
/// tickets here.
#[derive(Debug)]
pub struct Anderson<const SLOTS: usize, R = Spin> {
    next: CachePadded<AtomicUsize>,
    /// Of these, the first `PLACES` are used: twice the slots are no less.
    shown: [[CachePadded<AtomicUsize>; SLOTS]; 2],
    relax: PhantomData<fn() -> R>,
}

impl<const SLOTS: usize, R> Anderson<SLOTS, R> {
    /// A power of two, so that places follow each other where tickets run over.
    const PLACES: usize = SLOTS.next_power_of_two();

    constructor! {
        fn new() -> Self {
            const { assert!(1 <= SLOTS && SLOTS <= SLOTS_MAX, "a lock has 1 to SLOTS_MAX slots") };
            // All places show 0, and it is the first one at which it is looked for.
            Self {
                next: CachePadded::new(AtomicUsize::new(0)),
                shown: array!(array!(CachePadded::new(AtomicUsize::new(0)))),
                relax: PhantomData,
            }
        }
    }

    #[inline]
    fn shown(&self, ticket: usize) -> &AtomicUsize {
        &self.shown.as_flattened()[ticket % Self::PLACES]
    }
}

// SAFETY: each ticket is drawn once, and shown once: at the release of the one before. Nobody stands still between two steps while
// 2^BITS tickets are drawn.
#[allow(unsafe_code)]
unsafe impl<const SLOTS: usize, R: Relax> Algorithm for Anderson<SLOTS, R> {
    type Request<'r> = &'r Slot;
    /// The ticket after the holder's.
    type Hold = usize;

    free_by_new!();

    fn request(slot: &Slot, _: Priority) -> &Slot {
        slot
    }

    #[inline]
    fn acquire(&self, slot: &Slot) -> usize {
        slot.below(SLOTS);
        let ticket = self.next.fetch_add(1, Ordering::Relaxed);
        let shown = self.shown(ticket);
        // ORDERING: Acquire pairs with the Release of `release`.
        // BOUND: the sections of those with tickets before.
        slot.wait_until::<R>(|| shown.load(Ordering::Acquire) == ticket);
        ticket.wrapping_add(1)
    }

    #[inline]
    fn try_acquire(&self, slot: &Slot) -> Option<usize> {
        slot.below(SLOTS);
        let ticket = self.next.load(Ordering::Relaxed);
        // A ticket that is shown and not yet drawn: the lock is free.
        // ORDERING: Acquire pairs with the Release of `release`.
        if self.shown(ticket).load(Ordering::Acquire) != ticket {
            return None;
        }
        let after = ticket.wrapping_add(1);
        self.next.compare_exchange(ticket, after, Ordering::Relaxed, Ordering::Relaxed).ok().map(|_| after)
    }

    #[inline]
    unsafe fn release(&self, after: usize) {
        // ORDERING: Release pairs with the Acquire of the next holder.
        self.shown(after).store(after, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{self, Probe};

    impl<const SLOTS: usize, R: Relax> Probe for Anderson<SLOTS, R> {
        fn has_asked(&self, _: usize, waiters: usize) -> bool {
            let holds = self.next.load(Ordering::Relaxed).wrapping_sub(1 + waiters);
            let shows = |ticket| self.shown(ticket).load(Ordering::Relaxed) == ticket;
            shows(holds) && !shows(holds.wrapping_add(1))
        }
    }

    testing::exclusion!(Anderson<16, testing::Patient>);
    testing::order!(Anderson<16, testing::Patient>, Order::Fifo);

    #[test]
    #[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
    #[allow(unsafe_code)]
    fn tickets_run_over() {
        fn run_over<const SLOTS: usize>() {
            let start = usize::MAX - 2 * SLOTS;
            let lock = std::sync::Arc::new(Anderson::<SLOTS, testing::Patient>::new());
            lock.next.store(start, Ordering::Relaxed);
            lock.shown.as_flattened().iter().for_each(|shown| shown.store(start, Ordering::Relaxed));
            let all: std::vec::Vec<_> = (0..SLOTS)
                .map(|index| {
                    let lock = std::sync::Arc::clone(&lock);
                    std::thread::spawn(move || {
                        // SAFETY: each thread has a number of its own, and no test claims slots while this one runs.
                        let slot = unsafe { Slot::new(index) };
                        for _ in 0..8 {
                            let hold = lock.acquire(&slot);
                            assert!(lock.try_acquire(&slot).is_none());
                            // SAFETY: it was just acquired.
                            unsafe { lock.release(hold) };
                        }
                    })
                })
                .collect();
            all.into_iter().for_each(|thread| thread.join().expect("a thread that ends"));
            assert_eq!(lock.next.load(Ordering::Relaxed), start.wrapping_add(8 * SLOTS));
        }
        run_over::<1>();
        run_over::<2>();
        run_over::<3>();
        run_over::<5>();
    }
}
