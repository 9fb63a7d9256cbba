//! A task set: who is which task, and what its jobs hold.

use super::error::{MachineError, TaskError, check_system};
use super::lock::{Locks, ResourceError};
use super::priorities::Levels;
use lockwright_model::{
    CpuId, Duration, Invalid, MAX_CPUS, MAX_NESTING, Priority, Protocol, Resource, ResourceId, Step, Subject, System,
    Task, TaskId,
};
use lockwright_protocol::Refusal;
use lockwright_sys::sched::{self, ME, Scheduling};
use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Tasks and resources under one protocol. Cloning it makes another handle to the same.
#[derive(Clone, Debug)]
pub struct TaskSet(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    system: System,
    protocol: Protocol,
    locks: Locks,
    /// By CPU of the system: its Linux number.
    cpus: Vec<usize>,
    /// By task: whether a thread is it.
    taken: Box<[AtomicBool]>,
}

thread_local! {
    static IS_MEMBER: Cell<bool> = const { Cell::new(false) };
}

impl TaskSet {
    /// The tasks and resources of `system`; `protocol` rules those that name none. Times mean nothing here. CPU k of the system is the k-th CPU of the
    /// set the calling thread may use.
    ///
    /// # Errors
    /// [`TaskError::Machine`] where the machine has too few CPUs, or its 97 levels are too few, where the scheduler is another than `p-fp` and `c-fp`, where tasks hold two resources at a time whose protocol has no nested
    /// requests, where tasks of a cluster of CPUs use a resource that is not under `omlp`, and where a resource is under `ics` or `ics_lock`, which are no locks:
    /// [`ics`](crate::ics) has their sections.
    pub fn new(system: &System, protocol: Protocol) -> Result<Self, TaskError> {
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

    /// Tasks and resources to be said one by one.
    #[must_use]
    pub fn builder(protocol: Protocol) -> TaskSetBuilder {
        TaskSetBuilder { protocol, resources: Vec::new(), tasks: Vec::new(), clusters: Vec::new(), beyond: None }
    }

    /// The tasks and resources.
    #[must_use]
    pub fn system(&self) -> &System {
        &self.0.system
    }

    /// The task of that name.
    #[must_use]
    pub fn task(&self, name: &str) -> Option<TaskId> {
        self.0.system.task_ids().find(|&id| self.0.system.task(id).name == name)
    }

    /// The resource of that name.
    #[must_use]
    pub fn resource(&self, name: &str) -> Option<ResourceId> {
        self.0.system.resource_ids().find(|&id| self.0.system.resource(id).name == name)
    }

    /// The calling thread becomes a task, until it drops what it gets: under SCHED_FIFO, on the task's CPU. Then it has its policy and CPUs again.
    ///
    /// # Errors
    /// [`TaskError::NoTask`], [`TaskError::Taken`]; [`TaskError::Machine`] where the kernel refuses.
    pub fn join(&self, task: TaskId) -> Result<Member, TaskError> {
        let shared = &self.0;
        let taken = shared.taken.get(task.index()).ok_or(TaskError::NoTask)?;
        let before = (sched::scheduling(ME)?, sched::affinity()?);
        // ORDERING: Acquire and Release: who takes the seat next sees what the last one left there.
        if IS_MEMBER.get() || taken.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
            return Err(TaskError::Taken);
        }
        IS_MEMBER.set(true);
        // From here on its drop gives all back.
        let held = RefCell::new(Vec::with_capacity(MAX_NESTING));
        let member =
            Member { shared: Arc::clone(shared), task, before, held, begun: Cell::new(false), here: PhantomData };
        let executor = &shared.locks.executor;
        executor.seat(task).sit();
        executor.prepare();
        let own = shared.system.task(task);
        sched::set_fifo(ME, executor.level(own.priority))?;
        let cpus: Vec<usize> = shared.system.cpus_of(task).map(|cpu| shared.cpus[cpu.index()]).collect();
        sched::set_affinity(ME, &cpus)?;
        Ok(member)
    }
}

/// A thread that is a task.
#[derive(Debug)]
pub struct Member {
    shared: Arc<Shared>,
    task: TaskId,
    before: (Scheduling, Vec<usize>),
    /// What the job holds, the last one last.
    held: RefCell<Vec<ResourceId>>,
    begun: Cell<bool>,
    /// Neither `Send` nor `Sync`: it is this thread.
    here: PhantomData<*mut ()>,
}

impl Member {
    /// Which task.
    #[must_use]
    pub fn task(&self) -> TaskId {
        self.task
    }

    /// A job begins; under `srp`, and `omlp` in a cluster, when it may start.
    ///
    /// # Errors
    /// [`TaskError::Begun`] while another job of the task has not ended; [`TaskError::Lock`].
    ///
    /// # Bound
    /// Under `srp` one section of a less urgent task; under `omlp` in a cluster one request of such, from asking to giving back; under the others a decision.
    pub fn begin(&self) -> Result<Job<'_>, TaskError> {
        self.begin_job()?;
        Ok(Job { member: self })
    }

    /// Sections that were forgotten end, the last one first; then the job.
    fn end(&self) -> Result<(), ResourceError> {
        let mut result = Ok(());
        // BOUND: what is held, at most MAX_NESTING.
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

    /// What the protocols of one resource do not look at, or cannot: one of its own held twice, two at a time where there are no nested requests, too many.
    fn admit(&self, resource: ResourceId) -> Result<(), Refusal> {
        let held = self.held.borrow();
        if held.contains(&resource) {
            return Err(Refusal::AlreadyHeld);
        }
        let ruling = |resource| self.shared.system.protocol_of(resource, self.shared.protocol);
        // As `System::refused_nesting` has it.
        if held.iter().any(|&outer| !(ruling(outer).has_nesting() && ruling(resource).has_nesting())) {
            return Err(Refusal::Nested);
        }
        if held.len() == MAX_NESTING { Err(Refusal::TooDeep) } else { Ok(()) }
    }
}

/// What [`Job`] and [`Section`] are made of, for languages without guards; their documentation has the rest.
#[doc(hidden)]
impl Member {
    /// Whether the caller is the thread that joined. A child process has a copy of that thread's memory, but is another.
    #[must_use]
    pub fn is_here(&self) -> bool {
        self.shared.locks.executor.seat(self.task).tid() == sched::gettid()
    }

    /// # Errors
    /// As [`Member::begin`].
    pub fn begin_job(&self) -> Result<(), TaskError> {
        if self.begun.get() {
            return Err(TaskError::Begun);
        }
        // Some of its protocols may know of the job when another fails.
        self.begun.set(true);
        let arrived = self.shared.locks.arrive(self.task);
        arrived.or_else(|error| self.end().and(Err(error)))?;
        Ok(())
    }

    /// # Errors
    /// [`TaskError::NotBegun`]; as [`Job::end`].
    pub fn end_job(&self) -> Result<(), TaskError> {
        if self.begun.get() { Ok(self.end()?) } else { Err(TaskError::NotBegun) }
    }

    /// Says whether the resource was found taken.
    ///
    /// # Errors
    /// [`TaskError::NotBegun`]; as [`Job::lock`].
    pub fn lock(&self, resource: ResourceId) -> Result<bool, TaskError> {
        if !self.begun.get() {
            return Err(TaskError::NotBegun);
        }
        let system = &self.shared.system;
        if resource.index() >= system.resources().len() || !system.users(resource).contains(&self.task) {
            return Err(TaskError::NotAUser);
        }
        self.admit(resource).map_err(ResourceError::from)?;
        let waited = self.shared.locks.lock(self.task, resource)?;
        // It was made with room for MAX_NESTING.
        self.held.borrow_mut().push(resource);
        Ok(waited)
    }

    /// # Errors
    /// [`TaskError::Lock`] where the job does not hold the resource; as [`Section::end`].
    pub fn unlock(&self, resource: ResourceId) -> Result<(), TaskError> {
        if !self.held.borrow().contains(&resource) {
            return Err(ResourceError::from(Refusal::NotHeld).into());
        }
        Ok(self.give_back(resource)?)
    }
}

impl Drop for Member {
    /// The task has no thread any more. A refusal of the kernel leaves the thread where it was.
    fn drop(&mut self) {
        let _ = self.end();
        let (scheduling, cpus) = &self.before;
        let _ = sched::set_affinity(ME, cpus);
        let _ = sched::set_scheduling(ME, *scheduling);
        IS_MEMBER.set(false);
        // ORDERING: Release pairs with the Acquire in `TaskSet::join`.
        self.shared.taken[self.task.index()].store(false, Ordering::Release);
    }
}

/// A job, until dropped; in a panic too.
#[derive(Debug)]
#[must_use = "the job ends when this is dropped"]
pub struct Job<'a> {
    member: &'a Member,
}

impl Job<'_> {
    /// Takes a resource, and gives it back when what it returns is dropped.
    ///
    /// # Errors
    /// [`TaskError::NotAUser`]; [`TaskError::Lock`] where the protocol refuses, or a system call failed: nothing is held then.
    ///
    /// # Bound
    /// The protocol's; see its page in `docs/`.
    pub fn lock(&self, resource: ResourceId) -> Result<Section<'_>, TaskError> {
        let waited = self.member.lock(resource)?;
        Ok(Section { member: self.member, resource, waited })
    }

    /// As dropping it, and says whether it succeeded.
    ///
    /// # Errors
    /// [`TaskError::Lock`] where a system call failed.
    pub fn end(self) -> Result<(), TaskError> {
        let member = self.member;
        std::mem::forget(self);
        Ok(member.end()?)
    }
}

impl Drop for Job<'_> {
    fn drop(&mut self) {
        // What could not be told is told with the next change of the task.
        let _ = self.member.end();
    }
}

/// A critical section, until dropped; in a panic too. One that is forgotten (`std::mem::forget`) ends with its job.
#[derive(Debug)]
#[must_use = "the section ends when this is dropped"]
pub struct Section<'a> {
    member: &'a Member,
    resource: ResourceId,
    waited: bool,
}

impl Section<'_> {
    /// Whether the resource was found taken.
    #[must_use]
    pub fn waited(&self) -> bool {
        self.waited
    }

    /// As dropping it, and says whether it succeeded.
    ///
    /// # Errors
    /// [`TaskError::Lock`] where a system call failed; the resource is given back all the same.
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

/// Tasks and resources, said one by one.
#[derive(Clone, Debug)]
pub struct TaskSetBuilder {
    protocol: Protocol,
    resources: Vec<Resource>,
    tasks: Vec<Task>,
    /// By task: its CPUs, a bit each.
    clusters: Vec<u64>,
    /// The first CPU that no system has, and what is said to be there.
    beyond: Option<Invalid>,
}

impl TaskSetBuilder {
    /// A resource. Names are unique.
    pub fn resource(&mut self, name: &str) -> ResourceId {
        self.resources.push(Resource { name: name.into(), ..Resource::default() });
        // One beyond what an id can say is beyond what a task set can have, too.
        ResourceId::new((self.resources.len() - 1).min(usize::from(u16::MAX)))
    }

    /// A resource whose sections execute on `cpu` under `dpcp` and `dflp`.
    pub fn resource_at(&mut self, name: &str, cpu: u16) -> ResourceId {
        let resource = self.resource(name);
        self.resources[resource.index()].home = Some(CpuId(cpu));
        self.look_at(cpu, Subject::Resource(resource), || format!("resource `{name}` is at home on CPU {cpu}"));
        resource
    }

    /// Keeps what is wrong with a CPU that no system has.
    fn look_at(&mut self, cpu: u16, subject: Subject, message: impl FnOnce() -> String) {
        if usize::from(cpu) >= MAX_CPUS && self.beyond.is_none() {
            let help = format!("CPUs are numbered from 0, and at most {MAX_CPUS} are supported");
            self.beyond = Some(Invalid { subject, key: Some("cpu"), message: message(), help });
        }
    }

    /// A task on a CPU, counted from 0 among those the process may use; a greater priority (up to 65,535) is more urgent. `uses` is all that it ever locks.
    pub fn task(&mut self, name: &str, cpu: u16, priority: u16, uses: &[ResourceId]) -> TaskId {
        // Times mean nothing: a section of a nanosecond for each.
        let run = Duration::from_ns(1);
        let section = |&resource| [Step::Lock(resource), Step::Run(run), Step::Unlock(resource)];
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
            wcet: Duration::from_ns(1 + uses.len() as u64),
            body,
        });
        self.clusters.push(1_u64.checked_shl(u32::from(cpu)).unwrap_or(0));
        let task = TaskId::new((self.tasks.len() - 1).min(usize::from(u16::MAX)));
        self.look_at(cpu, Subject::Task(task), || format!("task `{name}` is on CPU {cpu}"));
        task
    }

    /// A task on any of these CPUs, a cluster: two tasks have all of them in common, or none. Under `omlp` alone.
    pub fn task_in_cluster(&mut self, name: &str, cpus: &[u16], priority: u16, uses: &[ResourceId]) -> TaskId {
        let first = cpus.iter().copied().min().unwrap_or(0);
        let task = self.task(name, first, priority, uses);
        for &cpu in cpus {
            self.look_at(cpu, Subject::Task(task), || format!("task `{name}` may execute on CPU {cpu}"));
        }
        // With one that no system has, it is the cluster without any, which is refused.
        let cluster = cpus.iter().try_fold(0, |set, &cpu| Some(set | 1_u64.checked_shl(u32::from(cpu))?)).unwrap_or(0);
        if let Some(own) = self.clusters.last_mut() {
            *own = cluster;
        }
        task
    }

    /// The task set.
    ///
    /// # Errors
    /// [`TaskError::Invalid`] where names are not unique, a resource does not exist, or clusters overlap; those of [`TaskSet::new`].
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
mod tests {
    use super::*;
    use crate::machine::require_realtime;
    use lockwright_model::Scheduler;
    use std::sync::atomic::AtomicU64;

    /// Two tasks on each of as many CPUs as there are, up to two, one counter.
    fn set(protocol: Protocol) -> (TaskSet, ResourceId) {
        let cpus = sched::affinity().expect("a CPU set").len().min(2) as u16;
        let mut builder = TaskSet::builder(protocol);
        let counter = builder.resource_at("counter", cpus - 1);
        for index in 0..4 {
            builder.task(&format!("t{index}"), index % cpus, 10 + index, &[counter]);
        }
        (builder.build().expect("a task set"), counter)
    }

    /// All tasks of the set lock the counter, `jobs` times each, and count: two that are inside at a time are noticed.
    fn count_together(set: &TaskSet, counter: ResourceId, jobs: u64) {
        let protocol = set.system().protocol_or_default();
        let (count, inside) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for task in set.system().task_ids() {
                let (count, inside) = (&count, &inside);
                scope.spawn(move || {
                    let me = set.join(task).expect("permission was checked");
                    for _ in 0..jobs {
                        // No thread has a CPU for itself: throttled threads would stop the others.
                        lockwright_sys::clock::sleep_until(lockwright_sys::clock::now_ns() + 20_000).expect("a sleep");
                        let job = me.begin().expect("the last one has ended");
                        let section = job.lock(counter).expect("a user");
                        assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0, "{protocol}: two are inside");
                        let seen = count.load(Ordering::Relaxed);
                        std::hint::spin_loop();
                        count.store(seen + 1, Ordering::Relaxed);
                        inside.fetch_sub(1, Ordering::Relaxed);
                        section.end().expect("it was held");
                        job.end().expect("it had begun");
                    }
                });
            }
        });
        assert_eq!(count.load(Ordering::Relaxed), set.system().tasks().len() as u64 * jobs, "{protocol}");
    }

    #[test]
    fn one_holder_at_a_time_under_every_protocol() {
        let Some(_machine) = require_realtime() else { return };
        for protocol in Protocol::ALL.into_iter().filter(|protocol| !protocol.is_interruptible()) {
            let (set, counter) = set(protocol);
            count_together(&set, counter, 300);
        }
    }

    /// Of a cluster of two CPUs: two requests at most, one owner, and nobody is forgotten.
    #[test]
    fn one_holder_at_a_time_in_a_cluster() {
        let Some(_machine) = require_realtime() else { return };
        if sched::affinity().expect("a CPU set").len() < 2 {
            return;
        }
        let mut builder = TaskSet::builder(Protocol::Omlp);
        let counter = builder.resource("counter");
        for index in 0..5 {
            builder.task_in_cluster(&format!("t{index}"), &[0, 1], 10 + index, &[counter]);
        }
        let set = builder.build().expect("a task set");
        count_together(&set, counter, 300);
        // Who is in a cluster may execute on all of it, and other protocols know none.
        let mut builder = TaskSet::builder(Protocol::Mpcp);
        let bus = builder.resource("bus");
        builder.task_in_cluster("a", &[0, 1], 1, &[bus]);
        assert!(matches!(builder.build(), Err(TaskError::Invalid(_))));
    }

    #[test]
    fn what_is_forgotten_ends_with_its_job_and_the_thread_is_as_before() {
        let Some(_machine) = require_realtime() else { return };
        let (set, counter) = set(Protocol::Dpcp);
        let before = (sched::scheduling(ME).expect("it has one"), sched::affinity().expect("a CPU set"));
        let me = set.join(TaskId(0)).expect("permission was checked");
        assert_eq!(set.join(TaskId(1)).err(), Some(TaskError::Taken), "this thread is a task already");
        let job = me.begin().expect("the first");
        assert_eq!(me.begin().err(), Some(TaskError::Begun));
        std::mem::forget(job.lock(counter).expect("a user"));
        assert_eq!(job.lock(ResourceId(7)).err(), Some(TaskError::NotAUser));
        drop(job);
        let job = me.begin().expect("the first has ended");
        assert!(!job.lock(counter).expect("it was given back").waited());
        std::mem::forget(job);
        drop(me);
        let after = (sched::scheduling(ME).expect("it has one"), sched::affinity().expect("a CPU set"));
        assert_eq!(before, after);
        assert!(set.join(TaskId(0)).is_ok(), "the task is free again");
    }

    /// Some of them are such that the lock alone would wait for ever.
    #[test]
    fn no_protocol_lets_a_job_take_what_it_holds_or_cannot_hold() {
        let Some(_machine) = require_realtime() else { return };
        let refused = |refusal| Some(TaskError::Lock(ResourceError::from(refusal)));
        let cpus = sched::affinity().expect("a CPU set").len().min(2) as u16;
        for protocol in Protocol::ALL.into_iter().filter(|protocol| !protocol.is_interruptible()) {
            let mut builder = TaskSet::builder(protocol);
            let ids: Vec<_> = (0..=MAX_NESTING).map(|index| builder.resource(&format!("r{index}"))).collect();
            let task = builder.task("a", 0, 10, &ids);
            // On another CPU, if there is one: otherwise all are under `icpp` where the protocol is for several.
            builder.task("b", cpus - 1, 20, &ids);
            let set = builder.build().expect("a task set");
            let nests = set.system().protocol_of(ids[0], protocol).has_nesting();
            let me = set.join(task).expect("permission was checked");
            assert_eq!(me.lock(ids[0]).err(), Some(TaskError::NotBegun), "{protocol}");
            assert_eq!(me.end_job().err(), Some(TaskError::NotBegun), "{protocol}");
            let job = me.begin().expect("the first");
            assert_eq!(me.unlock(ids[0]).err(), refused(Refusal::NotHeld), "{protocol}");
            let first = job.lock(ids[0]).expect("a user");
            assert_eq!(job.lock(ids[0]).err(), refused(Refusal::AlreadyHeld), "{protocol}");
            if nests {
                let sections: Vec<_> = ids[1..MAX_NESTING].iter().map(|&id| job.lock(id)).collect();
                assert!(sections.iter().all(Result::is_ok), "{protocol}: {sections:?}");
                assert_eq!(job.lock(ids[MAX_NESTING]).err(), refused(Refusal::TooDeep), "{protocol}");
                // The last one first.
                sections.into_iter().rev().for_each(drop);
            } else {
                assert_eq!(job.lock(ids[1]).err(), refused(Refusal::Nested), "{protocol}");
            }
            first.end().expect("it was held");
            job.lock(ids[1]).expect("nothing is held").end().expect("it was held");
            job.end().expect("it had begun");
        }
    }

    #[test]
    fn interruptible_sections_are_refused_and_it_is_said_where_they_are() {
        for protocol in [Protocol::Ics, Protocol::IcsLock] {
            let mut builder = TaskSet::builder(protocol);
            let bus = builder.resource("bus");
            builder.task("a", 0, 1, &[bus]);
            let error = builder.build().expect_err("no lock");
            assert_eq!(error, TaskError::Machine(MachineError::Interruptible { resource: bus }));
            let text = error.to_string();
            assert!(text.contains("lockwright::ics") && text.contains("lw_ics_"), "{text}");
        }
    }

    #[test]
    fn other_schedulers_are_refused() {
        let (set, _) = set(Protocol::Icpp);
        for scheduler in Scheduler::ALL {
            let known = matches!(scheduler, Scheduler::PFp | Scheduler::CFp);
            let system = set.system().clone().under(scheduler);
            let error = TaskSet::new(&system, Protocol::Icpp).err();
            let refused = error == Some(TaskError::Machine(MachineError::Scheduler(scheduler)));
            assert_eq!(refused, !known, "{scheduler}: {error:?}");
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let mut builder = TaskSet::builder(Protocol::Mpcp);
        builder.task("a", 0, 1, &[ResourceId(3)]);
        assert!(matches!(builder.build(), Err(TaskError::Invalid(_))));
        let mut builder = TaskSet::builder(Protocol::Mpcp);
        builder.task("a", 4_000, 1, &[]);
        assert!(matches!(builder.build(), Err(TaskError::Invalid(_))));
        let (set, _) = set(Protocol::Mpcp);
        assert_eq!(set.join(TaskId(9)).err(), Some(TaskError::NoTask));
        assert_eq!(
            (set.task("t3"), set.resource("counter"), set.task("x")),
            (Some(TaskId(3)), Some(ResourceId(0)), None)
        );
    }
}
