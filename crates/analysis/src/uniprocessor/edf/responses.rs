//! Response times under EDF on one processor. The formula and its sources are in the [module above](super).

use crate::rows::failure::Failure;
use crate::uniprocessor::{Arrivals, Preemption, Task, Terms, busy_period, least};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Returns the response times from release under EDF on one processor, in the order of the tasks, whether or not they
/// are within the deadlines.
///
/// The result is exact for fully preemptive tasks, and an upper bound otherwise. Times are in the unit of the input.
/// The sources are in the [module](super).
///
/// # Errors
/// Returns [`Failure::Overload`] if U > 1, and [`Failure::Diverged`] if a fixed point exceeds `horizon` or takes too
/// many steps. Returns [`Failure::Unsupported`] for a task that suspends itself or has blocking, and
/// [`Failure::Overflow`] if a number does not fit.
pub fn response_bounds(tasks: &[Task], horizon: u64) -> Result<Vec<u64>, Failure> {
    let mut terms = Terms::new();
    let all = arrivals(tasks)?;
    let end = busy_period(&all, horizon, &mut terms)?;
    let (mut offsets, mut caps) = (Points::default(), vec![0_u64; all.len()]);
    (0..tasks.len()).map(|i| response(tasks, &all, i, (end, horizon), (&mut offsets, &mut caps), &mut terms)).collect()
}

/// Returns the response times from release under EDF on one processor, if each is within its deadline. See
/// [`response_bounds`].
///
/// # Errors
/// Returns [`Failure::Late`] with the first task that may be late, and the errors of [`response_bounds`].
pub fn response_times(tasks: &[Task]) -> Result<Vec<u64>, Failure> {
    within(tasks, response_bounds(tasks, u64::MAX)?)
}

/// Returns upper bounds on the response times from release under EDF on one processor, from the least slack. All tasks
/// must be fully preemptive.
///
/// Times are in the unit of the input. The source is Guan, Yi (DATE 2014); see the [module](super).
///
/// # Errors
/// Returns the errors of [`response_times`], and [`Failure::Unsupported`] for a task that cannot be preempted
/// everywhere.
pub fn approximate_response_times(tasks: &[Task]) -> Result<Vec<u64>, Failure> {
    if let Some(task) = tasks.iter().position(|task| task.preemption != Preemption::Full) {
        return Err(Failure::Unsupported { task, what: "cannot be preempted everywhere" });
    }
    let mut terms = Terms::new();
    let all = arrivals(tasks)?;
    let longest = tasks.iter().map(|task| task.deadline).max().unwrap_or(0);
    let end = busy_period(&all, u64::MAX, &mut terms)?.checked_add(longest).ok_or(Failure::Overflow)?;
    // The last deadline of each task that is no later than the end. The search continues backwards from there.
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
    // From the longest interval down: the least slack of the intervals that are at least as long as the deadline.
    let mut before = None;
    // BOUND: the limit on terms.
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

/// The offsets at which some count increases, in order. Only the next offset of each task is kept.
#[derive(Default)]
struct Points {
    /// Offset, task and job, with the earliest first.
    next: BinaryHeap<Reverse<(u64, usize, u64)>>,
}

impl Points {
    /// Starts with the offsets before `end`, for the jobs of a task with that deadline.
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

    /// Returns the next offset.
    ///
    /// BOUND: the limit on terms.
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
        // While the blocking does not change, the fixed point never decreases as the offset grows.
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
            // No later job can take longer, as it is done at the end of the busy interval.
            break;
        }
    }
    Ok(worst)
}
