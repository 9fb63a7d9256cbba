//! Sequential objects under a spinlock, behind the same interfaces.

use crate::sequential::{Dense, Fifo, Heap, Request, Sequential, Words};
use crate::sync::constructor;
use crate::{Buffer, Full, PriorityQueue, Queue, Value};
use core::fmt;
use core::marker::PhantomData;
use lockwright_locks::{Algorithm, Priority, Slot, SpinLock};

/// The words of a sequential object.
struct Cells<const HEADER: usize, const CAPACITY: usize> {
    header: [u64; HEADER],
    values: [u64; CAPACITY],
}

impl<const HEADER: usize, const CAPACITY: usize> Words for Cells<HEADER, CAPACITY> {
    fn get(&mut self, word: usize) -> u64 {
        if word < HEADER { self.header[word] } else { self.values[word - HEADER] }
    }
    fn set(&mut self, word: usize, bits: u64) {
        *(if word < HEADER { &mut self.header[word] } else { &mut self.values[word - HEADER] }) = bits;
    }
}

macro_rules! locked {
    (
        $(#[$attribute:meta])*
        $name:ident: $trait:ident, $sequential:ty, $header:literal, T: [$($bounds:tt)+], $push:ident, $pop:ident
    ) => {
        $(#[$attribute])*
        pub struct $name<A, T, const CAPACITY: usize> {
            object: SpinLock<A, Cells<$header, CAPACITY>>,
            holds: PhantomData<fn(T) -> T>,
        }

        impl<A: Algorithm, T, const CAPACITY: usize> $name<A, T, CAPACITY> {
            constructor! {
                /// Creates an empty object.
                #[must_use]
                pub fn new() -> Self {
                    assert!(CAPACITY > 0, "an object has a capacity of at least 1");
                    let object = SpinLock::new(Cells { header: [0; $header], values: [0; CAPACITY] });
                    Self { object, holds: PhantomData }
                }
            }
        }

        impl<A: Algorithm, T: $($bounds)+, const CAPACITY: usize> $trait<T> for $name<A, T, CAPACITY> {
            fn $push(&self, slot: &Slot, value: T) -> Result<(), Full> {
                let request = Request::Push(value.to_bits());
                let mut object = self.object.lock_with(A::request(slot, Priority::default()));
                if <$sequential>::apply(&mut *object, CAPACITY, request).0 { Ok(()) } else { Err(Full) }
            }

            fn $pop(&self, slot: &Slot) -> Option<T> {
                let mut object = self.object.lock_with(A::request(slot, Priority::default()));
                let (is_some, bits) = <$sequential>::apply(&mut *object, CAPACITY, Request::Pop);
                // Before the conversion, which is code of the user.
                drop(object);
                is_some.then(|| T::from_bits(bits))
            }
        }

        impl<A: Algorithm, T, const CAPACITY: usize> Default for $name<A, T, CAPACITY> {
            fn default() -> Self {
                Self::new()
            }
        }

        impl<A, T, const CAPACITY: usize> fmt::Debug for $name<A, T, CAPACITY> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    };
}

locked! {
    /// A bounded queue under a spinlock, with the interface of the non-blocking ones.
    ///
    /// All requests to the lock have the least priority.
    ///
    /// # Bound
    /// That of the algorithm `A`, whose holders and waiters must not be preempted.
    /// A participant that is killed inside an operation stops all others.
    ///
    /// # Examples
    /// ```
    /// use lockwright_objects::{LockedQueue, Queue};
    /// use lockwright_locks::{Slot, Ticket};
    ///
    /// static QUEUE: LockedQueue<Ticket, i32, 16> = LockedQueue::new();
    ///
    /// let slot = Slot::claim().expect("fewer than 64 threads have a slot");
    /// QUEUE.push(&slot, -1)?;
    /// assert_eq!(QUEUE.pop(&slot), Some(-1));
    /// # Ok::<(), lockwright_objects::Full>(())
    /// ```
    LockedQueue: Queue, Fifo, 2, T: [Value], push, pop
}

locked! {
    /// A priority queue under a spinlock, with the interface of the non-blocking ones.
    ///
    /// All requests to the lock have the least priority.
    ///
    /// # Bound
    /// That of the algorithm `A`, whose holders and waiters must not be preempted.
    /// A participant that is killed inside an operation stops all others.
    ///
    /// # Examples
    /// ```
    /// use lockwright_objects::{LockedHeap, PriorityQueue};
    /// use lockwright_locks::{Mcs, Slot};
    ///
    /// static HEAP: LockedHeap<Mcs<8>, i32, 15> = LockedHeap::new();
    ///
    /// let slot = Slot::claim().expect("fewer than 64 threads have a slot");
    /// HEAP.insert(&slot, -1)?;
    /// HEAP.insert(&slot, 3)?;
    /// assert_eq!(HEAP.extract_max(&slot), Some(3));
    /// # Ok::<(), lockwright_objects::Full>(())
    /// ```
    LockedHeap: PriorityQueue, Heap<T, Dense>, 1, T: [Value + Ord], insert, extract_max
}

/// A buffer under a spinlock, with the interface of the non-blocking ones.
///
/// All requests to the lock have the least priority.
///
/// # Bound
/// That of the algorithm `A`, whose holders and waiters must not be preempted.
/// A participant that is killed inside an operation stops all others.
///
/// # Examples
/// ```
/// use lockwright_objects::{Buffer, LockedBuffer};
/// use lockwright_locks::{Slot, Ticket};
///
/// static POSE: LockedBuffer<Ticket, f32, 3> = LockedBuffer::new();
///
/// let slot = Slot::claim().expect("fewer than 64 threads have a slot");
/// POSE.write(&slot, [1.0, 2.0, 0.5]);
/// assert_eq!(POSE.read(&slot), [1.0, 2.0, 0.5]);
/// ```
pub struct LockedBuffer<A, T, const WORDS: usize> {
    words: SpinLock<A, [u64; WORDS]>,
    holds: PhantomData<fn(T) -> T>,
}

impl<A: Algorithm, T, const WORDS: usize> LockedBuffer<A, T, WORDS> {
    constructor! {
        /// Creates a buffer of values whose bits are zero.
        #[must_use]
        pub fn new() -> Self {
            Self { words: SpinLock::new([0; WORDS]), holds: PhantomData }
        }
    }
}

impl<A: Algorithm, T: Value, const WORDS: usize> Buffer<T, WORDS> for LockedBuffer<A, T, WORDS> {
    fn read(&self, slot: &Slot) -> [T; WORDS] {
        let words = *self.words.lock_with(A::request(slot, Priority::default()));
        words.map(T::from_bits)
    }

    fn write(&self, slot: &Slot, values: [T; WORDS]) {
        let words = values.map(T::to_bits);
        *self.words.lock_with(A::request(slot, Priority::default())) = words;
    }
}

impl<A: Algorithm, T, const WORDS: usize> Default for LockedBuffer<A, T, WORDS> {
    fn default() -> Self {
        Self::new()
    }
}

impl<A, T, const WORDS: usize> fmt::Debug for LockedBuffer<A, T, WORDS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockedBuffer").finish_non_exhaustive()
    }
}
