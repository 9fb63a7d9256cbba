//! The objects that the construction makes.

use crate::construction::helping::Helping;
use crate::construction::repeating::Repeating;
use crate::sequential::{Answer, Fifo, Heap, Request, Subtrees};
use crate::sync::constructor;
use crate::{Bound, Full, PriorityQueue, Queue, Value, participant};
use core::fmt;
use core::marker::PhantomData;
use lockwright_locks::Slot;

macro_rules! constructed {
    (
        $(#[$attribute:meta])*
        $name:ident: $trait:ident, $construction:ident<$sequential:ty>, T: [$($bounds:tt)+],
        $push:ident, $pop:ident, $bound:literal
    ) => {
        $(#[$attribute])*
        pub struct $name<T, const BLOCKS: usize, const SLOTS: usize> {
            object: $construction<$sequential, BLOCKS, SLOTS>,
            holds: PhantomData<fn(T) -> T>,
        }

        impl<T: $($bounds)+, const BLOCKS: usize, const SLOTS: usize> $name<T, BLOCKS, SLOTS> {
            /// The number of values that fit.
            pub const CAPACITY: usize = $construction::<$sequential, BLOCKS, SLOTS>::CAPACITY;

            /// Returns the bound of both operations.
            #[must_use]
            pub fn bound() -> Bound {
                $construction::<$sequential, BLOCKS, SLOTS>::bound()
            }

            constructor! {
                /// Creates an empty object.
                ///
                /// # Panics
                /// If the object has no block or more than 1024 blocks, or its participants need more than 65535 lines
                /// of 16 words in all.
                #[must_use]
                pub fn new() -> Self {
                    Self { object: $construction::new(), holds: PhantomData }
                }
            }
        }

        impl<T: $($bounds)+, const BLOCKS: usize, const SLOTS: usize> $trait<T> for $name<T, BLOCKS, SLOTS> {
            #[doc = $bound]
            fn $push(&self, slot: &Slot, value: T) -> Result<(), Full> {
                let answer = self.object.perform(participant(slot, SLOTS), Request::Push(value.to_bits()));
                if answer.0 { Ok(()) } else { Err(Full) }
            }

            #[doc = $bound]
            fn $pop(&self, slot: &Slot) -> Option<T> {
                let (is_some, bits): Answer = self.object.perform(participant(slot, SLOTS), Request::Pop);
                is_some.then(|| T::from_bits(bits))
            }
        }

        impl<T: $($bounds)+, const BLOCKS: usize, const SLOTS: usize> Default for $name<T, BLOCKS, SLOTS> {
            fn default() -> Self {
                Self::new()
            }
        }

        impl<T, const BLOCKS: usize, const SLOTS: usize> fmt::Debug for $name<T, BLOCKS, SLOTS> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    };
}

constructed! {
    /// A wait-free bounded queue of `BLOCKS` blocks of 64 words, which holds two values fewer than it has words.
    ///
    /// A participant announces its request, and every attempt to commit also performs the request of another one.
    ///
    /// The slot of a participant that was killed in an operation must not be used for the same queue again.
    /// A version returns after 2^48 operations.
    ///
    /// # Reference
    /// J. Anderson, M. Moir: Universal constructions for large objects. IEEE TPDS 10(12), 1999.
    ///
    /// # Examples
    /// ```
    /// use lockwright_objects::{Queue, WaitFreeQueue};
    /// use lockwright_locks::Slot;
    ///
    /// static QUEUE: WaitFreeQueue<i32, 1, 4> = WaitFreeQueue::new();
    ///
    /// let slot = Slot::claim().expect("fewer than 64 threads have a slot");
    /// QUEUE.push(&slot, -1)?;
    /// assert_eq!(QUEUE.pop(&slot), Some(-1));
    /// # Ok::<(), lockwright_objects::Full>(())
    /// ```
    WaitFreeQueue: Queue, Helping<Fifo>, T: [Value], push, pop,
    "# Bound\nThose steps that `bound` returns, in `SLOTS` + 1 attempts at most."
}

constructed! {
    /// A lock-free priority queue, a heap of `BLOCKS` blocks, each of which holds 60 values.
    ///
    /// An operation copies the lines of 16 words that it changes and the table of all lines, and commits by one
    /// compare-and-swap.
    ///
    /// The slot of a participant that was killed in an operation must not be used for the same queue again.
    /// A version returns after 2^48 operations.
    ///
    /// # Reference
    /// J. Anderson, M. Moir: Universal constructions for large objects. IEEE TPDS 10(12), 1999.
    ///
    /// # Examples
    /// ```
    /// use lockwright_objects::{LockFreeHeap, PriorityQueue};
    /// use lockwright_locks::Slot;
    ///
    /// static HEAP: LockFreeHeap<i32, 1, 4> = LockFreeHeap::new();
    ///
    /// let slot = Slot::claim().expect("fewer than 64 threads have a slot");
    /// HEAP.insert(&slot, -1)?;
    /// HEAP.insert(&slot, 3)?;
    /// assert_eq!(HEAP.extract_max(&slot), Some(3));
    /// # Ok::<(), lockwright_objects::Full>(())
    /// ```
    LockFreeHeap: PriorityQueue, Repeating<Heap<T, Subtrees>>, T: [Value + Ord], insert, extract_max,
    "# Bound\nFor each attempt those steps that `bound` returns. There are as many attempts as operations of others \
     overlap, and one more."
}

constructed! {
    /// A wait-free priority queue, a heap of `BLOCKS` blocks, each of which holds 60 values.
    ///
    /// A participant announces its request, and every attempt to commit also performs the request of another one.
    ///
    /// The slot of a participant that was killed in an operation must not be used for the same queue again.
    /// A version returns after 2^48 operations.
    ///
    /// # Reference
    /// J. Anderson, M. Moir: Universal constructions for large objects. IEEE TPDS 10(12), 1999.
    ///
    /// # Examples
    /// ```
    /// use lockwright_objects::{PriorityQueue, WaitFreeHeap};
    /// use lockwright_locks::Slot;
    ///
    /// static HEAP: WaitFreeHeap<i32, 1, 4> = WaitFreeHeap::new();
    ///
    /// let slot = Slot::claim().expect("fewer than 64 threads have a slot");
    /// HEAP.insert(&slot, -1)?;
    /// HEAP.insert(&slot, 3)?;
    /// assert_eq!(HEAP.extract_max(&slot), Some(3));
    /// # Ok::<(), lockwright_objects::Full>(())
    /// ```
    WaitFreeHeap: PriorityQueue, Helping<Heap<T, Subtrees>>, T: [Value + Ord], insert, extract_max,
    "# Bound\nThose steps that `bound` returns, in `SLOTS` + 1 attempts at most."
}
