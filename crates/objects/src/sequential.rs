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
    /// The words in addition to those of the values.
    const HEADER: usize;

    /// Returns the greatest numbers of words that an operation gets and sets, each of them in how many blocks of memory
    /// at most, for a capacity.
    fn accesses(capacity: usize) -> Accesses;

    fn apply(words: &mut impl Words, capacity: usize, request: Request) -> Answer;
}

pub(crate) struct Accesses {
    pub(crate) gets: usize,
    pub(crate) sets: usize,
}

/// A FIFO queue: the position of the oldest value, the number of values, and the ring of values.
pub(crate) struct Fifo;

impl Sequential for Fifo {
    const HEADER: usize = 2;

    fn accesses(_: usize) -> Accesses {
        Accesses { gets: 3, sets: 2 }
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

/// A binary heap with the greatest value first: the number of values, and the values from word 1.
pub(crate) struct Heap<T>(PhantomData<T>);

impl<T: Value + Ord> Sequential for Heap<T> {
    const HEADER: usize = 1;

    fn accesses(capacity: usize) -> Accesses {
        let levels = (usize::BITS - capacity.leading_zeros()) as usize;
        Accesses { gets: 3 + 2 * levels, sets: 2 + levels }
    }

    fn apply(words: &mut impl Words, capacity: usize, request: Request) -> Answer {
        let count = words.get(0) as usize;
        match request {
            Request::Push(_) if count >= capacity => (false, 0),
            Request::Push(bits) => {
                let mut word = count + 1;
                // BOUND: the levels of the heap.
                while word > 1 {
                    let parent = words.get(word / 2);
                    if T::from_bits(parent) >= T::from_bits(bits) {
                        break;
                    }
                    words.set(word, parent);
                    word /= 2;
                }
                words.set(word, bits);
                words.set(0, count as u64 + 1);
                (true, 0)
            }
            // No consistent heap has more values than its capacity.
            Request::Pop if count == 0 || count > capacity => (false, 0),
            Request::Pop => {
                let greatest = words.get(1);
                let bits = words.get(count);
                let rest = count - 1;
                let mut word = 1;
                // BOUND: the levels of the heap.
                while 2 * word <= rest {
                    let mut child = 2 * word;
                    let mut below = words.get(child);
                    if child < rest {
                        let right = words.get(child + 1);
                        if T::from_bits(right) > T::from_bits(below) {
                            (child, below) = (child + 1, right);
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
