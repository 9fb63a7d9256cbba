//! Markatos's priority lock: a queue in order of arrival, out of which the releaser takes the most urgent.
//!
//! ```text
//!   tail   acquire at slot s                     release at slot s
//!   none   -> s: mine                            -
//!   s      -                                     -> none, unless somebody asks
//!   t      -> s, t.next -> s, looks at s.waits   the most urgent b is taken out, b.next -> the rest, b.waits -> 0
//! ```
//! The holder is the head. It takes b out of the middle, or off the end, and makes it the head of the others:
//! ```text
//!   [holder] -> [1] -> [b] -> [2] <- tail          [b] -> [1] -> [2] <- tail
//!   [holder] -> [1] -> [b] <- tail                 [b] -> [1] <- tail, unless somebody asks meanwhile: then the link is waited for
//! ```
//! Links inside the queue are the holder's; only the last one is written by who comes.

use crate::sync::{AtomicU32, array, constructor, free_by_new};
use crate::{Algorithm, Priority, Relax, SLOTS_MAX, Slot, Spin};
use core::marker::PhantomData;
use core::sync::atomic::Ordering;
use crossbeam_utils::CachePadded;

/// Nobody. Slot `s` is `s + 1`.
const NONE: u32 = 0;

/// Markatos's priority lock: the most urgent first, first come first served among equals, chosen at release.
///
/// Requests are as cheap as those of [`Mcs`](crate::Mcs); a release looks at every waiter. Who asks while a release looks may come too
/// late for it, however urgent.
///
/// A slot whose guard was leaked and that asks again waits for ever, and so do all others: the lock is held, and nobody is left to
/// release it, or to follow the links that the slot has used twice.
///
/// # Bound
/// None but for the most urgent: one critical section, and that of who is chosen while it asks. Others are passed by whoever is
/// more urgent, again and again. Among equals: the sections of those who asked before.
///
/// A release takes one step a waiter, at most `SLOTS` − 1, and waits for two stores at most, each of who asks at that moment: the
/// link of the first waiter, and the one behind the last.
///
/// # Reference
/// E. Markatos: Multiprocessor synchronization primitives with priorities, IEEE RTOSS 1991.
///
/// # Examples
/// ```
/// use lockwright_locks::{Markatos, Priority, Slot, SpinLock};
///
/// static COUNT: SpinLock<Markatos<8>, u32> = SpinLock::new(0);
/// let slot = Slot::claim().expect("fewer than 64 threads have one");
/// *COUNT.lock_with((&slot, Priority(7))) += 1;
/// ```
#[derive(Debug)]
pub struct Markatos<const SLOTS: usize, R = Spin> {
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
    priority: AtomicU32,
}

impl Node {
    constructor! {
        fn new() -> Self {
            Self { next: AtomicU32::new(NONE), waits: AtomicU32::new(0), priority: AtomicU32::new(0) }
        }
    }
}

impl<const SLOTS: usize, R> Markatos<SLOTS, R> {
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

    /// The most urgent waiter from `first` on, the first among equals, and who is before it.
    fn most_urgent(&self, first: u32) -> MostUrgent {
        let mut before = first;
        let mut best = MostUrgent { before: NONE, name: first };
        let mut urgency = self.node(first).priority.load(Ordering::Relaxed);
        // BOUND: one step a waiter: nobody leaves meanwhile, and each is in the queue once.
        loop {
            // ORDERING: Acquire pairs with the Release of the link, or that of the hand-off by an earlier holder who followed it:
            // the priority is that of this request.
            let name = self.node(before).next.load(Ordering::Acquire);
            if name == NONE {
                return best;
            }
            let priority = self.node(name).priority.load(Ordering::Relaxed);
            if priority > urgency {
                (best, urgency) = (MostUrgent { before, name }, priority);
            }
            before = name;
        }
    }
}

struct MostUrgent {
    /// `NONE` for the first waiter, which needs not be taken out.
    before: u32,
    name: u32,
}

impl<const SLOTS: usize, R: Relax> Markatos<SLOTS, R> {
    /// `t -> s, t.next -> s`, then looks at `s.waits`.
    #[cold]
    fn queue_behind(&self, before: u32, name: u32) {
        let node = self.node(name);
        node.waits.store(1, Ordering::Relaxed);
        // ORDERING: Release pairs with the Acquire of who follows the link: its 0 in `waits` comes after this 1.
        self.node(before).next.store(name, Ordering::Release);
        let mut relax = R::default();
        // ORDERING: Acquire pairs with the Release of the hand-off.
        // BOUND: the sections of those who asked before, and of all who are more urgent.
        while node.waits.load(Ordering::Acquire) != 0 {
            relax.relax();
        }
    }

    /// The next of a node that is no longer the last.
    fn linked(&self, node: &Node) -> u32 {
        let mut relax = R::default();
        loop {
            // ORDERING: Acquire pairs with the Release of the link.
            // BOUND: one store of the next waiter, which has changed the tail.
            match node.next.load(Ordering::Acquire) {
                NONE => relax.relax(),
                next => return next,
            }
        }
    }

    /// `before -> chosen -> after` becomes `before -> after`.
    fn take_out(&self, before: u32, chosen: u32) {
        let (before_node, node) = (self.node(before), self.node(chosen));
        // ORDERING: Acquire pairs with the Release of the link.
        let mut after = node.next.load(Ordering::Acquire);
        if after == NONE {
            // Whoever finds `before` in the tail writes its link there, after this NONE.
            before_node.next.store(NONE, Ordering::Relaxed);
            // ORDERING: Release pairs with the Acquire of that request.
            if self.tail.compare_exchange(chosen, before, Ordering::Release, Ordering::Relaxed).is_ok() {
                return;
            }
            after = self.linked(node);
        }
        before_node.next.store(after, Ordering::Relaxed);
    }

    /// To the most urgent waiter; there is one, or will be.
    #[cold]
    fn hand_over(&self, holder: &Node) {
        let first = self.linked(holder);
        let chosen = self.most_urgent(first);
        let node = self.node(chosen.name);
        if chosen.before != NONE {
            self.take_out(chosen.before, chosen.name);
            node.next.store(first, Ordering::Relaxed);
        }
        // ORDERING: Release pairs with the Acquire of the waiter, which has the links from now on.
        node.waits.store(0, Ordering::Release);
    }
}

// SAFETY: who finds no tail is alone; all others are let in by the holder, one at its release. A node is in the queue once: a
// slot asks from one place at a time, and where a guard was leaked nobody is let in any more.
#[allow(unsafe_code)]
unsafe impl<const SLOTS: usize, R: Relax> Algorithm for Markatos<SLOTS, R> {
    type Request<'r> = (&'r Slot, Priority);
    /// The holder's name.
    type Hold = u32;

    free_by_new!();

    fn request(slot: &Slot, priority: Priority) -> (&Slot, Priority) {
        (slot, priority)
    }

    #[inline]
    fn acquire(&self, (slot, priority): (&Slot, Priority)) -> u32 {
        let name = slot.below(SLOTS) as u32 + 1;
        let node = self.node(name);
        node.next.store(NONE, Ordering::Relaxed);
        node.priority.store(priority.0, Ordering::Relaxed);
        // ORDERING: Release pairs with the Acquire of who comes after: its link comes after this NONE. Acquire pairs with the
        // Release of `release`, with that of the one before, and with that of `take_out`.
        let before = self.tail.swap(name, Ordering::AcqRel);
        if before != NONE {
            self.queue_behind(before, name);
        }
        name
    }

    #[inline]
    fn try_acquire(&self, (slot, _): (&Slot, Priority)) -> Option<u32> {
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

    impl<const SLOTS: usize, R: Relax> Probe for Markatos<SLOTS, R> {
        fn has_asked(&self, slot: usize, _: usize) -> bool {
            let name = slot as u32 + 1;
            self.tail.load(Ordering::Relaxed) == name
                && self.nodes.iter().any(|node| node.next.load(Ordering::Relaxed) == name)
        }
    }

    testing::exclusion!(Markatos<8, testing::Patient>);
    testing::order!(Markatos<16, testing::Patient>, Order::Priority);
}
