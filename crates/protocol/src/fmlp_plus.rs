//! `fmlp_plus`: first come, first served. Holders are boosted in the order of the requests.
//!
//! ```text
//!   request   boosted below all earlier requests of the processor; free: -> task, grant;  else: queue, wait
//!   release   first waiter w: -> w, grant w, wake w;  else: -> none;  fall
//! ```
//!
//! When the levels of requests run out, the requests of the processor get new levels. The tasks get them in the order
//! of their requests, as in `parts/distributed.rs`.

use crate::parts::request_order::RequestOrder;
use crate::parts::single::{Single, Stand};
use crate::{Action, DEFAULT_RESOURCES, DEFAULT_TASKS, Machine, Refusal};
use lockwright_model::{CpuId, Priority, ResourceId, TaskId};

/// Mutexes for long sections, under partitioned scheduling.
///
/// # Bound
/// Each other task delays a job by at most as many sections as it has opportunities to get before the job, for whatever
/// resources the requests are. No request is passed by a later one, neither in a queue nor on a processor.
///
/// # Reference
/// B. Brandenburg, "Scheduling and Locking in Multiprocessor Real-Time Operating Systems", dissertation, 2011, chapter
/// 6.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct FmlpPlus<const TASKS: usize = DEFAULT_TASKS, const RESOURCES: usize = DEFAULT_RESOURCES> {
    single: Single<TASKS, RESOURCES>,
    order: RequestOrder<TASKS>,
}

impl<const TASKS: usize, const RESOURCES: usize> FmlpPlus<TASKS, RESOURCES> {
    /// All resources are free. `tasks[t]` is the base priority and the processor of task `t`. Other tasks and resources
    /// are refused.
    #[must_use]
    pub fn new(tasks: &[(Priority, CpuId)], resources: usize) -> Self {
        let on = |cpu| tasks.iter().filter(|task| task.1 == cpu).count();
        let most = tasks.iter().map(|task| on(task.1)).max().unwrap_or(0);
        Self { single: Single::new(tasks, resources), order: RequestOrder::new(most) }
    }

    /// Returns the owner of a resource.
    #[must_use]
    pub fn owner(&self, resource: ResourceId) -> Option<TaskId> {
        self.single.owner(resource)
    }

    /// Reports the current priority of a task, if it has changed.
    fn settle(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) {
        let priority = self.order.priority(task).unwrap_or(self.single.base(task));
        self.single.tell(task, priority, act);
    }

    /// For the walk of effects: epochs start at zero again, and levels stay.
    #[cfg(test)]
    pub(crate) fn zero_epochs(&mut self) {
        self.single.forget_epochs();
    }

    /// For the exhaustive walk: states that differ only in epochs and in gaps between levels are one.
    #[cfg(test)]
    pub(crate) fn forget_epochs(&mut self) {
        self.single.forget_epochs();
        self.order.forget_gaps();
        for task in self.single.tasks() {
            self.settle(task, &mut |_| ());
        }
        self.single.forget_epochs();
    }
}

impl<const TASKS: usize, const RESOURCES: usize> Machine for FmlpPlus<TASKS, RESOURCES> {
    fn settles_others_at_once(&self) -> bool {
        true
    }

    fn request(&mut self, task: TaskId, resource: ResourceId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.single.may_ask(task, resource)?;
        let cpu = self.single.own_cpu(task);
        if self.order.push(task, cpu) {
            let mut place = 0;
            // BOUND: one round for each request.
            while let Some((other, there)) = self.order.get(place) {
                if there == cpu && other != task {
                    self.settle(other, act);
                }
                place += 1;
            }
        }
        self.settle(task, act);
        act(if self.single.enter(task, resource, Priority::MIN) {
            Action::Grant { task, resource }
        } else {
            Action::Block { task, resource }
        });
        Ok(())
    }

    fn release(&mut self, task: TaskId, resource: ResourceId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        if let Some(next) = self.single.exit(task, resource)? {
            act(Action::Grant { task: next, resource });
            act(Action::Wake { task: next });
        }
        self.order.remove(task);
        self.settle(task, act);
        Ok(())
    }

    fn cancel(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.single.give_up(task)?;
        self.order.remove(task);
        act(Action::Wake { task });
        self.settle(task, act);
        Ok(())
    }

    fn set_base(&mut self, task: TaskId, base: Priority, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.single.set_base(task, base)?;
        if self.single.stand(task) == Stand::Idle {
            self.settle(task, act);
        }
        Ok(())
    }
}
