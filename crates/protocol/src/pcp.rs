//! `pcp`: the priority ceiling protocol, for the resources of one processor.
//!
//! ```text
//!   request   more urgent than the ceilings of all that others of the processor hold: -> task, grant
//!             else: wait; those others inherit
//!   release   -> none; who waits and may go on now is woken; fall
//!   woken     may go on: -> task, grant;  else: wait
//! ```
//!
//! A resource is not handed over: who is woken tries again, and may find that somebody more urgent came before. A change of base priority while a
//! task holds or waits takes effect when it has given everything back; else the ceilings would promise nothing.

use crate::cycle::waits_for_itself;
use crate::{Action, DEFAULT_RESOURCES, DEFAULT_TASKS, Machine, Refusal};
use lockwright_model::{CpuId, MAX_NESTING, Priority, ResourceId, TaskId};

/// Mutexes with ceilings that decide who may lock at all.
///
/// # Bound
/// On one processor, with jobs that do not suspend, a job waits for at most one section of a less urgent task, and there is no deadlock.
///
/// # Reference
/// L. Sha, R. Rajkumar, J. P. Lehoczky, "Priority Inheritance Protocols", IEEE Transactions on Computers 39(9), 1990.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Pcp<const TASKS: usize = DEFAULT_TASKS, const RESOURCES: usize = DEFAULT_RESOURCES> {
    owners: [Option<TaskId>; RESOURCES],
    ceilings: [Priority; RESOURCES],
    tasks: [TaskState; TASKS],
    counts: (usize, usize),
    /// How many tasks wait.
    waiting: usize,
    /// Whether any did at the last event: then others than the caller may fall.
    is_stirred: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct TaskState {
    /// What it will be.
    base: Priority,
    /// What counts while it holds or waits.
    frozen: Priority,
    effective: Priority,
    cpu: CpuId,
    epoch: u32,
    held: u8,
    waits_for: Option<ResourceId>,
    /// Woken, and not heard of since.
    is_awake: bool,
}

impl<const TASKS: usize, const RESOURCES: usize> Pcp<TASKS, RESOURCES> {
    /// All resources free; `tasks[t]` is the base priority and the processor of task `t`, `ceilings[r]` the ceiling of resource `r`. What lies beyond
    /// is refused.
    #[must_use]
    pub fn new(tasks: &[(Priority, CpuId)], ceilings: &[Priority]) -> Self {
        let idle = |(base, cpu)| TaskState {
            base,
            frozen: base,
            effective: base,
            cpu,
            epoch: 0,
            held: 0,
            waits_for: None,
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
        Self { owners: [None; RESOURCES], ceilings: all_ceilings, tasks: all, counts, waiting: 0, is_stirred: false }
    }

    /// The owner of a resource.
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

    /// Who keeps `task` from locking `resource`: owners on its processor, of that or at a ceiling of at least its priority.
    fn blockers(&self, task: TaskId, resource: ResourceId) -> impl Iterator<Item = TaskId> {
        let (cpu, priority) = (self.state(task).cpu, self.state(task).effective);
        let owned = self.owners[..self.counts.1].iter().zip(&self.ceilings).enumerate();
        owned.filter_map(move |(index, (owner, &ceiling))| {
            let owner = (*owner)?;
            let is_in_the_way = index == resource.index() || self.state(owner).cpu == cpu && ceiling >= priority;
            (owner != task && is_in_the_way).then_some(owner)
        })
    }

    fn may_go_on(&self, task: TaskId, resource: ResourceId) -> bool {
        self.blockers(task, resource).next().is_none()
    }

    fn take(&mut self, task: TaskId, resource: ResourceId) {
        self.owners[resource.index()] = Some(task);
        let state = &mut self.tasks[task.index()];
        self.waiting -= usize::from(state.waits_for.is_some());
        (state.waits_for, state.is_awake) = (None, false);
        state.held += 1;
    }

    /// Priorities anew, from who keeps whom waiting; then who may go on is woken; `last` is told last.
    ///
    /// BOUND: no loop where nobody waits. Else rounds over those that wait: in each but the last a priority rises to that of one more of them.
    fn settle(&mut self, last: TaskId, act: &mut dyn FnMut(Action)) {
        if self.waiting == 0 && !self.is_stirred {
            // Nobody inherits, and nobody did.
            let state = &mut self.tasks[last.index()];
            if state.held == 0 {
                state.frozen = state.base;
            }
            if state.effective != state.frozen {
                state.effective = state.frozen;
                state.epoch = state.epoch.wrapping_add(1);
                act(Action::SetPriority { task: last, priority: state.effective, epoch: state.epoch });
            }
            return;
        }
        self.is_stirred = self.waiting > 0;
        let tasks = (0..self.counts.0).map(TaskId::new);
        let before = self.tasks.map(|state| state.effective);
        for state in &mut self.tasks {
            if state.held == 0 && state.waits_for.is_none() {
                state.frozen = state.base;
            }
            state.effective = state.frozen;
        }
        let mut changed = true;
        while changed {
            changed = false;
            for task in tasks.clone() {
                let Some(resource) = self.state(task).waits_for else { continue };
                let priority = self.state(task).effective;
                for index in 0..self.counts.1 {
                    let is_blocker = |owner: &TaskId| {
                        let at_ceiling =
                            self.state(*owner).cpu == self.state(task).cpu && self.ceilings[index] >= priority;
                        *owner != task && (index == resource.index() || at_ceiling)
                    };
                    if let Some(owner) = self.owners[index].filter(is_blocker)
                        && self.state(owner).effective < priority
                    {
                        self.tasks[owner.index()].effective = priority;
                        changed = true;
                    }
                }
            }
        }
        let tell = |machine: &mut Self, task: TaskId, act: &mut dyn FnMut(Action)| {
            let state = &mut machine.tasks[task.index()];
            if before[task.index()] != state.effective {
                state.epoch = state.epoch.wrapping_add(1);
                act(Action::SetPriority { task, priority: state.effective, epoch: state.epoch });
            }
        };
        for task in tasks.clone().filter(|&task| task != last) {
            tell(self, task, act);
        }
        for task in tasks {
            let Some(resource) = self.state(task).waits_for else { continue };
            if !self.state(task).is_awake && self.may_go_on(task, resource) {
                self.tasks[task.index()].is_awake = true;
                act(Action::Wake { task });
            }
        }
        tell(self, last, act);
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
        if usize::from(state.held) == MAX_NESTING {
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
            self.tasks[task.index()].waits_for = Some(resource);
            self.waiting += 1;
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
        self.owners[resource.index()] = None;
        self.tasks[task.index()].held -= 1;
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
        self.waiting -= 1;
        let state = &mut self.tasks[task.index()];
        (state.waits_for, state.is_awake) = (None, false);
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
