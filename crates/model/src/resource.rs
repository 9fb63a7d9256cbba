//! Shared resources.

use crate::{CpuId, Priority, Protocol};
use alloc::string::String;

/// A shared resource, held by at most one job at a time except under interruptible sections.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Resource {
    /// The name, unique in its system.
    pub name: String,
    /// The protocol of this resource. `None` stands for the protocol of the system.
    pub protocol: Option<Protocol>,
    /// The processor where its sections execute under `dpcp` and `dflp`. For `None`, see
    /// [`System::home`](crate::System::home).
    pub home: Option<CpuId>,
    /// A ceiling fixed by hand, at least the highest priority of the users.
    pub ceiling: Option<Priority>,
    /// The cutoff under `ics_lock`: tasks of at least this priority take no lock. For `None`, see
    /// [`System::cutoff`](crate::System::cutoff).
    pub cutoff: Option<Priority>,
}
