//! The locks of one run: every resource under its protocol, on real threads.
//!
//! | file | protocol | how it waits |
//! |---|---|---|
//! | `none` | [`Protocol::None`] | suspended on a futex; woken one at a time, tries again |
//! | `pip` | [`Protocol::Pip`] | suspended in the kernel, which lends the owner the waiters' priority |
//! | `ceiling` | [`Protocol::Icpp`], [`Protocol::Mpcp`] | suspended on the task's own flag, at the ceiling, until it is handed over |
//!
//! One machine rules all resources of its protocol that the same tasks can reach: `mpcp` has one, `icpp` one for each CPU and
//! one for what is shared across CPUs. Its guard is taken at the ceilings of its own resources only: were the local
//! resources of two CPUs under one guard, a decision on one CPU could wait for unrelated jobs of the other, which preempt
//! the guard's holder there above anything it inherits.

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
    Local(Priority),
    Shared(Priority),
    Mpcp(MpcpCeiling),
}

/// All resources of a system.
#[derive(Debug)]
pub(crate) struct Locks {
    pub(crate) executor: Executor,
    locks: Box<[Lock]>,
    cpus: Box<[CpuId]>,
    /// By CPU, where a resource of it needs one.
    local: Box<[Option<Ceiling<Icpp>>]>,
    shared: Option<Ceiling<Icpp>>,
    mpcp: Option<Ceiling<Mpcp>>,
}

impl Locks {
    /// All resources of `system` free, where `protocol` is the system's.
    pub(crate) fn new(system: &System, protocol: Protocol, executor: Executor) -> Self {
        let lock = |resource| match system.protocol_of(resource, protocol) {
            Protocol::Pip => Lock::Pip(PipLock::new()),
            Protocol::Icpp if system.is_global(resource) => Lock::Shared(system.ceiling(resource)),
            Protocol::Icpp => Lock::Local(system.ceiling(resource)),
            Protocol::Mpcp => Lock::Mpcp(system.mpcp_ceiling(resource)),
            Protocol::None => Lock::None(PlainLock::new()),
            other => unreachable!("{other} has no lock here"),
        };
        let locks: Box<[Lock]> = system.resource_ids().map(lock).collect();
        let icpp = |source| {
            let priorities: Vec<Priority> = system.tasks().iter().map(|task| task.priority).collect();
            let ceilings: Vec<Priority> = system.resource_ids().map(|resource| system.ceiling(resource)).collect();
            Ceiling::new(source, Icpp::new(&priorities, &ceilings))
        };
        let has_local = |cpu| {
            let here = |user: &TaskId| system.task(*user).cpu == cpu;
            let mut rows = system.resource_ids().zip(&locks);
            rows.any(|(id, lock)| matches!(lock, Lock::Local(_)) && system.users(id).iter().any(here))
        };
        let local = (0..system.cpus()).map(|cpu| has_local(CpuId::new(cpu)).then(|| icpp(Source::Local))).collect();
        let shared = locks.iter().any(|lock| matches!(lock, Lock::Shared(_))).then(|| icpp(Source::Shared));
        let mpcp = locks.iter().any(|lock| matches!(lock, Lock::Mpcp(_))).then(|| {
            let tasks: Vec<_> = system.tasks().iter().map(|task| (task.priority, task.cpu)).collect();
            let ceilings: Vec<_> = system.resource_ids().map(|resource| system.mpcp_ceiling(resource)).collect();
            Ceiling::new(Source::Mpcp, Mpcp::new(&tasks, &ceilings))
        });
        let cpus = system.tasks().iter().map(|task| task.cpu).collect();
        Self { executor, locks, cpus, local, shared, mpcp }
    }

    /// `task`, the calling thread, takes `resource`. Says whether it found it taken.
    ///
    /// BOUND: the protocol's; see the file of each.
    pub(crate) fn lock(&self, task: TaskId, resource: ResourceId) -> Result<bool, LockError> {
        match &self.locks[resource.index()] {
            Lock::None(lock) => Ok(lock.lock()),
            Lock::Pip(lock) => lock.lock(),
            Lock::Local(ceiling) => of(self.local(task)).request(&self.executor, task, resource, *ceiling),
            Lock::Shared(ceiling) => of(&self.shared).request(&self.executor, task, resource, *ceiling),
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
            Lock::Local(_) => of(self.local(task)).release(&self.executor, task, resource),
            Lock::Shared(_) => of(&self.shared).release(&self.executor, task, resource),
            Lock::Mpcp(_) => of(&self.mpcp).release(&self.executor, task, resource),
        }
    }

    /// The base priority of `task` changes, whatever it does at the moment.
    pub(crate) fn set_base(&self, task: TaskId, base: Priority) -> Result<(), LockError> {
        self.executor.set_base(task, base)?;
        for icpp in self.local(task).iter().chain(&self.shared) {
            icpp.set_base(&self.executor, task, base)?;
        }
        if let Some(mpcp) = &self.mpcp {
            mpcp.set_base(&self.executor, task, base)?;
        }
        Ok(())
    }

    /// Whether taking `resource` changes the priority at once.
    pub(crate) fn has_ceiling(&self, resource: ResourceId) -> bool {
        matches!(self.locks[resource.index()], Lock::Local(_) | Lock::Shared(_) | Lock::Mpcp(_))
    }

    /// The machine for the resources of the task's CPU.
    fn local(&self, task: TaskId) -> &Option<Ceiling<Icpp>> {
        &self.local[self.cpus[task.index()].index()]
    }
}

fn of<M>(machine: &Option<M>) -> &M {
    let Some(machine) = machine else { panic!("a protocol that rules a resource has its machine") };
    machine
}

#[cfg(test)]
mod tests;
