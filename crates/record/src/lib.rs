//! Recordings of running programs: which threads executed when, and which locks they requested, waited for and held.
//!
//! The recording library writes a recording while a program runs; this crate reads it, infers a task set from it, and
//! finds what went wrong: priority inversions, long waits, orders of locking that can deadlock.

#![forbid(unsafe_code)]

mod event;
mod recording;

pub use event::{Clock, Event, EventKind, Mode, Policy, Stop, Wait};
pub use recording::{MutexProtocol, Object, ObjectId, ObjectKind, Recording, Site, SiteId, Thread, ThreadIndex};
