//! How long a resource is held, and how long one request waits in a queue by priority.

use super::super::view::{View, add, add_product, product};
use super::super::{sum, wait};
use crate::Failure;

/// The mechanism that ensures the progress of an owner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Progress {
    Inheritance,
    SegmentBoosting,
    None,
}

/// How long each request of other tasks holds its resource while a job of task `i` is pending.
pub(super) struct Holds<'a> {
    view: &'a View,
    i: usize,
    /// Task, resource, requests of one job, and holding time; `None` if that exceeds the task's deadline.
    holds: Vec<(usize, usize, u64, Option<u64>)>,
}

impl<'a> Holds<'a> {
    pub fn new(view: &'a View, i: usize, m: u64, progress: Progress) -> Result<Self, Failure> {
        let ceilings = most_urgent(view);
        let users_matter = |q: usize| view.requests(i).iter().any(|request| request.resource == q);
        let mut holds = Vec::new();
        for entry in view.entries.iter().filter(|entry| entry.task != i && users_matter(entry.resource)) {
            let (x, length) = (entry.task, entry.length);
            let first = (x as u64) < m;
            let limit = view.rows[x].deadline;
            let held = match progress {
                // The m most urgent tasks are always scheduled.
                Progress::Inheritance | Progress::None if first => Some(length),
                Progress::Inheritance => {
                    wait(length, limit, |held| sum(length, inherited(view, &ceilings, i, x, held)?.div_ceil(m.max(1))))
                }
                Progress::None => wait(length, limit, |held| {
                    let mut work = 0;
                    for a in (0..x).filter(|&a| a != i) {
                        add(&mut work, workload(view, a, held)?)?;
                    }
                    sum(length, work.div_ceil(m.max(1)))
                }),
                Progress::SegmentBoosting => Some(boosted(view, i, x, entry.resource, length)?),
            };
            holds.push((x, entry.resource, entry.count, held));
        }
        Ok(Self { view, i, holds })
    }

    /// Returns the longest wait of a request of `i` for `q`, plus one unit, or `None` if that exceeds its deadline.
    pub fn longest_wait(&self, q: usize) -> Result<Option<u64>, Failure> {
        let users = || self.holds.iter().filter(|hold| hold.1 == q);
        let mut start = 1;
        let mut lower = 0;
        for &(_, _, _, held) in users().filter(|hold| hold.0 > self.i) {
            let Some(held) = held else { return Ok(None) };
            lower = held.max(lower);
        }
        add(&mut start, lower)?;
        if users().any(|hold| hold.3.is_none()) {
            return Ok(None);
        }
        Ok(wait(start, self.view.rows[self.i].deadline, |waited| {
            let mut delay = start;
            for &(x, _, count, held) in users().filter(|hold| hold.0 < self.i) {
                add_product(&mut delay, product(count, self.view.jobs(x, waited)?)?, held.unwrap_or(0))?;
            }
            Ok(delay)
        }))
    }
}

/// Returns the work that may prevent an owner `x` from executing under priority inheritance while `i` waits: that of
/// tasks more urgent than both, and of sections with such a ceiling.
fn inherited(view: &View, ceilings: &[usize], i: usize, x: usize, interval: u64) -> Result<u64, Failure> {
    let (higher, lower) = (i.min(x), i.max(x));
    let mut work = 0;
    for a in 0..higher {
        add(&mut work, workload(view, a, interval)?)?;
    }
    for a in (higher + 1..view.tasks()).filter(|&a| a != lower) {
        for request in view.requests(a).iter().filter(|request| ceilings[request.resource] < higher) {
            add_product(&mut work, product(view.jobs(a, interval)?, request.count)?, request.length)?;
        }
    }
    Ok(work)
}

/// Returns the holding time under restricted segment boosting: every other task's longest section on another resource
/// counts once.
fn boosted(view: &View, i: usize, x: usize, resource: usize, length: u64) -> Result<u64, Failure> {
    let mut held = length;
    for a in (0..view.tasks()).filter(|&a| a != i && a != x) {
        let others = view.requests(a).iter().filter(|request| request.resource != resource);
        add(&mut held, others.map(|request| request.length).max().unwrap_or(0))?;
    }
    Ok(held)
}

/// Returns the rank of the most urgent user of each resource.
pub(super) fn most_urgent(view: &View) -> Vec<usize> {
    let mut ranks = vec![usize::MAX; view.resources];
    for entry in &view.entries {
        ranks[entry.resource] = ranks[entry.resource].min(entry.task);
    }
    ranks
}

/// Returns W_x(t).
pub(super) fn workload(view: &View, x: usize, interval: u64) -> Result<u64, Failure> {
    let row = &view.rows[x];
    let span = sum(interval, row.response)?.saturating_sub(row.cost);
    sum(product(span / row.period, row.cost)?, row.cost.min(span % row.period))
}
