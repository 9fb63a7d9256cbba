//! `ics_lock`: interruptible sections with a lock for the less urgent tasks. A task below the cutoff of a resource
//! locks it before it enters an interruptible section; the ceiling of the lock is the highest priority among these
//! tasks. A task from the cutoff on enters at once.
//!
//! ```text
//!   request   from the cutoff on: as `ics`;  below: as `icpp`, and inside once the lock is granted
//!   release   invalidated: restart, still under the lock;  else: commit, and unlock as `icpp`
//! ```

use crate::ics::Ics;
use crate::parts::handoff::Handoff;
use crate::{Action, DEFAULT_RESOURCES, DEFAULT_TASKS, Machine, Refusal};
use lockwright_model::{Priority, ResourceId, TaskId};

/// Interruptible sections that the less urgent tasks enter under a lock.
///
/// # Bound
/// On one processor, a task above all tasks that lock is never delayed by them. Any other task is delayed by at most
/// one section under a lock, before it starts. For each resource that it commits, a more urgent job without a lock
/// causes at most one section of the jobs below it to be executed again.
///
/// # Reference
/// T. Johnson, K. Harathi, "Interruptible critical sections", University of Florida, 1994.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct IcsLock<const TASKS: usize = DEFAULT_TASKS, const RESOURCES: usize = DEFAULT_RESOURCES> {
    sections: Ics<TASKS, RESOURCES>,
    locks: Handoff<TASKS, RESOURCES>,
    /// By resource: the cutoff, and the ceiling of the lock.
    levels: [(Priority, Priority); RESOURCES],
}

impl<const TASKS: usize, const RESOURCES: usize> IcsLock<TASKS, RESOURCES> {
    /// All tasks are outside. `priorities[t]` is the base priority of task `t`. `levels[r]` is the cutoff of resource
    /// `r` and the ceiling of its lock. Other tasks and resources are refused.
    #[must_use]
    pub fn new(priorities: &[Priority], levels: &[(Priority, Priority)]) -> Self {
        let mut all = [(Priority::MIN, Priority::MIN); RESOURCES];
        for (slot, &level) in all.iter_mut().zip(levels) {
            *slot = level;
        }
        Self { sections: Ics::new(priorities.len(), levels.len()), locks: Handoff::new(priorities), levels: all }
    }

    /// The resource whose section the task is in.
    #[must_use]
    pub fn inside(&self, task: TaskId) -> Option<ResourceId> {
        self.sections.inside(task)
    }

    /// The owner of a resource's lock.
    #[must_use]
    pub fn owner(&self, resource: ResourceId) -> Option<TaskId> {
        self.locks.owner(resource)
    }

    /// For the exhaustive walk: states that differ only in epochs are one.
    #[cfg(test)]
    pub(crate) fn forget_epochs(&mut self) {
        self.sections.forget_epochs();
        self.locks.forget_epochs();
    }
}

impl<const TASKS: usize, const RESOURCES: usize> Machine for IcsLock<TASKS, RESOURCES> {
    fn request(&mut self, task: TaskId, resource: ResourceId, mut act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.sections.may_enter(task, resource)?;
        let (cutoff, ceiling) = self.levels[resource.index()];
        if self.locks.is_waiting(task) {
            return Err(Refusal::Waiting);
        }
        if self.locks.base(task) >= cutoff {
            self.sections.enter(task, resource);
            act(Action::Grant { task, resource });
            return Ok(());
        }
        if self.locks.base(task) > ceiling {
            return Err(Refusal::AboveCeiling);
        }
        self.locks.request(task, resource, ceiling, &mut act)?;
        if self.owner(resource) == Some(task) {
            self.sections.enter(task, resource);
        }
        Ok(())
    }

    /// Commits the section and unlocks, or restarts it.
    fn release(&mut self, task: TaskId, resource: ResourceId, mut act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        if !self.sections.leave(task, resource)? {
            act(Action::Restart { task, resource });
        } else if self.owner(resource) == Some(task) {
            self.locks.release(task, resource, &mut act)?;
            if let Some(next) = self.owner(resource) {
                self.sections.enter(next, resource);
            }
        }
        Ok(())
    }

    fn cancel(&mut self, task: TaskId, mut act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.sections.known(task)?;
        self.locks.cancel(task, &mut act)
    }

    fn set_base(&mut self, task: TaskId, base: Priority, mut act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.sections.known(task)?;
        self.locks.set_base(task, base, &mut act)
    }
}
