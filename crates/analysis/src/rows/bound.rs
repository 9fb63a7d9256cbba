//! The results of an analysis: bounds, or the reasons why there are none.

use core::fmt;
use lockwright_model::{Duration, Protocol, ResourceId, System, Task, TaskId};

/// The bounds of all tasks of a system under one protocol.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Analysis {
    /// The protocol of all resources for which the system names no protocol.
    pub protocol: Protocol,
    /// The bounds of each task, by task id.
    pub tasks: Vec<TaskBound>,
}

/// The bounds of one task.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct TaskBound {
    /// How long less urgent tasks and other processors can delay one job; `None` if that delay has no bound.
    pub blocking: Option<Blocking>,
    /// The response-time bound R, from the arrival of a job to its finish; `None` if there is none within the period.
    pub response: Option<Duration>,
    /// Whether the response-time bound is within the deadline.
    pub schedulable: bool,
    /// Why there is no response-time bound; `None` if there is one.
    pub unbounded: Option<Unbounded>,
    /// Whether there is no bound because a number of the analysis does not fit in 64 bits. It may concern other
    /// processors, so the response time need not exceed the period, although `unbounded` is
    /// [`Unbounded::BeyondPeriod`].
    pub overflows: bool,
    /// The kind of analysis that proves the response-time bound, if there is one.
    pub proof: Proof,
}

/// The kind of analysis that proves a bound.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum Proof {
    /// The sum of the terms on the protocol's page in `docs/`.
    #[default]
    Classic,
    /// A linear program whose optimum bounds the blocking (module `linear`).
    Program,
}

impl fmt::Display for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Classic => "classic",
            Self::Program => "lp",
        })
    }
}

/// The blocking of one job, by cause.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub struct Blocking {
    /// Sections of less urgent tasks of the job's processor, on resources of that processor.
    pub local: Duration,
    /// Sections on shared resources that execute boosted on the job's processor, and requests of less urgent tasks that
    /// occupy that processor.
    pub boosted: Duration,
    /// Waits for resources that tasks of any processor hold, or are granted first: the time suspended or spun. If
    /// waiting counts as execution, the waits of more urgent tasks are included.
    pub remote: Duration,
}

impl Blocking {
    /// The sum of all parts, or `None` if it overflows.
    #[must_use]
    pub fn total(self) -> Option<Duration> {
        self.local.checked_add(self.boosted)?.checked_add(self.remote)
    }
}

/// Why a task has no response-time bound.
///
/// # Examples
/// ```
/// use lockwright_analysis::{Unbounded, analyse};
/// use lockwright_model::format::parse_system;
/// use lockwright_model::Protocol;
/// let system = parse_system(
///     r#"
///     [platform]
///     cpus = 2
///
///     [[resource]]
///     name = "bus"
///
///     [[task]]
///     name = "control"
///     cpu = 0
///     period = "10 ms"
///     body = [{ run = "1 ms" }, { lock = "bus" }, { run = "1 ms" }, { unlock = "bus" }]
///
///     [[task]]
///     name = "log"
///     cpu = 1
///     period = "50 ms"
///     body = [{ lock = "bus" }, { run = "4 ms" }, { unlock = "bus" }, { run = "10 ms" }]
///     "#,
/// )
/// .expect("a valid task set");
/// // Plain mutexes have no bound across processors.
/// let analysis = analyse(&system, Protocol::None);
/// assert!(matches!(analysis.tasks[0].unbounded, Some(Unbounded::Shared { .. })));
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Unbounded {
    /// The task can wait for a holder that keeps its own priority, and tasks of intermediate priority can preempt that
    /// holder.
    Inversion {
        /// The resource that the task waits for.
        resource: ResourceId,
        /// The holder of the resource.
        holder: TaskId,
        /// The tasks that can preempt the holder, most urgent first.
        between: Vec<TaskId>,
    },
    /// A more urgent task of the same processor can be delayed without bound. Its late jobs then delay this task.
    Deferred {
        /// The more urgent task.
        by: TaskId,
    },
    /// A resource is shared across processors, and its protocol has no bound for that.
    Shared {
        /// The resource.
        resource: ResourceId,
        /// The protocol of the resource.
        protocol: Protocol,
    },
    /// No bound covers the way in which sections are nested.
    Nested {
        /// The task whose sections are nested.
        task: TaskId,
        /// The resource that the task holds.
        outer: ResourceId,
        /// The resource that the task requests meanwhile.
        inner: ResourceId,
    },
    /// No bound covers the protocols of two resources together.
    Mixed {
        /// One of the two resources.
        one: ResourceId,
        /// The other resource.
        other: ResourceId,
    },
    /// The task-set file sets the ceiling of a resource, and the bounds of its protocol do not cover that.
    Ceiling {
        /// The resource.
        resource: ResourceId,
    },
    /// The protocol does not support clusters of several processors.
    Clusters {
        /// A resource under the protocol.
        resource: ResourceId,
        /// The protocol.
        protocol: Protocol,
    },
    /// Two tasks of one processor have the same priority, and the bounds of the protocol do not cover that.
    Equals {
        /// One of the two tasks.
        one: TaskId,
        /// The other task.
        other: TaskId,
    },
    /// The bound depends on the bound of another task, which has none.
    DependsOn {
        /// The other task.
        task: TaskId,
    },
    /// The response time exceeds the period, so that jobs of one task would overlap, or a number does not fit.
    BeyondPeriod,
    /// The analysis stopped, because it would take too many steps.
    Unsettled,
}

impl Unbounded {
    /// Returns whether the analysis covers no such system, whatever its execution times and periods are.
    #[must_use]
    pub fn is_uncovered(&self) -> bool {
        match self {
            Self::Inversion { .. }
            | Self::Deferred { .. }
            | Self::Shared { .. }
            | Self::Nested { .. }
            | Self::Mixed { .. }
            | Self::Ceiling { .. }
            | Self::Clusters { .. }
            | Self::Equals { .. } => true,
            Self::DependsOn { .. } | Self::BeyondPeriod | Self::Unsettled => false,
        }
    }

    /// Describes the reason in one sentence, with the names of the tasks and resources, and with a remedy if there is
    /// one.
    #[must_use]
    pub fn describe(&self, system: &System) -> String {
        let task = |id: TaskId| format!("`{}`", system.task(id).name);
        let resource = |id: ResourceId| format!("`{}`", system.resource(id).name);
        self.told(task, resource)
    }

    /// Returns the reason, with tasks and resources as these functions name them.
    fn told(&self, task: impl Fn(TaskId) -> String, name: impl Fn(ResourceId) -> String) -> String {
        match self {
            Self::Inversion { resource, holder, between } => {
                let between: Vec<String> = between.iter().map(|&id| task(id)).collect();
                format!(
                    "it can wait for {} while {} holds it at its own priority, and {} can delay that holder without bound",
                    name(*resource),
                    task(*holder),
                    between.join(", ")
                )
            }
            Self::Deferred { by } => format!(
                "the more urgent {} can itself be delayed without bound, and its late jobs then delay this task",
                task(*by)
            ),
            Self::Shared { resource, protocol } => format!(
                "{} is shared across CPUs, where `{protocol}` gives no useful bound: use `mpcp` for it",
                name(*resource)
            ),
            Self::Nested { task: by, outer, inner } => format!(
                "{} requests {} while it holds {}: no bound covers that nesting (of two protocols, of plain mutexes, or under `icpp` by a task that may wait while another one of its priority executes)",
                task(*by),
                name(*inner),
                name(*outer)
            ),
            Self::Mixed { one, other } => format!(
                "{} and {} are under protocols that no bound covers together: use one protocol for all resources",
                name(*one),
                name(*other)
            ),
            Self::Ceiling { resource } => {
                format!("the ceiling of {} is set explicitly, which no bound covers: remove it", name(*resource))
            }
            Self::Clusters { resource, protocol } => {
                format!(
                    "{} is used in a cluster of several CPUs, which `{protocol}` does not support: use `omlp` for it",
                    name(*resource)
                )
            }
            Self::Equals { one, other } => {
                format!("{} and {} have the same priority: give each its own", task(*one), task(*other))
            }
            Self::DependsOn { task: on } => format!("its bound depends on that of {}, which has none", task(*on)),
            Self::BeyondPeriod => "its bound exceeds its period".into(),
            Self::Unsettled => "no response time was found within the steps that an analysis may take".into(),
        }
    }
}

impl fmt::Display for Unbounded {
    /// Writes the reason with the ids of the tasks and resources. [`Unbounded::describe`] has their names.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.told(|id| format!("task {}", id.0), |id| format!("resource {}", id.0)))
    }
}

impl core::error::Error for Unbounded {}

impl Analysis {
    /// Returns whether every task meets its deadline.
    #[must_use]
    pub fn schedulable(&self) -> bool {
        self.tasks.iter().all(|task| task.schedulable)
    }

    /// Returns the bounds of one task.
    #[must_use]
    pub fn task(&self, id: TaskId) -> &TaskBound {
        &self.tasks[id.index()]
    }

    /// Returns the task with the least slack and that slack in nanoseconds, which is negative if the deadline can be
    /// missed.
    ///
    /// Returns `None` if a task has no bound. Of tasks with the same slack, the one with the least id counts.
    #[must_use]
    pub fn worst_slack(&self, system: &System) -> Option<(TaskId, i64)> {
        let slacks: Option<Vec<(TaskId, i64)>> =
            system.task_ids().map(|id| Some((id, self.task(id).slack(system.task(id))?))).collect();
        slacks?.into_iter().min_by_key(|&(id, slack)| (slack, id))
    }
}

impl TaskBound {
    /// Describes why there is no response-time bound, in one sentence with the names of the system. `None` if there is
    /// one.
    #[must_use]
    pub fn describe_unbounded(&self, system: &System) -> Option<String> {
        match &self.unbounded {
            Some(Unbounded::BeyondPeriod) if self.overflows => {
                Some("a number of the analysis, maybe for another CPU, does not fit in 64 bits".into())
            }
            reason => reason.as_ref().map(|reason| reason.describe(system)),
        }
    }

    /// Returns the deadline minus the response-time bound, in nanoseconds, or `None` if there is no bound.
    #[must_use]
    pub fn slack(&self, task: &Task) -> Option<i64> {
        // Both are at most DURATION_MAX, far below 2^63.
        Some(task.deadline.as_ns() as i64 - self.response?.as_ns() as i64)
    }
}
