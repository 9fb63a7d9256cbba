//! The lock of Johnson and Harathi: a queue in order of priority, which a request walks to its place.
//!
//! ```text
//!   head   -> the holder, or none: free
//!   holder -> waiter -> waiter -> ...          links in order of priority
//!
//!   link: | version .......... | left | next (8 bits, all ones: none) |
//!     version   another one for each attempt to enqueue the node, so that no old link is mistaken for a new one
//!     left      the node has left the queue, and no node may be linked behind it
//!
//!   acquire   head none -> me; or, from the holder on, behind all nodes that are as urgent:
//!             link of the predecessor: (v, next) -> (v, me), with my own link set to next before
//!   release   my link: left; head := next, or none; next is GRANTED
//! ```
//! A walk steps to the next node only if the link that led there is unchanged afterwards.
//! The node was then in the queue when its link and its priority were read. Otherwise the walk begins again.

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

/// The lock of Johnson and Harathi: the most urgent waiter first, enqueued at the request, and FIFO among equals.
///
/// Each waiter spins on its own cache line, and a release takes a constant number of steps.
///
/// # Bound
/// - To acquire: none, except for the most urgent waiter, which waits for the section in progress. The others may be
///   passed without end. A walk begins again when another request or a release changes the queue, in theory without end
///   (Huang and Jayanti 2016); each time another thread has made progress.
/// - To release: a constant number of steps.
///
/// Versions wrap around after 2^23 attempts of one slot on 32-bit machines, and after 2^55 on 64-bit ones. A request
/// makes one attempt, and one more each time another thread succeeds first. A walk that stands still for exactly that
/// many attempts can mistake an old link for a new one, and put its request behind a node that is in no queue yet. That
/// waiter and those behind it wait forever.
///
/// A slot that leaks its guard and requests the lock again waits forever, and so do all others. It walks and finds no
/// place, and others may do so too.
///
/// # Reference
/// T. Johnson, K. Harathi: A prioritized multiprocessor spin lock, IEEE TPDS 8(9), 1997.
///
/// # Examples
/// ```
/// use lockwright_locks::{JohnsonHarathi, Priority, Slot, SpinLock};
///
/// static COUNT: SpinLock<JohnsonHarathi<8>, u32> = SpinLock::new(0);
/// let slot = Slot::claim().expect("fewer than 64 threads have a slot");
/// *COUNT.lock_with((&slot, Priority::new(7))) += 1;
/// ```
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

    /// Executes `Enlist`, `Head`, `Own` and `TryLock` in a straight line, for a lock without contention.
    #[inline]
    fn lock_if_free(&self, me: usize, priority: u32) -> bool {
        if self.holder() != NONE {
            return false;
        }
        self.enlist(me, priority);
        self.prepare(me, NONE);
        self.try_lock(me)
    }
}

impl<const SLOTS: usize, R> Memory for JohnsonHarathi<SLOTS, R> {
    #[inline]
    fn holder(&self) -> usize {
        // ORDERING: Relaxed: `try_lock` or `is_holder` check again.
        self.head.load(Ordering::Relaxed)
    }

    #[inline]
    fn is_holder(&self, node: usize) -> bool {
        // ORDERING: Acquire pairs with the Releases of `try_lock` and `pass`. An exchange of the link, or another read
        // of it, then finds no link from before this node was in the queue.
        self.head.load(Ordering::Acquire) == node
    }

    #[inline]
    fn try_lock(&self, me: usize) -> bool {
        // ORDERING: Acquire pairs with the Release of `pass`; Release with the Acquire of `is_holder`.
        self.head.compare_exchange(NONE, me, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    #[inline]
    fn pass(&self, next: usize) {
        // ORDERING: Release pairs with the Acquire of a request that finds the lock free, or walks from the next node
        // on.
        self.head.store(next, Ordering::Release);
    }

    #[inline]
    #[cfg_attr(lockwright_loom, track_caller)]
    fn link(&self, node: usize) -> usize {
        // ORDERING: Acquire pairs with the Releases of `prepare` and `put`: the next node is ready, and later reads are
        // no older.
        self.nodes[node].link.load(Ordering::Acquire)
    }

    #[inline]
    fn is_linked(&self, node: usize, link: usize) -> bool {
        // ORDERING: Relaxed: it comes after the Acquire of the next node's link, and concerns that node.
        self.nodes[node].link.load(Ordering::Relaxed) == link
    }

    #[inline]
    fn prepare(&self, me: usize, next: usize) {
        let link = &self.nodes[me].link;
        // ORDERING: Release pairs with the Acquire of `link`: a reader of this link sees that the node left the queue
        // with the former one.
        link.store(prepared(link.load(Ordering::Relaxed), next), Ordering::Release);
    }

    #[inline]
    fn put(&self, before: usize, link: usize, me: usize) -> bool {
        let linked = link & !NONE | me;
        // ORDERING: Release: a reader of the link finds the node ready. `link` acquired what was read.
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
        // ORDERING: Relaxed: `put` publishes both. A walk that reads the priority of a later request read a node that
        // has left, and so has its predecessor. No exchange of their links succeeds: it would precede the `leave` that
        // reads it, and so that request.
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
    /// BOUND: none, see the type. A walk begins again when another request or release has made progress.
    #[cold]
    fn wait(&self, me: usize, priority: u32) {
        let mut contender = Contender::requests(me, priority);
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

// SAFETY: an exchange sets `head` from none to a node. Afterwards only the holder sets it, to the node that it makes
// GRANTED. A node has one predecessor, because one exchange links it, to a link without the mark. Acquire and Release
// of `head` and of the grant order the sections.
#[allow(unsafe_code)]
unsafe impl<const SLOTS: usize, R: Relax> Algorithm for JohnsonHarathi<SLOTS, R> {
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
        if !self.lock_if_free(me, priority.get()) {
            slot.while_waiting(|| self.wait(me, priority.get()));
        }
        me
    }

    #[inline]
    fn try_acquire(&self, (slot, priority): (&Slot, Priority)) -> Option<usize> {
        let me = slot.below(SLOTS);
        self.lock_if_free(me, priority.get()).then_some(me)
    }

    #[inline]
    unsafe fn release(&self, me: usize) {
        // These are the steps `Leave`, `Pass` and `Grant` in a straight line.
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
        fn has_requested(&self, slot: usize, _: usize) -> bool {
            let linked = |node: &CachePadded<Node>| {
                // Relaxed, so that the probe does not order what the lock must order itself.
                let link = node.link.load(Ordering::Relaxed);
                link & LEFT == 0 && next_of(link) == slot
            };
            self.nodes.iter().any(linked)
        }
    }

    testing::exclusion!(JohnsonHarathi<8, testing::Patient>);
    // The two of `kept` belong together. In loom an exchange finds the last store executed so far. The language allows
    // an exchange before a store that nothing orders before it, which is here the store of a new link.
    testing::orderings!(
        JohnsonHarathi<8, testing::Patient>,
        [
            (NoAcquire, "self.head.load(Ordering::Acquire) == node"),
            (NoRelease, "self.head.compare_exchange(NONE, me, Ordering::AcqRel, Ordering::Relaxed).is_ok()"),
        ],
        1: checks::against_an_arrival::<JohnsonHarathi<8, testing::Patient>>((3, 2), &[(2, 2)], 1),
    );
    testing::order!(JohnsonHarathi<16, testing::Patient>, Order::Priority);

    /// A walk finds the holder leaving, and then the request waits for the holder; each has its own pause.
    #[test]
    #[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
    #[allow(unsafe_code)]
    fn walk_and_wait_relax_separately() {
        use std::{boxed::Box, rc::Rc, vec};
        let lock = Rc::new(JohnsonHarathi::<2, testing::alone::Meanwhile>::new());
        // SAFETY: only this thread uses the lock.
        let (one, two) = unsafe { (Slot::new(0), Slot::new(1)) };
        let held = lock.acquire((&one, Priority::new(1)));
        let held_link = lock.nodes[0].link.fetch_or(LEFT, Ordering::Relaxed);
        let (stays, leaves) = (Rc::clone(&lock), Rc::clone(&lock));
        let stay = move || stays.nodes[0].link.store(held_link, Ordering::Relaxed);
        // SAFETY: the lock was acquired above with this hold.
        let leave = move || unsafe { leaves.release(held) };
        let (_, checks) = testing::alone::meanwhile(vec![Box::new(stay), Box::new(leave)], || {
            lock.acquire((&two, Priority::new(1)));
        });
        assert_eq!(checks, [1, 1]);
    }
}
