//! The lock of Markatos: requests are queued in order of arrival, and a release selects the most urgent one.
//!
//! ```text
//!   tail   -> the last of the queue, or none: free
//!   holder -> waiter -> waiter -> ...            links in order of arrival; the holder is the first
//!
//!   acquire   tail := me; a predecessor gets the link to me, and I wait
//!   release   no waiter:  tail me -> none
//!             else the most urgent waiter leaves its place and becomes the first
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

/// The lock of Markatos: the most urgent waiter first, selected at the release, and FIFO among equals.
///
/// Each waiter spins on its own cache line.
///
/// A slot that leaks its guard and requests the lock again waits forever, and so do all others: the lock stays held.
///
/// # Bound
/// - To acquire: none, except for the most urgent waiter. It waits for the section in progress, and for requests that
///   its own finds half made. The others may be passed without end.
/// - To release: one step for each waiter, and the time between two instructions of a request on another core.
///
/// # Reference
/// E. Markatos: Multiprocessor synchronization primitives with priorities, IFAC Proceedings 24(2), 1991.
///
/// # Examples
/// ```
/// use lockwright_locks::{Markatos, Priority, Slot, SpinLock};
///
/// static COUNT: SpinLock<Markatos<8>, u32> = SpinLock::new(0);
/// let slot = Slot::claim().expect("fewer than 64 threads have a slot");
/// *COUNT.lock_with((&slot, Priority::new(7))) += 1;
/// ```
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
    /// Returns the link of a node that is not the last.
    ///
    /// BOUND: one store of the request behind it, which has already swapped the tail.
    fn link(&self, node: usize) -> usize {
        let mut relax = R::default();
        loop {
            // ORDERING: Acquire pairs with the Release of the link: the next node is ready.
            match self.nodes[node].next.load(Ordering::Acquire) {
                NONE => relax.relax(),
                next => return next,
            }
        }
    }

    /// Returns the predecessor of the most urgent node that is linked behind `holder`.
    ///
    /// BOUND: one step for each waiter.
    fn before_most_urgent(&self, holder: usize) -> usize {
        let (mut best, mut highest) = (holder, None);
        let mut before = holder;
        loop {
            // ORDERING: Acquire pairs with the Release of the link: the next node has its priority.
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

// SAFETY: a swap that finds no tail acquires a free lock. Otherwise the holder admits one waiter by GRANTED.
#[allow(unsafe_code)]
unsafe impl<const SLOTS: usize, R: Relax> Algorithm for Markatos<SLOTS, R> {
    type Request<'r> = (&'r Slot, Priority);
    /// The slot of the holder.
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
        node.priority.store(priority.get(), Ordering::Relaxed);
        node.state.store(WAITS, Ordering::Relaxed);
        // ORDERING: Acquire pairs with the Release of the exchange that frees the lock, and Release with the Acquire of
        // the successor.
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
        node.priority.store(priority.get(), Ordering::Relaxed);
        // ORDERING: as in `acquire`.
        self.tail.compare_exchange(NONE, me, Ordering::AcqRel, Ordering::Relaxed).ok().map(|_| me)
    }

    #[inline]
    unsafe fn release(&self, me: usize) {
        let node = &self.nodes[me];
        // ORDERING: Relaxed: what is behind the link is read after the Acquire of the walk, or after that of `link`.
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
            // The first waiter is the most urgent one, and its links are correct.
        } else {
            let first = node.next.load(Ordering::Relaxed);
            // ORDERING: Acquire pairs with the Release of the link: `before` will lead to a node that is ready.
            let after = match self.nodes[best].next.load(Ordering::Acquire) {
                NONE => {
                    // `best` is the last node, or a request behind it is in progress: `best -> none` becomes `before ->
                    // none` if none came.
                    self.nodes[before].next.store(NONE, Ordering::Relaxed);
                    // ORDERING: Release: a request links behind `before` after `before` was cleared. Acquire is not
                    // needed, as nothing is read.
                    match self.tail.compare_exchange(best, before, Ordering::Release, Ordering::Relaxed) {
                        Ok(_) => NONE,
                        Err(_) => self.link(best),
                    }
                }
                after => after,
            };
            // ORDERING: Relaxed: only later holders read links inside the queue, and the grant below reaches them
            // first.
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
        /// Whether the slot is the last of the queue, and linked from the holder or another waiter.
        ///
        /// A node that left may still have its link; no slot waits twice before it is checked.
        fn has_requested(&self, slot: usize, _: usize) -> bool {
            // Relaxed, so that the probe does not order what the lock must order itself.
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
