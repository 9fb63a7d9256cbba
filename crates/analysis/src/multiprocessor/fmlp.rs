//! The flexible multiprocessor locking protocol for long resources: FIFO queues, who waits suspends.
//!
//! FMLP long, global scheduling, suspension counted as execution: Block, Leontyev, Brandenburg, Anderson, A flexible real-time locking
//! protocol for multiprocessors, RTCSA 2007.
//!
//! ```text
//! remote = sum over q of the longest requests of others for q, at most N_{i,q} of each
//! ```
//!
//! FMLP+, partitioned, suspension-aware: holders execute above all jobs in the order of their requests. Brandenburg, Scheduling and
//! locking in multiprocessor real-time operating systems, dissertation, 2011, chapter 6.
//!
//! ```text
//! d_p = sum over q of i of how many requests on p for q there are, at most N_{i,q} of each task       how often p can directly block i
//! e_p = sum of N_{i,q} over those q of i that p uses too
//! remote = sum over p other than i's processor, and tasks x on p, of the min(d_p, e_p) longest requests of x, for any resource
//! local = sum over other tasks x on i's processor, no more urgent, of the 1 + min(sum of N_{i,q}, sum of d_p) longest requests of x
//! ```
//! Where sections are not preempted, not even by those requested earlier: remote besides has, of each p, the d_p longest requests.
//!
//! The bound does not cover a variant that gives the holder its waiters' priority: there its rank among holders is not that of its request.

use super::tables::{Arithmetic, Asked, Entry, Fits, Grouping, Jobs, Saturates, Tables, Tally, least, longest};
use super::{Charge, Delay, Protocol, fitting, once};
use crate::{Failure, Sharing};
use std::cmp::Reverse;
use std::hint::select_unpredictable;

/// Under the global FMLP for long resources: in the order of the tasks, a bound that adds to execution. Processors and priorities do not matter.
///
/// # Errors
/// [`Failure::Overflow`]; [`Failure::Unsupported`] for sets that are none.
pub fn fmlp_long(sharing: &Sharing) -> Result<Vec<Delay>, Failure> {
    let tasks = &sharing.tasks;
    let tables = Tables::new(tasks, |task| &tasks[task].requests, Grouping::Together)?;
    let delays = if tables.fits() { of_all::<Fits>(&tables) } else { of_all::<Saturates>(&tables) };
    fitting(&delays)?;
    Ok(delays)
}

fn of_all<A: Arithmetic>(tables: &Tables) -> Vec<Delay> {
    let mut jobs = Jobs::new(tables.rows.len());
    let bound = |task: usize| {
        tables.jobs(task, &mut jobs);
        let jobs = jobs.of(task, tables.rows.len());
        let mut remote = Tally::default();
        for asked in tables.asked(task) {
            let (entries, each) = (tables.entries_of(asked.resource), u64::from(asked.count));
            remote.add(longest::<A>(entries, task, jobs, u64::MAX, each));
        }
        Delay::new(remote, Tally::default(), Tally::default())
    };
    (0..tables.rows.len()).map(bound).collect()
}

/// Whether a section can be preempted by one that was requested earlier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sections {
    /// It can.
    Preemptive,
    /// It cannot.
    NonPreemptive,
}

/// Under the partitioned FMLP+: the bounds in the order of the tasks.
///
/// # Errors
/// [`Failure::Overflow`]; [`Failure::Unsupported`] for sets that are none.
pub fn fmlp_plus(sharing: &Sharing, sections: Sections) -> Result<Vec<Delay>, Failure> {
    once(&mut FmlpPlus::new(sharing, sections)?, sharing.tasks.len())
}

/// The same for [`joint`](super::joint).
#[derive(Debug)]
pub struct FmlpPlus {
    tables: Tables,
    /// Each task's requests, in the tables' ranges, the longest first.
    by_length: Vec<Entry>,
    /// Where sections are not preempted: each cluster's requests, the longest first.
    clusters: Vec<Vec<Entry>>,
    /// d and e of each cluster, for the task at hand.
    blocked: Vec<(u64, u64)>,
    jobs: Jobs,
    found: Vec<Delay>,
    sums: Sums,
}

/// For the `m` longest requests of a task with so many jobs without a loop: one job's requests, the longest first, summed up.
///
/// With `m = a jobs + b`, b below jobs, those are the a longest of each job, and one more of b of them.
#[derive(Debug)]
struct Sums {
    /// For each task, in the clusters' order: its requests of one job, and where in `lengths` they begin.
    tasks: Vec<(u32, u32)>,
    /// Of none, one, .. all; and what the next adds.
    lengths: Vec<(u64, u64)>,
}

/// Most requests that are counted by [`Sums`].
const SUMMED_MAX: u64 = 64;

/// `ceil(2^16 / jobs)`: for numbers up to [`SUMMED_MAX`] the product's upper part is the quotient.
const RECIPROCALS: [u32; 2 * SUMMED_MAX as usize] = {
    let mut all = [0; 2 * SUMMED_MAX as usize];
    let mut jobs = 1;
    while jobs <= SUMMED_MAX as usize {
        all[jobs] = (1_u32 << 16).div_ceil(jobs as u32);
        jobs += 1;
    }
    all
};

impl Sums {
    /// Without tasks where one has more requests than [`SUMMED_MAX`].
    fn new(tables: &Tables, by_length: &[Entry]) -> Self {
        let mut sums = Self { tasks: Vec::with_capacity(tables.rows.len()), lengths: Vec::new() };
        sums.lengths.reserve(by_length.len() * 4 + tables.rows.len() * 2);
        for &task in &tables.order {
            let its = &by_length[tables.asked_range(task as usize)];
            let count = its.iter().fold(0_u64, |sum, entry| sum.saturating_add(u64::from(entry.count)));
            if count > SUMMED_MAX {
                sums.tasks.clear();
                break;
            }
            sums.tasks.push((count as u32, sums.lengths.len() as u32));
            let mut sum = 0_u64;
            for entry in its {
                for _ in 0..entry.count {
                    sums.lengths.push((sum, entry.length));
                    sum = sum.saturating_add(entry.length);
                }
            }
            sums.lengths.push((sum, 0));
        }
        sums
    }

    /// The `m` longest requests of a task in `jobs` jobs, from 1 on.
    #[inline]
    fn longest<A: Arithmetic>(&self, (count, first): (u32, u32), jobs: u64, m: u64, tally: &mut Tally) {
        // More than one of each job are not needed then.
        let jobs = least(jobs, m);
        // Of numbers up to SUMMED_MAX.
        let a = (m as u32).wrapping_mul(RECIPROCALS[jobs as usize % RECIPROCALS.len()]) >> 16;
        let b = m.wrapping_sub(u64::from(a).wrapping_mul(jobs));
        let place = first.wrapping_add(select_unpredictable(a < count, a, count)) as usize;
        let (of_each, next) = self.lengths[place];
        tally.length = A::add(tally.length, A::add(A::mul(jobs, of_each), A::mul(b, next)));
        tally.requests = A::add(tally.requests, least(jobs.wrapping_mul(u64::from(count)), m));
    }
}

impl FmlpPlus {
    /// # Errors
    /// As [`fmlp_plus`].
    pub fn new(sharing: &Sharing, sections: Sections) -> Result<Self, Failure> {
        let tasks = &sharing.tasks;
        let tables = Tables::new(tasks, |task| &tasks[task].requests, Grouping::Clusters)?;
        let mut by_length = Vec::with_capacity(tables.all_asked().len());
        for task in 0..tasks.len() {
            let begin = by_length.len();
            for asked in tables.asked(task) {
                let Asked { length, count, .. } = *asked;
                by_length.push(Entry { length, count, task: task as u32, ..Entry::default() });
            }
            by_length[begin..].sort_unstable_by_key(|entry| Reverse(entry.length));
        }
        let mut clusters = Vec::new();
        if sections == Sections::NonPreemptive {
            for cluster in 0..tables.cluster_count() {
                let its = tables.cluster(cluster).iter();
                let mut all: Vec<Entry> =
                    its.flat_map(|task| by_length[tables.asked_range(*task as usize)].iter().copied()).collect();
                all.sort_unstable_by_key(|entry| Reverse(entry.length));
                clusters.push(all);
            }
        }
        let blocked = vec![(0, 0); tables.cluster_count()];
        let sums = Sums::new(&tables, &by_length);
        let (jobs, found) = (Jobs::new(tasks.len()), vec![Delay::default(); tasks.len()]);
        Ok(Self { tables, by_length, clusters, blocked, jobs, found, sums })
    }

    fn delay<A: Arithmetic>(&mut self, task: usize) -> Delay {
        let row = self.tables.rows[task];
        let jobs = self.jobs.of(task, self.tables.rows.len());
        self.blocked.fill((0, 0));
        let (mut issued, mut direct) = (0, 0);
        for asked in self.tables.asked(task) {
            let count = u64::from(asked.count);
            issued += count;
            for entry in self.tables.entries_of(asked.resource) {
                let (d, e) = &mut self.blocked[entry.cluster as usize];
                *e = e.wrapping_add(select_unpredictable(entry.leads, count, 0));
                let most = select_unpredictable(entry.task as usize == task, 0, count);
                *d = d.wrapping_add(least(A::mul(jobs[entry.task as usize], u64::from(entry.count)), most));
            }
        }
        let mut remote = Tally::default();
        // There is a job of each task then.
        let summed = !self.sums.tasks.is_empty() && self.tables.responses[task] > 0;
        for (cluster, &(d, e)) in self.blocked.iter().enumerate() {
            direct += d;
            let each = d.min(e);
            if each == 0 || cluster == row.cluster as usize {
                continue;
            }
            if each <= SUMMED_MAX && summed {
                let sums = &self.sums.tasks[self.tables.cluster_range(cluster)];
                for (other, sum) in self.tables.cluster(cluster).iter().zip(sums) {
                    self.sums.longest::<A>(*sum, jobs[*other as usize], each, &mut remote);
                }
            } else {
                for &other in self.tables.cluster(cluster) {
                    self.longest_of::<A>(other, jobs, each, &mut remote);
                }
            }
            if let Some(all) = self.clusters.get(cluster) {
                remote.add(longest::<A>(all, task, jobs, d, d));
            }
        }
        let arrivals = issued.min(direct) + 1;
        let mut local = Tally::default();
        for &other in self.tables.cluster(row.cluster as usize).iter().rev() {
            if self.tables.rows[other as usize].priority > row.priority {
                break;
            }
            if other as usize != task {
                self.longest_of::<A>(other, jobs, arrivals, &mut local);
            }
        }
        Delay::new(remote, local, Tally::default())
    }

    /// Adds the `total` longest requests of `task`.
    #[inline]
    fn longest_of<A: Arithmetic>(&self, task: u32, jobs: &[u64], total: u64, tally: &mut Tally) {
        let mut left = total;
        let jobs = jobs[task as usize];
        for entry in &self.by_length[self.tables.asked_range(task as usize)] {
            let requests = least(A::mul(jobs, u64::from(entry.count)), left);
            tally.count::<A>(requests, entry.length);
            left -= requests;
            if left == 0 {
                break;
            }
        }
    }
}

impl Protocol for FmlpPlus {
    fn set_responses(&mut self, responses: &[u64]) -> Result<(), Failure> {
        self.jobs.begin(responses.len());
        self.tables.set_responses(responses)
    }

    fn delays(&mut self, delays: &mut [Delay]) -> Result<(), Failure> {
        let fits = self.tables.fits();
        for (task, delay) in delays.iter_mut().enumerate() {
            if self.tables.jobs(task, &mut self.jobs) {
                self.found[task] = if fits { self.delay::<Fits>(task) } else { self.delay::<Saturates>(task) };
            }
            *delay = self.found[task];
        }
        fitting(delays)
    }

    fn charge(&self, delay: &Delay) -> Option<Charge> {
        Some(Charge { suspended: delay.remote?, blocked: delay.local, executed: 0 })
    }
}
