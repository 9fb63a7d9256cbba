//! Johnson and Harathi's lock: a request walks the queue and puts itself into its place; a release hands over to the first.
//!
//! ```text
//!   head   -> the holder, or none: free
//!   holder -> waiter -> waiter -> ...          links in order of priority
//!
//!   link: | version .......... | left | next (8 bits, all ones: none) |
//!     version   another for each time the node is put anywhere, so that no old link is taken for a new one
//!     left      the node has left the queue: nobody may be linked behind it
//!
//!   acquire   head none -> me; or, from the holder on, behind all that are as urgent:
//!             link of the one before: (v, next) -> (v, me), my own link having been set to next
//!   release   my link: left; head := next, or none; next is GRANTED
//! ```
//! A walk steps from a node to the next only if the link that led there is still the same afterwards: then the node was in the queue
//! when its link and priority were read. If not, it begins again.

use crate::sync::{AtomicU32, AtomicUsize, array, constructor, free_by_new};
use crate::{Algorithm, Priority, Relax, Slot, Spin};
use core::marker::PhantomData;
use core::sync::atomic::Ordering;
use crossbeam_utils::CachePadded;

const WAITS: u32 = 1;
const GRANTED: u32 = 0;

/// No node, as a head and as a link's next.
const NONE: usize = 0xFF;
const LEFT: usize = 0x100;
const VERSION: usize = 0x200;

const fn next_of(link: usize) -> usize {
    link & NONE
}

/// The most urgent waiter first, first come first served among equals; a request finds its own place.
///
/// Each waiter spins on a line of its own, and a release takes the same few steps whoever waits.
///
/// # Bound
/// To acquire: none, but for the most urgent, which waits for the section that goes on when it asks. The others may be passed without end; and
/// a walk begins again when another request or a release changes the queue under it, in theory without end too (Huang and
/// Jayanti 2016): each time, somebody else has got on.
///
/// To release: a constant number of steps.
///
/// Versions run over after 2^23 requests of one slot on 32-bit machines, 2^55 on 64-bit ones: a walk that stands still for exactly so
/// many could take an old link for a new one.
///
/// # Reference
/// T. Johnson, K. Harathi: A prioritized multiprocessor spin lock, IEEE TPDS 8(9), 1997.
#[derive(Debug)]
pub struct JohnsonHarathi<const SLOTS: usize, R = Spin> {
    head: CachePadded<AtomicUsize>,
    nodes: [CachePadded<Node>; SLOTS],
    relax: PhantomData<fn() -> R>,
}

#[derive(Debug)]
struct Node {
    link: AtomicUsize,
    state: AtomicU32,
    priority: AtomicU32,
}

/// Behind whom to go: the node, and its link as it was read.
struct Place {
    before: usize,
    link: usize,
}

impl<const SLOTS: usize, R> JohnsonHarathi<SLOTS, R> {
    const FITS: () = assert!(SLOTS >= 1 && SLOTS <= crate::SLOTS_MAX, "a lock has 1 to SLOTS_MAX slots");

    constructor! {
        fn new() -> Self {
            let () = Self::FITS;
            Self {
                head: CachePadded::new(AtomicUsize::new(NONE)),
                nodes: array!(CachePadded::new(Node {
                    link: AtomicUsize::new(NONE | LEFT),
                    state: AtomicU32::new(GRANTED),
                    priority: AtomicU32::new(0),
                })),
                relax: PhantomData,
            }
        }
    }

    /// Sets the link of a node that is in no queue.
    fn set_link(&self, me: usize, next: usize) {
        let link = &self.nodes[me].link;
        let version = (link.load(Ordering::Relaxed) & !(VERSION - 1)).wrapping_add(VERSION);
        // ORDERING: Release pairs with the Acquire of a walk: who sees this link sees that the one before was left.
        link.store(version | next, Ordering::Release);
    }

    /// The place for `priority` behind `holder`; `None` if the queue changed meanwhile.
    ///
    /// ORDERING: each load is an Acquire, so that the loads happen in this order; they pair with the Releases of `set_link`, of
    /// the exchange that links, and of the priority.
    ///
    /// BOUND: one step a waiter.
    fn place(&self, holder: usize, priority: u32) -> Option<Place> {
        let mut before = holder;
        let mut link = self.nodes[before].link.load(Ordering::Acquire);
        if self.head.load(Ordering::Acquire) != holder {
            return None;
        }
        for _ in 0..=SLOTS {
            if link & LEFT != 0 {
                return None;
            }
            let next = next_of(link);
            if next == NONE {
                return Some(Place { before, link });
            }
            let other = self.nodes[next].priority.load(Ordering::Acquire);
            let after = self.nodes[next].link.load(Ordering::Acquire);
            if self.nodes[before].link.load(Ordering::Acquire) != link {
                return None;
            }
            if other < priority {
                return Some(Place { before, link });
            }
            (before, link) = (next, after);
        }
        None
    }
}

impl<const SLOTS: usize, R: Relax> JohnsonHarathi<SLOTS, R> {
    /// Takes a lock that is free.
    #[inline]
    fn enter(&self, me: usize) -> bool {
        self.set_link(me, NONE);
        // ORDERING: Acquire pairs with the Release of the release.
        self.head.compare_exchange(NONE, me, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Finds its place, and waits there; or finds the lock free.
    #[cold]
    fn queue_up(&self, me: usize, priority: u32) {
        let node = &self.nodes[me];
        let mut relax = R::default();
        // BOUND: none; see the type. Each round that fails, another request or release has got on.
        loop {
            let holder = self.head.load(Ordering::Acquire);
            if holder == NONE {
                if self.enter(me) {
                    return;
                }
            } else if let Some(Place { before, link }) = self.place(holder, priority) {
                self.set_link(me, next_of(link));
                let linked = link & !NONE | me;
                // ORDERING: Release: who finds the link finds the node ready.
                let exchange =
                    self.nodes[before].link.compare_exchange(link, linked, Ordering::AcqRel, Ordering::Relaxed);
                if exchange.is_ok() {
                    break;
                }
            }
            relax.relax();
        }
        // ORDERING: Acquire pairs with the Release of the grant.
        // BOUND: see the type.
        while node.state.load(Ordering::Acquire) != GRANTED {
            relax.relax();
        }
    }
}

// SAFETY: `head` goes from none to a node by an exchange, and on from the holder only, to the one it makes GRANTED. A node is behind one other: it is
// linked by one exchange on a link that is not left.
#[allow(unsafe_code)]
unsafe impl<const SLOTS: usize, R: Relax> Algorithm for JohnsonHarathi<SLOTS, R> {
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
        // ORDERING: Release: a walk that reads it sees that this node had left.
        node.priority.store(priority.0, Ordering::Release);
        node.state.store(WAITS, Ordering::Relaxed);
        if self.head.load(Ordering::Relaxed) != NONE || !self.enter(me) {
            slot.while_it_waits(|| self.queue_up(me, priority.0));
        }
        me
    }

    #[inline]
    fn try_acquire(&self, (slot, priority): (&Slot, Priority)) -> Option<usize> {
        let me = slot.below(SLOTS);
        if self.head.load(Ordering::Relaxed) != NONE {
            return None;
        }
        self.nodes[me].priority.store(priority.0, Ordering::Release);
        self.enter(me).then_some(me)
    }

    #[inline]
    unsafe fn release(&self, me: usize) {
        // ORDERING: Acquire pairs with the exchange that linked: the next node is ready.
        let next = next_of(self.nodes[me].link.fetch_or(LEFT, Ordering::AcqRel));
        // ORDERING: Release pairs with the Acquire of whoever finds the lock free, or walks from the next on.
        self.head.store(next, Ordering::Release);
        if next != NONE {
            // ORDERING: Release pairs with the Acquire of the waiter.
            self.nodes[next].state.store(GRANTED, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{self, Probe};

    impl<const SLOTS: usize, R: Relax> Probe for JohnsonHarathi<SLOTS, R> {
        fn has_asked(&self, slot: usize, _: usize) -> bool {
            let linked = |node: &CachePadded<Node>| {
                let link = node.link.load(Ordering::Acquire);
                link & LEFT == 0 && next_of(link) == slot
            };
            self.nodes.iter().any(linked)
        }
    }

    testing::exclusion!(JohnsonHarathi<8, testing::Patient>);
    testing::order!(JohnsonHarathi<16, testing::Patient>, Order::Priority);
}
