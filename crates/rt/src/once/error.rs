//! Why nothing was initialised.

use lockwright_sys::SysError;
use std::fmt;

/// Why nothing was initialised.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum OnceError {
    /// The caller would wait for itself.
    Deadlock,
    /// 64 other initialisers are executing.
    TooMany,
    /// The kernel refused an operation.
    Sys(SysError),
}

impl fmt::Display for OnceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deadlock => f.write_str("a deadlock: the caller would wait for its own initialiser"),
            Self::TooMany => f.write_str("too many initialisers are executing"),
            Self::Sys(error) => write!(f, "nothing was initialised: {error}"),
        }
    }
}

impl std::error::Error for OnceError {}
