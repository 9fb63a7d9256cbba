//! The scheduler of `p-edf`: on each processor, the job with the earliest deadline executes, above the jobs that it
//! preempted. The resources of a processor are under the stack resource policy (`srp`).
//!
//! ```text
//!   arrive    earliest deadline, and above the ceilings: start on top of the stack
//!             else: wait
//!   finish    leave the stack; start the waiting job with the earliest deadline, if it is earlier than the top
//!   request   -> task, grant
//!   release   -> none; start that job, if the ceilings held it
//! ```
//!
//! The jobs that have started form a *stack*: a job starts only if its deadline is earlier than that of the top, so it
//! becomes the new top, and the old top continues when it ends. The place on the stack is the job's priority. A task
//! without a started job is above all places ([`Edf::ARRIVING`]), so that it can decide when its next job is released.
//!
//! If deadlines are equal, the task with the lower id goes first, as in the simulator.
//!
//! While the waiting job with the earliest deadline is held by a ceiling, no job with a later deadline starts, whatever
//! its preemption level is.
//!
//! Jobs that suspend themselves keep their places. If a job below them ends meanwhile, the places of the stack are no
//! longer dense, and the last place can be taken by two jobs; the later one is then before the earlier one only as long
//! as the scheduler serves the last one to get a priority first, as SCHED_FIFO does when priorities fall.

use crate::parts::peers::Peers;
use crate::{Action, DEFAULT_RESOURCES, DEFAULT_TASKS, Machine, Refusal, Srp};
use lockwright_model::{CpuId, Instant, Priority, ResourceId, TaskId};

/// Earliest deadline first on each processor, with the stack resource policy.
///
/// # Bound
/// A decision takes a step for each task of the processor, and those of [`Srp`]. A job that is not earlier than the top
/// waits before it starts: for jobs with earlier deadlines, and for at most one section of a job with a later one.
///
/// # Reference
/// C. L. Liu, J. W. Layland, "Scheduling algorithms for multiprogramming in a hard-real-time environment", Journal of
/// the ACM 20(1), 1973; T. P. Baker, "Stack-based scheduling of realtime processes", Real-Time Systems 3(1), 1991.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Edf<const TASKS: usize = DEFAULT_TASKS, const RESOURCES: usize = DEFAULT_RESOURCES> {
    resources: Srp<TASKS, RESOURCES>,
    tasks: [TaskState; TASKS],
    peers: Peers<TASKS>,
    count: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct TaskState {
    job: Job,
    /// The deadline of the job.
    due: Instant,
    epoch: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Job {
    None,
    Waits {
        /// The resource policy has not let the job start.
        is_held: bool,
    },
    /// The job was woken to start at this place of the stack, and has not got its priority yet.
    Woken(u16),
    /// The job has started at this place of the stack.
    Started(u16),
}

impl Job {
    /// The place on the stack; the lowest is 1.
    fn place(self) -> Option<u16> {
        match self {
            Self::Woken(place) | Self::Started(place) => Some(place),
            Self::None | Self::Waits { .. } => None,
        }
    }
}

impl<const TASKS: usize, const RESOURCES: usize> Edf<TASKS, RESOURCES> {
    /// The priority of a task that has no started job: above all places of a stack, and below jobs that are not
    /// preempted.
    pub const ARRIVING: Priority = Priority::MIN.boosted();

    /// There are no jobs, and all resources are free. `tasks[t]` is the preemption level and the processor of task `t`,
    /// and `ceilings[r]` is the ceiling of resource `r`, the highest preemption level of its users. Other tasks and
    /// resources are refused.
    #[must_use]
    pub fn new(tasks: &[(Priority, CpuId)], ceilings: &[Priority]) -> Self {
        Self {
            resources: Srp::new(tasks, ceilings),
            tasks: [TaskState { job: Job::None, due: Instant::ZERO, epoch: 0 }; TASKS],
            peers: Peers::new(tasks.iter().map(|task| task.1)),
            count: tasks.len().min(TASKS),
        }
    }

    /// Returns the priority of the job at this place of a stack.
    #[must_use]
    pub fn at_place(place: u16) -> Priority {
        Priority::base(u32::from(place))
    }

    /// Returns the owner of a resource.
    #[must_use]
    pub fn owner(&self, resource: ResourceId) -> Option<TaskId> {
        self.resources.owner(resource)
    }

    fn known(&self, task: TaskId) -> Result<TaskState, Refusal> {
        self.tasks[..self.count].get(task.index()).copied().ok_or(Refusal::UnknownTask)
    }

    fn set(&mut self, task: TaskId, job: Job) {
        self.tasks[task.index()].job = job;
    }

    /// The order of jobs.
    fn key(&self, task: TaskId) -> (Instant, TaskId) {
        (self.tasks[task.index()].due, task)
    }

    /// The top of the stack of the processor of `task`, and its place.
    fn top(&self, task: TaskId) -> Option<(u16, TaskId)> {
        let place = |&other: &TaskId| Some((self.tasks[other.index()].job.place()?, other));
        // At the last place, that of the earliest deadline.
        let key = |&(place, other): &(u16, TaskId)| (place, core::cmp::Reverse(self.key(other)));
        self.peers.of(task).iter().filter_map(place).max_by_key(key)
    }

    /// Puts the waiting job with the earliest deadline on the stack of the processor of `task`, if it may start.
    /// Returns its task.
    ///
    /// BOUND: three steps for each task of the processor, and a step for each resource that is held.
    fn start_next(&mut self, task: TaskId) -> Option<TaskId> {
        let waits = |other: &&TaskId| matches!(self.tasks[other.index()].job, Job::Waits { .. });
        let next = self.peers.of(task).iter().filter(waits).copied().min_by_key(|&other| self.key(other))?;
        // Ceilings may have risen since the job arrived: only if an earlier one was held, and then gave up.
        if !self.resources.may_start(next) {
            return None;
        }
        let place = match self.top(task) {
            Some((_, top)) if self.key(top) < self.key(next) => return None,
            Some((place, _)) => place + 1,
            None => 1,
        };
        // A processor has at most as many places as tasks, and there are at most 1,024 tasks.
        self.set(next, Job::Woken(place.min(self.peers.of(task).len() as u16)));
        Some(next)
    }

    /// Starts the next job of the processor of `task` after a change, and wakes it.
    fn wake_next(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) {
        if let Some(next) = self.start_next(task) {
            act(Action::Wake { task: next });
        }
    }

    /// Gives `task` its priority.
    fn tell(&mut self, task: TaskId, priority: Priority, act: &mut dyn FnMut(Action)) {
        let epoch = &mut self.tasks[task.index()].epoch;
        *epoch = epoch.wrapping_add(1);
        act(Action::SetPriority { task, priority, epoch: *epoch });
    }

    /// Starts the job of `task`, which was woken.
    fn begin(&mut self, task: TaskId, place: u16, act: &mut dyn FnMut(Action)) {
        self.set(task, Job::Started(place));
        self.tell(task, Self::at_place(place), act);
    }

    /// Passes an event to the resources. A job that is no longer held is not woken by that alone.
    fn on_resources(
        &mut self,
        event: impl FnOnce(&mut Srp<TASKS, RESOURCES>, &mut dyn FnMut(Action)) -> Result<(), Refusal>,
        act: &mut dyn FnMut(Action),
    ) -> Result<(), Refusal> {
        let tasks = &mut self.tasks;
        event(&mut self.resources, &mut |action| match action {
            Action::Hold { task } => tasks[task.index()].job = Job::Waits { is_held: true },
            Action::Wake { task } if tasks[task.index()].job == (Job::Waits { is_held: true }) => {
                tasks[task.index()].job = Job::Waits { is_held: false };
            }
            // Levels are not priorities.
            Action::SetPriority { .. } => {}
            other => act(other),
        })
    }

    /// For the exhaustive walk: states that differ only in epochs are one.
    #[cfg(test)]
    pub(crate) fn forget_epochs(&mut self) {
        self.tasks.iter_mut().for_each(|task| task.epoch = 0);
        self.resources.forget_epochs();
    }
}

impl<const TASKS: usize, const RESOURCES: usize> Machine for Edf<TASKS, RESOURCES> {
    fn counts_jobs(&self) -> bool {
        true
    }

    fn arrive(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.arrive_due(task, Instant::from_ns(u64::MAX), act)
    }

    fn arrive_due(&mut self, task: TaskId, due: Instant, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        if self.known(task)?.job != Job::None {
            return Err(Refusal::Job);
        }
        self.tasks[task.index()] = TaskState { job: Job::Waits { is_held: false }, due, ..self.tasks[task.index()] };
        self.on_resources(|resources, act| resources.arrive(task, act), act)?;
        // Only the new job can start: the others could not before.
        let next = self.start_next(task);
        debug_assert!(next.is_none_or(|next| next == task), "another job could have started before");
        match next.and_then(|next| self.tasks[next.index()].job.place()) {
            Some(place) => self.begin(task, place, act),
            None => act(Action::Hold { task }),
        }
        Ok(())
    }

    /// A job may also end after it was woken and before its task was told: if the task could not take its priority.
    fn finish(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        if self.known(task)?.job.place().is_none() {
            return Err(Refusal::Job);
        }
        self.on_resources(|resources, act| resources.finish(task, act), act)?;
        self.set(task, Job::None);
        self.wake_next(task, act);
        self.tell(task, Self::ARRIVING, act);
        Ok(())
    }

    fn request(&mut self, task: TaskId, resource: ResourceId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        if self.known(task).is_ok_and(|state| !matches!(state.job, Job::Started(_))) {
            let is_known = self.resources.knows(resource);
            return Err(if is_known { Refusal::Job } else { Refusal::UnknownResource });
        }
        self.resources.request(task, resource, act)
    }

    fn release(&mut self, task: TaskId, resource: ResourceId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.on_resources(|resources, act| resources.release(task, resource, act), act)?;
        self.wake_next(task, act);
        Ok(())
    }

    /// The job was woken to start.
    fn woken(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        match self.known(task)?.job {
            Job::Woken(place) => {
                self.begin(task, place, act);
                Ok(())
            }
            _ => Err(Refusal::NotWaiting),
        }
    }

    /// A job that waits to start gives up.
    fn cancel(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        match self.known(task)?.job {
            Job::Waits { is_held } => {
                let ignore = &mut |_| ();
                let left =
                    if is_held { self.resources.cancel(task, ignore) } else { self.resources.finish(task, ignore) };
                left?;
                self.set(task, Job::None);
                self.wake_next(task, act);
                act(Action::Wake { task });
                Ok(())
            }
            Job::Started(_) => self.resources.cancel(task, act),
            Job::None | Job::Woken(_) => Err(Refusal::NotWaiting),
        }
    }

    /// A base priority has no effect.
    fn set_base(&mut self, task: TaskId, _: Priority, _: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.known(task).map(drop)
    }
}

#[cfg(test)]
mod tests;
