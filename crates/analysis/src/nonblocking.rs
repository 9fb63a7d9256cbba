//! Lock-free objects: how often an operation is repeated, and what the repetitions cost.
//!
//! A *lock-free* operation reads, prepares, and commits in one atomic step. That step fails if another operation
//! committed meanwhile, and the operation is then repeated. The bounds assume a compare-and-swap that does not fail
//! spuriously, and one commit per operation. If an operation has several successful compare-and-swaps that other
//! operations observe, N counts each.
//!
//! **Any scheduler.** Each failure on resource q is caused by a commit of another job on q, and a job has one attempt
//! at a time:
//! ```text
//!   C'_i = C_i + sum over q of L(i,q) * sum over k != i of N(k,q) ceil((R_i + R_k) / T_k)
//! ```
//! L(i,q) is the length of one attempt. C contains the last attempt of each operation. R follows from C', jointly for
//! all tasks.
//!
//! **One processor.** With s for the length of the longest attempt on any object, a job that arrives makes at most one
//! attempt fail (Anderson, Ramamurthy, Jeffay, ACM TOCS 15(2), 1997):
//! ```text
//!   fixed priorities:   w = C_i + sum over j < i of (ceil(w / T_j) C_j + ceil((w - 1) / T_j) s)  <=  D_i
//!   EDF, D = T:         sum over j of (C_j + s) / T_j  <=  1
//! ```
//!
//! A *wait-free* operation is never repeated. Its worst-case time, which grows with the number of tasks, is part of C,
//! and it has no other cost.
//!
//! # Examples
//! ```
//! use lockwright_analysis::{Sporadic, nonblocking};
//! let task = |cost, period| Sporadic { cost, period, deadline: period };
//! // Each failed attempt takes one more unit of time.
//! assert_eq!(nonblocking::lock_free_fp(&[task(2, 10), task(5, 20)], 1)?, [2, 8]);
//! # Ok::<(), lockwright_analysis::Failure>(())
//! ```

use crate::rows::divisor::Divisor;
use crate::rows::exact::compare_sum;
use crate::rows::failure::{Failure, Limit};
use crate::rows::fixed_point::TERMS_MAX;
use crate::{Sharing, Sporadic};

/// Returns the greatest total cost of the failed attempts of one job of each task, under any scheduler and on any
/// number of processors.
///
/// The bound uses the `response` of each task. Costs are in the unit of the input.
///
/// # Errors
/// Returns [`Failure::Overflow`] if a number does not fit, and [`Failure::Unsupported`] for a task without a period.
pub fn retries(sharing: &Sharing) -> Result<Vec<u64>, Failure> {
    let responses: Vec<u64> = sharing.tasks.iter().map(|task| task.response).collect();
    (0..sharing.tasks.len()).map(|i| retries_of(sharing, &responses, i)).collect()
}

fn retries_of(sharing: &Sharing, responses: &[u64], i: usize) -> Result<u64, Failure> {
    let mut total = 0_u64;
    for mine in sharing.tasks[i].requests.iter().filter(|request| request.count > 0) {
        for (k, other) in sharing.tasks.iter().enumerate().filter(|&(k, _)| k != i) {
            for theirs in other.requests.iter().filter(|request| request.resource == mine.resource) {
                if other.period == 0 {
                    return Err(Failure::Unsupported { task: k, what: "has no period" });
                }
                let jobs = responses[i].checked_add(responses[k]).map(|t| t.div_ceil(other.period));
                let cost = jobs
                    .and_then(|jobs| jobs.checked_mul(u64::from(theirs.count)))
                    .and_then(|failures| failures.checked_mul(mine.length))
                    .and_then(|cost| total.checked_add(cost));
                total = cost.ok_or(Failure::Overflow)?;
            }
        }
    }
    Ok(total)
}

/// Returns the response times of tasks with lock-free objects under partitioned fixed priorities, from the bound for
/// any scheduler.
///
/// Deadlines must not exceed periods. Tasks of equal priority on one processor delay each other. The `response` of the
/// input is ignored. Response times are in the unit of the input.
///
/// # Errors
/// Returns [`Failure::Late`] with the first task found late, [`Failure::Unsupported`] for a deadline beyond the period,
/// and [`Failure::Diverged`] or [`Failure::Overflow`] if there is no result.
pub fn lock_free_p_fp(sharing: &Sharing) -> Result<Vec<u64>, Failure> {
    let tasks = &sharing.tasks;
    let mut rivals = vec![Vec::new(); tasks.len()];
    for (i, task) in tasks.iter().enumerate() {
        if task.deadline > task.period || task.period == 0 {
            return Err(Failure::Unsupported { task: i, what: "has no period as long as its deadline" });
        }
        for (h, other) in tasks.iter().enumerate() {
            if h != i && other.cluster == task.cluster && other.priority >= task.priority {
                let period = Divisor::new(other.period).ok_or(Failure::Overflow)?;
                rivals[i].push((h, period));
            }
        }
    }
    let mut responses: Vec<u64> = tasks.iter().map(|task| task.cost).collect();
    let mut costs: Vec<u64> = responses.clone();
    let mut terms = TERMS_MAX;
    // BOUND: each round except the last increases a response time, and none exceeds its deadline; also the limit on
    // terms.
    loop {
        let mut changed = false;
        for (i, task) in tasks.iter().enumerate() {
            costs[i] = retries_of(sharing, &responses, i)?.checked_add(task.cost).ok_or(Failure::Overflow)?;
        }
        for (i, task) in tasks.iter().enumerate() {
            let mut t = responses[i].max(costs[i]);
            loop {
                if t > task.deadline {
                    return Err(Failure::Late { task: i, response: t });
                }
                let limit = Limit { name: "terms", most: TERMS_MAX };
                terms = terms.checked_sub(tasks.len() as u64).ok_or(Failure::Diverged { task: i, limit })?;
                let next = rivals[i].iter().try_fold(costs[i], |sum, &(h, period)| {
                    period.ceil(t).checked_mul(costs[h]).and_then(|work| sum.checked_add(work))
                });
                let next = next.ok_or(Failure::Overflow)?;
                if next <= t {
                    break;
                }
                t = next;
            }
            changed |= t > responses[i];
            responses[i] = t;
        }
        if !changed {
            return Ok(responses);
        }
    }
}

/// Returns the response times on one processor with fixed priorities, where each attempt takes at most `attempt`.
///
/// Tasks are in order of decreasing priority, and deadlines must not exceed periods. Response times are in the unit of
/// the input. The source is Anderson, Ramamurthy, Jeffay (1997); see the [module](self).
///
/// # Errors
/// Returns [`Failure::Late`] with the first task that may be late, [`Failure::Unsupported`] for a task without a period
/// or with a deadline beyond it, and [`Failure::Diverged`] or [`Failure::Overflow`] if there is no result.
pub fn lock_free_fp(tasks: &[Sporadic], attempt: u64) -> Result<Vec<u64>, Failure> {
    let mut periods = Vec::new();
    let mut responses = Vec::new();
    let mut terms = TERMS_MAX;
    for (i, task) in tasks.iter().enumerate() {
        if task.deadline > task.period {
            return Err(Failure::Unsupported { task: i, what: "has a deadline beyond its period" });
        }
        let mut t = task.cost.max(1);
        // BOUND: the deadline, and the limit on terms.
        loop {
            if t > task.deadline {
                return Err(Failure::Late { task: i, response: t });
            }
            let limit = Limit { name: "terms", most: TERMS_MAX };
            terms = terms.checked_sub(i as u64 + 1).ok_or(Failure::Diverged { task: i, limit })?;
            let next = periods.iter().zip(tasks).try_fold(task.cost, |sum, (period, other): (&Divisor, &Sporadic)| {
                let work = period.ceil(t).checked_mul(other.cost)?;
                let again = period.ceil(t - 1).checked_mul(attempt)?;
                sum.checked_add(work)?.checked_add(again)
            });
            let next = next.ok_or(Failure::Overflow)?;
            if next <= t {
                break;
            }
            t = next;
        }
        responses.push(t);
        periods.push(Divisor::new(task.period).ok_or(Failure::Unsupported { task: i, what: "has no period" })?);
    }
    Ok(responses)
}

/// Tests whether all deadlines are met on one processor under EDF, where each attempt takes at most `attempt`.
///
/// Deadlines must be at least as long as periods. The source is Anderson, Ramamurthy, Jeffay (1997); see the
/// [module](self).
///
/// # Errors
/// Returns [`Failure::Overload`] if a deadline may be missed, [`Failure::Unsupported`] for a deadline before the
/// period, and [`Failure::Overflow`] if a number does not fit.
pub fn lock_free_edf(tasks: &[Sporadic], attempt: u64) -> Result<(), Failure> {
    for (index, task) in tasks.iter().enumerate() {
        if task.period == 0 || task.deadline < task.period {
            return Err(Failure::Unsupported { task: index, what: "has no period, or a deadline before its end" });
        }
        task.cost.checked_add(attempt).ok_or(Failure::Overflow)?;
    }
    if compare_sum(tasks.iter().map(|task| (task.cost + attempt, task.period)), 1).is_gt() {
        return Err(Failure::Overload);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Demand, Sharer};

    fn task(cost: u64, period: u64) -> Sporadic {
        Sporadic { cost, period, deadline: period }
    }

    #[test]
    fn each_release_costs_an_attempt() {
        // 5 + 2 * 2 + 1 attempt of 1 for a window of up to 10.
        assert_eq!(lock_free_fp(&[task(2, 10), task(5, 20)], 1), Ok(vec![2, 8]));
        assert_eq!(lock_free_fp(&[task(2, 10), task(5, 20)], 0), Ok(vec![2, 7]));
        assert_eq!(lock_free_fp(&[task(2, 4), task(2, 4)], 1), Err(Failure::Late { task: 1, response: 5 }));
        assert_eq!(lock_free_fp(&[], 1), Ok(vec![]));
        assert_eq!(lock_free_edf(&[task(2, 6), task(2, 6)], 1), Ok(()));
        assert_eq!(lock_free_edf(&[task(2, 6), task(3, 6)], 1), Err(Failure::Overload));
        assert_eq!(lock_free_edf(&[task(u64::MAX, u64::MAX)], 1), Err(Failure::Overflow));
    }

    fn pair(cluster: u16, count: u32) -> Sharing {
        let one = |cost, period, priority, cluster| Sharer {
            cost,
            period,
            deadline: period,
            response: period,
            priority,
            cluster,
            requests: vec![Demand { resource: 0, count, length: 2 }],
        };
        Sharing { tasks: vec![one(3, 20, 2, 0), one(5, 30, 1, cluster)] }
    }

    #[test]
    fn conflicting_commits_cost_an_attempt_each() {
        // ceil((20 + 30) / 30) = 2 jobs of the second task may commit during the first, and ceil(50 / 20) = 3 jobs of
        // the first during the second.
        assert_eq!(retries(&pair(1, 1)), Ok(vec![4, 6]));
        assert_eq!(retries(&pair(1, 0)), Ok(vec![0, 0]));
        assert_eq!(lock_free_p_fp(&pair(1, 0)), Ok(vec![3, 5]));
        assert_eq!(lock_free_p_fp(&pair(1, 1)), Ok(vec![5, 7]));
        assert_eq!(lock_free_p_fp(&pair(0, 1)), Ok(vec![5, 12]));
        let mut late = pair(0, 1);
        late.tasks[1].deadline = 11;
        assert_eq!(lock_free_p_fp(&late), Err(Failure::Late { task: 1, response: 12 }));
    }

    /// A job in the simulation below: its task, its steps, and whether a commit has invalidated its current attempt.
    #[derive(Clone)]
    struct Running {
        task: usize,
        released: u64,
        steps: Vec<bool>,
        at: usize,
        spoilt: bool,
    }

    /// Returns the longest response of each task on one processor. A job consists of steps of one unit. A run of `true`
    /// steps is an attempt on the one object. Its last step commits, unless another commit came after its start; then
    /// the attempt starts again.
    fn simulate(tasks: &[Sporadic], attempts: &[(usize, usize)], edf: bool, until: u64) -> Vec<u64> {
        let mut jobs: Vec<Running> = Vec::new();
        let mut longest = vec![0; tasks.len()];
        for now in 0..until {
            for (index, task) in tasks.iter().enumerate() {
                if now % task.period == 0 {
                    let (start, length) = attempts[index];
                    let steps = (0..task.cost as usize).map(|step| step >= start && step < start + length).collect();
                    jobs.push(Running { task: index, released: now, steps, at: 0, spoilt: false });
                }
            }
            let urgency = |job: &Running| {
                if edf { (job.released + tasks[job.task].deadline, job.task) } else { (job.task as u64, 0) }
            };
            let Some(chosen) = (0..jobs.len()).min_by_key(|&index| (urgency(&jobs[index]), index)) else { continue };
            let (start, length) = attempts[jobs[chosen].task];
            let job = &mut jobs[chosen];
            let commits = job.steps[job.at] && job.at + 1 == start + length;
            let fails = commits && job.spoilt;
            job.at = if fails { start } else { job.at + 1 };
            if commits {
                job.spoilt = false;
            }
            let done = job.at == job.steps.len();
            if commits && !fails {
                for (index, other) in jobs.iter_mut().enumerate() {
                    let (start, length) = attempts[other.task];
                    other.spoilt |= index != chosen && other.at > start && other.at < start + length;
                }
            }
            if done {
                let job = jobs.remove(chosen);
                longest[job.task] = longest[job.task].max(now + 1 - job.released);
            }
        }
        longest
    }

    #[test]
    fn no_simulated_schedule_exceeds_the_bounds() {
        let mut random = fastrand::Rng::with_seed(4);
        let (mut checked, mut retried) = (0, 0);
        for _ in 0..3_000 {
            let count = random.usize(2..5);
            let mut tasks: Vec<Sporadic> = (0..count)
                .map(|_| {
                    let period = random.u64(6..40);
                    task(random.u64(1..=(period / 3).max(2)), period)
                })
                .collect();
            tasks.sort_by_key(|task| task.period);
            let attempts: Vec<(usize, usize)> = tasks
                .iter()
                .map(|task| {
                    let length = random.usize(1..=task.cost as usize);
                    (random.usize(0..=task.cost as usize - length), length)
                })
                .collect();
            let longest = attempts.iter().map(|&(_, length)| length as u64).max().unwrap();
            if let Ok(bounds) = lock_free_fp(&tasks, longest) {
                let seen = simulate(&tasks, &attempts, false, 800);
                assert!(seen.iter().zip(&bounds).all(|(seen, bound)| seen <= bound), "{tasks:?} {attempts:?} {seen:?}");
                let plain = lock_free_fp(&tasks, 0).unwrap();
                retried += usize::from(seen.iter().zip(&plain).any(|(seen, bound)| seen > bound));
                checked += 1;
            }
            if lock_free_edf(&tasks, longest).is_ok() {
                let seen = simulate(&tasks, &attempts, true, 800);
                assert!(seen.iter().zip(&tasks).all(|(seen, task)| *seen <= task.deadline), "{tasks:?} {attempts:?}");
            }
            let sharing = Sharing {
                tasks: tasks
                    .iter()
                    .zip(&attempts)
                    .enumerate()
                    .map(|(index, (task, &(_, length)))| Sharer {
                        cost: task.cost,
                        period: task.period,
                        deadline: task.deadline,
                        priority: (count - index) as u32,
                        requests: vec![Demand { resource: 0, count: 1, length: length as u64 }],
                        ..Sharer::default()
                    })
                    .collect(),
            };
            if let Ok(bounds) = lock_free_p_fp(&sharing) {
                let seen = simulate(&tasks, &attempts, false, 800);
                assert!(seen.iter().zip(&bounds).all(|(seen, bound)| seen <= bound), "{tasks:?} {attempts:?}");
            }
        }
        assert!(checked > 300, "{checked}");
        assert!(retried > 20, "some responses exceed the bound without retries: {retried} of {checked}");
    }
}
