//! The common part of the protocols without nested requests: owners, queues, and the priority and the processor that
//! each task got last.
//!
//! ```text
//!   task      enter                          exit                      give_up
//!   Idle      free: Holds;  else: Waits      -                         -
//!   Sent      the same                       -                         -> Idle
//!   Waits     -                              -                         -> Idle
//!   Holds     -                              Idle;  first waiter: Holds
//! ```
//!
//! A task that is sent elsewhere may get its place in the queue at once (`reserve`). Then the resource stays free until
//! the first task of the queue arrives (`arrive`) or gives up.

use crate::parts::peers::Peers;
use crate::parts::queue::{Links, WaitQueue};
use crate::{Action, Refusal};
use core::ops::Range;
use lockwright_model::{CpuId, Priority, ResourceId, TaskId};

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Single<const TASKS: usize, const RESOURCES: usize> {
    owners: [Option<TaskId>; RESOURCES],
    queues: [WaitQueue; RESOURCES],
    links: Links<TaskId, TASKS>,
    tasks: [TaskState; TASKS],
    peers: Peers<TASKS>,
    /// The numbers of tasks and resources. Others are refused.
    counts: (usize, usize),
}

/// The state of a task's one request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Stand {
    /// No request.
    Idle,
    /// The request is made, and the task is not in the queue yet.
    Sent(ResourceId),
    Waits(ResourceId),
    Holds(ResourceId),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct TaskState {
    base: Priority,
    told: Priority,
    own_cpu: CpuId,
    cpu: CpuId,
    epoch: u32,
    stand: Stand,
}

impl<const TASKS: usize, const RESOURCES: usize> Single<TASKS, RESOURCES> {
    /// Tasks and resources beyond the capacity do not exist.
    pub(crate) fn new(tasks: &[(Priority, CpuId)], resources: usize) -> Self {
        let idle = |(base, cpu)| TaskState { base, told: base, own_cpu: cpu, cpu, epoch: 0, stand: Stand::Idle };
        let mut all = [idle((Priority::MIN, CpuId(0))); TASKS];
        for (state, &task) in all.iter_mut().zip(tasks) {
            *state = idle(task);
        }
        Self {
            owners: [None; RESOURCES],
            queues: [WaitQueue::EMPTY; RESOURCES],
            links: Links::new(),
            tasks: all,
            peers: Peers::new(tasks.iter().map(|task| task.1)),
            counts: (tasks.len().min(TASKS), resources.min(RESOURCES)),
        }
    }

    pub(crate) fn owner(&self, resource: ResourceId) -> Option<TaskId> {
        *self.owners.get(resource.index())?
    }

    pub(crate) fn base(&self, task: TaskId) -> Priority {
        self.tasks[task.index()].base
    }

    /// Returns a task's own processor; any processor for an unknown task.
    pub(crate) fn own_cpu(&self, task: TaskId) -> CpuId {
        self.tasks.get(task.index()).map_or(CpuId(0), |task| task.own_cpu)
    }

    /// The processor where the task was sent last.
    pub(crate) fn cpu(&self, task: TaskId) -> CpuId {
        self.tasks[task.index()].cpu
    }

    pub(crate) fn stand(&self, task: TaskId) -> Stand {
        self.tasks[task.index()].stand
    }

    #[cfg(test)]
    pub(crate) fn tasks(&self) -> impl Iterator<Item = TaskId> + Clone + use<TASKS, RESOURCES> {
        (0..self.counts.0).map(TaskId::new)
    }

    /// The tasks of the processor of `task`, itself included, by id.
    pub(crate) fn peers(&self, task: TaskId) -> &[TaskId] {
        self.peers.of(task)
    }

    /// See [`Peers::places`].
    pub(crate) fn peer_places(&self, task: TaskId) -> Range<usize> {
        self.peers.places(task)
    }

    /// See [`Peers::at`].
    pub(crate) fn peer_at(&self, place: usize) -> TaskId {
        self.peers.at(place)
    }

    pub(crate) fn resources(&self) -> impl Iterator<Item = ResourceId> + Clone + use<TASKS, RESOURCES> {
        (0..self.counts.1).map(ResourceId::new)
    }

    /// The waiters of the resource, in the order in which they will own it.
    pub(crate) fn waiters(&self, resource: ResourceId) -> impl Iterator<Item = TaskId> {
        self.queues[resource.index()].iter(&self.links)
    }

    /// As [`Single::stand`], for a task that may not exist.
    pub(crate) fn stand_known(&self, task: TaskId) -> Result<Stand, Refusal> {
        self.known(task).map(|()| self.stand(task))
    }

    pub(crate) fn known(&self, task: TaskId) -> Result<(), Refusal> {
        if task.index() < self.counts.0 { Ok(()) } else { Err(Refusal::UnknownTask) }
    }

    /// Refuses a request without a meaning.
    pub(crate) fn may_ask(&self, task: TaskId, resource: ResourceId) -> Result<(), Refusal> {
        self.known(task)?;
        if resource.index() >= self.counts.1 {
            return Err(Refusal::UnknownResource);
        }
        match self.stand(task) {
            Stand::Idle => Ok(()),
            Stand::Holds(held) if held == resource => Err(Refusal::AlreadyHeld),
            Stand::Holds(_) => Err(Refusal::Nested),
            Stand::Sent(_) | Stand::Waits(_) => Err(Refusal::Waiting),
        }
    }

    /// The task makes a request, and does not enter the queue yet.
    pub(crate) fn send_off(&mut self, task: TaskId, resource: ResourceId) {
        self.tasks[task.index()].stand = Stand::Sent(resource);
    }

    /// The task locks the resource, or waits for it behind all waiters of at least its `key`. Returns whether it owns
    /// it.
    pub(crate) fn enter(&mut self, task: TaskId, resource: ResourceId, key: Priority) -> bool {
        let owner = &mut self.owners[resource.index()];
        let is_free = owner.is_none();
        if is_free {
            *owner = Some(task);
        } else {
            self.queues[resource.index()].insert(&mut self.links, task, key);
        }
        self.tasks[task.index()].stand = if is_free { Stand::Holds(resource) } else { Stand::Waits(resource) };
        is_free
    }

    /// As [`Single::send_off`]. The task has its place from now on, behind all requests for the resource.
    pub(crate) fn reserve(&mut self, task: TaskId, resource: ResourceId) {
        self.send_off(task, resource);
        self.queues[resource.index()].insert(&mut self.links, task, Priority::MIN);
    }

    /// A task with a place arrives. Returns whether it owns the resource.
    pub(crate) fn arrive(&mut self, task: TaskId, resource: ResourceId) -> bool {
        self.tasks[task.index()].stand = Stand::Waits(resource);
        self.hand_over(resource) == Some(task)
    }

    /// Hands a free resource to the first task of its queue, if that one has arrived. Returns the new owner.
    pub(crate) fn hand_over(&mut self, resource: ResourceId) -> Option<TaskId> {
        let place = resource.index();
        let first = self.queues[place].first().filter(|_| self.owners[place].is_none());
        let next = first.filter(|&first| self.stand(first) == Stand::Waits(resource))?;
        self.queues[place].pop(&mut self.links);
        self.owners[place] = Some(next);
        self.tasks[next.index()].stand = Stand::Holds(resource);
        Some(next)
    }

    /// The task releases the resource. Returns the new owner.
    pub(crate) fn exit(&mut self, task: TaskId, resource: ResourceId) -> Result<Option<TaskId>, Refusal> {
        self.known(task)?;
        if resource.index() >= self.counts.1 {
            return Err(Refusal::UnknownResource);
        }
        if self.stand(task) != Stand::Holds(resource) {
            return Err(Refusal::NotHeld);
        }
        self.tasks[task.index()].stand = Stand::Idle;
        self.owners[resource.index()] = None;
        Ok(self.hand_over(resource))
    }

    /// The task withdraws its request. Returns the state of the request before.
    pub(crate) fn give_up(&mut self, task: TaskId) -> Result<Stand, Refusal> {
        self.known(task)?;
        let stand = self.stand(task);
        match stand {
            Stand::Idle | Stand::Holds(_) => return Err(Refusal::NotWaiting),
            // A task that was sent may have a place.
            Stand::Sent(resource) | Stand::Waits(resource) => {
                self.queues[resource.index()].remove(&mut self.links, task);
            }
        }
        self.tasks[task.index()].stand = Stand::Idle;
        Ok(stand)
    }

    pub(crate) fn set_base(&mut self, task: TaskId, base: Priority) -> Result<(), Refusal> {
        self.known(task)?;
        self.tasks[task.index()].base = base;
        Ok(())
    }

    /// Moves a waiting task to the place of its new key.
    pub(crate) fn reorder(&mut self, task: TaskId, key: Priority) {
        if let Stand::Waits(resource) = self.stand(task) {
            self.queues[resource.index()].reorder(&mut self.links, task, key);
        }
    }

    /// Reports the priority of a task, if it has changed.
    pub(crate) fn tell(&mut self, task: TaskId, priority: Priority, act: &mut dyn FnMut(Action)) {
        let state = &mut self.tasks[task.index()];
        if state.told != priority {
            state.told = priority;
            state.epoch = state.epoch.wrapping_add(1);
            act(Action::SetPriority { task, priority, epoch: state.epoch });
        }
    }

    /// Reports the processor of a task, if it has changed.
    pub(crate) fn send(&mut self, task: TaskId, cpu: CpuId, act: &mut dyn FnMut(Action)) {
        let state = &mut self.tasks[task.index()];
        if state.cpu != cpu {
            state.cpu = cpu;
            state.epoch = state.epoch.wrapping_add(1);
            act(Action::Migrate { task, cpu, epoch: state.epoch });
        }
    }

    /// For the exhaustive walk: states that differ only in epochs are one.
    #[cfg(test)]
    pub(crate) fn forget_epochs(&mut self) {
        self.tasks.iter_mut().for_each(|task| task.epoch = 0);
    }
}
