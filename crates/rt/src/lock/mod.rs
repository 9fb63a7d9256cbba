//! The locks of one run: every resource under its protocol, on real threads.
//!
//! | file | protocol | how it waits |
//! |---|---|---|
//! | `none` | [`Protocol::None`] | suspended on a futex; woken one at a time, tries again |
//! | `pip` | [`Protocol::Pip`] | suspended in the kernel, which lends the owner the waiters' priority |
//! | `ceiling` | [`Protocol::Icpp`], [`Protocol::Mpcp`] | suspended on the task's own flag, at the ceiling, until it is handed over |
//!
//! One machine rules all resources of its protocol, so that it knows all that a task holds under it.

mod ceiling;
mod none;
mod pip;

use crate::executor::{Executor, Source};
use crate::sys::SysError;
use ceiling::Ceiling;
use lockwright_model::{CpuId, MpcpCeiling, Priority, Protocol, ResourceId, System, TaskId};
use lockwright_protocol::{Icpp, Mpcp, Refusal};
use none::PlainLock;
use pip::PipLock;
use std::fmt;

/// Why a lock or an unlock failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum LockError {
    /// The task would wait for itself.
    Deadlock,
    /// The owner has ended without giving the resource back.
    OwnerDied,
    /// The protocol has no answer to the request.
    Refused(Refusal),
    /// A system call failed.
    Sys(SysError),
}

impl fmt::Display for LockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deadlock => f.write_str("the task would wait for itself"),
            Self::OwnerDied => f.write_str("the owner has ended without giving the resource back"),
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Sys(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for LockError {}

impl From<SysError> for LockError {
    fn from(error: SysError) -> Self {
        Self::Sys(error)
    }
}

impl From<Refusal> for LockError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Deadlock => Self::Deadlock,
            refusal => Self::Refused(refusal),
        }
    }
}

/// A resource under its protocol. For ceilings: what to rise to, which may be read without the guard.
#[derive(Debug)]
enum Lock {
    None(PlainLock),
    Pip(PipLock),
    Icpp(Priority),
    Mpcp(MpcpCeiling),
}

/// All resources of a system.
#[derive(Debug)]
pub(crate) struct Locks {
    pub(crate) executor: Executor,
    locks: Box<[Lock]>,
    cpus: Box<[CpuId]>,
    icpp: Option<Ceiling<Icpp>>,
    mpcp: Option<Ceiling<Mpcp>>,
}

impl Locks {
    /// All resources of `system` free, where `protocol` is the system's.
    pub(crate) fn new(system: &System, protocol: Protocol, executor: Executor) -> Self {
        let lock = |resource| match system.protocol_of(resource, protocol) {
            Protocol::Pip => Lock::Pip(PipLock::new()),
            Protocol::Icpp => Lock::Icpp(system.ceiling(resource)),
            Protocol::Mpcp => Lock::Mpcp(system.mpcp_ceiling(resource)),
            _ => Lock::None(PlainLock::new()),
        };
        let locks: Box<[Lock]> = system.resource_ids().map(lock).collect();
        let icpp = locks.iter().any(|lock| matches!(lock, Lock::Icpp(_))).then(|| {
            let priorities: Vec<Priority> = system.tasks().iter().map(|task| task.priority).collect();
            let ceilings: Vec<Priority> = system.resource_ids().map(|resource| system.ceiling(resource)).collect();
            Ceiling::new(Source::Icpp, Icpp::new(&priorities, &ceilings))
        });
        let mpcp = locks.iter().any(|lock| matches!(lock, Lock::Mpcp(_))).then(|| {
            let tasks: Vec<_> = system.tasks().iter().map(|task| (task.priority, task.cpu)).collect();
            let ceilings: Vec<_> = system.resource_ids().map(|resource| system.mpcp_ceiling(resource)).collect();
            Ceiling::new(Source::Mpcp, Mpcp::new(&tasks, &ceilings))
        });
        Self { executor, locks, cpus: system.tasks().iter().map(|task| task.cpu).collect(), icpp, mpcp }
    }

    /// `task`, the calling thread, takes `resource`. Says whether it found it taken.
    ///
    /// BOUND: the protocol's; see the file of each.
    pub(crate) fn lock(&self, task: TaskId, resource: ResourceId) -> Result<bool, LockError> {
        match &self.locks[resource.index()] {
            Lock::None(lock) => Ok(lock.lock()),
            Lock::Pip(lock) => lock.lock(),
            Lock::Icpp(ceiling) => of(&self.icpp).request(&self.executor, task, resource, *ceiling),
            Lock::Mpcp(ceiling) => {
                of(&self.mpcp).request(&self.executor, task, resource, ceiling.on(self.cpus[task.index()]))
            }
        }
    }

    /// `task`, the calling thread, gives `resource` back.
    pub(crate) fn unlock(&self, task: TaskId, resource: ResourceId) -> Result<(), LockError> {
        match &self.locks[resource.index()] {
            Lock::None(lock) => {
                lock.unlock();
                Ok(())
            }
            Lock::Pip(lock) => lock.unlock(),
            Lock::Icpp(_) => of(&self.icpp).release(&self.executor, task, resource),
            Lock::Mpcp(_) => of(&self.mpcp).release(&self.executor, task, resource),
        }
    }

    /// The base priority of `task` changes, whatever it does at the moment.
    pub(crate) fn set_base(&self, task: TaskId, base: Priority) -> Result<(), LockError> {
        self.executor.set_base(task, base)?;
        if let Some(icpp) = &self.icpp {
            icpp.set_base(&self.executor, task, base)?;
        }
        if let Some(mpcp) = &self.mpcp {
            mpcp.set_base(&self.executor, task, base)?;
        }
        Ok(())
    }

    /// Whether taking `resource` changes the priority at once.
    pub(crate) fn has_ceiling(&self, resource: ResourceId) -> bool {
        matches!(self.locks[resource.index()], Lock::Icpp(_) | Lock::Mpcp(_))
    }
}

fn of<M>(machine: &Option<M>) -> &M {
    let Some(machine) = machine else { panic!("a protocol that rules a resource has its machine") };
    machine
}

#[cfg(test)]
mod tests;
