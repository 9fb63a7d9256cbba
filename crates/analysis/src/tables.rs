//! The system as the bounds want it: flat arrays of nanoseconds, tasks in order of urgency.

use crate::fixed_point::Budget;
use crate::omit::Omit;
use lockwright_model::{NestedCeilings, Priority, Protocol, ResourceId, System, TaskId};

pub(crate) struct Tables<'s> {
    pub(crate) system: &'s System,
    /// By resource: the protocol that rules it; `icpp` for those of one processor that delay jobs alike.
    pub(crate) protocols: Vec<Protocol>,
    /// By resource.
    pub(crate) ceilings: NestedCeilings,
    /// By resource: from which priority on tasks commit without a lock, under `ics` and `ics_lock`.
    pub(crate) cutoffs: Vec<Option<Priority>>,
    /// By resource: the ceiling at which the others lock it, under `ics_lock`, and all, under `icpp`.
    pub(crate) lock_ceilings: Vec<Option<Priority>>,
    /// By CPU: its tasks, most urgent first, earlier ids first among equals.
    pub(crate) cpus: Vec<Vec<TaskId>>,
    /// By task: requests for resources under `mpcp`, by one job.
    pub(crate) suspensions: Vec<u64>,
    /// The steps left to this analysis.
    pub(crate) budget: Budget,
    /// The term a broken twin leaves out.
    omit: Option<Omit>,
}

impl<'s> Tables<'s> {
    pub(crate) fn new(system: &'s System, protocol: Protocol, omit: Option<Omit>) -> Self {
        let mut protocols: Vec<Protocol> =
            system.resource_ids().map(|resource| system.protocol_of(resource, protocol)).collect();
        // They delay jobs as `icpp` does where nothing else rules a resource: beside suspensions for others, jobs held under `srp` start later than that counts.
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
        let lock_ceilings = by_resource(|system, id, protocol| match protocol {
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
            lock_ceilings,
            cpus,
            suspensions,
            budget: Budget::new(),
            omit,
        }
    }

    /// The same of a system that differs in execution times alone.
    pub(crate) fn of_form<'f>(&self, system: &'f System) -> Tables<'f> {
        Tables {
            system,
            protocols: self.protocols.clone(),
            ceilings: self.ceilings.clone(),
            cutoffs: self.cutoffs.clone(),
            lock_ceilings: self.lock_ceilings.clone(),
            cpus: self.cpus.clone(),
            suspensions: self.suspensions.clone(),
            budget: Budget::new(),
            omit: self.omit,
        }
    }

    pub(crate) fn protocol(&self, resource: ResourceId) -> Protocol {
        self.protocols[resource.index()]
    }

    /// Tasks of `task`'s processor.
    pub(crate) fn neighbours(&self, task: TaskId) -> &[TaskId] {
        &self.cpus[self.system.task(task).cpu.index()]
    }

    /// Other tasks of the processor that are at least as urgent.
    pub(crate) fn urgent(&self, task: TaskId) -> impl Iterator<Item = TaskId> {
        let priority = self.system.task(task).priority;
        let at_least = move |&id: &TaskId| self.system.task(id).priority >= priority;
        self.neighbours(task).iter().copied().take_while(at_least).filter(move |&id| id != task)
    }

    /// Less urgent tasks of the processor, most urgent first.
    pub(crate) fn lesser(&self, task: TaskId) -> &[TaskId] {
        let priority = self.system.task(task).priority;
        let neighbours = self.neighbours(task);
        let first = neighbours.partition_point(|&id| self.system.task(id).priority >= priority);
        &neighbours[first..]
    }

    pub(crate) fn omits(&self, term: Omit) -> bool {
        self.omit == Some(term)
    }

    /// Whether jobs of the task may suspend for a resource under `mpcp`.
    pub(crate) fn suspends(&self, task: TaskId) -> bool {
        self.suspensions[task.index()] > 0
    }
}
