//! `dpcp`: the distributed priority ceiling protocol. Sections execute on the home processor of their resource.
//!
//! A job that requests a resource goes to the home of the resource, with its base priority in the boosted band. When it
//! executes there, it rises to the ceiling, which is the highest boosted priority of any user. After the section it
//! goes back.

use crate::parts::distributed::{Distributed, Order};
use crate::{Action, DEFAULT_RESOURCES, DEFAULT_TASKS, Machine, Refusal};
use lockwright_model::{CpuId, Priority, ResourceId, TaskId};

/// Mutexes whose sections execute on the home processor of the resource.
///
/// # Bound
/// A request waits for one section of a less urgent task on the same home, and for the sections of more urgent tasks
/// there. Jobs of a home are delayed by all sections that execute on it.
///
/// # Reference
/// R. Rajkumar, L. Sha, J. P. Lehoczky, "Real-time synchronization protocols for multiprocessors", RTSS 1988.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Dpcp<const TASKS: usize = DEFAULT_TASKS, const RESOURCES: usize = DEFAULT_RESOURCES> {
    distributed: Distributed<TASKS, RESOURCES>,
}

impl<const TASKS: usize, const RESOURCES: usize> Dpcp<TASKS, RESOURCES> {
    /// All resources are free. `tasks[t]` is the base priority and the processor of task `t`. `homes[r]` is the home of
    /// resource `r` and the highest base priority of its users. Other tasks and resources are refused.
    #[must_use]
    pub fn new(tasks: &[(Priority, CpuId)], homes: &[(CpuId, Priority)]) -> Self {
        let homes = homes.iter().map(|&(home, highest)| (home, highest.boosted()));
        Self { distributed: Distributed::new(tasks, homes, Order::Priority) }
    }

    /// Returns the owner of a resource.
    #[must_use]
    pub fn owner(&self, resource: ResourceId) -> Option<TaskId> {
        self.distributed.owner(resource)
    }

    /// For the walk of effects: epochs start at zero again, and levels stay.
    #[cfg(test)]
    pub(crate) fn zero_epochs(&mut self) {
        self.distributed.zero_epochs();
    }

    /// For the exhaustive walk: states that differ only in epochs are one.
    #[cfg(test)]
    pub(crate) fn forget_epochs(&mut self) {
        self.distributed.forget_epochs();
    }
}

impl<const TASKS: usize, const RESOURCES: usize> Machine for Dpcp<TASKS, RESOURCES> {
    fn request(&mut self, task: TaskId, resource: ResourceId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.distributed.request(task, resource, act)
    }

    fn release(&mut self, task: TaskId, resource: ResourceId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.distributed.release(task, resource, act)
    }

    fn woken(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.distributed.woken(task, act)
    }

    fn cancel(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.distributed.cancel(task, act)
    }

    fn set_base(&mut self, task: TaskId, base: Priority, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.distributed.set_base(task, base, act)
    }
}
