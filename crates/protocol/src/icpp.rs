//! `icpp`: the immediate priority ceiling protocol (POSIX: `PTHREAD_PRIO_PROTECT`).
//!
//! A job rises to the ceiling of a resource as soon as it asks for it. On one processor, with jobs that never
//! suspend, it therefore never finds a resource taken. Shared across processors it may, and then it waits.

use crate::parts::handoff::Handoff;
use crate::{Action, DEFAULT_RESOURCES, DEFAULT_TASKS, Refusal};
use lockwright_model::{Priority, ResourceId, TaskId};

/// Mutexes with an immediate ceiling.
///
/// # Bound
/// On one processor a job is delayed by at most one section of a less urgent task, before it starts. Across
/// processors there is no useful bound.
///
/// # Reference
/// L. Sha, R. Rajkumar, J. P. Lehoczky, IEEE Transactions on Computers 39(9), 1990 (the ceiling); IEEE Std 1003.1 (the immediate form).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Icpp<const TASKS: usize = DEFAULT_TASKS, const RESOURCES: usize = DEFAULT_RESOURCES> {
    handoff: Handoff<TASKS, RESOURCES>,
    ceilings: [Priority; RESOURCES],
}

impl<const TASKS: usize, const RESOURCES: usize> Icpp<TASKS, RESOURCES> {
    /// All resources free; `priorities[t]` is the base priority of task `t`, `ceilings[r]` the ceiling of
    /// resource `r`. Tasks beyond have the least priority, resources beyond the least ceiling.
    #[must_use]
    pub fn new(priorities: &[Priority], ceilings: &[Priority]) -> Self {
        let mut all = [Priority::MIN; RESOURCES];
        let known = ceilings.len().min(RESOURCES);
        all[..known].copy_from_slice(&ceilings[..known]);
        Self { handoff: Handoff::new(priorities), ceilings: all }
    }

    /// The owner of a resource.
    #[must_use]
    pub fn owner(&self, resource: ResourceId) -> Option<TaskId> {
        self.handoff.owner(resource)
    }

    /// The priority of a task, ceilings included. Unknown tasks have the least.
    #[must_use]
    pub fn effective(&self, task: TaskId) -> Priority {
        self.handoff.effective(task)
    }

    /// `task` asks for `resource`.
    ///
    /// # Errors
    /// Unknown ids, [`Refusal::AlreadyHeld`], [`Refusal::Waiting`], [`Refusal::TooDeep`],
    /// [`Refusal::Deadlock`], [`Refusal::AboveCeiling`].
    pub fn request(&mut self, task: TaskId, resource: ResourceId, act: &mut impl FnMut(Action)) -> Result<(), Refusal> {
        let ceiling = *self.ceilings.get(resource.index()).ok_or(Refusal::UnknownResource)?;
        if self.handoff.base(task) > ceiling {
            return Err(Refusal::AboveCeiling);
        }
        self.handoff.request(task, resource, ceiling, act)
    }

    /// `task` gives `resource` back.
    ///
    /// # Errors
    /// Unknown ids, [`Refusal::NotHeld`], [`Refusal::Waiting`].
    pub fn release(&mut self, task: TaskId, resource: ResourceId, act: &mut impl FnMut(Action)) -> Result<(), Refusal> {
        self.handoff.release(task, resource, act)
    }

    /// A waiting task gives up.
    ///
    /// # Errors
    /// [`Refusal::UnknownTask`], [`Refusal::NotWaiting`].
    pub fn cancel(&mut self, task: TaskId, act: &mut impl FnMut(Action)) -> Result<(), Refusal> {
        self.handoff.cancel(task, act)
    }

    /// The base priority of `task` changes, while it runs, holds or waits.
    ///
    /// # Errors
    /// [`Refusal::UnknownTask`].
    pub fn set_base(&mut self, task: TaskId, base: Priority, act: &mut impl FnMut(Action)) -> Result<(), Refusal> {
        self.handoff.set_base(task, base, act)
    }

    /// For the exhaustive walk: states that differ only in epochs are one.
    #[cfg(test)]
    pub(crate) fn forget_epochs(&mut self) {
        self.handoff.forget_epochs();
    }
}
