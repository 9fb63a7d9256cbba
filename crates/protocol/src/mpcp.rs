//! `mpcp`: the multiprocessor priority ceiling protocol, for resources shared across processors.
//!
//! A job that requests a resource rises above every base priority, to the ceiling of the resource on the processor of
//! the job. If it must wait, it waits at that ceiling. When the resource is handed to it, it preempts every job on its
//! processor except those in more urgent sections of the same kind. Waiters are served by base priority.

use crate::parts::handoff::Handoff;
use crate::{Action, DEFAULT_RESOURCES, DEFAULT_TASKS, Machine, Refusal};
use lockwright_model::{CpuId, MpcpCeiling, Priority, ResourceId, TaskId};

/// Mutexes shared across processors.
///
/// # Bound
/// One request waits for at most one section of a less urgent task, and for the sections of more urgent tasks that are
/// served before it. Only more urgent sections on its own processor prolong each of these. At every arrival and
/// resumption, a job is also delayed by at most one section of each less urgent task of its processor.
///
/// # Reference
/// R. Rajkumar, "Real-time synchronization protocols for shared memory multiprocessors", ICDCS 1990.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Mpcp<const TASKS: usize = DEFAULT_TASKS, const RESOURCES: usize = DEFAULT_RESOURCES> {
    handoff: Handoff<TASKS, RESOURCES>,
    ceilings: [Option<MpcpCeiling>; RESOURCES],
    cpus: [CpuId; TASKS],
}

impl<const TASKS: usize, const RESOURCES: usize> Mpcp<TASKS, RESOURCES> {
    /// All resources are free. `tasks[t]` is the base priority and the processor of task `t`, and `ceilings[r]` are the
    /// ceilings of resource `r`. Other tasks have the least priority; other resources are refused.
    #[must_use]
    pub fn new(tasks: &[(Priority, CpuId)], ceilings: &[MpcpCeiling]) -> Self {
        let mut priorities = [Priority::MIN; TASKS];
        let mut cpus = [CpuId(0); TASKS];
        for (index, &(priority, cpu)) in tasks.iter().take(TASKS).enumerate() {
            (priorities[index], cpus[index]) = (priority, cpu);
        }
        let mut all = [None; RESOURCES];
        for (slot, &ceiling) in all.iter_mut().zip(ceilings) {
            *slot = Some(ceiling);
        }
        Self { handoff: Handoff::new(&priorities), ceilings: all, cpus }
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

impl<const TASKS: usize, const RESOURCES: usize> Machine for Mpcp<TASKS, RESOURCES> {
    fn request(&mut self, task: TaskId, resource: ResourceId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        let cpu = *self.cpus.get(task.index()).ok_or(Refusal::UnknownTask)?;
        let ceiling = self.ceilings.get(resource.index()).copied().flatten().ok_or(Refusal::UnknownResource)?;
        self.handoff.request(task, resource, ceiling.on(cpu), act)
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
