//! Recordings of running programs: which threads executed when, and which locks they requested, waited for and held.
//!
//! The recording library writes a recording while a program runs; this crate reads it, infers a task set from it
//! (`infer`), and finds what went wrong (`Findings`): priority inversions, long waits, orders of locking that can
//! deadlock. `Trends` summarises how a program uses its locks.
//!
//! # Features
//!
//! - `infer`: task sets, findings and trends.
//! - `names`: finds the functions, lines and variables behind addresses, in the files of the program. Without this
//!   feature, they remain addresses.
//! - `programs`: starts programs.

#![forbid(unsafe_code)]

#[cfg(feature = "infer")]
mod callbacks;
mod event;
pub mod file;
#[cfg(feature = "infer")]
mod findings;
#[cfg(feature = "infer")]
mod held;
#[cfg(feature = "infer")]
mod history;
#[cfg(feature = "infer")]
mod infer;
#[cfg(feature = "names")]
mod names;
mod recording;
#[cfg(feature = "infer")]
mod schedule;
#[cfg(feature = "programs")]
mod start;
#[cfg(feature = "infer")]
mod texts;
#[cfg(feature = "infer")]
mod trends;

pub use event::{Clock, Event, EventKind, Policy, Stop, Wait};
pub use file::FileError;
#[cfg(feature = "infer")]
pub use findings::{
    Cycle, CycleStep, Findings, INVERSION_MIN_NS, Inversion, Inverted, LockUse, LockWait, LongSection, ThreadUse,
};
#[cfg(feature = "infer")]
pub use infer::{Boundary, Choices, Inferred, InferredTask, Job, LeftOut, Regularity, has_wait_at, infer};
pub use lockwright_model::Mode;
pub use recording::{
    Callback, CallbackId, MutexProtocol, Object, ObjectId, ObjectKind, Recording, Site, SiteId, Thread, ThreadIndex,
};
#[cfg(feature = "infer")]
pub use schedule::of_schedule;
#[cfg(feature = "programs")]
pub use start::{Options, Run, StartError, start};
#[cfg(feature = "infer")]
pub use trends::{SHORT_NS, Trends};
