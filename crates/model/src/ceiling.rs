//! Ceilings: read off the system once, the same for the analysis, the simulator and the runtime.

use crate::{CpuId, Priority, Protocol, ResourceId, System};
use alloc::vec::Vec;

/// The priority of a job that holds a resource under MPCP: one value on the processor of the resource's
/// most urgent user, another on all others.
///
/// On processor p it is the highest base priority of the users *not* on p, in the boosted band: the
/// holder is as urgent as the most urgent remote task that may be waiting for it, and more urgent than any
/// job outside such a section. A ceiling fixed by hand stands for both.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MpcpCeiling {
    /// The processor of the most urgent user.
    pub home: CpuId,
    /// The ceiling for jobs on `home`: the most urgent user elsewhere.
    pub on_home: Priority,
    /// The ceiling for jobs anywhere else: the most urgent user of all.
    pub elsewhere: Priority,
}

impl MpcpCeiling {
    /// The priority of a holder on `cpu`.
    #[must_use]
    pub fn on(self, cpu: CpuId) -> Priority {
        if cpu == self.home { self.on_home } else { self.elsewhere }
    }
}

impl System {
    /// The highest priority of the users of a resource, or the ceiling fixed by hand. A resource
    /// without users has the least ceiling.
    #[must_use]
    pub fn ceiling(&self, resource: ResourceId) -> Priority {
        self.resource(resource).ceiling.unwrap_or_else(|| self.highest_user(resource))
    }

    /// The highest priority of the users of a resource; the least priority where there are none.
    #[must_use]
    pub fn highest_user(&self, resource: ResourceId) -> Priority {
        self.users(resource).iter().map(|&user| self.task(user).priority).max().unwrap_or(Priority::MIN)
    }

    /// The highest priority of the users of a resource on one processor; the least priority where there are none.
    #[must_use]
    pub fn local_ceiling(&self, resource: ResourceId, cpu: CpuId) -> Priority {
        let users = self.users(resource).iter().map(|&user| self.task(user));
        users.filter(|user| user.cpu == cpu).map(|user| user.priority).max().unwrap_or(Priority::MIN)
    }

    /// From which priority on tasks enter sections on the resource without a lock under `ics_lock`: what the file says, else that of the most urgent
    /// user, which then is the only one that does.
    #[must_use]
    pub fn cutoff(&self, resource: ResourceId) -> Priority {
        self.resource(resource).cutoff.unwrap_or_else(|| self.highest_user(resource))
    }

    /// Under `ics_lock`: the highest priority of the users below the cutoff, where there are any. A ceiling fixed by hand does not count.
    #[must_use]
    pub fn locked_ceiling(&self, resource: ResourceId) -> Option<Priority> {
        let cutoff = self.cutoff(resource);
        let users = self.users(resource).iter().map(|&user| self.task(user).priority);
        users.filter(|&priority| priority < cutoff).max()
    }

    /// The ceilings of a resource under MPCP.
    #[must_use]
    pub fn mpcp_ceiling(&self, resource: ResourceId) -> MpcpCeiling {
        if let Some(ceiling) = self.resource(resource).ceiling {
            let ceiling = ceiling.boosted();
            return MpcpCeiling { home: CpuId(0), on_home: ceiling, elsewhere: ceiling };
        }
        let users = self.users(resource);
        let top = users.iter().map(|&user| self.task(user)).max_by_key(|user| user.priority);
        let home = top.map_or(CpuId(0), |user| user.cpu);
        let remote = users.iter().map(|&user| self.task(user)).filter(|user| user.cpu != home);
        MpcpCeiling {
            home,
            on_home: remote.map(|user| user.priority).max().unwrap_or(Priority::MIN).boosted(),
            elsewhere: top.map_or(Priority::MIN, |user| user.priority).boosted(),
        }
    }
}

/// Ceilings that see through nested sections: how urgent a job can become by inheritance while it holds
/// a resource.
///
/// A holder of S inherits from whoever waits for S, and a task that waits for S may itself hold R and have inherited
/// from those who wait for R. So the nested ceiling of S is the highest of its own ceiling and the nested
/// ceilings of all resources held by anyone who requests S.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NestedCeilings(Vec<Priority>);

impl NestedCeilings {
    /// The least fixed point over all nested sections of the system, under `protocol`. A ceiling fixed by hand counts only for
    /// protocols that raise a holder to it.
    #[must_use]
    pub fn of(system: &System, protocol: Protocol) -> Self {
        let ceiling = |resource| match system.protocol_of(resource, protocol) {
            Protocol::Icpp | Protocol::Pcp | Protocol::Srp | Protocol::Mpcp | Protocol::MpcpVs => {
                system.ceiling(resource)
            }
            _ => system.highest_user(resource),
        };
        let mut ceilings: Vec<Priority> = system.resource_ids().map(ceiling).collect();
        // BOUND: ceilings only rise, and each round but the last raises one to another's value.
        loop {
            let mut changed = false;
            for task in system.task_ids() {
                let sections = system.sections(task);
                for section in sections {
                    let Some(parent) = section.parent else { continue };
                    let outer = ceilings[sections[parent].resource.index()];
                    let inner = &mut ceilings[section.resource.index()];
                    if *inner < outer {
                        *inner = outer;
                        changed = true;
                    }
                }
            }
            if !changed {
                return Self(ceilings);
            }
        }
    }

    /// The nested ceiling of one resource.
    #[must_use]
    pub fn get(&self, resource: ResourceId) -> Priority {
        self.0[resource.index()]
    }
}
