//! `icpp`: the immediate priority ceiling protocol (POSIX: `PTHREAD_PRIO_PROTECT`).
//!
//! A job rises to the ceiling of a resource as soon as it requests the resource. So on one processor, with jobs that
//! never suspend, a job always finds the resource free. If the resource is shared across processors, the job may have
//! to wait.

use crate::parts::handoff::Handoff;
use crate::{Action, DEFAULT_RESOURCES, DEFAULT_TASKS, Machine, Refusal};
use lockwright_model::{Priority, ResourceId, TaskId};

/// Mutexes with an immediate ceiling.
///
/// # Bound
/// On one processor, a job is delayed by at most one section of a less urgent task, before it starts. Across processors
/// there is no useful bound.
///
/// # Reference
/// L. Sha, R. Rajkumar, J. P. Lehoczky, "Priority Inheritance Protocols", IEEE Transactions on Computers 39(9), 1990
/// (the ceiling); IEEE Std 1003.1 (the immediate form).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Icpp<const TASKS: usize = DEFAULT_TASKS, const RESOURCES: usize = DEFAULT_RESOURCES> {
    handoff: Handoff<TASKS, RESOURCES>,
    ceilings: [Priority; RESOURCES],
}

impl<const TASKS: usize, const RESOURCES: usize> Icpp<TASKS, RESOURCES> {
    /// All resources are free. `priorities[t]` is the base priority of task `t`, and `ceilings[r]` is the ceiling of
    /// resource `r`. Other tasks have the least priority, and other resources have the least ceiling.
    #[must_use]
    pub fn new(priorities: &[Priority], ceilings: &[Priority]) -> Self {
        let mut all = [Priority::MIN; RESOURCES];
        let known = ceilings.len().min(RESOURCES);
        all[..known].copy_from_slice(&ceilings[..known]);
        Self { handoff: Handoff::new(priorities), ceilings: all }
    }

    /// Returns the owner of a resource.
    #[must_use]
    pub fn owner(&self, resource: ResourceId) -> Option<TaskId> {
        self.handoff.owner(resource)
    }

    /// The effective priority of a task, ceilings included. An unknown task has the least priority.
    #[must_use]
    pub fn effective(&self, task: TaskId) -> Priority {
        self.handoff.effective(task)
    }

    /// For the exhaustive walk: states that differ only in epochs are one.
    #[cfg(test)]
    pub(crate) fn forget_epochs(&mut self) {
        self.handoff.forget_epochs();
    }
}

impl<const TASKS: usize, const RESOURCES: usize> Machine for Icpp<TASKS, RESOURCES> {
    fn request(&mut self, task: TaskId, resource: ResourceId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        let ceiling = *self.ceilings.get(resource.index()).ok_or(Refusal::UnknownResource)?;
        if self.handoff.base(task) > ceiling {
            return Err(Refusal::AboveCeiling);
        }
        self.handoff.request(task, resource, ceiling, act)
    }

    fn release(&mut self, task: TaskId, resource: ResourceId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.handoff.release(task, resource, act)
    }

    fn cancel(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.handoff.cancel(task, act)
    }

    fn set_base(&mut self, task: TaskId, base: Priority, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.handoff.set_base(task, base, act)
    }
}
