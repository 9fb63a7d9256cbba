//! Blocking bounds as strong as those of linear programs.
//!
//! The variables of a program count how often a request of another task delays one job of the task under analysis, and
//! in which way. Its constraints express what the protocol excludes, and its optimum is a bound. Requests of one task
//! for one resource are alike, so one variable stands for all of them.
//!
//! The programs of the partitioned protocols are packings: their constraints are nested, or form a network of two
//! layers. For these, taking the longest requests first yields the optimum in integers, without a solver or
//! floating-point numbers. The programs of global scheduling and of nested sections are not of that kind. For them, a
//! solver proposes the values of the dual program, and integer arithmetic derives a bound from these values that holds
//! whatever they are.
//!
//! The bounds of MPCP, DPCP, DFLP and FMLP+ never exceed the classic ones of the same protocol. Bounds on spinning
//! include all spinning within the response time of a job, so they can be compared with classic bounds only as response
//! times, and neither is always less. The program counts each remote request once, however many local jobs wait for it,
//! but counts all requests that fall into the response time of the task. The classic bound uses the fact that one local
//! job spins only for the requests within its own, shorter response time. Both bound the same schedules, so
//! [`responses`] returns the lesser for each task.
//!
//! All times are integers in the unit of the input. Overheads are not included.
//!
//! # Examples
//! ```
//! use lockwright_analysis::linear::{Locking, mpcp, responses};
//! # use lockwright_analysis::{Demand, Sharer, Sharing};
//! let task = |cluster, priority, length| Sharer {
//!     cost: 10,
//!     period: 100,
//!     deadline: 100,
//!     response: 20,
//!     priority,
//!     cluster,
//!     requests: vec![Demand { resource: 0, count: 1, length }],
//! };
//! let sharing = Sharing { tasks: vec![task(0, 2, 3), task(1, 1, 5)] };
//! assert_eq!(mpcp(&sharing)?[0].remote, 5);
//! assert_eq!(responses(&sharing, Locking::Mpcp)?.responses, [15, 13]);
//! # Ok::<(), lockwright_analysis::Failure>(())
//! ```

mod dflp;
mod dpcp;
mod fmlp_plus;
mod generalized_fmlp_plus;
mod global;
mod mpcp;
mod network;
mod omip;
mod p_edf;
mod program;
mod protocol;
mod response;
mod spin;
mod spin_nested;
#[cfg(test)]
mod tests;
mod view;

pub use dflp::dflp;
pub use dpcp::dpcp;
pub use fmlp_plus::fmlp_plus;
pub use generalized_fmlp_plus::{Policy, generalized_fmlp_plus};
pub use global::{Global, global};
pub use mpcp::mpcp;
pub use omip::omip;
pub use p_edf::{Edf, POINTS_MAX, p_edf};
pub(crate) use protocol::Program;
pub use response::{Locking, RESPONSE_STEPS_MAX, ROUNDS_MAX, Responses, responses, responses_of_program};
pub use spin::{spin_fifo, spin_fifo_preemptable, spin_unordered, spin_unordered_preemptable};

pub use spin_nested::{NESTED_RESOURCES_MAX, Section, spin_fifo_nested};

use crate::{Failure, Limit};
use std::ops::Range;
use view::{Entry, View};

/// A bound on the blocking of one job.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Blocked {
    /// The time that the job is suspended and waits for requests on other processors.
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
struct Work {
    /// The tasks.
    tasks: Range<usize>,
    /// The number of requests that may still be examined, and the initial number.
    left: u64,
    most: u64,
    /// `None` if the caller does not need them.
    counted: Option<Vec<Counted>>,
}

impl Work {
    /// Work for all tasks, without limit.
    fn of_all(view: &View) -> Self {
        Self::limited(view, u64::MAX)
    }

    /// Work for all tasks, with a limit.
    fn limited(view: &View, most: u64) -> Self {
        Self { tasks: 0..view.tasks(), left: most, most, counted: None }
    }

    /// Work for one task, with the requests that its optimum counts.
    fn of_one(task: usize) -> Self {
        Self { tasks: task..task + 1, left: u64::MAX, most: u64::MAX, counted: Some(Vec::new()) }
    }

    /// Subtracts `requests` from the work that is left.
    fn spend(&mut self, task: usize, requests: usize) -> Result<(), Failure> {
        let limit = Limit { name: "requests looked at by linear programs", most: self.most };
        let left = self.left.checked_sub(requests as u64).ok_or(Failure::Diverged { task, limit })?;
        self.left = left;
        Ok(())
    }

    /// Records that the optimum counts `count` of these requests.
    fn count(&mut self, view: &View, entry: &Entry, count: u64, remote: bool) {
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
fn wait(start: u64, limit: u64, mut f: impl FnMut(u64) -> Result<u64, Failure>) -> Option<u64> {
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
fn sum(a: u64, b: u64) -> Result<u64, Failure> {
    a.checked_add(b).ok_or(Failure::Overflow)
}
