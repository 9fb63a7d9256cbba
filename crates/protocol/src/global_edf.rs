//! The scheduler of `g-edf` with locks, and of `p-edf` with long ones: it decides for all processors. Resources are
//! under the short FMLP (not preempted, spins) or the long FMLP (suspends). Under `g-edf`, an owner of a long resource
//! inherits deadlines; under `p-edf` it is before all jobs of its processor, and resources of one processor are under
//! the stack resource policy.
//!
//! ```text
//!   arrive    link; -> task, running or preempted
//!   finish    link others; -> task, arriving
//!   request   not executing: block until it executes, then again
//!             short: not preempted any more; free: grant, else: queue, spin
//!             long:  free: grant;  else: queue, owner inherits, link others, block
//!             of one processor: grant
//!   release   first waiter w: grant w, wake w if it is blocked;  link;  -> task
//! ```
//!
//! # Global
//!
//! The jobs that are *pending* have arrived, have not ended, and do not wait for a resource under the long FMLP. The m
//! most urgent ones are *linked* to one place each; a place stands for a processor, whichever it is. A linked job
//! executes at its place, unless a job there is not preempted: then it waits for that one, and the other places
//! continue. A job that becomes pending takes the place of the least urgent linked job, and a place that becomes free
//! goes to the most urgent job that has none. So a job waits at most once for one that is not preempted: when it
//! arrives, or resumes.
//!
//! A job is as urgent as its deadline. An owner under the long FMLP is at least as urgent as its most urgent waiter. If
//! deadlines are equal, the task with the lower id goes first, as in the simulator.
//!
//! # Partitioned
//!
//! The place of a job is that of its own processor. It is linked to the first of these:
//!
//! 1. An owner under the long FMLP. Of several, the one whose request was made first, even if another one has begun.
//!    So whatever delays a request that waits was requested before it.
//! 2. A job in a section on a resource of the processor, if its ceiling is at least the preemption level of a job whose
//!    deadline is not later than that of 3. Of several such owners, this is the one with the highest ceiling.
//! 3. The pending job with the earliest deadline.
//!
//! The jobs of 2 include those that wait. So no job starts a section, in the time in which another one waits, that
//! could delay that one twice, and a job finds each resource of its processor free. Without jobs that wait this is the
//! stack resource policy.
//!
//! # Priorities
//!
//! There are only three, because either the kernel decides which processor executes a job, or each job has its own:
//!
//! | priority | tasks |
//! |---|---|
//! | [`GlobalEdf::PREEMPTED`] | pending jobs that do not execute |
//! | [`GlobalEdf::RUNNING`] | jobs that execute and can be preempted; at most m |
//! | [`GlobalEdf::ARRIVING`] | jobs that are not preempted, tasks without a job, and tasks that are blocked: all of these decide, or fall asleep, before they get another priority |
//!
//! While a thread that executes gives its processor away for a moment, for example because it waits for the guard of
//! this machine, a preempted job may execute there. If it makes a request, it is blocked until it has a place: so at
//! most m jobs are not preempted, and each of them has a processor.

use crate::parts::request_order::RequestOrder;
use crate::parts::single::{Single, Stand};
use crate::{Action, DEFAULT_RESOURCES, DEFAULT_TASKS, Machine, Refusal, Srp};
use lockwright_model::{CPUS_MAX, CpuId, Instant, Priority, ResourceId, TaskId};

/// The lock of a resource.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum EdfLock {
    /// The short FMLP.
    Short,
    /// The long FMLP.
    Long,
    /// The stack resource policy, for a resource of one processor with this ceiling. Only if each task has a processor.
    Local(Priority),
}

/// Earliest deadline first on all processors, with both locks of the FMLP.
///
/// # Bound
/// A decision takes a few steps for each pair of a task and a processor, and changes the priorities of a few other
/// tasks: at most two jobs become, and two cease to be, among the m most urgent. If each task has a processor, a
/// release changes the priorities of tasks of two of them, and any other event those of one.
///
/// # Reference
/// A. Block, H. Leontyev, B. Brandenburg, J. Anderson, "A flexible real-time locking protocol for multiprocessors",
/// RTCSA 2007.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct GlobalEdf<const TASKS: usize = DEFAULT_TASKS, const RESOURCES: usize = DEFAULT_RESOURCES> {
    single: Single<TASKS, RESOURCES>,
    /// By resource.
    locks: [EdfLock; RESOURCES],
    /// Resources of one processor.
    locals: Srp<TASKS, RESOURCES>,
    /// The requests for long resources, if each task has a processor.
    order: RequestOrder<TASKS>,
    is_partitioned: bool,
    jobs: [Option<Job>; TASKS],
    places: [Place; CPUS_MAX],
    processors: usize,
    tasks: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Job {
    due: Instant,
    /// The job was blocked at a request because it did not execute, and has been woken to make it.
    is_woken: bool,
}

/// A processor, whichever it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Place {
    linked: Option<TaskId>,
    /// The job that executes: the linked one, or one that is not preempted and for which the linked one waits.
    runs: Option<TaskId>,
}

impl<const TASKS: usize, const RESOURCES: usize> GlobalEdf<TASKS, RESOURCES> {
    /// The priority of a pending job that does not execute.
    pub const PREEMPTED: Priority = Priority::base(1);
    /// The priority of a job that executes and can be preempted.
    pub const RUNNING: Priority = Priority::base(2);
    /// The priority of a task that decides, or is not preempted.
    pub const ARRIVING: Priority = Priority::NON_PREEMPTIVE;

    /// There are no jobs, and all resources are free. Each job may execute on each of the processors, of which there
    /// are at most [`CPUS_MAX`]. `locks[r]` is the lock of resource `r`. Other tasks and resources are refused.
    #[must_use]
    pub fn new(tasks: usize, locks: &[EdfLock], processors: usize) -> Self {
        let all = [(Priority::MIN, CpuId(0)); TASKS];
        Self::build(&all[..tasks.min(TASKS)], locks, processors, false)
    }

    /// As [`GlobalEdf::new`], but jobs execute on the processors of their tasks: `tasks[t]` is the preemption level and
    /// the processor of task `t`.
    #[must_use]
    pub fn partitioned(tasks: &[(Priority, CpuId)], locks: &[EdfLock], processors: usize) -> Self {
        Self::build(tasks, locks, processors, true)
    }

    fn build(tasks: &[(Priority, CpuId)], locks: &[EdfLock], processors: usize, is_partitioned: bool) -> Self {
        let mut all = [(Self::ARRIVING, CpuId(0)); TASKS];
        all.iter_mut().zip(tasks).for_each(|(own, &(_, cpu))| own.1 = cpu);
        let (mut own_locks, mut ceilings) = ([EdfLock::Long; RESOURCES], [Priority::MIN; RESOURCES]);
        for (place, &lock) in locks.iter().enumerate().take(RESOURCES) {
            own_locks[place] = lock;
            if let EdfLock::Local(ceiling) = lock {
                ceilings[place] = ceiling;
            }
        }
        let count = tasks.len().min(TASKS);
        Self {
            single: Single::new(&all[..count], locks.len()),
            locks: own_locks,
            locals: Srp::new(tasks, &ceilings[..locks.len().min(RESOURCES)]),
            order: RequestOrder::new(count),
            is_partitioned,
            jobs: [None; TASKS],
            places: [Place { linked: None, runs: None }; CPUS_MAX],
            processors: processors.clamp(1, CPUS_MAX),
            tasks: count,
        }
    }

    /// Returns the owner of a resource.
    #[must_use]
    pub fn owner(&self, resource: ResourceId) -> Option<TaskId> {
        self.single.owner(resource).or(self.locals.owner(resource))
    }

    fn is_short(&self, resource: ResourceId) -> bool {
        self.locks[resource.index()] == EdfLock::Short
    }

    fn is_local(&self, resource: ResourceId) -> bool {
        self.locks.get(resource.index()).is_some_and(|lock| matches!(lock, EdfLock::Local(_)))
    }

    fn holds_local(&self, task: TaskId) -> bool {
        self.locals.top(task).is_some()
    }

    fn is_pending(&self, task: TaskId) -> bool {
        let is_blocked = matches!(self.single.stand(task), Stand::Waits(resource) if !self.is_short(resource));
        self.jobs[task.index()].is_some() && !is_blocked
    }

    fn is_not_preempted(&self, task: TaskId) -> bool {
        matches!(self.single.stand(task), Stand::Waits(resource) | Stand::Holds(resource) if self.is_short(resource))
    }

    fn places(&self) -> &[Place] {
        &self.places[..self.processors]
    }

    fn runs(&self, task: TaskId) -> bool {
        self.places().iter().any(|place| place.runs == Some(task))
    }

    fn is_linked(&self, task: TaskId) -> bool {
        self.places().iter().any(|place| place.linked == Some(task))
    }

    /// The order of jobs by their own deadlines.
    fn own_key(&self, task: TaskId) -> (Instant, TaskId) {
        (self.jobs[task.index()].map_or(Instant::from_ns(u64::MAX), |job| job.due), task)
    }

    /// The order of jobs: an owner inherits from its waiters, if these are blocked.
    ///
    /// BOUND: a step for each waiter.
    fn key(&self, task: TaskId) -> (Instant, TaskId) {
        let own = self.own_key(task);
        match self.single.stand(task) {
            Stand::Holds(resource) if !self.is_short(resource) => {
                self.single.waiters(resource).map(|waiter| self.own_key(waiter)).fold(own, Ord::min)
            }
            _ => own,
        }
    }

    /// Links the places to the most urgent jobs, and lets each linked job execute if its place can be preempted.
    ///
    /// BOUND: each round links one of the m most urgent jobs in place of one that is none of them. An event changes the
    /// urgency of at most two jobs, so there are at most two rounds. A round takes a step for each pair of a task and a
    /// place, and one for each waiter.
    fn link_all(&mut self) {
        for place in 0..self.processors {
            let Place { linked, runs } = self.places[place];
            let pending = |task: &TaskId| self.is_pending(*task);
            self.places[place] = Place { linked: linked.filter(pending), runs: runs.filter(pending) };
        }
        if self.is_partitioned {
            for place in 0..self.processors {
                self.places[place].linked = self.first_on(place);
            }
        } else {
            while let Some(task) = self.first_unlinked() {
                let Some(place) = self.place_for(task) else { break };
                self.link(task, place);
            }
        }
        for place in 0..self.processors {
            let Place { linked, runs } = self.places[place];
            if linked.is_some() && runs.is_none_or(|task| !self.is_not_preempted(task)) {
                self.places[place].runs = linked;
            }
        }
    }

    /// The job to which the place of a processor is linked, if each task has a processor.
    ///
    /// BOUND: a few steps for each task.
    fn first_on(&self, place: usize) -> Option<TaskId> {
        let here = (0..self.tasks).map(TaskId::new).filter(|&task| self.single.own_cpu(task).index() == place);
        let here = here.filter(|task| self.jobs[task.index()].is_some());
        let owns_long = |task: &TaskId| matches!(self.single.stand(*task), Stand::Holds(on) if !self.is_short(on));
        if let Some(owner) = here.clone().filter(owns_long).max_by_key(|&task| self.order.priority(task)) {
            return Some(owner);
        }
        let first = here.clone().filter(|&task| self.is_pending(task)).min_by_key(|&task| self.own_key(task))?;
        let top = here.clone().max_by_key(|&task| self.locals.top(task))?;
        let ceiling = self.locals.top(top);
        let is_held = |task: TaskId| {
            task != top && self.own_key(task) <= self.own_key(first) && Some(self.locals.level(task)) <= ceiling
        };
        Some(if here.clone().any(is_held) { top } else { first })
    }

    fn first_unlinked(&self) -> Option<TaskId> {
        let is_unlinked = |&task: &TaskId| self.is_pending(task) && !self.is_linked(task);
        (0..self.tasks).map(TaskId::new).filter(is_unlinked).min_by_key(|&task| self.key(task))
    }

    /// The place to which a job is linked next: a free one, or that of the least urgent linked job if this is less
    /// urgent.
    fn place_for(&self, task: TaskId) -> Option<usize> {
        let free = (0..self.processors).filter(|&place| self.places[place].linked.is_none());
        let free = free.min_by_key(|&place| self.places[place].runs.is_some());
        free.or_else(|| {
            let linked = (0..self.processors).filter_map(|place| Some((self.key(self.places[place].linked?), place)));
            linked.max().filter(|&(least, _)| self.key(task) < least).map(|(_, place)| place)
        })
    }

    /// Links a job to a place. A job that is not preempted stays where it executes, and the job that waits for it there
    /// gets the place instead.
    fn link(&mut self, task: TaskId, place: usize) {
        match self.places().iter().position(|other| other.runs == Some(task)) {
            Some(own) if own != place => {
                self.places[place].linked = self.places[own].linked.replace(task);
            }
            _ => self.places[place].linked = Some(task),
        }
    }

    /// Links all places after an event of `caller`, and tells the other tasks: first those that are preempted, so that
    /// processors are free for the others.
    fn settle(&mut self, caller: TaskId, act: &mut dyn FnMut(Action)) {
        self.link_all();
        for executes in [false, true] {
            for task in (0..self.tasks).map(TaskId::new) {
                if task != caller && self.is_pending(task) && self.runs(task) == executes {
                    self.inform(task, act);
                }
            }
        }
    }

    /// Reports the priority of a task, if it has changed. Wakes it if it can make a request that had to wait.
    fn inform(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) {
        let executes = self.runs(task);
        let stand = self.single.stand(task);
        let is_pending = self.is_pending(task);
        let Some(job) = self.jobs[task.index()].as_mut().filter(|_| is_pending) else {
            return self.single.tell(task, Self::ARRIVING, act);
        };
        let was_blocked = matches!(stand, Stand::Sent(_)) && !job.is_woken;
        let wakes = was_blocked && executes;
        job.is_woken |= wakes;
        let priority = match executes {
            _ if self.is_not_preempted(task) || was_blocked && !wakes => Self::ARRIVING,
            true => Self::RUNNING,
            false => Self::PREEMPTED,
        };
        self.single.tell(task, priority, act);
        if wakes {
            act(Action::Wake { task });
        }
    }

    /// Decides on the request of a job that executes, and blocks another one until it does.
    fn decide(&mut self, task: TaskId, resource: ResourceId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        if let Some(job) = &mut self.jobs[task.index()] {
            job.is_woken = false;
        }
        if !self.runs(task) {
            self.single.send_off(task, resource);
            self.inform(task, act);
            act(Action::Block { task, resource });
            return Ok(());
        }
        if self.is_local(resource) {
            if matches!(self.single.stand(task), Stand::Sent(_)) {
                self.single.give_up(task)?;
            }
            // The resource is free: otherwise another job would execute.
            self.locals.request(task, resource, &mut |_| ())?;
            self.settle(task, act);
            self.inform(task, act);
            act(Action::Grant { task, resource });
            return Ok(());
        }
        if self.is_partitioned && !self.is_short(resource) {
            self.order.push(task, self.single.own_cpu(task));
        }
        let is_granted = self.single.enter(task, resource, Priority::MIN);
        self.settle(task, act);
        self.inform(task, act);
        act(match (is_granted, self.is_short(resource)) {
            (true, _) => Action::Grant { task, resource },
            (false, true) => Action::Spin { task, resource },
            (false, false) => Action::Block { task, resource },
        });
        Ok(())
    }

    /// For the exhaustive walk: states that differ only in epochs are one.
    #[cfg(test)]
    pub(crate) fn forget_epochs(&mut self) {
        self.single.forget_epochs();
        self.order.forget_gaps();
    }
}

impl<const TASKS: usize, const RESOURCES: usize> Machine for GlobalEdf<TASKS, RESOURCES> {
    fn counts_jobs(&self) -> bool {
        true
    }

    fn arrive(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.arrive_due(task, Instant::from_ns(u64::MAX), act)
    }

    fn arrive_due(&mut self, task: TaskId, due: Instant, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.single.known(task)?;
        let job = &mut self.jobs[task.index()];
        if job.is_some() {
            return Err(Refusal::Job);
        }
        *job = Some(Job { due, is_woken: false });
        // Whether the job may start follows from the places.
        self.locals.arrive(task, &mut |_| ())?;
        self.settle(task, act);
        self.inform(task, act);
        Ok(())
    }

    fn finish(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        let is_idle = self.single.stand_known(task)? == Stand::Idle && !self.holds_local(task);
        if !is_idle || self.jobs[task.index()].take().is_none() {
            return Err(Refusal::Job);
        }
        // A job that a ceiling keeps from starting may end all the same, if its thread executes for a moment.
        let ignore = &mut |_| ();
        self.locals.finish(task, ignore).or_else(|_| self.locals.cancel(task, ignore))?;
        self.settle(task, act);
        self.inform(task, act);
        Ok(())
    }

    fn request(&mut self, task: TaskId, resource: ResourceId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.single.may_ask(task, resource)?;
        if self.jobs[task.index()].is_none() {
            return Err(Refusal::Job);
        }
        if self.is_local(resource) {
            self.locals.may_ask(task, resource)?;
        } else if self.holds_local(task) {
            return Err(Refusal::Nested);
        }
        self.decide(task, resource, act)
    }

    fn release(&mut self, task: TaskId, resource: ResourceId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        if self.is_local(resource) {
            if self.single.stand_known(task)? != Stand::Idle {
                return Err(Refusal::NotHeld);
            }
            self.locals.release(task, resource, &mut |_| ())?;
            self.settle(task, act);
            self.inform(task, act);
            return Ok(());
        }
        let next = self.single.exit(task, resource)?;
        self.order.remove(task);
        self.settle(task, act);
        if let Some(next) = next {
            act(Action::Grant { task: next, resource });
            if !self.is_short(resource) {
                act(Action::Wake { task: next });
            }
        }
        self.inform(task, act);
        Ok(())
    }

    /// The job was woken to make its request.
    fn woken(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        match self.single.stand_known(task)? {
            Stand::Sent(resource) if self.jobs[task.index()].is_some_and(|job| job.is_woken) => {
                self.decide(task, resource, act)
            }
            _ => Err(Refusal::NotWaiting),
        }
    }

    fn cancel(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        let spins = self.single.stand_known(task)? != Stand::Idle && self.is_not_preempted(task);
        self.single.give_up(task)?;
        self.order.remove(task);
        self.settle(task, act);
        self.inform(task, act);
        if !spins {
            act(Action::Wake { task });
        }
        Ok(())
    }

    /// A base priority has no effect.
    fn set_base(&mut self, task: TaskId, _: Priority, _: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.single.known(task)
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_partitioned;
