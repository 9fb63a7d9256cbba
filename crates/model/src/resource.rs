//! Resources, and the ways of locking them.

use crate::Priority;
use alloc::string::String;
use core::fmt;

/// A way of locking.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Protocol {
    /// A plain mutex: no control of priority inversion.
    None,
    /// Priority inheritance.
    Pip,
    /// Immediate priority ceiling, the POSIX "protect" protocol.
    Icpp,
    /// Multiprocessor priority ceiling for resources shared across processors, `icpp` for the others.
    Mpcp,
}

impl Protocol {
    /// Every protocol, in the order in which they are compared.
    pub const ALL: [Self; 4] = [Self::None, Self::Pip, Self::Icpp, Self::Mpcp];

    /// The name, as files and arguments spell it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Pip => "pip",
            Self::Icpp => "icpp",
            Self::Mpcp => "mpcp",
        }
    }

    /// The protocol of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|protocol| protocol.name() == name)
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Something that at most one job holds at a time.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Resource {
    /// Unique in its system.
    pub name: String,
    /// The protocol of this resource, whatever the system's is.
    pub protocol: Option<Protocol>,
    /// A ceiling fixed by hand: at least the highest priority of the users.
    pub ceiling: Option<Priority>,
}
