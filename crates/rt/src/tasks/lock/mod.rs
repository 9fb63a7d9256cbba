//! The locks of one run: every resource under its protocol, on real threads.
//!
//! | file | protocol | how it waits |
//! |---|---|---|
//! | `none` | [`Protocol::None`] | suspended on a futex; woken one at a time, tries again |
//! | `pip` | [`Protocol::Pip`] | suspended in the kernel, which lends the owner the waiters' priority |
//! | `fifo` | [`Protocol::FmlpLong`] | the same, in the order of requests |
//! | `spin` | [`Protocol::FmlpShort`], [`Protocol::Msrp`] | spins, above all tasks |
//! | `reader_writer` | [`Protocol::PhaseFair`], [`Protocol::TaskFair`] | spins, above all tasks; readers share |
//! | `object` | [`Protocol::LockFree`], [`Protocol::WaitFree`] | does not wait; the end of an attempt returns whether to execute it again |
//! | `managed` | [`Protocol::Ics`], [`Protocol::IcsLock`] | only for the lock below a cutoff; the end of a section returns whether to execute it again |
//! | `managed` | all others | as the protocol's machine decides: suspended on the task's own flag, ready on another processor, or spinning |
//!
//! Under the scheduler `p-edf`, each CPU has a machine that decides which of its jobs executes (`managed`), and that
//! has its local resources, under `srp`; the others are under `msrp`. Under `g-edf` with `fmlp_short` or `fmlp_long`,
//! and under `p-edf` with `fmlp_long`, one machine decides this for all CPUs, and has all these resources.
//!
//! One machine decides for all resources of its protocol that the same tasks can reach. Protocols for one processor
//! have one machine for each CPU, and `icpp` has one more for the resources shared across CPUs; the other protocols
//! have one. Only tasks that can reach a machine's resources lock its guard. If the local resources of two CPUs had one
//! guard, a decision on one CPU could wait for unrelated jobs of the other, which preempt the guard's holder there
//! above any priority it inherits.

mod error;
mod fifo;
mod managed;
mod none;
mod object;
mod pip;
mod reader_writer;
mod spin;

pub use error::{Ending, ResourceError};

use crate::tasks::executor::{Executor, FirstClaims, Waited};
use crate::tasks::priorities::Levels;
use fifo::FifoLock;
use lockwright_locks::{PhaseFair, TaskFair};
use lockwright_model::{
    CpuId, EXECUTED_TASKS_MAX, Instant, Mode, Priority, Protocol, RESOURCES_MAX, ResourceId, Scheduler, System, TaskId,
};
use lockwright_protocol::{Edf, GlobalEdf, Machine, boxed, boxed_edf, boxed_global_edf};
use managed::{Asker, Managed, Rise};
use none::PlainLock;
use object::Version;
use pip::PipLock;
use reader_writer::{Pause, ReaderWriterLock};
use spin::SpinLock;

/// A resource under its protocol.
#[derive(Debug)]
enum Lock {
    None(PlainLock),
    Pip(PipLock),
    Fifo(FifoLock),
    Spin(SpinLock),
    PhaseFair(ReaderWriterLock<PhaseFair<Pause>>),
    TaskFair(ReaderWriterLock<TaskFair<Pause>>),
    /// The machine with this index decides.
    Managed(usize, Rise),
    /// The same, for sections that do not exclude each other and may be invalidated.
    Interruptible(usize, Rise),
    /// Attempts at a lock-free object.
    Attempts(Version),
    /// Operations on a wait-free object.
    WaitFree,
}

/// All resources of a system.
#[derive(Debug)]
pub struct Locks {
    /// Carries out the decisions.
    pub executor: Executor,
    locks: Box<[Lock]>,
    tasks: Box<[Asker]>,
    machines: Box<[Managed]>,
}

impl Locks {
    /// Creates the locks of `system`, all free. `protocol` is the system's, and `cpus` are the Linux numbers of its
    /// processors.
    pub fn new(system: &System, protocol: Protocol, levels: Levels, cpus: &[usize]) -> Self {
        let is_global = system.has_global_locks(protocol);
        let is_partitioned = system.scheduler() == Scheduler::PEdf && !is_global;
        let by_deadline = is_partitioned || is_global;
        let mut known: Vec<(Protocol, Option<CpuId>)> = Vec::new();
        if is_global {
            // One machine has all resources of these protocols.
            known.push((Protocol::FmlpLong, None));
        }
        if is_partitioned {
            // Each CPU has a scheduler, even if its tasks use no resources. It decides on the local ones as well.
            let cpus = (0..system.cpus()).map(CpuId::new);
            let used = cpus.filter(|&cpu| system.tasks().iter().any(|task| task.cpu == cpu));
            known.extend(used.map(|cpu| (Protocol::Srp, Some(cpu))));
        }
        let mut lock = |resource| match system.protocol_of(resource, protocol) {
            // A resource without users may be under any protocol: it has no machine of its own either.
            ruling if is_global && !ruling.is_object() => Lock::Managed(0, Rise::Above),
            Protocol::None => Lock::None(PlainLock::new()),
            Protocol::Pip => Lock::Pip(PipLock::new()),
            Protocol::FmlpLong => Lock::Fifo(FifoLock::for_tasks(system.users(resource).len())),
            Protocol::FmlpShort | Protocol::Msrp => Lock::Spin(SpinLock::new()),
            Protocol::PhaseFair => Lock::PhaseFair(ReaderWriterLock::new(system.tasks().len())),
            Protocol::TaskFair => Lock::TaskFair(ReaderWriterLock::new(system.tasks().len())),
            Protocol::LockFree => Lock::Attempts(Version::new(system.tasks().len())),
            Protocol::WaitFree => Lock::WaitFree,
            ruling => {
                let user = system.users(resource).first().map(|&user| system.task(user).cpu);
                let for_one = matches!(ruling, Protocol::Icpp | Protocol::Pcp | Protocol::Srp);
                let is_local = (for_one || ruling.is_interruptible()) && !system.is_global(resource);
                let user = user.or_else(|| system.tasks().first().map(|task| task.cpu).filter(|_| is_partitioned));
                let machine = (ruling, user.filter(|_| is_local));
                let place = known.iter().position(|other| *other == machine).unwrap_or_else(|| {
                    known.push(machine);
                    known.len() - 1
                });
                let rise = rise(system, resource, ruling);
                if ruling.is_interruptible() { Lock::Interruptible(place, rise) } else { Lock::Managed(place, rise) }
            }
        };
        let locks: Box<[Lock]> = system.resource_ids().map(&mut lock).collect();
        let machine = |(source, (ruling, cpu)): (usize, (Protocol, Option<CpuId>))| match cpu {
            Some(_) if is_partitioned => {
                Managed::scheduler(source, cpu, Edf::<1, 1>::ARRIVING, scheduler(system, protocol))
            }
            None if is_global => {
                Managed::scheduler(source, cpu, GlobalEdf::<1, 1>::ARRIVING, scheduler(system, protocol))
            }
            _ => Managed::new(source, cpu, small_or_large(system, ruling)),
        };
        let machines: Box<[Managed]> = known.into_iter().enumerate().map(machine).collect();
        // By deadlines, only the scheduler gives priorities.
        let base = |task| if by_deadline { Priority::MIN } else { system.task(task).priority };
        let asker = |task| Asker { task, base: base(task), cpu: system.task(task).cpu };
        let tasks: Box<[Asker]> = system.task_ids().map(asker).collect();
        let first = |&Asker { base, cpu, .. }: &Asker| {
            let told = machines.iter().find_map(|machine| machine.first(cpu));
            FirstClaims { base, cpu, told }
        };
        let executor = Executor::new(tasks.iter().map(first), levels, cpus, machines.len());
        Self { executor, locks, tasks, machines }
    }

    /// Whether the events of requests for `resource` have numbers; see [`Seat::turn`](crate::raw::Seat::turn). They
    /// have none where the kernel decides, or where sections do not exclude each other.
    #[must_use]
    pub fn has_turns(&self, resource: ResourceId) -> bool {
        matches!(
            self.locks[resource.index()],
            Lock::Fifo(_) | Lock::Spin(_) | Lock::PhaseFair(_) | Lock::TaskFair(_) | Lock::Managed(..)
        )
    }

    /// Locks `resource` for `task`, the calling thread. Returns whether it was held.
    ///
    /// BOUND: the protocol's; see the file of each.
    pub fn lock(&self, task: TaskId, resource: ResourceId) -> Result<bool, ResourceError> {
        Ok(self.lock_in(Mode::Write, task, resource)? != Waited::No)
    }

    /// As [`Locks::lock`], to read or to write. Returns how the request waited. If the protocol of the resource has no
    /// readers, its sections exclude each other in either mode.
    pub fn lock_in(&self, mode: Mode, task: TaskId, resource: ResourceId) -> Result<Waited, ResourceError> {
        let slept = |waited| if waited { Waited::Slept } else { Waited::No };
        let spun = |waited| if waited { Waited::Spun } else { Waited::No };
        match &self.locks[resource.index()] {
            Lock::None(lock) => Ok(slept(lock.lock())),
            Lock::Pip(lock) => lock.lock().map(slept),
            Lock::Fifo(lock) => lock.lock(&self.executor, task).map(slept),
            Lock::Spin(lock) => lock.lock(&self.executor, task).map(spun),
            Lock::PhaseFair(lock) => lock.lock(&self.executor, task, mode).map(spun),
            Lock::TaskFair(lock) => lock.lock(&self.executor, task, mode).map(spun),
            Lock::Attempts(version) => {
                version.begin(task);
                Ok(Waited::No)
            }
            Lock::WaitFree => Ok(Waited::No),
            Lock::Managed(machine, rise) | Lock::Interruptible(machine, rise) => {
                self.machines[*machine].request(&self.executor, self.tasks[task.index()], resource, rise)
            }
        }
    }

    /// Unlocks `resource` for `task`, the calling thread, even if its section was invalidated.
    pub fn unlock(&self, task: TaskId, resource: ResourceId) -> Result<(), ResourceError> {
        match &self.locks[resource.index()] {
            Lock::None(lock) => {
                lock.unlock();
                Ok(())
            }
            Lock::Pip(lock) => lock.unlock(),
            Lock::Fifo(lock) => lock.unlock(&self.executor, task),
            Lock::Spin(lock) => lock.unlock(&self.executor, task),
            Lock::PhaseFair(lock) => lock.unlock(&self.executor, task),
            Lock::TaskFair(lock) => lock.unlock(&self.executor, task),
            // An attempt that does not commit leaves no trace.
            Lock::Attempts(_) | Lock::WaitFree => Ok(()),
            Lock::Managed(machine, _) | Lock::Interruptible(machine, _) => {
                self.machines[*machine].release(&self.executor, task, resource)
            }
        }
    }

    /// Ends the section of `task`, the calling thread, if sections on `resource` can be invalidated. Returns whether
    /// this one was; if not, the resource is unlocked. Returns `None`, and does nothing, if sections on `resource`
    /// cannot be invalidated.
    #[must_use]
    pub fn end_interruptible(&self, task: TaskId, resource: ResourceId) -> Option<Result<Ending, ResourceError>> {
        match &self.locks[resource.index()] {
            Lock::Interruptible(machine, _) => Some(self.machines[*machine].end(&self.executor, task, resource)),
            Lock::Attempts(version) => Some(Ok(version.end(task))),
            _ => None,
        }
    }

    /// Announces the release of a job of `task`, the calling thread. Returns when its protocols and its scheduler let
    /// it start. The absolute deadline `due` has a meaning for schedulers by deadlines only; its zero is that of the
    /// monotonic clock.
    pub fn arrive(&self, task: TaskId, due: Instant) -> Result<(), ResourceError> {
        let cpu = self.tasks[task.index()].cpu;
        let mut counting = self.machines.iter().filter(|machine| machine.counts_jobs_of(cpu));
        counting.try_for_each(|machine| machine.arrive(&self.executor, task, due))
    }

    /// Announces that the job of `task`, the calling thread, is done. The task holds no resource. An error of one
    /// machine does not keep the others from being told.
    pub fn finish(&self, task: TaskId) -> Result<(), ResourceError> {
        let cpu = self.tasks[task.index()].cpu;
        let mut result = Ok(());
        for machine in self.machines.iter().filter(|machine| machine.counts_jobs_of(cpu)) {
            result = result.and(machine.finish(&self.executor, task));
        }
        result
    }

    /// Changes the base priority of `task`, whatever the task does at the moment. By deadlines there are none to
    /// change.
    pub fn set_base(&self, task: TaskId, base: Priority) -> Result<(), ResourceError> {
        if self.machines.iter().any(Managed::schedules) {
            return Ok(());
        }
        self.executor.set_base(task, base)?;
        let cpu = self.tasks[task.index()].cpu;
        let mut knowing = self.machines.iter().filter(|machine| machine.knows(cpu));
        knowing.try_for_each(|machine| machine.set_base(&self.executor, task, base))
    }

    /// Whether locking `resource` may change the task's priority or processor at once.
    #[must_use]
    pub fn has_ceiling(&self, resource: ResourceId) -> bool {
        match &self.locks[resource.index()] {
            Lock::Managed(..) | Lock::Spin(_) | Lock::PhaseFair(_) | Lock::TaskFair(_) => true,
            Lock::Interruptible(_, rise) => *rise != Rise::Nothing,
            Lock::None(_) | Lock::Pip(_) | Lock::Fifo(_) | Lock::Attempts(_) | Lock::WaitFree => false,
        }
    }
}

fn rise(system: &System, resource: ResourceId, ruling: Protocol) -> Rise {
    match ruling {
        Protocol::Icpp => Rise::To(system.ceiling(resource)),
        Protocol::IcsLock => {
            let ceiling = system.locked_ceiling(resource).unwrap_or(Priority::MIN);
            Rise::Below(system.cutoff(resource), ceiling)
        }
        Protocol::Mpcp | Protocol::MpcpVs => Rise::Mpcp(system.mpcp_ceiling(resource)),
        Protocol::Dpcp => Rise::Home(system.home(resource), system.highest_user(resource).boosted()),
        Protocol::Dflp | Protocol::FmlpPlus | Protocol::Omlp => Rise::To(Priority::BASE_MAX.boosted()),
        Protocol::Mrsp => {
            let cpus = (0..system.cpus()).map(CpuId::new);
            Rise::Local(cpus.map(|cpu| system.local_ceiling(resource, cpu)).collect())
        }
        _ => Rise::Nothing,
    }
}

const SMALL_TASKS: usize = 64;
const SMALL_RESOURCES: usize = 32;

/// Creates a machine of the size that the system needs.
fn small_or_large(system: &System, ruling: Protocol) -> Box<dyn Machine + Send> {
    if is_small(system) {
        boxed::<SMALL_TASKS, SMALL_RESOURCES>(system, ruling)
    } else {
        boxed::<EXECUTED_TASKS_MAX, RESOURCES_MAX>(system, ruling)
    }
}

/// Creates a scheduler of the size that the system needs.
fn scheduler(system: &System, protocol: Protocol) -> Box<dyn Machine + Send> {
    match (system.has_global_locks(protocol), is_small(system)) {
        (true, true) => boxed_global_edf::<SMALL_TASKS, SMALL_RESOURCES>(system, protocol),
        (true, false) => boxed_global_edf::<EXECUTED_TASKS_MAX, RESOURCES_MAX>(system, protocol),
        (false, true) => boxed_edf::<SMALL_TASKS, SMALL_RESOURCES>(system),
        (false, false) => boxed_edf::<EXECUTED_TASKS_MAX, RESOURCES_MAX>(system),
    }
}

fn is_small(system: &System) -> bool {
    system.tasks().len() <= SMALL_TASKS && system.resources().len() <= SMALL_RESOURCES
}

#[cfg(test)]
mod tests;
