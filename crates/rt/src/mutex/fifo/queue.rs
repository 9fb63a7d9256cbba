//! The queue of a FIFO mutex: a CLH queue whose words are PI futexes.
//!
//! Each request has a node, and a node has a word. A thread writes its id into the word of its node before it enters
//! the queue, and waits for the word of its predecessor. So each word has at most one waiter, the order is that of the
//! arrivals, and the kernel lends each owner of a word the highest priority of the queue behind it:
//! ```text
//!   [ holder ] <--- [ first ] <--- [ second ] <--- tail
//!                   waits for      waits for
//!                   the word of    the word of
//!                   the holder     the first
//! ```
//! | event | what happens |
//! |---|---|
//! | lock | a free node, its word -> me, tail -> the node; waits for the word of the node before it, which is then free |
//! | unlock | the word of my node -> 0, or the kernel hands it to the waiter |
//! | give up, last in the queue | tail -> the node before mine, which is then the last again; my node is free |
//! | give up, with a follower | my node refers to the node before it; its word -> 0; the follower frees my node, and waits for the other one |
//!
//! # Who owns a word
//! | the node | the owner of its word | from |
//! |---|---|---|
//! | free, or in `spare` | no thread; the value is old, and no thread waits for it | |
//! | claimed | the thread of the request, before any other thread knows the node | its store |
//! | in the queue, or served | the same thread | |
//! | unlocked | no thread, or the follower | the exchange, or the kernel |
//! | of the predecessor of a follower that has just come to it | the follower, until it frees the node | the kernel |
//!
//! So a thread waits for the thread of an earlier request at each moment, and the threads that wait form no cycle
//! within one queue.
//!
//! # Cycles that the kernel invents
//! A thread that begins to wait follows the owners, to pass its priority on and to refuse a cycle. The kernel holds no
//! lock between two steps of this walk, so the walking thread W can be preempted there. A thread A before W can be
//! served meanwhile, or give up, and wait again behind W. The kernel would notice that A waits for another word only if
//! its own queue for that word lay at another address; but each thread reuses the memory of its last queue. The walk
//! then goes on from A to W itself, and W gets `EDEADLK`:
//! ```text
//!   before:     H <--- A <--- B <--- W              W walks over B to A
//!   meanwhile:         H <--- B <--- W <--- A       and from there to itself
//! ```
//! Each such error moves a request from before W to behind it, where it stays. So there are at most as many during a
//! request as there were requests before it, and a request asks again as often as there are nodes. If the error then
//! remains, the cycle exists: it passes through other locks. (While owners of this mutex wait for other locks, threads
//! can move from those locks to behind W; W must also be preempted on its walk once for each of these.)
//!
//! A holder that ends without unlocking leaves a word that is [`LOST`], or that has the id of a thread that no longer
//! exists; the first request after it makes that word [`LOST`]. All later requests fail.

use super::words::{AtomicU32, LOST, Limit, Ordering, WordError, lock_word, unlock_word};

/// No node.
pub(super) const NONE: u32 = u32::MAX;

/// How often all nodes are searched for a free one.
const ROUNDS_MAX: usize = 8;

/// The place of one request in the queue.
#[derive(Debug)]
#[repr(C)] // An initialiser in C has this layout.
pub struct Node {
    /// A PI futex: the id of the thread whose request this is, until that request ends.
    pub(super) word: AtomicU32,
    /// The node before this one if the request was given up, or [`NONE`]. The word protects it.
    pub(super) left_for: AtomicU32,
    /// 1 while the node belongs to a request, to the tail or to `spare`.
    pub(super) used: AtomicU32,
}

/// Why a request failed. The request has left the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Failure {
    /// All nodes are in use.
    NoNode,
    /// The word of the predecessor was not locked.
    Word(WordError),
}

/// A queue with the nodes of `N`. Each thread that uses the mutex needs one, and one belongs to the tail. A request
/// that gives up may need its node until its follower executes.
#[derive(Debug)]
#[repr(C)] // As `Node`.
pub struct Queue<N> {
    /// The last node.
    pub(super) tail: AtomicU32,
    /// The node of the request that was served last.
    pub(super) holder: AtomicU32,
    /// A node for the next request, or [`NONE`]. Only the holder stores a node here, and every request may take it.
    pub(super) spare: AtomicU32,
    /// Node 0 is the first tail.
    pub(super) nodes: N,
}

impl<N: AsRef<[Node]>> Queue<N> {
    fn node(&self, index: u32) -> &Node {
        &self.nodes.as_ref()[index as usize]
    }

    /// Waits in the queue, within `limit`, until it is the turn of the caller. Returns whether it waited. Calls
    /// `entered` before it waits.
    ///
    /// BOUND: until `limit`, or until the earlier requests are served.
    #[inline]
    pub(super) fn lock(&self, me: u32, limit: Limit, entered: impl FnOnce()) -> Result<bool, Failure> {
        let mine = self.claim(me).ok_or(Failure::NoNode)?;
        // ORDERING: Release publishes the node to the follower, and Acquire pairs with the Release of the predecessor.
        let before = self.tail.swap(mine, Ordering::AcqRel);
        entered();
        self.follow(me, mine, before, limit)
    }

    /// Locks the mutex if no thread holds it or waits.
    ///
    /// # Errors
    /// [`WordError::Busy`] also if another request came first at the same time.
    pub(super) fn try_lock(&self, me: u32) -> Result<(), Failure> {
        const BUSY: Failure = Failure::Word(WordError::Busy);
        // ORDERING: Acquire, here and below, pairs with the Release with which words are unlocked.
        let last = self.tail.load(Ordering::Acquire);
        let mut at = last;
        // Nodes that are used again meanwhile can form a cycle; then the tail changes as well.
        // BOUND: the number of nodes.
        for _ in self.nodes.as_ref() {
            match self.node(at).word.load(Ordering::Acquire) {
                0 => {}
                LOST => return Err(Failure::Word(WordError::OwnerDied)),
                _ => return Err(BUSY),
            }
            // ORDERING: Relaxed: the word orders it.
            match self.node(at).left_for.load(Ordering::Relaxed) {
                NONE => {
                    let mine = self.claim(me).ok_or(Failure::NoNode)?;
                    // ORDERING: as in `lock`.
                    if self.tail.compare_exchange(last, mine, Ordering::AcqRel, Ordering::Relaxed).is_err() {
                        self.free(mine);
                        return Err(BUSY);
                    }
                    // If the tail became the same node again, it may be locked, and the request gives up.
                    return self.follow(me, mine, last, Limit::Now).map(|_| ());
                }
                before => at = before,
            }
        }
        Err(BUSY)
    }

    /// Waits for `before`, and for the nodes to which it refers. Then the caller holds the mutex with the node `mine`.
    #[inline]
    fn follow(&self, me: u32, mine: u32, mut before: u32, limit: Limit) -> Result<bool, Failure> {
        let mut has_waited = false;
        let mut cycles = 0;
        // BOUND: one round for each earlier request that gave up, and `cycles` has one for each node. Each round ends
        // at `limit`.
        loop {
            match lock_word(&self.node(before).word, limit) {
                Ok(waited) => has_waited |= waited,
                // See the head of this file.
                Err(WordError::Deadlock) if cycles < self.nodes.as_ref().len() => {
                    cycles += 1;
                    continue;
                }
                Err(error) => {
                    self.give_up(me, mine, before);
                    return Err(Failure::Word(error));
                }
            }
            // ORDERING: Relaxed: the word, which the caller has locked, orders it.
            match self.node(before).left_for.load(Ordering::Relaxed) {
                NONE => break,
                further => {
                    self.free(before);
                    before = further;
                }
            }
        }
        // The previous holder no longer uses its node. Its index stands in `holder` until the caller replaces it, so
        // that no other request can have that node meanwhile.
        // ORDERING: Release pairs with the Acquire in `word`: a thread whose id once stood in this node must not see it
        // there any more. The other accesses are ordered by the mutex.
        self.holder.store(mine, Ordering::Release);
        if self.spare.load(Ordering::Relaxed) == NONE {
            // ORDERING: Release pairs with the Acquire in `claim`.
            self.spare.store(before, Ordering::Release);
        } else {
            self.free(before);
        }
        Ok(has_waited)
    }

    /// Leaves the queue without having been served.
    #[cold]
    fn give_up(&self, me: u32, mine: u32, before: u32) {
        // ORDERING: Relaxed: the unlock of the word publishes it.
        self.node(mine).left_for.store(before, Ordering::Relaxed);
        // ORDERING: Release publishes what the predecessor wrote into its node before it entered the queue.
        if self.tail.compare_exchange(mine, before, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            self.free(mine);
        } else {
            // A refusal leaves the word locked: the follower then waits until the caller ends.
            let _ = unlock_word(&self.node(mine).word, me);
        }
    }

    /// Unlocks the mutex, which the caller holds. Returns the kernel's error number if it refuses.
    #[inline]
    pub(super) fn unlock(&self, me: u32) -> Result<(), i32> {
        // ORDERING: Relaxed: the caller wrote it.
        let mine = self.holder.load(Ordering::Relaxed);
        unlock_word(&self.node(mine).word, me)
    }

    /// The word of the request that was served last: the id of the holder, perhaps with the kernel's flags, or 0.
    #[inline]
    pub(super) fn word(&self) -> u32 {
        // ORDERING: Acquire pairs with the Release in `follow`. Relaxed: a thread that reads its own id then wrote it
        // for its present request.
        self.node(self.holder.load(Ordering::Acquire)).word.load(Ordering::Relaxed)
    }

    /// Takes a node for a request of the thread `me`.
    #[inline]
    fn claim(&self, me: u32) -> Option<u32> {
        // ORDERING: Acquire pairs with the Release in `follow`.
        let index = match self.spare.swap(NONE, Ordering::Acquire) {
            NONE => self.claim_other(me)?,
            index => index,
        };
        let node = self.node(index);
        // ORDERING: Relaxed: the exchange of the tail publishes them.
        node.word.store(me, Ordering::Relaxed);
        node.left_for.store(NONE, Ordering::Relaxed);
        Some(index)
    }

    #[cold]
    fn claim_other(&self, me: u32) -> Option<u32> {
        let nodes = self.nodes.as_ref();
        // Threads begin at different nodes, so that they seldom meet.
        let first = me as usize % nodes.len();
        // A node can become free behind the place of the search while the one before it is taken, so the search is
        // repeated.
        let places = || (first..nodes.len()).chain(0..first);
        // ORDERING: Acquire pairs with the Release in `free`.
        let is_mine = |&place: &usize| {
            let used = &nodes[place].used;
            used.load(Ordering::Relaxed) == 0 && used.swap(1, Ordering::Acquire) == 0
        };
        // BOUND: ROUNDS_MAX times the number of nodes.
        (0..ROUNDS_MAX).find_map(|_| match self.spare.swap(NONE, Ordering::Acquire) {
            NONE => places().find(is_mine).map(|place| place as u32),
            index => Some(index),
        })
    }

    fn free(&self, index: u32) {
        // ORDERING: Release pairs with the Acquire in `claim_other`.
        self.node(index).used.store(0, Ordering::Release);
    }
}
