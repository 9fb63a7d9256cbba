//! The task-fair ticket lock for readers and writers.
//!
//! ```text
//!   a request with ticket t     enters                  then          at its release
//!   reader                      when `readers` is t     readers = t + 1          done += 1
//!   writer                      when `done` is t                      readers = t + 1, done += 1
//! ```
//! `readers` counts the requests after which a reader may enter: the readers that have entered, and the writers that
//! have left. `done` counts the requests that have left. Only the request whose ticket `readers` shows changes it.

use crate::sync::{AtomicU32, constructor, free_by_new};
use crate::{Algorithm, Priority, Relax, Shareable, Slot, Spin, limit};
use core::marker::PhantomData;
use core::sync::atomic::Ordering;

/// The task-fair ticket lock for readers and writers: FIFO, and readers with no writer between them share the lock.
///
/// A reader may wait for several writers. See [`PhaseFair`](crate::PhaseFair) for readers that wait for one.
///
/// # Bound
/// The critical sections of earlier requests: at most m − 1 with m cores, if neither waiters nor holders are preempted.
/// Readers that enter together count as one, with the longest of their sections.
///
/// `lockwright_analysis::blocking::spin::task_fair` sums this up for a task set.
///
/// # Aborts
/// If there are 2^29 requests at once, or up to 2^20 more, because guards were leaked or waiters have panicked.
///
/// # Reference
/// J. Mellor-Crummey, M. Scott: Scalable reader-writer synchronization for shared-memory multiprocessors, PPoPP 1991,
/// for the fair order. Their counts of readers and writers share two words; here each request draws a ticket.
///
/// # Examples
/// ```
/// use lockwright_locks::{RwSpinLock, TaskFair};
///
/// static POSITION: RwSpinLock<TaskFair, [u32; 3]> = RwSpinLock::new([0; 3]);
/// POSITION.write()[0] = 1;
/// assert_eq!(POSITION.read()[0], 1);
/// ```
#[derive(Debug)]
pub struct TaskFair<R = Spin> {
    next: AtomicU32,
    readers: AtomicU32,
    done: AtomicU32,
    relax: PhantomData<fn() -> R>,
}

impl<R> TaskFair<R> {
    constructor! {
        fn new() -> Self {
            Self::starting_at(0)
        }
    }

    constructor! {
        fn starting_at(ticket: u32) -> Self {
            Self {
                next: AtomicU32::new(ticket),
                readers: AtomicU32::new(ticket),
                done: AtomicU32::new(ticket),
                relax: PhantomData,
            }
        }
    }

    /// The hold of the present writer, for a caller that does not keep it.
    #[cfg(feature = "lock_api")]
    pub(crate) fn hold(&self) -> u32 {
        self.readers.load(Ordering::Relaxed).wrapping_add(1)
    }
}

impl<R: Relax> TaskFair<R> {
    /// Draws the next ticket.
    #[inline]
    fn draw_next(&self) -> u32 {
        let ticket = self.next.fetch_add(1, Ordering::Relaxed);
        limit::check::<1>(ticket, &self.next, &self.done);
        ticket
    }

    /// Draws `ticket` if it is the next one.
    #[inline]
    fn draw(&self, ticket: u32) -> bool {
        let after = ticket.wrapping_add(1);
        let is_drawn = self.next.compare_exchange(ticket, after, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if is_drawn {
            limit::check::<1>(ticket, &self.next, &self.done);
        }
        is_drawn
    }

    /// Waits as a writer until `ticket` is served.
    #[inline]
    fn follow(&self, ticket: u32) -> u32 {
        let mut relax = R::default();
        // ORDERING: Acquire pairs with the Release of all releases.
        // BOUND: the sections of earlier tickets.
        while self.done.load(Ordering::Acquire) != ticket {
            relax.relax();
        }
        ticket.wrapping_add(1)
    }

    /// Waits as a reader until `ticket` is served, and admits a reader behind.
    #[inline]
    fn follow_shared(&self, ticket: u32) {
        let mut relax = R::default();
        // ORDERING: Acquire pairs with the Release of the last writer, or of a reader that has acquired it.
        // BOUND: the sections of earlier tickets up to the last writer.
        while self.readers.load(Ordering::Acquire) != ticket {
            relax.relax();
        }
        // ORDERING: Release: the next reader acquires the last writer through it.
        self.readers.store(ticket.wrapping_add(1), Ordering::Release);
    }
}

// SAFETY: each ticket is drawn once. A writer enters when all earlier requests have left. A reader enters when all
// earlier readers have entered and all earlier writers have left, and no later writer enters before it leaves. Acquire
// and Release of `readers` and `done` order the sections.
#[allow(unsafe_code)]
unsafe impl<R: Relax> Algorithm for TaskFair<R> {
    type Request<'r> = ();
    /// The ticket after the writer's.
    type Hold = u32;

    free_by_new!();

    fn request(_: &Slot, _: Priority) {}

    #[inline]
    fn acquire(&self, (): ()) -> u32 {
        self.follow(self.draw_next())
    }

    #[inline]
    fn try_acquire(&self, (): ()) -> Option<u32> {
        // ORDERING: Relaxed: `follow` acquires the sections before.
        let ticket = self.done.load(Ordering::Relaxed);
        // It is still served, unless all tickets were drawn since the load.
        self.draw(ticket).then(|| self.follow(ticket))
    }

    #[inline]
    unsafe fn release(&self, after: u32) {
        // ORDERING: Release pairs with the Acquire of the next reader. It comes first: a reader behind may leave before
        // the count below.
        self.readers.store(after, Ordering::Release);
        // ORDERING: Release pairs with the Acquire of the next writer.
        self.done.fetch_add(1, Ordering::Release);
    }
}

// SAFETY: a reader enters when all earlier writers have left, and a later writer enters when this reader has left. So a
// reader and a writer are never inside together. Acquire and Release of `readers` and `done` order the sections.
#[allow(unsafe_code)]
unsafe impl<R: Relax> Shareable for TaskFair<R> {
    #[inline]
    fn acquire_shared(&self) {
        self.follow_shared(self.draw_next());
    }

    #[inline]
    fn try_acquire_shared(&self) -> bool {
        let mut ticket = self.readers.load(Ordering::Relaxed);
        // BOUND: none; a round fails because another reader has drawn the ticket and entered.
        loop {
            if self.draw(ticket) {
                self.follow_shared(ticket);
                return true;
            }
            // ORDERING: Relaxed: `follow_shared` acquires the sections before.
            let now = self.readers.load(Ordering::Relaxed);
            if now == ticket {
                return false;
            }
            ticket = now;
        }
    }

    #[inline]
    unsafe fn release_shared(&self) {
        // ORDERING: Release pairs with the Acquire of the next writer.
        self.done.fetch_add(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{self, Probe, SharedProbe};

    impl<R: Relax> Probe for TaskFair<R> {
        fn has_requested(&self, _: usize, waiters: usize) -> bool {
            let requests = self.next.load(Ordering::Relaxed).wrapping_sub(self.done.load(Ordering::Relaxed));
            requests as usize == 1 + waiters
        }
    }

    impl<R: Relax> SharedProbe for TaskFair<R> {
        fn requests(&self) -> usize {
            self.next.load(Ordering::Relaxed) as usize
        }
    }

    testing::exclusion!(TaskFair<testing::Patient>);
    testing::order!(TaskFair<testing::Patient>, Order::Fifo);
    testing::sharing!(TaskFair<testing::Patient>, SharedOrder::Fifo, []);

    #[test]
    #[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
    #[allow(unsafe_code)]
    fn tickets_wrap_around() {
        let lock = TaskFair::<Spin>::starting_at(u32::MAX - 1);
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
        assert_eq!(lock.next.load(Ordering::Relaxed), 7);
    }

    #[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
    type Meanwhile = TaskFair<testing::alone::Meanwhile>;

    #[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
    #[cfg_attr(miri, ignore = "Miri starts no programs")]
    #[test]
    fn too_many_requests_end_the_program() {
        testing::ends::with_too_many_requests("task_fair::tests::too_many_requests_end_the_program", || {
            let lock = Meanwhile::starting_at(limit::REQUESTS_MAX - 1);
            lock.done.store(0, Ordering::Relaxed);
            lock
        });
    }

    /// The mutant: if no request checks, the tickets wrap around.
    #[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
    #[test]
    fn unlimited_tickets_admit_a_writer_beside_readers() {
        let lock = Meanwhile::starting_at(u32::MAX);
        lock.done.store(0, Ordering::Relaxed);
        assert!(lock.try_acquire(()).is_none(), "readers are inside");
        lock.follow_shared(lock.next.fetch_add(1, Ordering::Relaxed));
        assert!(lock.try_acquire(()).is_some());
    }
}
