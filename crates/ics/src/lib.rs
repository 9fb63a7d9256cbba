//! Interruptible critical sections: data shared without waiting, where urgent threads go first.
//!
//! A section reads a consistent state, records what it wants to write, and commits by one compare-and-swap. If another section committed meanwhile, it begins again:
//! so on one processor a thread is delayed by more urgent ones alone, never by a less urgent one that it finds in the middle of a section. Whoever enters next performs
//! the writes posted last, those of one section at most.
//!
//! | | |
//! |---|---|
//! | [`Ics`] | words, and sections that write several of them at once; a [`Var`] is one, or several that hold a [`Data`] together |
//! | [`Single`] | one word alone, without any record |
//! | [`PriorityQueue`], [`OrderedMap`] | structures of nodes in fixed storage, changed by three writes at most |
//! | [`Commit`] | how a commit is decided: [`Locked`], `Plain` on x86-64; the runtime crate has one by restartable sequences of Linux |
//!
//! # What is guaranteed
//! - Sections that commit, and queries, happen as if one after the other (linearizable), whoever preempts whom and wherever: with [`Locked`] on any number of processors,
//!   with `Plain` on the one that all its users promise to stay on.
//! - No thread waits for another one. One that is stopped or killed in the middle of a section harms nobody: it has changed nothing, or its commit is performed
//!   by the next.
//! - Of those that try to commit at a time one succeeds. A section is repeated as often as others commit meanwhile: on one processor, as often as more urgent threads
//!   do; there is no other bound. Where that is too often for the less urgent, let them take a lock first (interruptible locks, in the runtime crate).
//! - Nothing allocates. All bits zero are a fresh [`Ics`] or [`Single`] with [`Locked`]; the structures, and other strategies, are to be constructed.
//!
//! # Targets
//! Those that have a compare-and-swap of 64 bits.
//!
//! # Reference
//! T. Johnson, K. Harathi: Interruptible critical sections. University of Florida, 1994.
//!
//! # Examples
//! See [`Ics`].

#![no_std]
#![deny(unsafe_code)]
// A model leaves out what it has no use for.
#![cfg_attr(any(lockwright_loom, lockwright_shuttle), allow(unused))]

#[cfg(any(test, lockwright_loom, lockwright_shuttle))]
extern crate std;

mod commit;
mod ics;
mod left_out;
mod record;
mod shadow;
mod single;
mod slot;
mod sync;
#[cfg(test)]
mod testing;
mod transaction;
mod value;

#[cfg(all(target_arch = "x86_64", not(any(lockwright_loom, lockwright_shuttle))))]
pub use commit::Plain;
pub use commit::{Commit, Locked};
pub use ics::{Ics, PLACES_MAX, SLOTS_MAX};
pub use record::Stats;
pub use shadow::{MapSlot, OrderedMap, PriorityQueue, QueueSlot, Still};
pub use single::Single;
pub use slot::Slot;
pub use transaction::{Stop, Transaction, View};
pub use value::{Data, Value, Var, Word, Words};
