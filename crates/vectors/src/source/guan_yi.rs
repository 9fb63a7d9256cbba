//! Response times under EDF on one processor: Guan and Yi, DATE 2014. The exact response time is computed by Spuri's
//! method, for every arrival, and the approximate one from the least slack of all intervals.

use super::answers::Answers;
use crate::{Input, Malformed};
use serde_json::{Value, json};

struct Task {
    cost: u64,
    period: u64,
    deadline: u64,
}

pub(super) fn exact(input: &Input) -> Result<Answers, Malformed> {
    answers(input, exact_response)
}

pub(super) fn approximate(input: &Input) -> Result<Answers, Malformed> {
    answers(input, approximate_response)
}

fn answers(input: &Input, response: fn(&[Task], usize, u64) -> u64) -> Result<Answers, Malformed> {
    let missing = || Malformed("a task has no cost".into());
    let task = |task: &crate::input::InputTask| {
        Ok(Task { cost: task.cost.ok_or_else(missing)?, period: task.period, deadline: task.deadline })
    };
    let tasks: Vec<Task> = input.tasks.iter().map(task).collect::<Result<_, Malformed>>()?;
    let no = || json!({ "schedulable": false });
    let corrected: Value = match busy(&tasks) {
        None => no(),
        Some(busy) => {
            let responses: Vec<u64> = (0..tasks.len()).map(|i| response(&tasks, i, busy)).collect();
            if responses.iter().zip(&tasks).all(|(response, task)| *response <= task.deadline) {
                json!({ "schedulable": true, "response_times": responses })
            } else {
                no()
            }
        }
    };
    Ok(Answers { published: no(), corrected })
}

/// Returns the longest busy interval, or `None` if it is longer than a limit.
fn busy(tasks: &[Task]) -> Option<u64> {
    const BUSY_MAX: u64 = 1 << 24;
    let mut busy = 1;
    while busy <= BUSY_MAX {
        let work = tasks.iter().map(|task| busy.div_ceil(task.period) * task.cost).sum();
        if work == busy {
            return Some(busy);
        }
        busy = work;
    }
    None
}

/// Returns the longest response of a job of `i` that arrives at any
/// time of a busy interval that all other tasks begin together.
fn exact_response(tasks: &[Task], i: usize, busy: u64) -> u64 {
    let own = &tasks[i];
    let response = |arrival: u64| {
        let deadline = arrival + own.deadline;
        let before = (1 + arrival / own.period) * own.cost;
        let done = |t: u64| {
            let other = |(j, task): (usize, &Task)| match (deadline + task.period).checked_sub(task.deadline) {
                Some(due) if j != i => t.div_ceil(task.period).min(due / task.period) * task.cost,
                _ => 0,
            };
            before + tasks.iter().enumerate().map(other).sum::<u64>()
        };
        let mut t = done(0).max(1);
        while done(t) != t {
            t = done(t);
        }
        t.saturating_sub(arrival).max(own.cost)
    };
    (0..busy).map(response).max().unwrap_or(own.cost)
}

/// Returns the deadline minus the least slack of all intervals that are at least as long.
fn approximate_response(tasks: &[Task], i: usize, busy: u64) -> u64 {
    let due = |t: u64| -> u64 {
        tasks.iter().map(|task| (t + task.period).saturating_sub(task.deadline) / task.period * task.cost).sum()
    };
    let last = busy + tasks.iter().map(|task| task.deadline).max().unwrap_or(0);
    let own = tasks[i].deadline;
    // The slack is below 0 if the demand exceeds the interval. The response is then later than the deadline.
    let response = |t: u64| (own + due(t)).saturating_sub(t);
    (own..=last).map(response).max().unwrap_or(own)
}
