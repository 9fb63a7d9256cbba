//! Exit statuses: the same for every verb.

use std::io;
use std::process::ExitCode;

/// How a verb ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Exit {
    /// Success; a verb that judges deadlines found that all of them hold.
    Holds = 0,
    /// Some deadlines do not hold.
    Misses = 1,
    /// The arguments or the file are invalid.
    BadInput = 2,
    /// The machine refuses, for example permission or disk space.
    Machine = 3,
    /// Interrupted by a signal.
    Interrupted = 130,
}

impl Exit {
    /// The status of a verb that judges deadlines.
    #[must_use]
    pub fn from_holds(holds: bool) -> Self {
        if holds { Self::Holds } else { Self::Misses }
    }

    /// The status of a result that cannot be created: the machine refuses, or there can be no such file.
    #[must_use]
    pub fn of_output(error: &io::Error) -> Self {
        use io::ErrorKind::{PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
        match error.kind() {
            PermissionDenied | QuotaExceeded | ReadOnlyFilesystem | StorageFull => Self::Machine,
            _ => Self::BadInput,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
