//! The queue lock of Mellor-Crummey and Scott: FIFO, each waiter spins on its own line.
//!
//! ```text
//!   tail   acquire at slot s                     release at slot s
//!   none   -> s: mine                            -
//!   s      -                                     -> none, unless somebody asks
//!   t      -> s, t.next -> s, looks at s.waits   s.next.waits -> 0
//! ```
//! A queue of three, the first of which holds:
//! ```text
//!            next       next
//!   [holder] ---> [  ] ---> [  ] <--- tail
//! ```
//! Between the two writes of a request, tail and link, the queue is broken in two; who releases then waits for the link.

use crate::sync::{AtomicU32, array, constructor, free_by_new};
use crate::{Algorithm, Priority, Relax, SLOTS_MAX, Slot, Spin};
use core::marker::PhantomData;
use core::sync::atomic::Ordering;
use crossbeam_utils::CachePadded;

/// Nobody. Slot `s` is `s + 1`.
const NONE: u32 = 0;

/// The queue lock of Mellor-Crummey and Scott: first come, first served, each waiter on a line of its own.
///
/// A release touches the line of one waiter, however many there are.
///
/// A slot whose guard was leaked and that asks again waits for ever, and so do all others: the lock is held, and nobody is left to
/// release it.
///
/// # Bound
/// The critical sections of those who asked before: at most m − 1 with m cores, none of them preempted. A release waits for one
/// store at most, of who asks at that moment.
///
/// # Reference
/// J. Mellor-Crummey, M. Scott: Algorithms for scalable synchronization on shared-memory multiprocessors, ACM TOCS 9(1), 1991.
///
/// # Examples
/// ```
/// use lockwright_locks::{Mcs, Slot, SpinLock};
///
/// static COUNT: SpinLock<Mcs<8>, u32> = SpinLock::new(0);
/// let slot = Slot::claim().expect("fewer than 64 threads have one");
/// *COUNT.lock_with(&slot) += 1;
/// ```
/// More than 64 slots, or none, do not compile:
/// ```compile_fail
/// use lockwright_locks::{Mcs, SpinLock};
///
/// static COUNT: SpinLock<Mcs<65>, u32> = SpinLock::new(0);
/// ```
#[derive(Debug)]
pub struct Mcs<const SLOTS: usize, R = Spin> {
    tail: CachePadded<AtomicU32>,
    nodes: [CachePadded<Node>; SLOTS],
    relax: PhantomData<fn() -> R>,
}

#[derive(Debug)]
struct Node {
    /// Who comes after.
    next: AtomicU32,
    /// 1 until the lock is handed over.
    waits: AtomicU32,
}

impl Node {
    constructor! {
        fn new() -> Self {
            Self { next: AtomicU32::new(NONE), waits: AtomicU32::new(0) }
        }
    }
}

impl<const SLOTS: usize, R> Mcs<SLOTS, R> {
    constructor! {
        fn new() -> Self {
            const { assert!(1 <= SLOTS && SLOTS <= SLOTS_MAX, "a lock has 1 to SLOTS_MAX slots") };
            Self {
                tail: CachePadded::new(AtomicU32::new(NONE)),
                nodes: array!(CachePadded::new(Node::new())),
                relax: PhantomData,
            }
        }
    }

    #[inline]
    fn node(&self, name: u32) -> &Node {
        &self.nodes[name as usize - 1]
    }
}

impl<const SLOTS: usize, R: Relax> Mcs<SLOTS, R> {
    /// `t -> s, t.next -> s`, then looks at `s.waits`.
    #[cold]
    fn queue_behind(&self, slot: &Slot, before: u32, name: u32) {
        let node = self.node(name);
        node.waits.store(1, Ordering::Relaxed);
        // ORDERING: Release pairs with the Acquire of the one before: its 0 in `waits` comes after this 1.
        self.node(before).next.store(name, Ordering::Release);
        // ORDERING: Acquire pairs with the Release of the hand-off.
        // BOUND: the sections of those who asked before.
        slot.wait_until::<R>(|| node.waits.load(Ordering::Acquire) == 0);
    }

    /// `s.next.waits -> 0`.
    #[cold]
    fn hand_over(&self, node: &Node) {
        let mut relax = R::default();
        let next = loop {
            // ORDERING: Acquire pairs with the Release of the link.
            // BOUND: one store of the next waiter, which has changed the tail.
            match node.next.load(Ordering::Acquire) {
                NONE => relax.relax(),
                next => break next,
            }
        };
        // ORDERING: Release pairs with the Acquire of the waiter.
        self.node(next).waits.store(0, Ordering::Release);
    }
}

// SAFETY: who finds no tail is alone; all others are let in by the one before, once, at its release. A node is in the queue once: a
// slot asks from one place at a time, and where a guard was leaked nobody is let in any more.
#[allow(unsafe_code)]
unsafe impl<const SLOTS: usize, R: Relax> Algorithm for Mcs<SLOTS, R> {
    type Request<'r> = &'r Slot;
    /// The holder's name.
    type Hold = u32;

    free_by_new!();

    fn request(slot: &Slot, _: Priority) -> &Slot {
        slot
    }

    #[inline]
    fn acquire(&self, slot: &Slot) -> u32 {
        let name = slot.below(SLOTS) as u32 + 1;
        self.node(name).next.store(NONE, Ordering::Relaxed);
        // ORDERING: Release pairs with the Acquire of who comes after: its link comes after this NONE. Acquire pairs with the
        // Release of `release`, and with that of the one before.
        let before = self.tail.swap(name, Ordering::AcqRel);
        if before != NONE {
            self.queue_behind(slot, before, name);
        }
        name
    }

    #[inline]
    fn try_acquire(&self, slot: &Slot) -> Option<u32> {
        let name = slot.below(SLOTS) as u32 + 1;
        // While there is a tail, a node may be in use: that of a leaked guard too.
        if self.tail.load(Ordering::Relaxed) != NONE {
            return None;
        }
        self.node(name).next.store(NONE, Ordering::Relaxed);
        // ORDERING: as in `acquire`.
        self.tail.compare_exchange(NONE, name, Ordering::AcqRel, Ordering::Relaxed).ok().map(|_| name)
    }

    #[inline]
    unsafe fn release(&self, name: u32) {
        let node = self.node(name);
        // ORDERING: Release pairs with the Acquire of who finds no tail.
        if node.next.load(Ordering::Relaxed) != NONE
            || self.tail.compare_exchange(name, NONE, Ordering::Release, Ordering::Relaxed).is_err()
        {
            self.hand_over(node);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{self, Probe};

    impl<const SLOTS: usize, R: Relax> Probe for Mcs<SLOTS, R> {
        fn has_asked(&self, slot: usize, _: usize) -> bool {
            self.tail.load(Ordering::Relaxed) as usize == slot + 1
        }
    }

    testing::exclusion!(Mcs<16, testing::Patient>);
    testing::order!(Mcs<16, testing::Patient>, Order::Fifo);
    testing::orderings!(Mcs<16, testing::Patient>, []);
}
