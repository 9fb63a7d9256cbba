//! How long to try for a mutex, how it comes, and why it does not.

use super::cycle::Cycle;
use lockwright_sys::SysError;
use lockwright_sys::futex::Deadline;

/// How long to try.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// Until the mutex comes.
    Never,
    /// Until then.
    At(Deadline),
    /// Not at all.
    Now,
}

/// How a mutex came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Acquired {
    /// As it should.
    Clean,
    /// The owner before ended while it held the mutex: what it protects may be half done.
    OwnerDied,
}

/// Why a mutex did not come, or could not be given back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RawError {
    /// Somebody has it.
    Busy,
    /// The time has come.
    TimedOut,
    /// The caller would wait for itself; along this cycle, where it is known.
    Deadlock(Option<Box<Cycle>>),
    /// An owner died, and the next one gave back without making it consistent.
    NotRecoverable,
    /// The caller is more urgent than the ceiling.
    AboveCeiling,
    /// The caller does not have it.
    NotOwner,
    /// Its owner took it too often.
    TooOften,
    /// Not a kind that can be.
    BadKind,
    /// The kernel refused.
    Sys(SysError),
}
