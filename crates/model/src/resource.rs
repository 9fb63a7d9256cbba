//! Resources, and the ways of locking them.

use crate::{CpuId, Priority};
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
    /// The classic priority ceiling, for resources of one processor.
    Pcp,
    /// The stack resource policy, for resources of one processor: jobs start only above the ceiling.
    Srp,
    /// Interruptible sections, for resources of one processor: nobody waits, and a section is executed again if another one on its resource was committed meanwhile.
    Ics,
    /// As `Ics` for the tasks from the resource's cutoff on; those below it lock at the ceiling among them first.
    IcsLock,
    /// Multiprocessor priority ceiling for resources shared across processors, `icpp` for the others.
    Mpcp,
    /// As `Mpcp`, and of each processor's tasks one less urgent asks only while none more urgent has a request: waiting counts as execution.
    MpcpVs,
    /// Distributed priority ceiling: sections on a global resource execute on its home processor.
    Dpcp,
    /// As `Dpcp`, first come, first served.
    Dflp,
    /// Long FMLP: first come, first served, the owner inherits from who waits.
    FmlpLong,
    /// FMLP+: first come, first served, owners boosted in the order of their requests.
    FmlpPlus,
    /// Short FMLP: first come, first served, spinning and holding without preemption.
    FmlpShort,
    /// As `FmlpShort` for resources shared across processors, `icpp` for the others.
    Msrp,
    /// Spinning at the ceiling of one's processor; who waits lends its processor to a preempted owner.
    Mrsp,
    /// First come, first served, one request a processor at a time, its owner boosted; in clusters of several, as many as processors, by priority donation.
    Omlp,
}

impl Protocol {
    /// Every protocol, in the order in which they are compared.
    pub const ALL: [Self; 17] = [
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
    ];

    /// The name, as files and arguments spell it.
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
        }
    }

    /// Whether sections execute on a home processor.
    #[must_use]
    pub const fn has_homes(self) -> bool {
        matches!(self, Self::Dpcp | Self::Dflp)
    }

    /// Whether a task may request a resource while it holds another one of this protocol.
    #[must_use]
    pub const fn has_nesting(self) -> bool {
        matches!(self, Self::None | Self::Pip | Self::Icpp | Self::Pcp | Self::Srp | Self::Mpcp)
    }

    /// Whether sections are executed again instead of being waited for: several jobs may be inside at a time.
    #[must_use]
    pub const fn is_interruptible(self) -> bool {
        matches!(self, Self::Ics | Self::IcsLock)
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
    /// Where its sections execute under `dpcp` and `dflp`; `None`: see [`System::home`](crate::System::home).
    pub home: Option<CpuId>,
    /// A ceiling fixed by hand: at least the highest priority of the users.
    pub ceiling: Option<Priority>,
    /// Under `ics_lock` tasks of at least this priority take no lock; `None`: see [`System::cutoff`](crate::System::cutoff).
    pub cutoff: Option<Priority>,
}
