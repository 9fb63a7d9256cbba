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

use super::tables::{Arithmetic, Asked, Entry, Fits, Grouping, Saturates, PACKED_BITS, Tables, Tally, UNLIMITED, Window, least, longest};
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
    let bound = |task: usize| {
        let window = tables.window(task);
        let mut remote = Tally::default();
        for asked in tables.asked(task) {
            let (entries, each) = (tables.entries_of(asked.resource), u64::from(asked.count));
            remote.add(longest::<A>(entries, task, window, UNLIMITED, each));
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
    /// For each cluster, of each task at hand: min(d, e), 0 on its own.
    each: Vec<u64>,
    sums: Sums,
}

/// For the `m` longest requests of a task with so many jobs without a loop: one job's requests, the longest first, summed up.
///
/// With `m = a jobs + b`, b below jobs, those are the a longest of each job, and one more of b of them.
#[derive(Debug)]
struct Sums {
    /// For each task, in the clusters' order: its requests of one job, and where in `lengths` they begin.
    tasks: Vec<(u32, u32)>,
    /// Of none, one, .. all; and what the next adds. Each is a length and a number of requests, packed: see [`Tables::packs`].
    lengths: Vec<(u64, u64)>,
}

/// Most requests that are counted by [`Sums`].
const SUMMED_MAX: u64 = 31;

/// a and b for each m, and jobs from 1 to m.
static PARTS: [(u8, u8); 32 * 32] = {
    let mut all = [(0, 0); 32 * 32];
    let mut place = 0;
    while place < all.len() {
        let (m, jobs) = (place / 32, place % 32);
        if jobs > 0 {
            all[place] = ((m / jobs) as u8, (m % jobs) as u8);
        }
        place += 1;
    }
    all
};

/// Tasks whose bounds are found together.
const AT_ONCE: usize = 128;

impl Sums {
    /// Without tasks where one has more requests than [`SUMMED_MAX`].
    fn new(tables: &Tables, by_length: &[Entry]) -> Self {
        let mut sums = Self { tasks: Vec::with_capacity(tables.rows.len()), lengths: Vec::new() };
        sums.lengths.reserve(by_length.len() * 4 + tables.rows.len());
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
                let next = entry.length.wrapping_shl(PACKED_BITS) | 1;
                for _ in 0..entry.count {
                    sums.lengths.push((sum, next));
                    sum = sum.wrapping_add(next);
                }
            }
            sums.lengths.push((sum, 0));
        }
        sums
    }

    /// What the task at `place` has.
    #[inline]
    fn of(&self, place: usize) -> &[(u64, u64)] {
        let (count, first) = self.tasks[place];
        &self.lengths[first as usize..=(first + count) as usize]
    }

    /// The `m` longest requests, at most [`SUMMED_MAX`], of a task that has `its` in each of its `jobs` jobs, from 1 on.
    #[inline]
    fn longest(its: &[(u64, u64)], jobs: u64, m: u64) -> u64 {
        // More than one of each job are not needed then.
        let jobs = least(jobs, m);
        let (a, b) = PARTS[(m << 5 | jobs) as usize % PARTS.len()];
        let (a, count) = (u64::from(a), its.len() as u64 - 1);
        let (of_each, next) = its[least(a, count) as usize];
        jobs.wrapping_mul(of_each).wrapping_add(u64::from(b).wrapping_mul(next))
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
        let each = vec![0; AT_ONCE.min(tasks.len()) * tables.cluster_count()];
        Ok(Self { tables, by_length, clusters, blocked, each, sums })
    }

    /// The bounds of the tasks from `first` on, at most [`AT_ONCE`].
    fn some<A: Arithmetic>(&mut self, first: usize, delays: &mut [Delay]) {
        let width = AT_ONCE.min(self.tables.rows.len());
        let mut remote = [Tally::default(); AT_ONCE];
        let remote = &mut remote[..delays.len()];
        let responses = &self.tables.responses[first..first + delays.len()];
        // With response times above 0 there is a job of each task.
        let summed =
            self.tables.packs() && !self.sums.tasks.is_empty() && responses.iter().all(|response| *response > 0);
        let mut most = 0;
        for (place, delay) in delays.iter_mut().enumerate() {
            let task = first + place;
            let (row, window) = (self.tables.rows[task], self.tables.window(task));
            let issued = directly::<A>(&self.tables, task, &mut self.blocked);
            let mut direct = 0;
            for (cluster, &(d, e)) in self.blocked.iter().enumerate() {
                direct += d;
                let is_own = cluster == row.cluster as usize;
                let each = select_unpredictable(is_own, 0, d.min(e));
                most = each.max(most);
                self.each[cluster * width + place] = each;
                if let Some(all) = self.clusters.get(cluster).filter(|_| each > 0) {
                    remote[place].add(longest::<A>(all, task, window, d, d));
                }
            }
            let arrivals = issued.min(direct) + 1;
            let mut local = Tally::default();
            for place in self.tables.cluster_range(row.cluster as usize).rev() {
                let other = self.tables.order[place];
                if self.tables.rows[other as usize].priority > row.priority {
                    break;
                }
                if other as usize == task {
                    continue;
                }
                if summed && arrivals <= SUMMED_MAX {
                    let packed = Sums::longest(self.sums.of(place), window.jobs::<A>(other), arrivals);
                    local.add(Tally::unpacked(packed));
                } else {
                    self.longest_of::<A>(other, window, arrivals, &mut local);
                }
            }
            *delay = Delay { local: local.length, requests: local.requests, ..Delay::default() };
        }
        if summed && most <= SUMMED_MAX {
            let mut packed = [0_u64; AT_ONCE];
            let packed = &mut packed[..responses.len()];
            for (place, &other) in self.tables.order.iter().enumerate() {
                let (its, arrivals) = (self.sums.of(place), self.tables.arrivals[other as usize]);
                if its.len() > 1 {
                    let begin = self.tables.rows[other as usize].cluster as usize * width;
                    let each = &self.each[begin..begin + packed.len()];
                    for ((packed, m), t) in packed.iter_mut().zip(each).zip(responses) {
                        *packed = packed.wrapping_add(Sums::longest(its, A::jobs(arrivals, *t), *m));
                    }
                }
            }
            for (remote, packed) in remote.iter_mut().zip(packed) {
                remote.add(Tally::unpacked(*packed));
            }
        } else {
            for &other in &self.tables.order {
                let begin = self.tables.rows[other as usize].cluster as usize * width;
                let each = &self.each[begin..begin + remote.len()];
                for (place, m) in each.iter().enumerate().filter(|(_, m)| **m > 0) {
                    self.longest_of::<A>(other, self.tables.window(first + place), *m, &mut remote[place]);
                }
            }
        }
        for (delay, remote) in delays.iter_mut().zip(remote) {
            let local = Tally { length: delay.local, requests: delay.requests };
            *delay = Delay::new(*remote, local, Tally::default());
        }
    }

    /// Adds the `total` longest requests of `task`.
    #[inline]
    fn longest_of<A: Arithmetic>(&self, task: u32, window: Window, total: u64, tally: &mut Tally) {
        let mut left = total;
        let jobs = window.jobs::<A>(task);
        for entry in &self.by_length[self.tables.asked_range(task as usize)] {
            let requests = A::least(A::mul(jobs, u64::from(entry.count)), left);
            tally.count::<A>(requests, entry.length);
            left -= requests;
            if left == 0 {
                break;
            }
        }
    }
}

/// Sets d and e of each cluster, in `blocked`, for `task`; how many requests it issues.
fn directly<A: Arithmetic>(tables: &Tables, task: usize, blocked: &mut [(u64, u64)]) -> u64 {
    let window = tables.window(task);
    blocked.fill((0, 0));
    let mut issued = 0;
    for asked in tables.asked(task) {
        let count = u64::from(asked.count);
        issued += count;
        for entry in tables.entries_of(asked.resource) {
            let (d, e) = &mut blocked[entry.cluster as usize];
            *d = d.wrapping_add(A::least(A::mul(window.jobs::<A>(entry.task), u64::from(entry.count)), count));
            *e = e.wrapping_add(count & u64::from(entry.leads).wrapping_neg());
        }
    }
    // Its own were all counted, where it has a job then.
    let (d, _) = &mut blocked[tables.rows[task].cluster as usize];
    *d = d.wrapping_sub(if tables.responses[task] > 0 { issued } else { 0 });
    issued
}

impl Protocol for FmlpPlus {
    fn set_responses(&mut self, responses: &[u64]) -> Result<(), Failure> {
        self.tables.set_responses(responses)
    }

    fn delays(&mut self, delays: &mut [Delay]) -> Result<(), Failure> {
        let fits = self.tables.fits();
        for (chunk, delays) in delays.chunks_mut(AT_ONCE).enumerate() {
            if fits {
                self.some::<Fits>(chunk * AT_ONCE, delays)
            } else {
                self.some::<Saturates>(chunk * AT_ONCE, delays)
            }
        }
        fitting(delays)
    }

    fn charge(&self, delay: &Delay) -> Option<Charge> {
        Some(Charge { suspended: delay.remote?, blocked: delay.local, executed: 0 })
    }
}
