//! The batched lock: FIFO across batches and priority order inside one, under every interleaving.
//!
//! The requests that arrive during one critical section form a batch, which the end of the section closes.
//! The first batch is served first, and in it the most urgent request.
//! The end of a section sorts the requests when it hands the lock over.
//!
//! ```text
//!   locked    0 free, no slot queued        1 held, or being handed over
//!   arrivals  the slots that arrived since the last batch was closed, a bit each
//!   batches   sets of waiting slots in order; only the owner of the lock accesses them
//!   place[i]  OUT        waits for nothing; to a waiter: the lock is granted
//!             WAITING    in the arrivals or in a batch
//!             ABANDONED  gave up and is still there
//!
//!   acquire   locked 0 -> 1: held.                        One locked operation.
//!             else place WAITING, arrivals |= mine; until place is OUT:
//!             if locked is 0, lock it, and hand over as below
//!   give up   place WAITING -> ABANDONED; a new request before the place is reached recovers it;
//!             a request that finds locked 0 removes its bit
//!   release   no slot queued, arrivals 0: locked 0.       No locked operation.
//!             else the arrivals become a batch; the most urgent slot of the first batch is removed, its place set OUT;
//!             if it was ABANDONED, the next one
//! ```
//! A release that sees no arrivals, and a slot that arrives meanwhile, can miss each other.
//! The waiter then sees that the lock is free.
//! It takes the lock, and hands it to the first slot in order: itself, or another slot that arrived with it.
//! A release therefore needs only a plain store.
//!
//! # Why no slot waits for more than m − 1 sections
//! A slot is queued from its arrival (`arrivals |= mine`) until its bit is removed, by a grant or by itself.
//! A slot that has given up is still queued. Let W be a queued slot, and J another slot.
//!
//! 1. *The holder is not queued.* A grant removed its bit. Or it found the lock free: then there was no batch (2), so a
//!    bit that it left when it gave up was in the arrivals, and it removed that bit before it entered.
//! 2. *While W is in a batch, the lock is never free.* The lock is freed only when no batch is left. So no slot enters
//!    past the batches, and each entry is a grant, first batch first.
//! 3. *The first section that ends after W arrived puts W into a batch, if it is not in one.* Its end reads the
//!    arrivals after the section; the bit of W is there, or was moved into a batch before.
//! 4. *After the first section of J that ends after W arrived, J does not enter before W.* By 3 W is in a batch when
//!    that section has ended, and by 1 J is not queued. The next request of J arrives later, so it joins a later batch
//!    than W's; by 2 it does not enter otherwise.
//!
//! At most one section of each other slot therefore executes between W's arrival and its grant: m − 1 with m slots,
//! whatever the speed of each core. If W gives up and recovers its place, the count begins at its first arrival.
//! The search checks this for every interleaving of three and of four slots, together with the order of and inside
//! batches.
//!
//! A holder that requests the lock it holds, and gives up, is queued while it is inside, against 1. It may enter before
//! W once more.
//!
//! The bound counts from the time when W's bit is seen. A core may execute the end of its section partly ahead of an
//! earlier store, and so read the arrivals earlier by the delay of a store, well below a microsecond. W then arrived
//! after the end by that much.
//!
//! There are no batch numbers that could overflow. The order of the batches is their position in a ring of `SLOTS`;
//! they are disjoint and not empty, so there are never more.

mod steps;

#[cfg(all(test, not(any(lockwright_loom, lockwright_shuttle))))]
mod equivalence;
#[cfg(all(test, not(any(lockwright_loom, lockwright_shuttle))))]
mod search;

use crate::sync::{AtomicU32, array, constructor, fence, free_by_new};
use crate::word::{AtomicWord, zeros};
use crate::{Abortable, Algorithm, Deadline, Priority, Relax, Slot, Spin, Word};
use core::marker::PhantomData;
use core::sync::atomic::Ordering;
use crossbeam_utils::CachePadded;
use steps::{ABANDONED, At, Contender, Memory, OUT, Outcome, WAITING};

/// The batched lock: FIFO across batches and priority order inside one.
///
/// The requests that arrive during one critical section form a batch. The most urgent request of a batch is served
/// first.
///
/// `SLOTS` is at most the number of bits of `W`.
/// A waiter spins on its own cache line, and on one that is written only when the lock becomes free.
/// Waiters can give up. A waiter that does so and requests the lock again before its place was reached recovers that
/// place.
///
/// Each place has a pair of cache lines: a lock takes 1,280 bytes with 8 slots on x86-64, and 8,960 with 64.
///
/// # Bound
/// - To acquire: at most `SLOTS − 1` critical sections of others, one of each, and as many hand-offs.
///   The bound holds under every interleaving and with cores of any speeds, if holders and waiters are not preempted.
///   Among the requests during one section, the more urgent ones wait less.
/// - To release: one read of the priority of each member of the first batch, repeated for each removed slot that had
///   given up.
///   That is at most `SLOTS × (SLOTS + 1) / 2` reads and `SLOTS` grants, 2,080 and 64 with 64 slots.
///
/// A holder that requests the lock it holds, with a deadline, gives up as others do, but may pass a waiter twice.
///
/// # Reference
/// The guarantee is that of the paper "Bounded Priority-Aware Locking for Real-Time Kernels". The algorithm
/// differs: see `docs/batched.md`.
///
/// # Examples
/// ```
/// use lockwright_locks::{Batched, Priority, Slot, SpinLock};
///
/// static STATE: SpinLock<Batched<8>, u32> = SpinLock::new(0);
/// let slot = Slot::claim().expect("fewer than 64 threads have a slot");
/// *STATE.lock_with((&slot, Priority::new(7))) += 1;
/// ```
#[derive(Debug)]
pub struct Batched<const SLOTS: usize, W: Word = usize, R = Spin> {
    /// It is written when a free lock is locked and when the lock becomes free, not at a hand-over.
    locked: CachePadded<AtomicU32>,
    queue: CachePadded<Queue<SLOTS, W>>,
    places: [CachePadded<Place>; SLOTS],
    relax: PhantomData<fn() -> R>,
}

#[derive(Debug)]
struct Queue<const SLOTS: usize, W: Word> {
    arrivals: W::Atomic,
    /// Only the owner of the lock accesses the fields from here on.
    first: AtomicU32,
    count: AtomicU32,
    ring: [W::Atomic; SLOTS],
}

#[derive(Debug)]
struct Place {
    state: AtomicU32,
    priority: AtomicU32,
}

impl<const SLOTS: usize, W: Word, R> Batched<SLOTS, W, R> {
    const FITS: () = {
        assert!(SLOTS >= 1, "a lock has at least one slot");
        assert!(SLOTS <= W::BITS as usize, "a lock has at most as many slots as its word has bits");
    };

    constructor! {
        fn new() -> Self {
            let () = Self::FITS;
            Self {
                locked: CachePadded::new(AtomicU32::new(0)),
                queue: CachePadded::new(Queue {
                    arrivals: zeros!(W),
                    first: AtomicU32::new(0),
                    count: AtomicU32::new(0),
                    ring: array!(zeros!(W)),
                }),
                places: array!(CachePadded::new(Place { state: AtomicU32::new(OUT), priority: AtomicU32::new(0) })),
                relax: PhantomData,
            }
        }
    }

    /// Executes the steps from `Test` to `Own` in a straight line, for a lock without contention.
    #[inline]
    fn lock_if_free(&self, slot: usize) -> bool {
        let is_locked_now = !self.is_locked() && self.try_lock();
        if is_locked_now && self.state(slot) == ABANDONED {
            self.retract(slot);
        }
        is_locked_now
    }

    /// Executes `Collect`, `Choose` and `Free` in a straight line, if no slot waits.
    #[inline]
    fn unlock_if_no_slot_waits(&self) -> bool {
        // ORDERING: the reads of the section come before the check of the arrivals, so that the end of the section
        // makes the check.
        fence(Ordering::Acquire);
        let no_slot_waits = self.queue.count.load(Ordering::Relaxed) == 0 && self.arrivals() == 0;
        if no_slot_waits {
            self.unlock();
        }
        no_slot_waits
    }

    /// Hands the lock over.
    ///
    /// BOUND: see the type.
    #[cold]
    fn hand_over(&self) {
        let mut contender = Contender::releases();
        while contender.step(self) != Outcome::Gone {}
    }

    /// Ends the section of the holder.
    #[inline]
    fn unlock_or_hand_over(&self) {
        if !self.unlock_if_no_slot_waits() {
            self.hand_over();
        }
    }
}

impl<const SLOTS: usize, W: Word, R> Memory for Batched<SLOTS, W, R> {
    #[inline]
    fn arrivals(&self) -> u64 {
        // ORDERING: Relaxed: `take_arrivals` acquires the bits that are found here.
        self.queue.arrivals.load(Ordering::Relaxed)
    }

    #[inline]
    fn arrive(&self, slot: usize) {
        // ORDERING: Release pairs with the Acquire of `take_arrivals`: a contender that finds the bit sees WAITING and
        // the priority.
        self.queue.arrivals.fetch_or(1 << slot, Ordering::Release);
    }

    #[inline]
    fn take_arrivals(&self) -> u64 {
        // ORDERING: Acquire pairs with the Release of `arrive`.
        self.queue.arrivals.swap(0, Ordering::Acquire)
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.locked.load(Ordering::Relaxed) != 0
    }

    #[inline]
    fn try_lock(&self) -> bool {
        // ORDERING: Acquire pairs with the Release of `unlock`.
        self.locked.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    #[inline]
    fn unlock(&self) {
        // ORDERING: Release pairs with the Acquire of `try_lock`.
        self.locked.store(0, Ordering::Release);
    }

    #[inline]
    fn state(&self, slot: usize) -> u32 {
        // ORDERING: Acquire pairs with the Release of `grant`.
        self.places[slot].state.load(Ordering::Acquire)
    }

    #[inline]
    fn enlist(&self, slot: usize, priority: u32) {
        self.places[slot].priority.store(priority, Ordering::Relaxed);
        self.places[slot].state.store(WAITING, Ordering::Relaxed);
    }

    fn rejoin(&self, slot: usize, priority: u32) -> bool {
        // A concurrent choice may see the former or the new priority.
        self.places[slot].priority.store(priority, Ordering::Relaxed);
        self.places[slot].state.compare_exchange(ABANDONED, WAITING, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    fn abandon(&self, slot: usize) -> u32 {
        // ORDERING: if the lock was granted instead, Acquire pairs with the Release of `grant`.
        let state = &self.places[slot].state;
        match state.compare_exchange(WAITING, ABANDONED, Ordering::Relaxed, Ordering::Acquire) {
            Ok(was) | Err(was) => was,
        }
    }

    #[cold]
    fn retract(&self, slot: usize) {
        // ORDERING: Relaxed: the exchange continues the release sequences of the other bits, so it removes nothing that
        // their slots wrote.
        self.queue.arrivals.fetch_and(!(1 << slot), Ordering::Relaxed);
        self.places[slot].state.store(OUT, Ordering::Relaxed);
    }

    #[inline]
    fn grant(&self, slot: usize) -> u32 {
        // ORDERING: Release pairs with the Acquire of `state`: the next holder sees the earlier sections and the
        // batches.
        self.places[slot].state.swap(OUT, Ordering::Release)
    }

    #[inline]
    fn priority(&self, slot: usize) -> u32 {
        self.places[slot].priority.load(Ordering::Relaxed)
    }

    // The accesses to the batches are Relaxed: the lock orders them.

    fn push(&self, batch: u64) {
        let queue = &self.queue;
        let count = queue.count.load(Ordering::Relaxed);
        let last = (queue.first.load(Ordering::Relaxed) + count) as usize % SLOTS;
        queue.ring[last].store(batch, Ordering::Relaxed);
        queue.count.store(count + 1, Ordering::Relaxed);
    }

    #[inline]
    fn front(&self) -> Option<u64> {
        let queue = &self.queue;
        (queue.count.load(Ordering::Relaxed) != 0)
            .then(|| queue.ring[queue.first.load(Ordering::Relaxed) as usize % SLOTS].load(Ordering::Relaxed))
    }

    #[inline]
    fn remove(&self, slot: usize) {
        let queue = &self.queue;
        let first = queue.first.load(Ordering::Relaxed);
        let batch = &queue.ring[first as usize % SLOTS];
        let rest = batch.load(Ordering::Relaxed) & !(1 << slot);
        batch.store(rest, Ordering::Relaxed);
        if rest == 0 {
            queue.first.store((first + 1) % SLOTS as u32, Ordering::Relaxed);
            queue.count.store(queue.count.load(Ordering::Relaxed) - 1, Ordering::Relaxed);
        }
    }
}

impl<const SLOTS: usize, W: Word, R: Relax> Batched<SLOTS, W, R> {
    /// Queues up and waits. Returns whether the lock was granted.
    ///
    /// BOUND: `SLOTS - 1` sections, or the deadline; see the head of the file.
    #[cold]
    fn wait(&self, slot: &Slot, priority: u32, deadline: &mut impl Deadline) -> bool {
        let mut relax = R::default();
        slot.while_waiting(|| {
            let waiter = Waiter { lock: self, slot };
            let mut contender = Contender::requests(slot.index(), priority, At::Resume);
            let is_granted = loop {
                match contender.step(self) {
                    Outcome::Steps => {}
                    Outcome::Spins if deadline.passed() => contender.at = At::Abandon,
                    Outcome::Spins => relax.relax(),
                    Outcome::Holds => break true,
                    Outcome::Gone => break false,
                }
            };
            core::mem::forget(waiter);
            is_granted
        })
    }
}

/// A queued request. It is dropped only if a deadline or a `relax` panics, and then gives up.
struct Waiter<'a, const SLOTS: usize, W: Word, R> {
    lock: &'a Batched<SLOTS, W, R>,
    slot: &'a Slot,
}

impl<const SLOTS: usize, W: Word, R> Drop for Waiter<'_, SLOTS, W, R> {
    fn drop(&mut self) {
        let mut contender = Contender::requests(self.slot.index(), 0, At::Abandon);
        if contender.step(self.lock) == Outcome::Holds {
            self.lock.unlock_or_hand_over();
        }
        self.slot.stop_waiting();
    }
}

// SAFETY: an exchange sets `locked` to 1, and only the owner of the lock clears it. Between these, `grant` passes the
// ownership on. It gives the lock to one slot, because it removes each slot from the batches first. A slot has one
// waiting request at a time, which `Slot` ensures, so one request finds the grant. Acquire and Release of `locked` and
// of the grant order the sections.
#[allow(unsafe_code)]
unsafe impl<const SLOTS: usize, W: Word, R: Relax> Algorithm for Batched<SLOTS, W, R> {
    type Request<'r> = (&'r Slot, Priority);
    type Hold = ();

    free_by_new!();

    fn request(slot: &Slot, priority: Priority) -> (&Slot, Priority) {
        (slot, priority)
    }

    #[inline]
    fn acquire(&self, (slot, priority): (&Slot, Priority)) {
        if !self.lock_if_free(slot.below(SLOTS)) {
            self.wait(slot, priority.get(), &mut || false);
        }
    }

    #[inline]
    fn try_acquire(&self, (slot, _): (&Slot, Priority)) -> Option<()> {
        self.lock_if_free(slot.below(SLOTS)).then_some(())
    }

    #[inline]
    unsafe fn release(&self, (): ()) {
        self.unlock_or_hand_over();
    }
}

// SAFETY: it acquires by the same exchange and grants. A request that was granted the lock while it gave up holds it.
#[allow(unsafe_code)]
unsafe impl<const SLOTS: usize, W: Word, R: Relax> Abortable for Batched<SLOTS, W, R> {
    fn acquire_until(&self, (slot, priority): (&Slot, Priority), mut deadline: impl Deadline) -> Option<()> {
        (self.lock_if_free(slot.below(SLOTS)) || self.wait(slot, priority.get(), &mut deadline)).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{self, Probe};

    impl<const SLOTS: usize, W: Word, R: Relax> Probe for Batched<SLOTS, W, R> {
        fn has_requested(&self, slot: usize, _: usize) -> bool {
            self.arrivals() & 1 << slot != 0
        }
    }

    testing::exclusion!(Batched<8, usize, testing::Patient>, 3, 2);
    testing::order!(Batched<16, usize, testing::Patient>, Order::Batched);
    testing::abort!(Batched<8, usize, testing::Patient>);

    #[cfg(all(target_arch = "x86_64", not(any(lockwright_loom, lockwright_shuttle))))]
    #[test]
    fn a_lock_has_its_documented_size() {
        assert_eq!((size_of::<Batched<8>>(), size_of::<Batched<64>>()), (1_280, 8_960));
    }

    mod with_32_bits {
        use super::*;
        testing::exclusion!(Batched<32, u32, testing::Patient>, 3, 2);
        testing::order!(Batched<32, u32, testing::Patient>, Order::Batched);
    }
}
