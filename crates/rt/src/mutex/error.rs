//! How long a lock waits, how it succeeds, and why it fails.

use super::cycle::Cycle;
use lockwright_sys::SysError;
use lockwright_sys::futex::Deadline;
use std::fmt;

/// How long a lock waits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Limit {
    /// Until the mutex is locked.
    Never,
    /// Until the deadline.
    At(Deadline),
    /// Not at all.
    Now,
}

impl Limit {
    /// The deadline of a thread that waits.
    pub(crate) fn until(self) -> Option<Deadline> {
        match self {
            Self::At(until) => Some(until),
            Self::Never | Self::Now => None,
        }
    }
}

/// The state in which a mutex was locked.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Acquired {
    /// The previous owner unlocked the mutex.
    Clean,
    /// The previous owner ended while it held the mutex, so the protected value may be inconsistent.
    OwnerDied,
}

/// Why a mutex could not be locked or unlocked.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum RawError {
    /// Another thread holds the mutex.
    Busy,
    /// The deadline passed.
    TimedOut,
    /// The caller would wait for itself. The cycle is `None` if it is unknown or not wanted.
    Deadlock(Option<Box<Cycle>>),
    /// An owner ended, and its successor unlocked the mutex without making it consistent.
    NotRecoverable,
    /// The caller is more urgent than the ceiling.
    AboveCeiling,
    /// The caller does not hold the mutex.
    NotOwner,
    /// The mutex, or its ceiling, is locked more often than the count can hold.
    TooOften,
    /// The operation does not apply to a mutex with these attributes or in this state, or an argument is invalid.
    Inapplicable,
    /// The kernel refused an operation.
    Sys(SysError),
}

impl fmt::Display for RawError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy => f.write_str("another thread holds the lock"),
            Self::TimedOut => f.write_str("the deadline passed before the lock was free"),
            Self::Deadlock(Some(cycle)) => write!(f, "a deadlock: {cycle}"),
            Self::Deadlock(None) => f.write_str("a deadlock: the caller would wait for itself"),
            Self::NotRecoverable => {
                f.write_str("an owner of the lock ended, and the next owner gave up: the lock is not recoverable")
            }
            Self::AboveCeiling => f.write_str("the caller is more urgent than the ceiling of the lock"),
            Self::NotOwner => f.write_str("the caller does not hold the lock"),
            Self::TooOften => f.write_str("the lock, or its ceiling, is locked more often than it can count"),
            Self::Inapplicable => {
                f.write_str("the operation does not apply to a lock with these attributes or this state")
            }
            Self::Sys(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RawError {}
