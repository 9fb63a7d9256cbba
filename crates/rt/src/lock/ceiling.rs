//! `icpp` and `mpcp`: the protocol machine under the guard, its actions carried out after it.
//!
//! ```text
//!   request   rise to the ceiling; [guard: decide]; wait for the grant if blocked
//!   release   [guard: decide, grant to the first waiter]; wake it; fall
//!   set_base  [guard: decide]; change the priority of the task
//! ```
//!
//! Under `icpp` on one processor nobody ever waits here; under `mpcp` see the machine for the bound.

use super::LockError;
use crate::executor::{Actions, Executor, Source};
use crate::guard::Guarded;
use lockwright_model::{Priority, ResourceId, TaskId};
use lockwright_protocol::{Action, Icpp, Mpcp, Refusal};

/// What the machines with ceilings share.
pub(super) trait Machine {
    fn request(&mut self, task: TaskId, resource: ResourceId, act: &mut impl FnMut(Action)) -> Result<(), Refusal>;
    fn release(&mut self, task: TaskId, resource: ResourceId, act: &mut impl FnMut(Action)) -> Result<(), Refusal>;
    fn set_base(&mut self, task: TaskId, base: Priority, act: &mut impl FnMut(Action)) -> Result<(), Refusal>;
}

macro_rules! machine {
    ($name:ident) => {
        impl Machine for $name {
            fn request(&mut self, task: TaskId, on: ResourceId, act: &mut impl FnMut(Action)) -> Result<(), Refusal> {
                $name::request(self, task, on, act)
            }

            fn release(&mut self, task: TaskId, on: ResourceId, act: &mut impl FnMut(Action)) -> Result<(), Refusal> {
                $name::release(self, task, on, act)
            }

            fn set_base(&mut self, task: TaskId, base: Priority, act: &mut impl FnMut(Action)) -> Result<(), Refusal> {
                $name::set_base(self, task, base, act)
            }
        }
    };
}

machine!(Icpp);
machine!(Mpcp);

/// A machine for all threads.
#[derive(Debug)]
pub(super) struct Ceiling<M> {
    source: Source,
    machine: Box<Guarded<M>>,
}

impl<M: Machine> Ceiling<M> {
    pub(super) fn new(source: Source, machine: M) -> Self {
        Self { source, machine: Box::new(Guarded::new(machine)) }
    }

    /// `task`, the caller, asks, and returns as the owner. Says whether it waited.
    pub(super) fn request(
        &self,
        executor: &Executor,
        task: TaskId,
        resource: ResourceId,
        ceiling: Priority,
    ) -> Result<bool, LockError> {
        let asked = executor.rise(task, ceiling).map_err(LockError::from).and_then(|()| {
            let mut actions = Actions::new();
            self.note(executor, task, &mut actions, |machine, mut act| machine.request(task, resource, &mut act))?;
            Ok(executor.carry_out(self.source, &actions))
        });
        let settled = executor.asked(task);
        let decided = match asked {
            Ok(decided) => decided,
            Err(error) => return settled.map_err(LockError::from).and(Err(error)),
        };
        // Once the machine has decided, the task owns what it asked for, whatever else failed: it must not stay so.
        match decided.and_then(|waited| settled.map(|()| waited)) {
            Ok(waited) => Ok(waited),
            Err(error) => self.release(executor, task, resource).and(Err(error.into())),
        }
    }

    /// `task`, the caller, gives back.
    pub(super) fn release(&self, executor: &Executor, task: TaskId, resource: ResourceId) -> Result<(), LockError> {
        self.decide(executor, task, |machine, mut act| machine.release(task, resource, &mut act)).map(|_| ())
    }

    /// The base priority of `task` changes; the caller is another thread.
    pub(super) fn set_base(&self, executor: &Executor, task: TaskId, base: Priority) -> Result<(), LockError> {
        self.decide(executor, task, |machine, mut act| machine.set_base(task, base, &mut act)).map(|_| ())
    }

    /// Keeps everybody from deciding.
    #[cfg(test)]
    pub(super) fn hold(&self) -> crate::guard::Guard<'_, M> {
        self.machine.lock()
    }

    fn decide(
        &self,
        executor: &Executor,
        me: TaskId,
        event: impl FnOnce(&mut M, &mut dyn FnMut(Action)) -> Result<(), Refusal>,
    ) -> Result<bool, LockError> {
        let mut actions = Actions::new();
        self.note(executor, me, &mut actions, event)?;
        Ok(executor.carry_out(self.source, &actions)?)
    }

    fn note(
        &self,
        executor: &Executor,
        me: TaskId,
        actions: &mut Actions,
        event: impl FnOnce(&mut M, &mut dyn FnMut(Action)) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        event(&mut self.machine.lock(), &mut |action| executor.note(me, actions, action))
    }
}
