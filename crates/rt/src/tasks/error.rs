//! Why a task set cannot be made, and why a thread of it cannot do what it wants.

use crate::levels::TASK_LEVELS_MAX;
use crate::tasks::lock::ResourceError;
use lockwright_model::{Invalid, MAX_EXECUTED_TASKS, Protocol, ResourceId, Scheduler, System, TaskId};
use lockwright_sys::SysError;
use std::fmt;

/// Why this machine cannot execute a system, or no machine can. Tasks are named by id; the system knows their names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum MachineError {
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
    /// A system call failed.
    Sys(SysError),
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
    /// The sections on a resource begin again instead of being waited for (`ics`, `ics_lock`): a run of `lockwright-engine` executes these, but a task set for a program's own
    /// threads cannot undo what their sections have written.
    Interruptible {
        /// Which.
        resource: ResourceId,
    },
}

impl fmt::Display for MachineError {
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
            Self::TooManyTasks { tasks } => {
                write!(f, "the system has {tasks} tasks; at most {MAX_EXECUTED_TASKS} are executed")
            }
            Self::Sys(error) => error.fmt(f),
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
        }
    }
}

impl std::error::Error for MachineError {}

impl From<SysError> for MachineError {
    fn from(error: SysError) -> Self {
        if error.is_permission() { Self::NoPermission(error) } else { Self::Sys(error) }
    }
}

/// Whether the system is one that is executed at all, whatever the machine.
///
/// # Errors
/// Why not.
pub fn check_system(system: &System, protocol: Protocol) -> Result<(), MachineError> {
    if !matches!(system.scheduler(), Scheduler::PFp | Scheduler::CFp) {
        return Err(MachineError::Scheduler(system.scheduler()));
    }
    if system.tasks().len() > MAX_EXECUTED_TASKS {
        return Err(MachineError::TooManyTasks { tasks: system.tasks().len() });
    }
    if let Some((task, outer, inner)) = system.refused_nesting(protocol) {
        return Err(MachineError::Nested { task, outer, inner });
    }
    match system.refused_in_clusters(protocol) {
        Some(resource) => Err(MachineError::Clusters { resource }),
        None => Ok(()),
    }
}

/// Why a task set cannot be, or a thread cannot do what it wants.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum TaskError {
    /// The tasks and resources break a rule.
    Invalid(Invalid),
    /// The machine cannot have them: too few CPUs or levels, no permission; or a system call failed.
    Machine(MachineError),
    /// The task does not exist.
    NoTask,
    /// Another thread is that task, or this thread is another.
    Taken,
    /// A job of the task has begun already.
    Begun,
    /// No job of the task has begun.
    NotBegun,
    /// The task was not said to use the resource, or there is none such.
    NotAUser,
    /// A lock failed.
    Lock(ResourceError),
}

impl fmt::Display for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(invalid) => invalid.fmt(f),
            Self::Machine(error) => error.fmt(f),
            Self::NoTask => f.write_str("there is no such task"),
            Self::Taken => f.write_str("another thread is that task already, or this thread is another one"),
            Self::Begun => f.write_str("a job of the task has begun already; end it before"),
            Self::NotBegun => f.write_str("no job of the task has begun; begin one before"),
            Self::NotAUser => {
                f.write_str("the task was not said to use that resource; say so where the task set is made, for ceilings follow from it")
            }
            Self::Lock(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for TaskError {}

impl From<ResourceError> for TaskError {
    fn from(error: ResourceError) -> Self {
        Self::Lock(error)
    }
}

impl From<MachineError> for TaskError {
    fn from(error: MachineError) -> Self {
        Self::Machine(error)
    }
}

impl From<SysError> for TaskError {
    fn from(error: SysError) -> Self {
        Self::Machine(error.into())
    }
}

impl From<Invalid> for TaskError {
    fn from(invalid: Invalid) -> Self {
        Self::Invalid(invalid)
    }
}
