//! Recordings of running programs: which threads executed when, and which locks they requested, waited for and held.
//!
//! The recording library writes a recording while a program runs; this crate reads it, infers a task set from it, and
//! finds what went wrong: priority inversions, long waits, orders of locking that can deadlock.

#![forbid(unsafe_code)]

mod event;
pub mod file;
#[cfg(feature = "programs")]
mod names;
mod recording;
#[cfg(feature = "programs")]
mod start;

pub use event::{Clock, Event, EventKind, Mode, Policy, Stop, Wait};
pub use file::FileError;
pub use recording::{MutexProtocol, Object, ObjectId, ObjectKind, Recording, Site, SiteId, Thread, ThreadIndex};
#[cfg(feature = "programs")]
pub use start::{Options, Run, StartError, start};
