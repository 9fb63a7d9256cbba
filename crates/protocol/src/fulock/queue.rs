//! `fuqueue`: tasks that wait, in order of priority, for somebody to wake them. Nobody owns anything.
//!
//! ```text
//!   task     wait          wake(n)                                  cancel         set_priority
//!   runs     queue, wait   -                                        refused        noted
//!   waits    refused       the n most urgent leave the queue, wake  leaves, wake   queued anew, behind its equals
//! ```
//!
//! What waits here is what a condition variable needs, and what [`Fulock`](super::Fulock) stands on.

use crate::queue::{Links, WaitQueue};
use crate::{Action, DEFAULT_RESOURCES, DEFAULT_TASKS, Refusal};
use lockwright_model::{Priority, ResourceId, TaskId};

/// Queues of tasks by priority, first come first served among equals. A task waits in at most one.
///
/// # Bound
/// Waking, cancelling and leaving take no loop over waiters; queueing takes one step for each more urgent level that
/// somebody waits at, so at most as many as there are levels (on Linux: about a hundred). A waiter is overtaken by more
/// urgent ones only.
///
/// # Reference
/// The fusyn paper: real-time and robust synchronization for Linux. Linux Symposium 2004.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Fuqueue<const TASKS: usize = DEFAULT_TASKS, const QUEUES: usize = DEFAULT_RESOURCES> {
    queues: [WaitQueue; QUEUES],
    links: Links<TaskId, TASKS>,
    tasks: [Waiter; TASKS],
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Waiter {
    priority: Priority,
    waits_for: Option<ResourceId>,
}

impl<const TASKS: usize, const QUEUES: usize> Fuqueue<TASKS, QUEUES> {
    /// Nobody waits; `priorities[t]` is the priority of task `t`, and tasks beyond have the least.
    #[must_use]
    pub fn new(priorities: &[Priority]) -> Self {
        let mut tasks = [Waiter { priority: Priority::MIN, waits_for: None }; TASKS];
        for (task, &priority) in tasks.iter_mut().zip(priorities) {
            task.priority = priority;
        }
        Self { queues: [WaitQueue::EMPTY; QUEUES], links: Links::new(), tasks }
    }

    /// The first waiter of a queue.
    #[must_use]
    pub fn first(&self, queue: ResourceId) -> Option<TaskId> {
        self.queues.get(queue.index())?.first()
    }

    /// The waiters of a queue, in order.
    pub fn waiters(&self, queue: ResourceId) -> impl Iterator<Item = TaskId> {
        self.queues.get(queue.index()).copied().unwrap_or(WaitQueue::EMPTY).iter(&self.links)
    }

    /// Where a task waits.
    #[must_use]
    pub fn waits_for(&self, task: TaskId) -> Option<ResourceId> {
        self.tasks.get(task.index())?.waits_for
    }

    /// The priority by which a task is or would be queued. Unknown tasks have the least.
    #[must_use]
    pub fn priority(&self, task: TaskId) -> Priority {
        self.tasks.get(task.index()).map_or(Priority::MIN, |task| task.priority)
    }

    /// `task` waits.
    ///
    /// # Errors
    /// Unknown ids, [`Refusal::Waiting`].
    pub fn wait(&mut self, task: TaskId, queue: ResourceId, act: &mut impl FnMut(Action)) -> Result<(), Refusal> {
        let waiter = self.tasks.get_mut(task.index()).ok_or(Refusal::UnknownTask)?;
        let waiters = self.queues.get_mut(queue.index()).ok_or(Refusal::UnknownResource)?;
        if waiter.waits_for.is_some() {
            return Err(Refusal::Waiting);
        }
        waiter.waits_for = Some(queue);
        waiters.insert(&mut self.links, task, waiter.priority);
        act(Action::Block { task, resource: queue });
        Ok(())
    }

    /// The `count` most urgent waiters, or all if fewer wait, wait no longer.
    ///
    /// # Errors
    /// [`Refusal::UnknownResource`].
    pub fn wake(&mut self, queue: ResourceId, count: usize, act: &mut impl FnMut(Action)) -> Result<(), Refusal> {
        if queue.index() >= QUEUES {
            return Err(Refusal::UnknownResource);
        }
        // BOUND: one step a waiter, at most `TASKS`.
        for _ in 0..count {
            let Some(task) = self.take_first(queue) else { break };
            act(Action::Wake { task });
        }
        Ok(())
    }

    /// A waiting task gives up.
    ///
    /// # Errors
    /// [`Refusal::UnknownTask`], [`Refusal::NotWaiting`]: it may have been woken already.
    pub fn cancel(&mut self, task: TaskId, act: &mut impl FnMut(Action)) -> Result<(), Refusal> {
        if task.index() >= TASKS {
            return Err(Refusal::UnknownTask);
        }
        self.leave(task).ok_or(Refusal::NotWaiting)?;
        act(Action::Wake { task });
        Ok(())
    }

    /// The priority of `task` changes; a waiting task goes where it belongs, behind its equals.
    ///
    /// # Errors
    /// [`Refusal::UnknownTask`].
    pub fn set_priority(&mut self, task: TaskId, priority: Priority) -> Result<(), Refusal> {
        let waiter = self.tasks.get_mut(task.index()).ok_or(Refusal::UnknownTask)?;
        waiter.priority = priority;
        if let Some(queue) = waiter.waits_for {
            self.queues[queue.index()].reorder(&mut self.links, task, priority);
        }
        Ok(())
    }

    /// The first waiter waits no longer, and nobody is told.
    pub(super) fn take_first(&mut self, queue: ResourceId) -> Option<TaskId> {
        let first = self.queues[queue.index()].pop(&mut self.links)?;
        self.tasks[first.index()].waits_for = None;
        Some(first)
    }

    /// `task` waits no longer, and nobody is told; says where it waited.
    pub(super) fn leave(&mut self, task: TaskId) -> Option<ResourceId> {
        let queue = self.tasks[task.index()].waits_for.take()?;
        self.queues[queue.index()].remove(&mut self.links, task);
        Some(queue)
    }
}
