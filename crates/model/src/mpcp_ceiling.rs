//! The ceilings of one resource under MPCP.

use crate::{CpuId, Priority};

/// The priority of a job that holds a resource under MPCP. It has one value on the processor of the resource's most
/// urgent user, and another value on all other processors.
///
/// On processor p it is the highest base priority of the users that are *not* on p, in the boosted band. So the holder
/// is as urgent as the most urgent remote task that may wait for the resource, and more urgent than any job outside
/// such a section. A ceiling fixed by hand replaces both values.
///
/// This is a plain value: users write it as a literal, and it gets no further fields.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MpcpCeiling {
    /// The processor of the most urgent user.
    pub home: CpuId,
    /// The ceiling for jobs on `home`: the priority of the most urgent user elsewhere.
    pub on_home: Priority,
    /// The ceiling for jobs on any other processor: the priority of the most urgent user of all.
    pub elsewhere: Priority,
}

impl MpcpCeiling {
    /// Returns the priority of a holder on `cpu`.
    #[must_use]
    pub fn on(self, cpu: CpuId) -> Priority {
        if cpu == self.home { self.on_home } else { self.elsewhere }
    }
}
