//! `fuqueue`: queues of tasks in order of priority, without owners.
//!
//! ```text
//!   task     wait          wake(n)                                   cancel         set_priority
//!   runs     queue, wait   -                                         refused        noted
//!   waits    refused       the n most urgent leave the queue, wake   leaves, wake   queued anew, behind its equals
//! ```
//!
//! This is what a condition variable needs, and what [`Fulock`](super::Fulock) is built on.

use crate::parts::queue::{Links, WaitQueue};
use crate::{Action, DEFAULT_RESOURCES, DEFAULT_TASKS, Refusal};
use lockwright_model::{Priority, ResourceId, TaskId};

/// Queues of tasks by priority, first come, first served among equals. A task waits in at most one queue.
///
/// # Bound
/// Waking, cancelling and leaving have no loop over waiters. Queueing takes one step for each more urgent level with a
/// waiter, so at most as many steps as there are levels (about a hundred on Linux). A waiter is overtaken by more
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
    /// All queues are empty. `priorities[t]` is the priority of task `t`; other tasks have the least priority.
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
        // BOUND: one step for each waiter, at most `TASKS`.
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

    /// Removes the first waiter, without an action.
    pub(super) fn take_first(&mut self, queue: ResourceId) -> Option<TaskId> {
        let first = self.queues[queue.index()].pop(&mut self.links)?;
        self.tasks[first.index()].waits_for = None;
        Some(first)
    }

    /// Removes `task` from its queue, without an action. Returns the queue.
    pub(super) fn leave(&mut self, task: TaskId) -> Option<ResourceId> {
        let queue = self.tasks[task.index()].waits_for.take()?;
        self.queues[queue.index()].remove(&mut self.links, task);
        Some(queue)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::testing::{STATES_MOST, check_states, reach_at_most};
    use std::vec::Vec;

    const TASKS: usize = 3;
    const QUEUES: usize = 2;
    const LEVELS: u32 = 2;

    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    enum Event {
        Wait(usize, usize),
        Wake(usize, usize),
        Cancel(usize),
        Change(usize, u32),
    }

    /// The waiting tasks with their queues and priorities, in order of arrival or of the last change.
    #[derive(Clone, PartialEq, Eq, Hash)]
    struct Shadow {
        waiting: Vec<(usize, usize)>,
        levels: [u32; TASKS],
    }

    impl Shadow {
        fn queue(&self, queue: usize) -> Vec<usize> {
            let mut order: Vec<usize> =
                self.waiting.iter().filter(|waiting| waiting.1 == queue).map(|waiting| waiting.0).collect();
            order.sort_by_key(|&task| core::cmp::Reverse(self.levels[task]));
            order
        }

        /// The answer that the rules demand.
        fn follow(&mut self, event: Event) -> Result<Vec<Action>, Refusal> {
            let waits = |task: usize| self.waiting.iter().position(|waiting| waiting.0 == task);
            let wake = |task: usize| Action::Wake { task: TaskId::new(task) };
            match event {
                Event::Wait(task, _) if waits(task).is_some() => Err(Refusal::Waiting),
                Event::Wait(task, queue) => {
                    self.waiting.push((task, queue));
                    Ok(std::vec![Action::Block { task: TaskId::new(task), resource: ResourceId::new(queue) }])
                }
                Event::Wake(queue, count) => {
                    let woken: Vec<usize> = self.queue(queue).into_iter().take(count).collect();
                    self.waiting.retain(|waiting| !woken.contains(&waiting.0));
                    Ok(woken.into_iter().map(wake).collect())
                }
                Event::Cancel(task) => {
                    self.waiting.remove(waits(task).ok_or(Refusal::NotWaiting)?);
                    Ok(std::vec![wake(task)])
                }
                Event::Change(task, level) => {
                    if let Some(place) = waits(task).filter(|_| self.levels[task] != level) {
                        let waiting = self.waiting.remove(place);
                        self.waiting.push(waiting);
                    }
                    self.levels[task] = level;
                    Ok(Vec::new())
                }
            }
        }
    }

    type Machine = Fuqueue<TASKS, QUEUES>;

    fn apply(machine: &mut Machine, event: Event) -> Result<Vec<Action>, Refusal> {
        let mut actions = Vec::new();
        let act = &mut |action| actions.push(action);
        match event {
            Event::Wait(task, queue) => machine.wait(TaskId::new(task), ResourceId::new(queue), act),
            Event::Wake(queue, count) => machine.wake(ResourceId::new(queue), count, act),
            Event::Cancel(task) => machine.cancel(TaskId::new(task), act),
            Event::Change(task, level) => machine.set_priority(TaskId::new(task), Priority::base(level)),
        }?;
        Ok(actions)
    }

    fn events() -> Vec<Event> {
        let mut events = Vec::new();
        for task in 0..TASKS {
            events.extend((0..QUEUES).map(|queue| Event::Wait(task, queue)));
            events.extend((0..LEVELS).map(|level| Event::Change(task, level)));
            events.push(Event::Cancel(task));
        }
        for queue in 0..QUEUES {
            events.extend([1, 2, usize::MAX].map(|count| Event::Wake(queue, count)));
        }
        events
    }

    /// All reachable states of 3 tasks, 2 queues and 2 levels: after every event the answer, and the order of both
    /// queues. Stops after `most` states.
    fn walk(most: usize, apply: impl Fn(&mut Machine, Event) -> Result<Vec<Action>, Refusal>) -> usize {
        let start = Shadow { waiting: Vec::new(), levels: [0; TASKS] };
        reach_at_most(most, (Machine::new(&[]), start), |state, next_states| {
            for event in events() {
                let (mut machine, mut shadow) = state.clone();
                let answer = apply(&mut machine, event);
                assert_eq!(answer, shadow.follow(event), "the answer to {event:?}");
                assert!(answer.is_ok() || machine == state.0, "a refused event changed something");
                for queue in 0..QUEUES {
                    let order: Vec<usize> = machine.waiters(ResourceId::new(queue)).map(TaskId::index).collect();
                    assert_eq!(order, shadow.queue(queue), "queued after {event:?}");
                    assert_eq!(machine.first(ResourceId::new(queue)).map(TaskId::index), order.first().copied());
                }
                next_states.push((machine, shadow));
            }
        })
    }

    #[test]
    fn every_order_of_events() {
        let states = walk(STATES_MOST, apply);
        check_states("fuqueue", states, 300);
    }

    #[test]
    #[should_panic(expected = "queued after")]
    fn stays_in_place() {
        walk(usize::MAX, |machine, event| match event {
            // Nothing moves a task while it waits.
            Event::Change(task, _) if machine.waits_for(TaskId::new(task)).is_some() => Ok(Vec::new()),
            _ => apply(machine, event),
        });
    }

    #[test]
    #[should_panic(expected = "the answer to Wake")]
    fn wakes_one_too_few() {
        walk(usize::MAX, |machine, event| match event {
            Event::Wake(queue, count) => apply(machine, Event::Wake(queue, count - 1)),
            _ => apply(machine, event),
        });
    }

    #[test]
    fn what_is_unknown_is_refused() {
        let mut machine = Machine::new(&[]);
        let (task, queue) = (TaskId::new(TASKS), ResourceId::new(QUEUES));
        let act = &mut |action| panic!("{action:?}");
        assert_eq!(machine.wait(task, ResourceId(0), act), Err(Refusal::UnknownTask));
        assert_eq!(machine.wait(TaskId(0), queue, act), Err(Refusal::UnknownResource));
        assert_eq!(machine.wake(queue, 1, act), Err(Refusal::UnknownResource));
        assert_eq!(machine.cancel(task, act), Err(Refusal::UnknownTask));
        assert_eq!(machine.set_priority(task, Priority::MIN), Err(Refusal::UnknownTask));
        assert_eq!((machine.first(queue), machine.waits_for(task)), (None, None));
    }
}
