//! The results of tests, and their words.

use crate::rows::bound::Proof;
use crate::rows::failure::Failure;
use crate::uniprocessor::edf;
use lockwright_model::{CpuId, Duration, ResourceId, System, TaskId};
use std::fmt;

/// The verdict on a system under its scheduler, with the tests behind it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Scheduled {
    /// The tests, in order of increasing effort.
    pub tests: Vec<Test>,
    /// Bounds on response times, from arrival to finish, by task id; `None` if there is none.
    pub responses: Vec<Option<Duration>>,
    /// Why the search for a response time failed, by task id; `None` if it succeeded or if there was no search.
    pub unbounded: Vec<Option<Failure>>,
    /// Whether it is proved that the task meets its deadlines, by task id.
    pub proved: Vec<bool>,
    /// The kind of analysis that proves the deadlines of the task, by task id, if they are proved. It is
    /// [`Proof::Classic`] except for linear programs under partitioned EDF.
    pub proof: Vec<Proof>,
    /// Whether it is proved that every task meets its deadlines.
    pub schedulable: bool,
    /// The section that can delay a job of the task longest at its arrival, by task id. Only partitioned EDF has such
    /// sections.
    pub blocked: Vec<Option<Blocker>>,
    /// Whether the verdict is exact: if the tests reject, some arrivals lead to a missed deadline.
    pub exact: bool,
}

impl Scheduled {
    /// Returns why the search for a response time of the task failed, as a message with the names of the system, or
    /// `None` if it did not fail.
    #[must_use]
    pub fn describe_unbounded(&self, task: TaskId) -> Option<String> {
        Some(match (*self.unbounded.get(task.index())?)? {
            Failure::Overload => "more work arrives on its CPU than it can execute".into(),
            Failure::Diverged { limit, .. } => {
                format!("the response times of its CPU need more than {} {}", limit.most, limit.name)
            }
            other => other.to_string(),
        })
    }
}

/// The result of one test.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Test {
    /// The usual name of the test.
    pub name: &'static str,
    /// The processor that the test is about, if it is about one.
    pub cpu: Option<CpuId>,
    /// Why the test does not accept; `None` if it accepts. Its task indices refer to `tasks`.
    pub failure: Option<Failure>,
    /// The tasks in the order in which the test numbers them.
    pub tasks: Vec<TaskId>,
    /// The interval in which more work is due than fits, under partitioned EDF.
    pub point: Option<Point>,
}

/// A section that delays jobs with earlier deadlines.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Blocker {
    /// The task that executes the section.
    pub task: TaskId,
    /// The resource of the section.
    pub resource: ResourceId,
    /// The length of the section.
    pub length: Duration,
    /// How long the task spins before the section begins, if the resource is shared across processors.
    pub spin: Duration,
}

impl Blocker {
    /// Returns the time for which the section blocks: its length and its spinning.
    #[must_use]
    pub fn total(&self) -> Duration {
        Duration::from_ns(self.length.as_ns().saturating_add(self.spin.as_ns()))
    }

    /// Describes the section in words.
    fn describe(&self, system: &System) -> String {
        let (task, resource) = (&system.task(self.task).name, &system.resource(self.resource).name);
        let spins = if self.spin > Duration::ZERO { ", with its spinning" } else { "" };
        format!("the section of `{task}` on `{resource}`{spins}")
    }

    pub(super) fn of(held: &edf::Held) -> Self {
        Self {
            task: TaskId::new(held.task),
            resource: ResourceId(held.resource),
            length: Duration::from_ns(held.length),
            spin: Duration::from_ns(held.spin),
        }
    }
}

/// An interval that a test of the processor demand examined.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Point {
    /// The length t of the interval.
    pub interval: Duration,
    /// The work with arrival and deadline in the interval, spinning included, h(t).
    pub due: Duration,
    /// The blocking of this work, B(t).
    pub blocking: Duration,
    /// The section that blocks this work, if one alone does.
    pub blocker: Option<Blocker>,
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.cpu {
            Some(cpu) => write!(f, "{}, CPU {}", self.name, cpu.0),
            None => f.pad(self.name),
        }
    }
}

impl Test {
    /// Returns why the test does not accept, with the names of the system, or `None` if it accepts.
    #[must_use]
    pub fn describe(&self, system: &System) -> Option<String> {
        let failure = self.failure?;
        let task =
            |index: usize| self.tasks.get(index).map_or_else(String::new, |&id| format!("`{}`", system.task(id).name));
        let time = Duration::from_ns;
        Some(match failure {
            Failure::Assumes { task: index } => {
                format!("it counts on the deadlines of {}, which are not proved", task(index))
            }
            Failure::Task { task: index } => format!("the condition does not hold for {}", task(index)),
            Failure::Late { task: index, response } => {
                format!("the response time of {} is at least {}, beyond its deadline", task(index), time(response))
            }
            Failure::Demand { interval, demand } => {
                let due = format!("in {} work of {} is due", time(interval), time(demand));
                match self.point {
                    Some(Point { blocker: Some(blocker), .. }) => {
                        format!("{due}, {} of it {}", blocker.total(), blocker.describe(system))
                    }
                    Some(Point { blocking, .. }) if blocking > Duration::ZERO => {
                        format!("{due}, {blocking} of it in sections of jobs with later deadlines")
                    }
                    _ => due,
                }
            }
            Failure::Diverged { task: index, limit } => {
                format!("no fixed point was found for {} within {} {}", task(index), limit.most, limit.name)
            }
            Failure::Unsupported { task: index, what } => format!("{}: {what}", task(index)),
            other => other.to_string(),
        })
    }
}
