//! Tests and response times for one processor, or one of a partitioned system.
//!
//! [`fp`]: fixed priorities. [`edf`]: earliest deadline first. [`fifo`]: first come, first served. [`jobs`]: finite sets of jobs that
//! cannot be preempted, explored. [`compositional`]: chains of tasks over several processors with fixed priorities.
//!
//! Time is discrete. A job arrives, is released at most J later, and its deadline counts from its release; arrivals of a task are at
//! least T apart. So at most `ceil((t + J) / T)` of its jobs are released in an interval of length t.

pub mod compositional;
pub mod edf;
pub mod fifo;
pub mod fp;
pub mod jobs;

use crate::divisor::Divisor;
use crate::failure::{Failure, Limit};
use crate::fixed_point::TERMS_MAX;
use crate::sporadic::Sporadic;

/// A task on one processor. Times are integers in one unit, the same for all tasks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Task {
    /// Worst-case execution time, C.
    pub cost: u64,
    /// Least distance of two arrivals, T; above 0.
    pub period: u64,
    /// From release, D.
    pub deadline: u64,
    /// How long after its arrival a job may be released, J.
    pub jitter: u64,
    /// What of less urgent tasks delays a job besides their sections without preemption, B: under PCP or SRP their longest section
    /// with a ceiling that is high enough. Of [`fp`] only.
    pub blocking: u64,
    /// How long a job suspends itself in all, S. Of [`fp`] only.
    pub suspension: u64,
    /// Greater is more urgent. Of [`fp`] only.
    pub priority: u32,
    /// Where the task's jobs can be preempted.
    pub preemption: Preemption,
}

impl From<Sporadic> for Task {
    fn from(task: Sporadic) -> Self {
        Self { cost: task.cost, period: task.period, deadline: task.deadline, ..Self::default() }
    }
}

/// Where a job can be preempted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Preemption {
    /// Everywhere.
    #[default]
    Full,
    /// Nowhere.
    Never,
    /// Everywhere but in sections that may be anywhere.
    Floating {
        /// The longest of them.
        longest: u64,
    },
    /// Only between segments.
    Limited {
        /// The longest of them.
        longest: u64,
        /// The last of them, in every job at least so long.
        last: u64,
    },
}

impl Preemption {
    /// How long a job that has begun can keep a more urgent one waiting: it began at least one unit of time earlier.
    fn blocks(self, cost: u64) -> u64 {
        match self {
            Self::Full => 0,
            Self::Never => cost.saturating_sub(1),
            Self::Floating { longest } | Self::Limited { longest, .. } => longest.min(cost).saturating_sub(1),
        }
    }

    /// How long a job still executes once nothing can preempt it any more, but for the first unit of that.
    fn rest(self, cost: u64) -> u64 {
        match self {
            Self::Full | Self::Floating { .. } => 0,
            Self::Never => cost.saturating_sub(1),
            Self::Limited { last, .. } => last.min(cost).saturating_sub(1),
        }
    }
}

/// How much an answer may cost.
#[derive(Clone, Copy)]
pub(crate) struct Effort<'a> {
    /// At most so many terms.
    pub(crate) terms: u64,
    /// Asked every few milliseconds.
    pub(crate) go_on: &'a dyn Fn() -> bool,
}

impl Effort<'_> {
    /// All there is.
    pub(crate) const FULL: Self = Self { terms: TERMS_MAX, go_on: &|| true };
}

/// What is left of an effort.
struct Terms<'a> {
    left: u64,
    effort: Effort<'a>,
}

/// How many terms, in bits, are evaluated until `go_on` is asked again: a few milliseconds.
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

/// A task's releases and their cost.
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

    /// Most jobs released in an interval of length `t`.
    fn count(&self, t: u64) -> Option<u64> {
        if t == 0 { Some(0) } else { t.checked_add(self.jitter).map(|t| self.period.ceil(t)) }
    }

    /// Most work released in an interval of length `t`.
    fn work(&self, t: u64) -> Option<u64> {
        self.count(t)?.checked_mul(self.cost)
    }

    /// When the job after `n` others is released at the earliest, counted from the first release of the densest arrivals.
    fn release(&self, n: u64) -> Option<u64> {
        n.checked_mul(self.period.get()).map(|t| t.saturating_sub(self.jitter))
    }
}

/// Most work of all of them released in an interval of length `t`.
fn work_of<'a>(all: impl IntoIterator<Item = &'a Arrivals>, t: u64) -> Result<u64, Failure> {
    all.into_iter().try_fold(0_u64, |sum, one| sum.checked_add(one.work(t)?)).ok_or(Failure::Overflow)
}

/// The least `t` at or above `start` with `demand(t) <= t`, `demand` never falling.
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

/// The longest time a processor can be busy without a pause.
fn busy_period(all: &[Arrivals], horizon: u64, terms: &mut Terms<'_>) -> Result<u64, Failure> {
    let overload = crate::exact::compare_sum(all.iter().map(|one| (one.cost, one.period.get())), 1).is_gt();
    if overload {
        return Err(Failure::Overload);
    }
    least(0, (1, horizon), (terms, all.len()), |t| work_of(all, t))
}
