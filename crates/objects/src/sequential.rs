//! Sequential objects in an array of words, of which all words are zero at first.
//!
//! A concurrent execution may see words of different instants. It ends after the same number of accesses, and its
//! result is discarded.

use crate::Value;
use core::marker::PhantomData;

/// The words of an object.
pub(crate) trait Words {
    fn get(&mut self, word: usize) -> u64;
    fn set(&mut self, word: usize, bits: u64);
}

/// A request of one participant, as words that others can read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Request {
    Push(u64),
    Pop,
}

/// The answer: whether the queue was not full, or not empty, and the value that was removed.
pub(crate) type Answer = (bool, u64);

/// A sequential object.
pub(crate) trait Sequential {
    /// The words of a line that contain values.
    const PER_LINE: usize;
    /// The words that contain no values, in an object whose lines contain values only.
    const HEADER: usize;

    /// Returns the greatest numbers of accesses of an operation, for a capacity.
    fn accesses(capacity: usize) -> Accesses;

    fn apply(words: &mut impl Words, capacity: usize, request: Request) -> Answer;
}

pub(crate) struct Accesses {
    /// The words that an operation gets.
    pub(crate) gets: usize,
    /// The words that it sets.
    pub(crate) sets: usize,
    /// The lines that contain the words that it sets.
    pub(crate) lines: usize,
}

/// The words that the memory of an object copies together. Models have small lines.
pub(crate) const LINE: usize = if cfg!(any(test, lockwright_loom, lockwright_shuttle)) { 2 } else { 16 };

/// A FIFO queue: the position of the oldest value, the number of values, and the ring of values.
pub(crate) struct Fifo;

impl Sequential for Fifo {
    const PER_LINE: usize = LINE;
    const HEADER: usize = 2;

    fn accesses(_: usize) -> Accesses {
        Accesses { gets: 3, sets: 2, lines: 2 }
    }

    fn apply(words: &mut impl Words, capacity: usize, request: Request) -> Answer {
        let first = words.get(0) as usize % capacity;
        let count = words.get(1) as usize;
        match request {
            Request::Push(_) if count >= capacity => (false, 0),
            Request::Push(bits) => {
                words.set(Self::HEADER + (first + count) % capacity, bits);
                words.set(1, count as u64 + 1);
                (true, 0)
            }
            Request::Pop if count == 0 => (false, 0),
            Request::Pop => {
                let bits = words.get(Self::HEADER + first);
                words.set(0, ((first + 1) % capacity) as u64);
                words.set(1, count as u64 - 1);
                (true, bits)
            }
        }
    }
}

/// The words of the nodes of a binary heap. The root is in word 1.
pub(crate) trait Layout {
    /// Returns the word of the last of `count` nodes, or 0 if there is none. A node is added after it.
    fn last(count: usize) -> usize;
    /// Returns the word of the parent of a node other than the root.
    fn parent(word: usize) -> usize;
    /// Returns the words of the children of a node. They are beyond the last node if these do not exist.
    fn children(word: usize) -> [usize; 2];
}

/// Level by level in consecutive words.
pub(crate) struct Dense;

impl Layout for Dense {
    fn last(count: usize) -> usize {
        count
    }
    fn parent(word: usize) -> usize {
        word / 2
    }
    fn children(word: usize) -> [usize; 2] {
        [2 * word, 2 * word + 1]
    }
}

/// Subtrees of several levels in one line each, so that a path touches few lines. The subtrees themselves are a tree in
/// consecutive lines, in which each has as many children as a line has words. A line's word 0 is not a node.
pub(crate) struct Subtrees;

impl Subtrees {
    pub(crate) const NODES: usize = LINE - 1;
    /// The number in its line of the first leaf of a subtree.
    const LEAF: usize = LINE / 2;

    /// The levels of subtrees in a heap.
    pub(crate) const fn levels(capacity: usize) -> usize {
        let (mut levels, mut width, mut nodes) = (0, 1, 0);
        while nodes < capacity {
            nodes += width * Self::NODES;
            width *= LINE;
            levels += 1;
        }
        levels
    }
}

impl Layout for Subtrees {
    #[inline]
    fn last(count: usize) -> usize {
        // No consistent heap has so many nodes that this wraps.
        if count == 0 { 0 } else { count.wrapping_add((count - 1) / Self::NODES) }
    }
    #[inline]
    fn parent(word: usize) -> usize {
        let (line, node) = (word / LINE, word % LINE);
        if node > 1 {
            return word - node + node / 2;
        }
        let child = line - 1;
        child / LINE * LINE + Self::LEAF + child % LINE / 2
    }
    #[inline]
    fn children(word: usize) -> [usize; 2] {
        let (line, node) = (word / LINE, word % LINE);
        if node < Self::LEAF {
            return [word + node, word + node + 1];
        }
        let child = (line * LINE + 1 + 2 * (node - Self::LEAF)) * LINE + 1;
        [child, child + LINE]
    }
}

/// A binary heap with the greatest value first. Word 0 is the number of values.
pub(crate) struct Heap<T, L>(PhantomData<(T, L)>);

impl<T: Value + Ord, L: Layout> Sequential for Heap<T, L> {
    const PER_LINE: usize = Subtrees::NODES;
    const HEADER: usize = 0;

    fn accesses(capacity: usize) -> Accesses {
        let lines = Subtrees::levels(capacity);
        let levels = lines * LINE.ilog2() as usize;
        Accesses { gets: 3 + 2 * levels, sets: 2 + levels, lines }
    }

    fn apply(words: &mut impl Words, capacity: usize, request: Request) -> Answer {
        let count = words.get(0) as usize;
        match request {
            Request::Push(_) if count >= capacity => (false, 0),
            Request::Push(bits) => {
                let mut word = L::last(count + 1);
                // BOUND: the levels of the heap.
                while word > 1 {
                    let above = L::parent(word);
                    let parent = words.get(above);
                    if T::from_bits(parent) >= T::from_bits(bits) {
                        break;
                    }
                    words.set(word, parent);
                    word = above;
                }
                words.set(word, bits);
                words.set(0, count as u64 + 1);
                (true, 0)
            }
            // No consistent heap has more values than its capacity.
            Request::Pop if count == 0 || count > capacity => (false, 0),
            Request::Pop => {
                let greatest = words.get(1);
                let bits = words.get(L::last(count));
                let rest = count - 1;
                let (last, mut word) = (L::last(rest), 1);
                // BOUND: the levels of the heap.
                loop {
                    let [mut child, right] = L::children(word);
                    if child > last {
                        break;
                    }
                    let mut below = words.get(child);
                    if right <= last {
                        let other = words.get(right);
                        if T::from_bits(other) > T::from_bits(below) {
                            (child, below) = (right, other);
                        }
                    }
                    if T::from_bits(bits) >= T::from_bits(below) {
                        break;
                    }
                    words.set(word, below);
                    word = child;
                }
                words.set(word, bits);
                words.set(0, rest as u64);
                (true, greatest)
            }
        }
    }
}
