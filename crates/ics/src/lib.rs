//! Interruptible critical sections: shared data for which an urgent thread never has to wait.
//!
//! A section reads a consistent state, records what it writes, and commits with one compare-and-swap. A commit
//! invalidates the sections that entered before it; an invalidated section restarts. On one processor, only more urgent
//! threads can therefore delay a thread, because no thread waits for a preempted one. The next entry performs the
//! writes that were posted last, which are those of one section.
//!
//! | item | purpose |
//! |---|---|
//! | [`Ics`] | words, and sections that write several of them at once |
//! | [`Var`] | one word, or several words that hold a [`Data`] together |
//! | [`Single`] | a single word without records |
//! | [`PriorityQueue`], [`OrderedMap`] | structures of nodes in fixed storage, changed by at most three writes |
//! | [`Commit`] | the strategy that decides commits: [`Locked`], or `Uniprocessor` on x86-64 |
//!
//! The crate `lockwright` adds a strategy with restartable sequences of Linux, and interruptible locks.
//!
//! # Guarantees
//! - Committed sections and queries are linearizable under every preemption.
//!   With [`Locked`] this holds on any number of processors.
//!   With `Uniprocessor` it holds on the one processor to which all users are bound.
//! - No thread waits for another thread.
//!   A thread that is stopped or killed in a section does no harm: it has changed nothing, or the next entry performs
//!   its commit.
//! - Of the sections that try to commit at the same time, one succeeds.
//!   A section restarts as often as others commit during it, and there is no other bound.
//!   On one processor these are commits of more urgent threads.
//!   If less urgent threads restart too often, they can lock first: see the interruptible locks of `lockwright`.
//! - Nothing allocates.
//!   Memory of zeros is a valid [`Ics`] or [`Single`] with [`Locked`]; the structures and other strategies need their
//!   constructors.
//!
//! # Targets
//! The crate needs 64-bit compare-and-swap.
//! The build fails with one message on a target without it, such as `thumbv7em-none-eabihf`.
//!
//! # Reference
//! T. Johnson, K. Harathi: Interruptible critical sections. University of Florida, 1994.
//!
//! # Examples
//! ```
//! use lockwright_ics::{Ics, Var, Word};
//!
//! const COUNT: Var<u64> = Var::new(0);
//! static SHARED: Ics<[Word; 1], 4, 1> = Ics::new([Word::new(0)]);
//!
//! let mut writer = SHARED.writer().expect("four threads may write");
//! writer.update(|section| {
//!     let count = section.read(COUNT)?;
//!     section.write(COUNT, count + 1)
//! })?;
//! assert_eq!(SHARED.query(|view| view.read(COUNT))?, 1);
//! # Ok::<(), lockwright_ics::Stop>(())
//! ```

#![warn(missing_debug_implementations)]
#![no_std]
#![deny(unsafe_code)]
// A model does not use everything.
#![cfg_attr(any(lockwright_loom, lockwright_shuttle), allow(unused))]

#[cfg(any(test, lockwright_loom, lockwright_shuttle))]
extern crate std;

mod commit;
mod data;
mod ics;
mod layout;
#[cfg(test)]
mod mutation;
mod offsets;
mod record;
mod shadow;
mod single;
mod stop;
mod sync;
#[cfg(test)]
mod testing;
mod transaction;
mod var;
mod view;
mod word;
mod writer;

#[cfg(all(target_arch = "x86_64", not(any(lockwright_loom, lockwright_shuttle))))]
pub use commit::Uniprocessor;
#[doc(hidden)]
pub use commit::Work;
pub use commit::{Commit, Locked};
pub use data::{Data, Value};
pub use ics::Ics;
pub use layout::{PLACES_MAX, WRITERS_MAX};
#[doc(hidden)]
pub use offsets::Offsets;
pub use record::Stats;
pub use shadow::{MapWriter, OrderedMap, PriorityQueue, QueueWriter, Still};
pub use single::Single;
pub use stop::Stop;
pub use transaction::Transaction;
pub use var::Var;
pub use view::View;
pub use word::{Word, Words};
pub use writer::Writer;

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
