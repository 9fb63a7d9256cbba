//! The errors of task sets and of their threads.

use crate::levels::TASK_LEVELS_MAX;
use crate::tasks::lock::ResourceError;
use lockwright_model::{EXECUTED_TASKS_MAX, Invalid, Protocol, ResourceId, Scheduler, System, TaskId};
use lockwright_sys::SysError;
use std::cell::LazyCell;
use std::fmt;

/// Why this machine, or any machine, cannot execute a system. Tasks are named by id; the system has their names.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum MachineError {
    /// The process may not use real-time priorities.
    NoPermission(SysError),
    /// The system has more CPUs than the process may use.
    TooFewCpus {
        /// The number of CPUs of the system.
        needed: usize,
        /// The number of CPUs of the process.
        have: usize,
    },
    /// A task may execute on two CPUs of which only one is isolated (`isolcpus`). The kernel moves no thread between
    /// them by itself.
    SplitCpus {
        /// The Linux number of the isolated CPU.
        isolated: usize,
        /// The Linux number of the other one.
        other: usize,
    },
    /// More priorities can occur in the run than there are levels for them.
    TooManyPriorities {
        /// The number of priorities that can occur: base priorities, ceilings, and scripted ones.
        needed: usize,
    },
    /// The system has more tasks than protocol machines have room for: [`EXECUTED_TASKS_MAX`].
    TooManyTasks {
        /// The number of tasks of the system.
        tasks: usize,
    },
    /// A system call failed.
    Sys(SysError),
    /// The system has another scheduler than fixed priorities on CPUs or clusters of them, or earliest deadlines on
    /// CPUs (`p-fp`, `c-fp`, `p-edf`), which cannot be executed.
    Scheduler(Scheduler),
    /// A task holds two resources at a time whose protocols have no nested requests.
    Nested {
        /// The task.
        task: TaskId,
        /// The resource that it holds.
        outer: ResourceId,
        /// The resource that it requests meanwhile.
        inner: ResourceId,
    },
    /// The resource is used in a cluster of several CPUs, which its protocol does not support.
    Clusters {
        /// The resource.
        resource: ResourceId,
    },
    /// The sections on a resource do not exclude one another (`ics`, `ics_lock`, `lock_free`, `wait_free`). A run of
    /// `lockwright-engine` executes these, but a task set for a program's own threads cannot undo what their sections
    /// have written.
    Interruptible {
        /// The resource.
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
            Self::SplitCpus { isolated, other } => write!(
                f,
                "tasks would share CPU {isolated}, which is isolated (isolcpus), and CPU {other}, which is not, but the kernel \
                 moves no thread between them; choose CPUs of one kind (`taskset -c <list>`)"
            ),
            Self::TooManyPriorities { needed } => write!(
                f,
                "{needed} different priorities can occur (base priorities, ceilings and scripted changes; under `p-edf` one \
                 for each task of a CPU, and one for releases), but Linux offers {TASK_LEVELS_MAX} real-time levels to \
                 tasks; let tasks share priorities, or use more CPUs"
            ),
            Self::TooManyTasks { tasks } => {
                write!(f, "the system has {tasks} tasks; at most {EXECUTED_TASKS_MAX} are executed")
            }
            Self::Sys(error) => error.fmt(f),
            Self::Scheduler(scheduler) => write!(
                f,
                "a task set is executed by fixed priorities on CPUs or clusters of them, or by deadlines on CPUs, and the system \
                 uses `{scheduler}`; change it to `p-fp`, `c-fp` or `p-edf`"
            ),
            Self::Nested { task, outer, inner } => write!(
                f,
                "task {} requests resource {} while it holds resource {}, and their protocols have no nested requests; give both \
                 resources one `group`",
                task.0, inner.0, outer.0
            ),
            Self::Clusters { resource } => {
                write!(f, "resource {} is used in a cluster of several CPUs; only `omlp` supports clusters", resource.0)
            }
            Self::Interruptible { resource } => write!(
                f,
                "resource {} is under `ics`, `ics_lock`, `lock_free` or `wait_free`, whose sections are not locks; choose \
                 another protocol, or use interruptible sections (`lockwright::ics` in Rust, `lw_ics_*` in C) or objects \
                 (`lockwright::objects` in Rust, `lw_buffer_*`, `lw_queue_*` and `lw_pqueue_*` in C)",
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

/// Checks that the levels of SCHED_FIFO can express the scheduler of the system.
///
/// # Errors
/// [`MachineError::Scheduler`].
pub fn check_scheduler(system: &System) -> Result<(), MachineError> {
    match system.scheduler() {
        Scheduler::PFp | Scheduler::CFp | Scheduler::PEdf => Ok(()),
        other => Err(MachineError::Scheduler(other)),
    }
}

/// Checks that the kernel moves the tasks between the CPUs that they share: all or none of these are isolated. CPU k of
/// the system is `cpus[k]`, a Linux number. `isolated` is asked only if tasks share CPUs.
///
/// # Errors
/// [`MachineError::SplitCpus`].
pub fn check_isolation(
    system: &System,
    cpus: &[usize],
    isolated: impl FnOnce() -> Vec<usize>,
) -> Result<(), MachineError> {
    let isolated = LazyCell::new(isolated);
    for task in system.task_ids().filter(|&task| system.cpus_of(task).nth(1).is_some()) {
        let own = system.cpus_of(task).map(|cpu| cpus[cpu.index()]);
        let (apart, others): (Vec<usize>, Vec<usize>) = own.partition(|cpu| isolated.contains(cpu));
        if let (Some(&isolated), Some(&other)) = (apart.first(), others.first()) {
            return Err(MachineError::SplitCpus { isolated, other });
        }
    }
    Ok(())
}

/// Checks that the protocols can be executed for this system, whatever the machine.
///
/// # Errors
/// [`MachineError::TooManyTasks`], [`MachineError::Nested`], and [`MachineError::Clusters`].
pub fn check_system(system: &System, protocol: Protocol) -> Result<(), MachineError> {
    if system.tasks().len() > EXECUTED_TASKS_MAX {
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

/// Why a task set could not be made, or an operation of one of its threads failed.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum TaskError {
    /// The tasks and resources break a rule of the model.
    Invalid(Invalid),
    /// The machine cannot execute the task set: it has too few CPUs or levels, or permission is missing; or a system
    /// call failed.
    Machine(MachineError),
    /// The task does not exist.
    NoTask,
    /// The task already has another thread, or this thread is already a task.
    Taken,
    /// A job of the task has already begun.
    Begun,
    /// No job of the task has begun.
    NotBegun,
    /// The task did not declare the resource, or not that it reads it or writes it; or the resource does not exist.
    NotAUser,
    /// The caller is a child process of `fork`. It has a copy of its parent's thread, which is the task.
    InChild,
    /// A lock failed.
    Lock(ResourceError),
}

impl fmt::Display for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(invalid) => invalid.fmt(f),
            Self::Machine(error) => error.fmt(f),
            Self::NoTask => f.write_str("there is no such task"),
            Self::Taken => f.write_str("the task already has another thread, or this thread is already a task"),
            Self::Begun => f.write_str("a job of the task has already begun; end it first"),
            Self::NotBegun => f.write_str("no job of the task has begun; begin one first"),
            Self::NotAUser => {
                f.write_str("the task is not declared to use that resource in this way; declare it in the task set, because ceilings and bounds follow from it")
            }
            Self::InChild => f.write_str(
                "the thread that joined is one of the parent process; a child of `fork` must join a task set that the child creates",
            ),
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

#[cfg(test)]
mod tests {
    use super::*;
    use lockwright_model::{CpuId, Duration, Priority, Step, Task};

    #[test]
    fn shared_cpus_are_all_isolated_or_none_is() {
        let task = Task {
            name: "t".into(),
            cpu: CpuId(0),
            priority: Priority::base(1),
            period: Duration::from_ms(1),
            deadline: Duration::from_ms(1),
            jitter: Duration::ZERO,
            offset: Duration::ZERO,
            wcet: Duration::from_us(1),
            body: vec![Step::Run(Duration::from_us(1))],
        };
        let alone = System::new("s".into(), 2, None, Vec::new(), vec![task]).expect("a valid system");
        let shared = alone.clone().under(Scheduler::GEdf);
        // The system's CPUs are the first two of the process.
        let cpus = [4, 5, 6];
        for (isolated, expected) in [
            (vec![], Ok(())),
            (vec![4, 5], Ok(())),
            (vec![6], Ok(())),
            (vec![4, 6], Err(MachineError::SplitCpus { isolated: 4, other: 5 })),
            (vec![5, 6], Err(MachineError::SplitCpus { isolated: 5, other: 4 })),
        ] {
            assert_eq!(check_isolation(&shared, &cpus, || isolated), expected);
        }
        assert_eq!(check_isolation(&alone, &cpus, || unreachable!("no task shares CPUs")), Ok(()));
    }
}
