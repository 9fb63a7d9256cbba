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
//! cannot take what is shown for its own. So two may wait at one place: those on both sides of where tickets run over do, if the number of
//! places is no power of two. What the first of them looks for stays until it was seen, for the next one to be shown there is shown by
//! its release or a later one.

use crate::sync::{AtomicUsize, array, constructor, free_by_new};
use crate::{Algorithm, Priority, Relax, SLOTS_MAX, Slot, Spin};
use core::marker::PhantomData;
use core::sync::atomic::Ordering;
use crossbeam_utils::CachePadded;

/// The array queue lock: first come, first served, each waiter on a line of its own.
///
/// The slot shows that no more than `SLOTS` ask, so that no two share a line; where tickets run over, after `usize::MAX` of them, some
/// may for one round, if `SLOTS` is no power of two.
///
/// A slot whose guard was leaked and that asks again waits for ever, and so do all others. It may share a line then; tickets are
/// still told apart.
///
/// # Bound
/// The critical sections of those who asked before: at most m − 1 with m cores, none of them preempted. A release is one store.
///
/// [`SpinLock::try_lock_with`](crate::SpinLock::try_lock_with) never waits, as long as no 2^`usize::BITS` tickets are drawn, each for a
/// critical section, between two of its steps; if they are, it waits as any other, and there is still one inside.
///
/// # Reference
/// T. Anderson: The performance of spin lock alternatives for shared-memory multiprocessors, IEEE TPDS 1(1), 1990. Places show
/// tickets here.
#[derive(Debug)]
pub struct Anderson<const SLOTS: usize, R = Spin> {
    next: CachePadded<AtomicUsize>,
    shown: [CachePadded<AtomicUsize>; SLOTS],
    relax: PhantomData<fn() -> R>,
}

impl<const SLOTS: usize, R> Anderson<SLOTS, R> {
    constructor! {
        fn new() -> Self {
            const { assert!(1 <= SLOTS && SLOTS <= SLOTS_MAX, "a lock has 1 to SLOTS_MAX slots") };
            // All places show 0, and it is the first one at which it is looked for.
            Self {
                next: CachePadded::new(AtomicUsize::new(0)),
                shown: array!(CachePadded::new(AtomicUsize::new(0))),
                relax: PhantomData,
            }
        }
    }

    /// The place of a ticket.
    #[inline]
    fn shown(&self, ticket: usize) -> &AtomicUsize {
        &self.shown[ticket % SLOTS]
    }
}

impl<const SLOTS: usize, R: Relax> Anderson<SLOTS, R> {
    /// Looks until `ticket` is shown.
    #[inline]
    fn follow(&self, slot: &Slot, ticket: usize) -> usize {
        let shown = self.shown(ticket);
        // ORDERING: Acquire pairs with the Release of `release`.
        // BOUND: the sections of those with tickets before.
        slot.wait_until::<R>(|| shown.load(Ordering::Acquire) == ticket);
        ticket.wrapping_add(1)
    }

    /// Draws `ticket`, if it is the next one.
    #[inline]
    fn draw(&self, ticket: usize) -> Option<usize> {
        self.next.compare_exchange(ticket, ticket.wrapping_add(1), Ordering::Relaxed, Ordering::Relaxed).ok()
    }

    /// Draws `ticket`, which was shown when it was looked for.
    #[inline]
    fn draw_shown(&self, slot: &Slot, ticket: usize) -> Option<usize> {
        // It is shown still, unless all tickets were drawn meanwhile: then it is the next one again, and others are before it.
        self.draw(ticket).map(|ticket| self.follow(slot, ticket))
    }
}

// SAFETY: each ticket is drawn once, and shown once: at the release of the one before. Another ticket is shown at its place only by a
// later release, so after it was seen; it itself again only after 2^BITS others, of which each place shows some.
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
        self.follow(slot, self.next.fetch_add(1, Ordering::Relaxed))
    }

    #[inline]
    fn try_acquire(&self, slot: &Slot) -> Option<usize> {
        slot.below(SLOTS);
        let ticket = self.next.load(Ordering::Relaxed);
        // A ticket that is shown and not yet drawn: the lock is free.
        // ORDERING: Relaxed: what the one before did is seen in `follow`.
        if self.shown(ticket).load(Ordering::Relaxed) != ticket {
            return None;
        }
        self.draw_shown(slot, ticket)
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
    testing::orderings!(Anderson<16, testing::Patient>, []);

    #[test]
    #[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
    #[allow(unsafe_code)]
    fn tickets_run_over() {
        fn run_over<const SLOTS: usize>() {
            let start = usize::MAX - 2 * SLOTS;
            let lock = std::sync::Arc::new(Anderson::<SLOTS, testing::Patient>::new());
            lock.next.store(start, Ordering::Relaxed);
            lock.shown.iter().for_each(|shown| shown.store(start, Ordering::Relaxed));
            let all: std::vec::Vec<_> = (0..SLOTS)
                .map(|index| {
                    let lock = std::sync::Arc::clone(&lock);
                    std::thread::spawn(move || {
                        // SAFETY: each thread has a number of its own, and the lock is theirs.
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

    #[cfg(all(target_arch = "x86_64", not(any(lockwright_loom, lockwright_shuttle))))]
    #[test]
    fn a_lock_has_a_line_for_each_slot_and_one_more() {
        assert_eq!((size_of::<Anderson<5>>(), size_of::<Anderson<64>>()), (6 * 128, 65 * 128));
    }

    #[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
    type Late = Anderson<2, testing::alone::Meanwhile>;

    /// The looks of a try that stood still while all tickets were drawn, but for the one it looked for: that is the next one again, and the
    /// one before holds the lock.
    #[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
    #[allow(unsafe_code)]
    fn looks_of_a_late_try(draw: fn(&Late, &Slot, usize) -> Option<usize>) -> usize {
        let lock = std::rc::Rc::new(Late::new());
        // SAFETY: this thread has the number, and the lock is its own.
        let slot = unsafe { Slot::new(0) };
        let (held, holders) = (lock.acquire(&slot), std::rc::Rc::clone(&lock));
        // SAFETY: it was just acquired.
        let release = move || unsafe { holders.release(held) };
        let (entered, looks) =
            testing::alone::meanwhile(std::vec![std::boxed::Box::new(release)], || draw(&lock, &slot, 1));
        assert!(entered.is_some());
        looks.iter().sum()
    }

    #[test]
    #[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
    fn a_late_try_waits_for_the_holder() {
        assert_eq!(looks_of_a_late_try(Anderson::draw_shown), 1);
        // The twin: the exchange alone lets it in at once.
        assert_eq!(looks_of_a_late_try(|lock, _, ticket| lock.draw(ticket)), 0);
    }
}
