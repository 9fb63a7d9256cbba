//! The queue lock of Mellor-Crummey and Scott: FIFO order, and each waiter spins on its own cache line.
//!
//! ```text
//!   tail   acquire at slot s                       release at slot s
//!   none   -> s: acquired                          -
//!   s      -                                       -> none, unless a request follows
//!   t      -> s, t.next -> s, checks s.waits       s.next.waits -> 0
//! ```
//! A queue of three, the first of which holds the lock:
//! ```text
//!            next       next
//!   [holder] ---> [  ] ---> [  ] <--- tail
//! ```
//! Between the two writes of a request, tail and link, the queue is broken in two. A release then waits for the link.

use crate::sync::{AtomicU32, array, constructor, free_by_new};
use crate::{Algorithm, Priority, Relax, SLOTS_MAX, Slot, Spin};
use core::marker::PhantomData;
use core::sync::atomic::Ordering;
use crossbeam_utils::CachePadded;

/// No slot. Slot `s` has the name `s + 1`.
const NONE: u32 = 0;

/// The queue lock of Mellor-Crummey and Scott: FIFO order, with a cache line for each waiter.
///
/// A release touches the line of one waiter, whatever their number.
///
/// A slot that leaks its guard and requests the lock again waits forever, and so do all others: the lock stays held.
///
/// # Bound
/// The critical sections of earlier requests: at most m − 1 with m cores, if none of them is preempted.
/// A release waits for at most one store of a request that is in progress.
///
/// # Reference
/// J. Mellor-Crummey, M. Scott: Algorithms for scalable synchronization on shared-memory multiprocessors, ACM TOCS
/// 9(1), 1991.
///
/// # Examples
/// ```
/// use lockwright_locks::{Mcs, Slot, SpinLock};
///
/// static COUNT: SpinLock<Mcs<8>, u32> = SpinLock::new(0);
/// let slot = Slot::claim().expect("fewer than 64 threads have a slot");
/// *COUNT.lock_with(&slot) += 1;
/// ```
/// A lock with more than 64 slots, or none, does not compile:
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
    /// The slot that follows.
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
    /// Executes `t -> s, t.next -> s`, and then waits on `s.waits`.
    #[cold]
    fn queue_behind(&self, slot: &Slot, before: u32, name: u32) {
        let node = self.node(name);
        node.waits.store(1, Ordering::Relaxed);
        // ORDERING: Release pairs with the Acquire of the predecessor, whose 0 in `waits` comes after this 1.
        self.node(before).next.store(name, Ordering::Release);
        // ORDERING: Acquire pairs with the Release of the hand-off.
        // BOUND: the sections of earlier requests.
        slot.wait_until::<R>(|| node.waits.load(Ordering::Acquire) == 0);
    }

    /// Executes `s.next.waits -> 0`.
    #[cold]
    fn hand_over(&self, node: &Node) {
        let mut relax = R::default();
        let next = loop {
            // ORDERING: Acquire pairs with the Release of the link.
            // BOUND: one store of the next waiter, which has already changed the tail.
            match node.next.load(Ordering::Acquire) {
                NONE => relax.relax(),
                next => break next,
            }
        };
        // ORDERING: Release pairs with the Acquire of the waiter.
        self.node(next).waits.store(0, Ordering::Release);
    }
}

// SAFETY: a request that finds no tail is alone. Each other request is admitted once, by the release of its
// predecessor. A node is in the queue once, because a slot waits in one place at a time. After a leaked guard no
// request is admitted any more.
#[allow(unsafe_code)]
unsafe impl<const SLOTS: usize, R: Relax> Algorithm for Mcs<SLOTS, R> {
    type Request<'r> = &'r Slot;
    /// The name of the holder.
    type Hold = u32;

    free_by_new!();

    fn request(slot: &Slot, _: Priority) -> &Slot {
        slot
    }

    #[inline]
    fn acquire(&self, slot: &Slot) -> u32 {
        let name = slot.below(SLOTS) as u32 + 1;
        self.node(name).next.store(NONE, Ordering::Relaxed);
        // ORDERING: Release pairs with the Acquire of the successor, whose link comes after this NONE. Acquire pairs
        // with the Release of
        // `release` and with that of the predecessor.
        let before = self.tail.swap(name, Ordering::AcqRel);
        if before != NONE {
            self.queue_behind(slot, before, name);
        }
        name
    }

    #[inline]
    fn try_acquire(&self, slot: &Slot) -> Option<u32> {
        let name = slot.below(SLOTS) as u32 + 1;
        // While there is a tail, a node may be in use, also that of a leaked guard.
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
        // ORDERING: Release pairs with the Acquire of a request that finds no tail.
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
        fn has_requested(&self, slot: usize, _: usize) -> bool {
            self.tail.load(Ordering::Relaxed) as usize == slot + 1
        }
    }

    testing::exclusion!(Mcs<16, testing::Patient>);
    testing::order!(Mcs<16, testing::Patient>, Order::Fifo);
    testing::orderings!(Mcs<16, testing::Patient>, []);
}
