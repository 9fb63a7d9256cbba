//! The queue lock of Craig, and of Landin and Hagersten: FIFO, each waiter spins on the node of the one before.
//!
//! There is one node more than slots. Each slot owns one, the tail is the last one:
//! ```text
//!   acquire at slot s    own.held -> 1, tail -> own, looks until before.held is 0, then owns before
//!   release              the node it came with: held -> 0
//! ```
//! A queue of three, the first of which holds; links are known to the waiters only:
//! ```text
//!   [held]     <--- [held]     <--- [held] <--- tail
//!   of holder       of first        of second
//! ```
//! Nodes have generations, and so names that do not come back:
//! ```text
//!   bits of a name   | from 7     | 0 to 6 |
//!                    | generation | node   |
//! ```

use crate::sync::{AtomicU32, AtomicUsize, array, constructor, free_by_new};
use crate::{Algorithm, Priority, Relax, SLOTS_MAX, Slot, Spin};
use core::marker::PhantomData;
use core::sync::atomic::Ordering;
use crossbeam_utils::CachePadded;

const NODE_BITS: u32 = 7;
const NODE: usize = (1 << NODE_BITS) - 1;
const GENERATION: usize = 1 << NODE_BITS;

const _: () = assert!(SLOTS_MAX <= NODE, "a node more than slots has a number");

/// The queue lock of Craig, Landin and Hagersten: first come, first served, each waiter on the line of the one before.
///
/// A release is one store, without a wait and without a locked instruction.
///
/// A slot whose guard was leaked and that asks again waits for ever, and so do all others. It asks with another node: it owns the
/// one of its predecessor since it got in.
///
/// # Bound
/// The critical sections of those who asked before: at most m − 1 with m cores, none of them preempted.
///
/// [`SpinLock::try_lock_with`](crate::SpinLock::try_lock_with) never waits, as long as no node is used 2^(`usize::BITS` − 7) times,
/// each time in a critical section, between two of its steps; if one is, it waits as any other, and there is still one inside.
///
/// # Reference
/// T. Craig: Building FIFO and priority-queuing spin locks from atomic swap, TR 93-02-02, University of Washington, 1993.
/// P. Magnusson, A. Landin, E. Hagersten: Queue locks on cache coherent multiprocessors, IPPS 1994.
#[derive(Debug)]
pub struct Clh<const SLOTS: usize, R = Spin> {
    /// The name of the last node.
    tail: CachePadded<AtomicUsize>,
    /// The name of the node that each slot owns, xor the slot: so zeros are a start. Written by whoever has the slot.
    owned: [CachePadded<AtomicUsize>; SLOTS],
    nodes: [CachePadded<Node>; SLOTS],
    /// The node of number `SLOTS`, at first the last one.
    spare: CachePadded<Node>,
    relax: PhantomData<fn() -> R>,
}

#[derive(Debug)]
struct Node {
    held: AtomicU32,
}

impl Node {
    constructor! {
        fn new() -> Self {
            Self { held: AtomicU32::new(0) }
        }
    }
}

impl<const SLOTS: usize, R> Clh<SLOTS, R> {
    constructor! {
        fn new() -> Self {
            const { assert!(1 <= SLOTS && SLOTS <= SLOTS_MAX, "a lock has 1 to SLOTS_MAX slots") };
            Self {
                tail: CachePadded::new(AtomicUsize::new(SLOTS)),
                owned: array!(CachePadded::new(AtomicUsize::new(0))),
                nodes: array!(CachePadded::new(Node::new())),
                spare: CachePadded::new(Node::new()),
                relax: PhantomData,
            }
        }
    }

    #[inline]
    fn node(&self, name: usize) -> &Node {
        self.nodes.get(name & NODE).unwrap_or(&self.spare)
    }

    /// The name under which the node that `slot` owns comes next.
    #[inline]
    fn next_name(&self, slot: usize) -> usize {
        (self.owned[slot].load(Ordering::Relaxed) ^ slot).wrapping_add(GENERATION)
    }
}

impl<const SLOTS: usize, R: Relax> Clh<SLOTS, R> {
    /// Looks until the one before is done, and takes over its node.
    #[inline]
    fn follow(&self, slot: &Slot, index: usize, before: usize) {
        let node = self.node(before);
        // ORDERING: Acquire pairs with the Release of `release`.
        // BOUND: the sections of those who asked before.
        slot.wait_until::<R>(|| node.held.load(Ordering::Acquire) == 0);
        self.owned[index].store(before ^ index, Ordering::Relaxed);
    }
}

// SAFETY: each node but the first has one before it, and lets in one: who swapped it out of the tail, at its release. A node has
// one owner, who took it from the queue; it is put there again only by that owner.
#[allow(unsafe_code)]
unsafe impl<const SLOTS: usize, R: Relax> Algorithm for Clh<SLOTS, R> {
    type Request<'r> = &'r Slot;
    /// The name of the node the holder came with.
    type Hold = usize;

    free_by_new!();

    fn request(slot: &Slot, _: Priority) -> &Slot {
        slot
    }

    #[inline]
    fn acquire(&self, slot: &Slot) -> usize {
        let index = slot.below(SLOTS);
        let name = self.next_name(index);
        self.node(name).held.store(1, Ordering::Relaxed);
        // ORDERING: Release and Acquire: who finds a name in the tail finds its node held, or released since.
        let before = self.tail.swap(name, Ordering::AcqRel);
        self.follow(slot, index, before);
        name
    }

    #[inline]
    fn try_acquire(&self, slot: &Slot) -> Option<usize> {
        let index = slot.below(SLOTS);
        // ORDERING: Acquire pairs with the Release of the swap: a node found free is so since it came, not from before.
        let before = self.tail.load(Ordering::Acquire);
        if self.node(before).held.load(Ordering::Relaxed) != 0 {
            return None;
        }
        let name = self.next_name(index);
        self.node(name).held.store(1, Ordering::Relaxed);
        // The node may have gone and come back held, under another name: then this fails. It would not, were names numbers of nodes.
        // ORDERING: Release as in `acquire`; Acquire was at the load above, of the same name. What the one before did is seen in `follow`.
        self.tail.compare_exchange(before, name, Ordering::Release, Ordering::Relaxed).ok()?;
        self.follow(slot, index, before);
        Some(name)
    }

    #[inline]
    unsafe fn release(&self, name: usize) {
        // ORDERING: Release pairs with the Acquire of who comes after.
        self.node(name).held.store(0, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{self, Probe};

    impl<const SLOTS: usize, R: Relax> Probe for Clh<SLOTS, R> {
        fn has_asked(&self, slot: usize, _: usize) -> bool {
            self.tail.load(Ordering::Relaxed) == self.next_name(slot)
        }
    }

    testing::exclusion!(Clh<16, testing::Patient>);
    testing::order!(Clh<16, testing::Patient>, Order::Fifo);
    testing::orderings!(Clh<16, testing::Patient>, []);

    #[test]
    #[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
    #[allow(unsafe_code)]
    fn a_node_does_not_come_back_under_its_name() {
        let lock = Clh::<1>::new();
        // SAFETY: this thread has the number, and the lock is its own.
        let slot = unsafe { Slot::new(0) };
        let names = [(); 4].map(|()| {
            let hold = lock.acquire(&slot);
            assert!(lock.try_acquire(&slot).is_none());
            // SAFETY: it was just acquired.
            unsafe { lock.release(hold) };
            hold
        });
        assert_eq!(names.map(|name| name & NODE), [0, 1, 0, 1]);
        assert_eq!(names.map(|name| name >> NODE_BITS), [1, 1, 2, 2]);
    }
}
