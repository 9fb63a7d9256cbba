//! Response times under global EDF.
//!
//! ```text
//! R_k = C_k + ⌊Σ_{i≠k} min(W_i(R_k), W'_i, R_k − C_k + 1) / m⌋
//! W_i(t) = ⌊x/T_i⌋ C_i + min(C_i, x mod T_i),  x = t + D_i − C_i − s_i
//! W'_i = ⌊D_k/T_i⌋ C_i + min(C_i, max(0, D_k mod T_i − s_i))
//! ```
//! W_i and W'_i bound the work of task i, and s_i = D_i − R_i is its slack, which starts at 0. Rounds over all tasks
//! continue until each R_k ≤ D_k in one round, or no slack changes. The source is Bertogna, Cirinei, *Response-time
//! analysis for globally scheduled symmetric multiprocessor platforms*, RTSS 2007.

use super::set::{Deadlines, Task, Work, check, fixed_point, laid_out};
use crate::{Failure, Limit, Sporadic};

/// The most rounds over all tasks.
pub const ROUNDS_MAX: u64 = 25;

/// Returns response-time bounds under global EDF on `processors` processors, if none exceeds its deadline. Deadlines
/// must not exceed periods.
///
/// The source is Bertogna, Cirinei, RTSS 2007.
///
/// # Errors
/// Returns [`Failure::Late`] with the first task that is late in the last round, [`Failure::Diverged`] after
/// [`ROUNDS_MAX`] rounds, and the errors of invalid sets (see the [module](super)).
pub fn rta(tasks: &[Sporadic], processors: u32) -> Result<Vec<u64>, Failure> {
    test::<true>(tasks, processors)
}

/// The mutant without the job that was released before the window.
///
/// # Errors
/// Returns the errors of the test.
#[cfg(feature = "mutants")]
pub fn mutant(tasks: &[Sporadic], processors: u32) -> Result<Vec<u64>, Failure> {
    test::<false>(tasks, processors)
}

fn test<const CARRY_IN: bool>(tasks: &[Sporadic], processors: u32) -> Result<Vec<u64>, Failure> {
    check(tasks, processors, Deadlines::Constrained)?;
    let set = laid_out(tasks);
    // R_i starts at D_i, with a slack of 0.
    let mut responses: Vec<u64> = set.iter().map(|task| task.deadline).collect();
    let mut others: Vec<Other> = Vec::with_capacity(set.len());
    let mut work = Work::default();
    let mut first = Failure::Overload;
    // For each task, when it was last examined and when its response time changed, counted in examinations, and the
    // result.
    let mut last: Vec<Last> = vec![Last { looked: 0, changed: 1, found: Ok(()) }; set.len()];
    let mut now = 1;
    // BOUND: ROUNDS_MAX.
    for _ in 0..ROUNDS_MAX {
        let (mut holds, mut changed) = (true, false);
        for k in 0..set.len() {
            now += 1;
            let looked = last[k].looked;
            if last.iter().enumerate().any(|(i, other)| i != k && other.changed > looked) || looked == 0 {
                last[k].looked = now;
                last[k].found =
                    response::<CARRY_IN>(&set, &responses, k, processors, &mut others, &mut work).map(|response| {
                        if response != responses[k] {
                            changed = true;
                            responses[k] = response;
                            last[k].changed = now;
                        }
                    });
            }
            if let Err(why) = last[k].found {
                if holds {
                    first = why;
                }
                holds = false;
            }
        }
        if holds {
            return Ok(responses);
        }
        if !changed {
            return Err(first);
        }
    }
    let task = if let Failure::Late { task, .. } = first { task } else { 0 };
    Err(Failure::Diverged { task, limit: Limit { name: "rounds", most: ROUNDS_MAX } })
}

#[derive(Clone, Copy)]
struct Last {
    looked: u64,
    changed: u64,
    found: Result<(), Failure>,
}

/// The values of another task that do not depend on the window.
struct Other {
    task: Task,
    /// D_i − C_i − s_i.
    ahead: u64,
    /// W'_i.
    most: u64,
}

fn response<const CARRY_IN: bool>(
    set: &[Task],
    responses: &[u64],
    k: usize,
    processors: u32,
    others: &mut Vec<Other>,
    work: &mut Work,
) -> Result<u64, Failure> {
    let own = set[k];
    others.clear();
    others.extend(set.iter().zip(responses).enumerate().filter(|&(i, _)| i != k).map(|(_, (&task, &response))| {
        let (jobs, rest) = task.divide(own.deadline);
        let slack = task.deadline - response;
        let carried = if CARRY_IN { task.cost.min(rest.saturating_sub(slack)) } else { 0 };
        Other { task, ahead: response - task.cost, most: jobs.wrapping_mul(task.cost).wrapping_add(carried) }
    }));
    // Work that has reached its maximum stays there, so it is not examined again.
    let (mut full, mut left) = (0_u64, others.len());
    fixed_point(k, own.cost, own.deadline, processors, work, |response, work| {
        let cap = response.wrapping_sub(own.cost).wrapping_add(1);
        let mut at = 0;
        while at < left {
            let other = &others[at];
            let (jobs, rest) = other.task.divide(response.wrapping_add(other.ahead));
            let done = jobs.wrapping_add(1).wrapping_mul(other.task.cost);
            let value = done.wrapping_sub(other.task.cost.saturating_sub(rest)).min(cap);
            if value >= other.most {
                full = full.wrapping_add(other.most);
                left -= 1;
                others.swap(at, left);
            } else {
                work.add(value, done.min(other.most));
                at += 1;
            }
        }
        work.sum = work.sum.wrapping_add(full);
    })
}
