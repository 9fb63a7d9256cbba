//! The ticket lock: two counters in FIFO order.
//!
//! ```text
//!   next, serving   acquire                                        release
//!   equal: free     next += 1: the old value is my ticket          -
//!   apart: held     next += 1, checks until serving is my ticket   serving += 1
//! ```
//! Both counters wrap around. Only their difference counts, which is at most the number of requests.

use crate::sync::{AtomicU32, constructor, free_by_new};
use crate::{Algorithm, Priority, Relax, Slot, Spin, limit};
use core::marker::PhantomData;
use core::sync::atomic::Ordering;

/// The ticket lock, in FIFO order.
///
/// All waiters spin on one counter, so each release reaches all of them. That is simple, and fast with few cores.
///
/// # Bound
/// The critical sections of earlier requests: at most m − 1 with m cores, if none of them is preempted.
///
/// [`SpinLock::try_lock`](crate::SpinLock::try_lock) does not wait, unless all 2^32 tickets are drawn between two of
/// its steps, each for a critical section. Then it waits like any request, and exclusion still holds.
///
/// # Aborts
/// If there are 2^29 requests at once, or up to 2^20 more, because waiters have panicked.
///
/// # Reference
/// J. Mellor-Crummey, M. Scott: Algorithms for scalable synchronization on shared-memory multiprocessors, ACM TOCS
/// 9(1), 1991.
///
/// # Examples
/// ```
/// use lockwright_locks::{SpinLock, Ticket};
///
/// static COUNT: SpinLock<Ticket, u32> = SpinLock::new(0);
/// *COUNT.lock() += 1;
/// ```
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

    /// Whether a thread holds the lock or waits for it.
    #[cfg(any(feature = "lock_api", lockwright_loom, lockwright_shuttle))]
    pub(crate) fn is_locked(&self) -> bool {
        // ORDERING: the load of `serving` comes first; its Acquire pairs with the Release of `release`. In the other
        // order, a ticket that is drawn between the loads and served since would not appear as drawn.
        let serving = self.serving.load(Ordering::Acquire);
        self.next.load(Ordering::Relaxed) != serving
    }

    /// The hold of the present holder, for a caller that does not keep it.
    #[cfg(feature = "lock_api")]
    pub(crate) fn hold(&self) -> u32 {
        self.serving.load(Ordering::Relaxed).wrapping_add(1)
    }
}

impl<R: Relax> Ticket<R> {
    /// Waits until `ticket` is served.
    #[inline]
    fn follow(&self, ticket: u32) -> u32 {
        let mut relax = R::default();
        // ORDERING: Acquire pairs with the Release of `release`.
        // BOUND: the sections of earlier tickets.
        while self.serving.load(Ordering::Acquire) != ticket {
            relax.relax();
        }
        ticket.wrapping_add(1)
    }

    /// Draws `ticket` if it is the next one.
    #[inline]
    fn draw(&self, ticket: u32) -> Option<u32> {
        self.next.compare_exchange(ticket, ticket.wrapping_add(1), Ordering::Relaxed, Ordering::Relaxed).ok()
    }

    /// Draws `ticket`, which was served at the last check.
    #[inline]
    fn draw_served(&self, ticket: u32) -> Option<u32> {
        // It is still served, unless all tickets were drawn meanwhile. Then it is the next one again, and others
        // precede it.
        self.draw(ticket).map(|ticket| self.follow(ticket))
    }
}

// SAFETY: each ticket is drawn once, and the release of the one before sets `serving` to it. There are fewer than 2^32
// requests at once. Acquire and Release of `serving` order the sections.
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
        limit::check::<1>(ticket, &self.next, &self.serving);
        self.follow(ticket)
    }

    #[inline]
    fn try_acquire(&self, (): ()) -> Option<u32> {
        // Another thread that draws the ticket first makes the exchange fail.
        // ORDERING: Relaxed: `follow` acquires the sections before.
        self.draw_served(self.serving.load(Ordering::Relaxed))
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
        fn has_requested(&self, _: usize, waiters: usize) -> bool {
            let requests = self.next.load(Ordering::Relaxed).wrapping_sub(self.serving.load(Ordering::Relaxed));
            requests as usize == 1 + waiters
        }
    }

    testing::exclusion!(Ticket<testing::Patient>);
    testing::order!(Ticket<testing::Patient>, Order::Fifo);
    testing::orderings!(Ticket<testing::Patient>, []);

    #[test]
    #[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
    fn tickets_wrap_around() {
        let ticket = Ticket::<Spin>::starting_at(u32::MAX - 1);
        for _ in 0..4 {
            let hold = ticket.acquire(());
            assert!(ticket.try_acquire(()).is_none());
            // SAFETY: the lock was just acquired with this hold.
            #[allow(unsafe_code)]
            unsafe {
                ticket.release(hold);
            }
        }
        assert_eq!(ticket.next.load(Ordering::Relaxed), 2);
    }

    /// Waiters whose `relax` panics leave their tickets behind.
    #[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
    #[cfg_attr(miri, ignore = "Miri starts no programs")]
    #[test]
    fn too_many_requests_end_the_program() {
        assert!(testing::ends::ends("ticket::tests::too_many_requests_end_the_program", "lock", || {
            let lock = Ticket::<testing::alone::Meanwhile>::new();
            lock.next.store(limit::REQUESTS_MAX - 1, Ordering::Relaxed);
            // The first unsuccessful check would panic.
            assert_ne!(lock.acquire(()), 0);
        }));
    }

    /// The mutant: if no request checks, the tickets wrap around.
    #[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
    #[test]
    fn unlimited_tickets_admit_two() {
        let lock = Ticket::<testing::alone::Meanwhile>::new();
        let held = lock.acquire(());
        // All other tickets were left behind.
        lock.next.store(0, Ordering::Relaxed);
        assert_eq!(lock.follow(lock.next.fetch_add(1, Ordering::Relaxed)), held);
    }

    /// Returns the checks of a try that paused while all tickets except its own were drawn.
    ///
    /// Its ticket is the next one again then, and the holder of the one before holds the lock.
    #[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
    fn checks_of_a_late_try(draw: fn(&Ticket<testing::alone::Meanwhile>, u32) -> Option<u32>) -> usize {
        let lock = std::rc::Rc::new(Ticket::starting_at(u32::MAX));
        let (held, holders) = (lock.acquire(()), std::rc::Rc::clone(&lock));
        // SAFETY: the lock was just acquired with this hold.
        #[allow(unsafe_code)]
        let release = move || unsafe { holders.release(held) };
        let (entered, checks) = testing::alone::meanwhile(std::vec![std::boxed::Box::new(release)], || draw(&lock, 0));
        assert!(entered.is_some());
        checks.iter().sum()
    }

    #[test]
    #[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
    fn a_late_try_waits_for_the_holder() {
        assert_eq!(checks_of_a_late_try(Ticket::draw_served), 1);
        // The mutant: the exchange alone admits it at once.
        assert_eq!(checks_of_a_late_try(Ticket::draw), 0);
    }

    /// Checks that a lock never seems free while its holder hands it to a waiter.
    #[cfg(any(lockwright_loom, lockwright_shuttle))]
    #[allow(unsafe_code)]
    fn is_locked_throughout(is_locked: fn(&Ticket<testing::Patient>) -> bool) {
        use testing::run::{Arc, thread};
        let lock = Arc::new(Ticket::new());
        let held = lock.acquire(());
        let (waits, checks) = (Arc::clone(&lock), Arc::clone(&lock));
        let waiter = thread::spawn(move || waits.acquire(()));
        let reader = thread::spawn(move || assert!(is_locked(&checks), "the lock seems free"));
        while !lock.has_requested(1, 1) {
            thread::yield_now();
        }
        // SAFETY: the lock was acquired above with this hold.
        unsafe { lock.release(held) };
        waiter.join().expect("a thread that ends");
        reader.join().expect("a check that finds it locked");
    }

    #[test]
    #[cfg(any(lockwright_loom, lockwright_shuttle))]
    fn a_lock_that_is_handed_over_is_locked() {
        use testing::{checks, run::Effort};
        const EFFORT: Effort = Effort { preemptions: 3, schedules: 500 };
        const SEEMS_FREE: &[&str] = &["the lock seems free"];
        checks::explore(EFFORT, || is_locked_throughout(Ticket::is_locked));
        // The mutants.
        let next_first = |lock: &Ticket<_>| {
            let next = lock.next.load(Ordering::Relaxed);
            next != lock.serving.load(Ordering::Acquire)
        };
        assert!(checks::caught(SEEMS_FREE, || checks::explore(EFFORT, move || is_locked_throughout(next_first))));
        #[cfg(lockwright_loom)]
        {
            let relaxed = |lock: &Ticket<_>| {
                let serving = lock.serving.load(Ordering::Relaxed);
                lock.next.load(Ordering::Relaxed) != serving
            };
            assert!(checks::caught(SEEMS_FREE, || checks::explore(EFFORT, move || is_locked_throughout(relaxed))));
        }
    }
}
