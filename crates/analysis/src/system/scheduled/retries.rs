//! Failed attempts on lock-free objects under EDF and under global schedulers.
//!
//! ```text
//!   C'_i = C_i + sum over q of L(i,q) * failures(i, q)   [+ s_i  under partitioned EDF]
//!   failures(i, q)   = the lesser of  commits(i, q, D_i)  and  N(i,q) * commits(i, q, W(i,q))
//!   commits(i, q, t) = sum over other tasks k of N(k,q) * ceil((t + D_k) / T_k)
//!   W = L(i,q) * (1 + commits(i, q, W)) + preempted(i, W)
//!   global:       preempted(i, t) = (1/m) * sum over other k of min(t, ceil((t + D_k) / T_k) * C'_k)
//!   partitioned:  preempted(i, t) = sum over local h with D_h < D_i + J of ceil(t / T_h) * C'_h
//!                 s_i = max of L(j,q) over local j with D_i < D_j + J,
//!                                     and q that a local g with D_g < D_j + J uses as well
//! ```
//! An attempt takes L(i,q), and fails only if another operation on q is committed during it. W(i,q) is the time from
//! the start of an operation to its commit, or D_i if that is less: a job makes at most one attempt at a time, so the
//! commits during the job bound its failures, and so do those during each of its operations. While no deadline has been
//! missed, each job that is pending at some time of an interval arrived at most D_k before it.
//!
//! *Global.* A job that has begun an operation and does not execute leaves all m processors to others; under fixed
//! priorities, to more urgent ones.
//!
//! *Partitioned EDF.* k is on other processors. On its own, a job with a later deadline commits nothing during an
//! attempt, as the job has started. A job that preempts it, and all that execute before it continues, make at most one
//! attempt fail, which counts as the execution of the job that preempts: s_i. Any job preempts at most one other, and
//! both have arrival and deadline in the interval of a processor demand, if the one that is preempted has. Jobs that
//! preempt an operation arrive during it.
//!
//! *Late releases.* Overheads may delay by up to J that a release is noticed. Then T is T - J in these equations: a
//! task is noticed that often. D counts from the arrival, and a job preempts another if its deadline is earlier and its
//! release is noticed later, even if it arrived up to J earlier.
//!
//! C' and W are the least values that satisfy these equations: at the first instant at which a job exceeds its value,
//! no other has, and the right side holds. All this holds for a compare-and-swap that does not fail spuriously, and one
//! commit per operation. Anderson, Ramamurthy, Jeffay (TOCS 15(2), 1997) is the source of s_i on one processor, and of
//! the count of commits; Devi, Leontyev, Anderson (ECRTS 2006) count those that overlap one access under global EDF.

use crate::rows::failure::Failure;
use crate::rows::mutant::{Mutant, Omission};
use crate::rows::sharing::{Demand, Sharing};

/// The most rounds of the costs, and the most steps of one window. A window that is not found counts as D.
const ROUNDS_MAX: u64 = 1_000;

/// Which jobs preempt an operation, on how many processors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Preempting {
    /// Global EDF on this number of processors.
    Any(u32),
    /// Global fixed priorities on this number of processors.
    Urgent(u32),
    /// Partitioned EDF.
    Local,
}

/// Returns the failed attempts of a job of `task` for each of its requests, if the tasks have these costs: their number
/// and the length of each.
pub(super) fn failures(
    sharing: &Sharing,
    preempting: Preempting,
    costs: &[u64],
    task: usize,
) -> Option<Vec<(Demand, u64)>> {
    let attempts = Attempts { sharing, preempting, omission: Omission::NOTHING };
    let requests = sharing.tasks[task].requests.iter();
    requests.map(|mine| Some((*mine, attempts.failures(task, mine, costs)?))).collect()
}

struct Attempts<'a> {
    sharing: &'a Sharing,
    preempting: Preempting,
    omission: Omission<Mutant>,
}

/// Returns C' of each task. `sharing` has the requests for lock-free objects only, and the time from the arrival to the
/// deadline as the response. The deadlines count from the latest time at which a release is noticed. A cost beyond its
/// deadline is one above it: every test of its processor refuses that, and no task of another processor depends on it.
///
/// # Errors
/// Returns [`Failure::Overflow`] if a number does not fit.
pub(super) fn costs(
    sharing: &Sharing,
    preempting: Preempting,
    omission: Omission<Mutant>,
) -> Result<Vec<u64>, Failure> {
    let attempts = Attempts { sharing, preempting, omission };
    let count = sharing.tasks.len();
    let fixed: Option<Vec<u64>> =
        (0..count).map(|i| sharing.tasks[i].cost.checked_add(attempts.of_preempted(i))).collect();
    let fixed = fixed.ok_or(Failure::Overflow)?;
    let within = |i: usize, cost: u64| cost.min(sharing.tasks[i].deadline.saturating_add(1));
    let mut costs: Vec<u64> = fixed.iter().enumerate().map(|(i, &cost)| within(i, cost)).collect();
    for _ in 0..ROUNDS_MAX {
        let mut is_changed = false;
        for i in 0..count {
            let failed = attempts.failed(i, &costs).ok_or(Failure::Overflow)?;
            let cost = within(i, fixed[i].checked_add(failed).ok_or(Failure::Overflow)?);
            if cost > costs[i] {
                (is_changed, costs[i]) = (true, cost);
            }
        }
        if !is_changed {
            return Ok(costs);
        }
    }
    // The costs grow in very many small steps. All commits in a job's time are a bound as well, without the costs of
    // others.
    let all = |i: usize| {
        let failed = attempts.failed_at_most(i).ok_or(Failure::Overflow)?;
        Ok(within(i, fixed[i].checked_add(failed).ok_or(Failure::Overflow)?))
    };
    (0..count).map(all).collect()
}

impl Attempts<'_> {
    fn is_local(&self, i: usize, k: usize) -> bool {
        self.preempting == Preempting::Local && self.sharing.tasks[i].cluster == self.sharing.tasks[k].cluster
    }

    /// Returns whether a job of `i` can preempt one of `j` on its processor under partitioned EDF.
    fn preempts(&self, i: usize, j: usize) -> bool {
        let tasks = &self.sharing.tasks;
        let late = match self.omission.is(Mutant::ReleaseJitter) {
            true => 0,
            false => tasks[i].response.saturating_sub(tasks[i].deadline),
        };
        tasks[i].deadline < tasks[j].deadline.saturating_add(late)
    }

    /// Returns the longest time from the arrival of a job of `i` to its end.
    fn pending(&self, i: usize) -> u64 {
        let task = &self.sharing.tasks[i];
        if self.omission.is(Mutant::ReleaseJitter) { task.deadline } else { task.response }
    }

    fn uses(&self, k: usize, q: u16) -> u64 {
        let requests = &self.sharing.tasks[k].requests;
        requests.iter().find(|request| request.resource == q).map_or(0, |request| request.count.into())
    }

    /// Returns s_i: the longest attempt of another task that fails because of a job of `i` that preempts it.
    fn of_preempted(&self, i: usize) -> u64 {
        let tasks = &self.sharing.tasks;
        let others = || (0..tasks.len()).filter(|&k| self.is_local(i, k));
        let fails = |j: usize, q: u16| others().any(|g| g != j && self.preempts(g, j) && self.uses(g, q) > 0);
        let later = others().filter(|&j| j != i && self.preempts(i, j) && !self.omission.is(Mutant::Again));
        let attempts = later.flat_map(|j| tasks[j].requests.iter().map(move |request| (j, request)));
        attempts
            .filter(|&(j, request)| fails(j, request.resource))
            .map(|(_, request)| request.length)
            .max()
            .unwrap_or(0)
    }

    /// Returns the commits of others that can make attempts of `i` fail in an interval of its pendency.
    fn commits(&self, i: usize, q: u16, t: u64) -> Option<u64> {
        let others = (0..self.sharing.tasks.len()).filter(|&k| k != i && !self.is_local(i, k));
        others
            .filter(|_| !self.omission.is(Mutant::RemoteCommits))
            .try_fold(0_u64, |sum, k| sum.checked_add(self.uses(k, q).checked_mul(self.overlapping(k, t)?)?))
    }

    /// Returns the jobs of `k` that are pending at some time of an interval of length `t`.
    fn overlapping(&self, k: usize, t: u64) -> Option<u64> {
        let task = &self.sharing.tasks[k];
        let before = if self.omission.is(Mutant::RemoteCarryIn) { 0 } else { self.pending(k) };
        Some(t.checked_add(before)?.div_ceil(task.period.max(1)))
    }

    /// Returns the time of the failed attempts of a job that others cause, if the others have these costs.
    fn failed(&self, i: usize, costs: &[u64]) -> Option<u64> {
        let task = &self.sharing.tasks[i];
        sum(task.requests.iter().map(|mine| mine.length.checked_mul(self.failures(i, mine, costs)?)))
    }

    /// Returns a bound on that time that needs no costs: each commit of others in the job's time makes an attempt fail.
    fn failed_at_most(&self, i: usize) -> Option<u64> {
        let commits = |mine: &Demand| self.commits(i, mine.resource, self.pending(i))?.checked_mul(mine.length);
        sum(self.sharing.tasks[i].requests.iter().map(commits))
    }

    /// Returns the number of attempts of these requests of a job that fail.
    fn failures(&self, i: usize, mine: &Demand, costs: &[u64]) -> Option<u64> {
        let during = self.commits(i, mine.resource, self.pending(i))?;
        if during == 0 {
            return Some(0);
        }
        let window = self.window(i, mine, costs)?;
        let each = self.commits(i, mine.resource, window)?.checked_mul(u64::from(mine.count))?;
        Some(during.min(each))
    }

    /// Returns W, or the time from the arrival to the deadline if that is less or if W is not found.
    fn window(&self, i: usize, mine: &Demand, costs: &[u64]) -> Option<u64> {
        let most = self.pending(i);
        let mut window = mine.length;
        for _ in 0..ROUNDS_MAX {
            let own = self.commits(i, mine.resource, window)?.checked_add(1)?.checked_mul(mine.length)?;
            let next = own.checked_add(self.preempted(i, window, costs)?)?;
            if next <= window || next >= most {
                return Some(next.max(window).min(most));
            }
            window = next;
        }
        Some(most)
    }

    /// Returns for how long others keep an operation of `i` from executing in an interval of length `t`.
    fn preempted(&self, i: usize, t: u64, costs: &[u64]) -> Option<u64> {
        let tasks = &self.sharing.tasks;
        let others = (0..tasks.len()).filter(|&k| k != i && !self.omission.is(Mutant::Preempted));
        let works = |k: usize| Some(self.overlapping(k, t)?.checked_mul(costs[k])?.min(t));
        match self.preempting {
            Preempting::Local => {
                let earlier = others.filter(|&h| self.is_local(i, h) && self.preempts(h, i));
                sum(earlier.map(|h| t.div_ceil(tasks[h].period.max(1)).checked_mul(costs[h])))
            }
            Preempting::Urgent(m) => {
                let urgent = others.filter(|&k| tasks[k].priority >= tasks[i].priority);
                Some(sum(urgent.map(works))?.div_ceil(u64::from(m.max(1))))
            }
            Preempting::Any(m) => Some(sum(others.map(works))?.div_ceil(u64::from(m.max(1)))),
        }
    }
}

fn sum(mut of: impl Iterator<Item = Option<u64>>) -> Option<u64> {
    of.try_fold(0_u64, |sum, work| sum.checked_add(work?))
}
