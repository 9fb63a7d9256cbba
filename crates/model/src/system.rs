//! A whole system, as `build` has validated it.

use crate::{
    CPUS_MAX, CpuId, Mode, Protocol, Request, Resource, ResourceId, Scheduler, Section, Task, TaskId, utilization,
};
use alloc::string::String;
use alloc::vec::Vec;

/// A platform of identical processors with a scheduler, its resources and its tasks.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct System {
    pub(crate) name: String,
    pub(crate) cpus: usize,
    pub(crate) scheduler: Scheduler,
    pub(crate) protocol: Option<Protocol>,
    pub(crate) resources: Vec<Resource>,
    pub(crate) tasks: Vec<Task>,
    /// The clusters of several processors, as sets with one bit for each processor. They are disjoint and sorted. A
    /// processor in none of them is a cluster of its own.
    pub(crate) clusters: Vec<u64>,
    /// The number of tasks, at the end of `tasks`, that stand for interrupts.
    pub(crate) interrupts: usize,
    /// The working sets in KiB, by task. Tasks beyond the end of the list have none.
    pub(crate) working_sets: Vec<Option<u32>>,
    /// The critical sections, by task.
    pub(crate) sections: Vec<Vec<Section>>,
    /// The requests by task, in order of first use.
    pub(crate) requests: Vec<Vec<Request>>,
    /// The users by resource, in order of task ids.
    pub(crate) users: Vec<Vec<TaskId>>,
}

impl System {
    /// Returns the name of the system. It may be empty.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the number of processors.
    #[must_use]
    pub fn cpus(&self) -> usize {
        self.cpus
    }

    /// Returns the scheduler: [`Scheduler::PFp`] unless another one was chosen.
    #[must_use]
    pub fn scheduler(&self) -> Scheduler {
        self.scheduler
    }

    /// Returns the same system under another scheduler. Under a global scheduler the tasks' CPUs mean nothing. Only
    /// [`Scheduler::CFp`] keeps clusters.
    #[must_use]
    pub fn under(self, scheduler: Scheduler) -> Self {
        let clusters = if scheduler == Scheduler::CFp { self.clusters } else { Vec::new() };
        Self { scheduler, clusters, ..self }
    }

    /// Returns the same system with this protocol for resources that name none.
    #[must_use]
    pub fn with_protocol(self, protocol: Protocol) -> Self {
        Self { protocol: Some(protocol), ..self }
    }

    /// Returns whether there is a cluster of several processors.
    #[must_use]
    pub fn has_clusters(&self) -> bool {
        !self.clusters.is_empty()
    }

    /// Returns the processors of the cluster of `cpu`, as a set with one bit for each.
    #[must_use]
    pub fn cluster(&self, cpu: CpuId) -> u64 {
        let own = 1_u64 << cpu.index();
        self.clusters.iter().copied().find(|cluster| cluster & own != 0).unwrap_or(own)
    }

    /// Returns the processors that may execute jobs of `task`: all of them under a global scheduler.
    pub fn cpus_of(&self, task: TaskId) -> impl Iterator<Item = CpuId> + Clone + use<> {
        let all = u64::MAX >> (u64::BITS as usize - self.cpus.clamp(1, CPUS_MAX));
        let cluster = if self.scheduler.is_global() { all } else { self.cluster(self.task(task).cpu) };
        (0..CPUS_MAX).filter(move |cpu| cluster >> cpu & 1 == 1).map(CpuId::new)
    }

    /// Returns whether a job requests a resource.
    #[must_use]
    pub fn is_sharing(&self) -> bool {
        self.task_ids().any(|id| !self.requests(id).is_empty())
    }

    /// Returns a used resource that cannot be locked if the system is under `protocol`. With clusters of several
    /// processors, these are all resources under a protocol other than `omlp`.
    #[must_use]
    pub fn refused_in_clusters(&self, protocol: Protocol) -> Option<ResourceId> {
        let is_refused =
            |&id: &ResourceId| self.protocol_of(id, protocol) != Protocol::Omlp && !self.users(id).is_empty();
        self.resource_ids().find(|id| self.has_clusters() && is_refused(id))
    }

    /// Returns a used resource that cannot be locked under a global scheduler if the system is under `protocol`: all
    /// except those under `none`, `fmlp_short`, `fmlp_long`, `lock_free` and `wait_free`. The other protocols assign
    /// tasks to processors. Returns `None` under other schedulers.
    #[must_use]
    pub fn refused_globally(&self, protocol: Protocol) -> Option<ResourceId> {
        let is_refused = |&id: &ResourceId| {
            let ruling = self.protocol_of(id, protocol);
            let is_covered = matches!(ruling, Protocol::None | Protocol::FmlpShort | Protocol::FmlpLong);
            !is_covered && !ruling.is_object() && !self.users(id).is_empty()
        };
        self.resource_ids().find(|id| self.scheduler.is_global() && is_refused(id))
    }

    /// Returns whether one scheduler in user space decides for all CPUs if the system is under `protocol`: under
    /// `g-edf` if a used resource is under `fmlp_short` or `fmlp_long`, and under `p-edf` if one is under `fmlp_long`.
    /// Otherwise the kernel's EDF executes `g-edf`, and a scheduler for each CPU `p-edf`.
    #[must_use]
    pub fn has_global_locks(&self, protocol: Protocol) -> bool {
        let is_used = |id: &ResourceId| !self.users(*id).is_empty();
        let mut rulings = self.resource_ids().filter(is_used).map(|id| self.protocol_of(id, protocol));
        match self.scheduler {
            Scheduler::GEdf => rulings.any(is_fmlp),
            Scheduler::PEdf => rulings.any(|ruling| ruling == Protocol::FmlpLong),
            _ => false,
        }
    }

    /// Returns a used resource that real threads cannot execute by deadlines if the system is under `protocol`.
    ///
    /// With [global locks](System::has_global_locks), these are all except those under `fmlp_short`, `fmlp_long`,
    /// `lock_free` and `wait_free`. By the kernel's EDF, these are all except those under `lock_free`, `wait_free` and
    /// `none`: it has no priority levels, and a thread that holds a lock does not inherit the deadlines of those that
    /// wait for it.
    #[must_use]
    pub fn refused_by_deadlines(&self, protocol: Protocol) -> Option<ResourceId> {
        let has_locks = self.scheduler == Scheduler::GEdf && self.has_global_locks(protocol);
        let is_refused = |&id: &ResourceId| {
            let ruling = self.protocol_of(id, protocol);
            let is_covered = if has_locks { is_fmlp(ruling) } else { ruling == Protocol::None };
            !is_covered && !ruling.is_object() && !self.users(id).is_empty()
        };
        self.resource_ids().find(is_refused)
    }

    /// Returns the same system with these working sets, in KiB and by task id. `None` stands for a task without one.
    #[must_use]
    pub fn with_working_sets(self, mut working_sets: Vec<Option<u32>>) -> Self {
        // Equal systems have equal lists.
        working_sets.truncate(self.tasks.len());
        while working_sets.last() == Some(&None) {
            working_sets.pop();
        }
        Self { working_sets, ..self }
    }

    /// Returns whether the task stands for an interrupt.
    #[must_use]
    pub fn is_interrupt(&self, task: TaskId) -> bool {
        task.index() + self.interrupts >= self.tasks.len()
    }

    /// Returns the protocol of resources that name none, or `None` if the system names none either.
    #[must_use]
    pub fn protocol(&self) -> Option<Protocol> {
        self.protocol
    }

    /// Returns all resources, by id.
    #[must_use]
    pub fn resources(&self) -> &[Resource] {
        &self.resources
    }

    /// Returns all tasks, by id.
    #[must_use]
    pub fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// Returns one task.
    #[must_use]
    pub fn task(&self, id: TaskId) -> &Task {
        &self.tasks[id.index()]
    }

    /// Returns the size in KiB of the task's working set, which should stay in caches, or `None` if the task has none.
    #[must_use]
    pub fn working_set(&self, id: TaskId) -> Option<u32> {
        self.working_sets.get(id.index()).copied().flatten()
    }

    /// Returns one resource.
    #[must_use]
    pub fn resource(&self, id: ResourceId) -> &Resource {
        &self.resources[id.index()]
    }

    /// Returns the ids of all tasks.
    pub fn task_ids(&self) -> impl DoubleEndedIterator<Item = TaskId> + ExactSizeIterator + Clone + use<> {
        (0..self.tasks.len()).map(TaskId::new)
    }

    /// Returns the ids of all resources.
    pub fn resource_ids(&self) -> impl DoubleEndedIterator<Item = ResourceId> + ExactSizeIterator + Clone + use<> {
        (0..self.resources.len()).map(ResourceId::new)
    }

    /// Returns the critical sections of one job, in the order of their locks.
    #[must_use]
    pub fn sections(&self, task: TaskId) -> &[Section] {
        &self.sections[task.index()]
    }

    /// Returns the requests of one job, one entry for each resource, in order of first use. The mode is `Read` if all
    /// sections on the resource are.
    #[must_use]
    pub fn requests(&self, task: TaskId) -> &[Request] {
        &self.requests[task.index()]
    }

    /// Returns those of the [requests](System::requests) of one job that read, or those that write.
    #[must_use]
    pub fn requests_in(&self, task: TaskId, mode: Mode) -> Vec<Request> {
        requests_of(self.sections(task).iter().filter(|section| section.mode == mode))
    }

    /// Returns the tasks that request a resource, by id.
    #[must_use]
    pub fn users(&self, resource: ResourceId) -> &[TaskId] {
        &self.users[resource.index()]
    }

    /// Returns whether tasks of more than one processor, or of more than one cluster, request the resource.
    #[must_use]
    pub fn is_global(&self, resource: ResourceId) -> bool {
        let mut cpus = self.users(resource).iter().map(|&task| self.task(task).cpu);
        cpus.next().is_some_and(|first| cpus.any(|cpu| cpu != first))
    }

    /// Returns the protocol that rules `resource` if the system is under `protocol`.
    ///
    /// A resource that names its own protocol keeps it. If a protocol for several processors
    /// would rule a resource of one processor, the result is `icpp`, with four exceptions:
    /// `fmlp_short`, `phase_fair` and `task_fair` are kept, `lock_free` and `wait_free` are kept, `dpcp` and `dflp` are
    /// kept for a resource with its home on another processor, and all are kept if there are clusters of several
    /// processors or the scheduler is global.
    ///
    /// Under [`Scheduler::PEdf`] the result is `srp` for a resource of one processor and `msrp` for the others,
    /// whatever is named, with two exceptions: `lock_free` and `wait_free` are kept, and so is `fmlp_long` for a
    /// resource that is shared across processors.
    #[must_use]
    pub fn protocol_of(&self, resource: ResourceId, protocol: Protocol) -> Protocol {
        let named = self.resource(resource).protocol.unwrap_or(protocol);
        if self.scheduler == Scheduler::PEdf && !named.is_object() {
            return match self.is_global(resource) {
                true if named == Protocol::FmlpLong => named,
                true => Protocol::Msrp,
                false => Protocol::Srp,
            };
        }
        match named {
            Protocol::None => Protocol::None,
            Protocol::Pip => Protocol::Pip,
            Protocol::Icpp => Protocol::Icpp,
            Protocol::Pcp => Protocol::Pcp,
            Protocol::Srp => Protocol::Srp,
            interruptible @ (Protocol::Ics | Protocol::IcsLock) => interruptible,
            Protocol::FmlpShort => Protocol::FmlpShort,
            kept if kept.is_object() || kept.has_readers() => kept,
            named if self.has_clusters() || self.scheduler.is_global() || self.is_global(resource) => named,
            named if named.has_homes() && self.is_away(resource) => named,
            _ => Protocol::Icpp,
        }
    }

    /// Returns a task, a resource that it holds, and a resource that it requests meanwhile, where the protocol of one
    /// of the two has no nested requests if the system is under `protocol`. Such a task cannot be executed.
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

    /// Returns a resource with interruptible sections if the system is under `protocol`. Its sections restart instead
    /// of waiting, so locks cannot rule it.
    #[must_use]
    pub fn interruptible(&self, protocol: Protocol) -> Option<ResourceId> {
        self.resource_ids().find(|&resource| self.protocol_of(resource, protocol).is_interruptible())
    }

    /// Returns whether the file gives the resource a home that is not the processor of all its users.
    fn is_away(&self, resource: ResourceId) -> bool {
        let home = self.resource(resource).home;
        home.is_some_and(|home| self.users(resource).iter().any(|&user| self.task(user).cpu != home))
    }

    /// Returns the home of `resource`: the processor where its sections execute under `dpcp` and `dflp`. If the file
    /// gives none, it is the processor with the least utilization, or the first of several.
    #[must_use]
    pub fn home(&self, resource: ResourceId) -> CpuId {
        self.resource(resource).home.unwrap_or_else(|| self.least_used())
    }

    /// Returns the same system with the [homes](System::home) of its shared
    /// resources fixed, so that they stay if execution times change.
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
        // In units of 2^-32 of a processor, rounded down for each
        // task: nearly always enough to decide which is used less.
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

    /// Returns the protocol that the file names. Without one, it is `omlp` if there are clusters of several
    /// processors, `fmlp_short` under a global scheduler, `mpcp` if a resource is shared across processors, and `icpp`
    /// otherwise.
    #[must_use]
    pub fn protocol_or_default(&self) -> Protocol {
        self.protocol.unwrap_or_else(|| {
            if self.has_clusters() {
                Protocol::Omlp
            } else if self.scheduler.is_global() {
                Protocol::FmlpShort
            } else if self.resource_ids().any(|resource| self.is_global(resource)) {
                Protocol::Mpcp
            } else {
                Protocol::Icpp
            }
        })
    }
}

pub(crate) fn requests_of<'a>(sections: impl IntoIterator<Item = &'a Section>) -> Vec<Request> {
    let mut requests: Vec<Request> = Vec::new();
    for section in sections {
        match requests.iter_mut().find(|request| request.resource == section.resource) {
            Some(request) => {
                request.count += 1;
                request.length = request.length.max(section.length);
                request.mode = request.mode.min(section.mode);
            }
            None => {
                let Section { resource, length, mode, .. } = *section;
                requests.push(Request { resource, count: 1, length, mode });
            }
        }
    }
    requests
}
/// Whether the protocol is one of the locks of the FMLP.
fn is_fmlp(protocol: Protocol) -> bool {
    matches!(protocol, Protocol::FmlpShort | Protocol::FmlpLong)
}
