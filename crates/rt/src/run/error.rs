//! Why a run could not be, or could not go on.

use crate::lock::LockError;
use crate::priorities::TASK_LEVELS_MAX;
use crate::sys::SysError;
use lockwright_model::{MAX_EXECUTED_TASKS, Protocol, ResourceId, Scheduler, System, TaskId};
use std::fmt;

/// Why there is no outcome. Tasks are named by id; the system knows their names.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum RunError {
    /// The process may not use real-time priorities.
    NoPermission(SysError),
    /// The system has more CPUs than the process may use.
    TooFewCpus {
        /// CPUs of the system.
        needed: usize,
        /// CPUs of the process.
        have: usize,
    },
    /// More priorities can occur in the run than there are levels for them.
    TooManyPriorities {
        /// How many can occur: base priorities, ceilings, scripted ones.
        needed: usize,
    },
    /// The system has more tasks than protocol machines have room for: [`MAX_EXECUTED_TASKS`].
    TooManyTasks {
        /// Tasks of the system.
        tasks: usize,
    },
    /// A scripted change names a task the system does not have.
    UnknownTask(TaskId),
    /// A scripted change lifts a task above the ceiling of a resource it uses.
    AboveCeiling {
        /// The task.
        task: TaskId,
        /// The resource, whose protocol has ceilings.
        resource: ResourceId,
    },
    /// The duration and the longest deadline do not fit the clock.
    TooLong,
    /// All slots of spinlocks are claimed (see [`Slot::claim`](crate::locks::Slot::claim)).
    NoSlot,
    /// A thread ended while it was set up, which is a fault of this crate.
    SetUp,
    /// A system call failed during set-up.
    Sys(SysError),
    /// A lock failed during the run.
    Lock {
        /// Whose.
        task: TaskId,
        /// Which.
        resource: ResourceId,
        /// Why.
        error: LockError,
    },
    /// Another scheduler than fixed priorities on CPUs or clusters of them (`p-fp`, `c-fp`): nothing executes that.
    Scheduler(Scheduler),
    /// A task holds two resources at a time, whose protocols have no nested requests.
    Nested {
        /// Whose.
        task: TaskId,
        /// What it holds.
        outer: ResourceId,
        /// What it requests meanwhile.
        inner: ResourceId,
    },
    /// The resource is used in a cluster of several CPUs, which its protocol does not know.
    Clusters {
        /// Which.
        resource: ResourceId,
    },
    /// The sections on a resource begin again instead of being waited for (`ics`, `ics_lock`): [`run`](crate::run()) executes these, but a task set for a program's own
    /// threads cannot undo what their sections have written.
    Interruptible {
        /// Which.
        resource: ResourceId,
    },
    /// A job could not begin or end.
    Job {
        /// Whose.
        task: TaskId,
        /// Why.
        error: LockError,
    },
    /// A scripted change failed during the run.
    Change {
        /// Whose priority.
        task: TaskId,
        /// Why.
        error: LockError,
    },
    /// The thread of a task panicked, which is a fault of this crate. It holds nothing any more.
    Panicked(TaskId),
    /// Tasks did not end in the time the watchdog gives. They are left behind under the ordinary policy.
    Stuck {
        /// Which.
        tasks: Vec<TaskId>,
    },
}

/// What nobody can execute, whatever the machine.
pub(crate) fn check_system(system: &System, protocol: Protocol) -> Result<(), RunError> {
    if !matches!(system.scheduler(), Scheduler::PFp | Scheduler::CFp) {
        return Err(RunError::Scheduler(system.scheduler()));
    }
    if system.tasks().len() > MAX_EXECUTED_TASKS {
        return Err(RunError::TooManyTasks { tasks: system.tasks().len() });
    }
    if let Some((task, outer, inner)) = system.refused_nesting(protocol) {
        return Err(RunError::Nested { task, outer, inner });
    }
    match system.refused_in_clusters(protocol) {
        Some(resource) => Err(RunError::Clusters { resource }),
        None => Ok(()),
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPermission(error) => write!(
                f,
                "no permission for real-time priorities ({error}); grant CAP_SYS_NICE (run with sudo, or \
                 `setcap cap_sys_nice+ep` on the binary), or an rtprio limit of 99 (a line `<user> - rtprio 99` in \
                 /etc/security/limits.d, checked with `ulimit -r` after the next login)"
            ),
            Self::TooFewCpus { needed, have } => write!(
                f,
                "the system has {needed} CPUs, but the process may use only {have}; widen its set (taskset, cpuset \
                 cgroup), or use a machine with more"
            ),
            Self::TooManyPriorities { needed } => write!(
                f,
                "{needed} different priorities can occur (base priorities, ceilings and scripted changes), but Linux \
                 has {TASK_LEVELS_MAX} real-time levels to give; let tasks share priorities"
            ),
            Self::UnknownTask(task) => write!(f, "a scripted change names task {}, which does not exist", task.0),
            Self::AboveCeiling { task, resource } => write!(
                f,
                "a scripted change lifts task {} above the ceiling of resource {}, which it uses; fix a higher \
                 ceiling for the resource (under ics_lock: another cutoff)",
                task.0, resource.0
            ),
            Self::NoSlot => {
                write!(f, "all {} slots of spinlocks are claimed by this process; drop some", crate::locks::SLOTS_MAX)
            }
            Self::SetUp => f.write_str("a thread ended while it was set up; this is a fault of Lockwright"),
            Self::TooManyTasks { tasks } => {
                write!(f, "the system has {tasks} tasks; at most {MAX_EXECUTED_TASKS} are executed")
            }
            Self::TooLong => f.write_str("the duration and the longest deadline are too long together"),
            Self::Sys(error) => error.fmt(f),
            Self::Lock { task, resource, error } => {
                write!(f, "task {} failed at resource {}: {error}", task.0, resource.0)
            }
            Self::Scheduler(scheduler) => write!(
                f,
                "threads are scheduled by fixed priorities, on CPUs or clusters of them, and the system asks for `{scheduler}`; make it \
                 `p-fp` or `c-fp`"
            ),
            Self::Nested { task, outer, inner } => write!(
                f,
                "task {} requests resource {} while it holds resource {}, and their protocols have no nested requests; give both \
                 resources one `group`",
                task.0, inner.0, outer.0
            ),
            Self::Clusters { resource } => {
                write!(f, "resource {} is used in a cluster of several CPUs; `omlp` alone knows clusters", resource.0)
            }
            Self::Interruptible { resource } => write!(
                f,
                "resource {} is under ics or ics_lock, whose sections are no locks: what they wrote in vain must be undone; use interruptible \
                 sections themselves (`lockwright::ics` in Rust, `lw_ics_*` in C), or another protocol",
                resource.0
            ),
            Self::Job { task, error } => write!(f, "a job of task {} could not begin or end: {error}", task.0),
            Self::Change { task, error } => write!(f, "the priority of task {} could not be changed: {error}", task.0),
            Self::Panicked(task) => {
                write!(f, "the thread of task {} panicked; this is a fault, please report it", task.0)
            }
            Self::Stuck { tasks } => {
                f.write_str("the run did not end; still executing or waiting, under the ordinary policy: tasks")?;
                tasks.iter().try_for_each(|task| write!(f, " {}", task.0))
            }
        }
    }
}

impl std::error::Error for RunError {}

impl From<SysError> for RunError {
    fn from(error: SysError) -> Self {
        if error.is_permission() { Self::NoPermission(error) } else { Self::Sys(error) }
    }
}
