//! The batched lock: FIFO across batches, priority inside one, under every interleaving.
//!
//! Who asks during one critical section is a batch; its end closes the batch. The first batch is served first, and in it the most
//! urgent. The end of a section does the sorting, by handing the lock over.
//!
//! ```text
//!   taken     0 free, nobody queued     1 held, or on its way to somebody
//!   arrivals  a bit a slot: has asked since the last batch was closed
//!   batches   who waits, in sets, first come first: touched by the one that has the lock only
//!   place[i]  OUT      waits for nothing; to one that waits: the lock is yours
//!             WAITING  in the arrivals or in a batch
//!             ABANDONED  gave up, and is there still
//!
//!   acquire   taken 0 -> 1: held.                        One locked operation.
//!             else place WAITING, arrivals |= mine; until place is OUT: should taken be 0, take it, and hand over as below
//!   gives up  place WAITING -> ABANDONED; who asks again before its place is reached has it again, who finds taken 0 takes its bit back
//!   release   nobody queued, arrivals 0: taken 0.        No locked operation.
//!             else arrivals become a batch; the most urgent of the first batch is taken out, its place set OUT; ABANDONED: the next
//! ```
//! A release that sees no arrivals and one that arrives meanwhile can miss each other; then the lock is free, the waiter sees that and
//! takes it, not to enter but to hand it to whoever is first: itself, or another that came with it. So a plain store is enough to release.
//!
//! # Why nobody waits for more than m − 1 sections
//! A slot is queued from its arrival (`arrivals |= mine`) until its bit is taken out, by a grant or by itself; so it is while it has given up. Let W be
//! queued, and J be another slot.
//!
//! 1. *Who is inside is not queued.* A grant took its bit out. Or it found the lock free: then there was no batch (2), so a bit of its
//!    own, left where it gave up, was in the arrivals, and it took it back before it entered.
//! 2. *While W is in a batch, the lock is never free*: it is freed only when no batch is left. So nobody enters past the batches, and
//!    each entry is a grant, first batch first.
//! 3. *The first section that ends after W arrived puts W into a batch, if it is not in one yet*: its end reads the arrivals
//!    after the section, and W's bit is there or was taken into a batch before.
//! 4. *After the first section of J that ends after W arrived, J does not come before W.* By 3 W is in a batch when it has ended, and by 1 J is
//!    not queued. Its next request arrives after that, so it goes into a later batch than W's; by 2 it does not enter otherwise.
//!
//! So at most one section of each other slot goes on between W's arrival and its grant: m − 1 with m slots, whatever the speed of each
//! core. Where W gives up and has its place again, that is counted from its first arrival on. `search.rs` holds this, and the order of
//! batches and inside them, against every interleaving of three slots and of four.
//!
//! A holder that asks for the lock it holds, and gives up, is queued while it is inside, against 1: it may come before W once more.
//!
//! Time is counted from when W's bit is seen. A core that has executed the end of its section in part, ahead of what it had to wait for, may have
//! looked at the arrivals a store's way (well below a microsecond) before the end: then W arrived, by that much, after it.
//!
//! There is no batch number, so none runs out: the order of the batches is their place in a ring of `SLOTS`, and as they are disjoint and not
//! empty, there are never more.

mod steps;

#[cfg(all(test, not(any(lockwright_loom, lockwright_shuttle))))]
mod search;

use crate::sync::{AtomicU32, array, constructor, fence, free_by_new};
use crate::word::{AtomicWord, zeros};
use crate::{Abortable, Algorithm, Deadline, Priority, Relax, Slot, Spin, Word};
use core::marker::PhantomData;
use core::sync::atomic::Ordering;
use crossbeam_utils::CachePadded;
use steps::{ABANDONED, At, Contender, Memory, OUT, Outcome, WAITING};

/// First the batch of those who asked during one critical section, then that of the next; inside a batch the most urgent.
///
/// `SLOTS` is at most the bits of `W`. A waiter spins on a line of its own and on one that is written only when the lock gets free.
/// Waiters can give up; one that does and asks again before its place was reached has that place again.
///
/// Each place has a pair of cache lines of its own: with 8 slots a lock takes 1,280 bytes on x86-64, with 64 slots 8,960.
///
/// # Bound
/// To acquire: at most `SLOTS − 1` critical sections of others, one of each, and as many hand-offs; under every interleaving
/// and with cores of any speeds, if holders and waiters are not preempted. Among the requests made during one
/// section the more urgent wait less.
///
/// To release: one look at the priority of each member of the first batch, and again for each that is taken out having given up; at most
/// `SLOTS × (SLOTS + 1) / 2` looks and `SLOTS` grants, 2,080 and 64 with 64 slots.
///
/// A holder that asks for the lock it holds, with a deadline, gives up as others do, but may pass a waiter twice.
///
/// # Reference
/// The promise is that of the paper "Bounded Priority-Aware Locking for Real-Time Kernels"; the algorithm is not. See `docs/batched.md`.
///
/// # Examples
/// ```
/// use lockwright_locks::{Batched, Priority, Slot, SpinLock};
///
/// static STATE: SpinLock<Batched<8>, u32> = SpinLock::new(0);
/// let slot = Slot::claim().expect("fewer than 64 threads have one");
/// *STATE.lock_with((&slot, Priority(7))) += 1;
/// ```
#[derive(Debug)]
pub struct Batched<const SLOTS: usize, W: Word = usize, R = Spin> {
    /// Written when the lock is taken while free, and when it gets free: quiet while it is handed over.
    taken: CachePadded<AtomicU32>,
    queue: CachePadded<Queue<SLOTS, W>>,
    places: [CachePadded<Place>; SLOTS],
    relax: PhantomData<fn() -> R>,
}

#[derive(Debug)]
struct Queue<const SLOTS: usize, W: Word> {
    arrivals: W::Atomic,
    /// Of the one that has the lock, as is the rest.
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
                taken: CachePadded::new(AtomicU32::new(0)),
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

    /// The steps from `Test` to `Own`, straight: the way of a lock that nobody else wants.
    #[inline]
    fn take_if_free(&self, slot: usize) -> bool {
        let takes = !self.is_taken() && self.take();
        if takes && self.state(slot) == ABANDONED {
            self.retract(slot);
        }
        takes
    }

    /// `Collect`, `Choose` and `Free` of the steps, straight, where nobody waits.
    #[inline]
    fn free_if_nobody_waits(&self) -> bool {
        // ORDERING: the section's reads come before the look at the arrivals, so that it is the end of the section that looks.
        fence(Ordering::Acquire);
        let nobody = self.queue.count.load(Ordering::Relaxed) == 0 && self.arrivals() == 0;
        if nobody {
            self.free();
        }
        nobody
    }

    /// BOUND: see the type.
    #[cold]
    fn hand_over(&self) {
        let mut contender = Contender::gives_back();
        while contender.step(self) != Outcome::Gone {}
    }

    /// The holder goes.
    #[inline]
    fn give_back(&self) {
        if !self.free_if_nobody_waits() {
            self.hand_over();
        }
    }
}

impl<const SLOTS: usize, W: Word, R> Memory for Batched<SLOTS, W, R> {
    #[inline]
    fn arrivals(&self) -> u64 {
        // ORDERING: nothing is read by it; who finds a bit takes it with Acquire.
        self.queue.arrivals.load(Ordering::Relaxed)
    }

    #[inline]
    fn arrive(&self, slot: usize) {
        // ORDERING: Release pairs with the Acquire of `take_arrivals`: the place is WAITING, with its priority, to whoever finds the bit.
        self.queue.arrivals.fetch_or(1 << slot, Ordering::Release);
    }

    #[inline]
    fn take_arrivals(&self) -> u64 {
        // ORDERING: Acquire pairs with the Release of `arrive`.
        self.queue.arrivals.swap(0, Ordering::Acquire)
    }

    #[inline]
    fn is_taken(&self) -> bool {
        self.taken.load(Ordering::Relaxed) != 0
    }

    #[inline]
    fn take(&self) -> bool {
        // ORDERING: Acquire pairs with the Release of `free`.
        self.taken.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    #[inline]
    fn free(&self) {
        // ORDERING: Release pairs with the Acquire of `take`.
        self.taken.store(0, Ordering::Release);
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
        // Whoever chooses now may see the priority before or the new one.
        self.places[slot].priority.store(priority, Ordering::Relaxed);
        self.places[slot].state.compare_exchange(ABANDONED, WAITING, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    fn abandon(&self, slot: usize) -> u32 {
        // ORDERING: where the lock came instead, Acquire pairs with the Release of `grant`.
        let state = &self.places[slot].state;
        match state.compare_exchange(WAITING, ABANDONED, Ordering::Relaxed, Ordering::Acquire) {
            Ok(was) | Err(was) => was,
        }
    }

    #[cold]
    fn retract(&self, slot: usize) {
        // ORDERING: of what was written before the other bits came, this exchange takes nothing away: it goes on with their Release.
        self.queue.arrivals.fetch_and(!(1 << slot), Ordering::Relaxed);
        self.places[slot].state.store(OUT, Ordering::Relaxed);
    }

    #[inline]
    fn grant(&self, slot: usize) -> u32 {
        // ORDERING: Release pairs with the Acquire of `state`: the next holder sees the sections before, and the batches.
        self.places[slot].state.swap(OUT, Ordering::Release)
    }

    #[inline]
    fn priority(&self, slot: usize) -> u32 {
        self.places[slot].priority.load(Ordering::Relaxed)
    }

    // Of the batches each access is Relaxed: the lock orders them.

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
    /// Queues up and waits. Says whether the lock came.
    ///
    /// BOUND: `SLOTS - 1` sections, or the deadline; see the head of the file.
    #[cold]
    fn wait(&self, slot: &Slot, priority: u32, deadline: &mut impl Deadline) -> bool {
        let mut relax = R::default();
        slot.while_it_waits(|| {
            let waiter = Waiter { lock: self, slot };
            let mut contender = Contender::asks(slot.index(), priority, At::Resume);
            let came = loop {
                match contender.step(self) {
                    Outcome::Steps => {}
                    Outcome::Spins if deadline.passed() => contender.at = At::Abandon,
                    Outcome::Spins => relax.relax(),
                    Outcome::Holds => break true,
                    Outcome::Gone => break false,
                }
            };
            core::mem::forget(waiter);
            came
        })
    }
}

/// A request that is queued. It is dropped only where a deadline or a `relax` panics: then it is given up.
struct Waiter<'a, const SLOTS: usize, W: Word, R> {
    lock: &'a Batched<SLOTS, W, R>,
    slot: &'a Slot,
}

impl<const SLOTS: usize, W: Word, R> Drop for Waiter<'_, SLOTS, W, R> {
    fn drop(&mut self) {
        let mut contender = Contender::asks(self.slot.index(), 0, At::Abandon);
        if contender.step(self.lock) == Outcome::Holds {
            self.lock.give_back();
        }
        self.slot.has_left();
    }
}

// SAFETY: `taken` goes from 0 to 1 by an exchange, and back by whoever has the lock; between, the right passes on by `grant`, which takes each slot out of
// the batches before, so that it gives the lock to one. Of a slot one
// request waits at a time, as `Slot` sees to, so a grant is found by one.
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
        if !self.take_if_free(slot.below(SLOTS)) {
            self.wait(slot, priority.0, &mut || false);
        }
    }

    #[inline]
    fn try_acquire(&self, (slot, _): (&Slot, Priority)) -> Option<()> {
        self.take_if_free(slot.below(SLOTS)).then_some(())
    }

    #[inline]
    unsafe fn release(&self, (): ()) {
        self.give_back();
    }
}

// SAFETY: as above. Who gives up and was granted the lock meanwhile has it.
#[allow(unsafe_code)]
unsafe impl<const SLOTS: usize, W: Word, R: Relax> Abortable for Batched<SLOTS, W, R> {
    fn acquire_until(&self, (slot, priority): (&Slot, Priority), mut deadline: impl Deadline) -> Option<()> {
        (self.take_if_free(slot.below(SLOTS)) || self.wait(slot, priority.0, &mut deadline)).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{self, Probe};

    impl<const SLOTS: usize, W: Word, R: Relax> Probe for Batched<SLOTS, W, R> {
        fn has_asked(&self, slot: usize, _: usize) -> bool {
            self.arrivals() & 1 << slot != 0
        }
    }

    testing::exclusion!(Batched<8, usize, testing::Patient>, 3, 2);
    testing::order!(Batched<16, usize, testing::Patient>, Order::Batched);
    testing::abort!(Batched<8, usize, testing::Patient>);

    #[cfg(all(target_arch = "x86_64", not(any(lockwright_loom, lockwright_shuttle))))]
    #[test]
    fn a_lock_has_the_size_it_says() {
        assert_eq!((size_of::<Batched<8>>(), size_of::<Batched<64>>()), (1_280, 8_960));
    }

    mod with_32_bits {
        use super::*;
        testing::exclusion!(Batched<32, u32, testing::Patient>, 3, 2);
        testing::order!(Batched<32, u32, testing::Patient>, Order::Batched);
    }
}
