//! `dflp`: the distributed FMLP. Sections execute on the home processor of their resource, in the order of the
//! requests.
//!
//! A job that requests a resource goes to the home of the resource, boosted below all earlier requests there. After the
//! section it goes back.

use crate::parts::distributed::{Distributed, Order};
use crate::parts::request_order::RequestOrder;
use crate::{Action, DEFAULT_RESOURCES, DEFAULT_TASKS, Machine, Refusal};
use lockwright_model::{CpuId, Priority, ResourceId, TaskId};

/// Mutexes whose sections execute on the home processor of the resource, first come, first served.
///
/// # Bound
/// Each other task delays a job by at most as many sections on a home as the job has requests there. Jobs of a home are
/// delayed by all sections that execute on it.
///
/// # Reference
/// B. Brandenburg, "Improved analysis and evaluation of real-time semaphore protocols for P-FP scheduling", RTAS 2013.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Dflp<const TASKS: usize = DEFAULT_TASKS, const RESOURCES: usize = DEFAULT_RESOURCES> {
    distributed: Distributed<TASKS, RESOURCES>,
}

impl<const TASKS: usize, const RESOURCES: usize> Dflp<TASKS, RESOURCES> {
    /// All resources are free. `tasks[t]` is the base priority and the processor of task `t`, and `homes[r]` is the
    /// home of resource `r`. Other tasks and resources are refused.
    #[must_use]
    pub fn new(tasks: &[(Priority, CpuId)], homes: &[CpuId]) -> Self {
        let homes = homes.iter().map(|&home| (home, Priority::MIN));
        Self { distributed: Distributed::new(tasks, homes, Order::Arrival(RequestOrder::new(tasks.len()))) }
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

    /// For the exhaustive walk: states that differ only in epochs and in gaps between levels are one.
    #[cfg(test)]
    pub(crate) fn forget_epochs(&mut self) {
        self.distributed.forget_epochs();
    }
}

impl<const TASKS: usize, const RESOURCES: usize> Machine for Dflp<TASKS, RESOURCES> {
    fn settles_others_at_once(&self) -> bool {
        true
    }

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
