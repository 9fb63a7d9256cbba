//! Bounds as strong as linear programs give them.
//!
//! A program's variables say how often a request of another task delays one job of the task under analysis, in which
//! way; its constraints are what the protocol rules out; its optimum is a bound. Requests of one task for one resource
//! are alike, so that one variable stands for all of them.
//!
//! The programs of the partitioned protocols are packings: their constraints nest, or form a network of two layers. For
//! these, taking the longest requests first is the optimum, in whole numbers, without a solver: no float takes part.
//! The programs of global scheduling and of nested sections are not of that kind: a solver proposes the values of their
//! dual, and arithmetic in whole numbers makes a bound of these that holds whatever the solver did.
//!
//! The bounds of MPCP, DPCP, DFLP and FMLP+ are never above the classic ones of the same protocol. Bounds on spinning
//! are of all spinning in the response time of a job, so they compare with classic ones only as response times; and there
//! neither is always less. The program counts each remote request once however many local jobs wait for it; but it counts
//! all that fall into the response time of the task, where the classic bound knows that one local job can spin only for
//! those of its own, shorter response time. Both bound the same schedules, so [`responses`] gives the lesser for each task.

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
pub use response::{Protocol, RESPONSE_STEPS_MAX, ROUNDS_MAX, Responses, responses, responses_of_program};
pub use spin::{spin_fifo, spin_fifo_preemptable, spin_unordered, spin_unordered_preemptable};

pub use spin_nested::{NESTED_RESOURCES_MAX, Section, spin_fifo_nested};

use crate::{Failure, Limit};
use std::ops::Range;
use view::{Entry, View};

/// A bound on the blocking of one job.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Blocked {
    /// While it waits for others on other processors: it is suspended.
    pub remote: u64,
    /// While others of lower or equal priority, or agents, execute on its processor.
    pub local: u64,
}

impl Blocked {
    /// Both.
    ///
    /// # Errors
    /// [`Failure::Overflow`].
    pub fn total(&self) -> Result<u64, Failure> {
        sum(self.remote, self.local)
    }
}

/// Requests of one task for one resource that a program's optimum counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Counted {
    /// Whose.
    pub task: usize,
    /// For which resource, by its own number.
    pub resource: u16,
    /// How many.
    pub count: u64,
    /// How long each.
    pub length: u64,
    /// Waited for, rather than executed before the job on its own processor.
    pub remote: bool,
}

/// For which tasks programs are solved, how much work is left for them, and what their optima count.
#[derive(Debug)]
struct Work {
    /// Tasks to solve for.
    tasks: Range<usize>,
    /// Requests that can still be looked at, and how many there were.
    left: u64,
    most: u64,
    /// `None` where nobody asks.
    counted: Option<Vec<Counted>>,
}

impl Work {
    /// For all tasks, without limit.
    fn of_all(view: &View) -> Self {
        Self::limited(view, u64::MAX)
    }

    /// For all tasks.
    fn limited(view: &View, most: u64) -> Self {
        Self { tasks: 0..view.tasks(), left: most, most, counted: None }
    }

    /// For one task, with what its optimum counts.
    fn of_one(task: usize) -> Self {
        Self { tasks: task..task + 1, left: u64::MAX, most: u64::MAX, counted: Some(Vec::new()) }
    }

    /// Takes so many requests off what is left.
    fn spend(&mut self, task: usize, requests: usize) -> Result<(), Failure> {
        let limit = Limit { name: "requests looked at by linear programs", most: self.most };
        let left = self.left.checked_sub(requests as u64).ok_or(Failure::Diverged { task, limit })?;
        self.left = left;
        Ok(())
    }

    /// The optimum counts so many requests.
    fn count(&mut self, view: &View, entry: &Entry, count: u64, remote: bool) {
        if let Some(counted) = &mut self.counted
            && count > 0
        {
            let (task, resource, length) = (entry.task, view.resource_id(entry.resource), entry.length);
            counted.push(Counted { task, resource, count, length, remote });
        }
    }
}

/// Most steps to bound one wait. With more, the wait is bounded by the response time alone, which is safe.
pub const WAIT_STEPS_MAX: u32 = 10_000;

/// The least `w` with `f(w) = w`, for an `f` that never falls and a `start` not above `w`; none where that is beyond
/// `limit`.
///
/// BOUND: [`WAIT_STEPS_MAX`].
fn wait(start: u64, limit: u64, mut f: impl FnMut(u64) -> Result<u64, Failure>) -> Option<u64> {
    let mut waited = start;
    for _ in 0..WAIT_STEPS_MAX {
        if waited > limit {
            return None;
        }
        // A wait that does not fit 64 bits is beyond any limit.
        let next = f(waited).ok()?;
        if next == waited {
            return Some(waited);
        }
        waited = next;
    }
    None
}

/// `a + b`.
fn sum(a: u64, b: u64) -> Result<u64, Failure> {
    a.checked_add(b).ok_or(Failure::Overflow)
}
