//! Errors of a run.

use crate::cpusets::CpusetError;
use lockwright::SysError;
use lockwright::locks::SLOTS_MAX;
use lockwright::tasks::{MachineError, ResourceError};
use lockwright_model::{Protocol, ResourceId, TaskId};
use std::fmt;

/// Why a run has no outcome. Tasks are named by id; the system has their names.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum RunError {
    /// The machine cannot execute the system (too few CPUs or levels, no permission, or a limit of a protocol), or a
    /// system call failed.
    Machine(MachineError),
    /// A scripted change names a task the system does not have.
    UnknownTask(TaskId),
    /// A scripted change of a base priority in a system under `p-edf` or `g-edf`, which have none.
    NoPriorities(TaskId),
    /// Under `g-edf` without locks, the system must have as many CPUs as the process may use: SCHED_DEADLINE executes
    /// on all of them.
    NotAllCpus {
        /// The number of CPUs of the system.
        needed: usize,
        /// The number of CPUs of the process.
        have: usize,
    },
    /// The protocol of a resource cannot be executed by deadlines: see
    /// [`System::refused_by_deadlines`](lockwright_model::System::refused_by_deadlines).
    NotByDeadlines {
        /// The resource.
        resource: ResourceId,
        /// Its protocol.
        protocol: Protocol,
    },
    /// The kernel refused the reservation of a task under SCHED_DEADLINE: its execution time and a margin, in each of
    /// its relative deadlines.
    NotAdmitted {
        /// The task.
        task: TaskId,
        /// The error: EBUSY if the kernel does not admit the utilization, EINVAL if the deadline is outside its limits,
        /// EPERM without the permission or if the process may not use all CPUs.
        error: SysError,
    },
    /// The CPUs could not be made cpuset partitions of their own.
    Cpusets(CpusetError),
    /// A scripted change raises a task above the ceiling of a resource that it uses.
    AboveCeiling {
        /// The task.
        task: TaskId,
        /// The resource, whose protocol uses ceilings.
        resource: ResourceId,
    },
    /// An audit was requested, and the kernel's trace cannot be read, for this reason.
    NoTrace(String),
    /// The duration plus the longest deadline exceeds the range of the clock.
    TooLong,
    /// All slots of spinlocks are claimed (see [`Slot::claim`](lockwright::locks::Slot::claim)).
    NoSlot,
    /// A thread ended during set-up, which is a bug in Lockwright.
    SetUp,
    /// Threads were not ready within 30 s, or within 1 s of a stop. Threads of other programs keep them from their
    /// CPUs. They are left behind, and end as soon as they execute.
    NotReady,
    /// A lock failed during the run.
    Lock {
        /// The task that used the lock.
        task: TaskId,
        /// The resource.
        resource: ResourceId,
        /// The error.
        error: ResourceError,
    },
    /// A job could not begin or end.
    Job {
        /// The task.
        task: TaskId,
        /// The error.
        error: ResourceError,
    },
    /// A scripted change failed during the run.
    Change {
        /// The task whose priority was to change.
        task: TaskId,
        /// The error.
        error: ResourceError,
    },
    /// The thread of a task panicked, which is a bug in Lockwright. The task holds no locks any more.
    Panicked(TaskId),
    /// A CPU of the run was taken away during it, for example unplugged: the kernel moved its threads to other CPUs.
    CpuTaken {
        /// The Linux number of the CPU.
        cpu: usize,
    },
    /// Tasks did not end within the watchdog's grace periods, or their threads have not ended although they have no
    /// work left. They are left behind under the ordinary policy.
    Stuck {
        /// The tasks that did not end.
        tasks: Vec<TaskId>,
    },
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Machine(error) => error.fmt(f),
            Self::UnknownTask(task) => write!(f, "a scripted change names task {}, which does not exist", task.0),
            Self::NoPriorities(task) => {
                write!(f, "a scripted change sets the priority of task {}, and EDF has no priorities", task.0)
            }
            Self::NotAllCpus { needed, have } => write!(
                f,
                "under SCHED_DEADLINE jobs execute on every CPU that the process may use: {have}, and the system has \
                 {needed}; set `cpus = {have}`, or give the process {needed} in a cpuset partition of their own"
            ),
            Self::NotByDeadlines { resource, protocol } => write!(
                f,
                "resource {} is under `{protocol}`, which is not executed by deadlines here; choose `lock_free` or \
                 `wait_free`, or under `g-edf` `fmlp_short` or `fmlp_long`",
                resource.0
            ),
            Self::NotAdmitted { task, error } => {
                write!(f, "task {} is not admitted under SCHED_DEADLINE ({error}): ", task.0)?;
                f.write_str(match error.errno {
                    libc::EBUSY => {
                        "with their margins, the tasks need more than the kernel has left; it gives at most 95 % of the \
                         CPUs by default (/proc/sys/kernel/sched_rt_runtime_us), since Linux 6.12 at most 90 %, and \
                         other threads under SCHED_DEADLINE have their part of that"
                    }
                    libc::EINVAL => {
                        "the deadline must be within /proc/sys/kernel/sched_deadline_period_min_us and \
                         sched_deadline_period_max_us (usually 100 us and 4.194304 s)"
                    }
                    _ => {
                        "it requires CAP_SYS_NICE (a limit for rtprio is not enough), and the process must be allowed on \
                         all CPUs of its root domain (taskset, cpuset)"
                    }
                })
            }
            Self::Cpusets(error) => error.fmt(f),
            Self::AboveCeiling { task, resource } => write!(
                f,
                "a scripted change lifts task {} above the ceiling of resource {}, which it uses; fix a higher \
                 ceiling for the resource (under ics_lock: another cutoff)",
                task.0, resource.0
            ),
            Self::NoSlot => {
                write!(f, "all {} slots of spinlocks are claimed by this process; drop some", SLOTS_MAX)
            }
            Self::NoTrace(why) => write!(f, "no audit: {why}"),
            Self::SetUp => f.write_str("a thread ended while it was set up; this is a bug in Lockwright"),
            Self::NotReady => f.write_str(
                "the threads were not ready within 30 s, or within 1 s of a stop; other programs may keep them from \
                 their CPUs, for example busy real-time threads at level 99 (`chrt -p PID` shows the level of a process)",
            ),
            Self::TooLong => f.write_str("the duration and the longest deadline are too long together"),
            Self::Lock { task, resource, error } => {
                write!(f, "task {} failed at resource {}: {error}", task.0, resource.0)
            }
            Self::Job { task, error } => write!(f, "a job of task {} could not begin or end: {error}", task.0),
            Self::Change { task, error } => write!(f, "the priority of task {} could not be changed: {error}", task.0),
            Self::Panicked(task) => {
                write!(f, "the thread of task {} panicked; this is a bug in Lockwright, please report it", task.0)
            }
            Self::CpuTaken { cpu } => write!(
                f,
                "CPU {cpu} was taken from the run (unplugged, or by `taskset` or a cpuset), and its tasks executed \
                 elsewhere; all of them have ended"
            ),
            Self::Stuck { tasks } => {
                f.write_str("the run did not end; still executing or waiting, under the ordinary policy: tasks")?;
                tasks.iter().try_for_each(|task| write!(f, " {}", task.0))
            }
        }
    }
}

impl std::error::Error for RunError {}

impl From<MachineError> for RunError {
    fn from(error: MachineError) -> Self {
        Self::Machine(error)
    }
}

impl From<CpusetError> for RunError {
    fn from(error: CpusetError) -> Self {
        Self::Cpusets(error)
    }
}

impl From<SysError> for RunError {
    fn from(error: SysError) -> Self {
        Self::Machine(error.into())
    }
}
