//! Earliest deadline first on one processor.
//!
//! **Demand.** All deadlines are met if U <= 1 and, for the deadline t of every job of synchronous arrivals,
//! ```text
//!   h(t) + B(t) <= t,    h(t) = sum over k with D_k <= t of (floor((t - D_k) / T_k) + 1) C_k
//! ```
//! Baruah, Mok, Rosier (RTSS 1990); quick processor-demand analysis: Zhang, Burns (IEEE TC 58(9), 2009); blocking under SRP: Baruah (RTSS 2006).
//! Without blocking the test is exact. B is constant between its steps, so that h + B grows there and the quick analysis may skip;
//! across a step it may not, because B can be longer below it.
//!
//! **Response times.** From release, over all offsets A of a job in a busy interval at which some count grows:
//! ```text
//!   F(A) = least t:  B(A) + ceil((A + 1 + J_i) / T_i) C_i - e_i
//!                    + sum over k /= i of min(ceil((t + J_k) / T_k), ceil((A + 1 + D_i - D_k + J_k) / T_k)) C_k  <=  t
//!   R_i  = max over A of F(A) + e_i - A
//!   B(A) = what a job with D_k > A + D_i that has begun executes without preemption
//! ```
//! Spuri (INRIA RR-2772, 1996), George, Rivierre, Spuri (INRIA RR-2966, 1996); exact for full preemption. Guan, Yi (DATE 2014) have the same
//! figures by another way, and the approximation `R_i <= D_i - min over t >= D_i of (t - h(t))`. Limited preemption:
//! Bozhko, Brandenburg (ECRTS 2020).

use super::{Arrivals, Effort, Preemption, Task, Terms, busy_period, least};
use crate::divisor::Divisor;
use crate::exact::compare_sum;
use crate::failure::Failure;
use crate::fixed_point::TERMS_MAX;
use crate::sharing::{self, Sharing};
use crate::sporadic::Sporadic;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// From which length of interval on blocking counts, and how much, until the next step's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Step {
    /// In intervals so long or longer.
    pub from: u64,
    /// B.
    pub blocking: u64,
}

/// Whether all deadlines are met, under EDF with blocking; `blocking`: by growing `from`, none below the first.
///
/// # Errors
/// The interval in which more is due than fits.
pub fn schedulable(tasks: &[Sporadic], blocking: &[Step]) -> Result<(), Failure> {
    schedulable_within(tasks, blocking, Effort::FULL)
}

/// The same with limited effort.
///
/// # Errors
/// As [`schedulable`]; [`Failure::Interrupted`].
pub(crate) fn schedulable_within(tasks: &[Sporadic], blocking: &[Step], effort: Effort<'_>) -> Result<(), Failure> {
    let test = Demand::new(tasks)?;
    if blocking.windows(2).any(|pair| pair[0].from >= pair[1].from) {
        return Err(Failure::Unsupported { task: 0, what: "the steps of its blocking are not in order" });
    }
    let mut terms = Terms::of(effort);
    let end = match test.end(blocking, &mut terms)? {
        Some(end) => end,
        None => return Ok(()),
    };
    let mut high = end;
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
        && far < 10_000
        && !matches!(result, Err(Failure::Interrupted))
    {
        let slow = test.slow(far, blocking);
        debug_assert_eq!(slow.is_ok(), result.is_ok(), "{slow:?}, {result:?} of {tasks:?} {blocking:?}");
    }
    result
}

/// Whether more is due than fits in one of these intervals: what refuted one set of tasks may refute the next. Where nothing can be said, too.
pub(crate) fn is_refuted_at(tasks: &[Sporadic], blocking: &[Step], mut intervals: impl Iterator<Item = u64>) -> bool {
    Demand::new(tasks).map_or(true, |test| intervals.any(|interval| test.room(blocking, interval).is_none()))
}

/// The first of the [`early`] intervals in which more is due than fits, if there is one.
pub(crate) fn refuted_early(tasks: &[Sporadic], blocking: &[Step]) -> Option<u64> {
    let test = Demand::new(tasks).ok();
    early(tasks).find(|&interval| test.as_ref().is_none_or(|test| test.room(blocking, interval).is_none()))
}

/// Intervals to the first few deadlines of each task.
pub(crate) fn early(tasks: &[Sporadic]) -> impl Iterator<Item = u64> {
    let first = |task: &Sporadic| {
        let (deadline, period) = (task.deadline, task.period);
        (0..EARLY_JOBS).filter_map(move |job| period.checked_mul(job)?.checked_add(deadline))
    };
    tasks.iter().flat_map(first)
}

/// How many deadlines of each task count as the first few.
const EARLY_JOBS: u64 = 4;

fn blocking_at(blocking: &[Step], interval: u64) -> u64 {
    blocking.iter().rev().find(|step| step.from <= interval).map_or(0, |step| step.blocking)
}

/// What blocks under EDF where jobs are not preempted in sections so long: the longest of a task with a deadline beyond the interval.
#[must_use]
pub fn blocking_of_sections(tasks: &[(Sporadic, u64)]) -> Vec<Step> {
    steps(tasks.iter().map(|(task, _)| task.deadline), |t| {
        tasks.iter().filter(|(task, _)| task.deadline > t).map(|&(_, section)| section.saturating_sub(1)).max()
    })
}

/// Each task's cost with the spinning of its requests, and what blocks: EDF with SRP, resources of several clusters under MSRP, where requests
/// spin without preemption in FIFO order.
///
/// ```text
///   C'_i = C_i + sum over q of N_{i,q} w_q,      w_q = sum over other processors of the longest section of q there, 0 for a local q
///   B(t) = max over tasks j of the processor with D_j > t of L_{j,q} + w_q for global q, of L_{j,q} for local q with a user of D <= t
/// ```
/// if some task of the processor has D <= t. Gai, Lipari, Di Natale (RTSS 2001), Baruah (RTSS 2006).
///
/// # Errors
/// Overflow.
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
    /// Its place in the sharing.
    pub(crate) task: usize,
    pub(crate) resource: u16,
    /// How many a job has.
    pub(crate) count: u32,
    /// Of the task.
    pub(crate) deadline: u64,
    /// The shortest deadline of those it can block; 0 for all.
    pub(crate) ceiling: u64,
    /// L.
    pub(crate) length: u64,
    /// w.
    pub(crate) spin: u64,
    /// L + w.
    pub(crate) span: u64,
}

/// The sections of a processor's tasks, with their spinning, in the order of the tasks.
///
/// # Errors
/// Overflow.
pub(crate) fn held(sharing: &Sharing, cluster: u16) -> Result<Vec<Held>, Failure> {
    let local = || sharing.tasks.iter().filter(|task| task.cluster == cluster);
    // The longest section of each resource on each other processor.
    let mut longest: Vec<(u16, u16, u64)> = Vec::new();
    for task in sharing.tasks.iter().filter(|task| task.cluster != cluster) {
        for request in &task.requests {
            match longest.iter_mut().find(|(q, p, _)| (*q, *p) == (request.resource, task.cluster)) {
                Some((_, _, length)) => *length = request.length.max(*length),
                None => longest.push((request.resource, task.cluster, request.length)),
            }
        }
    }
    // `None` for a local resource.
    let spin = |resource: u16| {
        let mut remote = longest.iter().filter(|(q, ..)| *q == resource).map(|&(.., length)| length).peekable();
        remote.peek()?;
        Some(remote.try_fold(0_u64, u64::checked_add))
    };
    let mut held = Vec::new();
    for (index, task) in sharing.tasks.iter().enumerate().filter(|(_, task)| task.cluster == cluster) {
        for request in &task.requests {
            let (ceiling, spin) = match spin(request.resource) {
                Some(spin) => (0, spin.ok_or(Failure::Overflow)?),
                None => {
                    let users = local().filter(|user| user.requests.iter().any(|r| r.resource == request.resource));
                    (users.map(|user| user.deadline).min().unwrap_or(0), 0)
                }
            };
            let span = request.length.checked_add(spin).ok_or(Failure::Overflow)?;
            let sharing::Demand { resource, count, length } = *request;
            held.push(Held { task: index, resource, count, deadline: task.deadline, ceiling, length, spin, span });
        }
    }
    Ok(held)
}

/// The section that can block longest in an interval of that length: B(t).
pub(crate) fn blocker(held: &[Held], interval: u64) -> Option<&Held> {
    let blocks = |one: &&Held| one.count > 0 && one.deadline > interval && one.ceiling <= interval;
    held.iter().filter(blocks).max_by_key(|one| one.span)
}

/// Steps at the deadlines.
fn steps(deadlines: impl Iterator<Item = u64>, blocking: impl Fn(u64) -> Option<u64>) -> Vec<Step> {
    let mut at: Vec<u64> = deadlines.collect();
    at.sort_unstable();
    at.dedup();
    let mut steps: Vec<Step> =
        at.into_iter().map(|from| Step { from, blocking: blocking(from).unwrap_or(0) }).collect();
    steps.dedup_by_key(|step| step.blocking);
    steps
}

/// One task's demand.
#[derive(Clone, Copy)]
struct Due {
    period: Divisor,
    cost: u64,
    deadline: u64,
}

/// What is due in intervals on one processor.
pub(crate) struct Demand {
    tasks: Vec<Due>,
    /// Fractions of 2^64, below and above.
    utilization: (u128, u128),
}

/// Beyond this, 64 bits could overflow.
const DEMAND_MAX: u128 = 1 << 63;

impl Demand {
    /// Of tasks that use the processor at most fully.
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

    /// How much less is due in an interval of that length, with what blocks it; `None` where it is more, or does not fit.
    pub(crate) fn room(&self, blocking: &[Step], interval: u64) -> Option<u64> {
        let due = self.tasks.iter().enumerate().try_fold(blocking_at(blocking, interval), |sum, (index, task)| {
            sum.checked_add(self.jobs(index, interval).checked_mul(task.cost)?)
        });
        interval.checked_sub(due?)
    }

    /// How many jobs of the task are due in an interval of that length.
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

    /// The largest deadline below `t`, and whose.
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

    /// Intervals so long or longer need no test. `None` if none does.
    ///
    /// That is at the latest a hyperperiod H beyond the last step of blocking and all D - T: from there on `h(t + H) = h(t) + U H`, at most H more.
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

    /// The least common multiple of the periods, where it is below `limit`.
    fn hyperperiod(&self, limit: u128) -> Option<u128> {
        self.tasks.iter().try_fold(1_u128, |common, task| {
            let period = u128::from(task.period.get());
            let (mut a, mut b) = (common, period);
            // BOUND: Euclid's.
            while b > 0 {
                (a, b) = (b, a % b);
            }
            (common / a).checked_mul(period).filter(|&common| common < limit)
        })
    }

    /// At most so many deadlines lie before.
    fn jobs_until(&self, end: u128) -> u128 {
        self.tasks.iter().map(|task| end / u128::from(task.period.get()) + 1).sum()
    }

    /// As [`Demand::end`], from utilization and the busy interval alone.
    fn far_end(&self, blocking: &[Step], terms: &mut Terms<'_>) -> Result<Option<u64>, Failure> {
        let last = blocking.last().copied().unwrap_or_default();
        let end = match self.linear(last) {
            Some(end) => Some(end),
            // A processor in full use, nearly.
            None => self.busy(last.blocking, terms)?.map(u128::from),
        };
        end.map(|end| self.fitting(end.max(u128::from(last.from)), blocking)).transpose()
    }

    /// Demand up to there fits.
    fn fitting(&self, end: u128, blocking: &[Step]) -> Result<u64, Failure> {
        let most = blocking.iter().map(|step| step.blocking).max().unwrap_or(0);
        let costs: u128 = self.tasks.iter().map(|task| u128::from(task.cost)).sum();
        if end + costs + u128::from(most) >= DEMAND_MAX {
            return Err(Failure::Overflow);
        }
        Ok(end as u64)
    }

    /// `max(D - T, (B + sum of (T - D) U) / (1 - U))`, rounded up; `None` for U so close to 1 that 32 bits do not show the difference.
    fn linear(&self, last: Step) -> Option<u128> {
        let free =
            u64::try_from((1_u128 << 64).checked_sub(self.utilization.1)? >> 32).ok().filter(|&free| free > 0)?;
        // With 32 bits behind the point, each rounded up.
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

    /// The longest busy interval, with the blocking of long intervals. `None` if no deadline lies before a period.
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

    /// Tests the intervals from `low` to below `high`, where blocking is the same.
    ///
    /// BOUND: each step goes to a shorter interval; the terms.
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
                // Nothing is due.
                return Ok(());
            }
        }
        Ok(())
    }

    /// The definition.
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

/// Response times from release, in the tasks' order, whether or not they are within the deadlines.
///
/// # Errors
/// [`Failure::Overload`] above full use of the processor; fixed points beyond `horizon` are not looked for.
pub fn response_bounds(tasks: &[Task], horizon: u64) -> Result<Vec<u64>, Failure> {
    let mut terms = Terms::new();
    let all = arrivals(tasks)?;
    let end = busy_period(&all, horizon, &mut terms)?;
    let (mut offsets, mut caps) = (Points::default(), vec![0_u64; all.len()]);
    (0..tasks.len()).map(|i| response(tasks, &all, i, (end, horizon), (&mut offsets, &mut caps), &mut terms)).collect()
}

/// Whether each job ends within its deadline, with the response times.
///
/// # Errors
/// The first task that may be late; as [`response_bounds`].
pub fn response_times(tasks: &[Task]) -> Result<Vec<u64>, Failure> {
    within(tasks, response_bounds(tasks, u64::MAX)?)
}

/// Upper bounds on response times from release, by the least slack. Of tasks that can be preempted everywhere.
///
/// # Errors
/// As [`response_times`].
pub fn approximate_response_times(tasks: &[Task]) -> Result<Vec<u64>, Failure> {
    if let Some(task) = tasks.iter().position(|task| task.preemption != Preemption::Full) {
        return Err(Failure::Unsupported { task, what: "cannot be preempted everywhere" });
    }
    let mut terms = Terms::new();
    let all = arrivals(tasks)?;
    let longest = tasks.iter().map(|task| task.deadline).max().unwrap_or(0);
    let end = busy_period(&all, u64::MAX, &mut terms)?.checked_add(longest).ok_or(Failure::Overflow)?;
    // The last deadline of each task that is no later than the end; from there on they are looked at backwards.
    let deadline = |k: usize, n: u64| all[k].release(n)?.checked_add(tasks[k].deadline);
    let mut points: BinaryHeap<(u64, usize, u64)> = BinaryHeap::with_capacity(all.len());
    for (k, (task, one)) in tasks.iter().zip(&all).enumerate() {
        let Some(room) = end.checked_sub(task.deadline) else { continue };
        let last = one.period.floor(room.checked_add(one.jitter).ok_or(Failure::Overflow)?);
        points.push((deadline(k, last).ok_or(Failure::Overflow)?, k, last));
    }
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    order.sort_unstable_by_key(|&index| tasks[index].deadline);
    let mut slack = i128::MAX;
    let mut bounds = vec![0; tasks.len()];
    // From the longest interval down: the least slack of those that are no shorter than the deadline.
    let mut before = None;
    // BOUND: the terms.
    while let Some((at, k, n)) = points.pop() {
        terms.spend(k, all.len())?;
        if let Some(earlier) = n.checked_sub(1) {
            points.push((deadline(k, earlier).ok_or(Failure::Overflow)?, k, earlier));
        }
        if before.replace(at) == Some(at) {
            continue;
        }
        let due =
            |(task, one): (&Task, &Arrivals)| (at + 1).checked_sub(task.deadline).map_or(Some(0), |t| one.work(t));
        let demand = tasks.iter().zip(&all).try_fold(0_u64, |sum, pair| sum.checked_add(due(pair)?));
        slack = slack.min(i128::from(at) - i128::from(demand.ok_or(Failure::Overflow)?));
        while let Some(&index) = order.last().filter(|&&index| tasks[index].deadline >= at) {
            bounds[index] = u64::try_from(i128::from(tasks[index].deadline) - slack).map_err(|_| Failure::Overflow)?;
            order.pop();
        }
    }
    within(tasks, bounds)
}

fn within(tasks: &[Task], responses: Vec<u64>) -> Result<Vec<u64>, Failure> {
    match responses.iter().zip(tasks).position(|(&response, task)| response > task.deadline) {
        Some(task) => Err(Failure::Late { task, response: responses[task] }),
        None => Ok(responses),
    }
}

fn arrivals(tasks: &[Task]) -> Result<Vec<Arrivals>, Failure> {
    let one = |(index, task): (usize, &Task)| {
        if task.suspension > 0 || task.blocking > 0 {
            return Err(Failure::Unsupported { task: index, what: "suspends itself or is blocked, under EDF" });
        }
        Arrivals::of(task, index)
    };
    tasks.iter().enumerate().map(one).collect()
}

/// The offsets at which some count grows, in order: of each task only the next one is kept, however many there are.
#[derive(Default)]
struct Points {
    /// Offset, task, and its job, the earliest first.
    next: BinaryHeap<Reverse<(u64, usize, u64)>>,
}

impl Points {
    /// Those of the jobs of a task with that deadline, before `end`.
    fn start(&mut self, tasks: &[Task], all: &[Arrivals], deadline: u64, end: u64) -> Result<(), Failure> {
        self.next.clear();
        for (k, one) in all.iter().enumerate() {
            let earlier = deadline.saturating_sub(tasks[k].deadline);
            // The jobs released before `earlier` count at every offset.
            let n = if earlier == 0 { 0 } else { one.count(earlier).ok_or(Failure::Overflow)? };
            self.push(tasks, all, (k, n), deadline, end)?;
        }
        Ok(())
    }

    fn push(
        &mut self,
        tasks: &[Task],
        all: &[Arrivals],
        (k, n): (usize, u64),
        deadline: u64,
        end: u64,
    ) -> Result<(), Failure> {
        let at = all[k].release(n).and_then(|at| at.checked_add(tasks[k].deadline)).ok_or(Failure::Overflow)?;
        let offset = at.saturating_sub(deadline);
        if offset < end {
            self.next.push(Reverse((offset, k, n)));
        }
        Ok(())
    }

    /// The next one. BOUND: the terms.
    fn pop(
        &mut self,
        (tasks, all): (&[Task], &[Arrivals]),
        i: usize,
        end: u64,
        terms: &mut Terms<'_>,
    ) -> Result<Option<u64>, Failure> {
        let mut found = None;
        while let Some(&Reverse((offset, k, n))) = self.next.peek().filter(|next| found.is_none_or(|at| next.0.0 == at))
        {
            terms.spend(i, 1)?;
            self.next.pop();
            self.push(tasks, all, (k, n + 1), tasks[i].deadline, end)?;
            found = Some(offset);
        }
        Ok(found)
    }
}

fn response(
    tasks: &[Task],
    all: &[Arrivals],
    i: usize,
    (end, horizon): (u64, u64),
    (offsets, caps): (&mut Points, &mut [u64]),
    terms: &mut Terms<'_>,
) -> Result<u64, Failure> {
    let (task, deadline) = (&tasks[i], tasks[i].deadline);
    offsets.start(tasks, all, deadline, end)?;
    let rest = task.preemption.rest(task.cost);
    let (mut worst, mut begun, mut blocked) = (0, 1, u64::MAX);
    while let Some(offset) = offsets.pop((tasks, all), i, end, terms)? {
        let reference = offset.checked_add(1).and_then(|t| t.checked_add(deadline)).ok_or(Failure::Overflow)?;
        let mut blocking = 0;
        for (k, (other, one)) in tasks.iter().zip(all).enumerate() {
            caps[k] = one.count(reference.saturating_sub(other.deadline)).ok_or(Failure::Overflow)?;
            if other.deadline >= reference && other.cost > 0 {
                blocking = other.preemption.blocks(other.cost).max(blocking);
            }
        }
        let own = all[i].work(offset + 1).and_then(|own| own.checked_add(blocking)).ok_or(Failure::Overflow)? - rest;
        // Without a change of blocking, what is sought never falls as the offset grows.
        let start = if blocking == blocked { begun.max(own) } else { own.max(1) };
        caps[i] = 0;
        begun = least(i, (start, horizon), (terms, all.len()), |t| {
            let mut sum = own;
            for (one, &cap) in all.iter().zip(caps.iter()) {
                if cap > 0 {
                    let count = one.count(t).ok_or(Failure::Overflow)?.min(cap);
                    sum = count.checked_mul(one.cost).and_then(|w| sum.checked_add(w)).ok_or(Failure::Overflow)?;
                }
            }
            Ok(sum)
        })?;
        blocked = blocking;
        worst = worst.max(begun.saturating_add(rest).saturating_sub(offset));
        if blocking == 0 && end.saturating_add(rest).saturating_sub(offset) <= worst {
            // No later job can take longer: it is done when the busy interval is.
            break;
        }
    }
    Ok(worst)
}
