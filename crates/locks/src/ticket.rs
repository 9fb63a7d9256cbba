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
/// [`SpinLock::try_lock_with`](crate::SpinLock::try_lock_with) never waits, as long as no 2^32 tickets are drawn, each for a critical
/// section, between two of its steps; if they are, it waits as any other, and there is still one inside.
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

    /// Whether somebody holds the lock or waits for it.
    #[cfg(any(feature = "lock_api", lockwright_loom, lockwright_shuttle))]
    pub(crate) fn is_taken(&self) -> bool {
        // ORDERING: `serving` first, Acquire pairs with the Release of `release`: the other way round, a ticket that was drawn between
        // the loads and is served since would be found not drawn yet.
        let serving = self.serving.load(Ordering::Acquire);
        self.next.load(Ordering::Relaxed) != serving
    }

    /// What the holder keeps for the release, for one that cannot keep it.
    #[cfg(feature = "lock_api")]
    pub(crate) fn after_serving(&self) -> u32 {
        self.serving.load(Ordering::Relaxed).wrapping_add(1)
    }
}

impl<R: Relax> Ticket<R> {
    /// Looks until `ticket` is served.
    #[inline]
    fn follow(&self, ticket: u32) -> u32 {
        let mut relax = R::default();
        // ORDERING: Acquire pairs with the Release of `release`.
        // BOUND: the sections of those with tickets before.
        while self.serving.load(Ordering::Acquire) != ticket {
            relax.relax();
        }
        ticket.wrapping_add(1)
    }

    /// Draws `ticket`, if it is the next one.
    #[inline]
    fn draw(&self, ticket: u32) -> Option<u32> {
        self.next.compare_exchange(ticket, ticket.wrapping_add(1), Ordering::Relaxed, Ordering::Relaxed).ok()
    }

    /// Draws `ticket`, which was served when it was looked for.
    #[inline]
    fn draw_served(&self, ticket: u32) -> Option<u32> {
        // It is served still, unless all tickets were drawn meanwhile: then it is the next one again, and others are before it.
        self.draw(ticket).map(|ticket| self.follow(ticket))
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
        self.follow(self.next.fetch_add(1, Ordering::Relaxed))
    }

    #[inline]
    fn try_acquire(&self, (): ()) -> Option<u32> {
        // Whoever drew that ticket first makes the exchange fail.
        // ORDERING: Relaxed: what the one before did is seen in `follow`.
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
        fn has_asked(&self, _: usize, waiters: usize) -> bool {
            let asked = self.next.load(Ordering::Relaxed).wrapping_sub(self.serving.load(Ordering::Relaxed));
            asked as usize == 1 + waiters
        }
    }

    testing::exclusion!(Ticket<testing::Patient>);
    testing::order!(Ticket<testing::Patient>, Order::Fifo);
    testing::orderings!(Ticket<testing::Patient>, []);

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

    /// The looks of a try that stood still while all tickets were drawn, but for the one it looked for: that is the next one again, and the
    /// one before holds the lock.
    #[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
    fn looks_of_a_late_try(draw: fn(&Ticket<testing::alone::Meanwhile>, u32) -> Option<u32>) -> usize {
        let lock = std::rc::Rc::new(Ticket::starting_at(u32::MAX));
        let (held, holders) = (lock.acquire(()), std::rc::Rc::clone(&lock));
        // SAFETY: it was just acquired.
        #[allow(unsafe_code)]
        let release = move || unsafe { holders.release(held) };
        let (entered, looks) = testing::alone::meanwhile(std::vec![std::boxed::Box::new(release)], || draw(&lock, 0));
        assert!(entered.is_some());
        looks.iter().sum()
    }

    #[test]
    #[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
    fn a_late_try_waits_for_the_holder() {
        assert_eq!(looks_of_a_late_try(Ticket::draw_served), 1);
        // The twin: the exchange alone lets it in at once.
        assert_eq!(looks_of_a_late_try(Ticket::draw), 0);
    }

    /// The holder leaves when another waits, so the lock is taken all the time: does whoever looks find it so?
    #[cfg(any(lockwright_loom, lockwright_shuttle))]
    #[allow(unsafe_code)]
    fn is_taken_throughout(is_taken: fn(&Ticket<testing::Patient>) -> bool) {
        use testing::run::{Arc, thread};
        let lock = Arc::new(Ticket::new());
        let held = lock.acquire(());
        let (waits, looks) = (Arc::clone(&lock), Arc::clone(&lock));
        let waiter = thread::spawn(move || waits.acquire(()));
        let reader = thread::spawn(move || assert!(is_taken(&looks), "it is said to be free"));
        while !lock.has_asked(1, 1) {
            thread::yield_now();
        }
        // SAFETY: it was acquired above.
        unsafe { lock.release(held) };
        waiter.join().expect("a thread that ends");
        reader.join().expect("a look that finds it taken");
    }

    #[test]
    #[cfg(any(lockwright_loom, lockwright_shuttle))]
    fn a_lock_that_is_handed_over_is_taken() {
        use testing::{checks, run::Effort};
        const EFFORT: Effort = Effort { preemptions: 3, schedules: 500 };
        const SAYS_FREE: &[&str] = &["it is said to be free"];
        checks::explore(EFFORT, || is_taken_throughout(Ticket::is_taken));
        // The twins.
        let next_first = |lock: &Ticket<_>| {
            let next = lock.next.load(Ordering::Relaxed);
            next != lock.serving.load(Ordering::Acquire)
        };
        assert!(checks::caught(SAYS_FREE, || checks::explore(EFFORT, move || is_taken_throughout(next_first))));
        #[cfg(lockwright_loom)]
        {
            let relaxed = |lock: &Ticket<_>| {
                let serving = lock.serving.load(Ordering::Relaxed);
                lock.next.load(Ordering::Relaxed) != serving
            };
            assert!(checks::caught(SAYS_FREE, || checks::explore(EFFORT, move || is_taken_throughout(relaxed))));
        }
    }
}
