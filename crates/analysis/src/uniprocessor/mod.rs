//! Tests and response times for one processor, or for one processor of a partitioned system.
//!
//! - [`fp`]: fixed priorities.
//! - [`edf`]: earliest deadline first.
//! - [`fifo`]: first come, first served.
//! - [`jobs`]: finite sets of non-preemptive jobs, by exploration.
//! - [`compositional`]: chains of tasks over several processors with fixed priorities.
//!
//! Time is discrete. A job arrives and is released at most J later. The deadline counts from the release. Arrivals of a
//! task are at least T apart, so at most `ceil((t + J) / T)` of its jobs are released in an interval of length t.
//!
//! # Examples
//! ```
//! use lockwright_analysis::uniprocessor::{Task, edf, fp};
//! let task = |cost, period, priority| Task { cost, period, deadline: period, priority, ..Task::default() };
//! let tasks = [task(2, 4, 2), task(3, 6, 1)];
//! assert!(fp::response_times(&tasks).is_err());
//! // The tasks use all of the processor, which EDF permits.
//! assert!(edf::response_times(&tasks).is_ok());
//! ```

pub mod compositional;
pub mod edf;
pub mod fifo;
pub mod fp;
pub mod ics;
pub mod jobs;

use crate::rows::divisor::Divisor;
use crate::rows::failure::{Failure, Limit};
use crate::rows::fixed_point::TERMS_MAX;
use crate::rows::sporadic::Sporadic;

/// A task on one processor. Times are integers in one unit, which is the same for all tasks.
///
/// This is a plain value: users write it as a literal, and it gets no further fields.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Task {
    /// The worst-case execution time, C.
    pub cost: u64,
    /// The minimum time between two arrivals, T; above 0.
    pub period: u64,
    /// The deadline relative to the release, D.
    pub deadline: u64,
    /// The longest time from the arrival of a job to its release, J.
    pub jitter: u64,
    /// The delay by less urgent tasks, besides their non-preemptive sections, B. Under PCP or SRP this is their longest
    /// section with a sufficient ceiling. Only [`fp`] supports it.
    pub blocking: u64,
    /// The total time for which a job suspends itself, S. Only [`fp`] supports it.
    pub suspension: u64,
    /// The priority. A greater number is more urgent. Only [`fp`] uses it.
    pub priority: u32,
    /// Where jobs of the task can be preempted.
    pub preemption: Preemption,
}

impl From<Sporadic> for Task {
    fn from(task: Sporadic) -> Self {
        Self { cost: task.cost, period: task.period, deadline: task.deadline, ..Self::default() }
    }
}

/// Where a job can be preempted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Preemption {
    /// Everywhere.
    #[default]
    Full,
    /// Nowhere.
    Never,
    /// Everywhere except in sections, which may be at any place.
    Floating {
        /// The length of the longest section.
        longest: u64,
    },
    /// Only between segments.
    Limited {
        /// The length of the longest segment.
        longest: u64,
        /// The least length of the last segment of a job.
        last: u64,
    },
}

impl Preemption {
    /// Returns how long a job that has begun can delay a more urgent one. It began at least one unit of time earlier.
    fn blocks(self, cost: u64) -> u64 {
        match self {
            Self::Full => 0,
            Self::Never => cost.saturating_sub(1),
            Self::Floating { longest } | Self::Limited { longest, .. } => longest.min(cost).saturating_sub(1),
        }
    }

    /// Returns how long a job executes after its last preemption point, minus one unit.
    fn rest(self, cost: u64) -> u64 {
        match self {
            Self::Full | Self::Floating { .. } => 0,
            Self::Never => cost.saturating_sub(1),
            Self::Limited { last, .. } => last.min(cost).saturating_sub(1),
        }
    }
}

/// A limit on the effort for an answer.
#[derive(Clone, Copy)]
pub(crate) struct Effort<'a> {
    /// The most terms.
    pub(crate) terms: u64,
    /// Returns whether to continue. It is called every few milliseconds.
    pub(crate) go_on: &'a dyn Fn() -> bool,
}

impl Effort<'_> {
    /// The full effort, without interruption.
    pub(crate) const FULL: Self = Self { terms: TERMS_MAX, go_on: &|| true };
}

/// The part of an effort that is left.
struct Terms<'a> {
    left: u64,
    effort: Effort<'a>,
}

/// The logarithm of the number of terms between two calls of `go_on`, which is a few milliseconds.
const ASKED_BITS: u32 = 20;

impl Terms<'_> {
    fn new() -> Self {
        Self::of(Effort::FULL)
    }
}

impl<'a> Terms<'a> {
    fn of(effort: Effort<'a>) -> Self {
        Self { left: effort.terms, effort }
    }

    fn spend(&mut self, task: usize, terms: usize) -> Result<(), Failure> {
        let limit = Limit { name: "terms", most: self.effort.terms };
        let left = self.left.checked_sub(terms.max(1) as u64).ok_or(Failure::Diverged { task, limit })?;
        let asks = (left ^ self.left) >> ASKED_BITS != 0;
        self.left = left;
        if asks && !(self.effort.go_on)() { Err(Failure::Interrupted) } else { Ok(()) }
    }
}

/// The releases of a task, with their cost.
#[derive(Clone, Copy, Debug)]
struct Arrivals {
    period: Divisor,
    cost: u64,
    jitter: u64,
}

impl Arrivals {
    fn of(task: &Task, index: usize) -> Result<Self, Failure> {
        let period = Divisor::new(task.period).ok_or(Failure::Unsupported { task: index, what: "has no period" })?;
        Ok(Self { period, cost: task.cost, jitter: task.jitter })
    }

    /// Returns the most jobs released in an interval of length `t`.
    fn count(&self, t: u64) -> Option<u64> {
        if t == 0 { Some(0) } else { t.checked_add(self.jitter).map(|t| self.period.ceil(t)) }
    }

    /// Returns the most work released in an interval of length `t`.
    fn work(&self, t: u64) -> Option<u64> {
        self.count(t)?.checked_mul(self.cost)
    }

    /// Returns the earliest release of the job after `n` others, relative to the first release of the densest arrivals.
    fn release(&self, n: u64) -> Option<u64> {
        n.checked_mul(self.period.get()).map(|t| t.saturating_sub(self.jitter))
    }
}

/// Returns the most work of all tasks released in an interval of length `t`.
fn work_of<'a>(all: impl IntoIterator<Item = &'a Arrivals>, t: u64) -> Result<u64, Failure> {
    all.into_iter().try_fold(0_u64, |sum, one| sum.checked_add(one.work(t)?)).ok_or(Failure::Overflow)
}

/// Returns the least `t` at or above `start` with `demand(t) <= t`, where `demand` never decreases.
///
/// BOUND: `terms`, of which each step spends `size`; and the horizon.
fn least(
    task: usize,
    (start, horizon): (u64, u64),
    (terms, size): (&mut Terms<'_>, usize),
    mut demand: impl FnMut(u64) -> Result<u64, Failure>,
) -> Result<u64, Failure> {
    let mut t = start;
    loop {
        terms.spend(task, size)?;
        let next = demand(t)?;
        if next <= t {
            return Ok(t);
        }
        if t > horizon {
            return Err(Failure::Diverged { task, limit: Limit { name: "units of time", most: horizon } });
        }
        t = next;
    }
}

/// Returns the longest time for which a processor can be busy without a pause.
fn busy_period(all: &[Arrivals], horizon: u64, terms: &mut Terms<'_>) -> Result<u64, Failure> {
    let overload = crate::rows::exact::compare_sum(all.iter().map(|one| (one.cost, one.period.get())), 1).is_gt();
    if overload {
        return Err(Failure::Overload);
    }
    least(0, (1, horizon), (terms, all.len()), |t| work_of(all, t))
}
