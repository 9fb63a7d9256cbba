//! The batched priority lock: FIFO across batches, priority inside one, agreed on by the waiters themselves.
//!
//! ```text
//!   waiters      how many wait
//!   batch        [ how many joined it | id ]     one batch a critical section
//!   status       1 while held
//!   barrier[0]   the earliest batch of those in stage 0, or all ones
//!   barrier[1]   the most urgent of those in stage 1, less is more urgent, or all ones
//!   settling[0]  who has not yet compared itself with barrier[0], a bit a slot
//!   settling[1]  the same for barrier[1]
//! ```
//! The steps are in [`steps`]; what is found by searching all their interleavings in `search`, and in `docs/bpl.md`.

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
use steps::{At, Contender, Memory, Outcome, Place, Rules, Version};

/// The batched priority lock, repaired: requests that come during one critical section are a batch; the earliest batch is
/// served first, and in it the most urgent request.
///
/// Waiters settle the order among themselves, in two barriers that all of them read: nothing is allocated, no slot has a line of its own, and
/// the holder only releases. `SLOTS` is at most the width of `W`.
///
/// In 32-bit words `Priority(0)` and `Priority(1)` are one level: all ones is nobody's priority.
///
/// # Bound
/// m − 1 critical sections with m cores, as long as no waiter of a later batch passes one of an earlier batch; and nothing in
/// the algorithm forbids it to one that is much faster. So the bound holds where all cores are about equally fast and no waiter
/// is preempted. `Batched` has it without that condition.
///
/// Each wait to settle is for others to compare themselves with a barrier, a few steps of theirs; each release and each waiter
/// that gives up has all others settle anew.
///
/// # Reference
/// The paper "Bounded Priority-Aware Locking for Real-Time Kernels"; with one more reset of `barrier[1]`, without which a
/// waiter can be left waiting for ever, and ids that may run over: `docs/bpl.md`.
///
/// # Examples
/// ```
/// use lockwright_locks::{Bpl, Priority, Slot, SpinLock};
///
/// static STATE: SpinLock<Bpl<8>, u32> = SpinLock::new(0);
/// let slot = Slot::claim().expect("fewer than 64 threads have one");
/// *STATE.lock_with((&slot, Priority(7))) += 1;
/// ```
///
/// Slots that do not fit do not compile:
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
    looks: tests::Looks,
}

/// What every acquire and release touches.
#[derive(Debug)]
struct Door<W: Word> {
    waiters: W::Atomic,
    batch: W::Atomic,
    status: W::Atomic,
}

/// What waiters touch only.
#[derive(Debug)]
struct Barriers<W: Word> {
    barrier: [W::Atomic; 2],
    settling: [W::Atomic; 2],
}

/// An atomic word with all bits set, constant except in a model.
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
        // As many bits as it takes to count to SLOTS.
        let count_bits = usize::BITS - SLOTS.leading_zeros();
        Rules { id_bits: W::BITS - count_bits, bits: W::BITS, version: Version::Repaired }
    };

    constructor! {
        fn new() -> Self {
            let _ = Self::RULES;
            Self {
                door: CachePadded::new(Door { waiters: zeros!(W), batch: zeros!(W), status: zeros!(W) }),
                barriers: CachePadded::new(Barriers { barrier: [ones!(W), ones!(W)], settling: [zeros!(W), zeros!(W)] }),
                relax: PhantomData,
                #[cfg(test)]
                looks: tests::Looks::NONE,
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

    /// Less is more urgent, and all ones is nobody.
    #[inline]
    fn level(priority: Priority) -> u64 {
        u64::from(u32::MAX - priority.0).min(Self::RULES.nobody() - 1)
    }

    /// The steps up to [`At::Count`], written out: one locked instruction where the lock is free.
    #[inline]
    fn enter_at_once(&self) -> bool {
        // ORDERING: Acquire pairs with the Release of `release`. That nobody waits is as true as it was a moment ago, whatever the order: who counts
        // itself after this look comes after it. But a core may look ahead of a section of its own that just ended: who counted itself
        // during that one is passed by another then.
        if Self::RULES.is_past_half(self.door.batch.load(Ordering::Relaxed)) {
            return self.enter_and_restart();
        }
        self.door.waiters.load(Ordering::Relaxed) == 0
            && self.door.status.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// The same by the steps: half of the ids are used up, so they begin anew if nobody waits.
    ///
    /// The original does so at every acquire, for which it needs a locked instruction more.
    #[cold]
    fn enter_and_restart(&self) -> bool {
        // ORDERING: a release of this thread is seen before its next look at the waiters: who drew a batch before that release
        // and is not yet seen to wait makes the exchange fail.
        fence(Ordering::SeqCst);
        let mut contender = Contender::new(At::ReadBatch, 0, 0);
        // BOUND: four steps.
        while contender.at != At::Count {
            if contender.step(self) == Outcome::Taken {
                return true;
            }
        }
        false
    }
}

/// The words of the lock, for the steps.
///
/// ORDERING: the steps are searched in sequentially consistent memory, and executed so: each waiter writes one word and reads another, and no two may miss each
/// other. Exclusion does not rest on it: `status` alone is acquired and released.
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
    /// Waits by the steps; whether the lock was taken before the deadline.
    #[cold]
    fn wait(&self, (slot, priority): (&Slot, Priority), mut deadline: impl Deadline) -> bool {
        let mut relax = R::default();
        slot.while_it_waits(|| {
            let contender = Contender::new(At::Count, 1 << slot.index(), Self::level(priority));
            let mut waiter = Waiter { lock: self, slot, contender };
            // BOUND: of waits, see the type; of steps between two of them, one way through the stages, fifteen. Where the deadline passes, five more.
            loop {
                match waiter.contender.step(self) {
                    Outcome::Goes => {}
                    Outcome::Waits => {
                        #[cfg(test)]
                        self.looks.look(slot.index());
                        if deadline.passed() {
                            waiter.contender.give_up(Self::RULES);
                        } else {
                            relax.relax();
                        }
                    }
                    Outcome::Taken | Outcome::Outside => break,
                }
            }
            #[cfg(test)]
            self.looks.end(slot.index());
            let is_in = waiter.contender.at == At::Inside;
            core::mem::forget(waiter);
            is_in
        })
    }
}

/// One that waits. It is dropped only where a deadline or a `relax` panics: then it gives up.
struct Waiter<'a, const SLOTS: usize, W: Word, R> {
    lock: &'a Bpl<SLOTS, W, R>,
    slot: &'a Slot,
    contender: Contender,
}

impl<const SLOTS: usize, W: Word, R> Drop for Waiter<'_, SLOTS, W, R> {
    fn drop(&mut self) {
        self.contender.give_up(Bpl::<SLOTS, W, R>::RULES);
        // BOUND: five steps.
        while self.contender.step(self.lock) != Outcome::Outside {}
        self.slot.has_left();
    }
}

// SAFETY: an exchange of `status` from 0 is the only way to acquire, and nobody but the holder writes 0.
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
        // The steps from `At::Inside`, written out. Who joins between load and store has drawn the id that ends here; what is lost is its
        // count, which a new batch begins without.
        // ORDERING: Release pairs with the Acquire of whoever takes `status`. A batch ends after its section and before the lock is free.
        let batch = self.door.batch.load(Ordering::Relaxed);
        self.door.batch.store(Self::RULES.next(batch), Ordering::Release);
        self.door.status.store(0, Ordering::Release);
    }
}

// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl<const SLOTS: usize, W: Word, R: Relax> Abortable for Bpl<SLOTS, W, R> {
    #[inline]
    fn acquire_until(&self, request: (&Slot, Priority), deadline: impl Deadline) -> Option<()> {
        request.0.below(SLOTS);
        (self.enter_at_once() || self.wait(request, deadline)).then_some(())
    }
}
