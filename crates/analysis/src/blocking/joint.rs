//! Joint response times and blocking under partitioned fixed priorities.
//!
//! ```text
//! R_i = C_i + I_i + S_i + B_i + sum of ceil((R_i + J_h) / T_h) (C_h + I_h)
//! ```
//! The sum is over the other tasks h on i's processor that are at least as urgent. I_i is the additional execution of a
//! job (spinning), S_i the time that it suspends, and B_i the delay by less urgent tasks. J_h = R_h - C_h if h can
//! suspend, else 0. I, S and B depend on the response times of all tasks. From R = C on all values only grow, so the
//! rounds end at the least solution, or beyond a deadline.
//!
//! The source of the jitter R - C of tasks that suspend is Chen et al., *Many suspensions, many problems*, Real-Time
//! Systems 55(1), 2019. (The suspension time itself as jitter, as in earlier work, is not safe.) Deadlines must not
//! exceed periods.

use super::delay::{Delay, DelayBounds};
use crate::rows::divisor::Divisor;
use crate::rows::tally::TIME_MAX;
use crate::{Failure, Limit, Sharing};

/// The most rounds over all tasks.
pub const ROUNDS_MAX: u32 = 10_000;

/// The most steps of all fixed points of one analysis.
pub const STEPS_MAX: u64 = 10_000_000;

/// The result of [`joint`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Responses {
    /// The response times, in the order of the tasks.
    pub responses: Vec<u64>,
    /// The delays, in the same order.
    pub delays: Vec<Delay>,
    /// The number of rounds over all tasks. The last one changed nothing.
    pub rounds: u32,
}

/// The parameters of a task for its response time.
struct Row {
    period: Divisor,
    cost: u64,
    deadline: u64,
    priority: u32,
    task: u32,
    // The values of this round follow.
    executed: u64,
    own: u64,
    jitter: u64,
    suspends: bool,
    response: u64,
}

/// Returns the response times under `protocol` and partitioned fixed priorities, with the delays that they contain.
///
/// `protocol` must have been created from `sharing`. The response times in `sharing` are ignored. Times are in the unit
/// of the input. The sources are in the module of each protocol and, for the jitter of tasks that suspend, Chen et al.
/// (2019).
///
/// # Errors
/// Returns [`Failure::Late`] or [`Failure::Diverged`] with a task that has no response time up to its deadline,
/// [`Failure::Unsupported`] if a period is 0 or a deadline exceeds its period, and [`Failure::Overflow`] if a number
/// does not fit. Returns the errors of `protocol` as well.
pub fn joint(sharing: &Sharing, protocol: &mut impl DelayBounds) -> Result<Responses, Failure> {
    let count = sharing.tasks.len();
    let mut rows = Vec::with_capacity(count);
    for (index, task) in sharing.tasks.iter().enumerate() {
        let none = Failure::Unsupported { task: index, what: "its period is 0" };
        let period = Divisor::new(task.period).ok_or(none)?;
        if task.deadline > task.period {
            return Err(Failure::Unsupported { task: index, what: "its deadline is beyond its period" });
        }
        if task.period > TIME_MAX {
            return Err(Failure::Overflow);
        }
        if task.cost > task.deadline {
            return Err(Failure::Late { task: index, response: task.cost });
        }
        rows.push(Row {
            period,
            cost: task.cost,
            deadline: task.deadline,
            priority: task.priority,
            task: index as u32,
            executed: 0,
            own: 0,
            jitter: 0,
            suspends: false,
            response: task.cost,
        });
    }
    // Sorted by processor, the most urgent task first.
    rows.sort_by_key(|row| (sharing.tasks[row.task as usize].cluster, std::cmp::Reverse(row.priority)));
    let mut ends: Vec<usize> = Vec::with_capacity(count);
    for (place, row) in rows.iter().enumerate() {
        let cluster = sharing.tasks[row.task as usize].cluster;
        if rows.get(place + 1).is_none_or(|next| sharing.tasks[next.task as usize].cluster != cluster) {
            ends.push(place + 1);
        }
    }
    let mut responses: Vec<u64> = sharing.tasks.iter().map(|task| task.cost).collect();
    let mut delays = vec![Delay::default(); count];
    let mut steps = STEPS_MAX;
    for round in 1..=ROUNDS_MAX {
        protocol.set_responses(&responses)?;
        protocol.delays(&mut delays)?;
        for row in &mut rows {
            let charge = protocol.charge(&delays[row.task as usize]).ok_or(Failure::Diverged {
                task: row.task as usize,
                limit: Limit { name: "units of time at one request", most: row.period.get() },
            })?;
            row.suspends = charge.suspended > 0;
            row.executed = row.cost.checked_add(charge.executed).ok_or(Failure::Overflow)?;
            let own = row.executed.checked_add(charge.suspended).and_then(|sum| sum.checked_add(charge.blocked));
            row.own = own.ok_or(Failure::Overflow)?;
            row.jitter = if row.suspends { row.response - row.cost } else { 0 };
        }
        let mut changed = false;
        let mut first = 0;
        for &end in &ends {
            let processor = &mut rows[first..end];
            for place in 0..processor.len() {
                let response = respond(processor, place, &mut steps)?;
                let row = &mut processor[place];
                changed |= response != row.response;
                debug_assert!(response >= row.response, "response times never decrease");
                row.response = response;
                if row.suspends {
                    row.jitter = response.saturating_sub(row.cost);
                }
                responses[row.task as usize] = response;
            }
            first = end;
        }
        if !changed {
            return Ok(Responses { responses, delays, rounds: round });
        }
    }
    let task = rows.first().map_or(0, |row| row.task as usize);
    Err(Failure::Diverged { task, limit: Limit { name: "rounds", most: u64::from(ROUNDS_MAX) } })
}

/// Returns the response time of the task at `place` on its processor, for the delays of this round.
fn respond(processor: &[Row], place: usize, steps: &mut u64) -> Result<u64, Failure> {
    let row = &processor[place];
    let task = row.task as usize;
    // Tasks of its own priority may execute before it.
    let mut equals = place + 1;
    while processor.get(equals).is_some_and(|other| other.priority == row.priority) {
        equals += 1;
    }
    let others = || processor[..place].iter().chain(&processor[place + 1..equals]);
    let mut response = others().fold(row.own, |sum, other| sum.saturating_add(other.executed)).max(row.response);
    loop {
        if response > row.deadline {
            return Err(Failure::Late { task, response });
        }
        let limit = Limit { name: "steps", most: STEPS_MAX };
        *steps = steps.checked_sub(1).ok_or(Failure::Diverged { task, limit })?;
        let mut sum = row.own;
        for other in others() {
            // Each summand is at most a period.
            let jobs = other.period.ceil(response + other.jitter);
            sum = sum.saturating_add(jobs.saturating_mul(other.executed));
        }
        if sum <= response {
            return Ok(response);
        }
        response = sum;
    }
}
