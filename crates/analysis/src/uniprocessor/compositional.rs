//! Tasks on several processors with fixed priorities and full preemption, each activated by a source or by the end of another's job.
//!
//! ```text
//!   arrivals in t:         a(t) = min(ceil((t + J) / P), ceil(t / d))
//!   distance of n:         s(n) = max((n - 1) P - J, (n - 1) d)
//!   busy time of n jobs:   b(n) = least t:  n C_i + sum over h more urgent on the processor of a_h(t) C_h  <=  t
//!   response:              R = max over n of b(n) - s(n),  until b(n) <= s(n + 1)
//!   who is activated:      P' = P,  J' = J + R - c,  d' = max(d - (R - c), c)
//! ```
//! c: least cost, and the shortest response. Responses and activations are taken in turn until none changes. Tindell, Clark (Microprocessing and
//! Microprogramming 40, 1994); Richter (dissertation, TU Braunschweig 2005); Diemer, Axer, Ernst (WATERS 2012). d' takes the longer of two
//! distances that both hold: that of the ends, and that of two jobs of one task.

use crate::divisor::Divisor;
use crate::exact::compare_sum;
use crate::failure::{Failure, Limit};
use crate::fixed_point::TERMS_MAX;

/// Most times that all responses are computed anew.
pub const ROUNDS_MAX: u64 = 10_000;

/// Arrivals of jobs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Events {
    /// On average, at least this far apart, P; above 0.
    pub period: u64,
    /// Each at most so late, J.
    pub jitter: u64,
    /// Two are at least so far apart, d.
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

/// What starts a task's jobs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Activation {
    /// Arrivals from without.
    Source(Events),
    /// The end of each job of another task.
    After(usize),
}

/// A task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// Worst-case execution time, C.
    pub cost: u64,
    /// Best-case execution time, c.
    pub cost_min: u64,
    /// On which processor.
    pub processor: u16,
    /// Greater is more urgent; of two alike the one that is given first is.
    pub priority: u32,
    /// What starts it.
    pub activation: Activation,
}

/// What is known of a task's jobs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Response {
    /// From activation, at the longest, R.
    pub worst: u64,
    /// b(0), b(1), .. in the longest busy interval.
    pub busy: Vec<u64>,
}

/// Response times, in the tasks' order.
///
/// # Errors
/// A processor in full use or more, tasks that only start each other, and what grows without end.
pub fn response_times(tasks: &[Link]) -> Result<Vec<Response>, Failure> {
    let mut events = sources(tasks)?;
    let mut responses = Vec::new();
    let mut terms = TERMS_MAX;
    // BOUND: the rounds, and the terms.
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

/// The first guess: whoever starts a task passes its own arrivals on.
fn sources(tasks: &[Link]) -> Result<Vec<Events>, Failure> {
    let mut events = Vec::with_capacity(tasks.len());
    for (index, task) in tasks.iter().enumerate() {
        if task.cost_min > task.cost {
            return Err(Failure::Unsupported { task: index, what: "its least cost exceeds its worst" });
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
                _ => return Err(Failure::Unsupported { task: index, what: "nothing with a period starts it" }),
            }
        }
        if events.len() == index {
            return Err(Failure::Unsupported { task: index, what: "it starts itself" });
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
    // BOUND: the terms.
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
