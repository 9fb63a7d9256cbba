//! The machine of any protocol, allocated.

extern crate alloc;

use crate::{
    Dflp, Dpcp, Edf, EdfLock, Fairness, FmlpLong, FmlpPlus, FmlpShort, GlobalEdf, Icpp, Ics, IcsLock, Machine, Mpcp,
    MpcpVs, Mrsp, Omlp, Pcp, Pip, PlainMutex, ReaderWriter, Srp, WaitFree,
};
use alloc::boxed::Box;
use alloc::vec::Vec;
use lockwright_model::{CpuId, Priority, Protocol, Scheduler, System};

/// Returns the machine of `protocol` for all resources of the system. A protocol without a machine gets plain mutexes.
///
/// # Example
/// ```
/// use lockwright_model::{CpuId, Duration, Priority, Protocol, Resource, ResourceId, Step, System, Task, TaskId};
/// use lockwright_protocol::{boxed, Action};
///
/// let (ns, bus) = (Duration::from_ns, ResourceId(0));
/// let task = Task {
///     name: "control".into(),
///     cpu: CpuId(0),
///     priority: Priority::base(1),
///     period: ns(10),
///     deadline: ns(10),
///     jitter: ns(0),
///     offset: ns(0),
///     wcet: ns(2),
///     body: vec![Step::Run(ns(1)), Step::Lock(bus), Step::Run(ns(1)), Step::Unlock(bus)],
/// };
/// let resources = vec![Resource::new("bus")];
/// let system = System::new("s".into(), 1, None, resources, vec![task])?;
/// let mut machine = boxed::<1, 1>(&system, Protocol::Icpp);
/// let mut granted = false;
/// machine.request(TaskId(0), bus, &mut |action| granted |= matches!(action, Action::Grant { .. }))?;
/// assert!(granted);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
        // An attempt fails for the same reason for which an interruptible section restarts, on any processor.
        Protocol::Ics | Protocol::LockFree => Box::new(Ics::<TASKS, RESOURCES>::new(system.tasks().len(), resources)),
        Protocol::WaitFree => Box::new(WaitFree::<TASKS, RESOURCES>::new(system.tasks().len(), resources)),
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
        // Under partitioned EDF, owners are before all jobs, in the order of their requests.
        Protocol::FmlpLong if system.scheduler() == Scheduler::PEdf => {
            Box::new(FmlpPlus::<TASKS, RESOURCES>::new(&tasks(), resources))
        }
        Protocol::FmlpLong => Box::new(FmlpLong::<TASKS, RESOURCES>::new(&tasks(), resources)),
        Protocol::FmlpPlus => Box::new(FmlpPlus::<TASKS, RESOURCES>::new(&tasks(), resources)),
        Protocol::FmlpShort | Protocol::Msrp => Box::new(FmlpShort::<TASKS, RESOURCES>::new(&tasks(), resources)),
        Protocol::PhaseFair => {
            Box::new(ReaderWriter::<TASKS, RESOURCES>::new(Fairness::Phases, &priorities(), resources))
        }
        Protocol::TaskFair => {
            Box::new(ReaderWriter::<TASKS, RESOURCES>::new(Fairness::Tasks, &priorities(), resources))
        }
        Protocol::Mrsp => {
            let users = system.resource_ids().map(|resource| system.users(resource));
            Box::new(Mrsp::<TASKS, RESOURCES>::new(&tasks(), users))
        }
        Protocol::Omlp => {
            // At most CPUS_MAX.
            let size = |cpu| system.cluster(CpuId::new(cpu)).count_ones() as u8;
            let sizes = core::array::from_fn(size);
            Box::new(Omlp::<TASKS, RESOURCES>::new(&tasks(), resources).with_clusters(sizes))
        }
        _ => Box::new(PlainMutex::<TASKS, RESOURCES>::new(&priorities())),
    }
}

/// Returns the scheduler of a system under `p-edf`, with the stack resource policy for the resources of each processor.
/// The preemption levels and ceilings follow from the relative deadlines.
#[must_use]
pub fn boxed_edf<const TASKS: usize, const RESOURCES: usize>(system: &System) -> Box<dyn Machine + Send> {
    let levels = system.with_preemption_levels();
    let tasks: Vec<_> = levels.tasks().iter().map(|task| (task.priority, task.cpu)).collect();
    let ceilings: Vec<Priority> = levels.resource_ids().map(|resource| levels.ceiling(resource)).collect();
    Box::new(Edf::<TASKS, RESOURCES>::new(&tasks, &ceilings))
}

/// Returns the scheduler of a system with [`System::has_global_locks`], with its resources under `fmlp_short` and
/// `fmlp_long`, and under `p-edf` also under `msrp` and `srp`. `protocol` is that of the resources that name none.
#[must_use]
pub fn boxed_global_edf<const TASKS: usize, const RESOURCES: usize>(
    system: &System,
    protocol: Protocol,
) -> Box<dyn Machine + Send> {
    let levels = system.with_preemption_levels();
    let lock = |resource| match system.protocol_of(resource, protocol) {
        Protocol::FmlpShort | Protocol::Msrp => EdfLock::Short,
        Protocol::Srp => EdfLock::Local(levels.ceiling(resource)),
        _ => EdfLock::Long,
    };
    let locks: Vec<EdfLock> = system.resource_ids().map(lock).collect();
    if system.scheduler() == Scheduler::PEdf {
        let tasks: Vec<_> = levels.tasks().iter().map(|task| (task.priority, task.cpu)).collect();
        Box::new(GlobalEdf::<TASKS, RESOURCES>::partitioned(&tasks, &locks, system.cpus()))
    } else {
        Box::new(GlobalEdf::<TASKS, RESOURCES>::new(system.tasks().len(), &locks, system.cpus()))
    }
}
