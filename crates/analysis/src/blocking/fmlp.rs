//! The flexible multiprocessor locking protocol (FMLP) for long resources: FIFO queues, and waiters suspend.
//!
//! The long FMLP is for global scheduling, with suspension counted as execution. The source is Block, Leontyev,
//! Brandenburg, Anderson, *A flexible real-time locking protocol for multiprocessors*, RTCSA 2007.
//!
//! ```text
//! remote = sum over q of the longest requests of others for q, at most N(i,q) of each
//! ```
//!
//! The FMLP+ is for partitioned scheduling and suspension-aware analysis. Holders execute above all jobs, in the order
//! of their requests. The source is Brandenburg, *Scheduling and locking in multiprocessor real-time operating
//! systems*, dissertation, 2011, chapter 6.
//!
//! ```text
//! d(p) = the number of requests on p for resources that i uses, at most N(i,q) of each task for each q
//! e(p) = sum of N(i,q) over those q of i that tasks on p use as well
//! remote = sum over p other than i's processor, and tasks x on p, of the min(d(p), e(p)) longest requests of x
//! local = sum over other tasks x on i's processor, no more urgent,
//!         of the 1 + min(sum of N(i,q), sum of d(p)) longest requests of x
//! ```
//! d(p) is the number of times that p can directly block i. If sections cannot be preempted by sections that were
//! requested earlier, remote also contains the d(p) longest requests of each p.
//!
//! The bound does not cover a variant in which the holder inherits the priority of its waiters: there, the order of
//! holders is not that of their requests.
//!
//! # Examples
//! ```
//! use lockwright_analysis::blocking::fmlp::{Sections, fmlp_plus};
//! # use lockwright_analysis::{Demand, Sharer, Sharing};
//! let task = |cluster, priority, length| Sharer {
//!     cost: 10,
//!     period: 100,
//!     deadline: 100,
//!     response: 20,
//!     priority,
//!     cluster,
//!     requests: vec![Demand { resource: 0, count: 1, length }],
//! };
//! let sharing = Sharing { tasks: vec![task(0, 2, 3), task(1, 1, 5)] };
//! assert_eq!(fmlp_plus(&sharing, Sections::Preemptive)?[0].remote, Some(5));
//! # Ok::<(), lockwright_analysis::Failure>(())
//! ```

use super::delay::{Charge, Delay, DelayBounds, fitting, once};
use crate::rows::requests::{Asked, Entry, Grouping, RequestTables, Window, longest};
use crate::rows::simd::{self, Counts, Crowd, Fair, LANES, Short, Turns};
use crate::rows::tally::{Arithmetic, Fits, Saturates, Tally};
use crate::{Failure, Sharing};
use fearless_simd::{Level, dispatch};
use lockwright_model::TaskId;
use std::cmp::Reverse;
use std::ops::Range;

/// Returns bounds on the blocking of one job of each task under the long FMLP, with global scheduling, in the order of
/// the tasks.
///
/// The bound adds to the execution time. Clusters and priorities do not matter. Times are in the unit of the input. The
/// source is in the [module](self).
///
/// # Errors
/// Returns [`Failure::Overflow`] if a number does not fit, and [`Failure::Unsupported`] for a period of 0 or a resource
/// that a task names twice.
pub fn fmlp_long(sharing: &Sharing) -> Result<Vec<Delay>, Failure> {
    let tasks = &sharing.tasks;
    let tables = RequestTables::new(tasks, |task| &tasks[task].requests, Grouping::Together)?;
    let delays = of_resources(&tables, |_, issued| (None, issued));
    fitting(&delays)?;
    Ok(delays)
}

/// Returns the delay of each task by the longest requests of others for each of its resources. From the number of users
/// and the number of requests that a task issues, `most` returns the greatest number of delaying requests, and the
/// greatest number of each other task, which is at most twice the number that the task issues.
pub(super) fn of_resources(tables: &RequestTables, most: impl Fn(usize, u64) -> (Option<u64>, u64)) -> Vec<Delay> {
    let mut remote = vec![Tally::default(); tables.rows.len()];
    let mut crowd = Crowd::<Fair>::new(tables.rows.len());
    for resource in 0..tables.resource_count() as u32 {
        let entries = tables.entries_of(resource);
        let most = |entry: &Entry| most(entries.len(), u64::from(entry.count));
        if tables.is_small() {
            let steps = entries.iter().map(|entry| tables.turn(entry, entry.task));
            let askers = entries.iter().map(|entry| {
                let (total, each) = most(entry);
                let total = total.map_or(i16::MAX, |total| total.min(i16::MAX as u64) as i16);
                tables.asker(entry.task, Turns { key: entry.task as i16, each: each as i16, total })
            });
            crowd.delays(steps, askers, |place, tally| remote[entries[place].task as usize].add(tally));
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

/// Whether a section that was requested earlier can preempt a section.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Sections {
    /// It can.
    Preemptive,
    /// It cannot.
    NonPreemptive,
}

/// Returns bounds on the blocking of one job of each task under the FMLP+, with partitioned fixed priorities, in the
/// order of the tasks.
///
/// Times are in the unit of the input. The source is in the [module](self).
///
/// # Errors
/// Returns [`Failure::Overflow`] if a number does not fit, and [`Failure::Unsupported`] for a period of 0 or a resource
/// that a task names twice.
pub fn fmlp_plus(sharing: &Sharing, sections: Sections) -> Result<Vec<Delay>, Failure> {
    once(&mut FmlpPlus::new(sharing, sections)?, sharing.tasks.len())
}

/// The bounds of [`fmlp_plus`] as a function of response times, for [`joint`](super::joint).
#[derive(Debug)]
pub struct FmlpPlus {
    tables: RequestTables,
    /// The requests of each task, in the ranges of the tables, the longest first.
    by_length: Vec<Entry>,
    /// For non-preemptive sections, the requests of each cluster, the longest first.
    clusters: Vec<Vec<Entry>>,
    /// For the current task, d and e of each cluster.
    blocked: Vec<(u64, u64)>,
    /// For each resource, the number of requests that the current task issues for it, and the last cluster seen that
    /// uses it.
    wanted: Vec<(u64, u32)>,
    sections: Sections,
    level: Level,
    rows: Rows,
}

/// The most blocks of tasks whose bounds are computed together.
const BLOCKS: usize = 16;

/// Rows of several tasks in blocks, in the order of the tables.
#[derive(Debug, Default)]
struct Rows {
    /// The response times.
    times: Vec<[u32; LANES]>,
    /// The number of requests that each issues.
    issued: Vec<i16>,
    /// For each resource, the number of requests that each issues for it.
    wanted: Vec<Counts>,
    /// For each task of the current cluster, the number of its jobs that each meets, at most [`simd::JOBS_MAX`].
    jobs: Vec<Counts>,
    /// For each resource, the last cluster that uses it.
    seen: Vec<u32>,
    /// The sum of d.
    direct: Vec<Counts>,
    /// The number of requests that delay it, and the total lengths of the remote and of the local ones.
    requests: Vec<Counts>,
    remote: Vec<[u32; LANES]>,
    local: Vec<[u32; LANES]>,
}

impl Rows {
    /// Prepares the rows of `tasks`.
    fn begin(&mut self, tables: &RequestTables, tasks: &[u32]) {
        let blocks = tasks.len().div_ceil(LANES);
        fn zero<T: Copy>(rows: &mut Vec<T>, count: usize, zero: T) {
            rows.clear();
            rows.resize(count, zero);
        }
        zero(&mut self.times, blocks, [0; LANES]);
        zero(&mut self.issued, tasks.len(), 0);
        zero(&mut self.wanted, blocks * tables.resource_count(), [0; LANES]);
        let longest = (0..tables.cluster_count()).map(|cluster| tables.cluster(cluster).len()).max();
        zero(&mut self.jobs, blocks * longest.unwrap_or(0), [0; LANES]);
        zero(&mut self.seen, tables.resource_count(), u32::MAX);
        zero(&mut self.direct, blocks, [0; LANES]);
        zero(&mut self.requests, blocks, [0; LANES]);
        zero(&mut self.remote, blocks, [0; LANES]);
        zero(&mut self.local, blocks, [0; LANES]);
        for (place, (issued, task)) in self.issued.iter_mut().zip(tasks).enumerate() {
            let (block, lane) = (place / LANES, place % LANES);
            self.times[block][lane] = tables.responses[*task as usize] as u32;
            for asked in tables.asked(*task as usize) {
                *issued += asked.count as i16;
                self.wanted[asked.resource as usize * blocks + block][lane] = asked.count as i16;
            }
        }
    }
}

/// Adds the `most` longest of a task's `requests`, which are sorted.
///
/// The m longest are the sum over k of (L_k - L_{k+1}) min(m, jobs (N_1 + ... + N_k)).
#[inline(always)]
fn add_longest(
    requests: &[Entry],
    jobs: &[Counts],
    most: &[Counts],
    lengths: &mut [[u32; LANES]],
    counts: &mut [Counts],
) {
    let mut count = 0;
    for (k, entry) in requests.iter().enumerate() {
        count += entry.count as i16;
        let next = requests.get(k + 1);
        let more = (entry.length - next.map_or(0, |next| next.length)) as u32;
        for ((jobs, most), lengths) in jobs.iter().zip(most).zip(lengths.iter_mut()) {
            simd::add_lengths(lengths, simd::taken(*jobs, count, *most), more);
        }
    }
    for ((jobs, most), counts) in jobs.iter().zip(most).zip(counts) {
        *counts = simd::sum(*counts, simd::taken(*jobs, count, *most));
    }
}

impl FmlpPlus {
    /// Creates the bounds.
    ///
    /// # Errors
    /// Returns the errors of [`fmlp_plus`].
    pub fn new(sharing: &Sharing, sections: Sections) -> Result<Self, Failure> {
        let tasks = &sharing.tasks;
        let tables = RequestTables::new(tasks, |task| &tasks[task].requests, Grouping::Apart)?;
        let by_length = Vec::with_capacity(tables.all_asked().len());
        let clusters = Vec::new();
        let (blocked, wanted) = (vec![(0, 0); tables.cluster_count()], vec![(0, 0); tables.resource_count()]);
        let (level, rows) = (Level::new(), Rows::default());
        let mut bounds = Self { tables, by_length, clusters, blocked, wanted, sections, level, rows };
        bounds.sort();
        Ok(bounds)
    }

    /// Sorts the requests of the tables.
    fn sort(&mut self) {
        let Self { tables, by_length, clusters, sections, .. } = self;
        by_length.clear();
        clusters.clear();
        for task in 0..tables.rows.len() {
            let begin = by_length.len();
            for asked in tables.asked(task) {
                let Asked { length, count, .. } = *asked;
                by_length.push(Entry { length, count, task: task as u32, ..Entry::default() });
            }
            by_length[begin..].sort_unstable_by_key(|entry| Reverse(entry.length));
        }
        if *sections == Sections::NonPreemptive {
            for cluster in 0..tables.cluster_count() {
                let its = tables.cluster(cluster).iter();
                let mut all: Vec<Entry> =
                    its.flat_map(|task| by_length[tables.asked_range(*task as usize)].iter().copied()).collect();
                all.sort_unstable_by_key(|entry| Reverse(entry.length));
                clusters.push(all);
            }
        }
    }

    /// Takes over the lengths of the requests of these tasks from `sharing`, which differs in these alone.
    pub(crate) fn set_lengths(&mut self, sharing: &Sharing, tasks: &[TaskId]) {
        self.tables.set_lengths(sharing, tasks);
        self.sort();
    }

    fn delay<A: Arithmetic>(&mut self, task: usize) -> Delay {
        let issued = self.directly::<A>(task);
        let (cluster, window) = (self.tables.rows[task].cluster as usize, self.tables.window(task));
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

    /// Sets d and e of each cluster for `task`. Returns the number of requests that it issues.
    fn directly<A: Arithmetic>(&mut self, task: usize) -> u64 {
        let Self { tables, blocked, wanted, .. } = self;
        let window = tables.window(task);
        let mut issued = 0;
        for asked in tables.asked(task) {
            wanted[asked.resource as usize] = (u64::from(asked.count), u32::MAX);
            issued += u64::from(asked.count);
        }
        for (cluster, blocked) in blocked.iter_mut().enumerate() {
            let (mut d, mut e) = (0_u64, 0_u64);
            for &other in tables.cluster(cluster) {
                for asked in tables.asked(other as usize) {
                    let (wanted, seen) = &mut wanted[asked.resource as usize];
                    if *wanted > 0 {
                        d += A::least(A::mul(window.jobs::<A>(other), u64::from(asked.count)), *wanted);
                        e += if *seen == cluster as u32 { 0 } else { *wanted };
                        *seen = cluster as u32;
                    }
                }
            }
            *blocked = (d, e);
        }
        for asked in tables.asked(task) {
            wanted[asked.resource as usize].0 = 0;
        }
        // Its own requests were all counted, if it has a job in the window.
        let (d, _) = &mut blocked[tables.rows[task].cluster as usize];
        *d -= if tables.responses[task] > 0 { issued } else { 0 };
        issued
    }

    /// Returns the delay of `task` on its own processor, if it arrives or resumes `arrivals` times.
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

    /// Computes the bounds of the tasks at these `places` of the order, which are sorted.
    fn delays_at(&mut self, places: &[usize], delays: &mut [Delay]) -> Result<(), Failure> {
        let fits = self.tables.fits();
        if fits && self.tables.is_small() && self.sections == Sections::Preemptive {
            for places in places.chunks(LANES * BLOCKS) {
                dispatch!(self.level, _ => self.together(places, delays));
            }
        } else {
            for &place in places {
                let task = self.tables.order[place] as usize;
                delays[task] = if fits { self.delay::<Fits>(task) } else { self.delay::<Saturates>(task) };
            }
        }
        fitting(delays)
    }

    /// Computes the bounds of the tasks at these `places` of the order together. Numbers must be small, and sections
    /// preemptive.
    #[inline(always)]
    fn together(&mut self, places: &[usize], delays: &mut [Delay]) {
        let Self { tables, by_length, rows, .. } = self;
        let tasks: Vec<u32> = places.iter().map(|&place| tables.order[place]).collect();
        let tasks = tasks.as_slice();
        let blocks = tasks.len().div_ceil(LANES);
        rows.begin(tables, tasks);
        for cluster in 0..tables.cluster_count() {
            let (mut d, mut e) = ([[0_i16; LANES]; BLOCKS], [[0_i16; LANES]; BLOCKS]);
            let (d, e) = (&mut d[..blocks], &mut e[..blocks]);
            for (jobs, &task) in rows.jobs.chunks_exact_mut(blocks).zip(tables.cluster(cluster)) {
                Short::new(tables.arrivals[task as usize]).jobs(&rows.times, jobs);
                for asked in tables.asked(task as usize) {
                    let count = asked.count as i16;
                    let wanted = &rows.wanted[asked.resource as usize * blocks..][..blocks];
                    for ((d, wanted), jobs) in d.iter_mut().zip(wanted).zip(&*jobs) {
                        *d = simd::sum(*d, simd::taken(*jobs, count, *wanted));
                    }
                    let seen = &mut rows.seen[asked.resource as usize];
                    if *seen != cluster as u32 {
                        *seen = cluster as u32;
                        for (e, wanted) in e.iter_mut().zip(wanted) {
                            *e = simd::sum(*e, *wanted);
                        }
                    }
                }
            }
            // For the tasks of the cluster itself, their own requests were counted, and none are remote.
            for place in within(tables.cluster_range(cluster), places) {
                let (block, lane) = (place / LANES, place % LANES);
                let own = if rows.times[block][lane] > 0 { rows.issued[place] } else { 0 };
                d[block][lane] = d[block][lane].wrapping_sub(own);
                e[block][lane] = 0;
            }
            for ((d, e), direct) in d.iter().zip(e.iter_mut()).zip(&mut rows.direct) {
                *e = simd::least(*e, *d);
                *direct = simd::sum(*direct, *d);
            }
            for (jobs, &task) in rows.jobs.chunks_exact(blocks).zip(tables.cluster(cluster)) {
                let its = &by_length[tables.asked_range(task as usize)];
                add_longest(its, jobs, e, &mut rows.remote, &mut rows.requests);
            }
        }
        for cluster in 0..tables.cluster_count() {
            let here = within(tables.cluster_range(cluster), places);
            if here.is_empty() {
                continue;
            }
            // The blocks that contain its tasks. For each task at least as urgent, the number of its arrivals and
            // resumptions.
            let touched = here.start / LANES..here.end.div_ceil(LANES);
            let mut most = [[0; LANES]; BLOCKS];
            let priority = |task: u32| tables.rows[task as usize].priority;
            let (mut next, mut own) = (here.start, here.start);
            for (place, &task) in tables.cluster_range(cluster).zip(tables.cluster(cluster)) {
                while next < here.end && priority(tasks[next]) >= priority(task) {
                    let (block, lane) = (next / LANES, next % LANES);
                    most[block][lane] = rows.issued[next].min(rows.direct[block][lane]) + 1;
                    next += 1;
                }
                // BOUND: its places here.
                while own < here.end && places[own] < place {
                    own += 1;
                }
                let is_own = own < here.end && places[own] == place;
                let of_own = if is_own { most[own / LANES][own % LANES] } else { 0 };
                if of_own > 0 {
                    most[own / LANES][own % LANES] = 0;
                }
                let jobs = &mut rows.jobs[..touched.len()];
                Short::new(tables.arrivals[task as usize]).jobs(&rows.times[touched.clone()], jobs);
                let its = &by_length[tables.asked_range(task as usize)];
                let (local, requests) = (&mut rows.local[touched.clone()], &mut rows.requests[touched.clone()]);
                add_longest(its, jobs, &most[touched.clone()], local, requests);
                if of_own > 0 {
                    most[own / LANES][own % LANES] = of_own;
                }
            }
        }
        for (place, &task) in tasks.iter().enumerate() {
            let (block, lane) = (place / LANES, place % LANES);
            let length = |lengths: &[[u32; LANES]]| u64::from(lengths[block][lane]);
            let remote = Tally { length: length(&rows.remote), requests: rows.requests[block][lane] as u64 };
            let local = Tally { length: length(&rows.local), requests: 0 };
            delays[task as usize] = Delay::new(remote, local, Tally::default());
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

/// Returns which of the `places`, which are sorted, lie within `cluster`.
fn within(cluster: Range<usize>, places: &[usize]) -> Range<usize> {
    places.partition_point(|&place| place < cluster.start)..places.partition_point(|&place| place < cluster.end)
}

impl DelayBounds for FmlpPlus {
    fn set_responses(&mut self, responses: &[u64]) -> Result<(), Failure> {
        self.tables.set_responses(responses)
    }

    fn delays(&mut self, delays: &mut [Delay]) -> Result<(), Failure> {
        let all: Vec<usize> = (0..delays.len()).collect();
        self.delays_at(&all, delays)
    }

    fn delays_in(&mut self, cluster: u16, delays: &mut [Delay]) -> Result<(), Failure> {
        let all: Vec<usize> = self.tables.range_of(cluster).collect();
        self.delays_at(&all, delays)
    }

    fn mark_changed(&self, before: &[u64], marked: &mut [bool]) {
        let tables = &self.tables;
        if !tables.mark_changed(before, marked) {
            return;
        }
        // Requests on other processors delay a task with requests only.
        let asking: Vec<u32> =
            (0..tables.rows.len()).filter(|&task| !tables.asked(task).is_empty()).map(|task| task as u32).collect();
        for &other in &asking {
            let before = before[other as usize];
            if before == tables.responses[other as usize] {
                continue;
            }
            let neighbours = tables.cluster(tables.rows[other as usize].cluster as usize);
            for &task in asking.iter().chain(neighbours) {
                let marked = &mut marked[task as usize];
                *marked = *marked || tables.meets_other_jobs(task, other, before);
            }
        }
    }

    fn delays_again(&mut self, marked: &mut [bool], delays: &mut [Delay]) -> Result<(), Failure> {
        let order = self.tables.order.iter().enumerate();
        let places: Vec<usize> = order.filter(|&(_, &task)| marked[task as usize]).map(|(place, _)| place).collect();
        self.delays_at(&places, delays)
    }

    fn charge(&self, delay: &Delay) -> Option<Charge> {
        Charge::of_suspensions(delay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::random;

    #[test]
    fn the_vector_bounds_equal_the_scalar_ones() {
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
