//! The system in the form that the bounds need: flat arrays of nanoseconds, with tasks in order of priority.

use crate::rows::fixed_point::Budget;
use crate::rows::mutant::{Mutant, Omission};
use core::cell::OnceCell;
use lockwright_model::{CpuId, NestedCeilings, Priority, Protocol, ResourceId, System, TaskId};

pub(crate) struct Tables<'s> {
    pub(crate) system: &'s System,
    /// The protocol of each resource; `icpp` if all resources are local and under `pcp` or `srp`, which then delay jobs
    /// alike.
    pub(crate) protocols: Vec<Protocol>,
    /// The ceilings, by resource.
    pub(crate) ceilings: NestedCeilings,
    /// By resource under `ics` and `ics_lock`: the priority from which on tasks commit without a lock.
    pub(crate) cutoffs: Vec<Option<Priority>>,
    /// By resource: the ceiling at which tasks lock it. Under `ics_lock` these are the tasks below the cutoff, under
    /// `icpp` all.
    pub(crate) lock_ceilings: Vec<Option<Priority>>,
    /// Whether any resource is locked at a ceiling.
    pub(crate) locks_at_ceilings: bool,
    /// By CPU: its tasks, most urgent first. Tasks of equal priority are in the order of their ids.
    pub(crate) cpus: Vec<Vec<TaskId>>,
    /// By task: the number of requests of one job for resources under `mpcp`.
    pub(crate) suspensions: Vec<u64>,
    /// The home of the resources for which the system names none, once it is known.
    least_used: OnceCell<CpuId>,
    /// The number of steps left to this analysis.
    pub(crate) budget: Budget,
    omission: Omission<Mutant>,
}

impl<'s> Tables<'s> {
    pub(crate) fn new(system: &'s System, protocol: Protocol, omission: Omission<Mutant>) -> Self {
        let mut protocols: Vec<Protocol> =
            system.resource_ids().map(|resource| system.protocol_of(resource, protocol)).collect();
        // If all resources are under one of these protocols, they delay jobs as `icpp` does. Combined with suspensions
        // for other resources, they do not: jobs that `srp` holds back start later than `icpp` assumes.
        for alike in [Protocol::Pcp, Protocol::Srp] {
            if system.resource_ids().all(|id| protocols[id.index()] == alike && !system.is_global(id)) {
                protocols.fill(Protocol::Icpp);
            }
        }
        let by_resource = |of: fn(&System, ResourceId, Protocol) -> Option<Priority>| {
            system.resource_ids().map(|id| of(system, id, protocols[id.index()])).collect()
        };
        let cutoffs = by_resource(|system, id, protocol| match protocol {
            Protocol::Ics => Some(Priority::MIN),
            Protocol::IcsLock => Some(system.cutoff(id)),
            _ => None,
        });
        let lock_ceilings: Vec<_> = by_resource(|system, id, protocol| match protocol {
            Protocol::Icpp => Some(system.ceiling(id)),
            Protocol::IcsLock => system.locked_ceiling(id),
            _ => None,
        });
        let mut cpus = vec![Vec::new(); system.cpus()];
        for id in system.task_ids() {
            cpus[system.task(id).cpu.index()].push(id);
        }
        for tasks in &mut cpus {
            tasks.sort_by_key(|&id| (core::cmp::Reverse(system.task(id).priority), id));
        }
        let suspensions = system
            .task_ids()
            .map(|id| {
                let mpcp = system.requests(id).iter().filter(|r| protocols[r.resource.index()] == Protocol::Mpcp);
                mpcp.map(|request| u64::from(request.count)).sum()
            })
            .collect();
        Self {
            system,
            protocols,
            ceilings: NestedCeilings::of(system, protocol),
            cutoffs,
            locks_at_ceilings: lock_ceilings.iter().any(Option::is_some),
            lock_ceilings,
            cpus,
            suspensions,
            least_used: OnceCell::new(),
            budget: Budget::new(),
            omission,
        }
    }

    /// Returns the tables of a system that differs from this one only in execution times.
    pub(crate) fn of_form<'f>(&self, system: &'f System) -> Tables<'f> {
        Tables {
            system,
            protocols: self.protocols.clone(),
            ceilings: self.ceilings.clone(),
            cutoffs: self.cutoffs.clone(),
            lock_ceilings: self.lock_ceilings.clone(),
            locks_at_ceilings: self.locks_at_ceilings,
            cpus: self.cpus.clone(),
            suspensions: self.suspensions.clone(),
            least_used: OnceCell::new(),
            budget: Budget::new(),
            omission: self.omission,
        }
    }

    pub(crate) fn protocol(&self, resource: ResourceId) -> Protocol {
        self.protocols[resource.index()]
    }

    /// Returns the tasks of the processor of `task`, most urgent first.
    pub(crate) fn neighbours(&self, task: TaskId) -> &[TaskId] {
        &self.cpus[self.system.task(task).cpu.index()]
    }

    /// Returns the other tasks of the processor that are at least as urgent.
    pub(crate) fn urgent(&self, task: TaskId) -> impl Iterator<Item = TaskId> {
        let priority = self.system.task(task).priority;
        let at_least = move |&id: &TaskId| self.system.task(id).priority >= priority;
        self.neighbours(task).iter().copied().take_while(at_least).filter(move |&id| id != task)
    }

    /// Returns the less urgent tasks of the processor, most urgent first.
    pub(crate) fn lesser(&self, task: TaskId) -> &[TaskId] {
        let priority = self.system.task(task).priority;
        let neighbours = self.neighbours(task);
        let first = neighbours.partition_point(|&id| self.system.task(id).priority >= priority);
        &neighbours[first..]
    }

    pub(crate) fn is_mutant(&self, mutant: Mutant) -> bool {
        self.omission.is(mutant)
    }

    /// Returns the home processor of a resource.
    pub(crate) fn home(&self, resource: ResourceId) -> CpuId {
        let least_used = || *self.least_used.get_or_init(|| self.system.home(resource));
        self.system.resource(resource).home.unwrap_or_else(least_used)
    }

    /// Returns the home processor of each resource.
    pub(crate) fn homes(&self) -> Vec<u16> {
        self.system.resource_ids().map(|resource| self.home(resource).0).collect()
    }

    /// Returns whether jobs of the task may suspend for a resource under `mpcp`.
    pub(crate) fn suspends(&self, task: TaskId) -> bool {
        self.suspensions[task.index()] > 0
    }
}
