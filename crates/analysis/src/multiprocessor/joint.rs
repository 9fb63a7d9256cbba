//! Response times and blocking together, under partitioned fixed priorities.
//!
//! ```text
//! R_i = C_i + I_i + S_i + B_i + sum of ceil((R_i + J_h) / T_h) (C_h + I_h)    over h on i's processor that are no less urgent
//! ```
//! I what a job executes more (spinning), S how long it suspends, B what less urgent tasks execute before it; J_h = R_h - C_h where h
//! can suspend, else 0. All three depend on the response times of all tasks. From R = C everything only grows, so the
//! rounds end at the least solution, or beyond a deadline.
//!
//! The jitter of a task that suspends is R - C: Chen et al., Many suspensions, many problems, Real-Time Systems 55(1), 2019. (The suspension
//! itself in its place, as in earlier work, is not safe.) For deadlines up to the period.

use super::Delay;
use super::tables::TIME_MAX;
use crate::divisor::Divisor;
use crate::{Failure, Limit, Sharing};

/// Most rounds over all tasks.
pub const ROUNDS_MAX: u32 = 10_000;

/// Most steps of all fixed points of one analysis.
pub const STEPS_MAX: u64 = 10_000_000;

/// A protocol's bounds on a set of tasks, as a function of their response times that never falls as these grow.
pub trait Protocol {
    /// From now on these are the response times, in the order of the tasks.
    ///
    /// # Errors
    /// [`Failure::Overflow`].
    fn set_responses(&mut self, responses: &[u64]) -> Result<(), Failure>;

    /// The bounds, in the same order.
    ///
    /// # Errors
    /// [`Failure::Overflow`], and what the protocol says nothing of.
    fn delays(&mut self, delays: &mut [Delay]) -> Result<(), Failure>;

    /// How a task's response time bears its bound. `None` where it is not bounded.
    fn charge(&self, delay: &Delay) -> Option<Charge>;
}

/// How a response time bears a delay.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Charge {
    /// Suspended, S.
    pub suspended: u64,
    /// Delayed by less urgent tasks, B.
    pub blocked: u64,
    /// Executed besides, I: less urgent tasks bear it too.
    pub executed: u64,
}

/// What [`joint`] finds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Responses {
    /// In the order of the tasks.
    pub responses: Vec<u64>,
    /// Likewise.
    pub delays: Vec<Delay>,
    /// How many rounds over all tasks it took; the last changed nothing.
    pub rounds: u32,
}

/// A task as response times see it.
struct Row {
    period: Divisor,
    cost: u64,
    deadline: u64,
    priority: u32,
    task: u32,
    // Of this round.
    executed: u64,
    own: u64,
    jitter: u64,
    suspends: bool,
    response: u64,
}

/// Response times under `protocol`, which was made of `sharing`; the response times that come with it are not used.
///
/// # Errors
/// [`Failure::Late`] and [`Failure::Diverged`] say which task has no response time up to its deadline; [`Failure::Unsupported`] where a deadline
/// exceeds its period, [`Failure::Overflow`] where a number does not fit.
pub fn joint(sharing: &Sharing, protocol: &mut impl Protocol) -> Result<Responses, Failure> {
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
    // Processor by processor, the most urgent first.
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
                debug_assert!(response >= row.response, "response times only grow");
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

/// The response time of the task at `place` on its processor, for this round's delays.
fn respond(processor: &[Row], place: usize, steps: &mut u64) -> Result<u64, Failure> {
    let row = &processor[place];
    let task = row.task as usize;
    // Tasks of its own priority may go before it.
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
            // Both summands are at most a period.
            let jobs = other.period.ceil(response + other.jitter);
            sum = sum.saturating_add(jobs.saturating_mul(other.executed));
        }
        if sum <= response {
            return Ok(response);
        }
        response = sum;
    }
}
