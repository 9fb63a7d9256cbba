//! Johnson and Harathi's lock: a request walks the queue and puts itself into its place; a release hands over to the first.
//!
//! ```text
//!   head   -> the holder, or none: free
//!   holder -> waiter -> waiter -> ...          links in order of priority
//!
//!   link: | version .......... | left | next (8 bits, all ones: none) |
//!     version   another for each attempt to put the node anywhere, so that no old link is taken for a new one
//!     left      the node has left the queue: nobody may be linked behind it
//!
//!   acquire   head none -> me; or, from the holder on, behind all that are as urgent:
//!             link of the one before: (v, next) -> (v, me), my own link having been set to next
//!   release   my link: left; head := next, or none; next is GRANTED
//! ```
//! A walk steps from a node to the next only if the link that led there is still the same afterwards: then the node was in the queue
//! when its link and priority were read. If not, it begins again.

mod steps;

#[cfg(all(test, not(any(lockwright_loom, lockwright_shuttle))))]
mod search;

use crate::sync::{AtomicU32, AtomicUsize, array, constructor, free_by_new};
use crate::{Algorithm, Priority, Relax, SLOTS_MAX, Slot, Spin};
use core::marker::PhantomData;
use core::sync::atomic::Ordering;
use crossbeam_utils::CachePadded;
use steps::{Contender, LEFT, Memory, NONE, Outcome, next_of, prepared};

const WAITS: u32 = 1;
const GRANTED: u32 = 0;

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
/// Versions run over after 2^23 attempts of one slot on 32-bit machines, 2^55 on 64-bit ones: a request makes one, and another each time
/// somebody else gets on first. A walk that stands still for exactly so many can take an old link for a new one, and put its request
/// behind a node that is in no queue yet: that waiter, and who is put behind it, waits for ever.
///
/// A slot whose guard was leaked and that asks again waits for ever, and so do all others; it does not even find a place, but walks,
/// and they may do so too.
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

impl<const SLOTS: usize, R> JohnsonHarathi<SLOTS, R> {
    constructor! {
        fn new() -> Self {
            const { assert!(1 <= SLOTS && SLOTS <= SLOTS_MAX, "a lock has 1 to SLOTS_MAX slots") };
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

    /// `Enlist`, `Head`, `Own` and `Take` of the steps, straight: the way of a lock that nobody else wants.
    #[inline]
    fn take_if_free(&self, me: usize, priority: u32) -> bool {
        if self.holder() != NONE {
            return false;
        }
        self.enlist(me, priority);
        self.prepare(me, NONE);
        self.take(me)
    }
}

impl<const SLOTS: usize, R> Memory for JohnsonHarathi<SLOTS, R> {
    #[inline]
    fn holder(&self) -> usize {
        // ORDERING: Relaxed: `take` or `is_holder` look again.
        self.head.load(Ordering::Relaxed)
    }

    #[inline]
    fn is_holder(&self, node: usize) -> bool {
        // ORDERING: Acquire pairs with the Releases of `take` and `pass`: an exchange of the link, or another look at it, finds none from
        // before this node was in the queue.
        self.head.load(Ordering::Acquire) == node
    }

    #[inline]
    fn take(&self, me: usize) -> bool {
        // ORDERING: Acquire pairs with the Release of `pass`; Release with the Acquire of `is_holder`.
        self.head.compare_exchange(NONE, me, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    #[inline]
    fn pass(&self, next: usize) {
        // ORDERING: Release pairs with the Acquire of whoever finds the lock free, or walks from the next on.
        self.head.store(next, Ordering::Release);
    }

    #[inline]
    #[cfg_attr(lockwright_loom, track_caller)]
    fn link(&self, node: usize) -> usize {
        // ORDERING: Acquire pairs with the Releases of `prepare` and `put`: the next node is ready, and what is read after is no older.
        self.nodes[node].link.load(Ordering::Acquire)
    }

    #[inline]
    fn is_linked(&self, node: usize, link: usize) -> bool {
        // ORDERING: Relaxed: it comes after the Acquire of the next one's link, and is about that one.
        self.nodes[node].link.load(Ordering::Relaxed) == link
    }

    #[inline]
    fn prepare(&self, me: usize, next: usize) {
        let link = &self.nodes[me].link;
        // ORDERING: Release pairs with the Acquire of `link`: who sees this link sees that the queue was left with the one before.
        link.store(prepared(link.load(Ordering::Relaxed), next), Ordering::Release);
    }

    #[inline]
    fn put(&self, before: usize, link: usize, me: usize) -> bool {
        let linked = link & !NONE | me;
        // ORDERING: Release: who finds the link finds the node ready. What was found was read with Acquire, in `link`.
        self.nodes[before].link.compare_exchange(link, linked, Ordering::Release, Ordering::Relaxed).is_ok()
    }

    #[inline]
    fn leave(&self, me: usize) -> usize {
        // ORDERING: Acquire pairs with the Release of `put`: the next node is ready.
        next_of(self.nodes[me].link.fetch_or(LEFT, Ordering::Acquire))
    }

    #[inline]
    fn enlist(&self, me: usize, priority: u32) {
        let node = &self.nodes[me];
        // ORDERING: Relaxed: `put` publishes both. A walk that reads the priority of a request to come looked at a node that has left, as has the
        // one before it: no exchange of their links succeeds, for it would come before the `leave` that reads it, and so before that request.
        node.priority.store(priority, Ordering::Relaxed);
        node.state.store(WAITS, Ordering::Relaxed);
    }

    #[inline]
    fn priority(&self, node: usize) -> u32 {
        self.nodes[node].priority.load(Ordering::Relaxed)
    }

    #[inline]
    fn is_granted(&self, me: usize) -> bool {
        // ORDERING: Acquire pairs with the Release of `grant`.
        self.nodes[me].state.load(Ordering::Acquire) == GRANTED
    }

    #[inline]
    fn grant(&self, node: usize) {
        // ORDERING: Release pairs with the Acquire of `is_granted`.
        self.nodes[node].state.store(GRANTED, Ordering::Release);
    }
}

impl<const SLOTS: usize, R: Relax> JohnsonHarathi<SLOTS, R> {
    /// Queues up and waits.
    ///
    /// BOUND: none; see the type. Where the walk begins again, another request or release has got on.
    #[cold]
    fn wait(&self, me: usize, priority: u32) {
        let mut contender = Contender::asks(me, priority);
        let mut relax = R::default();
        loop {
            match contender.step(self) {
                Outcome::Steps => {}
                Outcome::Queued => relax = R::default(),
                Outcome::Again | Outcome::Spins => relax.relax(),
                Outcome::Holds | Outcome::Gone => return,
            }
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
        if !self.take_if_free(me, priority.0) {
            slot.while_it_waits(|| self.wait(me, priority.0));
        }
        me
    }

    #[inline]
    fn try_acquire(&self, (slot, priority): (&Slot, Priority)) -> Option<usize> {
        let me = slot.below(SLOTS);
        self.take_if_free(me, priority.0).then_some(me)
    }

    #[inline]
    unsafe fn release(&self, me: usize) {
        // `Leave`, `Pass` and `Grant` of the steps, straight.
        let next = self.leave(me);
        self.pass(next);
        if next != NONE {
            self.grant(next);
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
                // Relaxed, not to see to it that others see what they have to see to themselves.
                let link = node.link.load(Ordering::Relaxed);
                link & LEFT == 0 && next_of(link) == slot
            };
            self.nodes.iter().any(linked)
        }
    }

    testing::exclusion!(JohnsonHarathi<8, testing::Patient>);
    // The two of `kept` are a pair. In loom an exchange finds the last of the stores executed so far; the language lets one come before
    // a store that nothing orders before it, here that of a link made ready anew.
    testing::orderings!(
        JohnsonHarathi<8, testing::Patient>,
        [
            (NoAcquire, "self.head.load(Ordering::Acquire) == node"),
            (NoRelease, "self.head.compare_exchange(NONE, me, Ordering::AcqRel, Ordering::Relaxed).is_ok()"),
        ],
        1: checks::against_an_arrival::<JohnsonHarathi<8, testing::Patient>>((3, 2), &[(2, 2)], 1),
    );
    testing::order!(JohnsonHarathi<16, testing::Patient>, Order::Priority);

    /// A walk that finds the holder leaving, then the wait for the holder.
    #[test]
    #[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
    #[allow(unsafe_code)]
    fn walk_and_wait_relax_each_for_itself() {
        use std::{boxed::Box, rc::Rc, vec};
        let lock = Rc::new(JohnsonHarathi::<2, testing::alone::Meanwhile>::new());
        // SAFETY: this thread has both numbers, and the lock is its own.
        let (one, two) = unsafe { (Slot::new(0), Slot::new(1)) };
        let held = lock.acquire((&one, Priority(1)));
        let held_link = lock.nodes[0].link.fetch_or(LEFT, Ordering::Relaxed);
        let (stays, leaves) = (Rc::clone(&lock), Rc::clone(&lock));
        let stay = move || stays.nodes[0].link.store(held_link, Ordering::Relaxed);
        // SAFETY: it was acquired above.
        let leave = move || unsafe { leaves.release(held) };
        let (_, looks) = testing::alone::meanwhile(vec![Box::new(stay), Box::new(leave)], || {
            lock.acquire((&two, Priority(1)));
        });
        assert_eq!(looks, [1, 1]);
    }
}
