//! The phase-fair ticket lock for readers and writers (PF-T).
//!
//! ```text
//!   entered              a reader requests     the writer that is served     the writer leaves
//!   count | PHASE        count += 1, waits     sets WRITER, waits until      clears WRITER,
//!         | WRITER       while the flags that  `left` is the count           inverts PHASE
//!                        it saw, with WRITER,
//!                        stay
//!   left                 += 1 at its release
//!   next, serving        the tickets of writers, as in the ticket lock
//! ```
//! A writer counts the readers before it and waits for these. Readers that come later wait for this writer, and for no
//! other one: its release changes the flags, and the next writer counts them.
//!
//! The paper takes PHASE from the writer's ticket. Here it is inverted by each release, so a writer that gives up
//! before it sets WRITER leaves no trace.

use crate::sync::{AtomicU32, constructor, free_by_new};
use crate::{Algorithm, Priority, Relax, Shareable, Slot, Spin, limit};
use core::marker::PhantomData;
use core::sync::atomic::Ordering;

/// A writer is inside, or waits for the readers before it.
const WRITER: u32 = 1;
/// Distinguishes a writer from the next one.
const PHASE: u32 = 2;
const FLAGS: u32 = WRITER | PHASE;
/// One reader.
const READER: u32 = 4;

/// The phase-fair ticket lock for readers and writers, PF-T: phases of readers and of single writers alternate.
///
/// Writers are served in FIFO order. All waiting readers enter together after each writer.
///
/// # Bound
/// With m cores, where neither waiters nor holders are preempted:
/// - A reader waits for at most one phase of readers and one writer, however many writers wait.
/// - A writer waits for at most m − 1 writers, and for a phase of readers before each of them and before itself.
///
/// `lockwright_analysis::blocking::spin::phase_fair` sums this up for a task set.
///
/// A try to read is repeated while other readers enter or request at the same time, so it has no bound in steps.
///
/// [`RwSpinLock::try_write`](crate::RwSpinLock::try_write) does not wait, unless the 30 bits that count readers wrap
/// around between two of its steps. Then it waits for readers like any request, and exclusion still holds.
///
/// # Aborts
/// If there are 2^29 requests at once, or up to 2^20 more, because guards were leaked or waiters have panicked.
///
/// # Reference
/// B. Brandenburg, J. Anderson: Spin-based reader-writer synchronization for multiprocessor real-time systems,
/// Real-Time Systems 46(1), 2010.
///
/// # Examples
/// ```
/// use lockwright_locks::{PhaseFair, RwSpinLock};
///
/// static POSITION: RwSpinLock<PhaseFair, [u32; 3]> = RwSpinLock::new([0; 3]);
/// POSITION.write()[0] = 1;
/// assert_eq!(POSITION.read()[0], 1);
/// ```
#[derive(Debug)]
pub struct PhaseFair<R = Spin> {
    /// The readers that have requested, and the flags.
    entered: AtomicU32,
    /// The readers that have released.
    left: AtomicU32,
    next: AtomicU32,
    serving: AtomicU32,
    relax: PhantomData<fn() -> R>,
}

impl<R> PhaseFair<R> {
    constructor! {
        fn new() -> Self {
            Self::starting_at(0, 0)
        }
    }

    constructor! {
        fn starting_at(readers: u32, ticket: u32) -> Self {
            Self {
                entered: AtomicU32::new(readers),
                left: AtomicU32::new(readers),
                next: AtomicU32::new(ticket),
                serving: AtomicU32::new(ticket),
                relax: PhantomData,
            }
        }
    }

    /// The hold of the present writer, for a caller that does not keep it.
    #[cfg(feature = "lock_api")]
    pub(crate) fn hold(&self) -> u32 {
        self.serving.load(Ordering::Relaxed).wrapping_add(1)
    }
}

impl<R: Relax> PhaseFair<R> {
    /// Waits until `ticket` is served.
    #[inline]
    fn follow(&self, ticket: u32) {
        let mut relax = R::default();
        // ORDERING: Acquire pairs with the Release of a writer's release.
        // BOUND: the writers before, and a phase of readers before each of them.
        while self.serving.load(Ordering::Acquire) != ticket {
            relax.relax();
        }
    }

    /// Waits until all readers have left that `entered` counts.
    #[inline]
    fn follow_readers(&self, entered: u32) {
        let mut relax = R::default();
        // ORDERING: Acquire pairs with the Release of the readers' release.
        // BOUND: the sections of the readers before.
        while self.left.load(Ordering::Acquire) != entered & !FLAGS {
            relax.relax();
        }
    }

    /// Sets WRITER if `entered` has not changed.
    #[inline]
    fn close(&self, entered: u32) -> bool {
        // ORDERING: Relaxed: as in `acquire`.
        self.entered.compare_exchange(entered, entered | WRITER, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Admits the writer that is served, if `entered` has not changed since all readers that it counts had left.
    #[inline]
    fn admit(&self, entered: u32) -> bool {
        let is_closed = self.close(entered);
        if is_closed {
            // They have left, unless the count has wrapped around meanwhile. Then some of them may be inside.
            self.follow_readers(entered);
        }
        is_closed
    }
}

// SAFETY: each ticket is drawn once, and the release of the writer before sets `serving` to it, so one writer at a time
// sets WRITER. It waits until all readers have left that were counted before. Each later reader sees WRITER, and waits
// until this writer's release changes the flags. Acquire and Release of `serving`, `entered` and `left` order the
// sections.
#[allow(unsafe_code)]
unsafe impl<R: Relax> Algorithm for PhaseFair<R> {
    type Request<'r> = ();
    /// The ticket after the writer's.
    type Hold = u32;

    free_by_new!();

    fn request(_: &Slot, _: Priority) {}

    #[inline]
    fn acquire(&self, (): ()) -> u32 {
        let ticket = self.next.fetch_add(1, Ordering::Relaxed);
        limit::check::<1>(ticket, &self.next, &self.serving);
        self.follow(ticket);
        // ORDERING: Relaxed: readers that see WRITER only wait. Those before are acquired below.
        let entered = self.entered.fetch_or(WRITER, Ordering::Relaxed);
        self.follow_readers(entered);
        ticket.wrapping_add(1)
    }

    #[inline]
    fn try_acquire(&self, (): ()) -> Option<u32> {
        // ORDERING: Relaxed: `follow` acquires the writers before.
        let ticket = self.serving.load(Ordering::Relaxed);
        let after = ticket.wrapping_add(1);
        self.next.compare_exchange(ticket, after, Ordering::Relaxed, Ordering::Relaxed).ok()?;
        // It is served, unless all tickets were drawn since the load.
        self.follow(ticket);
        // ORDERING: Relaxed: `admit` acquires the readers before.
        let left = self.left.load(Ordering::Relaxed);
        let entered = self.entered.load(Ordering::Relaxed);
        let is_free = entered & !FLAGS == left && self.admit(entered);
        if !is_free {
            // ORDERING: Release: the next writer acquires the writers before through it.
            self.serving.store(after, Ordering::Release);
        }
        is_free.then_some(after)
    }

    #[inline]
    unsafe fn release(&self, after: u32) {
        // ORDERING: Release pairs with the Acquire of the readers.
        self.entered.fetch_xor(WRITER | PHASE, Ordering::Release);
        // ORDERING: Release pairs with the Acquire of the next writer.
        self.serving.store(after, Ordering::Release);
    }
}

// SAFETY: a reader waits while WRITER is set, and a writer waits for all readers that were counted before it set
// WRITER. So a reader and a writer are never inside together. Acquire and Release of `entered` and `left` order the
// sections.
#[allow(unsafe_code)]
unsafe impl<R: Relax> Shareable for PhaseFair<R> {
    #[inline]
    fn acquire_shared(&self) {
        // ORDERING: Acquire, here and below, pairs with the Release of the last writer.
        let entered = self.entered.fetch_add(READER, Ordering::Acquire);
        limit::check::<READER>(entered, &self.entered, &self.left);
        let seen = entered & FLAGS;
        if seen & WRITER != 0 {
            let mut relax = R::default();
            // BOUND: the readers before this writer, and its section.
            while self.entered.load(Ordering::Acquire) & FLAGS == seen {
                relax.relax();
            }
        }
    }

    #[inline]
    fn try_acquire_shared(&self) -> bool {
        let mut entered = self.entered.load(Ordering::Relaxed);
        // BOUND: none; a round fails because another request has changed the count or set WRITER.
        while entered & WRITER == 0 {
            // ORDERING: Acquire as in `acquire_shared`.
            let next = entered.wrapping_add(READER);
            match self.entered.compare_exchange(entered, next, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => {
                    limit::check::<READER>(entered, &self.entered, &self.left);
                    return true;
                }
                Err(now) => entered = now,
            }
        }
        false
    }

    #[inline]
    unsafe fn release_shared(&self) {
        // ORDERING: Release pairs with the Acquire of the next writer.
        self.left.fetch_add(READER, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{self, Probe, SharedProbe};

    impl<R: Relax> Probe for PhaseFair<R> {
        fn has_requested(&self, _: usize, waiters: usize) -> bool {
            let requests = self.next.load(Ordering::Relaxed).wrapping_sub(self.serving.load(Ordering::Relaxed));
            requests as usize == 1 + waiters
        }
    }

    impl<R: Relax> SharedProbe for PhaseFair<R> {
        fn requests(&self) -> usize {
            (self.entered.load(Ordering::Relaxed) / READER + self.next.load(Ordering::Relaxed)) as usize
        }

        fn has_settled(&self) -> bool {
            let is_requested = self.next.load(Ordering::Relaxed) != self.serving.load(Ordering::Relaxed);
            !is_requested || self.entered.load(Ordering::Relaxed) & WRITER != 0
        }
    }

    testing::exclusion!(PhaseFair<testing::Patient>);
    testing::order!(PhaseFair<testing::Patient>, Order::Fifo);
    testing::sharing!(
        PhaseFair<testing::Patient>,
        SharedOrder::Phases,
        [
            // A try that fails passes the ticket on. The readers because of which it fails order the writers as well.
            (NoRelease, "self.serving.store(after, Ordering::Release);"),
        ]
    );

    #[test]
    #[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
    #[allow(unsafe_code)]
    fn counts_wrap_around() {
        let lock = PhaseFair::<Spin>::starting_at(READER.wrapping_neg(), u32::MAX);
        for _ in 0..3 {
            lock.acquire_shared();
            assert!(lock.try_acquire_shared());
            assert!(lock.try_acquire(()).is_none(), "readers are inside");
            // SAFETY: the lock was acquired twice above.
            unsafe {
                lock.release_shared();
                lock.release_shared();
            }
            let hold = lock.acquire(());
            assert!(!lock.try_acquire_shared(), "a writer is inside");
            // SAFETY: the lock was just acquired with this hold.
            unsafe { lock.release(hold) };
        }
        assert_eq!(lock.left.load(Ordering::Relaxed), 5 * READER);
        assert_eq!(lock.serving.load(Ordering::Relaxed), 5, "three writers and three that gave up");
    }

    /// Returns the checks of a try that paused while the count of readers wrapped around.
    ///
    /// The count is the same again then, and the last one of these readers holds the lock.
    #[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
    fn checks_of_a_late_try(admit: fn(&Meanwhile, u32) -> bool) -> usize {
        let lock = std::rc::Rc::new(Meanwhile::new());
        lock.acquire_shared();
        let (entered, readers) = (lock.entered.load(Ordering::Relaxed), std::rc::Rc::clone(&lock));
        // SAFETY: the lock was just acquired.
        #[allow(unsafe_code)]
        let release = move || unsafe { readers.release_shared() };
        let (entered, checks) =
            testing::alone::meanwhile(std::vec![std::boxed::Box::new(release)], || admit(&lock, entered));
        assert!(entered);
        checks.iter().sum()
    }

    #[test]
    #[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
    fn a_late_try_waits_for_the_readers() {
        assert_eq!(checks_of_a_late_try(PhaseFair::admit), 1);
        // The mutant: the exchange alone admits it at once.
        assert_eq!(checks_of_a_late_try(PhaseFair::close), 0);
    }

    #[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
    type Meanwhile = PhaseFair<testing::alone::Meanwhile>;

    #[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
    #[cfg_attr(miri, ignore = "Miri starts no programs")]
    #[test]
    fn too_many_requests_end_the_program() {
        testing::ends::with_too_many_requests("phase_fair::tests::too_many_requests_end_the_program", || {
            let lock = Meanwhile::new();
            lock.entered.store((limit::REQUESTS_MAX - 1) * READER, Ordering::Relaxed);
            lock.next.store(limit::REQUESTS_MAX - 1, Ordering::Relaxed);
            lock
        });
    }

    /// The mutant: if no request checks, the count of readers wraps around.
    #[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
    #[test]
    fn an_unlimited_count_admits_a_writer_beside_readers() {
        let lock = Meanwhile::new();
        lock.entered.store(READER.wrapping_neg(), Ordering::Relaxed);
        assert!(lock.try_acquire(()).is_none(), "readers are inside");
        lock.entered.fetch_add(READER, Ordering::Acquire);
        assert!(lock.try_acquire(()).is_some());
    }
}
