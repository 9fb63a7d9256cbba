//! The results of a lock or an unlock.

use lockwright_protocol::Refusal;
use lockwright_sys::SysError;
use std::fmt;

/// Why a task could not lock or unlock a resource.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ResourceError {
    /// The task would wait for itself.
    Deadlock,
    /// The owner ended without unlocking the resource.
    OwnerDied,
    /// The protocol refused the request.
    Refused(Refusal),
    /// A system call failed.
    Sys(SysError),
}

impl fmt::Display for ResourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deadlock => f.write_str("the task would wait for itself"),
            Self::OwnerDied => f.write_str("the owner ended without unlocking the resource"),
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Sys(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ResourceError {}

impl From<SysError> for ResourceError {
    fn from(error: SysError) -> Self {
        Self::Sys(error)
    }
}

impl From<Refusal> for ResourceError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Deadlock => Self::Deadlock,
            refusal => Self::Refused(refusal),
        }
    }
}

/// How an interruptible section that was executed to its end was decided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Ending {
    /// The time of the decision, in nanoseconds of the monotonic clock.
    pub at_ns: u64,
    /// The section was invalidated: the task is still inside, and executes it again from its beginning.
    pub restarts: bool,
}
