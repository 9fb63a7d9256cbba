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

use super::lanes::{self, Asker, Counts, Crowd, LANES, Short};
use super::tables::{Arithmetic, Asked, Entry, Fits, Grouping, Saturates, Tables, Tally, Window, longest};
use super::{Charge, Delay, Protocol, fitting, once};
use crate::{Failure, Sharing};
use std::cmp::Reverse;

/// Under the global FMLP for long resources: in the order of the tasks, a bound that adds to execution. Processors and priorities do not matter.
///
/// # Errors
/// [`Failure::Overflow`]; [`Failure::Unsupported`] for sets that are none.
pub fn fmlp_long(sharing: &Sharing) -> Result<Vec<Delay>, Failure> {
    let tasks = &sharing.tasks;
    let tables = Tables::new(tasks, |task| &tasks[task].requests, Grouping::Together)?;
    let delays = of_resources(&tables, |_, issued| (None, issued));
    fitting(&delays)?;
    Ok(delays)
}

/// What delays each task by the longest requests of others for each of its resources, all together: `most` says of how many users, and of how
/// many requests it issues, how many there are at most, and how many of each other task, at most twice as many as it issues.
pub(super) fn of_resources(tables: &Tables, most: impl Fn(usize, u64) -> (Option<u64>, u64)) -> Vec<Delay> {
    let mut remote = vec![Tally::default(); tables.rows.len()];
    let mut crowd = Crowd::new(tables.rows.len());
    for resource in 0..tables.resource_count() as u32 {
        let entries = tables.entries_of(resource);
        let most = |entry: &Entry| most(entries.len(), u64::from(entry.count));
        if tables.is_small() {
            let steps = entries.iter().map(|entry| tables.step(entry, entry.task));
            let askers = entries.iter().map(|entry| {
                let (total, each) = most(entry);
                Asker {
                    total: total.map_or(i16::MAX, |total| total.min(i16::MAX as u64) as i16),
                    ..tables.asker(entry.task, entry.task, each as i16)
                }
            });
            crowd.longest_of_each(steps, askers, |task, tally| remote[task as usize].add(tally));
        } else {
            for entry in entries {
                let (task, (total, each)) = (entry.task as usize, most(entry));
                let window = tables.window(task);
                remote[task].add(if tables.fits() {
                    longest::<Fits>(entries, task, window, total.unwrap_or(Fits::UNLIMITED), each)
                } else {
                    longest::<Saturates>(entries, task, window, total.unwrap_or(Saturates::UNLIMITED), each)
                });
            }
        }
    }
    remote.into_iter().map(|remote| Delay::new(remote, Tally::default(), Tally::default())).collect()
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
    sections: Sections,
    rows: Rows,
}

/// Most blocks of tasks whose bounds are found together.
const BLOCKS: usize = 16;

/// Of several tasks, in blocks.
#[derive(Debug, Default)]
struct Rows {
    /// Their response times.
    times: Vec<[u32; LANES]>,
    /// How many requests each issues.
    issued: Vec<i16>,
    /// For each resource: how many requests for it each issues.
    wanted: Vec<Counts>,
    /// For each task of the cluster at hand: how many jobs of it each meets, at most [`lanes::JOBS_MAX`].
    jobs: Vec<Counts>,
    /// For each resource the last cluster that uses it.
    seen: Vec<u32>,
    /// The sum of d.
    direct: Vec<Counts>,
    /// How long the remote requests take, and how many there are.
    lengths: Vec<[u32; LANES]>,
    requests: Vec<Counts>,
}

impl Rows {
    /// For `count` tasks from `first` on.
    fn begin(&mut self, tables: &Tables, first: usize, count: usize) {
        let blocks = count.div_ceil(LANES);
        fn zero<T: Copy>(rows: &mut Vec<T>, count: usize, zero: T) {
            rows.clear();
            rows.resize(count, zero);
        }
        zero(&mut self.times, blocks, [0; LANES]);
        zero(&mut self.issued, count, 0);
        zero(&mut self.wanted, blocks * tables.resource_count(), [0; LANES]);
        zero(&mut self.seen, tables.resource_count(), u32::MAX);
        zero(&mut self.direct, blocks, [0; LANES]);
        zero(&mut self.lengths, blocks, [0; LANES]);
        zero(&mut self.requests, blocks, [0; LANES]);
        for (place, issued) in self.issued.iter_mut().enumerate() {
            let (block, lane) = (place / LANES, place % LANES);
            self.times[block][lane] = tables.responses[first + place] as u32;
            for asked in tables.asked(first + place) {
                *issued += asked.count as i16;
                self.wanted[asked.resource as usize * blocks + block][lane] = asked.count as i16;
            }
        }
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
        Ok(Self { tables, by_length, clusters, blocked, sections, rows: Rows::default() })
    }

    fn delay<A: Arithmetic>(&mut self, task: usize) -> Delay {
        let (cluster, window) = (self.tables.rows[task].cluster as usize, self.tables.window(task));
        let issued = directly::<A>(&self.tables, task, &mut self.blocked);
        let mut direct = 0;
        let mut remote = Tally::default();
        for (other, &(d, e)) in self.blocked.iter().enumerate() {
            direct += d;
            let each = d.min(e);
            if each == 0 || other == cluster {
                continue;
            }
            for &other in self.tables.cluster(other) {
                self.longest_of::<A>(other, window, each, &mut remote);
            }
            if let Some(all) = self.clusters.get(other) {
                remote.add(longest::<A>(all, task, window, d, d));
            }
        }
        Delay::new(remote, self.local::<A>(task, issued.min(direct) + 1), Tally::default())
    }

    /// What delays `task` on its own processor, where it arrives, or resumes, so often.
    fn local<A: Arithmetic>(&self, task: usize, arrivals: u64) -> Tally {
        let row = self.tables.rows[task];
        let mut local = Tally::default();
        for &other in self.tables.cluster(row.cluster as usize).iter().rev() {
            if self.tables.rows[other as usize].priority > row.priority {
                break;
            }
            if other as usize != task {
                self.longest_of::<A>(other, self.tables.window(task), arrivals, &mut local);
            }
        }
        local
    }

    /// The bounds of the tasks from `first` on, many at once: numbers are small, and sections can be preempted.
    ///
    /// Of a task's requests, the longest first, the m longest are the sum over k of (L_k - L_{k+1}) min(m, jobs (N_1 + .. + N_k)).
    fn together(&mut self, first: usize, delays: &mut [Delay]) {
        let Self { tables, by_length, rows, .. } = self;
        let blocks = delays.len().div_ceil(LANES);
        rows.begin(tables, first, delays.len());
        for cluster in 0..tables.cluster_count() {
            let (mut d, mut e) = ([[0_i16; LANES]; BLOCKS], [[0_i16; LANES]; BLOCKS]);
            let (d, e) = (&mut d[..blocks], &mut e[..blocks]);
            rows.jobs.clear();
            for &task in tables.cluster(cluster) {
                let begin = rows.jobs.len();
                let arrivals = Short::new(tables.arrivals[task as usize]);
                rows.jobs.resize(begin + blocks, [0; LANES]);
                arrivals.jobs(&rows.times, &mut rows.jobs[begin..]);
                for asked in tables.asked(task as usize) {
                    let count = asked.count as i16;
                    let wanted = &rows.wanted[asked.resource as usize * blocks..][..blocks];
                    for ((d, wanted), jobs) in d.iter_mut().zip(wanted).zip(&rows.jobs[begin..]) {
                        *d = lanes::sum(*d, lanes::taken(*jobs, count, *wanted));
                    }
                    let seen = &mut rows.seen[asked.resource as usize];
                    if *seen != cluster as u32 {
                        *seen = cluster as u32;
                        for (e, wanted) in e.iter_mut().zip(wanted) {
                            *e = lanes::sum(*e, *wanted);
                        }
                    }
                }
            }
            // Of the cluster's own tasks their own requests were counted, and none are remote.
            for &task in tables.cluster(cluster) {
                let place = (task as usize).wrapping_sub(first);
                if place < delays.len() {
                    let (block, lane) = (place / LANES, place % LANES);
                    let own = if tables.responses[task as usize] > 0 { rows.issued[place] } else { 0 };
                    d[block][lane] = d[block][lane].wrapping_sub(own);
                    e[block][lane] = 0;
                }
            }
            for ((d, e), direct) in d.iter().zip(e.iter_mut()).zip(&mut rows.direct) {
                *e = lanes::least(*e, *d);
                *direct = lanes::sum(*direct, *d);
            }
            for (jobs, &task) in rows.jobs.chunks_exact(blocks).zip(tables.cluster(cluster)) {
                let its = &by_length[tables.asked_range(task as usize)];
                let mut count = 0;
                for (k, entry) in its.iter().enumerate() {
                    count += entry.count as i16;
                    let next = its.get(k + 1);
                    let more = (entry.length - next.map_or(0, |next| next.length)) as u32;
                    for ((jobs, most), lengths) in jobs.iter().zip(e.iter()).zip(&mut rows.lengths) {
                        lanes::add_lengths(lengths, lanes::taken(*jobs, count, *most), more);
                    }
                }
                for ((jobs, most), requests) in jobs.iter().zip(e.iter()).zip(&mut rows.requests) {
                    *requests = lanes::sum(*requests, lanes::taken(*jobs, count, *most));
                }
            }
        }
        for (place, delay) in delays.iter_mut().enumerate() {
            let (block, lane) = (place / LANES, place % LANES);
            let (length, requests) = (self.rows.lengths[block][lane], self.rows.requests[block][lane]);
            let remote = Tally { length: u64::from(length), requests: requests as u64 };
            let arrivals = self.rows.issued[place].min(self.rows.direct[block][lane]) as u64 + 1;
            *delay = Delay::new(remote, self.local::<Fits>(first + place, arrivals), Tally::default());
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
        if fits && self.tables.is_small() && self.sections == Sections::Preemptive {
            for (chunk, delays) in delays.chunks_mut(LANES * BLOCKS).enumerate() {
                self.together(chunk * LANES * BLOCKS, delays);
            }
        } else {
            for (task, delay) in delays.iter_mut().enumerate() {
                *delay = if fits { self.delay::<Fits>(task) } else { self.delay::<Saturates>(task) };
            }
        }
        fitting(delays)
    }

    fn charge(&self, delay: &Delay) -> Option<Charge> {
        Some(Charge { suspended: delay.remote?, blocked: delay.local, executed: 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::multiprocessor::random;

    #[test]
    fn many_at_once_are_as_one_by_one() {
        let mut random = fastrand::Rng::with_seed(4);
        for round in 0..400 {
            let tasks = if round % 20 == 0 { 300 } else { 20 };
            let mut sharing = random::sharing(&mut random, 5, tasks, 7);
            for task in &mut sharing.tasks {
                if random.u8(..8) == 0 {
                    task.response = 0;
                }
            }
            let mut protocol = FmlpPlus::new(&sharing, Sections::Preemptive).unwrap();
            assert!(protocol.tables.is_small() && protocol.tables.fits());
            let mut delays = vec![Delay::default(); sharing.tasks.len()];
            protocol.delays(&mut delays).unwrap();
            for (task, delay) in delays.into_iter().enumerate() {
                assert_eq!(protocol.delay::<Fits>(task), delay);
                assert_eq!(protocol.delay::<Saturates>(task), delay);
            }
        }
    }
}
