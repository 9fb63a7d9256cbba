//! The reasons why a test does not accept a task set.

use std::fmt;

/// Why a test does not accept a task set.
///
/// Tasks are indices into the input of the test. Times are in the unit of that input.
///
/// # Examples
/// ```
/// use lockwright_analysis::uniprocessor::{Task, fp};
/// use lockwright_analysis::Failure;
/// let task = Task { cost: 3, period: 2, deadline: 2, ..Task::default() };
/// assert_eq!(fp::response_times(&[task]), Err(Failure::Late { task: 0, response: 3 }));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Failure {
    /// More work arrives than the processors can execute.
    Overload,
    /// The condition of the test does not hold for a task, so the task may miss its deadline.
    Task {
        /// The index of the task.
        task: usize,
    },
    /// The test assumes that a task on another processor meets its deadlines, and that is not proved.
    Assumes {
        /// The index of the task.
        task: usize,
    },
    /// The response time of a task exceeds its deadline.
    Late {
        /// The index of the task.
        task: usize,
        /// The first value found above the deadline. The response time is at least this long.
        response: u64,
    },
    /// In some interval, more work is due than fits into it.
    Demand {
        /// The length of the interval.
        interval: u64,
        /// The work that is due in the interval, blocking included.
        demand: u64,
    },
    /// A fixed point was not found within a limit.
    Diverged {
        /// The index of the task.
        task: usize,
        /// The limit that was reached.
        limit: Limit,
    },
    /// The test does not apply to such a task.
    Unsupported {
        /// The index of the task.
        task: usize,
        /// The property that excludes the task, as the rest of a sentence that begins with the task.
        what: &'static str,
    },
    /// A number does not fit in 64 bits.
    Overflow,
    /// The caller interrupted the test.
    Interrupted,
}

/// A limit on the steps of a test.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Limit {
    /// The unit of the limit, in the plural, for example "terms".
    pub name: &'static str,
    /// The greatest number of these units.
    pub most: u64,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Overload => write!(f, "more work arrives than the processors can execute"),
            Self::Task { task } => write!(f, "the condition does not hold for task {task}"),
            Self::Assumes { task } => write!(f, "it counts on the deadlines of task {task}, which are not proved"),
            Self::Late { task, response } => {
                write!(f, "the response time of task {task} is at least {response}, beyond its deadline")
            }
            Self::Demand { interval, demand } => write!(f, "work of {demand} is due in an interval of {interval}"),
            Self::Diverged { task, limit } => {
                write!(f, "no fixed point was found for task {task} within {} {}", limit.most, limit.name)
            }
            Self::Unsupported { task, what } => write!(f, "task {task}: {what}"),
            Self::Overflow => write!(f, "a number does not fit in 64 bits"),
            Self::Interrupted => write!(f, "the test was interrupted"),
        }
    }
}

impl std::error::Error for Failure {}
