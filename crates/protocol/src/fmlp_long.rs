//! `fmlp_long`: first come, first served. The owner is at least as urgent as its most urgent waiter.
//!
//! ```text
//!   request   free: -> task, grant;  else: queue, owner inherits, wait
//!   release   first waiter w: -> w, w inherits from the rest, grant w, wake w;  else: -> none;  fall
//! ```

use crate::parts::single::{Single, Stand};
use crate::{Action, DEFAULT_RESOURCES, DEFAULT_TASKS, Machine, Refusal};
use lockwright_model::{CpuId, Priority, ResourceId, TaskId};

/// Mutexes for long sections.
///
/// # Bound
/// A request waits for one section of each other user. Each of these is delayed by all jobs on its processor that are
/// at least as urgent as the waiting job. Across processors, inherited priorities help little, so this is much; the
/// bound of `fmlp_plus` is better.
///
/// # Reference
/// A. Block, H. Leontyev, B. Brandenburg, J. Anderson, "A flexible real-time locking protocol for multiprocessors",
/// RTCSA 2007. The priority of the owner follows the implementation in RTEMS.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct FmlpLong<const TASKS: usize = DEFAULT_TASKS, const RESOURCES: usize = DEFAULT_RESOURCES> {
    single: Single<TASKS, RESOURCES>,
}

impl<const TASKS: usize, const RESOURCES: usize> FmlpLong<TASKS, RESOURCES> {
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

    /// Reports the current priority of a task, if it has changed. A waiting task inherits nothing, because requests are
    /// not nested.
    ///
    /// BOUND: a step for each waiter.
    fn settle(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) {
        let mut priority = self.single.base(task);
        if let Stand::Holds(held) = self.single.stand(task) {
            priority = self.single.waiters(held).map(|waiter| self.single.base(waiter)).fold(priority, Priority::max);
        }
        self.single.tell(task, priority, act);
    }

    /// For the walk of effects: epochs start at zero again, and levels stay.
    #[cfg(test)]
    pub(crate) fn zero_epochs(&mut self) {
        self.single.forget_epochs();
    }

    /// The plain form of [`FmlpLong::settle`], over all waiters of all owners, to which the tests compare it.
    #[cfg(test)]
    pub(crate) fn settle_all(&mut self, act: &mut dyn FnMut(Action)) {
        for task in self.single.tasks() {
            let held = match self.single.stand(task) {
                Stand::Holds(held) => Some(held),
                _ => None,
            };
            let waits = |&other: &TaskId| matches!(self.single.stand(other), Stand::Waits(on) if Some(on) == held);
            let waiting = self.single.tasks().filter(waits).map(|other| self.single.base(other));
            let priority = waiting.fold(self.single.base(task), Priority::max);
            self.single.tell(task, priority, act);
        }
    }

    /// For the exhaustive walk: states that differ only in epochs are one.
    #[cfg(test)]
    pub(crate) fn forget_epochs(&mut self) {
        self.single.forget_epochs();
    }
}

impl<const TASKS: usize, const RESOURCES: usize> Machine for FmlpLong<TASKS, RESOURCES> {
    fn request(&mut self, task: TaskId, resource: ResourceId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.single.may_ask(task, resource)?;
        if self.single.enter(task, resource, Priority::MIN) {
            act(Action::Grant { task, resource });
        } else {
            if let Some(owner) = self.single.owner(resource) {
                self.settle(owner, act);
            }
            act(Action::Block { task, resource });
        }
        Ok(())
    }

    fn release(&mut self, task: TaskId, resource: ResourceId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        if let Some(next) = self.single.exit(task, resource)? {
            self.settle(next, act);
            act(Action::Grant { task: next, resource });
            act(Action::Wake { task: next });
        }
        self.settle(task, act);
        Ok(())
    }

    fn cancel(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        if let Stand::Waits(resource) = self.single.give_up(task)?
            && let Some(owner) = self.single.owner(resource)
        {
            self.settle(owner, act);
        }
        act(Action::Wake { task });
        Ok(())
    }

    fn set_base(&mut self, task: TaskId, base: Priority, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.single.set_base(task, base)?;
        self.settle(task, act);
        if let Stand::Waits(resource) = self.single.stand(task)
            && let Some(owner) = self.single.owner(resource)
        {
            self.settle(owner, act);
        }
        Ok(())
    }
}
