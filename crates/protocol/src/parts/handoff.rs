//! The common part of `icpp` and `mpcp`: a queue by base priority, hand-off to the first waiter, and an effective
//! priority that is the highest of the base priority and of the ceilings of all resources that the task holds or waits
//! for.
//!
//! ```text
//!   owner   request                         release
//!   none    rise to the ceiling, grant      refused
//!   some    rise to the ceiling, wait       first waiter w: -> w, grant w, wake w, fall
//!                                           no waiter:      -> none, fall
//! ```
//!
//! A task rises *before* it suspends, so it resumes at its ceiling, and the releasing task need not change its
//! priority. The releasing task wakes the next owner *before* it falls.

use crate::parts::cycle::waits_for_itself;
use crate::parts::queue::{Links, WaitQueue};
use crate::{Action, Refusal};
use lockwright_model::{NESTING_MAX, Priority, ResourceId, TaskId};

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Handoff<const TASKS: usize, const RESOURCES: usize> {
    owners: [Option<TaskId>; RESOURCES],
    queues: [WaitQueue; RESOURCES],
    links: Links<TaskId, TASKS>,
    tasks: [TaskState; TASKS],
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct TaskState {
    base: Priority,
    effective: Priority,
    epoch: u32,
    waits_for: Option<ResourceId>,
    /// The resources that it holds, followed by the one that it waits for, each with the ceiling that counts for the
    /// task.
    claims: [(ResourceId, Priority); NESTING_MAX],
    depth: u8,
}

const NO_CLAIM: (ResourceId, Priority) = (ResourceId(0), Priority::MIN);

impl TaskState {
    #[inline]
    fn claims(&self) -> &[(ResourceId, Priority)] {
        &self.claims[..self.depth as usize]
    }

    /// Sections are mostly nested, so the claim is in most cases the last one.
    #[inline]
    fn drop_claim(&mut self, resource: ResourceId) {
        let claims = &mut self.claims[..self.depth as usize];
        // Claims past the depth have one form, so that equal states are equal.
        let mut later = NO_CLAIM;
        let dropped = claims.iter_mut().rev().find_map(|claim| {
            later = core::mem::replace(claim, later);
            (later.0 == resource).then_some(())
        });
        dropped.expect("a claim is dropped once");
        self.depth -= 1;
    }
}

impl<const TASKS: usize, const RESOURCES: usize> Handoff<TASKS, RESOURCES> {
    pub(crate) fn new(priorities: &[Priority]) -> Self {
        let idle = TaskState {
            base: Priority::MIN,
            effective: Priority::MIN,
            epoch: 0,
            waits_for: None,
            claims: [NO_CLAIM; NESTING_MAX],
            depth: 0,
        };
        let mut tasks = [idle; TASKS];
        for (task, &base) in tasks.iter_mut().zip(priorities) {
            (task.base, task.effective) = (base, base);
        }
        Self { owners: [None; RESOURCES], queues: [WaitQueue::EMPTY; RESOURCES], links: Links::new(), tasks }
    }

    pub(crate) fn owner(&self, resource: ResourceId) -> Option<TaskId> {
        *self.owners.get(resource.index())?
    }

    pub(crate) fn effective(&self, task: TaskId) -> Priority {
        self.tasks.get(task.index()).map_or(Priority::MIN, |task| task.effective)
    }

    pub(crate) fn base(&self, task: TaskId) -> Priority {
        self.tasks.get(task.index()).map_or(Priority::MIN, |task| task.base)
    }

    pub(crate) fn is_waiting(&self, task: TaskId) -> bool {
        self.tasks.get(task.index()).is_some_and(|task| task.waits_for.is_some())
    }

    pub(crate) fn request(
        &mut self,
        task: TaskId,
        resource: ResourceId,
        ceiling: Priority,
        act: &mut dyn FnMut(Action),
    ) -> Result<(), Refusal> {
        let state = self.tasks.get(task.index()).ok_or(Refusal::UnknownTask)?;
        let owner = *self.owners.get(resource.index()).ok_or(Refusal::UnknownResource)?;
        if state.waits_for.is_some() {
            return Err(Refusal::Waiting);
        }
        if owner == Some(task) {
            return Err(Refusal::AlreadyHeld);
        }
        if usize::from(state.depth) == NESTING_MAX {
            return Err(Refusal::TooDeep);
        }
        if owner.is_some() && self.would_wait_for_itself(task, resource) {
            return Err(Refusal::Deadlock);
        }
        let state = &mut self.tasks[task.index()];
        state.claims[usize::from(state.depth)] = (resource, ceiling);
        state.depth += 1;
        self.settle(task, act);
        if owner.is_none() {
            self.owners[resource.index()] = Some(task);
            act(Action::Grant { task, resource });
        } else {
            let state = &mut self.tasks[task.index()];
            state.waits_for = Some(resource);
            self.queues[resource.index()].insert(&mut self.links, task, state.base);
            act(Action::Block { task, resource });
        }
        Ok(())
    }

    pub(crate) fn release(
        &mut self,
        task: TaskId,
        resource: ResourceId,
        act: &mut dyn FnMut(Action),
    ) -> Result<(), Refusal> {
        let state = self.tasks.get_mut(task.index()).ok_or(Refusal::UnknownTask)?;
        if *self.owners.get(resource.index()).ok_or(Refusal::UnknownResource)? != Some(task) {
            return Err(Refusal::NotHeld);
        }
        if state.waits_for.is_some() {
            return Err(Refusal::Waiting);
        }
        state.drop_claim(resource);
        let next = self.queues[resource.index()].pop(&mut self.links);
        self.owners[resource.index()] = next;
        if let Some(next) = next {
            self.tasks[next.index()].waits_for = None;
            act(Action::Grant { task: next, resource });
            act(Action::Wake { task: next });
        }
        self.settle(task, act);
        Ok(())
    }

    pub(crate) fn cancel(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        let state = self.tasks.get_mut(task.index()).ok_or(Refusal::UnknownTask)?;
        let resource = state.waits_for.take().ok_or(Refusal::NotWaiting)?;
        state.drop_claim(resource);
        self.queues[resource.index()].remove(&mut self.links, task);
        act(Action::Wake { task });
        self.settle(task, act);
        Ok(())
    }

    pub(crate) fn set_base(
        &mut self,
        task: TaskId,
        base: Priority,
        act: &mut dyn FnMut(Action),
    ) -> Result<(), Refusal> {
        let state = self.tasks.get_mut(task.index()).ok_or(Refusal::UnknownTask)?;
        state.base = base;
        if let Some(resource) = state.waits_for {
            self.queues[resource.index()].reorder(&mut self.links, task, base);
        }
        self.settle(task, act);
        Ok(())
    }

    fn settle(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) {
        let state = &mut self.tasks[task.index()];
        let effective = state.claims().iter().map(|claim| claim.1).fold(state.base, Priority::max);
        if effective != state.effective {
            state.effective = effective;
            state.epoch = state.epoch.wrapping_add(1);
            act(Action::SetPriority { task, priority: effective, epoch: state.epoch });
        }
    }

    fn would_wait_for_itself(&self, task: TaskId, resource: ResourceId) -> bool {
        waits_for_itself(task, resource, |resource| self.owner(resource), |task| self.tasks[task.index()].waits_for)
    }

    /// For the exhaustive walk: states that differ only in epochs are one.
    #[cfg(test)]
    pub(crate) fn forget_epochs(&mut self) {
        self.tasks.iter_mut().for_each(|task| task.epoch = 0);
    }
}
