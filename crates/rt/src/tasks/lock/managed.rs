//! Protocols whose machine decides: the decision is made under the machine's guard, and its actions are carried out
//! after it.
//!
//! ```text
//!   request   rise; [guard: decide]; wait for the grant if told to; if woken without one, or arrived elsewhere: again
//!   release   under a scheduler of all CPUs: rise; [guard: decide, grant to the next]; wake it; go back; fall;
//!             or, if the section was invalidated: nothing, it is executed again
//!   arrive    [guard: decide]; wait if the job must not start
//!   finish    under a scheduler: rise; [guard: decide]; wake the next job
//!   set_base  [guard: decide]; change the priority of the task
//! ```

use super::error::{Ending, ResourceError};
use crate::tasks::executor::{Executor, Source, Turn, Waited};
use lockwright_model::{CpuId, Instant, MpcpCeiling, Priority, ResourceId, TaskId};
use lockwright_protocol::{Action, Machine, Refusal};
use lockwright_sys::guard::Guarded;
use lockwright_sys::{SysError, clock};
use std::fmt;

/// A protocol machine that all threads share.
pub(super) struct Managed {
    source: Source,
    /// The CPU of all tasks of this machine, or `None` if they are on any CPU.
    cpu: Option<CpuId>,
    counts_jobs: bool,
    /// The machine is a scheduler: this is the priority of tasks without a job.
    arriving: Option<Priority>,
    machine: Guarded<Box<dyn Machine + Send>>,
}

/// The priority to which a task rises before it requests a resource: the least that it has as the owner.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Rise {
    /// The protocol gives owners no priority of their own.
    Nothing,
    /// The same priority on every processor.
    To(Priority),
    Mpcp(MpcpCeiling),
    /// The task's own priority in the boosted band; at the resource's home, at least the ceiling.
    Home(CpuId, Priority),
    /// A priority for each processor.
    Local(Box<[Priority]>),
    /// Tasks below the cutoff, the first field, rise to their ceiling, the second.
    Below(Priority, Priority),
    /// Above all tasks.
    Above,
}

impl Rise {
    /// Returns the priority for a task that requests: at first, and again after it arrived at the resource's home.
    fn of(&self, Asker { task, base, cpu }: Asker, executor: &Executor, is_first: bool) -> Option<Priority> {
        match self {
            Self::Nothing => None,
            Self::To(priority) => Some(*priority),
            Self::Mpcp(ceiling) => Some(ceiling.on(cpu)),
            Self::Home(home, _) if is_first && *home != cpu => Some(base.boosted()),
            Self::Home(_, ceiling) => Some(base.boosted().max(*ceiling)),
            Self::Local(ceilings) => ceilings.get(cpu.index()).map(|ceiling| ceiling.raised()),
            Self::Above => Some(Priority::NON_PREEMPTIVE),
            // A scripted change may have moved the task across the cutoff.
            Self::Below(cutoff, ceiling) => Some(*ceiling).filter(|_| executor.base(task) < *cutoff),
        }
    }
}

impl fmt::Debug for Managed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Managed").field("source", &self.source).field("cpu", &self.cpu).finish_non_exhaustive()
    }
}

/// The task that requests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asker {
    pub(super) task: TaskId,
    pub(super) base: Priority,
    pub(super) cpu: CpuId,
}

impl Managed {
    pub(super) fn new(source: Source, cpu: Option<CpuId>, machine: Box<dyn Machine + Send>) -> Self {
        Self { source, cpu, counts_jobs: machine.counts_jobs(), arriving: None, machine: Guarded::new(machine) }
    }

    /// A machine that schedules the jobs of `cpu`, or of all CPUs. Tasks without a job have the priority `arriving`.
    pub(super) fn scheduler(
        source: Source,
        cpu: Option<CpuId>,
        arriving: Priority,
        machine: Box<dyn Machine + Send>,
    ) -> Self {
        Self { arriving: Some(arriving), ..Self::new(source, cpu, machine) }
    }

    /// The priority that the machine gives to tasks on `cpu` without a job, if it schedules their jobs.
    pub(super) fn first(&self, cpu: CpuId) -> Option<(Source, Priority)> {
        Some((self.source, self.arriving.filter(|_| self.knows(cpu))?))
    }

    /// Whether the machine needs the begin and end of jobs of a task on `cpu`.
    pub(super) fn counts_jobs_of(&self, cpu: CpuId) -> bool {
        self.counts_jobs && self.knows(cpu)
    }

    /// Whether the machine is a scheduler, which alone gives the tasks their priorities.
    pub(super) fn schedules(&self) -> bool {
        self.arriving.is_some()
    }

    /// Whether a task on `cpu` can belong to this machine.
    pub(super) fn knows(&self, cpu: CpuId) -> bool {
        self.cpu.is_none_or(|own| own == cpu)
    }

    /// Requests `resource` for the caller, which returns as the owner. Returns how it waited.
    ///
    /// BOUND: one round for each time the caller was woken without a grant, which its protocol bounds.
    pub(super) fn request(
        &self,
        executor: &Executor,
        asker: Asker,
        resource: ResourceId,
        rise: &Rise,
    ) -> Result<Waited, ResourceError> {
        let task = asker.task;
        let (mut is_first, mut waited, mut woken_ns) = (true, Waited::No, 0);
        loop {
            let rises = rise.of(asker, executor, is_first);
            let risen = rises.map_or(Ok(()), |priority| executor.rise(task, priority));
            let decision = match risen {
                Ok(()) if is_first => executor.decide(self.source, &self.machine, Some(task), |machine, act| {
                    machine.request(task, resource, act)
                }),
                Ok(()) => {
                    executor.decide(self.source, &self.machine, Some(task), |machine, act| machine.woken(task, act))
                }
                Err(error) => {
                    let settled = executor.asked(task);
                    // An earlier request is cancelled.
                    let taken_back = if is_first { Ok(()) } else { self.cancel(executor, task) };
                    return taken_back.and(settled.map_err(ResourceError::from)).and(Err(error.into()));
                }
            };
            let decision = match decision {
                Ok(decision) => decision,
                Err(refusal) => {
                    let settled = executor.asked(task).map_err(ResourceError::from);
                    // A machine that refuses a task it has woken may have dropped the request already; otherwise the
                    // request is cancelled.
                    let taken_back = if is_first { Ok(()) } else { self.cancel(executor, task) };
                    return taken_back.and(settled).and(Err(refusal.into()));
                }
            };
            // A request that is made again has not been in a queue before.
            if is_first || matches!(rise, Rise::Home(..) | Rise::Above) {
                executor.note_turn(task, Turn::Asking, &decision);
                executor.note_turn(task, Turn::Asked, &decision);
            }
            let (outcome, result) = executor.carry_out(self.source, Some(task), false, decision);
            // From here on only the machine's priority counts.
            let result: Result<(), SysError> = result.and(if rises.is_some() { executor.asked(task) } else { Ok(()) });
            waited = match (waited, outcome.waited) {
                (Waited::Slept, Waited::Spun) => Waited::SleptThenSpun { woken_ns },
                (Waited::SleptThenSpun { .. }, Waited::Spun) | (_, Waited::No) => waited,
                (_, last) => last,
            };
            match (outcome.is_granted, result) {
                (true, Ok(())) => return Ok(waited),
                (false, Ok(())) => (is_first, woken_ns) = (false, clock::now_ns()),
                // After any other failure, the task must not stay the owner or a waiter.
                (true, Err(error)) => return self.release(executor, task, resource).and(Err(error.into())),
                (false, Err(error)) => return self.cancel(executor, task).and(Err(error.into())),
            }
        }
    }

    /// Releases the resource for `task`, the caller, whether its section was invalidated or not.
    ///
    /// BOUND: one round for each section of another task that is committed between two decisions of the caller.
    pub(super) fn release(&self, executor: &Executor, task: TaskId, resource: ResourceId) -> Result<(), ResourceError> {
        while self.leave(executor, task, resource, || {})? {}
        Ok(())
    }

    /// Ends the section of `task`, the caller, and releases the resource unless the section was invalidated. The time
    /// is read under the guard, so the times of commits are in the order of the decisions.
    pub(super) fn end(&self, executor: &Executor, task: TaskId, resource: ResourceId) -> Result<Ending, ResourceError> {
        let mut at_ns = 0;
        let restarts = self.leave(executor, task, resource, || at_ns = clock::now_ns())?;
        Ok(Ending { at_ns, restarts })
    }

    /// Releases the resource. Returns whether the section must be executed again.
    fn leave(
        &self,
        executor: &Executor,
        task: TaskId,
        resource: ResourceId,
        decided: impl FnOnce(),
    ) -> Result<bool, ResourceError> {
        // On all CPUs, a job that arrives could otherwise keep the caller from waking the job that continues elsewhere.
        let rises = self.arriving.filter(|_| self.cpu.is_none());
        let risen = rises.map_or(Ok(()), |priority| executor.rise(task, priority));
        let decision = executor.decide(self.source, &self.machine, Some(task), |machine, act| {
            let answer = machine.release(task, resource, act);
            decided();
            answer
        });
        let left = decision.map(|decision| {
            executor.note_turn(task, Turn::Left, &decision);
            executor.carry_out(self.source, Some(task), false, decision)
        });
        let settled = if rises.is_some() { executor.asked(task) } else { Ok(()) };
        let (outcome, result) = left?;
        risen.and(result).and(settled)?;
        Ok(outcome.restarts)
    }

    /// Announces the release of a job of `task`, the caller, with the absolute deadline `due`. Returns when the job may
    /// start.
    ///
    /// A task without a job is above all jobs of a scheduler. If the job waits, its thread keeps that priority, and
    /// takes that of the job when it is woken: no other thread has to set it.
    pub(super) fn arrive(&self, executor: &Executor, task: TaskId, due: Instant) -> Result<(), ResourceError> {
        let waited = self.tell_of_job(executor, task, |machine, act| machine.arrive_due(task, due, act))?;
        if waited && self.arriving.is_some() {
            self.tell(executor, Some(task), |machine, act| machine.woken(task, act))?;
        }
        Ok(())
    }

    /// Announces that the job of `task`, the caller, is done.
    ///
    /// Under a scheduler the task rises before, so that no job that arrives meanwhile keeps it from deciding and from
    /// falling asleep. It keeps this priority for its next arrival. If it cannot rise, it decides all the same.
    pub(super) fn finish(&self, executor: &Executor, task: TaskId) -> Result<(), ResourceError> {
        let Some(arriving) = self.arriving else {
            return self.tell_of_job(executor, task, |machine, act| machine.finish(task, act)).map(drop);
        };
        let risen = executor.rise(task, arriving);
        let told = self.tell(executor, Some(task), |machine, act| machine.finish(task, act));
        let settled = executor.asked(task);
        told.map(drop).and(risen.and(settled).map_err(ResourceError::from))
    }

    /// Changes the base priority of `task`. The caller is another thread.
    pub(super) fn set_base(&self, executor: &Executor, task: TaskId, base: Priority) -> Result<(), ResourceError> {
        self.tell(executor, None, |machine, act| machine.set_base(task, base, act)).map(drop)
    }

    fn cancel(&self, executor: &Executor, task: TaskId) -> Result<(), ResourceError> {
        self.tell(executor, Some(task), |machine, act| machine.cancel(task, act)).map(drop)
    }

    /// Holds the guard, so that no other thread can decide.
    #[cfg(test)]
    pub(super) fn hold(&self) -> lockwright_sys::guard::Guard<'_, Box<dyn Machine + Send>> {
        self.machine.lock()
    }

    /// Announces the begin or end of a job. The priority of the caller means nothing on other processors. So if their
    /// tasks use the same guard, the caller is not preempted until everything is carried out. Returns whether it
    /// waited.
    fn tell_of_job(
        &self,
        executor: &Executor,
        task: TaskId,
        event: impl FnOnce(&mut dyn Machine, &mut dyn FnMut(Action)) -> Result<(), Refusal>,
    ) -> Result<bool, ResourceError> {
        if self.cpu.is_some() {
            return self.tell(executor, Some(task), event);
        }
        let excluded = executor.exclude(task);
        match executor.decide(self.source, &self.machine, Some(task), event) {
            Ok(decision) => {
                let (outcome, result) = executor.carry_out(self.source, Some(task), true, decision);
                excluded.and(result)?;
                Ok(outcome.waited != Waited::No)
            }
            Err(refusal) => executor.include(task).map_err(ResourceError::from).and(Err(refusal.into())),
        }
    }

    fn tell(
        &self,
        executor: &Executor,
        me: Option<TaskId>,
        event: impl FnOnce(&mut dyn Machine, &mut dyn FnMut(Action)) -> Result<(), Refusal>,
    ) -> Result<bool, ResourceError> {
        let decision = executor.decide(self.source, &self.machine, me, event)?;
        let (outcome, result) = executor.carry_out(self.source, me, false, decision);
        result?;
        Ok(outcome.waited != Waited::No)
    }
}
