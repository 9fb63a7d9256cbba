//! `ics`: interruptible sections. No task waits. A section is executed again if another section on its resource was
//! committed while it was executed.
//!
//! ```text
//!   task         request         release                                              another section commits
//!   outside      inside, grant   -                                                    outside
//!   inside       -               commit: outside; others that are inside: invalidated invalidated
//!   invalidated  -               inside, restart                                      invalidated
//! ```
//!
//! A conflict is detected when the section tries to commit. It costs one more execution of the section, whatever the
//! number of commits.

use crate::{Action, DEFAULT_RESOURCES, DEFAULT_TASKS, Machine, Refusal};
use lockwright_model::{Priority, ResourceId, TaskId};

/// Interruptible sections.
///
/// # Bound
/// On one processor, a job never waits. For each resource that it commits, a more urgent job causes at most one section
/// of the jobs below it to be executed again.
///
/// # Reference
/// T. Johnson, K. Harathi, "Interruptible critical sections", University of Florida, 1994.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Ics<const TASKS: usize = DEFAULT_TASKS, const RESOURCES: usize = DEFAULT_RESOURCES> {
    tasks: [TaskState; TASKS],
    /// By resource: the number of tasks that are inside and not invalidated.
    inside: [u16; RESOURCES],
    /// The numbers of tasks and resources; others are refused.
    counts: (usize, usize),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct TaskState {
    epoch: u32,
    place: Place,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Place {
    Outside,
    Inside(ResourceId),
    Invalidated(ResourceId),
}

impl<const TASKS: usize, const RESOURCES: usize> Ics<TASKS, RESOURCES> {
    /// A machine for this many tasks and resources. All tasks are outside. Other tasks and resources are refused.
    #[must_use]
    pub fn new(tasks: usize, resources: usize) -> Self {
        let outside = TaskState { epoch: 0, place: Place::Outside };
        let counts = (tasks.min(TASKS), resources.min(RESOURCES));
        Self { tasks: [outside; TASKS], inside: [0; RESOURCES], counts }
    }

    /// The resource whose section the task is in.
    #[must_use]
    pub fn inside(&self, task: TaskId) -> Option<ResourceId> {
        match self.tasks.get(task.index())?.place {
            Place::Outside => None,
            Place::Inside(resource) | Place::Invalidated(resource) => Some(resource),
        }
    }

    pub(crate) fn known(&self, task: TaskId) -> Result<(), Refusal> {
        if task.index() < self.counts.0 { Ok(()) } else { Err(Refusal::UnknownTask) }
    }

    fn both_known(&self, task: TaskId, resource: ResourceId) -> Result<(), Refusal> {
        self.known(task)?;
        if resource.index() < self.counts.1 { Ok(()) } else { Err(Refusal::UnknownResource) }
    }

    /// Whether the task may request the resource.
    pub(crate) fn may_enter(&self, task: TaskId, resource: ResourceId) -> Result<(), Refusal> {
        self.both_known(task, resource)?;
        match self.inside(task) {
            None => Ok(()),
            Some(inside) if inside == resource => Err(Refusal::AlreadyHeld),
            Some(_) => Err(Refusal::Nested),
        }
    }

    pub(crate) fn enter(&mut self, task: TaskId, resource: ResourceId) {
        self.tasks[task.index()].place = Place::Inside(resource);
        self.inside[resource.index()] += 1;
    }

    /// Tries to commit the section of the task. Returns whether it committed; otherwise the section begins again.
    ///
    /// BOUND: no loop if no other task is inside, otherwise a step for each task.
    pub(crate) fn leave(&mut self, task: TaskId, resource: ResourceId) -> Result<bool, Refusal> {
        self.both_known(task, resource)?;
        let place = self.tasks[task.index()].place;
        if place == Place::Invalidated(resource) {
            self.enter(task, resource);
            return Ok(false);
        }
        if place != Place::Inside(resource) {
            return Err(Refusal::NotHeld);
        }
        self.tasks[task.index()].place = Place::Outside;
        let others = core::mem::take(&mut self.inside[resource.index()]) - 1;
        if others > 0 {
            let inside = self.tasks.iter_mut().filter(|other| other.place == Place::Inside(resource));
            inside.take(usize::from(others)).for_each(|other| other.place = Place::Invalidated(resource));
        }
        Ok(true)
    }

    /// For the exhaustive walk: states that differ only in epochs are one.
    #[cfg(test)]
    pub(crate) fn forget_epochs(&mut self) {
        self.tasks.iter_mut().for_each(|task| task.epoch = 0);
    }
}

impl<const TASKS: usize, const RESOURCES: usize> Machine for Ics<TASKS, RESOURCES> {
    fn request(&mut self, task: TaskId, resource: ResourceId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.may_enter(task, resource)?;
        self.enter(task, resource);
        act(Action::Grant { task, resource });
        Ok(())
    }

    /// Commits the section, or restarts it.
    fn release(&mut self, task: TaskId, resource: ResourceId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        if !self.leave(task, resource)? {
            act(Action::Restart { task, resource });
        }
        Ok(())
    }

    fn cancel(&mut self, task: TaskId, _: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.known(task)?;
        Err(Refusal::NotWaiting)
    }

    fn set_base(&mut self, task: TaskId, base: Priority, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.known(task)?;
        let epoch = &mut self.tasks[task.index()].epoch;
        *epoch = epoch.wrapping_add(1);
        act(Action::SetPriority { task, priority: base, epoch: *epoch });
        Ok(())
    }
}
