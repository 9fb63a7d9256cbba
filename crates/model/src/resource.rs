//! Shared resources.

use crate::{CpuId, ObjectKind, Priority, Protocol};
use alloc::string::String;

/// A shared resource, held by at most one job at a time except under interruptible sections.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
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
    /// The kind of object. If overheads have costs of this kind, a section under `lock_free` or `wait_free` takes as
    /// long as an operation on such an object, instead of its own length.
    pub object: Option<ObjectKind>,
}

impl Resource {
    /// Returns a resource of this name, under the protocol of the system and with nothing fixed by hand.
    ///
    /// # Examples
    /// ```
    /// use lockwright_model::{Priority, Resource};
    /// let mut bus = Resource::new("bus");
    /// bus.ceiling = Some(Priority::base(7));
    /// assert_eq!((bus.name.as_str(), bus.protocol), ("bus", None));
    /// ```
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }
}
