//! Task sets that a program declares one task and one resource at a time.

use super::error::TaskError;
use super::set::TaskSet;
use lockwright_model::{
    CPUS_MAX, CpuId, Duration, Invalid, Priority, Protocol, Resource, ResourceId, Step, Subject, System, Task, TaskId,
};

/// A builder to which tasks and resources are added one by one.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TaskSetBuilder {
    protocol: Protocol,
    resources: Vec<Resource>,
    tasks: Vec<Task>,
    /// For each task, whether the program gave it a deadline.
    has_deadline: Vec<bool>,
    /// The CPUs of each task, as a bit set.
    clusters: Vec<u64>,
    /// The first CPU number that no system has, with the error to report.
    beyond: Option<Invalid>,
}

impl TaskSet {
    /// Returns a builder to which tasks and resources are added one by one.
    #[must_use]
    pub fn builder(protocol: Protocol) -> TaskSetBuilder {
        TaskSetBuilder {
            protocol,
            resources: Vec::new(),
            tasks: Vec::new(),
            has_deadline: Vec::new(),
            clusters: Vec::new(),
            beyond: None,
        }
    }
}

impl TaskSetBuilder {
    /// Adds a resource. Names are unique.
    pub fn resource(&mut self, name: &str) -> ResourceId {
        self.resources.push(Resource::new(name));
        // An index beyond the range of ids is also beyond the limits of a task set, which `build` checks.
        ResourceId::new((self.resources.len() - 1).min(usize::from(u16::MAX)))
    }

    /// Adds a resource whose sections execute on `cpu` under `dpcp` and `dflp`.
    pub fn resource_at(&mut self, name: &str, cpu: u16) -> ResourceId {
        let resource = self.resource(name);
        self.resources[resource.index()].home = Some(CpuId(cpu));
        self.look_at(cpu, Subject::Resource(resource), || format!("resource `{name}` is at home on CPU {cpu}"));
        resource
    }

    /// Records an error for the first CPU number that no system has.
    fn look_at(&mut self, cpu: u16, subject: Subject, message: impl FnOnce() -> String) {
        if usize::from(cpu) >= CPUS_MAX && self.beyond.is_none() {
            let help = format!("CPUs are numbered from 0, and at most {CPUS_MAX} are supported");
            self.beyond = Some(Invalid::new(subject, Some("cpu"), message(), help));
        }
    }

    /// Adds a task on a CPU, counted from 0 among those that the process may use. A greater priority (up to 65,535) is
    /// more urgent. `uses` contains every resource that the task ever reads or
    /// writes.
    pub fn task(&mut self, name: &str, cpu: u16, priority: u16, uses: &[ResourceId]) -> TaskId {
        // The locks use no execution times: each section lasts a nanosecond.
        let run = Duration::from_ns(1);
        let section = |&resource: &ResourceId| {
            let inside = [Step::Run(run), Step::Unlock(resource)];
            [Step::Lock(resource), Step::Read(resource)].map(|begin| [begin, inside[0], inside[1]]).concat()
        };
        let body: Vec<Step> = std::iter::once(Step::Run(run)).chain(uses.iter().flat_map(section)).collect();
        let period = Duration::from_ms(1_000);
        self.tasks.push(Task {
            name: name.into(),
            cpu: CpuId(cpu),
            priority: Priority::base(u32::from(priority)),
            period,
            deadline: period,
            jitter: Duration::ZERO,
            offset: Duration::ZERO,
            wcet: Duration::from_ns(1 + 2 * uses.len() as u64),
            body,
        });
        self.has_deadline.push(false);
        self.clusters.push(1_u64.checked_shl(u32::from(cpu)).unwrap_or(0));
        let task = TaskId::new((self.tasks.len() - 1).min(usize::from(u16::MAX)));
        self.look_at(cpu, Subject::Task(task), || format!("task `{name}` is on CPU {cpu}"));
        task
    }

    /// Adds a task that may execute on any CPU of a cluster. The clusters of two tasks are the same or have no CPU in
    /// common. Only `omlp` supports clusters.
    pub fn task_in_cluster(&mut self, name: &str, cpus: &[u16], priority: u16, uses: &[ResourceId]) -> TaskId {
        let first = cpus.iter().copied().min().unwrap_or(0);
        let task = self.task(name, first, priority, uses);
        for &cpu in cpus {
            self.look_at(cpu, Subject::Task(task), || format!("task `{name}` may execute on CPU {cpu}"));
        }
        // A CPU number that no system has makes the cluster empty, which is refused.
        let cluster = cpus.iter().try_fold(0, |set, &cpu| Some(set | 1_u64.checked_shl(u32::from(cpu))?)).unwrap_or(0);
        if let Some(own) = self.clusters.last_mut() {
            *own = cluster;
        }
        task
    }

    /// Gives a task a relative deadline, so that [`TaskSet::statistics`] reports the jobs that miss it. The locks do
    /// not use it. A task that this builder did not return is ignored.
    pub fn deadline(&mut self, task: TaskId, deadline: Duration) {
        if let (Some(own), Some(has)) = (self.tasks.get_mut(task.index()), self.has_deadline.get_mut(task.index())) {
            (own.deadline, own.period, *has) = (deadline, deadline, true);
        }
    }

    /// Builds the task set.
    ///
    /// # Errors
    /// [`TaskError::Invalid`] if names are not unique, a resource does not exist, clusters overlap, or a deadline is
    /// too short or too long; those of
    /// [`TaskSet::new`].
    pub fn build(self) -> Result<TaskSet, TaskError> {
        if let Some(beyond) = self.beyond {
            return Err(beyond.into());
        }
        let cpus = self.tasks.iter().map(|task| task.cpu.index() + 1);
        let homes = self.resources.iter().filter_map(|resource| Some(resource.home?.index() + 1));
        let clusters = self.clusters.iter().map(|cluster| (u64::BITS - cluster.leading_zeros()) as usize);
        let cpus = cpus.chain(homes).chain(clusters).max().unwrap_or(1);
        let mut system = System::new("tasks".into(), cpus, Some(self.protocol), self.resources, self.tasks)?;
        if self.clusters.iter().any(|cluster| cluster.count_ones() != 1) {
            system = system.in_clusters(&self.clusters)?;
        }
        TaskSet::with_deadlines(&system, self.protocol, self.has_deadline)
    }
}
