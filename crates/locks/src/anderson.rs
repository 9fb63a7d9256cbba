//! The array queue lock of Anderson: FIFO order, and each waiter spins on its own place.
//!
//! ```text
//!   next: the next ticket      place of ticket t: t modulo the number of places
//!
//!   acquire   next += 1: the old value t is my ticket; checks until my place shows t
//!   release   the place of t + 1 shows t + 1
//! ```
//! Places with ticket 5 holding, 6 and 7 waiting, and `next` at 8:
//! ```text
//!   | 4 | 5 | 2 | 3 |
//!           6   7     <- wait here
//! ```
//! A place shows a whole ticket and no flag. Nothing is reset, and a waiter at a place that is still in use cannot
//! mistake the ticket shown there for its own.
//! Two waiters may therefore share a place, which happens where tickets wrap around if the number of places is not a
//! power of two.
//! The ticket of the first one is shown until it is seen, because its own release or a later one shows the next ticket
//! there.

use crate::sync::{AtomicUsize, array, constructor, free_by_new};
use crate::{Algorithm, Priority, Relax, SLOTS_MAX, Slot, Spin};
use core::marker::PhantomData;
use core::sync::atomic::Ordering;
use crossbeam_utils::CachePadded;

/// The array queue lock of Anderson: FIFO order, with a cache line for each waiter.
///
/// At most `SLOTS` slots make requests, so no two waiters share a line.
/// Where tickets wrap around, after `usize::MAX` of them, some may share one for a round if `SLOTS` is no power of two.
///
/// A slot that leaks its guard and requests the lock again waits forever, and so do all others.
/// It may share a line then; tickets still differ.
///
/// # Bound
/// The critical sections of earlier requests: at most m − 1 with m cores, if none of them is preempted. A release is
/// one store.
///
/// [`SpinLock::try_lock_with`](crate::SpinLock::try_lock_with) does not wait, unless all 2^`usize::BITS` tickets are
/// drawn between two of its steps, each for a critical section. Then it waits like any request, and exclusion still
/// holds.
///
/// # Reference
/// T. Anderson: The performance of spin lock alternatives for shared-memory multiprocessors, IEEE TPDS 1(1), 1990.
/// Here the places show tickets.
///
/// # Examples
/// ```
/// use lockwright_locks::{Anderson, Slot, SpinLock};
///
/// static COUNT: SpinLock<Anderson<8>, u32> = SpinLock::new(0);
/// let slot = Slot::claim().expect("fewer than 64 threads have a slot");
/// *COUNT.lock_with(&slot) += 1;
/// ```
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
            // All places show 0; the first waiter expects 0 at the first place.
            Self {
                next: CachePadded::new(AtomicUsize::new(0)),
                shown: array!(CachePadded::new(AtomicUsize::new(0))),
                relax: PhantomData,
            }
        }
    }

    /// Returns the place of a ticket.
    #[inline]
    fn shown(&self, ticket: usize) -> &AtomicUsize {
        &self.shown[ticket % SLOTS]
    }
}

impl<const SLOTS: usize, R: Relax> Anderson<SLOTS, R> {
    /// Waits until `ticket` is shown.
    #[inline]
    fn follow(&self, slot: &Slot, ticket: usize) -> usize {
        let shown = self.shown(ticket);
        // ORDERING: Acquire pairs with the Release of `release`.
        // BOUND: the sections of earlier tickets.
        slot.wait_until::<R>(|| shown.load(Ordering::Acquire) == ticket);
        ticket.wrapping_add(1)
    }

    /// Draws `ticket` if it is the next one.
    #[inline]
    fn draw(&self, ticket: usize) -> Option<usize> {
        self.next.compare_exchange(ticket, ticket.wrapping_add(1), Ordering::Relaxed, Ordering::Relaxed).ok()
    }

    /// Draws `ticket`, which was shown at the last check.
    #[inline]
    fn draw_shown(&self, slot: &Slot, ticket: usize) -> Option<usize> {
        // It is still shown, unless all tickets were drawn meanwhile. Then it is the next one again, and others precede
        // it.
        self.draw(ticket).map(|ticket| self.follow(slot, ticket))
    }
}

// SAFETY: each ticket is drawn once, and shown once, by the release of the ticket before. A later release shows another
// ticket at its place, so after it was seen. The same ticket returns only after 2^BITS others, of which each place
// shows some.
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
        // The lock is free if the next ticket is shown already.
        // ORDERING: Relaxed: `follow` acquires the sections before.
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
        fn has_requested(&self, _: usize, waiters: usize) -> bool {
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
    fn tickets_wrap_around() {
        fn wrap_around<const SLOTS: usize>() {
            let start = usize::MAX - 2 * SLOTS;
            let lock = std::sync::Arc::new(Anderson::<SLOTS, testing::Patient>::new());
            lock.next.store(start, Ordering::Relaxed);
            lock.shown.iter().for_each(|shown| shown.store(start, Ordering::Relaxed));
            let all: std::vec::Vec<_> = (0..SLOTS)
                .map(|index| {
                    let lock = std::sync::Arc::clone(&lock);
                    std::thread::spawn(move || {
                        // SAFETY: each thread has its own number, and only they use the lock.
                        let slot = unsafe { Slot::new(index) };
                        for _ in 0..8 {
                            let hold = lock.acquire(&slot);
                            assert!(lock.try_acquire(&slot).is_none());
                            // SAFETY: the lock was just acquired with this hold.
                            unsafe { lock.release(hold) };
                        }
                    })
                })
                .collect();
            all.into_iter().for_each(|thread| thread.join().expect("the thread ends"));
            assert_eq!(lock.next.load(Ordering::Relaxed), start.wrapping_add(8 * SLOTS));
        }
        wrap_around::<1>();
        wrap_around::<2>();
        wrap_around::<3>();
        wrap_around::<5>();
    }

    #[cfg(all(target_arch = "x86_64", not(any(lockwright_loom, lockwright_shuttle))))]
    #[test]
    fn a_lock_has_a_line_for_each_slot_and_one_more() {
        assert_eq!((size_of::<Anderson<5>>(), size_of::<Anderson<64>>()), (6 * 128, 65 * 128));
    }

    #[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
    type Late = Anderson<2, testing::alone::Meanwhile>;

    /// Returns the checks of a try that paused while all tickets except its own were drawn.
    ///
    /// Its ticket is the next one again then, and the holder of the one before holds the lock.
    #[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
    #[allow(unsafe_code)]
    fn checks_of_a_late_try(draw: fn(&Late, &Slot, usize) -> Option<usize>) -> usize {
        let lock = std::rc::Rc::new(Late::new());
        // SAFETY: only this thread uses the lock.
        let slot = unsafe { Slot::new(0) };
        let (held, holders) = (lock.acquire(&slot), std::rc::Rc::clone(&lock));
        // SAFETY: the lock was just acquired with this hold.
        let release = move || unsafe { holders.release(held) };
        let (entered, checks) =
            testing::alone::meanwhile(std::vec![std::boxed::Box::new(release)], || draw(&lock, &slot, 1));
        assert!(entered.is_some());
        checks.iter().sum()
    }

    #[test]
    #[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
    fn a_late_try_waits_for_the_holder() {
        assert_eq!(checks_of_a_late_try(Anderson::draw_shown), 1);
        // The mutant: the exchange alone admits it at once.
        assert_eq!(checks_of_a_late_try(|lock, _, ticket| lock.draw(ticket)), 0);
    }
}
