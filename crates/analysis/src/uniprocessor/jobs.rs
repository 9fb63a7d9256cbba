//! Finite sets of non-preemptive jobs with uncertain releases and execution times, under any scheduler that never
//! leaves a processor idle while a job is ready, and starts the most urgent ready job.
//!
//! A state is the set of jobs that have started and, for each processor, the interval in which it becomes free. Every
//! job that can start next leads to another state, with a start in the interval
//! ```text
//!   s = max(r_min, A_1.min)
//!       to  min(max(A_1.max, least r_max of jobs not started), least r_max of more urgent ones - 1)
//! ```
//! States of the same set are merged if their intervals overlap. The result is exact for one processor (Nasri,
//! Brandenburg, RTSS 2017), and sufficient for several (Nasri, Nelissen, Brandenburg, ECRTS 2018).
//!
//! # Examples
//! ```
//! use lockwright_analysis::uniprocessor::jobs::{Job, completions};
//! let job = |priority| Job { release_min: 0, release_max: 1, cost_min: 1, cost_max: 2, deadline: 9, priority };
//! let found = completions(&[job(2), job(1)], 1)?;
//! // Either job may be released first.
//! assert_eq!((found[0].best, found[0].worst), (1, 4));
//! # Ok::<(), lockwright_analysis::Failure>(())
//! ```

use crate::rows::failure::{Failure, Limit};

/// The most states at one time.
pub const STATES_MAX: usize = 1_000_000;

/// A job. Times are integers in one unit, from one origin.
///
/// This is a plain value: users write it as a literal, and it gets no further fields.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Job {
    /// The earliest release.
    pub release_min: u64,
    /// The latest release.
    pub release_max: u64,
    /// The least execution time.
    pub cost_min: u64,
    /// The greatest execution time.
    pub cost_max: u64,
    /// The absolute deadline.
    pub deadline: u64,
    /// The priority. A greater number is more urgent; of two equal priorities, the job that comes first in the list is
    /// more urgent.
    pub priority: u64,
}

/// The interval in which a job completes, in absolute times.
///
/// This is a plain value: users write it as a literal, and it gets no further fields.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Completion {
    /// The earliest completion.
    pub best: u64,
    /// The latest completion.
    pub worst: u64,
}

/// Returns the completion times of non-preemptive jobs on `processors` processors, in the order of the jobs.
///
/// Times are in the unit of the input. The sources are in the [module](self).
///
/// # Errors
/// Returns [`Failure::Late`] with a job that may be late, which is the first one found. Returns [`Failure::Diverged`]
/// if there are more than [`STATES_MAX`] states, [`Failure::Unsupported`] for a job whose earliest time exceeds its
/// latest, [`Failure::Overload`] for jobs without processors, and [`Failure::Overflow`] if a number does not fit.
pub fn completions(jobs: &[Job], processors: usize) -> Result<Vec<Completion>, Failure> {
    if processors == 0 && !jobs.is_empty() {
        return Err(Failure::Overload);
    }
    for (task, job) in jobs.iter().enumerate() {
        if job.release_min > job.release_max || job.cost_min > job.cost_max {
            return Err(Failure::Unsupported { task, what: "its earliest time is later than its latest" });
        }
    }
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    order.sort_by_key(|&index| std::cmp::Reverse(jobs[index].priority));
    let sorted: Vec<Job> = order.iter().map(|&index| jobs[index]).collect();
    let mut found = vec![Completion { best: u64::MAX, worst: 0 }; jobs.len()];
    let idle = State { started: vec![0; jobs.len().div_ceil(64)].into(), free: vec![(0, 0); processors].into() };
    let mut states = vec![idle];
    for _ in 0..jobs.len() {
        let mut next = Vec::new();
        for state in &states {
            state.start_each(&sorted, |index, (first, last), after| {
                let (job, task) = (&sorted[index], order[index]);
                let best = first.checked_add(job.cost_min).ok_or(Failure::Overflow)?;
                let worst = last.checked_add(job.cost_max).ok_or(Failure::Overflow)?;
                if worst > job.deadline {
                    return Err(Failure::Late { task, response: worst - job.release_min });
                }
                let completion = &mut found[task];
                (completion.best, completion.worst) = (completion.best.min(best), completion.worst.max(worst));
                next.push(after.with(index, (first, best), (last, worst)));
                Ok(())
            })?;
            if next.len() > 2 * STATES_MAX {
                next = merged(next);
            }
            if next.len() > STATES_MAX {
                let limit = Limit { name: "states", most: STATES_MAX as u64 };
                return Err(Failure::Diverged { task: 0, limit });
            }
        }
        states = merged(next);
    }
    Ok(found)
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct State {
    /// One bit for each job, in order of decreasing priority.
    started: Box<[u64]>,
    /// The earliest and latest times at which the first, second, ... processor becomes free.
    free: Box<[(u64, u64)]>,
}

impl State {
    fn has_started(&self, index: usize) -> bool {
        self.started[index / 64] >> (index % 64) & 1 == 1
    }

    /// Calls `each` for every job that can start next, with its earliest and latest start.
    fn start_each(
        &self,
        jobs: &[Job],
        mut each: impl FnMut(usize, (u64, u64), &Self) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let Some(&(free_min, free_max)) = self.free.first() else { return Ok(()) };
        let left = || jobs.iter().enumerate().filter(|&(index, _)| !self.has_started(index));
        let Some(certain) = left().map(|(_, job)| job.release_max).min() else { return Ok(()) };
        let work_conserving = free_max.max(certain);
        // The time from which on a more urgent job is certainly ready.
        let mut urgent = u64::MAX;
        for (index, job) in left() {
            let first = job.release_min.max(free_min);
            // A job that starts at `urgent` or later is not the most urgent one.
            if first < urgent {
                let last = work_conserving.min(urgent - 1);
                if first <= last {
                    each(index, (first, last), self)?;
                }
            }
            urgent = urgent.min(job.release_max);
        }
        Ok(())
    }

    /// Returns the state after a job that starts and ends within these times.
    fn with(&self, index: usize, (first, best): (u64, u64), (last, worst): (u64, u64)) -> Self {
        let mut started = self.started.clone();
        started[index / 64] |= 1 << (index % 64);
        let mut earliest: Vec<u64> = self.free[1..].iter().map(|&(min, _)| min.max(first)).collect();
        let mut latest: Vec<u64> = self.free[1..].iter().map(|&(_, max)| max.max(last)).collect();
        earliest.push(best);
        latest.push(worst);
        earliest.sort_unstable();
        latest.sort_unstable();
        Self { started, free: earliest.into_iter().zip(latest).collect() }
    }

    /// Merges `other` into this state if both have the same started jobs and their intervals overlap. Returns whether
    /// it did.
    fn takes_in(&mut self, other: &Self) -> bool {
        let meets = |(&a, &b): (&(u64, u64), &(u64, u64))| a.0 <= b.1 && b.0 <= a.1;
        let same = self.started == other.started && self.free.iter().zip(&other.free).all(meets);
        if same {
            for (mine, other) in self.free.iter_mut().zip(&other.free) {
                *mine = (mine.0.min(other.0), mine.1.max(other.1));
            }
        }
        same
    }
}

fn merged(mut states: Vec<State>) -> Vec<State> {
    states.sort_unstable();
    states.dedup_by(|later, kept| kept.takes_in(later));
    states
}
