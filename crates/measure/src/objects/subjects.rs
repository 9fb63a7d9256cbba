//! The objects of the measurement behind one interface.

use lockwright::locks::{Slot, SpinLock, Ticket};
use lockwright::mutex::Mutex;
use lockwright::objects::{self, Buffer as _, PriorityQueue as _, Queue as _};
use lockwright_objects_steps::{self as steps, Buffer as _, PriorityQueue as _, Queue as _};
use std::collections::{BinaryHeap, VecDeque};
use std::hint::black_box;

/// The words of a buffer.
pub(super) const WORDS: usize = 10;
/// The blocks of a queue made by the construction. 10,000 operations, of which 60 % are pushes, leave 2,000 values.
pub(super) const QUEUE_BLOCKS: usize = 32;
/// The values that a queue holds.
pub(super) const QUEUE_CAPACITY: usize = 2046;
/// The blocks of a heap.
pub(super) const HEAP_BLOCKS: usize = 17;
/// The values that a heap holds.
pub(super) const HEAP_CAPACITY: usize = 1020;

/// All objects of a kind hold as many values.
const _: () = assert!(objects::WaitFreeQueue::<u64, QUEUE_BLOCKS, 2>::CAPACITY == QUEUE_CAPACITY);
const _: () = assert!(objects::LockFreeHeap::<u64, HEAP_BLOCKS, 2>::CAPACITY == HEAP_CAPACITY);

/// An operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Call {
    /// A write, a push, or an insertion.
    Put(u64),
    /// A read, a pop, or the extraction of the greatest value.
    Take,
}

/// A sequential object. An operation on a full or empty one does nothing.
pub(super) trait Sequential: Send + 'static {
    fn call(&mut self, call: Call);
}

/// An object that several threads use.
pub(super) trait Shared: Send + Sync + 'static {
    fn call(&self, slot: &Slot, call: Call);
}

/// An object with a bound.
pub(super) trait Bounded: Shared {
    /// The greatest number of steps of a call that `interfering` operations of others overlap.
    fn steps_max(call: Call, interfering: u64) -> u64;
}

/// A sequential buffer.
pub(super) struct PlainBuffer(pub(super) [u64; WORDS]);

/// A sequential queue.
pub(super) struct PlainQueue(pub(super) VecDeque<u64>);

/// A sequential heap.
pub(super) struct PlainHeap(pub(super) BinaryHeap<u64>);

impl Sequential for PlainBuffer {
    #[inline]
    fn call(&mut self, call: Call) {
        match call {
            Call::Put(value) => self.0 = black_box([value; WORDS]),
            Call::Take => _ = black_box(self.0),
        }
    }
}

impl Sequential for PlainQueue {
    #[inline]
    fn call(&mut self, call: Call) {
        match call {
            Call::Put(value) if self.0.len() < QUEUE_CAPACITY => self.0.push_back(value),
            Call::Put(_) => {}
            Call::Take => _ = black_box(self.0.pop_front()),
        }
    }
}

impl Sequential for PlainHeap {
    #[inline]
    fn call(&mut self, call: Call) {
        match call {
            Call::Put(value) if self.0.len() < HEAP_CAPACITY => self.0.push(value),
            Call::Put(_) => {}
            Call::Take => _ = black_box(self.0.pop()),
        }
    }
}

impl<P: Sequential> Shared for SpinLock<Ticket, P> {
    #[inline]
    fn call(&self, _: &Slot, call: Call) {
        self.lock().call(call);
    }
}

impl<P: Sequential> Shared for Mutex<P> {
    #[inline]
    fn call(&self, _: &Slot, call: Call) {
        // Only this measurement uses the mutex, and no thread of it ends inside.
        if let Ok(mut plain) = self.lock() {
            plain.call(call);
        }
    }
}

/// Implements [`Shared`] for objects of a crate: their name, second parameter and operations.
macro_rules! shared {
    ($crate_name:ident: $($object:ident<$size:ident>, $put:ident($value:ident => $words:expr), $take:ident;)+) => {$(
        impl<const SLOTS: usize> Shared for $crate_name::$object<u64, $size, SLOTS> {
            #[inline]
            fn call(&self, slot: &Slot, call: Call) {
                match call {
                    Call::Put($value) => _ = black_box(self.$put(slot, $words)),
                    Call::Take => _ = black_box(self.$take(slot)),
                }
            }
        }
    )+};
}

/// Implements [`Bounded`]: the bounds of both operations.
macro_rules! bounded {
    ($($object:ident<$size:ident>: $put:expr, $take:expr;)+) => {$(
        impl<const SLOTS: usize> Bounded for steps::$object<u64, $size, SLOTS> {
            fn steps_max(call: Call, interfering: u64) -> u64 {
                let bound = match call {
                    Call::Put(_) => $put,
                    Call::Take => $take,
                };
                bound.steps(interfering)
            }
        }
    )+};
}

macro_rules! all {
    ($crate_name:ident) => {
        shared! {
            $crate_name:
            LockFreeBuffer<WORDS>, write(value => [value; WORDS]), read;
            WaitFreeBuffer<WORDS>, write(value => [value; WORDS]), read;
            LockFreeQueue<QUEUE_CAPACITY>, push(value => value), pop;
            WaitFreeQueue<QUEUE_BLOCKS>, push(value => value), pop;
            LockFreeHeap<HEAP_BLOCKS>, insert(value => value), extract_max;
            WaitFreeHeap<HEAP_BLOCKS>, insert(value => value), extract_max;
        }
    };
}

all!(objects);
all!(steps);
bounded! {
    LockFreeBuffer<WORDS>: Self::WRITE, Self::READ;
    WaitFreeBuffer<WORDS>: Self::WRITE, Self::READ;
    LockFreeQueue<QUEUE_CAPACITY>: Self::PUSH, Self::POP;
    WaitFreeQueue<QUEUE_BLOCKS>: Self::bound(), Self::bound();
    LockFreeHeap<HEAP_BLOCKS>: Self::bound(), Self::bound();
    WaitFreeHeap<HEAP_BLOCKS>: Self::bound(), Self::bound();
}
