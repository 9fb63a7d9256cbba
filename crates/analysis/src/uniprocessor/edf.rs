//! Earliest deadline first on one processor.
//!
//! **Demand.** All deadlines are met if U <= 1 and, for the deadline t of every job of synchronous arrivals,
//! ```text
//!   h(t) + B(t) <= t,    h(t) = sum over k with D_k <= t of (floor((t - D_k) / T_k) + 1) C_k
//! ```
//! The sources are Baruah, Mok, Rosier (RTSS 1990), Zhang, Burns (IEEE TC 58(9), 2009) for quick processor-demand
//! analysis (QPA), and Baruah (RTSS 2006) for blocking under SRP. Without blocking the test is exact. B is constant
//! between its steps, so h + B never decreases there and QPA may skip points. It may not skip a step, as B can be
//! longer below it.
//!
//! **Response times.** They are measured from the release. A ranges over all offsets of a job in a busy interval at
//! which some count increases:
//! ```text
//!   F(A) = least t:  B(A) + ceil((A + 1 + J_i) / T_i) C_i - e_i
//!                    + sum over k != i of min(ceil((t + J_k) / T_k), ceil((A + 1 + D_i - D_k + J_k) / T_k)) C_k  <=  t
//!   R_i  = max over A of F(A) + e_i - A
//!   B(A) = the longest non-preemptive execution of a job with D_k > A + D_i that has begun
//! ```
//! e_i is the time that a job executes after its last preemption point, minus one unit. The sources are Spuri (INRIA
//! RR-2772, 1996) and George, Rivierre, Spuri (INRIA RR-2966, 1996). The result is exact for full preemption. Guan, Yi
//! (DATE 2014) obtain the same values in another way, and the approximation `R_i <= D_i - min over t >= D_i of (t -
//! h(t))`. Limited preemption follows Bozhko, Brandenburg (ECRTS 2020).
//!
//! # Examples
//! ```
//! use lockwright_analysis::Sporadic;
//! use lockwright_analysis::uniprocessor::edf;
//! let task = |cost, period, deadline| Sporadic { cost, period, deadline };
//! assert!(edf::schedulable(&[task(2, 4, 4), task(3, 7, 7)], &[]).is_ok());
//! assert!(edf::schedulable(&[task(2, 4, 2), task(3, 7, 4)], &[]).is_err());
//! ```

mod responses;

use super::{Arrivals, Effort, Terms, busy_period, least};
use crate::rows::divisor::Divisor;
use crate::rows::exact::compare_sum;
use crate::rows::failure::Failure;
use crate::rows::fixed_point::TERMS_MAX;
use crate::rows::sharing::{self, Sharing};
use crate::rows::sporadic::Sporadic;
pub use responses::{approximate_response_times, response_bounds, response_times};
use std::cmp::Ordering;

/// A step of the blocking as a function of the length of the interval. It applies until the next step.
///
/// This is a plain value: users write it as a literal, and it gets no further fields.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Step {
    /// The least length of the intervals to which the step applies.
    pub from: u64,
    /// The blocking B in these intervals.
    pub blocking: u64,
}

/// Tests whether all deadlines are met on one processor under EDF with blocking, by QPA.
///
/// `blocking` contains steps in order of increasing `from`; intervals below the first step have no blocking. The test
/// is exact without blocking, and sufficient with it. The sources are in the [module](self).
///
/// # Errors
/// Returns [`Failure::Demand`] with an interval in which more is due than fits, and [`Failure::Overload`] if U > 1.
/// Returns [`Failure::Unsupported`] for a task without a period or for steps out of order, and [`Failure::Diverged`] or
/// [`Failure::Overflow`] if there is no verdict.
pub fn schedulable(tasks: &[Sporadic], blocking: &[Step]) -> Result<(), Failure> {
    schedulable_within(tasks, blocking, u64::MAX, Effort::FULL)
}

/// Like [`schedulable`], for intervals shorter than `below`, and with limited effort.
///
/// # Errors
/// Returns the errors of [`schedulable`], and [`Failure::Interrupted`].
pub(crate) fn schedulable_within(
    tasks: &[Sporadic],
    blocking: &[Step],
    below: u64,
    effort: Effort<'_>,
) -> Result<(), Failure> {
    let test = Demand::new(tasks)?;
    if blocking.windows(2).any(|pair| pair[0].from >= pair[1].from) {
        return Err(Failure::Unsupported { task: 0, what: "the steps of its blocking are not in order" });
    }
    let mut terms = Terms::of(effort);
    let end = match test.end(blocking, &mut terms)? {
        Some(end) => end,
        None => return Ok(()),
    };
    let mut high = end.min(below);
    let mut result = Ok(());
    for step in blocking.iter().rev() {
        if step.from < high {
            result = test.check(step.from, high, step.blocking, &mut terms);
            high = step.from;
        }
        if result.is_err() {
            break;
        }
    }
    let result = result.and_then(|()| test.check(0, high, 0, &mut terms));
    #[cfg(debug_assertions)]
    if let Ok(Some(far)) = test.far_end(blocking, &mut Terms::new())
        && far.min(below) < 10_000
        && !matches!(result, Err(Failure::Interrupted))
    {
        let slow = test.slow(far.min(below), blocking);
        debug_assert_eq!(slow.is_ok(), result.is_ok(), "{slow:?}, {result:?} of {tasks:?} {blocking:?}");
    }
    result
}

/// Returns whether more is due than fits in one of these intervals: an interval that refuted one task set may refute
/// the next. Also returns `true` if no test is possible.
pub(crate) fn is_refuted_at(tasks: &[Sporadic], blocking: &[Step], mut intervals: impl Iterator<Item = u64>) -> bool {
    Demand::new(tasks).map_or(true, |test| intervals.any(|interval| test.room(blocking, interval).is_none()))
}

/// Returns the first of the [`early`] intervals in which more is due than fits, or `None`.
pub(crate) fn refuted_early(tasks: &[Sporadic], blocking: &[Step]) -> Option<u64> {
    let test = Demand::new(tasks).ok();
    early(tasks).find(|&interval| test.as_ref().is_none_or(|test| test.room(blocking, interval).is_none()))
}

/// Returns the intervals that end at the first few deadlines of each task.
pub(crate) fn early(tasks: &[Sporadic]) -> impl Iterator<Item = u64> {
    let first = |task: &Sporadic| {
        let (deadline, period) = (task.deadline, task.period);
        (0..EARLY_JOBS).filter_map(move |job| period.checked_mul(job)?.checked_add(deadline))
    };
    tasks.iter().flat_map(first)
}

/// The number of deadlines of each task that count as the first few.
const EARLY_JOBS: u64 = 4;

pub(crate) fn blocking_at(blocking: &[Step], interval: u64) -> u64 {
    blocking.iter().rev().find(|step| step.from <= interval).map_or(0, |step| step.blocking)
}

/// Returns the blocking under EDF by non-preemptive sections: in an interval, the longest section of a task with a
/// deadline beyond it, minus one unit.
///
/// Each pair contains a task and the length of its longest section, in one unit.
#[must_use]
pub fn blocking_of_sections(tasks: &[(Sporadic, u64)]) -> Vec<Step> {
    steps(tasks.iter().map(|(task, _)| task.deadline), |t| {
        tasks.iter().filter(|(task, _)| task.deadline > t).map(|&(_, section)| section.saturating_sub(1)).max()
    })
}

/// Returns the tasks of a processor with the spinning of their requests, and their blocking, under partitioned EDF with
/// SRP and MSRP.
///
/// Resources of one cluster are under SRP. Requests for resources of several clusters spin without preemption, in FIFO
/// order:
///
/// ```text
///   C'_i = C_i + sum over q of N(i,q) X(q)
///   X(q) = sum over other processors of the longest section on q there; 0 for a local q
///   B(t) = max over tasks j of the processor with D_j > t of L(j,q) + X(q) for global q,
///          and of L(j,q) for local q with a user of D <= t
/// ```
/// B(t) is 0 if no task of the processor has D <= t. [`schedulable`] tests the result. Times are in the unit of the
/// input. The sources are Gai, Lipari, Di Natale (RTSS 2001) and Baruah (RTSS 2006).
///
/// # Errors
/// Returns [`Failure::Overflow`] if a number does not fit.
pub fn msrp(sharing: &Sharing, cluster: u16) -> Result<(Vec<Sporadic>, Vec<Step>), Failure> {
    let held = held(sharing, cluster)?;
    let mut inflated = Vec::new();
    let mut its = held.iter().peekable();
    for (index, task) in sharing.tasks.iter().enumerate().filter(|(_, task)| task.cluster == cluster) {
        let mut cost = task.cost;
        while let Some(one) = its.next_if(|one| one.task == index) {
            let spins = one.spin.checked_mul(u64::from(one.count));
            cost = spins.and_then(|spins| cost.checked_add(spins)).ok_or(Failure::Overflow)?;
        }
        inflated.push(Sporadic { cost, period: task.period, deadline: task.deadline });
    }
    let blocking = steps(inflated.iter().map(|task| task.deadline), |t| blocker(&held, t).map(|one| one.span));
    Ok((inflated, blocking))
}

/// The sections of one task on one resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Held {
    /// The index of the task in the sharing.
    pub(crate) task: usize,
    pub(crate) resource: u16,
    /// The number of these sections in a job.
    pub(crate) count: u32,
    /// The deadline of the task.
    pub(crate) deadline: u64,
    /// The shortest deadline of the tasks that the sections can block; 0 if they can block all.
    pub(crate) ceiling: u64,
    /// The length of the longest section, L.
    pub(crate) length: u64,
    /// The longest wait before a section, X.
    pub(crate) spin: u64,
    /// L + X.
    pub(crate) span: u64,
}

/// Returns the sections of a processor's tasks with their spinning, in the order of the tasks.
///
/// # Errors
/// Returns [`Failure::Overflow`] if a number does not fit.
pub(crate) fn held(sharing: &Sharing, cluster: u16) -> Result<Vec<Held>, Failure> {
    // The longest section on a resource on each other processor, and the one before on the same resource.
    let mut remote: Vec<(u16, u64, Option<usize>)> = Vec::new();
    // By resource: the last of these.
    let mut last: Vec<Option<usize>> = Vec::new();
    // By resource: the shortest deadline of its users on this processor, and the longest spinning before a section.
    let mut ceilings = Vec::new();
    for task in &sharing.tasks {
        for request in &task.requests {
            let place = usize::from(request.resource);
            if place >= ceilings.len() {
                ceilings.resize(place + 1, u64::MAX);
                last.resize(place + 1, None);
            }
            if task.cluster == cluster {
                ceilings[place] = task.deadline.min(ceilings[place]);
            } else {
                let mut its = last[place];
                // BOUND: the number of processors.
                while let Some(one) = its.filter(|&one| remote[one].0 != task.cluster) {
                    its = remote[one].2;
                }
                if let Some(one) = its {
                    remote[one].1 = remote[one].1.max(request.length);
                } else {
                    remote.push((task.cluster, request.length, last[place].replace(remote.len())));
                }
            }
        }
    }
    // `None` for a local resource. The inner `None` is a sum that does not fit.
    let spin = |&last: &Option<usize>| {
        let first = last.map(|last| remote[last]);
        first?;
        let all = std::iter::successors(first, |&(_, _, before)| before.map(|before| remote[before]));
        Some(all.map(|(_, length, _)| length).try_fold(0_u64, u64::checked_add))
    };
    let spins: Vec<Option<Option<u64>>> = last.iter().map(spin).collect();
    let mut held = Vec::new();
    for (index, task) in sharing.tasks.iter().enumerate().filter(|(_, task)| task.cluster == cluster) {
        for request in &task.requests {
            let place = usize::from(request.resource);
            let (ceiling, spin) = match spins[place] {
                Some(spin) => (0, spin.ok_or(Failure::Overflow)?),
                None => (ceilings[place], 0),
            };
            let span = request.length.checked_add(spin).ok_or(Failure::Overflow)?;
            let sharing::Demand { resource, count, length } = *request;
            held.push(Held { task: index, resource, count, deadline: task.deadline, ceiling, length, spin, span });
        }
    }
    Ok(held)
}

/// Returns the section that can block longest in an interval of that length, for B(t).
pub(crate) fn blocker(held: &[Held], interval: u64) -> Option<&Held> {
    let blocks = |one: &&Held| one.count > 0 && one.deadline > interval && one.ceiling <= interval;
    held.iter().filter(blocks).max_by_key(|one| one.span)
}

/// Returns the steps of the blocking at the deadlines.
pub(crate) fn steps(deadlines: impl Iterator<Item = u64>, blocking: impl Fn(u64) -> Option<u64>) -> Vec<Step> {
    let mut at: Vec<u64> = deadlines.collect();
    at.sort_unstable();
    at.dedup();
    let mut steps: Vec<Step> =
        at.into_iter().map(|from| Step { from, blocking: blocking(from).unwrap_or(0) }).collect();
    steps.dedup_by_key(|step| step.blocking);
    steps
}

/// The demand of one task.
#[derive(Clone, Copy)]
struct Due {
    period: Divisor,
    cost: u64,
    deadline: u64,
}

/// The work that is due in intervals on one processor.
pub(crate) struct Demand {
    tasks: Vec<Due>,
    /// A lower and an upper bound on the utilization, in units of 2^-64.
    utilization: (u128, u128),
}

/// From this demand on, sums of 64 bits could overflow.
const DEMAND_MAX: u128 = 1 << 63;

impl Demand {
    /// Creates the demand of tasks. Returns [`Failure::Overload`] if their utilization exceeds 1.
    pub(crate) fn new(tasks: &[Sporadic]) -> Result<Self, Failure> {
        let mut dues = Vec::with_capacity(tasks.len());
        let (mut below, mut above) = (0_u128, 0_u128);
        for (index, task) in tasks.iter().enumerate() {
            let none = Failure::Unsupported { task: index, what: "has no period" };
            let period = Divisor::new(task.period).ok_or(none)?;
            if task.cost > task.period {
                return Err(Failure::Overload);
            }
            let (cost, inverse) = (u128::from(task.cost), u128::from(period.inverse()));
            below += cost * inverse;
            above += cost * (inverse + 1);
            dues.push(Due { period, cost: task.cost, deadline: task.deadline });
        }
        let overload = below > 1 << 64
            || (above > 1 << 64 && compare_sum(tasks.iter().map(|task| (task.cost, task.period)), 1).is_gt());
        if overload {
            return Err(Failure::Overload);
        }
        Ok(Self { tasks: dues, utilization: (below, above) })
    }

    /// Returns by how much the length of the interval exceeds the work that is due in it and the blocking. Returns
    /// `None` if that is negative, or if a number does not fit.
    pub(crate) fn room(&self, blocking: &[Step], interval: u64) -> Option<u64> {
        interval.checked_sub(self.due(blocking, interval)?)
    }

    /// Returns the work that is due in an interval of that length and the blocking, or `None` if it does not fit into a
    /// number.
    pub(crate) fn due(&self, blocking: &[Step], interval: u64) -> Option<u64> {
        self.tasks.iter().enumerate().try_fold(blocking_at(blocking, interval), |sum, (index, task)| {
            sum.checked_add(self.jobs(index, interval).checked_mul(task.cost)?)
        })
    }

    /// Returns the number of jobs of the task that are due in an interval of that length.
    pub(crate) fn jobs(&self, task: usize, interval: u64) -> u64 {
        let task = &self.tasks[task];
        if interval >= task.deadline { task.period.floor(interval - task.deadline) + 1 } else { 0 }
    }

    fn at(&self, t: u64) -> u64 {
        self.tasks.iter().fold(0, |sum, task| {
            let count = if t >= task.deadline { task.period.floor(t - task.deadline) + 1 } else { 0 };
            sum + count * task.cost
        })
    }

    /// Returns the largest deadline below `t`, with the index of its task.
    fn deadline_below(&self, t: u64) -> Option<(u64, usize)> {
        let mut largest = None;
        for (index, task) in self.tasks.iter().enumerate() {
            if task.deadline < t {
                let at = task.period.floor(t - 1 - task.deadline) * task.period.get() + task.deadline;
                if largest.is_none_or(|(other, _)| at > other) {
                    largest = Some((at, index));
                }
            }
        }
        largest
    }

    /// Returns the length from which on intervals need no test, or `None` if no interval needs one.
    ///
    /// It is at most a hyperperiod H beyond the last step of blocking and all D - T: from there on `h(t + H) = h(t) + U
    /// H`, which is at most H more.
    fn end(&self, blocking: &[Step], terms: &mut Terms<'_>) -> Result<Option<u64>, Failure> {
        let last = blocking.last().copied().unwrap_or_default();
        let linear = self.linear(last);
        let longest = self.tasks.iter().map(|task| task.period.get()).max().unwrap_or(0);
        if linear.is_some_and(|end| end >> 6 <= u128::from(longest)) {
            return self.far_end(blocking, terms);
        }
        let repeats = self.tasks.iter().map(|task| task.deadline.saturating_sub(task.period.get())).max().unwrap_or(0);
        let repeats = self.hyperperiod(linear.unwrap_or(DEMAND_MAX)).map(|h| h + u128::from(repeats.max(last.from)));
        match (linear, repeats) {
            (None, Some(end)) if self.jobs_until(end) * self.tasks.len() as u128 >= u128::from(TERMS_MAX) => {
                self.far_end(blocking, terms)
            }
            (None, Some(end)) => self.fitting(end, blocking).map(Some),
            (Some(linear), Some(end)) if end < linear => self.fitting(end, blocking).map(Some),
            _ => self.far_end(blocking, terms),
        }
    }

    /// Returns the least common multiple of the periods, if it is below `limit`.
    fn hyperperiod(&self, limit: u128) -> Option<u128> {
        self.tasks.iter().try_fold(1_u128, |common, task| {
            let period = u128::from(task.period.get());
            let (mut a, mut b) = (common, period);
            // BOUND: that of Euclid's algorithm.
            while b > 0 {
                (a, b) = (b, a % b);
            }
            (common / a).checked_mul(period).filter(|&common| common < limit)
        })
    }

    /// Returns an upper bound on the number of deadlines before `end`.
    fn jobs_until(&self, end: u128) -> u128 {
        self.tasks.iter().map(|task| end / u128::from(task.period.get()) + 1).sum()
    }

    /// Like [`Demand::end`], from the utilization and the busy interval alone.
    fn far_end(&self, blocking: &[Step], terms: &mut Terms<'_>) -> Result<Option<u64>, Failure> {
        let last = blocking.last().copied().unwrap_or_default();
        let end = match self.linear(last) {
            Some(end) => Some(end),
            // The utilization is 1 or almost 1.
            None => {
                let busy = self.busy(last.blocking, terms)?.map(u128::from);
                // If h(t) <= U t for all t, intervals from the last step on need no test, but those before it do.
                busy.or_else(|| blocking.iter().any(|step| step.blocking > 0).then_some(0))
            }
        };
        end.map(|end| self.fitting(end.max(u128::from(last.from)), blocking)).transpose()
    }

    /// Returns `end`, if the demand up to there fits.
    fn fitting(&self, end: u128, blocking: &[Step]) -> Result<u64, Failure> {
        let most = blocking.iter().map(|step| step.blocking).max().unwrap_or(0);
        let costs: u128 = self.tasks.iter().map(|task| u128::from(task.cost)).sum();
        if end + costs + u128::from(most) >= DEMAND_MAX {
            return Err(Failure::Overflow);
        }
        Ok(end as u64)
    }

    /// Returns `max(D - T, (B + sum of (T - D) U) / (1 - U))`, rounded up, or `None` if U is so close to 1 that 32
    /// fractional bits do not show the difference.
    fn linear(&self, last: Step) -> Option<u128> {
        let free =
            u64::try_from((1_u128 << 64).checked_sub(self.utilization.1)? >> 32).ok().filter(|&free| free > 0)?;
        // With 32 fractional bits, each term rounded up.
        let (mut sum, mut end) = (i128::from(last.blocking) << 32, 0);
        for task in &self.tasks {
            let share = u128::from(task.cost) * u128::from(task.period.inverse());
            let (below, above) = ((share >> 32) as u64, ((share + u128::from(task.cost)) >> 32) as u64 + 1);
            let period = task.period.get();
            if period >= task.deadline {
                sum += (u128::from(period - task.deadline) * u128::from(above)) as i128;
            } else {
                sum -= (u128::from(task.deadline - period) * u128::from(below)) as i128;
                end = end.max(task.deadline - period);
            }
        }
        let sum = u128::try_from(sum).unwrap_or(0);
        let quotient = match u64::try_from(sum) {
            Ok(sum) => u128::from(sum / free),
            Err(_) => sum / u128::from(free),
        };
        Some(u128::from(end).max(quotient + 1))
    }

    /// Returns the longest busy interval, with the blocking of long intervals. Returns `None` if there is no blocking
    /// and no deadline is before its period.
    fn busy(&self, blocking: u64, terms: &mut Terms<'_>) -> Result<Option<u64>, Failure> {
        if blocking == 0 && self.tasks.iter().all(|task| task.deadline >= task.period.get()) {
            return Ok(None);
        }
        let all: Vec<Arrivals> =
            self.tasks.iter().map(|task| Arrivals { period: task.period, cost: task.cost, jitter: 0 }).collect();
        if blocking == 0 {
            return busy_period(&all, u64::MAX, terms).map(Some);
        }
        let demand = |t| super::work_of(&all, t)?.checked_add(blocking).ok_or(Failure::Overflow);
        least(0, (1, u64::MAX), (terms, all.len()), demand).map(Some)
    }

    /// Tests the intervals from `low` up to but excluding `high`, which have the same blocking.
    ///
    /// BOUND: each step continues with a shorter interval; also the limit on terms.
    fn check(&self, low: u64, high: u64, blocking: u64, terms: &mut Terms<'_>) -> Result<(), Failure> {
        let Some((mut t, mut task)) = self.deadline_below(high) else { return Ok(()) };
        while t >= low {
            terms.spend(task, self.tasks.len())?;
            let demand = self.at(t) + blocking;
            match demand.cmp(&t) {
                Ordering::Greater => return Err(Failure::Demand { interval: t, demand }),
                Ordering::Less => t = demand,
                Ordering::Equal => {
                    let Some(below) = self.deadline_below(t) else { return Ok(()) };
                    (t, task) = below;
                }
            }
            if demand == blocking {
                // No work is due.
                return Ok(());
            }
        }
        Ok(())
    }

    /// Tests every deadline, as in the definition.
    #[cfg(debug_assertions)]
    fn slow(&self, end: u64, blocking: &[Step]) -> Result<(), Failure> {
        for t in 1..end {
            let demand = self.at(t) + blocking_at(blocking, t);
            if demand > t && self.deadline_below(t + 1).is_some_and(|(at, _)| at == t) {
                return Err(Failure::Demand { interval: t, demand });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::sharing::{Demand, Sharer};

    /// A request spins for the longest section of each other processor, in whichever order the tasks are.
    #[test]
    fn a_request_spins_for_the_longest_section_of_each_other_processor() {
        let task = |cluster, length| Sharer {
            cost: 10,
            period: 100,
            deadline: 100,
            cluster,
            requests: vec![Demand { resource: 1, count: 2, length }],
            ..Sharer::default()
        };
        let mut tasks = vec![task(0, 1), task(1, 7), task(2, 4), task(1, 3), task(2, 5)];
        for _ in 0..tasks.len() {
            let sharing = Sharing { tasks: tasks.clone() };
            let spins: Vec<u64> = held(&sharing, 0).expect("short times").iter().map(|one| one.spin).collect();
            assert_eq!(spins, [7 + 5], "{tasks:?}");
            tasks.rotate_left(1);
        }
    }
}
