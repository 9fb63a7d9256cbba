//! Reader-writer spinlocks without preemption, phase-fair or task-fair.
//!
//! ```text
//!   request   not preempted any more; admitted: grant;  else: queue, spin
//!   release   last of its phase: the next phase begins, grant all of it;  may be preempted again
//!
//!             a reader is admitted     the next phase after readers     the next phase after a writer
//!   phases    no writer inside, none   the first writer                 all waiting readers; else the first writer
//!             waiting
//!   tasks     the same                 the first writer, or the         the same
//!                                      readers before the next writer
//! ```

use crate::parts::queue::{Links, WaitQueue};
use crate::{Action, DEFAULT_RESOURCES, DEFAULT_TASKS, Machine, Refusal};
use lockwright_model::{Mode, Priority, ResourceId, TaskId};

/// The order in which a [`ReaderWriter`] serves readers and writers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fairness {
    /// Phases of readers and of one writer alternate while both wait.
    Phases,
    /// First come, first served. Readers without a writer between them read together.
    Tasks,
}

/// Reader-writer spinlocks for short sections.
///
/// # Bound
/// With phases in turn, a reader waits for at most one section that writes and one phase of readers. A writer waits for
/// at most one section that writes of each other processor, and for one phase of readers before each and before its
/// own. First come, first served, a request waits for at most one section of each other processor. When a job arrives,
/// it is also delayed by at most one less urgent task of its processor that spins or holds a resource.
///
/// # Reference
/// B. Brandenburg, J. Anderson, "Spin-based reader-writer synchronization for multiprocessor real-time systems",
/// Real-Time Systems 46(1), 2010.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ReaderWriter<const TASKS: usize = DEFAULT_TASKS, const RESOURCES: usize = DEFAULT_RESOURCES> {
    fairness: Fairness,
    tasks: [TaskState; TASKS],
    /// The numbers of the tasks inside, by resource.
    inside: [u16; RESOURCES],
    queues: [WaitQueue; RESOURCES],
    links: Links<TaskId, TASKS>,
    /// The numbers of tasks and resources. Others are refused.
    counts: (usize, usize),
    #[cfg(test)]
    fault: Fault,
}

/// The fault of a mutant.
#[cfg(test)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Fault {
    None,
    /// A phase of readers admits the first one only.
    OneReader,
    /// When a request is cancelled while tasks read, all waiting readers are admitted, past waiting writers.
    PastWriters,
}

/// The state of a task's one request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Stand {
    Idle,
    Waits(ResourceId, Mode),
    Holds(ResourceId, Mode),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct TaskState {
    base: Priority,
    told: Priority,
    epoch: u32,
    stand: Stand,
}

impl<const TASKS: usize, const RESOURCES: usize> ReaderWriter<TASKS, RESOURCES> {
    /// All resources are free. `bases[t]` is the base priority of task `t`. Other tasks and resources are refused.
    #[must_use]
    pub fn new(fairness: Fairness, bases: &[Priority], resources: usize) -> Self {
        let idle = |base| TaskState { base, told: base, epoch: 0, stand: Stand::Idle };
        let mut tasks = [idle(Priority::MIN); TASKS];
        for (state, &base) in tasks.iter_mut().zip(bases) {
            *state = idle(base);
        }
        Self {
            fairness,
            tasks,
            inside: [0; RESOURCES],
            queues: [WaitQueue::EMPTY; RESOURCES],
            links: Links::new(),
            counts: (bases.len().min(TASKS), resources.min(RESOURCES)),
            #[cfg(test)]
            fault: Fault::None,
        }
    }

    /// Returns the mode in which a task holds the resource, or `None` if it does not.
    #[must_use]
    pub fn holds(&self, task: TaskId, resource: ResourceId) -> Option<Mode> {
        match self.tasks.get(task.index())?.stand {
            Stand::Holds(held, mode) if held == resource => Some(mode),
            _ => None,
        }
    }

    fn known(&self, task: TaskId) -> Result<(), Refusal> {
        if task.index() < self.counts.0 { Ok(()) } else { Err(Refusal::UnknownTask) }
    }

    fn tell(&mut self, task: TaskId, priority: Priority, act: &mut dyn FnMut(Action)) {
        let state = &mut self.tasks[task.index()];
        if state.told != priority {
            state.told = priority;
            state.epoch = state.epoch.wrapping_add(1);
            act(Action::SetPriority { task, priority, epoch: state.epoch });
        }
    }

    fn tell_base(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) {
        self.tell(task, self.tasks[task.index()].base, act);
    }

    fn waits_to(&self, task: TaskId, mode: Mode) -> bool {
        matches!(self.tasks[task.index()].stand, Stand::Waits(_, its) if its == mode)
    }

    /// The first task of the queue that waits in this mode.
    fn first(&self, resource: ResourceId, mode: Mode) -> Option<TaskId> {
        self.queues[resource.index()].iter(&self.links).find(|&task| self.waits_to(task, mode))
    }

    /// Whether a request may pass without waiting.
    fn admits(&self, resource: ResourceId, mode: Mode) -> bool {
        let holders = self.tasks.iter().filter(|task| matches!(task.stand, Stand::Holds(held, _) if held == resource));
        match mode {
            Mode::Write => self.inside[resource.index()] == 0,
            Mode::Read => {
                holders.clone().all(|task| matches!(task.stand, Stand::Holds(_, Mode::Read)))
                    && self.first(resource, Mode::Write).is_none()
            }
        }
    }

    fn admit(&mut self, task: TaskId, resource: ResourceId, mode: Mode, act: &mut dyn FnMut(Action)) {
        self.tasks[task.index()].stand = Stand::Holds(resource, mode);
        self.inside[resource.index()] += 1;
        act(Action::Grant { task, resource });
    }

    /// Begins the next phase on a free resource. `after` is the mode of the last phase.
    fn next_phase(&mut self, resource: ResourceId, after: Mode, act: &mut dyn FnMut(Action)) {
        let Some(first) = self.queues[resource.index()].first() else { return };
        let mode = match (self.fairness, after) {
            (Fairness::Phases, Mode::Read) if self.first(resource, Mode::Write).is_some() => Mode::Write,
            (Fairness::Phases, Mode::Write) if self.first(resource, Mode::Read).is_some() => Mode::Read,
            _ if self.waits_to(first, Mode::Read) => Mode::Read,
            _ => Mode::Write,
        };
        self.admit_phase(resource, mode, act);
    }

    /// Admits the first writer, or the readers that read next.
    fn admit_phase(&mut self, resource: ResourceId, mode: Mode, act: &mut dyn FnMut(Action)) {
        // BOUND: each round takes a task out of the queue.
        while let Some(task) = match self.fairness {
            Fairness::Phases => self.first(resource, mode),
            Fairness::Tasks => self.queues[resource.index()].first().filter(|&task| self.waits_to(task, mode)),
        } {
            self.queues[resource.index()].remove(&mut self.links, task);
            self.admit(task, resource, mode, act);
            if mode == Mode::Write {
                break;
            }
            #[cfg(test)]
            if self.fault == Fault::OneReader {
                break;
            }
        }
    }

    fn ask(
        &mut self,
        task: TaskId,
        resource: ResourceId,
        mode: Mode,
        act: &mut dyn FnMut(Action),
    ) -> Result<(), Refusal> {
        self.known(task)?;
        if resource.index() >= self.counts.1 {
            return Err(Refusal::UnknownResource);
        }
        match self.tasks[task.index()].stand {
            Stand::Idle => {}
            Stand::Holds(held, _) if held == resource => return Err(Refusal::AlreadyHeld),
            Stand::Holds(..) => return Err(Refusal::Nested),
            Stand::Waits(..) => return Err(Refusal::Waiting),
        }
        self.tell(task, Priority::NON_PREEMPTIVE, act);
        if self.admits(resource, mode) {
            self.admit(task, resource, mode, act);
        } else {
            self.tasks[task.index()].stand = Stand::Waits(resource, mode);
            self.queues[resource.index()].insert(&mut self.links, task, Priority::MIN);
            act(Action::Spin { task, resource });
        }
        Ok(())
    }

    #[cfg(test)]
    pub(crate) fn with_fault(self, fault: Fault) -> Self {
        Self { fault, ..self }
    }

    /// For the walks: states that differ only in epochs are one.
    #[cfg(test)]
    pub(crate) fn forget_epochs(&mut self) {
        self.tasks.iter_mut().for_each(|task| task.epoch = 0);
    }
}

impl<const TASKS: usize, const RESOURCES: usize> Machine for ReaderWriter<TASKS, RESOURCES> {
    fn request(&mut self, task: TaskId, resource: ResourceId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.ask(task, resource, Mode::Write, act)
    }

    fn request_read(&mut self, task: TaskId, resource: ResourceId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.ask(task, resource, Mode::Read, act)
    }

    fn release(&mut self, task: TaskId, resource: ResourceId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.known(task)?;
        if resource.index() >= self.counts.1 {
            return Err(Refusal::UnknownResource);
        }
        let mode = self.holds(task, resource).ok_or(Refusal::NotHeld)?;
        self.tasks[task.index()].stand = Stand::Idle;
        self.inside[resource.index()] -= 1;
        if self.inside[resource.index()] == 0 {
            self.next_phase(resource, mode, act);
        }
        self.tell_base(task, act);
        Ok(())
    }

    fn cancel(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.known(task)?;
        let Stand::Waits(resource, _) = self.tasks[task.index()].stand else { return Err(Refusal::NotWaiting) };
        self.queues[resource.index()].remove(&mut self.links, task);
        self.tasks[task.index()].stand = Stand::Idle;
        // Readers may have waited for this writer only.
        let reads = |state: &TaskState| matches!(state.stand, Stand::Holds(held, Mode::Read) if held == resource);
        #[cfg(test)]
        if self.fault == Fault::PastWriters && self.tasks.iter().any(reads) {
            self.admit_phase(resource, Mode::Read, act);
        }
        if self.tasks.iter().any(reads)
            && (self.first(resource, Mode::Write).is_none() || self.fairness == Fairness::Tasks)
        {
            self.admit_phase(resource, Mode::Read, act);
        }
        self.tell_base(task, act);
        Ok(())
    }

    fn set_base(&mut self, task: TaskId, base: Priority, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.known(task)?;
        self.tasks[task.index()].base = base;
        if self.tasks[task.index()].stand == Stand::Idle {
            self.tell(task, base, act);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
