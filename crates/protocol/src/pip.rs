//! `pip`: priority inheritance. The machine decides as the PI futex of Linux (`rt_mutex`) does.
//!
//! ```text
//!   owner        request                        release                       woken
//!   none, no waiter
//!                -> task, grant                 refused                       -
//!   none, first waiter w woken
//!                more urgent than w: -> task    refused                       w: -> w, grant
//!                else: queue, wait                                            not w: wake w, wait
//!   some         queue, wait, owner inherits    -> none, wake first waiter    wait
//! ```
//!
//! The effective priority of a task is the highest of its base priority and of the priorities of the first waiters of
//! all resources that it holds. When the effective priority of a waiting task changes, the task is queued anew, and the
//! change propagates to the owner of the resource that it waits for.

use crate::parts::cycle::waits_for_itself;
use crate::parts::queue::{Links, WaitQueue};
use crate::{Action, DEFAULT_RESOURCES, DEFAULT_TASKS, Machine, Refusal};
use lockwright_model::{NESTING_MAX, Priority, ResourceId, TaskId};

/// Mutexes with priority inheritance.
///
/// # Bound
/// On one processor, a job waits for at most one section of each less urgent task. Without nested sections, it also
/// waits for at most one section of each resource. Across processors there is no useful bound: a holder inherits base
/// priorities only, and the base priority of a task on another processor means little here.
///
/// # Reference
/// L. Sha, R. Rajkumar, J. P. Lehoczky, "Priority Inheritance Protocols", IEEE Transactions on Computers 39(9), 1990.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Pip<const TASKS: usize = DEFAULT_TASKS, const RESOURCES: usize = DEFAULT_RESOURCES> {
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
    held: [ResourceId; NESTING_MAX],
    depth: u8,
}

impl TaskState {
    fn held(&self) -> &[ResourceId] {
        &self.held[..self.depth as usize]
    }
}

impl<const TASKS: usize, const RESOURCES: usize> Pip<TASKS, RESOURCES> {
    /// All resources are free. `priorities[t]` is the base priority of task `t`; other tasks have the least priority.
    #[must_use]
    pub fn new(priorities: &[Priority]) -> Self {
        let idle = TaskState {
            base: Priority::MIN,
            effective: Priority::MIN,
            epoch: 0,
            waits_for: None,
            held: [ResourceId(0); NESTING_MAX],
            depth: 0,
        };
        let mut tasks = [idle; TASKS];
        for (task, &base) in tasks.iter_mut().zip(priorities) {
            (task.base, task.effective) = (base, base);
        }
        Self { owners: [None; RESOURCES], queues: [WaitQueue::EMPTY; RESOURCES], links: Links::new(), tasks }
    }

    /// Returns the owner of a resource.
    #[must_use]
    pub fn owner(&self, resource: ResourceId) -> Option<TaskId> {
        *self.owners.get(resource.index())?
    }

    /// The effective priority of a task, inheritance included. An unknown task has the least priority.
    #[must_use]
    pub fn effective(&self, task: TaskId) -> Priority {
        self.tasks.get(task.index()).map_or(Priority::MIN, |task| task.effective)
    }

    fn take(&mut self, task: TaskId, resource: ResourceId, act: &mut dyn FnMut(Action)) {
        self.owners[resource.index()] = Some(task);
        let state = &mut self.tasks[task.index()];
        state.held[usize::from(state.depth)] = resource;
        state.depth += 1;
        self.propagate(task, act);
        act(Action::Grant { task, resource });
    }

    fn wake_first(&mut self, resource: ResourceId, act: &mut dyn FnMut(Action)) {
        if let Some(first) = self.queues[resource.index()].first() {
            act(Action::Wake { task: first });
        }
    }

    /// Recomputes the effective priority of `task` and of every owner up the chain of waiting.
    ///
    /// BOUND: one step for each task: the chain has no cycle, because a request that would close one is refused.
    fn propagate(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) {
        let mut at = Some(task);
        while let Some(task) = at {
            at = None;
            let state = self.tasks[task.index()];
            let inherited = state.held().iter().filter_map(|held| self.queues[held.index()].first());
            let effective = inherited.map(|first| self.effective(first)).fold(state.base, Priority::max);
            if effective == state.effective {
                return;
            }
            let state = &mut self.tasks[task.index()];
            state.effective = effective;
            state.epoch = state.epoch.wrapping_add(1);
            act(Action::SetPriority { task, priority: effective, epoch: state.epoch });
            if let Some(resource) = state.waits_for {
                let queue = &mut self.queues[resource.index()];
                let first = queue.first();
                queue.reorder(&mut self.links, task, effective);
                match self.owners[resource.index()] {
                    Some(owner) => at = Some(owner),
                    None if queue.first() != first => self.wake_first(resource, act),
                    None => {}
                }
            }
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

impl<const TASKS: usize, const RESOURCES: usize> Machine for Pip<TASKS, RESOURCES> {
    fn request(&mut self, task: TaskId, resource: ResourceId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
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
        let first = self.queues[resource.index()].first();
        let may_take = owner.is_none() && first.is_none_or(|first| state.effective > self.effective(first));
        if may_take {
            self.take(task, resource, act);
            return Ok(());
        }
        if self.would_wait_for_itself(task, resource) {
            return Err(Refusal::Deadlock);
        }
        let effective = state.effective;
        self.tasks[task.index()].waits_for = Some(resource);
        self.queues[resource.index()].insert(&mut self.links, task, effective);
        if let Some(owner) = owner {
            self.propagate(owner, act);
        }
        act(Action::Block { task, resource });
        Ok(())
    }

    fn release(&mut self, task: TaskId, resource: ResourceId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        let state = self.tasks.get_mut(task.index()).ok_or(Refusal::UnknownTask)?;
        let owner = self.owners.get_mut(resource.index()).ok_or(Refusal::UnknownResource)?;
        if *owner != Some(task) {
            return Err(Refusal::NotHeld);
        }
        if state.waits_for.is_some() {
            return Err(Refusal::Waiting);
        }
        *owner = None;
        let place = state.held().iter().position(|&held| held == resource).expect("an owner holds what it owns");
        state.held.copy_within(place + 1.., place);
        state.depth -= 1;
        // Entries past the depth have one form, so that equal states are equal.
        state.held[usize::from(state.depth)..].fill(ResourceId(0));
        self.wake_first(resource, act);
        self.propagate(task, act);
        Ok(())
    }

    fn woken(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        let state = self.tasks.get(task.index()).ok_or(Refusal::UnknownTask)?;
        let resource = state.waits_for.ok_or(Refusal::NotWaiting)?;
        let queue = &mut self.queues[resource.index()];
        if self.owners[resource.index()].is_none() && queue.first() == Some(task) {
            queue.pop(&mut self.links);
            self.tasks[task.index()].waits_for = None;
            self.take(task, resource, act);
        } else {
            if self.owners[resource.index()].is_none() {
                // A more urgent waiter came before it, and gets the lock.
                self.wake_first(resource, act);
            }
            act(Action::Block { task, resource });
        }
        Ok(())
    }

    fn cancel(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        let state = self.tasks.get_mut(task.index()).ok_or(Refusal::UnknownTask)?;
        let resource = state.waits_for.take().ok_or(Refusal::NotWaiting)?;
        self.queues[resource.index()].remove(&mut self.links, task);
        match self.owners[resource.index()] {
            Some(owner) => self.propagate(owner, act),
            // It may have been woken for a lock that it will not lock: wake the next waiter.
            None => self.wake_first(resource, act),
        }
        act(Action::Wake { task });
        Ok(())
    }

    fn set_base(&mut self, task: TaskId, base: Priority, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.tasks.get_mut(task.index()).ok_or(Refusal::UnknownTask)?.base = base;
        self.propagate(task, act);
        Ok(())
    }
}
