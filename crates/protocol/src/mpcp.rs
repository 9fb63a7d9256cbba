//! `mpcp`: the multiprocessor priority ceiling protocol, for resources shared across processors.
//!
//! A job that asks rises above every base priority, to the ceiling that the resource has on its processor, and
//! if it must wait, waits with it: when the resource is handed to it, it preempts whatever executes
//! there but more urgent sections of the same kind. The waiters are served by base priority.

use crate::parts::handoff::Handoff;
use crate::{Action, DEFAULT_RESOURCES, DEFAULT_TASKS, Machine, Refusal};
use lockwright_model::{CpuId, MpcpCeiling, Priority, ResourceId, TaskId};

/// Mutexes shared across processors.
///
/// # Bound
/// One request waits for at most one section of a less urgent task and for those of more urgent tasks
/// that come before it, each stretched only by more urgent sections on its own processor; and at every
/// arrival and resumption a job is delayed by at most one section of each less urgent task of its processor.
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
    /// All resources free; `tasks[t]` is the base priority and the processor of task `t`, `ceilings[r]` the
    /// ceilings of resource `r`. Tasks beyond have the least priority; resources beyond are refused.
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
