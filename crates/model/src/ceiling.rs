//! Priority ceilings, derived from the system once and shared by the analysis, the simulator and the runtime.

use crate::{CpuId, MpcpCeiling, Priority, Protocol, ResourceId, System};
use alloc::vec::Vec;

impl System {
    /// Returns the ceiling of a resource: the highest priority of its users, or the ceiling fixed by hand. A resource
    /// without users has the least priority as its ceiling.
    #[must_use]
    pub fn ceiling(&self, resource: ResourceId) -> Priority {
        self.resource(resource).ceiling.unwrap_or_else(|| self.highest_user(resource))
    }

    /// Returns the highest priority of the users of a resource, or the least priority if there are no users.
    #[must_use]
    pub fn highest_user(&self, resource: ResourceId) -> Priority {
        self.users(resource).iter().map(|&user| self.task(user).priority).max().unwrap_or(Priority::MIN)
    }

    /// Returns the highest priority of the users of a resource on
    /// one processor, or the least priority if there are none.
    #[must_use]
    pub fn local_ceiling(&self, resource: ResourceId, cpu: CpuId) -> Priority {
        let users = self.users(resource).iter().map(|&user| self.task(user));
        users.filter(|user| user.cpu == cpu).map(|user| user.priority).max().unwrap_or(Priority::MIN)
    }

    /// Returns the cutoff of a resource under `ics_lock`: tasks of at least this
    /// priority enter their sections without a lock. If the file gives no cutoff, it
    /// is the priority of the most urgent user, and less urgent users take a lock.
    #[must_use]
    pub fn cutoff(&self, resource: ResourceId) -> Priority {
        self.resource(resource).cutoff.unwrap_or_else(|| self.highest_user(resource))
    }

    /// Returns the highest priority of the users below the cutoff under `ics_lock`, or `None` if there are none. A
    /// ceiling fixed by hand does not count.
    #[must_use]
    pub fn locked_ceiling(&self, resource: ResourceId) -> Option<Priority> {
        let cutoff = self.cutoff(resource);
        let users = self.users(resource).iter().map(|&user| self.task(user).priority);
        users.filter(|&priority| priority < cutoff).max()
    }

    /// Returns the ceilings of a resource under MPCP.
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

/// Ceilings that take nested sections into account: how urgent
/// a job can become by inheritance while it holds a resource.
///
/// A holder of S inherits the priorities of the tasks that wait for S. Such a task may itself hold R, and may have
/// inherited priorities from the tasks that wait for R. So the nested ceiling of S is the highest of its own ceiling
/// and the nested ceilings of all resources that a task holds when it requests S.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct NestedCeilings(Vec<Priority>);

impl NestedCeilings {
    /// Returns the nested ceilings of a system under `protocol`: the least fixed point over all nested sections. A
    /// ceiling fixed by hand counts only for protocols that raise a holder to it.
    #[must_use]
    pub fn of(system: &System, protocol: Protocol) -> Self {
        let ceiling = |resource| match system.protocol_of(resource, protocol) {
            Protocol::Icpp | Protocol::Pcp | Protocol::Srp | Protocol::Mpcp | Protocol::MpcpVs => {
                system.ceiling(resource)
            }
            _ => system.highest_user(resource),
        };
        let mut ceilings: Vec<Priority> = system.resource_ids().map(ceiling).collect();
        // BOUND: ceilings only rise, and each round except the last raises one to another's value.
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

    /// Returns the nested ceiling of one resource.
    #[must_use]
    pub fn get(&self, resource: ResourceId) -> Priority {
        self.0[resource.index()]
    }
}
