//! `srp`: the stack resource policy, for the resources of one processor. A job starts only above the ceilings of the
//! resources that other tasks hold, and never waits afterwards.
//!
//! ```text
//!   arrive    more urgent than the ceilings of all resources that other tasks of the processor hold: start
//!             else: held
//!   request   -> task, grant
//!   release   -> none; wake the held jobs that are above the ceilings now
//! ```
//!
//! Priorities do not change. If a job suspends by itself, another job may find a resource locked, and waits; the most
//! urgent waiter is served first. A change of base priority takes effect with the next job.

use crate::parts::cycle::waits_for_itself;
use crate::parts::peers::Peers;
use crate::parts::queue::{Links, WaitQueue};
use crate::{Action, DEFAULT_RESOURCES, DEFAULT_TASKS, Machine, Refusal};
use lockwright_model::{CpuId, NESTING_MAX, Priority, ResourceId, TaskId};

/// Resources of jobs that share a stack: a job that has started never waits.
///
/// # Bound
/// On one processor, with jobs that do not suspend, a job is delayed by at most one section of a less urgent task,
/// before it starts.
///
/// # Reference
/// T. P. Baker, "Stack-based scheduling of realtime processes", Real-Time Systems 3(1), 1991.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Srp<const TASKS: usize = DEFAULT_TASKS, const RESOURCES: usize = DEFAULT_RESOURCES> {
    owners: [Option<TaskId>; RESOURCES],
    ceilings: [Priority; RESOURCES],
    queues: [WaitQueue; RESOURCES],
    links: Links<TaskId, TASKS>,
    tasks: [TaskState; TASKS],
    peers: Peers<TASKS>,
    /// The counts of each processor, at the place of its first task in `peers`.
    there: [There; TASKS],
    counts: (usize, usize),
}

/// Counts of the tasks of a processor. If a count is 0, no task is searched.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct There {
    /// Tasks that hold a resource.
    holders: u16,
    /// Tasks whose jobs are held.
    held: u16,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct TaskState {
    /// The base priority, which counts from the next job on.
    base: Priority,
    /// The preemption level, which is also the priority reported last.
    level: Priority,
    cpu: CpuId,
    epoch: u32,
    job: Job,
    held: u8,
    /// The highest ceiling of the resources that it holds.
    top: Option<Priority>,
    waits_for: Option<ResourceId>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Job {
    None,
    /// The job is released, but has not started.
    Held,
    Started,
}

impl<const TASKS: usize, const RESOURCES: usize> Srp<TASKS, RESOURCES> {
    /// There are no jobs, and all resources are free. `tasks[t]` is the base priority and the processor of task `t`,
    /// and `ceilings[r]` is the ceiling of resource `r`. Other tasks and resources are refused.
    #[must_use]
    pub fn new(tasks: &[(Priority, CpuId)], ceilings: &[Priority]) -> Self {
        let idle = |(base, cpu)| TaskState {
            base,
            level: base,
            cpu,
            epoch: 0,
            job: Job::None,
            held: 0,
            top: None,
            waits_for: None,
        };
        let mut all = [idle((Priority::MIN, CpuId(0))); TASKS];
        for (state, &task) in all.iter_mut().zip(tasks) {
            *state = idle(task);
        }
        let mut all_ceilings = [Priority::MIN; RESOURCES];
        for (slot, &ceiling) in all_ceilings.iter_mut().zip(ceilings) {
            *slot = ceiling;
        }
        Self {
            owners: [None; RESOURCES],
            ceilings: all_ceilings,
            queues: [WaitQueue::EMPTY; RESOURCES],
            links: Links::new(),
            tasks: all,
            peers: Peers::new(tasks.iter().map(|task| task.1)),
            there: [There { holders: 0, held: 0 }; TASKS],
            counts: (tasks.len().min(TASKS), ceilings.len().min(RESOURCES)),
        }
    }

    /// Returns the owner of a resource.
    #[must_use]
    pub fn owner(&self, resource: ResourceId) -> Option<TaskId> {
        *self.owners.get(resource.index())?
    }

    /// Whether the machine has this resource.
    pub(crate) fn knows(&self, resource: ResourceId) -> bool {
        resource.index() < self.counts.1
    }

    /// The highest ceiling of the resources that the task holds.
    pub(crate) fn top(&self, task: TaskId) -> Option<Priority> {
        self.tasks[task.index()].top
    }

    /// The preemption level of the job of the task.
    pub(crate) fn level(&self, task: TaskId) -> Priority {
        self.tasks[task.index()].level
    }

    /// Refuses a request of a job without a meaning, if the job has started.
    pub(crate) fn may_ask(&self, task: TaskId, resource: ResourceId) -> Result<(), Refusal> {
        let state = self.known(task)?;
        match resource.index() {
            place if place >= self.counts.1 => Err(Refusal::UnknownResource),
            _ if state.waits_for.is_some() => Err(Refusal::Waiting),
            _ if self.owner(resource) == Some(task) => Err(Refusal::AlreadyHeld),
            _ if usize::from(state.held) == NESTING_MAX => Err(Refusal::TooDeep),
            place if state.level > self.ceilings[place] => Err(Refusal::AboveCeiling),
            _ => Ok(()),
        }
    }

    fn known(&self, task: TaskId) -> Result<TaskState, Refusal> {
        self.tasks[..self.counts.0].get(task.index()).copied().ok_or(Refusal::UnknownTask)
    }

    /// The counts of the processor of the task.
    fn there(&mut self, task: TaskId) -> &mut There {
        &mut self.there[self.peers.places(task).start]
    }

    /// Whether a job of the task may start now.
    ///
    /// BOUND: no loop if no task of its processor holds a resource, otherwise a step for each task there.
    pub(crate) fn may_start(&self, task: TaskId) -> bool {
        if self.there[self.peers.places(task).start].holders == 0 {
            return true;
        }
        let level = self.tasks[task.index()].level;
        let mut peers = self.peers.of(task).iter();
        !peers.any(|&other| other != task && self.tasks[other.index()].top >= Some(level))
    }

    /// Starts the held jobs that are above the ceilings now. Only those of the processor of `changed` can be: elsewhere
    /// no ceiling has fallen.
    ///
    /// BOUND: no loop if no job is held, otherwise a step for each task, and as many again for each held job.
    fn start(&mut self, changed: TaskId, act: &mut dyn FnMut(Action)) {
        if self.there(changed).held == 0 {
            return;
        }
        for place in self.peers.places(changed) {
            let task = self.peers.at(place);
            if self.tasks[task.index()].job == Job::Held && self.may_start(task) {
                self.tasks[task.index()].job = Job::Started;
                self.there(task).held -= 1;
                act(Action::Wake { task });
            }
        }
    }

    fn take(&mut self, task: TaskId, resource: ResourceId) {
        self.owners[resource.index()] = Some(task);
        let state = &mut self.tasks[task.index()];
        let is_first = state.held == 0;
        state.held += 1;
        state.top = state.top.max(Some(self.ceilings[resource.index()]));
        self.there(task).holders += u16::from(is_first);
    }

    /// The task no longer holds the resource. Its highest ceiling is searched only if it holds another one.
    fn let_go(&mut self, task: TaskId, resource: ResourceId) {
        self.owners[resource.index()] = None;
        let held = self.tasks[task.index()].held - 1;
        let owned = || self.owners[..self.counts.1].iter().zip(&self.ceilings);
        let of_task = || owned().filter(|&(&owner, _)| owner == Some(task)).map(|(_, &ceiling)| ceiling);
        let top = if held > 0 { of_task().max() } else { None };
        let state = &mut self.tasks[task.index()];
        (state.held, state.top) = (held, top);
        self.there(task).holders -= u16::from(held == 0);
    }

    /// If the task has no job, a change of its base priority takes effect.
    fn settle(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) {
        let state = &mut self.tasks[task.index()];
        if state.job == Job::None && state.level != state.base {
            state.level = state.base;
            state.epoch = state.epoch.wrapping_add(1);
            act(Action::SetPriority { task, priority: state.base, epoch: state.epoch });
        }
    }

    /// The plain form of [`Srp::start`], over all tasks and all resources owned on their processors, to which the tests
    /// compare it.
    #[cfg(test)]
    pub(crate) fn settle_all(&mut self, act: &mut dyn FnMut(Action)) {
        for task in (0..self.counts.0).map(TaskId::new) {
            let own = self.tasks[task.index()];
            let mut owned = self.owners.iter().zip(&self.ceilings);
            let is_held = owned.any(|(owner, &ceiling)| {
                let other = owner.filter(|&owner| owner != task && self.tasks[owner.index()].cpu == own.cpu);
                other.is_some() && ceiling >= own.level
            });
            if own.job == Job::Held && !is_held {
                act(Action::Wake { task });
            }
            let there = self.there[self.peers.places(task).start];
            let of_place = |of: fn(&TaskState) -> bool| {
                self.tasks[..self.counts.0].iter().filter(|other| other.cpu == own.cpu && of(other)).count()
            };
            let counted = (usize::from(there.holders), usize::from(there.held));
            let counts = (of_place(|other| other.held > 0), of_place(|other| other.job == Job::Held));
            assert_eq!(counted, counts, "each holder, and each job that is held, counts once");
        }
    }

    /// For the exhaustive walk: states that differ only in epochs are one.
    #[cfg(test)]
    pub(crate) fn forget_epochs(&mut self) {
        self.tasks.iter_mut().for_each(|task| task.epoch = 0);
    }
}

impl<const TASKS: usize, const RESOURCES: usize> Machine for Srp<TASKS, RESOURCES> {
    fn counts_jobs(&self) -> bool {
        true
    }

    fn arrive(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        if self.known(task)?.job != Job::None {
            return Err(Refusal::Job);
        }
        if self.may_start(task) {
            self.tasks[task.index()].job = Job::Started;
        } else {
            self.tasks[task.index()].job = Job::Held;
            self.there(task).held += 1;
            act(Action::Hold { task });
        }
        Ok(())
    }

    fn finish(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        let state = self.known(task)?;
        if state.job != Job::Started || state.held > 0 || state.waits_for.is_some() {
            return Err(Refusal::Job);
        }
        self.tasks[task.index()].job = Job::None;
        self.settle(task, act);
        Ok(())
    }

    fn request(&mut self, task: TaskId, resource: ResourceId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        if self.known(task)?.job != Job::Started && self.knows(resource) {
            return Err(Refusal::Job);
        }
        self.may_ask(task, resource)?;
        if self.owner(resource).is_none() {
            self.take(task, resource);
            act(Action::Grant { task, resource });
            return Ok(());
        }
        let waits_for = |task: TaskId| self.tasks[task.index()].waits_for;
        if waits_for_itself(task, resource, |on| self.owner(on), waits_for) {
            return Err(Refusal::Deadlock);
        }
        self.tasks[task.index()].waits_for = Some(resource);
        let level = self.level(task);
        self.queues[resource.index()].insert(&mut self.links, task, level);
        act(Action::Block { task, resource });
        Ok(())
    }

    fn release(&mut self, task: TaskId, resource: ResourceId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        let state = self.known(task)?;
        if resource.index() >= self.counts.1 {
            return Err(Refusal::UnknownResource);
        }
        if self.owner(resource) != Some(task) {
            return Err(Refusal::NotHeld);
        }
        if state.waits_for.is_some() {
            return Err(Refusal::Waiting);
        }
        self.let_go(task, resource);
        if let Some(next) = self.queues[resource.index()].pop(&mut self.links) {
            self.tasks[next.index()].waits_for = None;
            self.take(next, resource);
            act(Action::Grant { task: next, resource });
            act(Action::Wake { task: next });
        }
        self.start(task, act);
        Ok(())
    }

    /// A job that is held gives up starting.
    fn cancel(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        let state = self.known(task)?;
        if let Some(resource) = state.waits_for {
            self.queues[resource.index()].remove(&mut self.links, task);
            self.tasks[task.index()].waits_for = None;
        } else if state.job == Job::Held {
            self.tasks[task.index()].job = Job::None;
            self.there(task).held -= 1;
        } else {
            return Err(Refusal::NotWaiting);
        }
        act(Action::Wake { task });
        self.settle(task, act);
        Ok(())
    }

    fn set_base(&mut self, task: TaskId, base: Priority, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.known(task)?;
        self.tasks[task.index()].base = base;
        self.settle(task, act);
        Ok(())
    }
}
