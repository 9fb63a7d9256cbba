//! Why a test does not accept a set of tasks.

use std::fmt;

/// Why a test does not accept. Tasks are indices into what the test was given; times are in the caller's unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Failure {
    /// More work arrives than the processors can do.
    Overload,
    /// The test's condition does not hold for a task: it may miss its deadline.
    Task {
        /// Which.
        task: usize,
    },
    /// A task's response time exceeds its deadline.
    Late {
        /// Which.
        task: usize,
        /// The first value found above the deadline: the response time is at least that.
        response: u64,
    },
    /// In some interval more work is due than fits.
    Demand {
        /// The interval's length.
        interval: u64,
        /// What is due in it.
        demand: u64,
    },
    /// A fixed point was not found within the named limit.
    Diverged {
        /// For which task.
        task: usize,
        /// Which limit, and how much it is.
        limit: Limit,
    },
    /// The test says nothing of such a task.
    Unsupported {
        /// Which.
        task: usize,
        /// What it cannot be.
        what: &'static str,
    },
    /// A number does not fit.
    Overflow,
    /// Whoever asked did not want to wait longer.
    Interrupted,
}

/// A limit that keeps a test from going on for ever.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limit {
    /// What is limited.
    pub name: &'static str,
    /// How much of it there is.
    pub most: u64,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Overload => write!(f, "more work arrives than the processors can do"),
            Self::Task { task } => write!(f, "the condition does not hold for task {task}"),
            Self::Late { task, response } => {
                write!(f, "the response time of task {task} is at least {response}, beyond its deadline")
            }
            Self::Demand { interval, demand } => write!(f, "in an interval of {interval} work of {demand} is due"),
            Self::Diverged { task, limit } => {
                write!(f, "no fixed point was found for task {task} within {} {}", limit.most, limit.name)
            }
            Self::Unsupported { task, what } => write!(f, "task {task}: {what}"),
            Self::Overflow => write!(f, "a number does not fit 64 bits"),
            Self::Interrupted => write!(f, "it was interrupted"),
        }
    }
}

impl std::error::Error for Failure {}
