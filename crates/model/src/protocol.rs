//! Locking protocols.

use core::fmt;
use core::str::FromStr;

/// A locking protocol.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Protocol {
    /// A plain mutex, without control of priority inversion.
    None,
    /// The priority inheritance protocol.
    Pip,
    /// The immediate priority ceiling protocol, "protect" in POSIX.
    Icpp,
    /// The classic priority ceiling protocol, for resources of one processor.
    Pcp,
    /// The stack resource policy, for resources of one processor. A
    /// job starts only if its priority is above the ceiling.
    Srp,
    /// Interruptible sections, for resources of one processor. No job waits. A section is executed again if another
    /// section on its resource was committed meanwhile.
    Ics,
    /// Like `Ics` for the tasks from the resource's cutoff on. Tasks below the cutoff take a lock first, whose ceiling
    /// is the highest priority among them.
    IcsLock,
    /// The multiprocessor priority ceiling protocol for resources shared across processors, `icpp` for the others.
    Mpcp,
    /// Like `Mpcp`, with virtual spinning: waiting counts as execution. A task makes a request only while no other
    /// task of its processor that is at least as urgent has one.
    MpcpVs,
    /// The distributed priority ceiling protocol. Sections on a global resource execute on its home processor.
    Dpcp,
    /// Like `Dpcp`, with requests served first come, first served.
    Dflp,
    /// The long FMLP: first come, first served. The owner inherits the priorities of its waiters.
    FmlpLong,
    /// The FMLP+: first come, first served. Owners are boosted in the order of their requests.
    FmlpPlus,
    /// The short FMLP: first come, first served. A job spins and holds a resource without being preempted.
    FmlpShort,
    /// Like `FmlpShort` for resources shared across processors, `icpp` for the others.
    Msrp,
    /// MrsP: a job spins at the ceiling of its processor, and lends its processor to a preempted owner meanwhile.
    Mrsp,
    /// The OMLP: first come, first served, with one request for each processor at a time, whose owner is boosted. In a
    /// cluster of m processors, m requests at a time, with priority donation.
    Omlp,
    /// A lock-free object. No job waits. An operation is attempted again if another one on its object was committed
    /// during the attempt, on any processor.
    LockFree,
    /// A wait-free object. No job waits, and no operation is repeated.
    WaitFree,
    /// Reader-writer spinlocks without preemption: phases of readers and of one writer alternate while both wait.
    PhaseFair,
    /// Reader-writer spinlocks without preemption: first come, first served; readers without a writer between them read
    /// together.
    TaskFair,
}

impl Protocol {
    /// All protocols, in the order in which they are compared.
    pub const ALL: [Self; 21] = [
        Self::None,
        Self::Pip,
        Self::Icpp,
        Self::Pcp,
        Self::Srp,
        Self::Ics,
        Self::IcsLock,
        Self::Mpcp,
        Self::MpcpVs,
        Self::Dpcp,
        Self::Dflp,
        Self::FmlpLong,
        Self::FmlpPlus,
        Self::FmlpShort,
        Self::Msrp,
        Self::Mrsp,
        Self::Omlp,
        Self::LockFree,
        Self::WaitFree,
        Self::PhaseFair,
        Self::TaskFair,
    ];

    /// Returns the name, as files and arguments spell it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Pip => "pip",
            Self::Icpp => "icpp",
            Self::Pcp => "pcp",
            Self::Srp => "srp",
            Self::Ics => "ics",
            Self::IcsLock => "ics_lock",
            Self::Mpcp => "mpcp",
            Self::MpcpVs => "mpcp_vs",
            Self::Dpcp => "dpcp",
            Self::Dflp => "dflp",
            Self::FmlpLong => "fmlp_long",
            Self::FmlpPlus => "fmlp_plus",
            Self::FmlpShort => "fmlp_short",
            Self::Msrp => "msrp",
            Self::Mrsp => "mrsp",
            Self::Omlp => "omlp",
            Self::LockFree => "lock_free",
            Self::WaitFree => "wait_free",
            Self::PhaseFair => "phase_fair",
            Self::TaskFair => "task_fair",
        }
    }

    /// Returns whether sections execute on a home processor.
    #[must_use]
    pub const fn has_homes(self) -> bool {
        matches!(self, Self::Dpcp | Self::Dflp)
    }

    /// Returns whether a task may request a resource while it holds another one of this protocol.
    #[must_use]
    pub const fn has_nesting(self) -> bool {
        matches!(self, Self::None | Self::Pip | Self::Icpp | Self::Pcp | Self::Srp | Self::Mpcp)
    }

    /// Returns whether sections do not exclude one another: several jobs may be inside at a time, and except under
    /// `WaitFree`, a section may be executed again.
    #[must_use]
    pub const fn is_interruptible(self) -> bool {
        matches!(self, Self::Ics | Self::IcsLock) || self.is_object()
    }

    /// Returns whether resources are non-blocking objects, for which no job waits, even across processors.
    #[must_use]
    pub const fn is_object(self) -> bool {
        matches!(self, Self::LockFree | Self::WaitFree)
    }

    /// Returns whether sections that read may be executed at the same time.
    #[must_use]
    pub const fn has_readers(self) -> bool {
        matches!(self, Self::PhaseFair | Self::TaskFair)
    }

    /// Returns the protocol of this name, or `None` if there is none. [`FromStr`] returns an error instead.
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

/// The reason why a text is not a [`Protocol`]: no protocol has this name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct UnknownProtocol;

impl fmt::Display for UnknownProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no protocol has this name; the names are ")?;
        for (index, protocol) in Protocol::ALL.into_iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{protocol}")?;
        }
        Ok(())
    }
}

impl core::error::Error for UnknownProtocol {}

impl FromStr for Protocol {
    type Err = UnknownProtocol;

    /// Reads the name of a protocol, as files and arguments spell it.
    ///
    /// # Examples
    /// ```
    /// use lockwright_model::Protocol;
    /// assert_eq!("fmlp_long".parse(), Ok(Protocol::FmlpLong));
    /// assert!("fmlp".parse::<Protocol>().is_err());
    /// ```
    fn from_str(name: &str) -> Result<Self, UnknownProtocol> {
        Self::from_name(name).ok_or(UnknownProtocol)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_back_and_others_are_refused() {
        for protocol in Protocol::ALL {
            assert_eq!(protocol.to_string().parse(), Ok(protocol));
        }
        for other in ["", "PIP", " pip", "pip2"] {
            let refused = other.parse::<Protocol>().expect_err(other);
            assert!(refused.to_string().ends_with("phase_fair, task_fair"), "{refused}");
        }
    }
}
