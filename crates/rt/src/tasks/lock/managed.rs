//! Protocols whose machine decides: under its guard, its actions carried out after it.
//!
//! ```text
//!   request   rise; [guard: decide]; wait for the grant if told to; where it was woken without one, or has arrived elsewhere: again
//!   release   [guard: decide, grant to the next]; wake it; go back; fall;  or, where the section was in vain: nothing, it is executed again
//!   arrive    [guard: decide]; wait if it must not start
//!   set_base  [guard: decide]; change the priority of the task
//! ```

use super::error::{Ending, ResourceError};
use crate::tasks::executor::{Executor, Source};
use lockwright_model::{CpuId, MpcpCeiling, Priority, ResourceId, TaskId};
use lockwright_protocol::{Action, Machine, Refusal};
use lockwright_sys::guard::Guarded;
use lockwright_sys::{SysError, clock};
use std::fmt;

/// A machine for all threads.
pub(super) struct Managed {
    source: Source,
    /// Where all tasks are that it knows; `None` where those are anywhere.
    cpu: Option<CpuId>,
    counts_jobs: bool,
    machine: Guarded<Box<dyn Machine + Send>>,
}

/// What a task rises to before it asks: what it has at least when it owns what it asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Rise {
    /// Owners have no priority of their own.
    Nothing,
    /// The same on every processor.
    To(Priority),
    Mpcp(MpcpCeiling),
    /// Its own priority in the boosted band; at the resource's home, the ceiling.
    Home(CpuId, Priority),
    /// By processor.
    Local(Box<[Priority]>),
    /// Tasks below the cutoff, the first, to the ceiling among them.
    Below(Priority, Priority),
}

impl Rise {
    /// Of a task that asks: at first, and when it has arrived at the resource's home.
    fn of(&self, Asker { task, base, cpu }: Asker, executor: &Executor, is_first: bool) -> Option<Priority> {
        match self {
            Self::Nothing => None,
            Self::To(priority) => Some(*priority),
            Self::Mpcp(ceiling) => Some(ceiling.on(cpu)),
            Self::Home(home, _) if is_first && *home != cpu => Some(base.boosted()),
            Self::Home(_, ceiling) => Some(base.boosted().max(*ceiling)),
            Self::Local(ceilings) => ceilings.get(cpu.index()).map(|ceiling| ceiling.raised()),
            // A scripted change may have taken it across.
            Self::Below(cutoff, ceiling) => Some(*ceiling).filter(|_| executor.base(task) < *cutoff),
        }
    }
}

impl fmt::Debug for Managed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Managed").field("source", &self.source).field("cpu", &self.cpu).finish_non_exhaustive()
    }
}

/// Who asks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asker {
    pub(super) task: TaskId,
    pub(super) base: Priority,
    pub(super) cpu: CpuId,
}

impl Managed {
    pub(super) fn new(source: Source, cpu: Option<CpuId>, machine: Box<dyn Machine + Send>) -> Self {
        Self { source, cpu, counts_jobs: machine.counts_jobs(), machine: Guarded::new(machine) }
    }

    /// Whether it wants to hear of the jobs of a task on `cpu`.
    pub(super) fn counts_jobs_of(&self, cpu: CpuId) -> bool {
        self.counts_jobs && self.knows(cpu)
    }

    /// Whether a task on `cpu` can be one of its own.
    pub(super) fn knows(&self, cpu: CpuId) -> bool {
        self.cpu.is_none_or(|own| own == cpu)
    }

    /// The caller asks, and returns as the owner. Says whether it waited.
    ///
    /// BOUND: a round for each time it was woken without a grant, which its protocol bounds.
    pub(super) fn request(
        &self,
        executor: &Executor,
        asker: Asker,
        resource: ResourceId,
        rise: &Rise,
    ) -> Result<bool, ResourceError> {
        let task = asker.task;
        let (mut is_first, mut waited) = (true, false);
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
                    // What was asked before is taken back.
                    let taken_back = if is_first { Ok(()) } else { self.cancel(executor, task) };
                    return taken_back.and(settled.map_err(ResourceError::from)).and(Err(error.into()));
                }
            };
            let decision = match decision {
                Ok(decision) => decision,
                Err(refusal) => {
                    let settled = executor.asked(task).map_err(ResourceError::from);
                    // A machine that refuses one it has woken has it no more, or it is taken back.
                    let taken_back = if is_first { Ok(()) } else { self.cancel(executor, task) };
                    return taken_back.and(settled).and(Err(refusal.into()));
                }
            };
            let (outcome, result) = executor.carry_out(self.source, Some(task), false, decision);
            // Only what the machine said counts from here.
            let result: Result<(), SysError> = result.and(if rises.is_some() { executor.asked(task) } else { Ok(()) });
            waited |= outcome.waited;
            match (outcome.is_granted, result) {
                (true, Ok(())) => return Ok(waited),
                (false, Ok(())) => is_first = false,
                // The task owns what it asked for, or waits for it, whatever else failed: it must not stay so.
                (true, Err(error)) => return self.release(executor, task, resource).and(Err(error.into())),
                (false, Err(error)) => return self.cancel(executor, task).and(Err(error.into())),
            }
        }
    }

    /// `task`, the caller, gives back, whether its section was in vain or not.
    ///
    /// BOUND: a round for each section of another that is committed between two decisions of the caller.
    pub(super) fn release(&self, executor: &Executor, task: TaskId, resource: ResourceId) -> Result<(), ResourceError> {
        while self.leave(executor, task, resource, || {})? {}
        Ok(())
    }

    /// `task`, the caller, has executed its section to the end, and gives back unless that was in vain. The time is read under the guard: so the times of
    /// commits are in the order of the decisions.
    pub(super) fn end(&self, executor: &Executor, task: TaskId, resource: ResourceId) -> Result<Ending, ResourceError> {
        let mut at_ns = 0;
        let restarts = self.leave(executor, task, resource, || at_ns = clock::now_ns())?;
        Ok(Ending { at_ns, restarts })
    }

    /// Says whether the section is to be executed again.
    fn leave(
        &self,
        executor: &Executor,
        task: TaskId,
        resource: ResourceId,
        decided: impl FnOnce(),
    ) -> Result<bool, ResourceError> {
        let decision = executor.decide(self.source, &self.machine, Some(task), |machine, act| {
            let answer = machine.release(task, resource, act);
            decided();
            answer
        })?;
        let (outcome, result) = executor.carry_out(self.source, Some(task), false, decision);
        result?;
        Ok(outcome.restarts)
    }

    /// A job of `task`, the caller, is released. Returns when it may start.
    pub(super) fn arrive(&self, executor: &Executor, task: TaskId) -> Result<(), ResourceError> {
        self.tell_of_job(executor, task, |machine, act| machine.arrive(task, act))
    }

    /// The job of `task`, the caller, is done.
    pub(super) fn finish(&self, executor: &Executor, task: TaskId) -> Result<(), ResourceError> {
        self.tell_of_job(executor, task, |machine, act| machine.finish(task, act))
    }

    /// The base priority of `task` changes; the caller is another thread.
    pub(super) fn set_base(&self, executor: &Executor, task: TaskId, base: Priority) -> Result<(), ResourceError> {
        self.tell(executor, None, |machine, act| machine.set_base(task, base, act))
    }

    fn cancel(&self, executor: &Executor, task: TaskId) -> Result<(), ResourceError> {
        self.tell(executor, Some(task), |machine, act| machine.cancel(task, act))
    }

    /// Keeps everybody from deciding.
    #[cfg(test)]
    pub(super) fn hold(&self) -> lockwright_sys::guard::Guard<'_, Box<dyn Machine + Send>> {
        self.machine.lock()
    }

    /// Jobs begin and end at priorities that say nothing on other processors: where those have the same guard, the caller is not preempted until all is carried
    /// out.
    fn tell_of_job(
        &self,
        executor: &Executor,
        task: TaskId,
        event: impl FnOnce(&mut dyn Machine, &mut dyn FnMut(Action)) -> Result<(), Refusal>,
    ) -> Result<(), ResourceError> {
        if self.cpu.is_some() {
            return self.tell(executor, Some(task), event);
        }
        let excluded = executor.exclude(task);
        match executor.decide(self.source, &self.machine, Some(task), event) {
            Ok(decision) => {
                let (_, result) = executor.carry_out(self.source, Some(task), true, decision);
                Ok(excluded.and(result)?)
            }
            Err(refusal) => executor.include(task).map_err(ResourceError::from).and(Err(refusal.into())),
        }
    }

    fn tell(
        &self,
        executor: &Executor,
        me: Option<TaskId>,
        event: impl FnOnce(&mut dyn Machine, &mut dyn FnMut(Action)) -> Result<(), Refusal>,
    ) -> Result<(), ResourceError> {
        let decision = executor.decide(self.source, &self.machine, me, event)?;
        let (_, result) = executor.carry_out(self.source, me, false, decision);
        Ok(result?)
    }
}
