//! Fixed priorities on one processor.
//!
//! Response time of the q-th job of task i in the longest busy interval of its level, q = 0, 1, ..:
//! ```text
//!   A_q = max(0, q T_i - J_i)                            its release; that of job 0 is at 0
//!   F_q = least t:  B_i + (q+1) (C_i + S_i) - e_i + sum over h of ceil((t + J'_h) / T_h) C_h  <=  t
//!   R_i = J_i + max over q of F_q + e_i - A_q            until job q is done by A_(q+1)
//! ```
//! h: the other tasks that are at least as urgent. e: what a job executes without preemption at its end, but for one unit. B: the
//! given blocking, or what less urgent jobs that have begun execute without preemption, whichever is longer; where i suspends itself, B
//! counts for each job. J' is J, but R_h - C_h of a task that suspends itself.
//!
//! Lehoczky (RTSS 1990) for deadlines beyond periods; Audsley, Burns, Richardson, Tindell, Wellings (Software Engineering Journal
//! 8(5), 1993) for jitter and blocking; Bozhko, Brandenburg (ECRTS 2020) for limited preemption; Chen et al. (Real-Time
//! Systems 55(1), 2019) for why suspensions of others count as jitter R - C.
//!
//! Exact for synchronous arrivals of tasks without blocking, suspension and limits of preemption; an upper bound else.

use super::{Arrivals, Preemption, Task, Terms, least, work_of};
use crate::exact::compare_sum;
use crate::failure::Failure;

/// Response times from arrival, in the tasks' order, where every job meets its deadline.
///
/// `tasks`: none is more urgent than the one before it. Tasks of one priority delay each other.
///
/// # Errors
/// The first task that may be late. A task that suspends itself may share neither its priority with another nor the processor with
/// less urgent ones that limit preemption.
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

/// Response times from arrival, in the tasks' order, whether or not they are within the deadlines.
///
/// `tasks`: as in [`response_times`]. A response time is not looked for beyond `horizon`.
pub fn response_bounds(tasks: &[Task], horizon: u64) -> Vec<Result<u64, Failure>> {
    let mut level = match Level::new(tasks) {
        Ok(level) => level,
        Err(why) => return vec![Err(why); tasks.len()],
    };
    (0..tasks.len()).map(|i| level.response(i, Until::Horizon(horizon))).collect()
}

/// How far a response time is looked for.
#[derive(Clone, Copy)]
enum Until {
    Deadline,
    Horizon(u64),
}

/// The tasks, and what is known of those that were looked at.
struct Level<'a> {
    tasks: &'a [Task],
    /// With J' where a response time is known.
    arrivals: Vec<Arrivals>,
    /// The first task that suspends itself for a time that is not known.
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

    /// The response time of task `i`, those of all before it having been asked for.
    fn response(&mut self, i: usize, until: Until) -> Result<u64, Failure> {
        if let Some(task) = self.unknown {
            return Err(Failure::Task { task });
        }
        let response = self.since_release(i, until);
        let response = response.and_then(|r| r.checked_add(self.tasks[i].jitter).ok_or(Failure::Overflow));
        self.settle(i, response)
    }

    /// Takes the response time of task `i` for known.
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
            // Its own suspension keeps the busy interval from ending just as execution does.
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
        // BOUND: the terms.
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
            // The busy interval ends where all that was released is done.
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

/// Tasks with deadlines within periods, each with a priority of its own, that can be preempted everywhere; times so short that 64 bits do.
struct Quick<'a> {
    tasks: &'a [Task],
    rivals: Vec<Rival>,
}

/// A more urgent task.
struct Rival {
    /// `x * inverse / 2^64`, rounded down, is x / T, rounded down, for all x that come up.
    inverse: u64,
    cost: u64,
    /// J'.
    jitter: u64,
}

impl<'a> Quick<'a> {
    /// `None` where the tasks are not such.
    fn new(tasks: &'a [Task], arrivals: &[Arrivals]) -> Option<Self> {
        // Saturation shows in the end.
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
        // No t goes beyond a deadline, nor t + J' beyond twice the span. floor(2^64 / T) + 1 divides x exactly if x T < 2^64.
        span = span.saturating_mul(2);
        span.checked_mul(longest)?;
        let (mut most, mut rivals) = (span, Vec::with_capacity(tasks.len()));
        for one in arrivals {
            // What comes to a sum in the end, with one more each for rounding.
            most = one.period.floor(span).saturating_add(2).checked_mul(one.cost)?.checked_add(most)?;
            // Of a power of two the inverse is one less than 2^64 / T, of others it is that, rounded down.
            let inverse = one.period.inverse().checked_add(1)?;
            rivals.push(Rival { inverse, cost: one.cost, jitter: one.jitter });
        }
        Some(Self { tasks, rivals })
    }

    fn response_times(mut self, level: &mut Level) -> Result<Vec<u64>, Failure> {
        let mut responses = Vec::with_capacity(self.tasks.len());
        // Of the task before: its response time from release, and what it had itself besides what it now brings others.
        let (mut before, mut before_own, mut costs) = (0, 0, 0);
        for (i, task) in self.tasks.iter().enumerate() {
            let own = task.cost + task.suspension + task.blocking;
            // Each of the others is there at least once; t >= 1, and a count is 1 + floor((t + J' - 1) / T).
            let once = own + costs;
            // Task i - 1 had t' = own' + I(t'); now t >= own + C' + I(t): later by what is more, if it is.
            let mut t = if own >= before_own { once.max(before + own - before_own) } else { once }.max(1);
            // BOUND: the deadline, and the terms.
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
            // Less than t where nothing is to be done: t is at least 1.
            (before, before_own, costs) = (work, own - task.cost, costs + task.cost);
        }
        Ok(responses)
    }
}
