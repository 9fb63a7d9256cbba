//! Fixed priorities on one processor.
//!
//! The response time of the q-th job of task i in the longest busy interval of its level, q = 0, 1, ...:
//! ```text
//!   A_q = max(0, q T_i - J_i)                            its release; that of job 0 is at 0
//!   F_q = least t:  B_i + (q+1) (C_i + S_i) - e_i + sum over h of ceil((t + J'_h) / T_h) C_h  <=  t
//!   R_i = J_i + max over q of F_q + e_i - A_q            until job q is done by A_(q+1)
//! ```
//! h ranges over the other tasks that are at least as urgent. e_i is the time that a job executes after its last
//! preemption point, minus one unit. B_i is the given blocking, or the longest non-preemptive execution of a less
//! urgent job that has begun, whichever is longer. If i suspends itself, B_i counts for each job. J'_h is J_h, or R_h -
//! C_h for a task that suspends itself.
//!
//! The sources are Lehoczky (RTSS 1990) for deadlines beyond periods; Audsley, Burns, Richardson, Tindell, Wellings
//! (Software Engineering Journal 8(5), 1993) for jitter and blocking; Bozhko, Brandenburg (ECRTS 2020) for limited
//! preemption; and Chen et al. (Real-Time Systems 55(1), 2019) for the jitter R - C of tasks that suspend.
//!
//! The result is exact for synchronous arrivals of fully preemptive tasks without blocking and suspension, and an upper
//! bound otherwise.
//!
//! # Examples
//! ```
//! use lockwright_analysis::uniprocessor::{Task, fp};
//! let task = |cost, period, priority| Task { cost, period, deadline: period, priority, ..Task::default() };
//! assert_eq!(fp::response_times(&[task(1, 4, 2), task(3, 10, 1)])?, [1, 4]);
//! # Ok::<(), lockwright_analysis::Failure>(())
//! ```

use super::{Arrivals, Preemption, Task, Terms, least, work_of};
use crate::rows::exact::compare_sum;
use crate::rows::failure::Failure;

/// Returns the response times from arrival under fixed priorities on one processor, in the order of the tasks, if every
/// job meets its deadline.
///
/// `tasks` must be in order of decreasing priority. Tasks of equal priority delay each other. Times are in the unit of
/// the input. The sources are in the [module](self).
///
/// # Errors
/// Returns [`Failure::Late`] with the first task that may be late. Returns [`Failure::Unsupported`] for a task without
/// a period, for tasks out of order, and for a task that suspends itself and is non-preemptive, shares its priority
/// with another, or shares the processor with less urgent tasks that limit preemption. Returns [`Failure::Diverged`] or
/// [`Failure::Overflow`] if there is no result.
pub fn response_times(tasks: &[Task]) -> Result<Vec<u64>, Failure> {
    let mut level = Level::new(tasks)?;
    if let Some(quick) = Quick::new(tasks, &level.arrivals) {
        return quick.response_times(&mut level);
    }
    let mut responses = Vec::with_capacity(tasks.len());
    for i in 0..tasks.len() {
        responses.push(level.response(i, Until::Deadline)?);
    }
    Ok(responses)
}

/// Returns the response times from arrival under fixed priorities on one processor, in the order of the tasks, whether
/// or not they are within the deadlines.
///
/// `tasks` must be in the order that [`response_times`] requires. An element is an error if the task has no bound: the
/// errors are those of [`response_times`], except that [`Failure::Diverged`] replaces [`Failure::Late`] if the response
/// time exceeds `horizon`, [`Failure::Overload`] stands for a level that is not served in the long run, and
/// [`Failure::Task`] names a more urgent task that suspends itself and has no bound.
#[must_use]
pub fn response_bounds(tasks: &[Task], horizon: u64) -> Vec<Result<u64, Failure>> {
    let mut level = match Level::new(tasks) {
        Ok(level) => level,
        Err(why) => return vec![Err(why); tasks.len()],
    };
    (0..tasks.len()).map(|i| level.response(i, Until::Horizon(horizon))).collect()
}

/// The limit of the search for a response time.
#[derive(Clone, Copy)]
enum Until {
    Deadline,
    Horizon(u64),
}

/// The tasks, with the results for those already analysed.
struct Level<'a> {
    tasks: &'a [Task],
    /// The arrivals, with J' for each task whose response time is known.
    arrivals: Vec<Arrivals>,
    /// The first task that suspends itself and has no known response time.
    unknown: Option<usize>,
    terms: Terms<'static>,
}

impl<'a> Level<'a> {
    fn new(tasks: &'a [Task]) -> Result<Self, Failure> {
        let unsorted = tasks.windows(2).position(|pair| pair[0].priority < pair[1].priority);
        if let Some(before) = unsorted {
            return Err(Failure::Unsupported { task: before + 1, what: "is more urgent than the one before it" });
        }
        let arrivals = tasks.iter().enumerate().map(|(index, task)| Arrivals::of(task, index));
        Ok(Self { tasks, arrivals: arrivals.collect::<Result<_, _>>()?, unknown: None, terms: Terms::new() })
    }

    /// Returns the response time of task `i`. Those of all tasks before it must have been computed.
    fn response(&mut self, i: usize, until: Until) -> Result<u64, Failure> {
        if let Some(task) = self.unknown {
            return Err(Failure::Task { task });
        }
        let response = self.since_release(i, until);
        let response = response.and_then(|r| r.checked_add(self.tasks[i].jitter).ok_or(Failure::Overflow));
        self.settle(i, response)
    }

    /// Records the response time of task `i`.
    fn settle(&mut self, i: usize, response: Result<u64, Failure>) -> Result<u64, Failure> {
        let task = &self.tasks[i];
        if task.suspension > 0 {
            match response {
                Ok(response) => self.arrivals[i].jitter = response.saturating_sub(task.cost),
                Err(_) => self.unknown = Some(i),
            }
        }
        response
    }

    fn since_release(&mut self, i: usize, until: Until) -> Result<u64, Failure> {
        let (task, tasks) = (self.tasks[i], self.tasks);
        let peers_end = i + tasks[i..].iter().take_while(|peer| peer.priority == task.priority).count();
        let peers_start = tasks[..i].iter().rev().take_while(|peer| peer.priority == task.priority).count();
        let suspends = (i - peers_start..peers_end).find(|&peer| tasks[peer].suspension > 0);
        if let Some(peer) = suspends.filter(|_| peers_end - i + peers_start > 1) {
            return Err(Failure::Unsupported { task: peer, what: "suspends itself and shares its priority" });
        }
        let lower = tasks[peers_end..].iter().map(|task| task.preemption.blocks(task.cost)).max().unwrap_or(0);
        if lower > 0 && task.suspension > 0 {
            let what = "suspends itself, and less urgent tasks limit preemption";
            return Err(Failure::Unsupported { task: i, what });
        }
        if task.preemption == Preemption::Never && task.suspension > 0 {
            return Err(Failure::Unsupported { task: i, what: "suspends itself and cannot be preempted" });
        }
        let others = || self.arrivals[..i].iter().chain(&self.arrivals[i + 1..peers_end]);
        if let Until::Horizon(_) = until {
            // Its own suspension prolongs the busy interval as execution does.
            let blocked = if task.suspension > 0 { task.blocking } else { 0 };
            let own = task.cost.checked_add(task.suspension).and_then(|own| own.checked_add(blocked));
            let own = (own.ok_or(Failure::Overflow)?, task.period);
            let all = others().map(|one| (one.cost, one.period.get())).chain([own]);
            if compare_sum(all, 1).is_gt() {
                return Err(Failure::Overload);
            }
        }
        let (blocking, rest) = (task.blocking.max(lower), task.preemption.rest(task.cost));
        let (mut worst, mut start) = (0, 1);
        // BOUND: the limit on terms.
        for q in 0_u64.. {
            let jobs = q + 1;
            let blockings = if task.suspension > 0 { jobs } else { 1 };
            let own = task.cost.checked_add(task.suspension).and_then(|each| each.checked_mul(jobs));
            let own = own.zip(blocking.checked_mul(blockings)).and_then(|(own, blocked)| own.checked_add(blocked));
            let own = own.ok_or(Failure::Overflow)?;
            let released = self.arrivals_release(i, q)?;
            let horizon = match until {
                Until::Deadline => released.checked_add(task.deadline).ok_or(Failure::Overflow)?,
                Until::Horizon(horizon) => horizon,
            };
            let late = |finished: u64| match until {
                Until::Deadline if finished > horizon => {
                    let response = (finished - released).saturating_add(task.jitter);
                    Err(Failure::Late { task: i, response })
                }
                _ => Ok(finished),
            };
            let begun = least(i, (start.max(own - rest), horizon), (&mut self.terms, peers_end), |t| {
                late(t)?;
                work_of(others(), t)?.checked_add(own - rest).ok_or(Failure::Overflow)
            })?;
            let done = late(begun.checked_add(rest).ok_or(Failure::Overflow)?)?;
            worst = worst.max(done.saturating_sub(released));
            // The busy interval ends when all released work is done.
            let next = self.arrivals_release(i, jobs)?;
            let idle = if rest == 0 {
                begun
            } else {
                least(i, (done.max(1), next), (&mut self.terms, peers_end), |t| {
                    if t > next { Ok(t) } else { work_of(others(), t)?.checked_add(own).ok_or(Failure::Overflow) }
                })?
            };
            if idle <= next {
                break;
            }
            start = begun;
        }
        Ok(worst)
    }

    fn arrivals_release(&self, i: usize, n: u64) -> Result<u64, Failure> {
        let own = Arrivals { jitter: self.tasks[i].jitter, ..self.arrivals[i] };
        own.release(n).ok_or(Failure::Overflow)
    }
}

/// Fully preemptive tasks with distinct priorities, deadlines within periods, and times for which 64 bits suffice.
struct Quick<'a> {
    tasks: &'a [Task],
    rivals: Vec<Rival>,
}

/// A more urgent task.
struct Rival {
    /// `x * inverse / 2^64`, rounded down, is x / T, rounded down, for all x that occur.
    inverse: u64,
    cost: u64,
    /// The jitter J'.
    jitter: u64,
}

impl<'a> Quick<'a> {
    /// Returns `None` if the tasks do not satisfy the conditions.
    fn new(tasks: &'a [Task], arrivals: &[Arrivals]) -> Option<Self> {
        // A saturated sum fails the multiplication below.
        let (mut span, mut longest, mut above) = (0_u64, 0, None);
        for task in tasks {
            if task.deadline > task.period || task.preemption != Preemption::Full || above == Some(task.priority) {
                return None;
            }
            let late = if task.suspension > 0 { task.deadline } else { 0 };
            let jitter = task.jitter.saturating_add(late);
            let own = task.cost.saturating_add(task.suspension).saturating_add(task.blocking);
            span = span.max(jitter.saturating_add(own.max(task.deadline)));
            longest = longest.max(task.period);
            above = Some(task.priority);
        }
        // No t exceeds a deadline, and no t + J' exceeds twice the span. floor(2^64 / T) + 1 divides x exactly if x T <
        // 2^64.
        span = span.saturating_mul(2);
        span.checked_mul(longest)?;
        let (mut most, mut rivals) = (span, Vec::with_capacity(tasks.len()));
        for one in arrivals {
            // An upper bound on the sum, with one more job of each task for rounding.
            most = one.period.floor(span).saturating_add(2).checked_mul(one.cost)?.checked_add(most)?;
            // For a power of two the inverse is 2^64 / T - 1. For other values it is 2^64 / T, rounded down.
            let inverse = one.period.inverse().checked_add(1)?;
            rivals.push(Rival { inverse, cost: one.cost, jitter: one.jitter });
        }
        Some(Self { tasks, rivals })
    }

    fn response_times(mut self, level: &mut Level) -> Result<Vec<u64>, Failure> {
        let mut responses = Vec::with_capacity(self.tasks.len());
        // For the previous task: its response time from release, and its own share without the part that it adds to the
        // interference.
        let (mut before, mut before_own, mut costs) = (0, 0, 0);
        for (i, task) in self.tasks.iter().enumerate() {
            let own = task.cost + task.suspension + task.blocking;
            // Each of the others counts at least once: t >= 1, and a count is 1 + floor((t + J' - 1) / T).
            let once = own + costs;
            // Task i - 1 has t' = own' + I(t'). Now t >= own + C' + I(t), so t exceeds t' at least by the difference,
            // if it is positive.
            let mut t = if own >= before_own { once.max(before + own - before_own) } else { once }.max(1);
            // BOUND: the deadline, and the limit on terms.
            let work = loop {
                if t > task.deadline {
                    return Err(Failure::Late { task: i, response: t + task.jitter });
                }
                level.terms.spend(i, i)?;
                let next = self.rivals[..i].iter().fold(once, |sum, rival| {
                    let more = (u128::from(t + rival.jitter - 1) * u128::from(rival.inverse)) >> 64;
                    sum + more as u64 * rival.cost
                });
                if next <= t {
                    break next;
                }
                t = next;
            };
            let mut response = t + task.jitter;
            if response > task.period {
                // The next job may be released before this one is done.
                response = level.response(i, Until::Deadline)?;
            } else {
                debug_assert_eq!(Ok(response), level.response(i, Until::Deadline), "task {i} of {:?}", self.tasks);
                level.settle(i, Ok(response))?;
            }
            responses.push(response);
            self.rivals[i].jitter = level.arrivals[i].jitter;
            // The work is less than t if there is no work, as t is at least 1.
            (before, before_own, costs) = (work, own - task.cost, costs + task.cost);
        }
        Ok(responses)
    }
}
