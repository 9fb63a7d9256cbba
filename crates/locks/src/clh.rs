//! The queue lock of Craig, and of Landin and Hagersten: FIFO order, and each waiter spins on the node of its
//! predecessor.
//!
//! There is one node more than there are slots. Each slot owns one node, and the tail is the remaining one:
//! ```text
//!   acquire at slot s    own.held -> 1, tail -> own, checks until before.held is 0, then owns before
//!   release              the node of the acquire: held -> 0
//! ```
//! A queue of three, the first of which holds the lock. Only the waiters have the links:
//! ```text
//!   [held]     <--- [held]     <--- [held] <--- tail
//!   of holder       of first        of second
//! ```
//! Nodes have generations, so that names do not repeat:
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

const _: () = assert!(SLOTS_MAX <= NODE, "each node has a number, also the one beyond the slots");

/// The queue lock of Craig, Landin and Hagersten: FIFO order, and each waiter spins on the line of its predecessor.
///
/// A release is one store, without a wait and without a locked instruction.
///
/// A slot that leaks its guard and requests the lock again waits forever, and so do all others.
/// It makes the request with another node, because it has owned the node of its predecessor since it acquired the lock.
///
/// # Bound
/// The critical sections of earlier requests: at most m − 1 with m cores, if none of them is preempted.
///
/// [`SpinLock::try_lock_with`](crate::SpinLock::try_lock_with) does not wait, unless a node is used 2^(`usize::BITS` −
/// 7) times between two of its steps, each time for a critical section. Then it waits like any request, and exclusion
/// still holds.
///
/// # Reference
/// T. Craig: Building FIFO and priority-queuing spin locks from atomic swap, TR 93-02-02, University of Washington,
/// 1993.
/// P. Magnusson, A. Landin, E. Hagersten: Queue locks on cache coherent multiprocessors, IPPS 1994.
///
/// # Examples
/// ```
/// use lockwright_locks::{Clh, Slot, SpinLock};
///
/// static COUNT: SpinLock<Clh<8>, u32> = SpinLock::new(0);
/// let slot = Slot::claim().expect("fewer than 64 threads have a slot");
/// *COUNT.lock_with(&slot) += 1;
/// ```
#[derive(Debug)]
pub struct Clh<const SLOTS: usize, R = Spin> {
    /// The name of the last node.
    tail: CachePadded<AtomicUsize>,
    /// The name of the node that each slot owns, xor the slot, so that zeros are the initial state. The owner of the
    /// slot writes it.
    owned: [CachePadded<AtomicUsize>; SLOTS],
    nodes: [CachePadded<Node>; SLOTS],
    /// The node of number `SLOTS`, which is the last one at first.
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

    /// Returns the name under which the node of `slot` enters the queue next.
    #[inline]
    fn next_name(&self, slot: usize) -> usize {
        (self.owned[slot].load(Ordering::Relaxed) ^ slot).wrapping_add(GENERATION)
    }
}

impl<const SLOTS: usize, R: Relax> Clh<SLOTS, R> {
    /// Waits for the predecessor, and takes over its node.
    #[inline]
    fn follow(&self, slot: &Slot, index: usize, before: usize) {
        let node = self.node(before);
        // ORDERING: Acquire pairs with the Release of `release`.
        // BOUND: the sections of earlier requests.
        slot.wait_until::<R>(|| node.held.load(Ordering::Acquire) == 0);
        self.owned[index].store(before ^ index, Ordering::Relaxed);
    }
}

// SAFETY: each node except the first has one predecessor. The release of a node admits one request: the one that
// swapped it out of the tail. A node has one owner, who took it from the queue; only that owner enqueues it again.
#[allow(unsafe_code)]
unsafe impl<const SLOTS: usize, R: Relax> Algorithm for Clh<SLOTS, R> {
    type Request<'r> = &'r Slot;
    /// The name of the node with which the holder acquired the lock.
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
        // ORDERING: Release and Acquire: a request that finds a name in the tail finds its node held, or released
        // since.
        let before = self.tail.swap(name, Ordering::AcqRel);
        self.follow(slot, index, before);
        name
    }

    #[inline]
    fn try_acquire(&self, slot: &Slot) -> Option<usize> {
        let index = slot.below(SLOTS);
        // ORDERING: Acquire pairs with the Release of the swap: a free node was released since it was enqueued, not
        // before.
        let before = self.tail.load(Ordering::Acquire);
        if self.node(before).held.load(Ordering::Relaxed) != 0 {
            return None;
        }
        let name = self.next_name(index);
        self.node(name).held.store(1, Ordering::Relaxed);
        // The node may have left and returned, held, under another name; then the exchange fails. With plain node
        // numbers it would succeed.
        // ORDERING: Release as in `acquire`. The load above has acquired the same name. `follow` acquires the section
        // before.
        self.tail.compare_exchange(before, name, Ordering::Release, Ordering::Relaxed).ok()?;
        self.follow(slot, index, before);
        Some(name)
    }

    #[inline]
    unsafe fn release(&self, name: usize) {
        // ORDERING: Release pairs with the Acquire of the successor.
        self.node(name).held.store(0, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{self, Probe};

    impl<const SLOTS: usize, R: Relax> Probe for Clh<SLOTS, R> {
        fn has_requested(&self, slot: usize, _: usize) -> bool {
            self.tail.load(Ordering::Relaxed) == self.next_name(slot)
        }
    }

    testing::exclusion!(Clh<16, testing::Patient>);
    testing::order!(Clh<16, testing::Patient>, Order::Fifo);
    testing::orderings!(Clh<16, testing::Patient>, []);

    #[test]
    #[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
    #[allow(unsafe_code)]
    fn a_node_does_not_return_under_its_name() {
        let lock = Clh::<1>::new();
        // SAFETY: only this thread uses the lock.
        let slot = unsafe { Slot::new(0) };
        let names = [(); 4].map(|()| {
            let hold = lock.acquire(&slot);
            assert!(lock.try_acquire(&slot).is_none());
            // SAFETY: the lock was just acquired with this hold.
            unsafe { lock.release(hold) };
            hold
        });
        assert_eq!(names.map(|name| name & NODE), [0, 1, 0, 1]);
        assert_eq!(names.map(|name| name >> NODE_BITS), [1, 1, 2, 2]);
    }
}
