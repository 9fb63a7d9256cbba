//! Tasks on several processors with fixed priorities and full preemption. Each task is activated by a source, or by the
//! end of another task's job.
//!
//! ```text
//!   arrivals in t:         a(t) = min(ceil((t + J) / P), ceil(t / d))
//!   distance of n:         s(n) = max((n - 1) P - J, (n - 1) d)
//!   busy time of n jobs:   b(n) = least t:  n C_i + sum over h more urgent on the processor of a_h(t) C_h  <=  t
//!   response:              R = max over n of b(n) - s(n),  until b(n) <= s(n + 1)
//!   the next task:         P' = P,  J' = J + R - c,  d' = max(d - (R - c), c)
//! ```
//! P is the period of the arrivals, d their minimum distance, and c the least execution time, which is also the
//! shortest response. Responses and activations are computed alternately until none changes. The sources are Tindell,
//! Clark (Microprocessing and Microprogramming 40, 1994), Richter (dissertation, TU Braunschweig 2005), and Diemer,
//! Axer, Ernst (WATERS 2012). d' is the longer of two distances that both hold: that of the ends, and that of two jobs
//! of one task.
//!
//! # Examples
//! ```
//! use lockwright_analysis::uniprocessor::compositional::{Activation, Events, Link, response_times};
//! let source = Activation::Source(Events { period: 10, jitter: 0, distance: 10 });
//! let link = |activation, processor| Link { cost: 2, cost_min: 1, processor, priority: 1, activation };
//! // The second task is activated by the first one.
//! let found = response_times(&[link(source, 0), link(Activation::After(0), 1)])?;
//! assert_eq!((found[0].worst, found[1].worst), (2, 2));
//! # Ok::<(), lockwright_analysis::Failure>(())
//! ```

use crate::rows::divisor::Divisor;
use crate::rows::exact::compare_sum;
use crate::rows::failure::{Failure, Limit};
use crate::rows::fixed_point::TERMS_MAX;

/// The most times that all responses are recomputed.
pub const ROUNDS_MAX: u64 = 10_000;

/// The arrivals of jobs.
///
/// This is a plain value: users write it as a literal, and it gets no further fields.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Events {
    /// The period, P: the average distance of arrivals is at least this long; above 0.
    pub period: u64,
    /// The jitter, J: the longest delay of an arrival.
    pub jitter: u64,
    /// The minimum distance of two arrivals, d.
    pub distance: u64,
}

impl Events {
    fn count(&self, period: Divisor, t: u64) -> Option<u64> {
        let many = period.ceil(t.checked_add(self.jitter)?);
        Some(if self.distance == 0 { many } else { many.min(t.div_ceil(self.distance)) })
    }

    fn span(&self, n: u64) -> Option<u64> {
        let gaps = n.saturating_sub(1);
        Some(gaps.checked_mul(self.period)?.saturating_sub(self.jitter).max(gaps.checked_mul(self.distance)?))
    }
}

/// The activation of a task's jobs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Activation {
    /// Arrivals from outside.
    Source(Events),
    /// The end of each job of another task, given by its index.
    After(usize),
}

/// A task of a chain. Times are integers in one unit, which is the same for all tasks.
///
/// This is a plain value: users write it as a literal, and it gets no further fields.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Link {
    /// The worst-case execution time, C.
    pub cost: u64,
    /// The best-case execution time, c.
    pub cost_min: u64,
    /// The processor that executes the task.
    pub processor: u16,
    /// The priority. A greater number is more urgent; of two equal priorities, the task that comes first in the list is
    /// more urgent.
    pub priority: u32,
    /// The activation of the task.
    pub activation: Activation,
}

/// The bounds for the jobs of a task.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub struct Response {
    /// The worst-case response time, from activation, R.
    pub worst: u64,
    /// The busy times b(0), b(1), ... in the longest busy interval.
    pub busy: Vec<u64>,
}

/// Returns the response times of chained tasks under partitioned preemptive fixed priorities, in the order of the
/// tasks.
///
/// Times are in the unit of the input. The sources are in the [module](self).
///
/// # Errors
/// Returns [`Failure::Overload`] if the utilization of a processor exceeds 1. Returns [`Failure::Unsupported`] if a
/// task has no source with a period, if its best case exceeds its worst case, or if tasks activate only each other.
/// Returns [`Failure::Diverged`] or [`Failure::Overflow`] if the values grow without end.
pub fn response_times(tasks: &[Link]) -> Result<Vec<Response>, Failure> {
    let mut events = sources(tasks)?;
    let mut responses = Vec::new();
    let mut terms = TERMS_MAX;
    // BOUND: the rounds, and the limit on terms.
    for _ in 0..ROUNDS_MAX {
        responses.clear();
        for i in 0..tasks.len() {
            responses.push(response(tasks, &events, i, &mut terms)?);
        }
        let mut changed = false;
        for (i, task) in tasks.iter().enumerate() {
            let Activation::After(before) = task.activation else { continue };
            let (from, least) = (events[before], tasks[before].cost_min);
            let spread = responses[before].worst.saturating_sub(least);
            let after = Events {
                period: from.period,
                jitter: from.jitter.checked_add(spread).ok_or(Failure::Overflow)?,
                distance: from.distance.saturating_sub(spread).max(least),
            };
            changed |= events[i] != after;
            events[i] = after;
        }
        if !changed {
            return Ok(responses);
        }
    }
    Err(Failure::Diverged { task: 0, limit: Limit { name: "rounds", most: ROUNDS_MAX } })
}

/// Returns the initial events: each task has those of its source.
fn sources(tasks: &[Link]) -> Result<Vec<Events>, Failure> {
    let mut events = Vec::with_capacity(tasks.len());
    for (index, task) in tasks.iter().enumerate() {
        if task.cost_min > task.cost {
            return Err(Failure::Unsupported { task: index, what: "its best-case cost exceeds its worst-case cost" });
        }
        let mut at = index;
        // BOUND: the number of tasks.
        for _ in 0..=tasks.len() {
            match tasks.get(at).map(|task| task.activation) {
                Some(Activation::After(before)) => at = before,
                Some(Activation::Source(source)) if source.period > 0 => {
                    events.push(source);
                    break;
                }
                _ => return Err(Failure::Unsupported { task: index, what: "no source with a period activates it" }),
            }
        }
        if events.len() == index {
            return Err(Failure::Unsupported { task: index, what: "it activates itself" });
        }
    }
    Ok(events)
}

fn response(tasks: &[Link], events: &[Events], i: usize, terms: &mut u64) -> Result<Response, Failure> {
    let task = tasks[i];
    let mut rivals = Vec::new();
    for (h, other) in tasks.iter().enumerate() {
        let urgent = other.priority > task.priority || (other.priority == task.priority && h < i);
        if h != i && other.processor == task.processor && urgent {
            let period = Divisor::new(events[h].period).ok_or(Failure::Overflow)?;
            rivals.push((events[h], period, other.cost));
        }
    }
    let own = (task.cost, events[i].period);
    if compare_sum(rivals.iter().map(|(_, period, cost)| (*cost, period.get())).chain([own]), 1).is_gt() {
        return Err(Failure::Overload);
    }
    let mut found = Response { worst: 0, busy: vec![0] };
    let mut t = 1;
    // BOUND: the limit on terms.
    for n in 1_u64.. {
        let own = task.cost.checked_mul(n).ok_or(Failure::Overflow)?;
        loop {
            let limit = Limit { name: "terms", most: TERMS_MAX };
            *terms = terms.checked_sub(rivals.len() as u64 + 1).ok_or(Failure::Diverged { task: i, limit })?;
            let next = rivals.iter().try_fold(own, |sum, (events, period, cost)| {
                sum.checked_add(events.count(*period, t)?.checked_mul(*cost)?)
            });
            let next = next.ok_or(Failure::Overflow)?;
            if next <= t {
                break;
            }
            t = next;
        }
        found.busy.push(t);
        found.worst = found.worst.max(t - events[i].span(n).ok_or(Failure::Overflow)?.min(t));
        if t <= events[i].span(n + 1).ok_or(Failure::Overflow)? {
            break;
        }
    }
    Ok(found)
}
