//! `none`: a plain mutex on a futex, without control of priority inversion.
//!
//! The machine models the three states of such a mutex, because they decide what a waiter finds:
//!
//! ```text
//!   word        request            release                    woken
//!   Free        -> Locked, grant   refused                    -> Contended, grant
//!   Locked      -> Contended, wait -> Free                    -> Contended, wait
//!   Contended   -> Contended, wait -> Free, wake first waiter -> Contended, wait
//! ```
//!
//! The kernel queues waiters by their priority at the time they start to wait. A later change of priority does not move
//! them. Between a release and the retry of the woken task, any task may lock the mutex.

use crate::parts::queue::{Links, WaitQueue};
use crate::{Action, DEFAULT_RESOURCES, DEFAULT_TASKS, Machine, Refusal};
use lockwright_model::{Priority, ResourceId, TaskId};

/// Plain mutexes.
///
/// # Bound
/// None. A holder keeps its base priority, so any task between it and a more urgent waiter delays both.
///
/// # Reference
/// U. Drepper, "Futexes Are Tricky", 2011, mutex 2.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct PlainMutex<const TASKS: usize = DEFAULT_TASKS, const RESOURCES: usize = DEFAULT_RESOURCES> {
    words: [Word; RESOURCES],
    owners: [Option<TaskId>; RESOURCES],
    queues: [WaitQueue; RESOURCES],
    links: Links<TaskId, TASKS>,
    tasks: [State; TASKS],
    priorities: [Priority; TASKS],
    epochs: [u32; TASKS],
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Word {
    Free,
    Locked,
    Contended,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum State {
    Runs,
    Queued(ResourceId),
    /// Woken, and has not tried again yet.
    Woken(ResourceId),
}

impl<const TASKS: usize, const RESOURCES: usize> PlainMutex<TASKS, RESOURCES> {
    /// All resources are free. `priorities[t]` is the base priority of task `t`; other tasks have the least priority.
    #[must_use]
    pub fn new(priorities: &[Priority]) -> Self {
        let mut base = [Priority::MIN; TASKS];
        let known = priorities.len().min(TASKS);
        base[..known].copy_from_slice(&priorities[..known]);
        Self {
            words: [Word::Free; RESOURCES],
            owners: [None; RESOURCES],
            queues: [WaitQueue::EMPTY; RESOURCES],
            links: Links::new(),
            tasks: [State::Runs; TASKS],
            priorities: base,
            epochs: [0; TASKS],
        }
    }

    /// Returns the owner of a resource.
    #[must_use]
    pub fn owner(&self, resource: ResourceId) -> Option<TaskId> {
        *self.owners.get(resource.index())?
    }

    fn check(&self, task: TaskId, resource: ResourceId) -> Result<(), Refusal> {
        if task.index() >= TASKS {
            return Err(Refusal::UnknownTask);
        }
        if resource.index() >= RESOURCES { Err(Refusal::UnknownResource) } else { Ok(()) }
    }

    fn grant(&mut self, task: TaskId, resource: ResourceId, word: Word, act: &mut dyn FnMut(Action)) {
        self.words[resource.index()] = word;
        self.owners[resource.index()] = Some(task);
        self.tasks[task.index()] = State::Runs;
        act(Action::Grant { task, resource });
    }

    fn block(&mut self, task: TaskId, resource: ResourceId, act: &mut dyn FnMut(Action)) {
        self.words[resource.index()] = Word::Contended;
        self.tasks[task.index()] = State::Queued(resource);
        self.queues[resource.index()].insert(&mut self.links, task, self.priorities[task.index()]);
        act(Action::Block { task, resource });
    }

    fn wake_first(&mut self, resource: ResourceId, act: &mut dyn FnMut(Action)) {
        if let Some(first) = self.queues[resource.index()].pop(&mut self.links) {
            self.tasks[first.index()] = State::Woken(resource);
            act(Action::Wake { task: first });
        }
    }

    /// For the exhaustive walk: states that differ only in epochs are one.
    #[cfg(test)]
    pub(crate) fn forget_epochs(&mut self) {
        self.epochs = [0; TASKS];
    }
}

impl<const TASKS: usize, const RESOURCES: usize> Machine for PlainMutex<TASKS, RESOURCES> {
    fn request(&mut self, task: TaskId, resource: ResourceId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.check(task, resource)?;
        if self.tasks[task.index()] != State::Runs {
            return Err(Refusal::Waiting);
        }
        match self.words[resource.index()] {
            Word::Free => self.grant(task, resource, Word::Locked, act),
            _ if self.owner(resource) == Some(task) => return Err(Refusal::AlreadyHeld),
            _ => self.block(task, resource, act),
        }
        Ok(())
    }

    fn release(&mut self, task: TaskId, resource: ResourceId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.check(task, resource)?;
        if self.owner(resource) != Some(task) {
            return Err(Refusal::NotHeld);
        }
        if self.tasks[task.index()] != State::Runs {
            return Err(Refusal::Waiting);
        }
        let contended = self.words[resource.index()] == Word::Contended;
        self.words[resource.index()] = Word::Free;
        self.owners[resource.index()] = None;
        if contended {
            self.wake_first(resource, act);
        }
        Ok(())
    }

    fn woken(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        let State::Woken(resource) = *self.tasks.get(task.index()).ok_or(Refusal::UnknownTask)? else {
            return Err(Refusal::NotWaiting);
        };
        match self.words[resource.index()] {
            Word::Free => self.grant(task, resource, Word::Contended, act),
            _ => self.block(task, resource, act),
        }
        Ok(())
    }

    fn cancel(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        match *self.tasks.get(task.index()).ok_or(Refusal::UnknownTask)? {
            State::Runs => return Err(Refusal::NotWaiting),
            State::Queued(resource) => {
                self.queues[resource.index()].remove(&mut self.links, task);
                self.tasks[task.index()] = State::Runs;
                act(Action::Wake { task });
            }
            State::Woken(resource) => {
                // It was woken for a lock that it will not lock: pass the wake-up on.
                self.tasks[task.index()] = State::Runs;
                self.wake_first(resource, act);
            }
        }
        Ok(())
    }

    fn set_base(&mut self, task: TaskId, base: Priority, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        *self.priorities.get_mut(task.index()).ok_or(Refusal::UnknownTask)? = base;
        self.epochs[task.index()] = self.epochs[task.index()].wrapping_add(1);
        act(Action::SetPriority { task, priority: base, epoch: self.epochs[task.index()] });
        Ok(())
    }
}
