//! Task sets: the thread of each task, and the resources that its jobs hold.

use super::counters::{Counters, NOBODY};
use super::error::{MachineError, TaskError, check_isolation, check_scheduler, check_system};
use super::executor::Waited;
use super::lock::{Locks, ResourceError};
use super::priorities::Levels;
use super::statistics::Statistics;
use super::trace::{Note, TRACE_EVENTS_MAX, Trace, Traces};
use crate::levels::SECTION_LEVEL;
use lockwright_model::{Duration, Instant, Mode, NESTING_MAX, Protocol, ResourceId, Scheduler, System, TaskId};
use lockwright_protocol::Refusal;
use lockwright_sys::clock;
use lockwright_sys::futex::{Clock, Deadline};
use lockwright_sys::sched::{self, ME, Scheduling};
use std::cell::{Cell, RefCell};
use std::collections::TryReserveError;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

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
    /// For each task, whether its deadline is that of the program. A builder makes up those that it is not given.
    has_deadline: Vec<bool>,
    /// The counters of the jobs, from the first request for them on.
    counters: OnceLock<Counters>,
    /// The events of the jobs, from the first request for them on.
    traces: OnceLock<Traces>,
}

impl Shared {
    /// Whether a job that requests the locked resource is not told to wait: it goes to the home of the resource, where
    /// it executes only when the section has ended.
    fn waits_for_home(&self, resource: ResourceId) -> bool {
        matches!(self.system.protocol_of(resource, self.protocol), Protocol::Dpcp | Protocol::Dflp)
    }

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
    /// Creates the task set of `system`. `protocol` applies to resources that name none. The locks use no times of
    /// `system` except relative deadlines under `p-edf`; there, resources are under `srp` and `msrp`, or across CPUs
    /// under `fmlp_long` if that is named. CPU k of the system is the k-th CPU of the set that the calling thread may
    /// use.
    ///
    /// # Errors
    /// [`TaskError::Machine`] if:
    ///
    /// - the machine has too few CPUs, or its 97 levels are too few;
    /// - tasks share CPUs of which only some are isolated;
    /// - the scheduler is not `p-fp`, `p-edf` or `c-fp`;
    /// - a task holds two resources at a time whose protocol has no nested requests;
    /// - tasks of a cluster of CPUs use a resource that is not under `omlp`;
    /// - a resource is under `ics` or `ics_lock`, which are not locks: see [`ics`](crate::ics) for their sections; or
    ///   under `lock_free` or `wait_free`: see [`objects`](crate::objects).
    pub fn new(system: &System, protocol: Protocol) -> Result<Self, TaskError> {
        Self::with_deadlines(system, protocol, vec![true; system.tasks().len()])
    }

    pub(super) fn with_deadlines(
        system: &System,
        protocol: Protocol,
        has_deadline: Vec<bool>,
    ) -> Result<Self, TaskError> {
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
        check_isolation(system, &cpus, sched::isolated)?;
        let levels = Levels::of(system, protocol, &[]);
        let levels = levels.map_err(|too_many| MachineError::TooManyPriorities { needed: too_many.0 })?;
        let locks = Locks::new(system, protocol, levels, &cpus);
        let taken = system.tasks().iter().map(|_| AtomicBool::new(false)).collect();
        let (system, counters, traces) = (system.clone(), OnceLock::new(), OnceLock::new());
        Ok(Self(Arc::new(Shared { system, protocol, locks, cpus, taken, has_deadline, counters, traces })))
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

    /// Begins to count what jobs do, from the next job of each task on: their response times, deadline misses, waits
    /// for resources, and the lengths of their sections. Allocates memory, so call it before the tasks begin. Until
    /// then nothing is counted, and a job reads no clock for it.
    ///
    /// A job then reads the clock when it begins and when it ends, before and after each lock, and before each unlock.
    ///
    /// Other processes may read the statistics meanwhile ([`Statistics::of_process`], `lockwright watch`), for which
    /// this process keeps one more descriptor open. A child process of `fork` that executes jobs of this task set
    /// counts into the statistics of its parent.
    pub fn measure(&self) {
        self.counters();
    }

    fn counters(&self) -> &Counters {
        let shared = &self.0;
        shared.counters.get_or_init(|| Counters::new(&shared.system, &shared.has_deadline))
    }

    /// Sets a bound on the response times of a task, such as `lockwright check` computes, and begins to count, as
    /// [`TaskSet::measure`] does. [`TaskStatistics::above_bound`](super::TaskStatistics::above_bound) counts the jobs
    /// that exceed it.
    ///
    /// # Errors
    /// [`TaskError::NoTask`].
    pub fn set_bound(&self, task: TaskId, bound: Duration) -> Result<(), TaskError> {
        if task.index() >= self.0.system.tasks().len() {
            return Err(TaskError::NoTask);
        }
        self.counters().set_bound(task, bound);
        Ok(())
    }

    /// Returns what the jobs did since [`TaskSet::measure`], or `None` before. Tasks may execute meanwhile; a job that
    /// ends during the call may be counted in some values and not in others.
    ///
    /// The response time of a job counts from its release if the job began with [`Member::begin_due`]: its deadline
    /// minus the relative deadline of the task. Otherwise it counts from the call of [`Member::begin`]; the time that
    /// the thread needed to wake up is then missing. Tasks of a builder have the deadlines of
    /// [`TaskSetBuilder::deadline`](super::TaskSetBuilder::deadline). Without one, no job misses its deadline, and each
    /// job counts from its begin.
    #[must_use]
    pub fn statistics(&self) -> Option<Statistics> {
        self.0.counters.get()?.read()
    }

    /// Begins to trace what jobs do, from the next job of each task on: releases, starts, requests, locks, unlocks and
    /// ends. Allocates room for `events` events of each task, 16 bytes each, so call it before the tasks begin. Until
    /// then nothing is traced, and a job reads no clock for it. Later calls do nothing.
    ///
    /// A job has three events and each of its sections three more. Once the room of a task is full, its further events
    /// are counted and dropped. A traced job reads the clock as a [counted](TaskSet::measure) one does; if it is also
    /// counted, it reads the clock once for both.
    ///
    /// # Errors
    /// There is not enough memory.
    ///
    /// # Panics
    /// Panics if `events` is more than [`TRACE_EVENTS_MAX`].
    ///
    /// # Examples
    /// ```no_run
    /// use lockwright::tasks::{Protocol, TaskSet};
    ///
    /// let mut builder = TaskSet::builder(Protocol::Pip);
    /// let control = builder.task("control", 0, 20, &[]);
    /// let set = builder.build()?;
    /// set.trace(10_000).expect("there is memory");
    /// // The thread of the task would do this:
    /// set.join(control)?.begin()?.end()?;
    /// let trace = set.traced().expect("it is traced");
    /// assert_eq!((trace.records.len(), trace.dropped), (4, 0));
    /// # Ok::<(), lockwright::tasks::TaskError>(())
    /// ```
    pub fn trace(&self, events: usize) -> Result<(), TryReserveError> {
        assert!(events <= TRACE_EVENTS_MAX, "a task has at most {TRACE_EVENTS_MAX} events");
        if self.0.traces.get().is_none() {
            // Another thread may have been faster; its lists stay.
            let _ = self.0.traces.set(Traces::new(self.0.system.tasks().len(), events)?);
        }
        Ok(())
    }

    /// Returns what the jobs did since [`TaskSet::trace`], or `None` before. Tasks may execute meanwhile. Allocates
    /// memory, so do not call it in a job.
    #[must_use]
    pub fn traced(&self) -> Option<Trace> {
        self.0.traces.get().map(Traces::read)
    }

    /// Returns the relative deadline of a task, if the program or the file gave it one.
    #[must_use]
    pub fn deadline(&self, task: TaskId) -> Option<Duration> {
        let has_deadline = self.0.has_deadline.get(task.index()).copied().unwrap_or(false);
        has_deadline.then(|| self.0.system.task(task).deadline)
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
            measured: Cell::new(None),
            here: PhantomData,
        };
        let executor = &shared.locks.executor;
        executor.seat(task).sit();
        executor.prepare();
        let cpus: Vec<usize> = shared.system.cpus_of(task).map(|cpu| shared.cpus[cpu.index()]).collect();
        // The order matters: below a busy real-time thread on its present processor or on that of the task, the thread
        // might never reach the last call.
        sched::set_fifo(ME, SECTION_LEVEL)?;
        sched::set_affinity(ME, &cpus)?;
        executor.take_level(task)?;
        Ok(member)
    }
}

/// A resource that a job holds.
#[derive(Clone, Copy, Debug)]
struct Held {
    resource: ResourceId,
    /// When it was locked, if the job is counted or traced.
    since_ns: u64,
}

/// The times of a job that is counted or traced, by the monotonic clock.
#[derive(Clone, Copy, Debug)]
struct Measured {
    /// The release, from which the response time counts.
    release_ns: u64,
    /// The absolute deadline, if the program named it.
    due_ns: Option<u64>,
    is_counted: bool,
    is_traced: bool,
}

/// A thread that has joined a task set as a task.
///
/// A child process of `fork` has copies of this value, of its job and of its sections, but is no task: what they do in
/// the parent fails with [`TaskError::InChild`], and dropping them leaves the parent as it is. The thread of the child
/// keeps the policy, the level and the CPUs of its parent's thread. Once its copy is dropped, it may join a task set
/// that the child creates. In the child's copy of the parent's set, jobs and owners of the parent never end, so a task
/// may wait for ever.
#[derive(Debug)]
pub struct Member {
    shared: Arc<Shared>,
    task: TaskId,
    /// The thread's policy and CPUs from before it joined; `None` once it has left.
    before: Option<(Scheduling, Vec<usize>)>,
    /// For each resource, whether the task may read and may write it.
    declared: Vec<(bool, bool)>,
    /// The resources that the job holds, in the order of locking.
    held: RefCell<Vec<Held>>,
    begun: Cell<bool>,
    /// The times of the job, if it is counted or traced.
    measured: Cell<Option<Measured>>,
    /// Makes the member neither `Send` nor `Sync`: it belongs to this thread.
    here: PhantomData<*mut ()>,
}

impl Member {
    /// Returns the id of the task.
    #[must_use]
    pub fn task(&self) -> TaskId {
        self.task
    }

    /// Fails in a child process of `fork`, which has a copy of this value, but not the thread that joined. The locks
    /// and the thread of the original belong to the parent.
    fn check_process(&self) -> Result<(), TaskError> {
        let is_here = self.shared.locks.executor.seat(self.task).is_of_this_process();
        if is_here { Ok(()) } else { Err(TaskError::InChild) }
    }

    /// Begins a job with this deadline by the monotonic clock.
    fn begin_at(&self, due: Instant, measured: Option<Measured>) -> Result<(), TaskError> {
        self.check_process()?;
        if self.begun.get() {
            return Err(TaskError::Begun);
        }
        self.measured.set(measured);
        if let (Some(counters), Some(job)) = (self.counted(), measured) {
            counters.begin(self.task, self.shared.locks.executor.seat(self.task).tid().0, job.release_ns);
        }
        // If a protocol fails, others may already have counted the job.
        self.begun.set(true);
        let arrived = self.shared.locks.arrive(self.task, due);
        arrived.or_else(|error| {
            if let Some(counters) = self.counted() {
                counters.cancel(self.task);
            }
            self.measured.set(None);
            self.end_here().and(Err(error))
        })?;
        if let (Some(_), Some(job)) = (self.traced(), measured) {
            let now_ns = clock::now_ns();
            // A job may begin before its release; its events are in the order of time all the same.
            self.note(Note::Release, job.release_ns.clamp(1, now_ns));
            self.note(Note::Start, now_ns);
        }
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

    /// Ends the job and restores the thread, once. In a child process, only forgets that the thread was a task.
    fn depart(&mut self) -> Result<(), TaskError> {
        let Some((scheduling, cpus)) = self.before.take() else { return Ok(()) };
        if let Err(error) = self.check_process() {
            IS_MEMBER.set(false);
            return Err(error);
        }
        let ended = self.end_here().map_err(TaskError::from);
        self.shared.locks.executor.depart(self.task);
        let moved = sched::set_affinity(ME, &cpus);
        let scheduled = sched::set_scheduling(ME, scheduling);
        IS_MEMBER.set(false);
        // ORDERING: Release pairs with the Acquire in `TaskSet::join`.
        self.shared.taken[self.task.index()].store(false, Ordering::Release);
        ended?;
        Ok(moved.and(scheduled)?)
    }

    /// Ends sections that were forgotten, in reverse order, and then the job.
    pub(super) fn end(&self) -> Result<(), TaskError> {
        self.check_process()?;
        Ok(self.end_here()?)
    }

    fn end_here(&self) -> Result<(), ResourceError> {
        let mut result = Ok(());
        // BOUND: the number of resources held, at most NESTING_MAX.
        loop {
            let Some(held) = self.held.borrow().last().copied() else { break };
            result = result.and(self.give_back(held));
        }
        if self.begun.replace(false) {
            self.count_job();
            result = result.and(self.shared.locks.finish(self.task));
        }
        result
    }

    fn give_back(&self, Held { resource, since_ns }: Held) -> Result<(), ResourceError> {
        self.held.borrow_mut().retain(|held| held.resource != resource);
        if self.measured.get().is_some() {
            let now = clock::now_ns();
            self.note(Note::Unlock(resource), now);
            if let Some(counters) = self.counted() {
                counters.unlocking(self.task, resource, now.saturating_sub(since_ns));
            }
        }
        self.shared.locks.unlock(self.task, resource)
    }

    /// The counters, if the present job is counted.
    #[inline]
    fn counted(&self) -> Option<&Counters> {
        self.measured.get().filter(|job| job.is_counted).and_then(|_| self.shared.counters.get())
    }

    /// The lists of events, if the present job is traced.
    #[inline]
    fn traced(&self) -> Option<&Traces> {
        self.measured.get().filter(|job| job.is_traced).and_then(|_| self.shared.traces.get())
    }

    fn note(&self, note: Note, at_ns: u64) {
        if let Some(traces) = self.traced() {
            traces.write(self.task, note, at_ns);
        }
    }

    /// Counts the job, which ends now.
    fn count_job(&self) {
        let Some(Measured { release_ns, due_ns, .. }) = self.measured.get() else { return };
        let now = clock::now_ns();
        self.note(Note::End, now);
        if let Some(counters) = self.counted() {
            counters.finish(self.task, now.saturating_sub(release_ns), due_ns.map(|due| now > due));
        }
        self.measured.set(None);
    }

    /// The times of a job that begins now, if it is counted or traced.
    fn measure(&self, release_ns: u64, due_ns: Option<u64>) -> Option<Measured> {
        let shared = &self.shared;
        let (is_counted, is_traced) = (shared.counters.get().is_some(), shared.traces.get().is_some());
        (is_counted || is_traced).then_some(Measured { release_ns, due_ns, is_counted, is_traced })
    }

    /// Checks what the protocol of one resource does not check or cannot: a resource that the job already holds, two at
    /// a time without nested requests, and too many at a time.
    fn admit(&self, resource: ResourceId) -> Result<(), Refusal> {
        let held = self.held.borrow();
        if held.iter().any(|held| held.resource == resource) {
            return Err(Refusal::AlreadyHeld);
        }
        let ruling = |resource| self.shared.system.protocol_of(resource, self.shared.protocol);
        // The same condition as in `System::refused_nesting`.
        if held.iter().any(|outer| !(ruling(outer.resource).has_nesting() && ruling(resource).has_nesting())) {
            return Err(Refusal::Nested);
        }
        if held.len() == NESTING_MAX { Err(Refusal::TooDeep) } else { Ok(()) }
    }
}

/// The reading of the monotonic clock at `due`, from the present readings of the clocks. A time that has passed keeps
/// its place before those that passed later.
fn by_monotonic_clock(due: Deadline, now: u64, time_of_day: u64) -> u64 {
    match due.clock {
        Clock::Monotonic => due.at_ns,
        Clock::Realtime if due.at_ns >= time_of_day => now.saturating_add(due.at_ns - time_of_day),
        Clock::Realtime => now.saturating_sub(time_of_day - due.at_ns),
    }
}

/// The parts of [`Job`](super::Job) and [`Section`](super::Section), for languages without guards. See those types for
/// the rest of the documentation.
#[doc(hidden)]
impl Member {
    /// Begins a job.
    ///
    /// # Errors
    /// Those of [`Member::begin`].
    pub fn begin_job(&self) -> Result<(), TaskError> {
        let by_deadline = self.shared.system.scheduler() == Scheduler::PEdf;
        let measured = self.measure(0, None);
        let now = if by_deadline || measured.is_some() { clock::now_ns() } else { 0 };
        let relative = self.shared.system.task(self.task).deadline;
        let measured = measured.map(|job| Measured { release_ns: now, ..job });
        self.begin_at(Instant::from_ns(now.saturating_add(relative.as_ns())), measured)
    }

    /// Begins a job with this deadline.
    ///
    /// # Errors
    /// Those of [`Member::begin_due`].
    pub fn begin_job_due(&self, due: Deadline) -> Result<(), TaskError> {
        let now = clock::now_ns();
        let at_ns = by_monotonic_clock(due, now, clock::time_of_day_ns());
        let relative = self.shared.system.task(self.task).deadline.as_ns();
        let measured = match self.shared.has_deadline[self.task.index()] {
            true => self.measure(at_ns.saturating_sub(relative), Some(at_ns)),
            false => self.measure(now, None),
        };
        self.begin_at(Instant::from_ns(at_ns), measured)
    }

    /// Ends the job.
    ///
    /// # Errors
    /// [`TaskError::NotBegun`], and those of [`Job::end`](super::Job::end).
    pub fn end_job(&self) -> Result<(), TaskError> {
        if self.begun.get() { self.end() } else { Err(TaskError::NotBegun) }
    }

    /// Locks a resource to read or to write. Returns whether it was held.
    ///
    /// # Errors
    /// [`TaskError::NotBegun`], and those of [`Job::lock`](super::Job::lock).
    pub fn lock(&self, resource: ResourceId, mode: Mode) -> Result<bool, TaskError> {
        self.check_process()?;
        if !self.begun.get() {
            return Err(TaskError::NotBegun);
        }
        let (may_read, may_write) = self.declared.get(resource.index()).copied().unwrap_or_default();
        if !(if mode == Mode::Read { may_read } else { may_write }) {
            return Err(TaskError::NotAUser);
        }
        self.admit(resource).map_err(ResourceError::from)?;
        if self.measured.get().is_some() {
            return self.lock_measured(resource, mode);
        }
        let waited = self.shared.locks.lock_in(mode, self.task, resource)?;
        self.hold(resource, 0);
        Ok(waited != Waited::No)
    }

    /// Locks a resource in a job that is counted or traced.
    fn lock_measured(&self, resource: ResourceId, mode: Mode) -> Result<bool, TaskError> {
        let counters = self.counted();
        let (holder, asked) = (counters.map(|counters| counters.holder(resource)), clock::now_ns());
        self.note(Note::Request(resource), asked);
        if let Some(counters) = counters {
            counters.asks(self.task, resource, asked);
        }
        let locked = self.shared.locks.lock_in(mode, self.task, resource).map(|waited| waited != Waited::No);
        let now = clock::now_ns();
        let is_held = holder.is_some_and(|holder| holder != NOBODY);
        let found_locked = |waited| waited || is_held && self.shared.waits_for_home(resource);
        self.note(
            match locked {
                Ok(waited) if found_locked(waited) => Note::LockAfterWait(resource),
                Ok(_) => Note::Lock(resource),
                Err(_) => Note::Refused,
            },
            now,
        );
        if let Some(counters) = counters {
            counters.asked(self.task);
        }
        let waited = locked?;
        if let (Some(counters), Some(holder)) = (counters, holder) {
            let wait_ns = found_locked(waited).then(|| now.saturating_sub(asked));
            counters.locked(self.task, resource, now, holder, wait_ns);
        }
        self.hold(resource, now);
        Ok(waited)
    }

    /// Unlocks a resource.
    ///
    /// # Errors
    /// [`TaskError::Lock`] if the job does not hold the resource, and those of [`Section::end`](super::Section::end).
    pub fn unlock(&self, resource: ResourceId) -> Result<(), TaskError> {
        self.check_process()?;
        let held = self.held.borrow().iter().find(|held| held.resource == resource).copied();
        let held = held.ok_or_else(|| ResourceError::from(Refusal::NotHeld))?;
        Ok(self.give_back(held)?)
    }

    fn hold(&self, resource: ResourceId, since_ns: u64) {
        // The vector was made with room for NESTING_MAX.
        self.held.borrow_mut().push(Held { resource, since_ns });
    }
}

impl Drop for Member {
    /// Leaves the task set. If the kernel refuses, the thread keeps its policy or CPUs; [`Member::leave`] returns the
    /// error.
    fn drop(&mut self) {
        let _ = self.depart();
    }
}

#[cfg(test)]
mod tests;
