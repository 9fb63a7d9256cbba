//! What an analysis answers.

use core::fmt;
use lockwright_model::{Duration, Protocol, ResourceId, System, Task, TaskId};

/// The bounds of all tasks of a system under one protocol.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Analysis {
    /// The protocol of all resources that name none of their own.
    pub protocol: Protocol,
    /// By task id.
    pub tasks: Vec<TaskBound>,
}

/// What is known of one task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TaskBound {
    /// How long less urgent tasks and other processors can delay one job; `None` where that has no bound.
    pub blocking: Option<Blocking>,
    /// Response-time bound, from arrival to finish; `None` where there is none, or none within the period.
    pub response: Option<Duration>,
    /// Whether the response-time bound is within the deadline.
    pub schedulable: bool,
    /// Why there is no response-time bound.
    pub unbounded: Option<Unbounded>,
    /// What proves the response-time bound, where there is one.
    pub proof: Proof,
}

/// What proves a bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Proof {
    /// The terms that the page of the protocol has.
    #[default]
    Classic,
    /// A program whose optimum is the bound on blocking (`linear`).
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

/// Blocking of one job by cause.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Blocking {
    /// Sections of less urgent tasks of its own processor, on resources of that processor.
    pub local: Duration,
    /// Sections on resources shared across processors that execute boosted on its own processor, and requests of less urgent tasks that keep it.
    pub boosted: Duration,
    /// Waiting for resources that tasks of any processor hold or are granted first: time suspended, or spun. Where waiting counts as execution, that of
    /// more urgent tasks is here, too.
    pub remote: Duration,
}

impl Blocking {
    /// All of it, or `None` where the sum does not fit.
    #[must_use]
    pub fn total(self) -> Option<Duration> {
        self.local.checked_add(self.boosted)?.checked_add(self.remote)
    }
}

/// Why a task has no response-time bound.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Unbounded {
    /// The task can wait for a holder that keeps its own priority while other tasks come between.
    Inversion {
        /// What it waits for.
        resource: ResourceId,
        /// Who holds it.
        holder: TaskId,
        /// Who may delay the holder, most urgent first.
        between: Vec<TaskId>,
    },
    /// A more urgent task of the same processor can be delayed without bound, and then runs late at this one's expense.
    Deferred {
        /// That task.
        by: TaskId,
    },
    /// A resource is shared across processors under a protocol that bounds nothing there.
    Shared {
        /// The resource.
        resource: ResourceId,
        /// The protocol that rules it.
        protocol: Protocol,
    },
    /// Sections are nested in a way that no bound here covers.
    Nested {
        /// The task that nests them.
        task: TaskId,
        /// What it holds.
        outer: ResourceId,
        /// What it requests meanwhile.
        inner: ResourceId,
    },
    /// Two resources are under protocols that no bound here covers together.
    Mixed {
        /// One of them.
        one: ResourceId,
        /// The other.
        other: ResourceId,
    },
    /// The ceiling of the resource is fixed by hand, which the bounds of its protocol do not know.
    Ceiling {
        /// The resource.
        resource: ResourceId,
    },
    /// There are clusters of several processors, which the protocol does not know.
    Clusters {
        /// A resource that it rules.
        resource: ResourceId,
        /// The protocol.
        protocol: Protocol,
    },
    /// Two tasks of one processor have one priority, which the bounds of the protocol do not know.
    Equals {
        /// One of them.
        one: TaskId,
        /// The other.
        other: TaskId,
    },
    /// The bound rests on that of another task, which has none.
    DependsOn {
        /// The other task.
        task: TaskId,
    },
    /// The response time grows beyond the period, where jobs of one task would overlap.
    BeyondPeriod,
    /// The computation was given up: it would take too many steps.
    Unsettled,
}

impl Unbounded {
    /// Whether the protocol has no bound for such a system, whatever the times are.
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

    /// One sentence for a person: who is delayed by whom, and what helps.
    #[must_use]
    pub fn describe(&self, system: &System) -> String {
        let task = |id: TaskId| &system.task(id).name;
        let name = |id: ResourceId| &system.resource(id).name;
        match self {
            Self::Inversion { resource, holder, between } => {
                let between: Vec<String> = between.iter().map(|&id| format!("`{}`", task(id))).collect();
                format!(
                    "it can wait for `{}` while `{}` holds it at its own priority, and {} can delay that holder without bound",
                    name(*resource),
                    task(*holder),
                    between.join(", ")
                )
            }
            Self::Deferred { by } => format!(
                "the more urgent `{}` can itself be delayed without bound, and then runs late at the expense of this task",
                task(*by)
            ),
            Self::Shared { resource, protocol } => format!(
                "`{}` is shared across CPUs, where `{protocol}` gives no useful bound: use `mpcp` for it",
                name(*resource)
            ),
            Self::Nested { task: by, outer, inner } => format!(
                "`{}` requests `{}` while it holds `{}`: no bound covers that nesting (of two protocols, of plain mutexes, or by a task that waits for other CPUs)",
                task(*by),
                name(*inner),
                name(*outer)
            ),
            Self::Mixed { one, other } => format!(
                "`{}` and `{}` are under protocols that no bound covers together: use one for all",
                name(*one),
                name(*other)
            ),
            Self::Ceiling { resource } => {
                format!("the ceiling of `{}` is fixed by hand: leave it out", name(*resource))
            }
            Self::Clusters { resource, protocol } => {
                format!(
                    "`{}` is used in a cluster of several CPUs, which `{protocol}` does not know: use `omlp` for it",
                    name(*resource)
                )
            }
            Self::Equals { one, other } => {
                format!("`{}` and `{}` have one priority: give each its own", task(*one), task(*other))
            }
            Self::DependsOn { task: on } => format!("its bound rests on that of `{}`, which has none", task(*on)),
            Self::BeyondPeriod => "its response time grows beyond its period".into(),
            Self::Unsettled => "its response time was not found within the steps an analysis may take".into(),
        }
    }
}

impl Analysis {
    /// Whether every task meets its deadline.
    #[must_use]
    pub fn schedulable(&self) -> bool {
        self.tasks.iter().all(|task| task.schedulable)
    }

    /// The bounds of one task.
    #[must_use]
    pub fn task(&self, id: TaskId) -> &TaskBound {
        &self.tasks[id.index()]
    }

    /// The least slack of all tasks, in nanoseconds (below zero where a deadline breaks), and whose it is;
    /// `None` where a task has no bound.
    #[must_use]
    pub fn worst_slack(&self, system: &System) -> Option<(TaskId, i64)> {
        let slacks: Option<Vec<(TaskId, i64)>> =
            system.task_ids().map(|id| Some((id, self.task(id).slack(system.task(id))?))).collect();
        slacks?.into_iter().min_by_key(|&(id, slack)| (slack, id))
    }
}

impl TaskBound {
    /// Deadline minus response-time bound, in nanoseconds.
    #[must_use]
    pub fn slack(&self, task: &Task) -> Option<i64> {
        // Both are at most DURATION_MAX, far below 2^63.
        Some(task.deadline.as_ns() as i64 - self.response?.as_ns() as i64)
    }
}
