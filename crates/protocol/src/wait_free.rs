//! `wait_free`: operations for which no task waits and that are never repeated.
//!
//! The machine records only which task is in an operation, so that it can refuse nested and unfinished operations.

use crate::{Action, DEFAULT_RESOURCES, DEFAULT_TASKS, Machine, Refusal};
use lockwright_model::{Priority, ResourceId, TaskId};

/// Wait-free objects.
///
/// # Bound
/// A job never waits, and executes each operation once. The length of an operation contains the helping of others.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct WaitFree<const TASKS: usize = DEFAULT_TASKS, const RESOURCES: usize = DEFAULT_RESOURCES> {
    /// By task: the object of its current operation, and the epoch of its priority.
    tasks: [(Option<ResourceId>, u32); TASKS],
    /// Tasks and resources that exist; others are refused.
    counts: (usize, usize),
}

impl<const TASKS: usize, const RESOURCES: usize> WaitFree<TASKS, RESOURCES> {
    /// A machine for this many tasks and resources. All tasks are outside. Other tasks and resources are refused.
    #[must_use]
    pub fn new(tasks: usize, resources: usize) -> Self {
        Self { tasks: [(None, 0); TASKS], counts: (tasks.min(TASKS), resources.min(RESOURCES)) }
    }

    fn known(&self, task: TaskId) -> Result<(), Refusal> {
        if task.index() < self.counts.0 { Ok(()) } else { Err(Refusal::UnknownTask) }
    }

    fn both_known(&self, task: TaskId, resource: ResourceId) -> Result<(), Refusal> {
        self.known(task)?;
        if resource.index() < self.counts.1 { Ok(()) } else { Err(Refusal::UnknownResource) }
    }
}

impl<const TASKS: usize, const RESOURCES: usize> Machine for WaitFree<TASKS, RESOURCES> {
    fn request(&mut self, task: TaskId, resource: ResourceId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.both_known(task, resource)?;
        match &mut self.tasks[task.index()].0 {
            free @ None => *free = Some(resource),
            Some(inside) if *inside == resource => return Err(Refusal::AlreadyHeld),
            Some(_) => return Err(Refusal::Nested),
        }
        act(Action::Grant { task, resource });
        Ok(())
    }

    fn release(&mut self, task: TaskId, resource: ResourceId, _: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.both_known(task, resource)?;
        let inside = &mut self.tasks[task.index()].0;
        if *inside != Some(resource) {
            return Err(Refusal::NotHeld);
        }
        *inside = None;
        Ok(())
    }

    fn cancel(&mut self, task: TaskId, _: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.known(task)?;
        Err(Refusal::NotWaiting)
    }

    fn set_base(&mut self, task: TaskId, base: Priority, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.known(task)?;
        let epoch = &mut self.tasks[task.index()].1;
        *epoch = epoch.wrapping_add(1);
        act(Action::SetPriority { task, priority: base, epoch: *epoch });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TASKS: [TaskId; 2] = [TaskId(0), TaskId(1)];
    const ON: [ResourceId; 2] = [ResourceId(0), ResourceId(1)];

    #[test]
    fn overlapping_operations_end_once_each() {
        let mut machine = WaitFree::<2, 2>::new(2, 2);
        let (mut actions, mut granted) = ([None; 2], 0);
        for task in TASKS {
            assert_eq!(
                machine.request(task, ON[0], &mut |action| {
                    actions[granted] = Some(action);
                    granted += 1;
                }),
                Ok(())
            );
        }
        assert_eq!(actions, TASKS.map(|task| Some(Action::Grant { task, resource: ON[0] })));
        let none = &mut |action| panic!("{action:?}");
        assert_eq!(machine.request(TASKS[0], ON[0], none), Err(Refusal::AlreadyHeld));
        assert_eq!(machine.request(TASKS[0], ON[1], none), Err(Refusal::Nested));
        assert_eq!(machine.release(TASKS[0], ON[1], none), Err(Refusal::NotHeld));
        for task in TASKS {
            assert_eq!(machine.release(task, ON[0], none), Ok(()));
            assert_eq!(machine.release(task, ON[0], none), Err(Refusal::NotHeld));
        }
        assert_eq!(machine.cancel(TASKS[0], none), Err(Refusal::NotWaiting));
        assert_eq!(machine.request(TaskId(2), ON[0], none), Err(Refusal::UnknownTask));
        assert_eq!(machine.request(TASKS[0], ResourceId(2), none), Err(Refusal::UnknownResource));
    }
}
