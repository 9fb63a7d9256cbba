//! The batched priority lock: FIFO across batches and priority order inside one, settled by the waiters themselves.
//!
//! ```text
//!   waiters      the number of waiters
//!   batch        [ the number of requests in it | id ]     one batch for each critical section
//!   status       1 while held
//!   barrier[0]   the earliest batch in stage 0, or all ones
//!   barrier[1]   the most urgent priority in stage 1 (less is more urgent), or all ones
//!   settling[0]  the slots that have yet to compare themselves with barrier[0], a bit each
//!   settling[1]  the same for barrier[1]
//! ```
//! The steps are in [`steps`]. The search of all their interleavings is in `search`, with its results in `docs/bpl.md`.

#[cfg(all(test, not(any(lockwright_loom, lockwright_shuttle))))]
mod search;
mod steps;
#[cfg(test)]
mod tests;

use crate::sync::{constructor, fence, free_by_new};
use crate::word::{AtomicWord, zeros};
use crate::{Abortable, Algorithm, Deadline, Priority, Relax, SLOTS_MAX, Slot, Spin, Word};
use core::marker::PhantomData;
use core::sync::atomic::Ordering;
use crossbeam_utils::CachePadded;
use steps::{At, Contender, Memory, Outcome, Place, Rules};

/// The batched priority lock, repaired: FIFO across batches and priority order inside one.
///
/// The requests that arrive during one critical section form a batch.
/// The earliest batch is served first, and in it the most urgent request.
/// The waiters settle the order in two barriers that all of them read.
/// Nothing is allocated, no slot has a cache line of its own, and the holder only releases.
///
/// `SLOTS` is at most the width of `W`.
/// In 32-bit words `Priority::new(0)` and `Priority::new(1)` are one level, because all ones stand for no priority.
///
/// # Bound
/// m − 1 critical sections with m cores, as long as no waiter of a later batch passes one of an earlier batch.
/// The algorithm does not prevent that if one core is much faster than another.
/// The bound therefore holds if all cores are about equally fast and no waiter is preempted.
/// [`Batched`](crate::Batched) has the bound without that condition.
///
/// Each wait to settle lasts until others have compared themselves with a barrier, which takes a few steps of each.
/// Each release, and each waiter that gives up, makes all others settle again.
///
/// # Reference
/// The paper "Bounded Priority-Aware Locking for Real-Time Kernels".
/// This lock resets `barrier[1]` once more, without which a waiter can wait forever, and its ids may wrap around: see
/// `docs/bpl.md`.
///
/// # Examples
/// ```
/// use lockwright_locks::{Bpl, Priority, Slot, SpinLock};
///
/// static STATE: SpinLock<Bpl<8>, u32> = SpinLock::new(0);
/// let slot = Slot::claim().expect("fewer than 64 threads have a slot");
/// *STATE.lock_with((&slot, Priority::new(7))) += 1;
/// ```
///
/// A lock with too many slots for its word does not compile:
/// ```compile_fail
/// # use lockwright_locks::{Bpl, SpinLock};
/// static STATE: SpinLock<Bpl<64, u32>, u32> = SpinLock::new(0);
/// ```
#[derive(Debug)]
pub struct Bpl<const SLOTS: usize, W: Word = usize, R = Spin> {
    door: CachePadded<Door<W>>,
    barriers: CachePadded<Barriers<W>>,
    relax: PhantomData<fn() -> R>,
    #[cfg(test)]
    checks: tests::Checks,
}

/// The words that every acquire and release accesses.
#[derive(Debug)]
struct Door<W: Word> {
    waiters: W::Atomic,
    batch: W::Atomic,
    status: W::Atomic,
}

/// The words that only waiters access.
#[derive(Debug)]
struct Barriers<W: Word> {
    barrier: [W::Atomic; 2],
    settling: [W::Atomic; 2],
}

/// An atomic word with all bits set, which is constant except in a model.
macro_rules! ones {
    ($word:ty) => {{
        #[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
        {
            <<$word as Word>::Atomic as AtomicWord>::ONES
        }
        #[cfg(any(lockwright_loom, lockwright_shuttle))]
        {
            <<$word as Word>::Atomic as AtomicWord>::with(u64::MAX)
        }
    }};
}

impl<const SLOTS: usize, W: Word, R> Bpl<SLOTS, W, R> {
    const RULES: Rules = {
        assert!(SLOTS > 0, "a lock has at least one slot");
        assert!(
            SLOTS <= SLOTS_MAX && SLOTS <= W::BITS as usize,
            "a slot is a bit of the word: more SLOTS need a wider W"
        );
        // The bits that are needed to count to SLOTS.
        let count_bits = usize::BITS - SLOTS.leading_zeros();
        Rules { id_bits: W::BITS - count_bits, bits: W::BITS }
    };

    constructor! {
        fn new() -> Self {
            let _ = Self::RULES;
            Self {
                door: CachePadded::new(Door { waiters: zeros!(W), batch: zeros!(W), status: zeros!(W) }),
                barriers: CachePadded::new(Barriers { barrier: [ones!(W), ones!(W)], settling: [zeros!(W), zeros!(W)] }),
                relax: PhantomData,
                #[cfg(test)]
                checks: tests::Checks::NONE,
            }
        }
    }

    #[inline]
    fn at(&self, place: Place) -> &W::Atomic {
        match place {
            Place::Waiters => &self.door.waiters,
            Place::Batch => &self.door.batch,
            Place::Lowest => &self.barriers.barrier[0],
            Place::Urgent => &self.barriers.barrier[1],
            Place::Settling0 => &self.barriers.settling[0],
            Place::Settling1 => &self.barriers.settling[1],
            Place::Status => &self.door.status,
        }
    }

    /// Converts a priority. In the result less is more urgent, and all ones do not occur.
    #[inline]
    fn level(priority: Priority) -> u64 {
        u64::from(u32::MAX - priority.get()).min(Self::RULES.nobody() - 1)
    }

    /// Executes the steps up to [`At::Count`] in a straight line, with one locked instruction if the lock is free.
    #[inline]
    fn enter_at_once(&self) -> bool {
        // ORDERING: Acquire pairs with the Release of `release`. A check that finds no waiters may be out of date, in
        // any order: a request that counts itself after the check comes after it. A core may also check ahead of the
        // end of its own section; it then passes a request that counted itself during that section.
        if Self::RULES.is_past_half(self.door.batch.load(Ordering::Relaxed)) {
            return self.enter_and_restart();
        }
        self.door.waiters.load(Ordering::Relaxed) == 0
            && self.door.status.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Executes the same steps one by one: half of the ids are used, so they restart if no request waits.
    ///
    /// The published algorithm does so at every acquire, for which it needs one more locked instruction.
    #[cold]
    fn enter_and_restart(&self) -> bool {
        // ORDERING: a release of this thread is seen before its next check of the waiters. A request that drew a batch
        // before that release, and is not yet seen to wait, makes the exchange fail.
        fence(Ordering::SeqCst);
        let mut contender = Contender::new(At::ReadBatch, 0, 0);
        // BOUND: four steps.
        while contender.at != At::Count {
            if contender.step(self) == Outcome::Acquired {
                return true;
            }
        }
        false
    }
}

/// The words of the lock, for the steps.
///
/// ORDERING: the search and the lock execute the steps in sequentially consistent memory.
/// Each waiter writes one word and reads another, and two waiters must not miss each other.
/// Exclusion rests on the acquire and the release of `status` alone.
impl<const SLOTS: usize, W: Word, R> Memory for Bpl<SLOTS, W, R> {
    #[inline]
    fn rules(&self) -> Rules {
        Self::RULES
    }
    #[inline]
    fn load(&self, place: Place) -> u64 {
        self.at(place).load(Ordering::SeqCst)
    }
    #[inline]
    fn store(&self, place: Place, value: u64) {
        self.at(place).store(value, Ordering::SeqCst);
    }
    #[inline]
    fn compare_exchange(&self, place: Place, current: u64, new: u64) -> Result<u64, u64> {
        self.at(place).compare_exchange(current, new, Ordering::SeqCst, Ordering::SeqCst)
    }
    #[inline]
    fn fetch_add(&self, place: Place, value: u64) -> u64 {
        self.at(place).fetch_add(value, Ordering::SeqCst)
    }
    #[inline]
    fn fetch_sub(&self, place: Place, value: u64) -> u64 {
        self.at(place).fetch_sub(value, Ordering::SeqCst)
    }
    #[inline]
    fn fetch_or(&self, place: Place, value: u64) -> u64 {
        self.at(place).fetch_or(value, Ordering::SeqCst)
    }
    #[inline]
    fn fetch_and(&self, place: Place, value: u64) -> u64 {
        self.at(place).fetch_and(value, Ordering::SeqCst)
    }
}

impl<const SLOTS: usize, W: Word, R: Relax> Bpl<SLOTS, W, R> {
    /// Waits by the steps. Returns whether the lock was acquired before the deadline.
    #[cold]
    fn wait(&self, (slot, priority): (&Slot, Priority), mut deadline: impl Deadline) -> bool {
        let mut relax = R::default();
        slot.while_waiting(|| {
            let contender = Contender::new(At::Count, 1 << slot.index(), Self::level(priority));
            let mut waiter = Waiter { lock: self, slot, contender };
            // BOUND: the waits have the bound of the type. Between two waits there is one pass through the stages,
            // fifteen steps, and five more after the deadline has passed.
            loop {
                match waiter.contender.step(self) {
                    Outcome::Goes => {}
                    Outcome::Waits => {
                        #[cfg(test)]
                        self.checks.count(slot.index());
                        if deadline.passed() {
                            waiter.contender.give_up();
                        } else {
                            relax.relax();
                        }
                    }
                    Outcome::Acquired | Outcome::Outside => break,
                }
            }
            #[cfg(test)]
            self.checks.end(slot.index());
            let is_in = waiter.contender.at == At::Inside;
            core::mem::forget(waiter);
            is_in
        })
    }
}

/// A request that waits. It is dropped only if a deadline or a `relax` panics, and then gives up.
struct Waiter<'a, const SLOTS: usize, W: Word, R> {
    lock: &'a Bpl<SLOTS, W, R>,
    slot: &'a Slot,
    contender: Contender,
}

impl<const SLOTS: usize, W: Word, R> Drop for Waiter<'_, SLOTS, W, R> {
    fn drop(&mut self) {
        self.contender.give_up();
        // BOUND: five steps.
        while self.contender.step(self.lock) != Outcome::Outside {}
        self.slot.stop_waiting();
    }
}

// SAFETY: the only acquire is an exchange of `status` from 0, and only the holder writes 0. Acquire and Release of
// `status` order the sections.
#[allow(unsafe_code)]
unsafe impl<const SLOTS: usize, W: Word, R: Relax> Algorithm for Bpl<SLOTS, W, R> {
    type Request<'r> = (&'r Slot, Priority);
    type Hold = ();

    free_by_new!();

    fn request(slot: &Slot, priority: Priority) -> (&Slot, Priority) {
        (slot, priority)
    }

    #[inline]
    fn acquire(&self, request: (&Slot, Priority)) {
        request.0.below(SLOTS);
        if !self.enter_at_once() {
            self.wait(request, || false);
        }
    }

    #[inline]
    fn try_acquire(&self, (slot, _): (&Slot, Priority)) -> Option<()> {
        slot.below(SLOTS);
        (self.door.status.load(Ordering::Relaxed) == 0 && self.enter_at_once()).then_some(())
    }

    #[inline]
    unsafe fn release(&self, (): ()) {
        // These are the steps from `At::Inside` in a straight line. A request that joins between the load and the store
        // has drawn the id that ends here. Only its count is lost, and a new batch begins without a count.
        // ORDERING: Release pairs with the Acquire of the next holder. A batch ends after its section and before the
        // lock is free.
        let batch = self.door.batch.load(Ordering::Relaxed);
        self.door.batch.store(Self::RULES.next(batch), Ordering::Release);
        self.door.status.store(0, Ordering::Release);
    }
}

// SAFETY: it acquires by the same exchange of `status`.
#[allow(unsafe_code)]
unsafe impl<const SLOTS: usize, W: Word, R: Relax> Abortable for Bpl<SLOTS, W, R> {
    #[inline]
    fn acquire_until(&self, request: (&Slot, Priority), deadline: impl Deadline) -> Option<()> {
        request.0.below(SLOTS);
        (self.enter_at_once() || self.wait(request, deadline)).then_some(())
    }
}
