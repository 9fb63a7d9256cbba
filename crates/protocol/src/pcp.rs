//! `pcp`: the priority ceiling protocol, for the resources of one processor.
//!
//! ```text
//!   request   more urgent than the ceilings of all resources that other tasks of the processor hold: -> task, grant
//!             else: wait; those tasks inherit
//!   release   -> none; wake the waiters that may go on now; fall
//!   woken     may go on: -> task, grant;  else: wait
//! ```
//!
//! A resource is not handed over. A woken task tries again, and may find that a more urgent task was faster. If the
//! base priority of a task changes while it holds or waits for a resource, the change takes effect when it has released
//! everything. Otherwise the ceilings would guarantee nothing.

use crate::parts::cycle::waits_for_itself;
use crate::parts::peers::Peers;
use crate::{Action, DEFAULT_RESOURCES, DEFAULT_TASKS, Machine, Refusal};
use lockwright_model::{CpuId, NESTING_MAX, Priority, ResourceId, TaskId};

/// Mutexes whose ceilings decide whether a task may lock at all.
///
/// # Bound
/// On one processor, with jobs that do not suspend, a job waits for at most one section of a less urgent task, and
/// there is no deadlock.
///
/// # Reference
/// L. Sha, R. Rajkumar, J. P. Lehoczky, "Priority Inheritance Protocols", IEEE Transactions on Computers 39(9), 1990.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Pcp<const TASKS: usize = DEFAULT_TASKS, const RESOURCES: usize = DEFAULT_RESOURCES> {
    owners: [Option<TaskId>; RESOURCES],
    ceilings: [Priority; RESOURCES],
    tasks: [TaskState; TASKS],
    peers: Peers<TASKS>,
    counts: (usize, usize),
    /// The first task of the list of waiting tasks, which is sorted by id.
    first_waiting: Option<TaskId>,
    /// Whether tasks waited at the last event. If so, the priorities of tasks other than the caller may fall.
    is_stirred: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct TaskState {
    /// The base priority once the task holds nothing and does not wait.
    base: Priority,
    /// The base priority that counts while the task holds a resource or waits.
    frozen: Priority,
    effective: Priority,
    cpu: CpuId,
    epoch: u32,
    held: u8,
    /// The highest ceiling of the resources that it holds.
    top: Option<Priority>,
    waits_for: Option<ResourceId>,
    next_waiting: Option<TaskId>,
    /// Whether it was woken and has not called since.
    is_awake: bool,
}

impl<const TASKS: usize, const RESOURCES: usize> Pcp<TASKS, RESOURCES> {
    /// All resources are free. `tasks[t]` is the base priority and the processor of task `t`, and `ceilings[r]` is the
    /// ceiling of resource `r`. Other tasks and resources are refused.
    #[must_use]
    pub fn new(tasks: &[(Priority, CpuId)], ceilings: &[Priority]) -> Self {
        let idle = |(base, cpu)| TaskState {
            base,
            frozen: base,
            effective: base,
            cpu,
            epoch: 0,
            held: 0,
            top: None,
            waits_for: None,
            next_waiting: None,
            is_awake: false,
        };
        let mut all = [idle((Priority::MIN, CpuId(0))); TASKS];
        for (state, &task) in all.iter_mut().zip(tasks) {
            *state = idle(task);
        }
        let mut all_ceilings = [Priority::MIN; RESOURCES];
        for (slot, &ceiling) in all_ceilings.iter_mut().zip(ceilings) {
            *slot = ceiling;
        }
        let counts = (tasks.len().min(TASKS), ceilings.len().min(RESOURCES));
        Self {
            owners: [None; RESOURCES],
            ceilings: all_ceilings,
            tasks: all,
            peers: Peers::new(tasks.iter().map(|task| task.1)),
            counts,
            first_waiting: None,
            is_stirred: false,
        }
    }

    /// Returns the owner of a resource.
    #[must_use]
    pub fn owner(&self, resource: ResourceId) -> Option<TaskId> {
        *self.owners.get(resource.index())?
    }

    fn state(&self, task: TaskId) -> &TaskState {
        &self.tasks[task.index()]
    }

    fn known(&self, task: TaskId) -> Result<TaskState, Refusal> {
        self.tasks[..self.counts.0].get(task.index()).copied().ok_or(Refusal::UnknownTask)
    }

    /// Whether `task` may lock `resource`: the resource is free, and no other task of its processor holds a resource
    /// with a ceiling of at least its priority.
    fn may_go_on(&self, task: TaskId, resource: ResourceId) -> bool {
        let priority = self.state(task).effective;
        let is_in_the_way = |&other: &TaskId| other != task && self.state(other).top >= Some(priority);
        self.owner(resource).is_none() && !self.peers.of(task).iter().any(is_in_the_way)
    }

    fn take(&mut self, task: TaskId, resource: ResourceId) {
        self.stop_waiting(task);
        self.owners[resource.index()] = Some(task);
        let state = &mut self.tasks[task.index()];
        state.held += 1;
        state.top = state.top.max(Some(self.ceilings[resource.index()]));
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
    }

    fn waiting(&self) -> impl Iterator<Item = TaskId> {
        core::iter::successors(self.first_waiting, |&task| self.state(task).next_waiting)
    }

    /// BOUND: a step for each waiting task.
    fn start_waiting(&mut self, task: TaskId, resource: ResourceId) {
        let before = self.waiting().take_while(|&other| other < task).last();
        let next = before.map_or(self.first_waiting, |before| self.state(before).next_waiting);
        let state = &mut self.tasks[task.index()];
        (state.waits_for, state.next_waiting) = (Some(resource), next);
        self.set_next(before, Some(task));
    }

    /// BOUND: a step for each waiting task.
    fn stop_waiting(&mut self, task: TaskId) {
        let state = &mut self.tasks[task.index()];
        state.is_awake = false;
        if state.waits_for.take().is_some() {
            let next = state.next_waiting.take();
            let before = self.waiting().take_while(|&other| other < task).last();
            self.set_next(before, next);
        }
    }

    fn set_next(&mut self, before: Option<TaskId>, next: Option<TaskId>) {
        match before {
            Some(before) => self.tasks[before.index()].next_waiting = next,
            None => self.first_waiting = next,
        }
    }

    /// Computes the inherited priorities again, wakes the tasks that may lock now, and reports the priority of `last`
    /// last. Only owners inherit, and only `last` may have ceased to be an owner.
    ///
    /// BOUND: no loop if no task waits. Otherwise a step for each resource, and rounds over the waiting tasks: in each
    /// round except the last, a priority rises to that of one more waiting task.
    fn settle(&mut self, last: TaskId, act: &mut dyn FnMut(Action)) {
        let state = &mut self.tasks[last.index()];
        let before_last = state.effective;
        if state.held == 0 && state.waits_for.is_none() {
            state.frozen = state.base;
        }
        if self.first_waiting.is_some() || self.is_stirred {
            self.is_stirred = self.first_waiting.is_some();
            self.settle_owners(last, act);
        } else {
            // No task inherits now, and none did at the last event.
            state.effective = state.frozen;
        }
        self.tell(last, before_last, act);
    }

    fn settle_owners(&mut self, last: TaskId, act: &mut dyn FnMut(Action)) {
        // The owners by resource, and the owners with their previous priorities.
        let mut owned = [(ResourceId(0), TaskId(0)); RESOURCES];
        let mut told = [(TaskId(0), Priority::MIN); RESOURCES];
        let mut count = 0;
        for (index, owner) in self.owners[..self.counts.1].iter().enumerate() {
            if let &Some(owner) = owner {
                (owned[count], told[count]) = ((ResourceId::new(index), owner), (owner, self.state(owner).effective));
                count += 1;
            }
        }
        let (owned, told) = (&owned[..count], &mut told[..count]);
        for owner in owned.iter().map(|&(_, owner)| owner).chain([last]) {
            let state = &mut self.tasks[owner.index()];
            state.effective = state.frozen;
        }
        let mut changed = self.first_waiting.is_some();
        while changed {
            changed = false;
            let mut next = self.first_waiting;
            while let Some(task) = next {
                let TaskState { waits_for, effective: priority, cpu, next_waiting, .. } = *self.state(task);
                next = next_waiting;
                for &(resource, owner) in owned {
                    let at_ceiling = self.state(owner).cpu == cpu && self.ceilings[resource.index()] >= priority;
                    let is_blocker = owner != task && (waits_for == Some(resource) || at_ceiling);
                    if is_blocker && self.state(owner).effective < priority {
                        self.tasks[owner.index()].effective = priority;
                        changed = true;
                    }
                }
            }
        }
        told.sort_unstable();
        // The priority of an owner of several resources is reported once.
        for &(task, before) in told.chunk_by(|one, other| one.0 == other.0).filter_map(<[_]>::first) {
            if task != last {
                self.tell(task, before, act);
            }
        }
        let mut next = self.first_waiting;
        while let Some(task) = next {
            let TaskState { waits_for, is_awake, next_waiting, .. } = *self.state(task);
            next = next_waiting;
            if let Some(resource) = waits_for
                && !is_awake
                && self.may_go_on(task, resource)
            {
                self.tasks[task.index()].is_awake = true;
                act(Action::Wake { task });
            }
        }
    }

    fn tell(&mut self, task: TaskId, before: Priority, act: &mut dyn FnMut(Action)) {
        let state = &mut self.tasks[task.index()];
        if before != state.effective {
            state.epoch = state.epoch.wrapping_add(1);
            act(Action::SetPriority { task, priority: state.effective, epoch: state.epoch });
        }
    }

    /// The plain form of [`Pcp::settle`], over all tasks and all owned resources, to which the tests compare it.
    #[cfg(test)]
    pub(crate) fn settle_all(&mut self, act: &mut dyn FnMut(Action)) {
        let tasks = (0..self.counts.0).map(TaskId::new);
        let before = self.tasks.map(|state| state.effective);
        self.tasks.iter_mut().for_each(|state| state.effective = state.frozen);
        let in_the_way = |machine: &Self, task: TaskId, index: usize| {
            let state = machine.state(task);
            let at_ceiling =
                |owner: TaskId| machine.state(owner).cpu == state.cpu && machine.ceilings[index] >= state.effective;
            let awaited = state.waits_for == Some(ResourceId::new(index));
            machine.owners[index].filter(|&owner| owner != task && (awaited || at_ceiling(owner)))
        };
        let mut changed = true;
        while changed {
            changed = false;
            for task in tasks.clone() {
                let TaskState { waits_for: Some(_), effective: priority, .. } = *self.state(task) else { continue };
                for index in 0..self.counts.1 {
                    if let Some(owner) =
                        in_the_way(self, task, index).filter(|&owner| self.state(owner).effective < priority)
                    {
                        self.tasks[owner.index()].effective = priority;
                        changed = true;
                    }
                }
            }
        }
        for task in tasks {
            self.tell(task, before[task.index()], act);
            let state = *self.state(task);
            let is_free = (0..self.counts.1).all(|index| in_the_way(self, task, index).is_none());
            if state.waits_for.is_some() && !state.is_awake && is_free {
                act(Action::Wake { task });
            }
        }
    }

    /// For the exhaustive walk: states that differ only in epochs are one.
    #[cfg(test)]
    pub(crate) fn forget_epochs(&mut self) {
        self.tasks.iter_mut().for_each(|task| task.epoch = 0);
    }
}

impl<const TASKS: usize, const RESOURCES: usize> Machine for Pcp<TASKS, RESOURCES> {
    fn request(&mut self, task: TaskId, resource: ResourceId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        let state = self.known(task)?;
        if resource.index() >= self.counts.1 {
            return Err(Refusal::UnknownResource);
        }
        if state.waits_for.is_some() {
            return Err(Refusal::Waiting);
        }
        if self.owner(resource) == Some(task) {
            return Err(Refusal::AlreadyHeld);
        }
        if usize::from(state.held) == NESTING_MAX {
            return Err(Refusal::TooDeep);
        }
        if state.frozen > self.ceilings[resource.index()] {
            return Err(Refusal::AboveCeiling);
        }
        let waits_for = |task: TaskId| self.state(task).waits_for;
        if self.owner(resource).is_some() && waits_for_itself(task, resource, |on| self.owner(on), waits_for) {
            return Err(Refusal::Deadlock);
        }
        if self.may_go_on(task, resource) {
            self.take(task, resource);
            act(Action::Grant { task, resource });
            // Others that were about to try may have lost their chance.
            self.settle(task, act);
        } else {
            self.start_waiting(task, resource);
            self.settle(task, act);
            act(Action::Block { task, resource });
        }
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
        self.settle(task, act);
        Ok(())
    }

    fn woken(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        let resource = self.known(task)?.waits_for.ok_or(Refusal::NotWaiting)?;
        self.tasks[task.index()].is_awake = false;
        if self.may_go_on(task, resource) {
            self.take(task, resource);
            act(Action::Grant { task, resource });
            self.settle(task, act);
        } else {
            act(Action::Block { task, resource });
        }
        Ok(())
    }

    fn cancel(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.known(task)?.waits_for.ok_or(Refusal::NotWaiting)?;
        self.stop_waiting(task);
        self.settle(task, act);
        act(Action::Wake { task });
        Ok(())
    }

    fn set_base(&mut self, task: TaskId, base: Priority, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.known(task)?;
        self.tasks[task.index()].base = base;
        self.settle(task, act);
        Ok(())
    }
}
