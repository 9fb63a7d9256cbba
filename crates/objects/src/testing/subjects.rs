//! The objects under test.

use super::history::{Answer, Operation, Sequential};
use crate::{Bound, Buffer, Full, LockFreeBuffer, LockFreeHeap, LockFreeQueue, PriorityQueue, Queue};
use crate::{WaitFreeBuffer, WaitFreeHeap, WaitFreeQueue};
use lockwright_locks::Slot;
use std::collections::VecDeque;

/// An object under test, and what it must do.
pub(crate) trait Subject: Send + Sync + 'static {
    fn new() -> Self;
    fn sequential() -> Sequential;
    fn perform(&self, slot: &Slot, operation: Operation) -> Answer;
    fn bound(operation: Operation) -> Bound;
    /// Whether an operation of another participant interferes with one.
    fn interferes(one: Operation, other: Operation) -> bool;
}

fn pushed(result: Result<(), Full>) -> Answer {
    result.map_or(Answer::Full, |()| Answer::Done)
}

/// A queue of one segment.
pub(crate) type SmallQueue = LockFreeQueue<u64, 2, 4>;

/// A queue of two segments, of which the second is shorter.
pub(crate) type LongerQueue = LockFreeQueue<u64, 3, 4>;

impl<const CAPACITY: usize> Subject for LockFreeQueue<u64, CAPACITY, 4> {
    fn new() -> Self {
        Self::new()
    }
    fn sequential() -> Sequential {
        Sequential::Queue(VecDeque::new(), CAPACITY)
    }
    fn perform(&self, slot: &Slot, operation: Operation) -> Answer {
        match operation {
            Operation::Push(value) => pushed(self.push(slot, value)),
            _ => Answer::Value(self.pop(slot)),
        }
    }
    fn bound(operation: Operation) -> Bound {
        if matches!(operation, Operation::Push(_)) { Self::PUSH } else { Self::POP }
    }
    fn interferes(one: Operation, other: Operation) -> bool {
        matches!(one, Operation::Push(_)) == matches!(other, Operation::Push(_))
    }
}

macro_rules! buffer {
    ($name:ident, $buffer:ident) => {
        pub(crate) type $name = $buffer<u64, 2, 4>;

        impl Subject for $name {
            fn new() -> Self {
                Self::new()
            }
            fn sequential() -> Sequential {
                Sequential::Buffer(0)
            }
            fn perform(&self, slot: &Slot, operation: Operation) -> Answer {
                match operation {
                    Operation::Write(value) => {
                        self.write(slot, [value; 2]);
                        Answer::Done
                    }
                    _ => {
                        let [first, second] = self.read(slot);
                        if first == second { Answer::Value(Some(first)) } else { Answer::Torn }
                    }
                }
            }
            fn bound(operation: Operation) -> Bound {
                if matches!(operation, Operation::Write(_)) { Self::WRITE } else { Self::READ }
            }
            fn interferes(_: Operation, other: Operation) -> bool {
                matches!(other, Operation::Write(_))
            }
        }
    };
}

buffer!(RepeatingBuffer, LockFreeBuffer);
buffer!(HoldingBuffer, WaitFreeBuffer);

macro_rules! constructed {
    ($name:ident, $larger:ident, $object:ident, $sequential:ident, $push:ident, $pop:ident) => {
        /// An object of one block, so that one word is the table.
        pub(crate) type $name = $object<u64, 1, 4>;

        /// An object of two blocks, so that an attempt may copy words of different tables.
        pub(crate) type $larger = $object<u64, 2, 4>;

        impl<const BLOCKS: usize> Subject for $object<u64, BLOCKS, 4> {
            fn new() -> Self {
                Self::new()
            }
            fn sequential() -> Sequential {
                Sequential::$sequential(Default::default(), Self::CAPACITY)
            }
            fn perform(&self, slot: &Slot, operation: Operation) -> Answer {
                match operation {
                    Operation::Push(value) => pushed(self.$push(slot, value)),
                    _ => Answer::Value(self.$pop(slot)),
                }
            }
            fn bound(_: Operation) -> Bound {
                Self::bound()
            }
            fn interferes(_: Operation, _: Operation) -> bool {
                true
            }
        }
    };
}

constructed!(HelpingQueue, LargerHelpingQueue, WaitFreeQueue, Queue, push, pop);
constructed!(RepeatingHeap, LargerRepeatingHeap, LockFreeHeap, Heap, insert, extract_max);
constructed!(HelpingHeap, LargerHelpingHeap, WaitFreeHeap, Heap, insert, extract_max);
