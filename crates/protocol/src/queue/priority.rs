//! The priority order: most urgent first, first come first served among equals.
//!
//! A task waits for at most one resource, so one link per task serves all queues of a machine.
//!
//! ```text
//!   WaitQueue.first -> [task 7, P 9] -> [task 2, P 9] -> [task 5, P 4] -> none
//! ```

use lockwright_model::{Priority, TaskId};

/// The link of every task, shared by all queues of a machine.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Links<const TASKS: usize>([Link; TASKS]);

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Link {
    next: Option<TaskId>,
    /// By which the task was queued.
    key: Priority,
}

/// Of a task in no queue; always this, so that equal states are equal.
const UNQUEUED: Link = Link { next: None, key: Priority::MIN };

/// One queue: its first waiter.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct WaitQueue {
    first: Option<TaskId>,
}

impl<const TASKS: usize> Links<TASKS> {
    pub(crate) const fn new() -> Self {
        Self([UNQUEUED; TASKS])
    }

    /// The priority by which a waiting task was queued.
    pub(crate) fn key(&self, task: TaskId) -> Priority {
        self.0[task.index()].key
    }
}

impl WaitQueue {
    pub(crate) const EMPTY: Self = Self { first: None };

    pub(crate) fn first(self) -> Option<TaskId> {
        self.first
    }

    /// Queues `task` behind all waiters of at least its priority.
    ///
    /// BOUND: one step a waiter, fewer than `TASKS`.
    pub(crate) fn insert<const TASKS: usize>(&mut self, links: &mut Links<TASKS>, task: TaskId, key: Priority) {
        let mut before = None;
        let mut at = self.first;
        while let Some(waiter) = at {
            if links.0[waiter.index()].key < key {
                break;
            }
            (before, at) = (Some(waiter), links.0[waiter.index()].next);
        }
        links.0[task.index()] = Link { next: at, key };
        match before {
            Some(waiter) => links.0[waiter.index()].next = Some(task),
            None => self.first = Some(task),
        }
    }

    /// Takes `task` out; `false` where it was not queued here.
    ///
    /// BOUND: one step a waiter, fewer than `TASKS`.
    pub(crate) fn remove<const TASKS: usize>(&mut self, links: &mut Links<TASKS>, task: TaskId) -> bool {
        let mut before: Option<TaskId> = None;
        let mut at = self.first;
        while let Some(waiter) = at {
            let next = links.0[waiter.index()].next;
            if waiter == task {
                match before {
                    Some(before) => links.0[before.index()].next = next,
                    None => self.first = next,
                }
                links.0[task.index()] = UNQUEUED;
                return true;
            }
            (before, at) = (Some(waiter), next);
        }
        false
    }

    /// Takes the first waiter out.
    pub(crate) fn pop<const TASKS: usize>(&mut self, links: &mut Links<TASKS>) -> Option<TaskId> {
        let first = self.first?;
        self.first = core::mem::replace(&mut links.0[first.index()], UNQUEUED).next;
        Some(first)
    }

    /// Queues a waiting task anew after its priority changed: behind its equals if it rose or fell, in place if not.
    pub(crate) fn reorder<const TASKS: usize>(&mut self, links: &mut Links<TASKS>, task: TaskId, key: Priority) {
        if links.key(task) != key && self.remove(links, task) {
            self.insert(links, task, key);
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    fn order(queue: WaitQueue, links: &mut Links<8>) -> Vec<u16> {
        let mut copy = (queue, links.clone());
        core::iter::from_fn(|| copy.0.pop(&mut copy.1)).map(|task| task.0).collect()
    }

    #[test]
    fn most_urgent_first_and_first_come_among_equals() {
        let (mut queue, mut links) = (WaitQueue::EMPTY, Links::<8>::new());
        for (task, level) in [(0, 3), (1, 5), (2, 3), (3, 9), (4, 5)] {
            queue.insert(&mut links, TaskId(task), Priority::base(level));
        }
        assert_eq!(order(queue, &mut links), [3, 1, 4, 0, 2]);
        assert!(queue.remove(&mut links, TaskId(1)));
        assert!(!queue.remove(&mut links, TaskId(1)));
        queue.reorder(&mut links, TaskId(2), Priority::base(9));
        assert_eq!(order(queue, &mut links), [3, 2, 4, 0]);
        queue.reorder(&mut links, TaskId(3), Priority::base(1));
        assert_eq!(order(queue, &mut links), [2, 4, 0, 3]);
    }
}
