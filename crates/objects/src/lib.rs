//! Non-blocking objects for real time: buffers, queues and priority queues, lock-free and wait-free.
//!
//! | object | interface | lock-free | wait-free | under a spinlock |
//! |---|---|---|---|---|
//! | buffer of several words | [`Buffer`] | [`LockFreeBuffer`] | [`WaitFreeBuffer`] | [`LockedBuffer`] |
//! | bounded FIFO queue | [`Queue`] | [`LockFreeQueue`] | [`WaitFreeQueue`] | [`LockedQueue`] |
//! | priority queue | [`PriorityQueue`] | [`LockFreeHeap`] | [`WaitFreeHeap`] | [`LockedHeap`] |
//!
//! A participant is a thread or core with a [`Slot`](lockwright_locks::Slot); an object of `SLOTS` slots serves the
//! slots below this number.
//!
//! # Guarantees
//! The objects under a spinlock give none of these except linearizable operations and no allocation.
//!
//! - Operations are linearizable on any number of processors.
//! - No participant waits for another one: a participant that is preempted or killed inside an operation does not stop
//!   the others.
//!   The slot of a participant that was killed inside an operation must not be used for the same object again.
//! - Each operation has a [`Bound`] in steps, where a step is one access to shared memory.
//!   A wait-free operation takes at most this number of steps, whatever others do.
//!   A lock-free operation takes one attempt, and one more for each interfering operation that overlaps it.
//! - Nothing allocates, and there is no `unsafe` code.
//!   An object of zeros is valid and empty.
//!
//! # Targets
//! The crate needs 64-bit compare-and-swap that fails for no other reason than a different value.
//! An Arm processor without the atomic instructions of Armv8.1 (LSE) builds it from load-exclusive and
//! store-exclusive, which may fail at any interrupt; the bounds in steps then do not hold.
//!
//! # Examples
//! ```
//! use lockwright_objects::{LockFreeQueue, Queue};
//! use lockwright_locks::Slot;
//!
//! static EVENTS: LockFreeQueue<u64, 32, 8> = LockFreeQueue::new();
//!
//! let slot = Slot::claim().expect("fewer than 64 threads have a slot");
//! EVENTS.push(&slot, 42)?;
//! assert_eq!(EVENTS.pop(&slot), Some(42));
//! # Ok::<(), lockwright_objects::Full>(())
//! ```

#![warn(missing_debug_implementations)]
#![no_std]
#![cfg_attr(not(test), forbid(unsafe_code))]
// A model does not use everything.
#![cfg_attr(any(lockwright_loom, lockwright_shuttle, lockwright_steps), allow(unused))]

#[cfg(any(test, lockwright_loom, lockwright_shuttle, lockwright_steps))]
extern crate std;

mod bound;
mod buffer;
mod constructed;
mod construction;
mod locked;
mod mutation;
mod participant;
mod place;
mod priority_queue;
mod queue;
mod sequential;
mod sync;
#[cfg(test)]
mod testing;
mod word;

pub use bound::Bound;
pub use buffer::Buffer;
pub use buffer::lock_free::LockFreeBuffer;
pub use buffer::wait_free::WaitFreeBuffer;
pub use constructed::{LockFreeHeap, WaitFreeHeap, WaitFreeQueue};
pub use locked::{LockedBuffer, LockedHeap, LockedQueue};
pub use lockwright_ics::Value;
pub(crate) use participant::participant;
pub use priority_queue::PriorityQueue;
pub use queue::lock_free::LockFreeQueue;
pub use queue::{Full, Queue};
#[cfg(lockwright_steps)]
pub use sync::steps;

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
