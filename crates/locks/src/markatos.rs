//! Markatos' lock: requests queue up as they come; a release walks the queue and takes the most urgent.
//!
//! ```text
//!   tail   -> the last of the queue, or none: free
//!   holder -> waiter -> waiter -> ...            links in order of arrival; the holder is the first
//!
//!   acquire   tail := me; there was one before: it gets the link to me, and I wait
//!   release   nobody behind:  tail me -> none
//!             else the most urgent leaves its place and becomes the first, before all others
//! ```

use crate::sync::{AtomicU32, AtomicUsize, array, constructor, free_by_new};
use crate::{Algorithm, Priority, Relax, SLOTS_MAX, Slot, Spin};
use core::marker::PhantomData;
use core::sync::atomic::Ordering;
use crossbeam_utils::CachePadded;

/// No node.
const NONE: usize = usize::MAX;
const WAITS: u32 = 1;
const GRANTED: u32 = 0;

/// The most urgent waiter first, first come first served among equals; chosen when the lock is released.
///
/// Each waiter spins on a line of its own.
///
/// A slot whose guard was leaked and that asks again waits for ever, and so do all others: the lock is held, and nobody is left to
/// release it.
///
/// # Bound
/// To acquire: none, but for the most urgent, which waits for the section that goes on when it asks (and for those whose request its own
/// comes upon half made). The others may be passed without end.
///
/// To release: one step a waiter, and the time another core needs between two instructions of its request.
///
/// # Reference
/// E. Markatos: Multiprocessor synchronization primitives with priorities, IFAC Proceedings 24(2), 1991.
#[derive(Debug)]
pub struct Markatos<const SLOTS: usize, R = Spin> {
    tail: CachePadded<AtomicUsize>,
    nodes: [CachePadded<Node>; SLOTS],
    relax: PhantomData<fn() -> R>,
}

#[derive(Debug)]
struct Node {
    next: AtomicUsize,
    state: AtomicU32,
    priority: AtomicU32,
}

impl<const SLOTS: usize, R> Markatos<SLOTS, R> {
    constructor! {
        fn new() -> Self {
            const { assert!(1 <= SLOTS && SLOTS <= SLOTS_MAX, "a lock has 1 to SLOTS_MAX slots") };
            Self {
                tail: CachePadded::new(AtomicUsize::new(NONE)),
                nodes: array!(CachePadded::new(Node {
                    next: AtomicUsize::new(NONE),
                    state: AtomicU32::new(GRANTED),
                    priority: AtomicU32::new(0),
                })),
                relax: PhantomData,
            }
        }
    }
}

impl<const SLOTS: usize, R: Relax> Markatos<SLOTS, R> {
    /// The link of a node that is not the last.
    ///
    /// BOUND: one store of the request behind it, which has swapped the tail already.
    fn link(&self, node: usize) -> usize {
        let mut relax = R::default();
        loop {
            // ORDERING: Acquire pairs with the Release that links: the node behind is ready.
            match self.nodes[node].next.load(Ordering::Acquire) {
                NONE => relax.relax(),
                next => return next,
            }
        }
    }

    /// Before the most urgent of those that are linked behind `holder`.
    ///
    /// BOUND: one step a waiter.
    fn before_most_urgent(&self, holder: usize) -> usize {
        let (mut best, mut highest) = (holder, None);
        let mut before = holder;
        loop {
            // ORDERING: Acquire pairs with the Release that links: the node behind has its priority.
            let node = self.nodes[before].next.load(Ordering::Acquire);
            if node == NONE {
                return best;
            }
            let priority = self.nodes[node].priority.load(Ordering::Relaxed);
            if highest.is_none_or(|highest| priority > highest) {
                (best, highest) = (before, Some(priority));
            }
            before = node;
        }
    }
}

// SAFETY: a swap that finds no tail is an acquire of a free lock; else the right passes on by GRANTED, written by the holder to one waiter.
#[allow(unsafe_code)]
unsafe impl<const SLOTS: usize, R: Relax> Algorithm for Markatos<SLOTS, R> {
    type Request<'r> = (&'r Slot, Priority);
    /// The slot.
    type Hold = usize;

    free_by_new!();

    fn request(slot: &Slot, priority: Priority) -> (&Slot, Priority) {
        (slot, priority)
    }

    #[inline]
    fn acquire(&self, (slot, priority): (&Slot, Priority)) -> usize {
        let me = slot.below(SLOTS);
        let node = &self.nodes[me];
        node.next.store(NONE, Ordering::Relaxed);
        node.priority.store(priority.0, Ordering::Relaxed);
        node.state.store(WAITS, Ordering::Relaxed);
        // ORDERING: Acquire pairs with the Release of the exchange that frees; Release with the Acquire of the request behind.
        let before = self.tail.swap(me, Ordering::AcqRel);
        if before != NONE {
            // ORDERING: Release pairs with the Acquire of the walk: the node is ready.
            self.nodes[before].next.store(me, Ordering::Release);
            // ORDERING: Acquire pairs with the Release of the grant.
            // BOUND: see the type.
            slot.wait_until::<R>(|| node.state.load(Ordering::Acquire) == GRANTED);
        }
        me
    }

    #[inline]
    fn try_acquire(&self, (slot, priority): (&Slot, Priority)) -> Option<usize> {
        let me = slot.below(SLOTS);
        if self.tail.load(Ordering::Relaxed) != NONE {
            return None;
        }
        let node = &self.nodes[me];
        node.next.store(NONE, Ordering::Relaxed);
        node.priority.store(priority.0, Ordering::Relaxed);
        // ORDERING: as in `acquire`.
        self.tail.compare_exchange(NONE, me, Ordering::AcqRel, Ordering::Relaxed).ok().map(|_| me)
    }

    #[inline]
    unsafe fn release(&self, me: usize) {
        let node = &self.nodes[me];
        // ORDERING: Relaxed: what is behind the link is looked at after the walk's Acquire, or after that of `link`.
        if node.next.load(Ordering::Relaxed) == NONE {
            // ORDERING: Release pairs with the Acquire of the next request's swap.
            if self.tail.compare_exchange(me, NONE, Ordering::Release, Ordering::Relaxed).is_ok() {
                return;
            }
            self.link(me);
        }
        let before = self.before_most_urgent(me);
        // ORDERING: Relaxed: the walk has read it.
        let best = self.nodes[before].next.load(Ordering::Relaxed);
        if before == me {
            // The first waiter is the best: its links are right as they are.
        } else {
            let first = node.next.load(Ordering::Relaxed);
            // ORDERING: Acquire pairs with the Release that links: `before` will lead to a node that is ready.
            let after = match self.nodes[best].next.load(Ordering::Acquire) {
                NONE => {
                    // best is the last, or about to be followed: `best -> none` becomes `before -> none`, if nobody came.
                    self.nodes[before].next.store(NONE, Ordering::Relaxed);
                    // ORDERING: Release: who links behind `before` does so after it was cleared. Acquire is not needed: nothing is read.
                    match self.tail.compare_exchange(best, before, Ordering::Release, Ordering::Relaxed) {
                        Ok(_) => NONE,
                        Err(_) => self.link(best),
                    }
                }
                after => after,
            };
            // ORDERING: Relaxed: links inside the queue are read by holders to come, whom the grant below reaches first.
            if after != NONE {
                self.nodes[before].next.store(after, Ordering::Relaxed);
            }
            self.nodes[best].next.store(first, Ordering::Relaxed);
        }
        // ORDERING: Release pairs with the Acquire of the waiter.
        self.nodes[best].state.store(GRANTED, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{self, Probe};

    impl<const SLOTS: usize, R: Relax> Probe for Markatos<SLOTS, R> {
        /// The last of the queue, and linked: a holder or another waiter leads to it. A node that left may show its link still, to whom
        /// it led: no slot waits twice before it is looked for.
        fn has_asked(&self, slot: usize, _: usize) -> bool {
            // Relaxed, not to see to it that the holder sees what it has to see to itself.
            let linked = |node: &CachePadded<Node>| node.next.load(Ordering::Relaxed) == slot;
            self.tail.load(Ordering::Relaxed) == slot && self.nodes.iter().any(linked)
        }
    }

    testing::exclusion!(Markatos<8, testing::Patient>);
    testing::orderings!(Markatos<8, testing::Patient>, [],
        2: checks::against_an_arrival::<Markatos<8, testing::Patient>>((0, 1), &[(1, 1), (5, 1)], 3),
    );
    testing::order!(Markatos<16, testing::Patient>, Order::Priority);
}
