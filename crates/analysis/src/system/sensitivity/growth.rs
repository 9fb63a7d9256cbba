//! The results of a search, and its progress.

use lockwright_model::{Duration, ResourceId, System, TaskId};
use std::cell::{Cell, RefCell};

/// The greatest factor by which some execution times can grow with all deadlines met.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Growth {
    /// The factor in thousandths. 1000 stands for the present execution times; with less, they must shrink.
    Permille(u64),
    /// No factor suffices: a deadline is missed, or a bound is missing, even with the shortest execution times.
    Broken,
    /// No factor up to [`FACTOR_MAX`] leads to a missed deadline.
    Unlimited,
}

impl Growth {
    /// Returns the result of a search that found this factor.
    pub(super) const fn found(permille: u64) -> Self {
        if permille == FACTOR_MAX { Self::Unlimited } else { Self::Permille(permille) }
    }
}

/// The greatest factor that is tried, in thousandths: a million times the present execution times.
pub const FACTOR_MAX: u64 = 1_000_000_000;

/// The result of [`sensitivity`](crate::sensitivity()).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Sensitivity {
    /// The factor for all execution times together, including sections.
    pub all: Growth,
    /// The factor for all execution times of one task, by task id.
    pub tasks: Vec<(TaskId, Growth)>,
    /// The factor for the sections on one resource, by resource id.
    pub resources: Vec<(ResourceId, Growth)>,
    /// The longest additional blocking of each job of one task, from outside the system, with which all deadlines are
    /// met. `None` if a deadline is missed without it. The blocking counts as execution of the job, so less urgent
    /// tasks wait for it as well. By task id.
    pub tolerated: Vec<(TaskId, Option<Duration>)>,
}

impl Sensitivity {
    /// Returns the result for a system in which a task has no bound, whatever its execution times are.
    pub(super) fn broken(system: &System) -> Self {
        Self {
            all: Growth::Broken,
            tasks: system.task_ids().map(|task| (task, Growth::Broken)).collect(),
            resources: system.resource_ids().map(|resource| (resource, Growth::Broken)).collect(),
            tolerated: system.task_ids().map(|task| (task, None)).collect(),
        }
    }
}

/// The progress of a search.
pub(super) struct Progress<F> {
    found: Cell<usize>,
    whole: usize,
    go_on: RefCell<F>,
}

impl<F: FnMut(usize, usize) -> bool> Progress<F> {
    /// Begins the search for `whole` factors.
    pub(super) fn new(whole: usize, go_on: F) -> Self {
        Self { found: Cell::new(0), whole, go_on: RefCell::new(go_on) }
    }

    /// Reports the progress to the caller. Returns whether the search should continue.
    pub(super) fn asked(&self) -> bool {
        (self.go_on.borrow_mut())(self.found.get(), self.whole)
    }

    /// Records how many factors were found.
    pub(super) fn set(&self, found: usize) {
        self.found.set(found);
    }

    /// Records that one more factor was found.
    pub(super) fn add(&self) {
        self.found.set(self.found.get() + 1);
    }
}
