//! The common parts of the programs: their results, the work that they may do, and sums.

use super::view::{Entry, View};
use crate::{Failure, Limit};
use std::ops::Range;

/// A bound on the blocking of one job.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub struct Blocked {
    /// The time that the job is suspended and waits for requests on other processors. Under the MPCP, this includes
    /// requests on its own processor that preempt owners for which it waits.
    pub remote: u64,
    /// The time that requests of tasks of lower or equal priority, or agents, execute on the job's processor.
    pub local: u64,
}

impl Blocked {
    /// Returns the sum of both.
    ///
    /// # Errors
    /// Returns [`Failure::Overflow`] if the sum does not fit.
    pub fn total(&self) -> Result<u64, Failure> {
        sum(self.remote, self.local)
    }
}

/// The requests of one task for one resource that the optimum of a program counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Counted {
    /// The task.
    pub task: usize,
    /// The resource, by its own number.
    pub resource: u16,
    /// The number of requests.
    pub count: u64,
    /// The length of each section.
    pub length: u64,
    /// Whether the job waits for them. If not, they execute before the job on its own processor.
    pub remote: bool,
}

/// The tasks whose programs are solved, the work that is left for them, and the requests that their optima count.
#[derive(Debug)]
pub(super) struct Work {
    /// The tasks.
    pub(super) tasks: Range<usize>,
    /// The number of requests that may still be examined, and the initial number.
    pub(super) left: u64,
    most: u64,
    /// `None` if the caller does not need them.
    pub(super) counted: Option<Vec<Counted>>,
}

impl Work {
    /// Work for all tasks, without limit.
    pub(super) fn of_all(view: &View) -> Self {
        Self::limited(view, u64::MAX)
    }

    /// Work for all tasks, with a limit.
    pub(super) fn limited(view: &View, most: u64) -> Self {
        Self { tasks: 0..view.tasks(), left: most, most, counted: None }
    }

    /// Work for one task, with the requests that its optimum counts.
    pub(super) fn of_one(task: usize) -> Self {
        Self { tasks: task..task + 1, left: u64::MAX, most: u64::MAX, counted: Some(Vec::new()) }
    }

    /// Subtracts `requests` from the work that is left.
    pub(super) fn spend(&mut self, task: usize, requests: usize) -> Result<(), Failure> {
        let limit = Limit { name: "requests looked at by linear programs", most: self.most };
        let left = self.left.checked_sub(requests as u64).ok_or(Failure::Diverged { task, limit })?;
        self.left = left;
        Ok(())
    }

    /// Records that the optimum counts `count` of these requests.
    pub(super) fn count(&mut self, view: &View, entry: &Entry, count: u64, remote: bool) {
        if let Some(counted) = &mut self.counted
            && count > 0
        {
            let (task, resource, length) = (entry.task, view.resource_id(entry.resource), entry.length);
            counted.push(Counted { task, resource, count, length, remote });
        }
    }
}

/// The most steps to bound one wait. A wait that needs more is bounded by the response time alone, which is safe.
pub const WAIT_STEPS_MAX: u32 = 10_000;

/// Returns the least `w` with `f(w) = w`, for a function `f` that never decreases and a `start` that does not exceed
/// `w`. Returns `None` if it is beyond `limit`.
///
/// BOUND: [`WAIT_STEPS_MAX`].
pub(super) fn wait(start: u64, limit: u64, mut f: impl FnMut(u64) -> Result<u64, Failure>) -> Option<u64> {
    let mut waited = start;
    for _ in 0..WAIT_STEPS_MAX {
        if waited > limit {
            return None;
        }
        // A wait that does not fit in 64 bits is beyond any limit.
        let next = f(waited).ok()?;
        if next == waited {
            return Some(waited);
        }
        waited = next;
    }
    None
}

/// Returns `a + b`.
pub(super) fn sum(a: u64, b: u64) -> Result<u64, Failure> {
    a.checked_add(b).ok_or(Failure::Overflow)
}
