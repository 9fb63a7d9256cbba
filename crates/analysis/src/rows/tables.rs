//! The system in the form that the bounds need: flat arrays of nanoseconds, with tasks in order of priority.

use crate::rows::fixed_point::Budget;
use crate::rows::mutant::{Mutant, Omission};
use core::cell::OnceCell;
use lockwright_model::{CpuId, NestedCeilings, Priority, Protocol, Request, ResourceId, System, TaskId};

/// The longest section of a task on a resource that it locks at a ceiling.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AtCeiling {
    pub(crate) task: TaskId,
    /// The priority of the task.
    pub(crate) priority: Priority,
    pub(crate) resource: ResourceId,
    pub(crate) ceiling: Priority,
    /// In nanoseconds.
    pub(crate) length: u64,
}

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
    /// By CPU: its tasks, most urgent first. Tasks of equal priority are in the order of their ids.
    pub(crate) cpus: Vec<Vec<TaskId>>,
    /// By task: its place among the tasks of its CPU.
    pub(crate) places: Vec<usize>,
    /// By CPU: the longest section of each of its tasks on each resource that the task locks at a ceiling. They are in
    /// the order of the tasks.
    pub(crate) at_ceilings: Vec<Vec<AtCeiling>>,
    /// By task: the number of requests of one job for resources under `mpcp`.
    pub(crate) suspensions: Vec<u64>,
    /// The home of the resources for which the system names none, once it is known.
    least_used: OnceCell<CpuId>,
    /// The number of steps left to this analysis.
    pub(crate) budget: Budget,
    pub(crate) omission: Omission<Mutant>,
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
        let mut places = vec![0; system.tasks().len()];
        for tasks in &cpus {
            tasks.iter().enumerate().for_each(|(place, id)| places[id.index()] = place);
        }
        let suspensions = system
            .task_ids()
            .map(|id| {
                let mpcp = system.requests(id).iter().filter(|r| protocols[r.resource.index()] == Protocol::Mpcp);
                mpcp.map(|request| u64::from(request.count)).sum()
            })
            .collect();
        let tables = Self {
            system,
            protocols,
            ceilings: NestedCeilings::of(system, protocol),
            at_ceilings: Vec::new(),
            cutoffs,
            lock_ceilings,
            cpus,
            places,
            suspensions,
            least_used: OnceCell::new(),
            budget: Budget::new(),
            omission,
        };
        tables.with_sections()
    }

    /// Returns the tables of a system that differs from this one only in execution times.
    pub(crate) fn of_form<'f>(&self, system: &'f System) -> Tables<'f> {
        let tables = Tables {
            system,
            protocols: self.protocols.clone(),
            ceilings: self.ceilings.clone(),
            cutoffs: self.cutoffs.clone(),
            lock_ceilings: self.lock_ceilings.clone(),
            at_ceilings: Vec::new(),
            cpus: self.cpus.clone(),
            places: self.places.clone(),
            suspensions: self.suspensions.clone(),
            least_used: OnceCell::new(),
            budget: Budget::new(),
            omission: self.omission,
        };
        tables.with_sections()
    }

    /// Fills the sections at ceilings.
    fn with_sections(mut self) -> Self {
        let tables = &self;
        let of_task = |&task: &TaskId| {
            let priority = tables.system.task(task).priority;
            tables.system.requests(task).iter().filter_map(move |&Request { resource, length, .. }| {
                let ceiling = tables.lock_ceiling(task, resource)?;
                Some(AtCeiling { task, priority, resource, ceiling, length: length.as_ns() })
            })
        };
        self.at_ceilings = match self.lock_ceilings.iter().any(Option::is_some) {
            true => self.cpus.iter().map(|tasks| tasks.iter().flat_map(of_task).collect()).collect(),
            false => vec![Vec::new(); self.cpus.len()],
        };
        self
    }

    /// Returns the ceiling at which `holder` locks the resource on its processor, or `None` if it does not lock it at a
    /// ceiling.
    pub(crate) fn lock_ceiling(&self, holder: TaskId, resource: ResourceId) -> Option<Priority> {
        self.lock_ceilings[resource.index()].filter(|_| !self.commits_freely(holder, resource))
    }

    /// Returns whether a commit of `task` on the resource can restart sections of others.
    pub(crate) fn commits_freely(&self, task: TaskId, resource: ResourceId) -> bool {
        self.cutoffs[resource.index()].is_some_and(|cutoff| self.system.task(task).priority >= cutoff)
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
        let urgent = &self.neighbours(task)[..self.urgent_end(task)];
        urgent.iter().copied().filter(move |&id| id != task)
    }

    /// Returns the place after the last task of the processor that is at least as urgent.
    pub(crate) fn urgent_end(&self, task: TaskId) -> usize {
        let priority = self.system.task(task).priority;
        let (neighbours, place) = (self.neighbours(task), self.places[task.index()]);
        let equal = neighbours[place..].iter().take_while(|&&id| self.system.task(id).priority == priority);
        place + equal.count()
    }

    /// Returns the place after the last task of the processor whose jobs interfere. A mutant omits those of equal
    /// priority; the task itself is then not before the end.
    pub(crate) fn interfering_end(&self, task: TaskId) -> usize {
        if self.is_mutant(Mutant::Equals) {
            let priority = self.system.task(task).priority;
            return self.neighbours(task).partition_point(|&id| self.system.task(id).priority > priority);
        }
        self.urgent_end(task)
    }

    /// Returns the less urgent tasks of the processor, most urgent first.
    pub(crate) fn lesser(&self, task: TaskId) -> &[TaskId] {
        &self.neighbours(task)[self.urgent_end(task)..]
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
