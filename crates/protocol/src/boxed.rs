//! The machine of any protocol, for those that have memory to allocate.

extern crate alloc;

use crate::{
    Dflp, Dpcp, FmlpLong, FmlpPlus, FmlpShort, Icpp, Ics, IcsLock, Machine, Mpcp, MpcpVs, Mrsp, Omlp, Pcp, Pip, Plain,
    Srp,
};
use alloc::boxed::Box;
use alloc::vec::Vec;
use lockwright_model::{CpuId, Priority, Protocol, System};

/// The machine of a protocol, for all resources of the system. Plain mutexes where it has none.
#[must_use]
pub fn boxed<const TASKS: usize, const RESOURCES: usize>(
    system: &System,
    protocol: Protocol,
) -> Box<dyn Machine + Send> {
    let priorities = || -> Vec<Priority> { system.tasks().iter().map(|task| task.priority).collect() };
    let tasks = || -> Vec<_> { system.tasks().iter().map(|task| (task.priority, task.cpu)).collect() };
    let ceilings = || -> Vec<Priority> { system.resource_ids().map(|resource| system.ceiling(resource)).collect() };
    let mpcp_ceilings = || -> Vec<_> { system.resource_ids().map(|resource| system.mpcp_ceiling(resource)).collect() };
    let homes = || -> Vec<_> {
        let home = |resource| (system.home(resource), system.highest_user(resource));
        system.resource_ids().map(home).collect()
    };
    let resources = system.resources().len();
    match protocol {
        Protocol::Pip => Box::new(Pip::<TASKS, RESOURCES>::new(&priorities())),
        Protocol::Icpp => Box::new(Icpp::<TASKS, RESOURCES>::new(&priorities(), &ceilings())),
        Protocol::Pcp => Box::new(Pcp::<TASKS, RESOURCES>::new(&tasks(), &ceilings())),
        Protocol::Srp => Box::new(Srp::<TASKS, RESOURCES>::new(&tasks(), &ceilings())),
        Protocol::Ics => Box::new(Ics::<TASKS, RESOURCES>::new(system.tasks().len(), resources)),
        Protocol::IcsLock => {
            let level = |resource| (system.cutoff(resource), system.locked_ceiling(resource).unwrap_or(Priority::MIN));
            let levels: Vec<_> = system.resource_ids().map(level).collect();
            Box::new(IcsLock::<TASKS, RESOURCES>::new(&priorities(), &levels))
        }
        Protocol::Mpcp => Box::new(Mpcp::<TASKS, RESOURCES>::new(&tasks(), &mpcp_ceilings())),
        Protocol::MpcpVs => Box::new(MpcpVs::<TASKS, RESOURCES>::new(&tasks(), &mpcp_ceilings())),
        Protocol::Dpcp => Box::new(Dpcp::<TASKS, RESOURCES>::new(&tasks(), &homes())),
        Protocol::Dflp => {
            let homes: Vec<_> = homes().into_iter().map(|(home, _)| home).collect();
            Box::new(Dflp::<TASKS, RESOURCES>::new(&tasks(), &homes))
        }
        Protocol::FmlpLong => Box::new(FmlpLong::<TASKS, RESOURCES>::new(&tasks(), resources)),
        Protocol::FmlpPlus => Box::new(FmlpPlus::<TASKS, RESOURCES>::new(&tasks(), resources)),
        Protocol::FmlpShort | Protocol::Msrp => Box::new(FmlpShort::<TASKS, RESOURCES>::new(&tasks(), resources)),
        Protocol::Mrsp => {
            let users = system.resource_ids().map(|resource| system.users(resource));
            Box::new(Mrsp::<TASKS, RESOURCES>::new(&tasks(), users))
        }
        Protocol::Omlp => {
            // At most MAX_CPUS.
            let size = |cpu| system.cluster(CpuId::new(cpu)).count_ones() as u8;
            let sizes = core::array::from_fn(size);
            Box::new(Omlp::<TASKS, RESOURCES>::new(&tasks(), resources).with_clusters(sizes))
        }
        _ => Box::new(Plain::<TASKS, RESOURCES>::new(&priorities())),
    }
}
