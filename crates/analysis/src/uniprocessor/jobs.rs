//! Finite sets of jobs that cannot be preempted, with uncertain releases and costs, under any scheduler that never leaves a processor
//! idle while a job is ready and starts the most urgent one that is.
//!
//! A state is the set of jobs that were started, and for each processor the interval in which it becomes free. All jobs that can be
//! started next lead to others:
//! ```text
//!   s = max(r_min, A_1.min)  to  min(max(A_1.max, least r_max of those not started), least r_max of more urgent ones - 1)
//! ```
//! States of one set with intervals that meet become one. Exact for one processor: Nasri, Brandenburg (RTSS 2017); sufficient for
//! more: Nasri, Nelissen, Brandenburg (ECRTS 2018).

use crate::failure::{Failure, Limit};

/// Most states at one time.
pub const STATES_MAX: usize = 1_000_000;

/// A job. Times are integers in one unit, from one origin.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Job {
    /// Its release, at the earliest.
    pub release_min: u64,
    /// And at the latest.
    pub release_max: u64,
    /// Its execution time, at least.
    pub cost_min: u64,
    /// And at most.
    pub cost_max: u64,
    /// By when it is to be done.
    pub deadline: u64,
    /// Greater is more urgent; of two alike the one that is given first is.
    pub priority: u64,
}

/// When a job is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Completion {
    /// At the earliest.
    pub best: u64,
    /// At the latest.
    pub worst: u64,
}

/// When each job is done, in the order given.
///
/// # Errors
/// A job that may be late: the first that was found. [`STATES_MAX`] is a limit.
pub fn completions(jobs: &[Job], processors: usize) -> Result<Vec<Completion>, Failure> {
    if processors == 0 && !jobs.is_empty() {
        return Err(Failure::Overload);
    }
    for (task, job) in jobs.iter().enumerate() {
        if job.release_min > job.release_max || job.cost_min > job.cost_max {
            return Err(Failure::Unsupported { task, what: "its earliest is later than its latest" });
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
    /// One bit a job, in order of urgency.
    started: Box<[u64]>,
    /// When the first, second, .. processor becomes free, at the earliest and at the latest.
    free: Box<[(u64, u64)]>,
}

impl State {
    fn has_started(&self, index: usize) -> bool {
        self.started[index / 64] >> (index % 64) & 1 == 1
    }

    /// Every job that can be next, with when it starts at the earliest and latest.
    fn start_each(
        &self,
        jobs: &[Job],
        mut each: impl FnMut(usize, (u64, u64), &Self) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let Some(&(free_min, free_max)) = self.free.first() else { return Ok(()) };
        let left = || jobs.iter().enumerate().filter(|&(index, _)| !self.has_started(index));
        let Some(certain) = left().map(|(_, job)| job.release_max).min() else { return Ok(()) };
        let work_conserving = free_max.max(certain);
        // From when on a more urgent job is certainly ready.
        let mut urgent = u64::MAX;
        for (index, job) in left() {
            let first = job.release_min.max(free_min);
            // A job that starts at `urgent` or later is not the most urgent.
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

    /// After a job started and ended between these.
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

    /// Takes `other` in, if it has the same jobs started and its intervals meet these.
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
