//! The priority lock of Johnson and Harathi: a queue in order of priority, into which each request puts itself.
//!
//! The head is the holder; the others follow by priority. One word a slot says all of its request:
//! ```text
//!   bits | 40 to 63 | 8 to 39  | 7    | 0 to 6         |
//!        | version  | priority | done | next, slot + 1 |
//! ```
//! | who | what | word, or head |
//! |---|---|---|
//! | s asks, lock free | holds | word of s -> version + 1, no next; head: none -> s, version |
//! | s asks, held | finds p, whose next n is less urgent | word of s -> version + 1, next n; word of p: next n -> next s |
//! | s releases | nobody comes in behind it any more | word of s: -> done |
//! | | hands over to its next n | head -> n and its version, waits of n -> 0 |
//! | | or nobody waits | head -> none |
//!
//! Who walks along the queue must know that what it has read was in the queue, though nobody waits for it:
//! ```text
//!   head is s, version v:              the word of s is of version v, so it is, or was, the holder's; if not done, it is
//!   word w of p, in the queue, next n: then the word of n is read, and w again: if it is still w, n was in the queue
//!   w of p is exchanged:               p is in the queue, not done, and n is still next: nobody leaves it but the head
//! ```
//! A next within one version never comes back: who leaves the queue has been its head, and all before it are done.

use crate::sync::{AtomicU32, AtomicU64, array, constructor, free_by_new};
use crate::{Algorithm, Priority, Relax, SLOTS_MAX, Slot, Spin};
use core::marker::PhantomData;
use core::sync::atomic::Ordering;
use crossbeam_utils::CachePadded;

/// What a slot asks: see the bits above.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Word(u64);

impl Word {
    const NEXT: u64 = 0x7f;
    const DONE: u64 = 0x80;
    const PRIORITY_AT: u32 = 8;
    const VERSION_AT: u32 = 40;

    fn new(version: u64, priority: Priority) -> Self {
        Self(version << Self::VERSION_AT | u64::from(priority.0) << Self::PRIORITY_AT)
    }

    fn with_next(self, name: u64) -> Self {
        Self(self.0 & !Self::NEXT | name)
    }

    fn next(self) -> u64 {
        self.0 & Self::NEXT
    }

    fn is_done(self) -> bool {
        self.0 & Self::DONE != 0
    }

    fn priority(self) -> Priority {
        Priority((self.0 >> Self::PRIORITY_AT) as u32)
    }

    fn version(self) -> u64 {
        self.0 >> Self::VERSION_AT
    }

    /// Of the request after this one. It runs over.
    fn next_version(self) -> u64 {
        self.version().wrapping_add(1) & (u64::MAX >> Self::VERSION_AT)
    }

    /// What the head says of a holder.
    fn head(self, name: u64) -> u64 {
        self.version() << Self::VERSION_AT | name
    }
}

const _: () = assert!((SLOTS_MAX as u64) < Word::NEXT, "every slot has a name, and nobody has one");

/// Nobody. Slot `s` is `s + 1`.
const NONE: u64 = 0;

/// The priority lock of Johnson and Harathi: the most urgent first, first come first served among equals, queued at acquire.
///
/// A release is as short with many waiters as with one; a request looks for its place. There is none of this lock where 64 bits
/// cannot be atomic.
///
/// A slot whose guard was leaked and that asks again waits for ever, and so do all others: the lock is held, and the holder's word,
/// used twice, is no longer of the version the head says, so nobody gets in behind it either.
///
/// # Bound
/// None. Once in the queue, the most urgent waits for one critical section, and others for those of the more urgent too, again and
/// again. But getting in can take any number of attempts: each fails where somebody else got in at the same place, or
/// the lock was handed over meanwhile. In the mean few; in the worst case, Huang and Jayanti (2016) describe it, without end.
///
/// A release takes a fixed number of steps, with no wait and no loop.
///
/// Versions run over after 2^24 requests of one slot: nobody may stand still for so many between two steps of a request.
///
/// # Reference
/// T. Johnson, K. Harathi: A prioritized multiprocessor spin lock, IEEE TPDS 8(9), 1997. Priority, version and mark are in one word
/// with the link here. On its flaws: Z. Huang, P. Jayanti, 2016.
///
/// # Examples
/// ```
/// use lockwright_locks::{JohnsonHarathi, Priority, Slot, SpinLock};
///
/// static COUNT: SpinLock<JohnsonHarathi<8>, u32> = SpinLock::new(0);
/// let slot = Slot::claim().expect("fewer than 64 threads have one");
/// *COUNT.lock_with((&slot, Priority(7))) += 1;
/// ```
#[derive(Debug)]
pub struct JohnsonHarathi<const SLOTS: usize, R = Spin> {
    /// The holder's name and version.
    head: CachePadded<AtomicU64>,
    nodes: [CachePadded<Node>; SLOTS],
    relax: PhantomData<fn() -> R>,
}

#[derive(Debug)]
struct Node {
    word: AtomicU64,
    /// 1 until the lock is handed over.
    waits: AtomicU32,
}

impl Node {
    constructor! {
        fn new() -> Self {
            Self { word: AtomicU64::new(0), waits: AtomicU32::new(0) }
        }
    }

    #[inline]
    fn word(&self) -> Word {
        // ORDERING: Acquire pairs with the Release of requests: what is next in the word has been written.
        Word(self.word.load(Ordering::Acquire))
    }

    /// `next n -> next s`.
    #[inline]
    fn insert(&self, word: Word, name: u64) -> bool {
        // ORDERING: Release pairs with the Acquire of `word`, and of `release`: who sees the name sees the word and `waits` of its slot.
        self.word.compare_exchange(word.0, word.with_next(name).0, Ordering::Release, Ordering::Relaxed).is_ok()
    }
}

impl<const SLOTS: usize, R> JohnsonHarathi<SLOTS, R> {
    constructor! {
        fn new() -> Self {
            const { assert!(1 <= SLOTS && SLOTS <= SLOTS_MAX, "a lock has 1 to SLOTS_MAX slots") };
            Self {
                head: CachePadded::new(AtomicU64::new(NONE)),
                nodes: array!(CachePadded::new(Node::new())),
                relax: PhantomData,
            }
        }
    }

    #[inline]
    fn node(&self, name: u64) -> &Node {
        &self.nodes[(name & Word::NEXT) as usize - 1]
    }

    /// `none -> s, version`, with its word written.
    #[inline]
    fn take_free(&self, name: u64, word: Word) -> bool {
        // ORDERING: Release, of a word that may come after others of the same slot: who reads it sees that those are done.
        self.node(name).word.store(word.0, Ordering::Release);
        // ORDERING: Acquire pairs with the Release of `release`; Release with the Acquire of who looks for the holder's word.
        self.head.compare_exchange(NONE, word.head(name), Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Whether `name` is in the queue now, behind the holder `head`; if not, the queue has changed.
    fn queue_behind(&self, head: u64, name: u64, mine: Word) -> bool {
        let mut before = self.node(head);
        let mut word = before.word();
        if word.head(head & Word::NEXT) != head {
            return false;
        }
        // BOUND: none. A step ends with the place found, or further down; or others got in here, or the head left, meanwhile.
        while !word.is_done() {
            let next = word.next();
            if next != NONE {
                let node = self.node(next);
                let after = node.word();
                // ORDERING: after the Acquire of `after`: had `next` left the queue before that was written, so had `before`, and
                // this would show it.
                let again = before.word();
                if again != word {
                    if again.version() != word.version() {
                        return false;
                    }
                    word = again;
                    continue;
                }
                if after.priority() >= mine.priority() {
                    (before, word) = (node, after);
                    continue;
                }
            }
            // ORDERING: Release, as in `take_free`.
            self.node(name).word.store(mine.with_next(next).0, Ordering::Release);
            if before.insert(word, name) {
                return true;
            }
            let again = before.word();
            if again.version() != word.version() {
                return false;
            }
            word = again;
        }
        false
    }
}

// SAFETY: who finds no head is alone; all others are let in by the holder, once, at its release, from the queue it is the head of. A
// word that is exchanged was in the queue, so nobody gets in behind one that is done: see the top. Where a guard was leaked,
// nobody is let in any more.
#[allow(unsafe_code)]
unsafe impl<const SLOTS: usize, R: Relax> Algorithm for JohnsonHarathi<SLOTS, R> {
    type Request<'r> = (&'r Slot, Priority);
    /// The holder's name.
    type Hold = u64;

    free_by_new!();

    fn request(slot: &Slot, priority: Priority) -> (&Slot, Priority) {
        (slot, priority)
    }

    #[inline]
    fn acquire(&self, (slot, priority): (&Slot, Priority)) -> u64 {
        let name = slot.below(SLOTS) as u64 + 1;
        let node = self.node(name);
        let word = Word::new(Word(node.word.load(Ordering::Relaxed)).next_version(), priority);
        node.waits.store(1, Ordering::Relaxed);
        let mut relax = R::default();
        // BOUND: none; see the type.
        loop {
            // ORDERING: Acquire pairs with the Release of who became the holder, or made it: its word has been written.
            let head = self.head.load(Ordering::Acquire);
            if head == NONE {
                if self.take_free(name, word) {
                    return name;
                }
            } else if self.queue_behind(head, name, word) {
                break;
            }
            relax.relax();
        }
        let mut relax = R::default();
        // ORDERING: Acquire pairs with the Release of the hand-off.
        // BOUND: the sections of those before in the queue, and of all who are more urgent.
        while node.waits.load(Ordering::Acquire) != 0 {
            relax.relax();
        }
        name
    }

    #[inline]
    fn try_acquire(&self, (slot, priority): (&Slot, Priority)) -> Option<u64> {
        let name = slot.below(SLOTS) as u64 + 1;
        // While there is a head, a word may be in use: that of a leaked guard too.
        if self.head.load(Ordering::Relaxed) != NONE {
            return None;
        }
        let version = Word(self.node(name).word.load(Ordering::Relaxed)).next_version();
        self.take_free(name, Word::new(version, priority)).then_some(name)
    }

    #[inline]
    unsafe fn release(&self, name: u64) {
        // ORDERING: Acquire pairs with the Release of who got in next: its word and `waits` are seen. Release: who sees a word
        // written after this section sees this.
        // An addition to a bit that is clear: one instruction where a processor has it, while an `or` that returns the old word loops.
        let word = Word(self.node(name).word.fetch_add(Word::DONE, Ordering::AcqRel));
        let next = word.next();
        if next == NONE {
            // ORDERING: Release pairs with the Acquire of who finds it free.
            self.head.store(NONE, Ordering::Release);
        } else {
            let node = self.node(next);
            // ORDERING: Release pairs with the Acquire of who looks for the holder's word.
            self.head.store(Word(node.word.load(Ordering::Relaxed)).head(next), Ordering::Release);
            // ORDERING: Release pairs with the Acquire of the waiter.
            node.waits.store(0, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{self, Probe};

    impl<const SLOTS: usize, R: Relax> Probe for JohnsonHarathi<SLOTS, R> {
        fn has_asked(&self, _: usize, waiters: usize) -> bool {
            let next = |name: u64| Word(self.node(name).word.load(Ordering::Relaxed)).next();
            let holder = self.head.load(Ordering::Relaxed) & Word::NEXT;
            let queued = core::iter::successors(Some(next(holder)), |&name| (name != NONE).then(|| next(name)));
            queued.take(SLOTS + 1).filter(|&name| name != NONE).count() == waiters
        }
    }

    testing::exclusion!(JohnsonHarathi<8, testing::Patient>);
    testing::order!(JohnsonHarathi<16, testing::Patient>, Order::Priority);

    #[test]
    fn a_word_keeps_its_parts_apart() {
        let word = Word::new(u64::MAX >> Word::VERSION_AT, Priority(u32::MAX)).with_next(64);
        assert_eq!((word.next(), word.is_done(), word.priority()), (64, false, Priority(u32::MAX)));
        assert_eq!(word.version(), (1 << 24) - 1);
        assert_eq!((word.next_version(), word.with_next(NONE).next()), (0, NONE));
        assert!(Word(word.0 | Word::DONE).is_done());
    }
}
