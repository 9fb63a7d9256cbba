//! A whole system, validated once.

use crate::validate::{Invalid, Subject, check_body, check_counts, check_name, check_times};
use crate::{
    CpuId, Duration, Protocol, Request, Resource, ResourceId, Scheduler, Section, Step, Task, TaskId, section,
    utilization,
};
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

/// Most tasks of one system.
pub const MAX_TASKS: usize = 8192;
/// Most tasks of a system that is simulated or executed: protocol machines have room for so many. The analysis takes all.
pub const MAX_EXECUTED_TASKS: usize = 1024;
/// Most resources of one system.
pub const MAX_RESOURCES: usize = 256;
/// Most processors of one system.
pub const MAX_CPUS: usize = 64;

/// A platform of identical processors and their scheduler, its resources and its tasks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct System {
    name: String,
    cpus: usize,
    scheduler: Scheduler,
    protocol: Option<Protocol>,
    resources: Vec<Resource>,
    tasks: Vec<Task>,
    /// Sets of processors, a bit each, that are clusters of several; disjoint, in order. Processors in none are clusters of their own.
    clusters: Vec<u64>,
    /// The last so many tasks are interrupts.
    interrupts: usize,
    /// In KiB, by task; the tasks beyond its end do not say.
    working_sets: Vec<Option<u32>>,
    /// By task.
    sections: Vec<Vec<Section>>,
    /// By task, by first use.
    requests: Vec<Vec<Request>>,
    /// By resource, by task id.
    users: Vec<Vec<TaskId>>,
}

impl System {
    /// Validates a system. A `System` always has: 1 to [`MAX_CPUS`] processors, 1 to [`MAX_TASKS`] tasks, at
    /// most [`MAX_RESOURCES`] resources; names that are unique and not empty; for every task a CPU of the platform,
    /// `0 < deadline <= period`, `0 < wcet`, `jitter < deadline`, times of at most [`DURATION_MAX`](crate::DURATION_MAX), and a body whose runs are
    /// positive and add up to the wcet, whose locks are well nested, at most [`MAX_NESTING`](crate::MAX_NESTING) deep, never on a
    /// resource already held, and never empty; ceilings at or above every user; and an order of nested locks
    /// without a cycle, so that no deadlock is possible.
    ///
    /// # Errors
    /// Names the first rule that is broken, and where.
    pub fn new(
        name: String,
        cpus: usize,
        protocol: Option<Protocol>,
        resources: Vec<Resource>,
        tasks: Vec<Task>,
    ) -> Result<Self, Invalid> {
        check_counts(cpus, &resources, &tasks)?;
        let mut names = BTreeSet::new();
        for (index, resource) in resources.iter().enumerate() {
            let subject = Subject::Resource(ResourceId::new(index));
            check_name("resource", &resource.name, &mut names, subject)?;
        }
        let mut names = BTreeSet::new();
        for (index, task) in tasks.iter().enumerate() {
            let subject = Subject::Task(TaskId::new(index));
            check_name("task", &task.name, &mut names, subject)?;
            check_times(cpus, task, subject)?;
            check_body(&resources, task, TaskId::new(index))?;
        }
        let sections: Vec<_> = tasks.iter().map(|task| section::sections_of(&task.body)).collect();
        let requests: Vec<_> = sections.iter().map(|sections| requests_of(sections)).collect();
        let mut users = alloc::vec![Vec::new(); resources.len()];
        for (index, requests) in requests.iter().enumerate() {
            for request in requests {
                users[request.resource.index()].push(TaskId::new(index));
            }
        }
        let scheduler = Scheduler::default();
        let (clusters, working_sets) = (Vec::new(), Vec::new());
        let system = Self {
            name,
            cpus,
            scheduler,
            protocol,
            resources,
            tasks,
            clusters,
            interrupts: 0,
            working_sets,
            sections,
            requests,
            users,
        };
        system.check_resources()?;
        system.check_order()?;
        Ok(system)
    }

    /// What the system is called; may be empty.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many processors there are.
    #[must_use]
    pub fn cpus(&self) -> usize {
        self.cpus
    }

    /// How its processors are given to jobs: [`Scheduler::PFp`] where nothing else was said.
    #[must_use]
    pub fn scheduler(&self) -> Scheduler {
        self.scheduler
    }

    /// The same system under another scheduler. Under a global one the tasks' CPUs mean nothing; clusters are of [`Scheduler::CFp`] alone.
    #[must_use]
    pub fn under(self, scheduler: Scheduler) -> Self {
        let clusters = if scheduler == Scheduler::CFp { self.clusters } else { Vec::new() };
        Self { scheduler, clusters, ..self }
    }

    /// The same system under [`Scheduler::CFp`]. `cpus` has of each task, by id, where its jobs execute: a set of CPUs, a bit each, the first of which is the
    /// task's own. Tasks beyond its end stay on their own CPU.
    ///
    /// # Errors
    /// Where two of these clusters overlap, or one has no or another CPU; and where one has several, and the file names another protocol than `omlp`.
    pub fn in_clusters(self, cpus: &[u64]) -> Result<Self, Invalid> {
        let system = Self { clusters: Vec::new(), ..self };
        let mut clusters = system.check_clusters(cpus)?;
        clusters.retain(|cluster| cluster.count_ones() > 1);
        clusters.sort_unstable_by_key(|cluster| cluster.trailing_zeros());
        let system = Self { scheduler: Scheduler::CFp, clusters, ..system };
        system.check_cluster_protocols()?;
        Ok(system)
    }

    /// Whether there is a cluster of several processors.
    #[must_use]
    pub fn has_clusters(&self) -> bool {
        !self.clusters.is_empty()
    }

    /// The processors of the cluster that `cpu` belongs to, a bit each.
    #[must_use]
    pub fn cluster(&self, cpu: CpuId) -> u64 {
        let own = 1_u64 << cpu.index();
        self.clusters.iter().copied().find(|cluster| cluster & own != 0).unwrap_or(own)
    }

    /// The processors that may execute jobs of `task`; under a global scheduler that is not said here.
    pub fn cpus_of(&self, task: TaskId) -> impl Iterator<Item = CpuId> + Clone + use<> {
        let cluster = self.cluster(self.task(task).cpu);
        (0..MAX_CPUS).filter(move |cpu| cluster >> cpu & 1 == 1).map(CpuId::new)
    }

    /// A resource that nobody can lock where the system is under `protocol`: in clusters of several processors there is none but `omlp`.
    #[must_use]
    pub fn refused_in_clusters(&self, protocol: Protocol) -> Option<ResourceId> {
        let is_refused =
            |&id: &ResourceId| self.protocol_of(id, protocol) != Protocol::Omlp && !self.users(id).is_empty();
        self.resource_ids().find(|id| self.has_clusters() && is_refused(id))
    }

    /// The same system with tasks that keep so many KiB in caches, by task id; `None` for one that does not say.
    #[must_use]
    pub fn with_working_sets(self, mut working_sets: Vec<Option<u32>>) -> Self {
        // Equal systems have equal lists.
        working_sets.truncate(self.tasks.len());
        while working_sets.last() == Some(&None) {
            working_sets.pop();
        }
        Self { working_sets, ..self }
    }

    /// Gives a task another body, and the wcet that it adds up to. It has the same sections in the same order; their lengths may be others.
    ///
    /// # Errors
    /// As [`System::new`]; nothing has changed then.
    ///
    /// # Panics
    /// When the sections are others.
    pub fn set_body(&mut self, id: TaskId, body: Vec<Step>) -> Result<(), Invalid> {
        let wcet = body.iter().try_fold(Duration::ZERO, |sum, step| match step {
            Step::Run(time) => sum.checked_add(*time),
            Step::Lock(_) | Step::Unlock(_) => Some(sum),
        });
        let wcet = wcet.unwrap_or(Duration::from_ns(u64::MAX));
        let task = Task { body, wcet, ..self.tasks[id.index()].clone() };
        check_times(self.cpus, &task, Subject::Task(id))?;
        check_body(&self.resources, &task, id)?;
        let sections = section::sections_of(&task.body);
        let mut pairs = sections.iter().zip(&self.sections[id.index()]);
        let is_same = pairs.all(|(one, other)| (one.resource, one.parent) == (other.resource, other.parent));
        assert!(is_same && sections.len() == self.sections[id.index()].len(), "a body with other sections");
        self.requests[id.index()] = requests_of(&sections);
        self.sections[id.index()] = sections;
        self.tasks[id.index()] = task;
        Ok(())
    }

    /// The same system with other tasks. Working sets stay, by task id.
    ///
    /// # Errors
    /// As [`System::new`].
    pub fn with_tasks(&self, tasks: Vec<Task>) -> Result<Self, Invalid> {
        let resources = self.resources.clone();
        let system = Self::new(self.name.clone(), self.cpus, self.protocol, resources, tasks)?;
        let system = match self.has_clusters() {
            true => {
                let cpus: Vec<u64> = system.tasks.iter().map(|task| self.cluster(task.cpu)).collect();
                system.in_clusters(&cpus)?
            }
            false => system.under(self.scheduler),
        };
        Ok(system.with_working_sets(self.working_sets.clone()))
    }

    /// As [`System::with_tasks`], and behind these tasks some that stand for interrupts: above all others, on their own processor alone, in clusters too. For analyses,
    /// not to be executed.
    ///
    /// # Errors
    /// As [`System::new`].
    pub fn with_interrupts(&self, mut tasks: Vec<Task>, interrupts: Vec<Task>) -> Result<Self, Invalid> {
        let count = interrupts.len();
        tasks.extend(interrupts);
        Ok(Self { interrupts: count, ..self.with_tasks(tasks)? })
    }

    /// Whether the task stands for an interrupt.
    #[must_use]
    pub fn is_interrupt(&self, task: TaskId) -> bool {
        task.index() + self.interrupts >= self.tasks.len()
    }

    /// The protocol of resources that name none, where the system names one.
    #[must_use]
    pub fn protocol(&self) -> Option<Protocol> {
        self.protocol
    }

    /// All resources, by id.
    #[must_use]
    pub fn resources(&self) -> &[Resource] {
        &self.resources
    }

    /// All tasks, by id.
    #[must_use]
    pub fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// One task.
    #[must_use]
    pub fn task(&self, id: TaskId) -> &Task {
        &self.tasks[id.index()]
    }

    /// How many KiB of what a task uses should stay in caches, where it says so.
    #[must_use]
    pub fn working_set(&self, id: TaskId) -> Option<u32> {
        self.working_sets.get(id.index()).copied().flatten()
    }

    /// One resource.
    #[must_use]
    pub fn resource(&self, id: ResourceId) -> &Resource {
        &self.resources[id.index()]
    }

    /// The ids of all tasks.
    pub fn task_ids(&self) -> impl DoubleEndedIterator<Item = TaskId> + ExactSizeIterator + Clone + use<> {
        (0..self.tasks.len()).map(TaskId::new)
    }

    /// The ids of all resources.
    pub fn resource_ids(&self) -> impl DoubleEndedIterator<Item = ResourceId> + ExactSizeIterator + Clone + use<> {
        (0..self.resources.len()).map(ResourceId::new)
    }

    /// The critical sections of one job, in order of their locks.
    #[must_use]
    pub fn sections(&self, task: TaskId) -> &[Section] {
        &self.sections[task.index()]
    }

    /// The requests of one job, one row a resource, in order of first use.
    #[must_use]
    pub fn requests(&self, task: TaskId) -> &[Request] {
        &self.requests[task.index()]
    }

    /// The tasks that request a resource, by id.
    #[must_use]
    pub fn users(&self, resource: ResourceId) -> &[TaskId] {
        &self.users[resource.index()]
    }

    /// Whether tasks of more than one processor, or cluster, request the resource.
    #[must_use]
    pub fn is_global(&self, resource: ResourceId) -> bool {
        let mut cpus = self.users(resource).iter().map(|&task| self.task(task).cpu);
        cpus.next().is_some_and(|first| cpus.any(|cpu| cpu != first))
    }

    /// The protocol that rules `resource` where the system is under `protocol`: its own if it names one. A
    /// resource of one processor is under `icpp` where a protocol for several would rule it, but for `fmlp_short`; where there are clusters of several, none is.
    #[must_use]
    pub fn protocol_of(&self, resource: ResourceId, protocol: Protocol) -> Protocol {
        match self.resource(resource).protocol.unwrap_or(protocol) {
            Protocol::None => Protocol::None,
            Protocol::Pip => Protocol::Pip,
            Protocol::Icpp => Protocol::Icpp,
            Protocol::Pcp => Protocol::Pcp,
            Protocol::Srp => Protocol::Srp,
            interruptible @ (Protocol::Ics | Protocol::IcsLock) => interruptible,
            Protocol::FmlpShort => Protocol::FmlpShort,
            named if self.has_clusters() || self.is_global(resource) => named,
            named if named.has_homes() && self.is_away(resource) => named,
            _ => Protocol::Icpp,
        }
    }

    /// A task that requests a resource (the last) while it holds another one, where one of the two is ruled by a protocol that has no nested requests, and
    /// the system is under `protocol`: nobody can execute it.
    #[must_use]
    pub fn refused_nesting(&self, protocol: Protocol) -> Option<(TaskId, ResourceId, ResourceId)> {
        self.task_ids().find_map(|task| {
            let sections = self.sections(task);
            sections.iter().find_map(|section| {
                let inner = self.protocol_of(section.resource, protocol);
                // BOUND: the depth of nesting.
                let mut outer = section.parent;
                while let Some(place) = outer {
                    let held = &sections[place];
                    if !(inner.has_nesting() && self.protocol_of(held.resource, protocol).has_nesting()) {
                        return Some((task, held.resource, section.resource));
                    }
                    outer = held.parent;
                }
                None
            })
        })
    }

    /// A resource whose sections begin again instead of being waited for, where the system is under `protocol`: locks cannot rule it.
    #[must_use]
    pub fn interruptible(&self, protocol: Protocol) -> Option<ResourceId> {
        self.resource_ids().find(|&resource| self.protocol_of(resource, protocol).is_interruptible())
    }

    /// Whether the resource was given a home on another processor than its users'.
    fn is_away(&self, resource: ResourceId) -> bool {
        let home = self.resource(resource).home;
        home.is_some_and(|home| self.users(resource).iter().any(|&user| self.task(user).cpu != home))
    }

    /// The processor where sections on `resource` execute under `dpcp` and `dflp`: what the file says, else the one whose tasks
    /// use it least; of several, the first.
    #[must_use]
    pub fn home(&self, resource: ResourceId) -> CpuId {
        self.resource(resource).home.unwrap_or_else(|| self.least_used())
    }

    /// The same system, whose shared resources keep the [homes](System::home) that they have, whatever the execution times become.
    #[must_use]
    pub fn with_homes(mut self) -> Self {
        let home = self.least_used();
        for resource in 0..self.resources.len() {
            if self.is_global(ResourceId::new(resource)) {
                self.resources[resource].home.get_or_insert(home);
            }
        }
        self
    }

    fn least_used(&self) -> CpuId {
        // In 2^-32 of a processor, rounded down for each task: nearly always enough to tell who is used least.
        let (mut used, mut tasks) = (alloc::vec![0_u128; self.cpus], alloc::vec![0_u128; self.cpus]);
        for task in &self.tasks {
            used[task.cpu.index()] += (u128::from(task.wcet.as_ns()) << 32) / u128::from(task.period.as_ns());
            tasks[task.cpu.index()] += 1;
        }
        let shares = |cpu: usize| {
            let tasks = self.tasks.iter().filter(move |task| task.cpu.index() == cpu);
            tasks.map(|task| (task.wcet.as_ns(), task.period.as_ns()))
        };
        let is_less = |cpu: usize, than: usize| {
            let is_open = used[cpu] <= used[than] + tasks[than] && used[than] <= used[cpu] + tasks[cpu];
            if is_open { utilization::compare(shares(cpu), shares(than)).is_lt() } else { used[cpu] < used[than] }
        };
        let least = (1..self.cpus).fold(0, |least, cpu| if is_less(cpu, least) { cpu } else { least });
        CpuId::new(least)
    }

    /// The protocol the file asks for; without one, `omlp` where there are clusters, else `mpcp` where a resource is shared across processors and `icpp` otherwise.
    #[must_use]
    pub fn protocol_or_default(&self) -> Protocol {
        self.protocol.unwrap_or_else(|| {
            if self.has_clusters() {
                Protocol::Omlp
            } else if self.resource_ids().any(|resource| self.is_global(resource)) {
                Protocol::Mpcp
            } else {
                Protocol::Icpp
            }
        })
    }
}

fn requests_of(sections: &[Section]) -> Vec<Request> {
    let mut requests: Vec<Request> = Vec::new();
    for section in sections {
        match requests.iter_mut().find(|request| request.resource == section.resource) {
            Some(request) => {
                request.count += 1;
                request.length = request.length.max(section.length);
            }
            None => requests.push(Request { resource: section.resource, count: 1, length: section.length }),
        }
    }
    requests
}
