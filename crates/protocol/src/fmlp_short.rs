//! `fmlp_short`, and the global resources of `msrp`: a spinlock without preemption, first come, first served.
//!
//! ```text
//!   request   not preempted any more; free: -> task, grant;  else: queue, spin
//!   release   first waiter w: -> w, grant w;  else: -> none;  may be preempted again
//! ```

use crate::parts::single::Single;
use crate::{Action, DEFAULT_RESOURCES, DEFAULT_TASKS, Machine, Refusal};
use lockwright_model::{CpuId, Priority, ResourceId, TaskId};

/// Spinlocks for short sections.
///
/// # Bound
/// A request waits for at most one section of each other processor. When a job arrives, it is also delayed by at most
/// one less urgent task of its processor that spins or holds a resource.
///
/// # Reference
/// A. Block, H. Leontyev, B. Brandenburg, J. Anderson, "A flexible real-time locking protocol for multiprocessors",
/// RTCSA 2007; P. Gai, G. Lipari, M. Di Natale, "Minimizing memory utilization of real-time task sets in single and
/// multi-processor systems-on-a-chip", RTSS 2001.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct FmlpShort<const TASKS: usize = DEFAULT_TASKS, const RESOURCES: usize = DEFAULT_RESOURCES> {
    single: Single<TASKS, RESOURCES>,
}

impl<const TASKS: usize, const RESOURCES: usize> FmlpShort<TASKS, RESOURCES> {
    /// All resources are free. `tasks[t]` is the base priority and the processor of task `t`. Other tasks and resources
    /// are refused.
    #[must_use]
    pub fn new(tasks: &[(Priority, CpuId)], resources: usize) -> Self {
        Self { single: Single::new(tasks, resources) }
    }

    /// Returns the owner of a resource.
    #[must_use]
    pub fn owner(&self, resource: ResourceId) -> Option<TaskId> {
        self.single.owner(resource)
    }

    /// For the exhaustive walk: states that differ only in epochs are one.
    #[cfg(test)]
    pub(crate) fn forget_epochs(&mut self) {
        self.single.forget_epochs();
    }
}

impl<const TASKS: usize, const RESOURCES: usize> Machine for FmlpShort<TASKS, RESOURCES> {
    fn request(&mut self, task: TaskId, resource: ResourceId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.single.may_ask(task, resource)?;
        self.single.tell(task, Priority::NON_PREEMPTIVE, act);
        act(if self.single.enter(task, resource, Priority::MIN) {
            Action::Grant { task, resource }
        } else {
            Action::Spin { task, resource }
        });
        Ok(())
    }

    fn release(&mut self, task: TaskId, resource: ResourceId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        if let Some(next) = self.single.exit(task, resource)? {
            act(Action::Grant { task: next, resource });
        }
        self.single.tell(task, self.single.base(task), act);
        Ok(())
    }

    fn cancel(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.single.give_up(task)?;
        self.single.tell(task, self.single.base(task), act);
        Ok(())
    }

    fn set_base(&mut self, task: TaskId, base: Priority, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.single.set_base(task, base)?;
        if self.single.stand(task) == crate::parts::single::Stand::Idle {
            self.single.tell(task, base, act);
        }
        Ok(())
    }
}
