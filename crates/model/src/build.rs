//! Systems are validated when they are built or changed.

use crate::system::requests_of;
use crate::validate::{Invalid, Subject, check_body, check_counts, check_name, check_times, first_repeated};
use crate::{
    Duration, Protocol, Resource, ResourceId, Scheduler, Step, System, Task, TaskId, assign_deadline_monotonic, section,
};
use alloc::string::String;
use alloc::vec::Vec;

impl System {
    /// Validates a system. A `System` always has:
    ///
    /// - 1 to [`CPUS_MAX`](crate::CPUS_MAX) processors, 1 to [`TASKS_MAX`](crate::TASKS_MAX) tasks, and at most
    ///   [`RESOURCES_MAX`](crate::RESOURCES_MAX) resources;
    /// - names that are unique and not empty;
    /// - for every task a CPU of the platform, `0 < deadline <= period`, `0 < wcet`, `jitter < deadline`, and times of
    ///   at most [`DURATION_MAX`](crate::DURATION_MAX);
    /// - for every task a body whose runs are positive and add up to the wcet;
    /// - in every body, locks that are well nested, at most [`NESTING_MAX`](crate::NESTING_MAX) deep, never on a
    ///   resource already held, and never around an empty section;
    /// - ceilings at or above the priority of every user;
    /// - an order of nested locks without a cycle, so that no deadlock is possible.
    ///
    /// # Errors
    /// Returns the first rule that is broken, and where.
    pub fn new(
        name: String,
        cpus: usize,
        protocol: Option<Protocol>,
        resources: Vec<Resource>,
        tasks: Vec<Task>,
    ) -> Result<Self, Invalid> {
        check_counts(cpus, &resources, &tasks)?;
        let repeated = first_repeated(resources.iter().map(|resource| resource.name.as_str()));
        for (index, resource) in resources.iter().enumerate() {
            let subject = Subject::Resource(ResourceId::new(index));
            check_name("resource", &resource.name, repeated == Some(index), subject)?;
        }
        let repeated = first_repeated(tasks.iter().map(|task| task.name.as_str()));
        for (index, task) in tasks.iter().enumerate() {
            let subject = Subject::Task(TaskId::new(index));
            check_name("task", &task.name, repeated == Some(index), subject)?;
            check_times(cpus, task, subject)?;
            check_body(&resources, task, TaskId::new(index))?;
        }
        let sections: Vec<_> = tasks.iter().map(|task| section::sections_of(&task.body)).collect();
        let requests: Vec<_> = sections.iter().map(requests_of).collect();
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
        system.check_unnested()?;
        Ok(system)
    }

    /// Returns the same system under [`Scheduler::CFp`].
    ///
    /// `cpus` gives, by task id, the CPUs on which the task's jobs execute, as a set with one bit for each CPU. The
    /// first CPU of the set must be the task's own. Tasks beyond the end of `cpus` stay on their own CPU.
    ///
    /// # Errors
    /// Returns an error if two clusters overlap without being equal, or if a cluster has a CPU beyond the platform or
    /// its first CPU is not the task's own. Also returns an error if a cluster has several CPUs and the file names
    /// another protocol than `omlp`.
    pub fn in_clusters(self, cpus: &[u64]) -> Result<Self, Invalid> {
        let system = Self { clusters: Vec::new(), ..self };
        let mut clusters = system.check_clusters(cpus)?;
        clusters.retain(|cluster| cluster.count_ones() > 1);
        clusters.sort_unstable_by_key(|cluster| cluster.trailing_zeros());
        let system = Self { scheduler: Scheduler::CFp, clusters, ..system };
        system.check_cluster_protocols()?;
        Ok(system)
    }

    /// Returns the same system with priorities in the order of relative deadlines, and without ceilings fixed by hand.
    ///
    /// Under [`Scheduler::PEdf`], these priorities are the preemption levels of the tasks, and the ceilings that follow
    /// from them are those of the stack resource policy.
    #[must_use]
    pub fn with_preemption_levels(&self) -> Self {
        let mut tasks = self.tasks.clone();
        assign_deadline_monotonic(&mut tasks);
        let resources = self.resources.iter().map(|resource| Resource { ceiling: None, ..resource.clone() });
        Self::new(self.name.clone(), self.cpus, None, resources.collect(), tasks)
            .expect("a valid system is valid with other priorities and no ceilings fixed by hand")
            .under(self.scheduler)
    }

    /// Returns the same system with other tasks. Working sets are kept, by task id.
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

    /// Like [`System::with_tasks`], with tasks appended that stand for interrupts. Analyses let an interrupt execute
    /// on its own processor alone, even in a cluster. The caller gives interrupts priorities at least as high as
    /// those of all other tasks. The result is not to be executed.
    ///
    /// # Errors
    /// As [`System::new`].
    pub fn with_interrupts(&self, mut tasks: Vec<Task>, interrupts: Vec<Task>) -> Result<Self, Invalid> {
        let count = interrupts.len();
        tasks.extend(interrupts);
        Ok(Self { interrupts: count, ..self.with_tasks(tasks)? })
    }

    /// Replaces the body of a task, and sets its wcet to the sum of the runs.
    ///
    /// The new body must have the same sections in the same order. Their lengths may differ.
    ///
    /// # Errors
    /// Returns an error as [`System::new`] does. The system is unchanged then.
    ///
    /// # Panics
    /// Panics if the sections differ in resource or nesting.
    pub fn set_body(&mut self, id: TaskId, body: Vec<Step>) -> Result<(), Invalid> {
        let wcet = body.iter().try_fold(Duration::ZERO, |sum, step| match step {
            Step::Run(time) => sum.checked_add(*time),
            Step::Lock(_) | Step::Read(_) | Step::Unlock(_) => Some(sum),
        });
        let wcet = wcet.unwrap_or(Duration::from_ns(u64::MAX));
        let task = Task { body, wcet, ..self.tasks[id.index()].clone() };
        check_times(self.cpus, &task, Subject::Task(id))?;
        check_body(&self.resources, &task, id)?;
        let sections = section::sections_of(&task.body);
        let mut pairs = sections.iter().zip(&self.sections[id.index()]);
        let is_same = pairs.all(|(one, other)| (one.resource, one.parent) == (other.resource, other.parent));
        assert!(is_same && sections.len() == self.sections[id.index()].len(), "the new body has the same sections");
        self.requests[id.index()] = requests_of(&sections);
        self.sections[id.index()] = sections;
        self.tasks[id.index()] = task;
        Ok(())
    }
}
