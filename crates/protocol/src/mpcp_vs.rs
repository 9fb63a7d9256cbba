//! `mpcp_vs`: `mpcp` with virtual spinning. Waiting counts as execution: while a task has a request, no task of its
//! processor that is at most as urgent starts one.
//!
//! ```text
//!   request   a task of the processor that is at least as urgent has a request, or a more urgent one is woken to
//!             make its request: wait for its end
//!             else as mpcp: rise to the ceiling; free: -> task, grant;  else: queue by priority, wait
//!   release   first waiter w: -> w, grant w, wake w; wake the tasks that wait for the end of this request; fall
//!   woken     as request: the task executes again, at its base priority
//! ```

use crate::parts::single::{Single, Stand};
use crate::{Action, DEFAULT_RESOURCES, DEFAULT_TASKS, Machine, Refusal};
use lockwright_model::{CpuId, MpcpCeiling, Priority, ResourceId, TaskId};

/// Mutexes shared across processors, with waiters that suspend and count as if they spun.
///
/// # Bound
/// One request waits as under [`Mpcp`](crate::Mpcp). Each less urgent task of its processor delays a job at most once,
/// and not at every resumption.
///
/// # Reference
/// K. Lakshmanan, D. de Niz, R. Rajkumar, "Coordinated task scheduling, allocation and synchronization on
/// multiprocessors", RTSS 2009.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct MpcpVs<const TASKS: usize = DEFAULT_TASKS, const RESOURCES: usize = DEFAULT_RESOURCES> {
    single: Single<TASKS, RESOURCES>,
    ceilings: [Option<MpcpCeiling>; RESOURCES],
    /// The tasks that were woken and have not called since.
    awake: [bool; TASKS],
}

impl<const TASKS: usize, const RESOURCES: usize> MpcpVs<TASKS, RESOURCES> {
    /// All resources are free. `tasks[t]` is the base priority and the processor of task `t`, and `ceilings[r]` are the
    /// ceilings of resource `r`. Other tasks and resources are refused.
    #[must_use]
    pub fn new(tasks: &[(Priority, CpuId)], ceilings: &[MpcpCeiling]) -> Self {
        let mut all = [None; RESOURCES];
        for (slot, &ceiling) in all.iter_mut().zip(ceilings) {
            *slot = Some(ceiling);
        }
        Self { single: Single::new(tasks, ceilings.len()), ceilings: all, awake: [false; TASKS] }
    }

    /// Returns the owner of a resource.
    #[must_use]
    pub fn owner(&self, resource: ResourceId) -> Option<TaskId> {
        self.single.owner(resource)
    }

    /// Whether no task of the processor that is at least as urgent has a request, and none that is more urgent was
    /// woken to make one. Such a task executes first, but a less urgent one may be about to call.
    fn may_go_on(&self, task: TaskId) -> bool {
        let base = self.single.base(task);
        !self.single.peers(task).iter().any(|&other| match self.single.stand(other) {
            Stand::Waits(_) | Stand::Holds(_) => other != task && self.single.base(other) >= base,
            Stand::Sent(_) => self.awake[other.index()] && self.single.base(other) > base,
            _ => false,
        })
    }

    /// An executing task requests the resource.
    fn try_once(&mut self, task: TaskId, resource: ResourceId, act: &mut dyn FnMut(Action)) {
        if self.may_go_on(task) {
            let owns = self.single.enter(task, resource, self.single.base(task));
            self.settle(task, act);
            act(if owns { Action::Grant { task, resource } } else { Action::Block { task, resource } });
        } else {
            self.single.send_off(task, resource);
            act(Action::Block { task, resource });
        }
    }

    /// Reports the current priority of a task, if it has changed.
    fn settle(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) {
        let mut priority = self.single.base(task);
        if let Stand::Waits(resource) | Stand::Holds(resource) = self.single.stand(task)
            && let Some(ceiling) = self.ceilings[resource.index()]
        {
            priority = ceiling.on(self.single.own_cpu(task)).max(priority);
        }
        self.single.tell(task, priority, act);
    }

    /// Wakes the tasks that may make their requests after the change of `changed`; they make them when they execute.
    /// Only tasks of its processor wait for it.
    ///
    /// BOUND: a step for each pair of tasks of a processor.
    fn wake(&mut self, changed: TaskId, act: &mut dyn FnMut(Action)) {
        for place in self.single.peer_places(changed) {
            let task = self.single.peer_at(place);
            let is_held_back = matches!(self.single.stand(task), Stand::Sent(_)) && !self.awake[task.index()];
            if is_held_back && self.may_go_on(task) {
                self.awake[task.index()] = true;
                act(Action::Wake { task });
            }
        }
    }

    /// The plain form of [`MpcpVs::wake`], over all tasks of each processor, to which the tests compare it.
    #[cfg(test)]
    pub(crate) fn settle_all(&mut self, act: &mut dyn FnMut(Action)) {
        for task in self.single.tasks() {
            let is_before = |&other: &TaskId| {
                let (base, least) = (self.single.base(other), self.single.base(task));
                let comes_first = match self.single.stand(other) {
                    Stand::Waits(_) | Stand::Holds(_) => base >= least,
                    Stand::Sent(_) => self.awake[other.index()] && base > least,
                    _ => false,
                };
                comes_first && other != task && self.single.own_cpu(other) == self.single.own_cpu(task)
            };
            let is_held_back = matches!(self.single.stand(task), Stand::Sent(_)) && !self.awake[task.index()];
            if is_held_back && !self.single.tasks().any(|other| is_before(&other)) {
                act(Action::Wake { task });
            }
        }
    }

    /// For the exhaustive walk: states that differ only in epochs are one.
    #[cfg(test)]
    pub(crate) fn forget_epochs(&mut self) {
        self.single.forget_epochs();
    }
}

impl<const TASKS: usize, const RESOURCES: usize> Machine for MpcpVs<TASKS, RESOURCES> {
    fn request(&mut self, task: TaskId, resource: ResourceId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.single.may_ask(task, resource)?;
        self.try_once(task, resource, act);
        Ok(())
    }

    fn release(&mut self, task: TaskId, resource: ResourceId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        if let Some(next) = self.single.exit(task, resource)? {
            act(Action::Grant { task: next, resource });
            act(Action::Wake { task: next });
        }
        self.wake(task, act);
        self.settle(task, act);
        Ok(())
    }

    fn woken(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        let Stand::Sent(resource) = self.single.stand_known(task)? else { return Err(Refusal::NotWaiting) };
        self.awake[task.index()] = false;
        self.try_once(task, resource, act);
        Ok(())
    }

    fn cancel(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.single.give_up(task)?;
        self.awake[task.index()] = false;
        self.wake(task, act);
        act(Action::Wake { task });
        self.settle(task, act);
        Ok(())
    }

    fn set_base(&mut self, task: TaskId, base: Priority, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.single.set_base(task, base)?;
        self.single.reorder(task, base);
        self.wake(task, act);
        self.settle(task, act);
        Ok(())
    }
}
