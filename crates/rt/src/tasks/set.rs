//! Task sets: the thread of each task, and the resources that its jobs hold.

use super::error::{MachineError, TaskError, check_scheduler, check_system};
use super::lock::{Locks, ResourceError};
use super::priorities::Levels;
use lockwright_model::{
    CPUS_MAX, CpuId, Duration, Instant, Invalid, Mode, NESTING_MAX, Priority, Protocol, Resource, ResourceId,
    Scheduler, Step, Subject, System, Task, TaskId,
};
use lockwright_protocol::Refusal;
use lockwright_sys::clock;
use lockwright_sys::futex::{Clock, Deadline};
use lockwright_sys::sched::{self, ME, Scheduling};
use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Tasks and resources under one protocol. A clone is another handle to the same task set.
#[derive(Clone, Debug)]
pub struct TaskSet(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    system: System,
    protocol: Protocol,
    locks: Locks,
    /// The Linux number of each CPU of the system.
    cpus: Vec<usize>,
    /// Whether each task has a thread.
    taken: Box<[AtomicBool]>,
}

impl Shared {
    /// For each resource, whether the task is declared to read it, and whether to write it. A bound of a reader-writer
    /// protocol holds only for the declared modes; other protocols do not distinguish them.
    fn declared(&self, task: TaskId) -> Vec<(bool, bool)> {
        let declared = |resource| {
            let mut modes = (false, false);
            for section in self.system.sections(task).iter().filter(|section| section.resource == resource) {
                let is_either = !self.system.protocol_of(resource, self.protocol).has_readers();
                modes.0 |= is_either || section.mode == Mode::Read;
                modes.1 |= is_either || section.mode == Mode::Write;
            }
            modes
        };
        self.system.resource_ids().map(declared).collect()
    }
}

thread_local! {
    static IS_MEMBER: Cell<bool> = const { Cell::new(false) };
}

impl TaskSet {
    /// Creates the task set of `system`. `protocol` applies to resources that name none. The times in `system` are
    /// ignored, except relative deadlines under `p-edf`; there, resources are under `srp` and `msrp`. CPU k of the
    /// system is the k-th CPU of the set that the calling thread may use.
    ///
    /// # Errors
    /// [`TaskError::Machine`] if:
    ///
    /// - the machine has too few CPUs, or its 97 levels are too few;
    /// - the scheduler is not `p-fp`, `p-edf` or `c-fp`;
    /// - a task holds two resources at a time whose protocol has no nested requests;
    /// - tasks of a cluster of CPUs use a resource that is not under `omlp`;
    /// - a resource is under `ics` or `ics_lock`, which are not locks: see [`ics`](crate::ics) for their sections; or
    ///   under `lock_free` or `wait_free`: see [`objects`](crate::objects).
    pub fn new(system: &System, protocol: Protocol) -> Result<Self, TaskError> {
        check_scheduler(system)?;
        check_system(system, protocol)?;
        if let Some(resource) = system.interruptible(protocol) {
            return Err(MachineError::Interruptible { resource }.into());
        }
        let allowed = sched::affinity()?;
        if allowed.len() < system.cpus() {
            return Err(MachineError::TooFewCpus { needed: system.cpus(), have: allowed.len() }.into());
        }
        let cpus = allowed[..system.cpus()].to_vec();
        let levels = Levels::of(system, protocol, &[]);
        let levels = levels.map_err(|too_many| MachineError::TooManyPriorities { needed: too_many.0 })?;
        let locks = Locks::new(system, protocol, levels, &cpus);
        let taken = system.tasks().iter().map(|_| AtomicBool::new(false)).collect();
        Ok(Self(Arc::new(Shared { system: system.clone(), protocol, locks, cpus, taken })))
    }

    /// Returns a builder to which tasks and resources are added one by one.
    #[must_use]
    pub fn builder(protocol: Protocol) -> TaskSetBuilder {
        TaskSetBuilder { protocol, resources: Vec::new(), tasks: Vec::new(), clusters: Vec::new(), beyond: None }
    }

    /// Returns the tasks and resources.
    #[must_use]
    pub fn system(&self) -> &System {
        &self.0.system
    }

    /// Returns the task with this name.
    #[must_use]
    pub fn task(&self, name: &str) -> Option<TaskId> {
        self.0.system.task_ids().find(|&id| self.0.system.task(id).name == name)
    }

    /// Returns the resource with this name.
    #[must_use]
    pub fn resource(&self, name: &str) -> Option<ResourceId> {
        self.0.system.resource_ids().find(|&id| self.0.system.resource(id).name == name)
    }

    /// Makes the calling thread a task until the returned value is dropped: under SCHED_FIFO, on the task's CPU.
    /// Afterwards it gets its previous policy and CPUs back. [`Member::leave`] reports whether the kernel refuses that.
    ///
    /// # Errors
    /// [`TaskError::NoTask`], [`TaskError::Taken`]; [`TaskError::Machine`] if the kernel refuses.
    pub fn join(&self, task: TaskId) -> Result<Member, TaskError> {
        let shared = &self.0;
        let taken = shared.taken.get(task.index()).ok_or(TaskError::NoTask)?;
        let before = Some((sched::scheduling(ME)?, sched::affinity()?));
        let declared = shared.declared(task);
        // ORDERING: Acquire and Release: the next thread in the seat sees what the last one left there.
        if IS_MEMBER.get() || taken.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
            return Err(TaskError::Taken);
        }
        IS_MEMBER.set(true);
        // From here on, dropping the member undoes everything.
        let member = Member {
            shared: Arc::clone(shared),
            task,
            before,
            declared,
            held: RefCell::new(Vec::with_capacity(NESTING_MAX)),
            begun: Cell::new(false),
            here: PhantomData,
        };
        let executor = &shared.locks.executor;
        executor.seat(task).sit();
        executor.prepare();
        let cpus: Vec<usize> = shared.system.cpus_of(task).map(|cpu| shared.cpus[cpu.index()]).collect();
        // First, because the level means nothing on other processors.
        sched::set_affinity(ME, &cpus)?;
        sched::set_fifo(ME, executor.first_level(task))?;
        Ok(member)
    }
}

/// A thread that has joined a task set as a task.
#[derive(Debug)]
pub struct Member {
    shared: Arc<Shared>,
    task: TaskId,
    /// The thread's policy and CPUs from before it joined; `None` once it has left.
    before: Option<(Scheduling, Vec<usize>)>,
    /// For each resource, whether the task may read and may write it.
    declared: Vec<(bool, bool)>,
    /// The resources that the job holds, in the order of locking.
    held: RefCell<Vec<ResourceId>>,
    begun: Cell<bool>,
    /// Makes the member neither `Send` nor `Sync`: it belongs to this thread.
    here: PhantomData<*mut ()>,
}

impl Member {
    /// Returns the id of the task.
    #[must_use]
    pub fn task(&self) -> TaskId {
        self.task
    }

    /// Begins a job. Under `srp`, under `omlp` in a cluster, and under the scheduler `p-edf`, returns when the job may
    /// start. Under `p-edf` its deadline is the relative deadline of the task from now; see [`Member::begin_due`].
    ///
    /// # Errors
    /// [`TaskError::Begun`] if another job of the task has not ended; [`TaskError::Lock`].
    ///
    /// # Bound
    /// Under `srp`, one section of a less urgent task. Under `omlp` in a cluster, one request of a less urgent task,
    /// from its issue to its release. Under `p-edf`, the jobs of its CPU with earlier deadlines, one section of a job
    /// with a later one, with the spinning before it, and what the threads of the CPU execute between their jobs; a job
    /// that suspends itself keeps its place, and later jobs wait for it. Under the others, one decision.
    pub fn begin(&self) -> Result<Job<'_>, TaskError> {
        self.begin_job()?;
        Ok(Job { member: self })
    }

    /// As [`Member::begin`], for a job whose absolute deadline is `due`: the release of the job plus the relative
    /// deadline of the task. A thread that begins a job late, for example because the job before took too long, gives
    /// the job the deadline that it would have had in time. The deadline has no effect under other schedulers than
    /// `p-edf`.
    ///
    /// # Errors
    /// Those of [`Member::begin`].
    ///
    /// # Bound
    /// That of [`Member::begin`], if the job is late only because the job before it was. A job with an earlier deadline
    /// than that, or one that begins late for another reason, may also wait for a whole job with a later deadline, which
    /// had started above a section that holds this job back.
    pub fn begin_due(&self, due: Deadline) -> Result<Job<'_>, TaskError> {
        self.begin_job_due(due)?;
        Ok(Job { member: self })
    }

    /// Begins a job with this deadline by the monotonic clock.
    fn begin_at(&self, due: Instant) -> Result<(), TaskError> {
        if self.begun.get() {
            return Err(TaskError::Begun);
        }
        // If a protocol fails, others may already have counted the job.
        self.begun.set(true);
        let arrived = self.shared.locks.arrive(self.task, due);
        arrived.or_else(|error| self.end().and(Err(error)))?;
        Ok(())
    }

    /// Leaves the task set like dropping this value does, and returns the first error if that fails.
    ///
    /// # Errors
    /// [`TaskError::Machine`] if the kernel refused to restore the policy or the CPUs, which the thread then keeps;
    /// [`TaskError::Lock`] if a job was forgotten (`std::mem::forget`) and its end failed. The task is free for another
    /// thread all the same.
    ///
    /// # Examples
    /// ```no_run
    /// use lockwright::tasks::{Protocol, TaskSet};
    ///
    /// let mut builder = TaskSet::builder(Protocol::Pip);
    /// let control = builder.task("control", 0, 20, &[]);
    /// let me = builder.build()?.join(control)?;
    /// me.begin()?.end()?;
    /// me.leave()?;
    /// # Ok::<(), lockwright::tasks::TaskError>(())
    /// ```
    pub fn leave(mut self) -> Result<(), TaskError> {
        self.depart()
    }

    /// Ends the job and restores the thread, once.
    fn depart(&mut self) -> Result<(), TaskError> {
        let Some((scheduling, cpus)) = self.before.take() else { return Ok(()) };
        let ended = self.end().map_err(TaskError::from);
        let moved = sched::set_affinity(ME, &cpus);
        let scheduled = sched::set_scheduling(ME, scheduling);
        IS_MEMBER.set(false);
        // ORDERING: Release pairs with the Acquire in `TaskSet::join`.
        self.shared.taken[self.task.index()].store(false, Ordering::Release);
        ended?;
        Ok(moved.and(scheduled)?)
    }

    /// Ends sections that were forgotten, in reverse order, and then the job.
    fn end(&self) -> Result<(), ResourceError> {
        let mut result = Ok(());
        // BOUND: the number of resources held, at most NESTING_MAX.
        loop {
            let Some(resource) = self.held.borrow().last().copied() else { break };
            result = result.and(self.give_back(resource));
        }
        if self.begun.replace(false) {
            result = result.and(self.shared.locks.finish(self.task));
        }
        result
    }

    fn give_back(&self, resource: ResourceId) -> Result<(), ResourceError> {
        self.held.borrow_mut().retain(|&held| held != resource);
        self.shared.locks.unlock(self.task, resource)
    }

    /// Checks what the protocol of one resource does not check or cannot: a resource that the job already holds, two at
    /// a time without nested requests, and too many at a time.
    fn admit(&self, resource: ResourceId) -> Result<(), Refusal> {
        let held = self.held.borrow();
        if held.contains(&resource) {
            return Err(Refusal::AlreadyHeld);
        }
        let ruling = |resource| self.shared.system.protocol_of(resource, self.shared.protocol);
        // The same condition as in `System::refused_nesting`.
        if held.iter().any(|&outer| !(ruling(outer).has_nesting() && ruling(resource).has_nesting())) {
            return Err(Refusal::Nested);
        }
        if held.len() == NESTING_MAX { Err(Refusal::TooDeep) } else { Ok(()) }
    }
}

/// The reading of the monotonic clock at `due`, from the present readings of the clocks. A time that has passed keeps its
/// place before those that passed later.
fn by_monotonic_clock(due: Deadline, now: u64, time_of_day: u64) -> u64 {
    match due.clock {
        Clock::Monotonic => due.at_ns,
        Clock::Realtime if due.at_ns >= time_of_day => now.saturating_add(due.at_ns - time_of_day),
        Clock::Realtime => now.saturating_sub(time_of_day - due.at_ns),
    }
}

/// The parts of [`Job`] and [`Section`], for languages without guards. See those types for the rest of the
/// documentation.
#[doc(hidden)]
impl Member {
    /// Whether the caller is the thread that joined. A child process has a copy of that thread's memory, but is another
    /// thread.
    #[must_use]
    pub fn is_here(&self) -> bool {
        self.shared.locks.executor.seat(self.task).tid() == sched::gettid()
    }

    /// Begins a job.
    ///
    /// # Errors
    /// Those of [`Member::begin`].
    pub fn begin_job(&self) -> Result<(), TaskError> {
        let by_deadline = self.shared.system.scheduler() == Scheduler::PEdf;
        let relative = self.shared.system.task(self.task).deadline;
        let due = if by_deadline { clock::now_ns().saturating_add(relative.as_ns()) } else { 0 };
        self.begin_at(Instant::from_ns(due))
    }

    /// Begins a job with this deadline.
    ///
    /// # Errors
    /// Those of [`Member::begin_due`].
    pub fn begin_job_due(&self, due: Deadline) -> Result<(), TaskError> {
        let at_ns = by_monotonic_clock(due, clock::now_ns(), clock::time_of_day_ns());
        self.begin_at(Instant::from_ns(at_ns))
    }

    /// Ends the job.
    ///
    /// # Errors
    /// [`TaskError::NotBegun`], and those of [`Job::end`].
    pub fn end_job(&self) -> Result<(), TaskError> {
        if self.begun.get() { Ok(self.end()?) } else { Err(TaskError::NotBegun) }
    }

    /// Locks a resource to read or to write. Returns whether it was held.
    ///
    /// # Errors
    /// [`TaskError::NotBegun`], and those of [`Job::lock`].
    pub fn lock(&self, resource: ResourceId, mode: Mode) -> Result<bool, TaskError> {
        if !self.begun.get() {
            return Err(TaskError::NotBegun);
        }
        let (may_read, may_write) = self.declared.get(resource.index()).copied().unwrap_or_default();
        if !(if mode == Mode::Read { may_read } else { may_write }) {
            return Err(TaskError::NotAUser);
        }
        self.admit(resource).map_err(ResourceError::from)?;
        let waited = self.shared.locks.lock_in(mode, self.task, resource)?;
        // The vector was made with room for NESTING_MAX.
        self.held.borrow_mut().push(resource);
        Ok(waited)
    }

    /// Unlocks a resource.
    ///
    /// # Errors
    /// [`TaskError::Lock`] if the job does not hold the resource, and those of [`Section::end`].
    pub fn unlock(&self, resource: ResourceId) -> Result<(), TaskError> {
        if !self.held.borrow().contains(&resource) {
            return Err(ResourceError::from(Refusal::NotHeld).into());
        }
        Ok(self.give_back(resource)?)
    }
}

impl Drop for Member {
    /// Leaves the task set. If the kernel refuses, the thread keeps its policy or CPUs; [`Member::leave`] returns the
    /// error.
    fn drop(&mut self) {
        let _ = self.depart();
    }
}

/// A job, which ends when this value is dropped, also during a panic.
#[derive(Debug)]
#[must_use = "the job ends when this is dropped"]
pub struct Job<'a> {
    member: &'a Member,
}

impl Job<'_> {
    /// Locks a resource until the returned section is dropped.
    ///
    /// # Errors
    /// [`TaskError::NotAUser`]; [`TaskError::Lock`] if the protocol refuses or a system call failed. After an error the
    /// resource is not held.
    ///
    /// # Bound
    /// The protocol's; see its page in `docs/`.
    pub fn lock(&self, resource: ResourceId) -> Result<Section<'_>, TaskError> {
        self.lock_in(resource, Mode::Write)
    }

    /// Locks a resource to read it until the returned section is dropped. Under `phase_fair` and `task_fair`, other
    /// jobs may read it at the same time. Under every other protocol this is [`Job::lock`].
    ///
    /// A task set from a [`System`] declares which sections read; under these two protocols a job can neither read a
    /// resource that its task only writes, nor write one that it only reads, because the bounds would not hold.
    ///
    /// # Errors
    /// Those of [`Job::lock`].
    ///
    /// # Bound
    /// The protocol's; see its page in `docs/`.
    pub fn read(&self, resource: ResourceId) -> Result<Section<'_>, TaskError> {
        self.lock_in(resource, Mode::Read)
    }

    fn lock_in(&self, resource: ResourceId, mode: Mode) -> Result<Section<'_>, TaskError> {
        let waited = self.member.lock(resource, mode)?;
        Ok(Section { member: self.member, resource, waited })
    }

    /// Ends the job like dropping it does, and returns the error if that fails.
    ///
    /// # Errors
    /// [`TaskError::Lock`] if a system call failed.
    pub fn end(self) -> Result<(), TaskError> {
        let member = self.member;
        std::mem::forget(self);
        Ok(member.end()?)
    }
}

impl Drop for Job<'_> {
    fn drop(&mut self) {
        // A level that could not be set is set with the next change of the task.
        let _ = self.member.end();
    }
}

/// A critical section, which ends when this value is dropped, also during a panic. A section that is forgotten
/// (`std::mem::forget`) ends with its job.
#[derive(Debug)]
#[must_use = "the section ends when this is dropped"]
pub struct Section<'a> {
    member: &'a Member,
    resource: ResourceId,
    waited: bool,
}

impl Section<'_> {
    /// Whether the resource was held when it was requested.
    #[must_use]
    pub fn waited(&self) -> bool {
        self.waited
    }

    /// Ends the section like dropping it does, and returns the error if that fails.
    ///
    /// # Errors
    /// [`TaskError::Lock`] if a system call failed; the resource is unlocked all the same.
    pub fn end(self) -> Result<(), TaskError> {
        let (member, resource) = (self.member, self.resource);
        std::mem::forget(self);
        member.unlock(resource)
    }
}

impl Drop for Section<'_> {
    fn drop(&mut self) {
        let _ = self.member.unlock(self.resource);
    }
}

/// A builder to which tasks and resources are added one by one.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TaskSetBuilder {
    protocol: Protocol,
    resources: Vec<Resource>,
    tasks: Vec<Task>,
    /// The CPUs of each task, as a bit set.
    clusters: Vec<u64>,
    /// The first CPU number that no system has, with the error to report.
    beyond: Option<Invalid>,
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
        // Times are ignored: each section lasts a nanosecond.
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

    /// Builds the task set.
    ///
    /// # Errors
    /// [`TaskError::Invalid`] if names are not unique, a resource does not exist, or clusters overlap; those of
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
        TaskSet::new(&system, self.protocol)
    }
}

#[cfg(test)]
mod tests;
