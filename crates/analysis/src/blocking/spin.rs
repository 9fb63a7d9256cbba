//! FIFO spinlocks, where jobs wait and hold without preemption, and reader-writer spinlocks.
//!
//! Scheduling is partitioned, clustered or (with one cluster) global. The analysis is holistic: it bounds the spinning
//! of all requests of a job together, and adds it to the execution of the job. The source is Brandenburg, *Scheduling
//! and locking in multiprocessor real-time operating systems*, dissertation, 2011, chapters 5 and 6.
//!
//! ```text
//! remote  = sum over q, and clusters k, of the longest requests of others on k for q:
//!           at most N(i,q) of each task, N(i,q) c(k) in all
//! arrival = max over other tasks l on i's cluster, no more urgent, of the longest span of l
//! ```
//! c(k) is the number of processors of the cluster, less one for i's own cluster: one request of each other processor
//! can precede that of i. A span is the wait of one request and its section. Under partitioned scheduling this is the
//! MSRP for global resources.
//!
//! Readers and writers are covered by [`task_fair`] (in the order of requests; adjacent readers read together) and
//! [`phase_fair`] (read and write phases alternate; Brandenburg, Anderson, *Spin-based reader-writer synchronization
//! for multiprocessor real-time systems*, Real-Time Systems 46(1), 2010).
//!
//! # Examples
//! ```
//! use lockwright_analysis::blocking::{Platform, spin};
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
//! let platform = Platform { clusters: 2, processors: 1, interrupts: None };
//! assert_eq!(spin::fifo(&sharing, platform)?[0].remote, Some(5));
//! # Ok::<(), lockwright_analysis::Failure>(())
//! ```

use super::delay::{Charge, Delay, DelayBounds, Platform, fitting, once};
use crate::rows::requests::{Entry, Group, Grouping, RequestTables, Window, longest, longest_of_each};
use crate::rows::simd::{Crowd, Fair, Turns};
use crate::rows::tally::{Arithmetic, Fits, Saturates, Tally};
use crate::{Demand, Failure, Sharer, Sharing};
use lockwright_model::TaskId;

/// Returns bounds on the blocking of one job of each task under non-preemptive FIFO spinlocks, in the order of the
/// tasks.
///
/// For global scheduling, all tasks must be in one cluster with all processors. Times are in the unit of the input. The
/// source is in the [module](self).
///
/// # Errors
/// Returns [`Failure::Unsupported`] for a task whose cluster does not exist, a period of 0 or a resource that a task
/// names twice, [`Failure::Overload`] without processors, and [`Failure::Overflow`] if a number does not fit.
pub fn fifo(sharing: &Sharing, platform: Platform) -> Result<Vec<Delay>, Failure> {
    once(&mut Fifo::new(sharing, platform)?, sharing.tasks.len())
}

/// The bounds of [`fifo`] as a function of response times, for [`joint`](super::joint) under partitioned scheduling.
#[derive(Debug)]
pub struct Fifo {
    tables: RequestTables,
    /// The number of processors of each cluster.
    processors: Vec<u64>,
    /// Whether requests of a task's own cluster count if it has several processors. Only a mutant sets this to false.
    own: bool,
    remote: Vec<Tally>,
    spans: Vec<Tally>,
    /// The spans if each cluster has one processor.
    spans_of_each: Option<Vec<Tally>>,
    crowd: Crowd<Fair>,
    /// If resources of one processor are not spinlocks, the longest wait of each task for them at its arrival.
    ceilings: Option<Vec<u64>>,
}

/// By task: the wait of all requests, and the longest span of one.
#[derive(Clone, Debug)]
pub(crate) struct Waits(Vec<(Tally, Tally)>);

impl Waits {
    /// Returns the waits of tasks without requests.
    pub(crate) fn none(count: usize) -> Self {
        Self(vec![Default::default(); count])
    }
}

impl Fifo {
    /// Creates the bounds.
    ///
    /// # Errors
    /// Returns the errors of [`fifo`].
    pub fn new(sharing: &Sharing, platform: Platform) -> Result<Self, Failure> {
        Self::build(sharing, platform, false)
    }

    /// Creates the bounds for clusters of the given sizes. `own` is false if requests of a task's own cluster do not
    /// count.
    pub(crate) fn in_clusters(sharing: &Sharing, size: impl Fn(u16) -> u64, own: bool) -> Result<Self, Failure> {
        let clusters = sharing.tasks.iter().map(|task| task.cluster.saturating_add(1)).max().unwrap_or(0);
        // With one processor per cluster, the spans would be those of partitioned systems, so this passes two.
        let mut fifo = Self::new(sharing, Platform { clusters, processors: 2, interrupts: None })?;
        fifo.processors = fifo.tables.cluster_ids.iter().map(|&cluster| size(cluster)).collect();
        fifo.own = own;
        Ok(fifo)
    }

    /// Creates the bounds with resources of one processor under the stack resource policy.
    pub(crate) fn with_ceilings(sharing: &Sharing, interrupts: Option<u16>) -> Result<Self, Failure> {
        let clusters = sharing.tasks.iter().map(|task| task.cluster.saturating_add(1)).max().unwrap_or(0);
        Self::build(sharing, Platform { clusters, processors: 1, interrupts }, true)
    }

    /// Replaces the lengths of the requests of these tasks, in clusters. `sharing` differs from the former one in
    /// lengths alone, and perhaps in response times.
    pub(crate) fn set_lengths(&mut self, sharing: &Sharing, tasks: &[TaskId]) {
        debug_assert!(self.spans_of_each.is_none() && self.ceilings.is_none());
        self.tables.set_lengths(sharing, tasks);
    }

    /// Computes the delays in clusters for these response times. `waits` are those of the response times `before`, and
    /// of the same requests except those of tasks whose response time differs; without `before`, they are unknown. The
    /// waits of a task depend on the requests for its resources, and on the response times of the tasks that have them.
    pub(crate) fn delays_again(
        &mut self,
        responses: &[u64],
        before: Option<&[u64]>,
        waits: &mut Waits,
        delays: &mut [Delay],
    ) -> Result<(), Failure> {
        self.tables.set_responses(responses)?;
        let tables = &self.tables;
        let mut is_other = vec![before.is_none(); tables.resource_count()];
        let pairs = before.into_iter().flatten().zip(responses).enumerate();
        for (task, _) in pairs.filter(|(_, (before, now))| before != now) {
            tables.asked(task).iter().for_each(|asked| is_other[asked.resource as usize] = true);
        }
        for (task, (wait, delay)) in waits.0.iter_mut().zip(&mut *delays).enumerate() {
            if tables.asked(task).iter().any(|asked| is_other[asked.resource as usize]) {
                *wait = if tables.fits() { self.of::<Fits>(task) } else { self.of::<Saturates>(task) };
            }
            self.spans[task] = wait.1;
            *delay = Delay::new(wait.0, Tally::default(), Tally::default());
        }
        at_arrival(&self.tables, &self.spans, delays);
        fitting(delays)
    }

    fn build(sharing: &Sharing, platform: Platform, has_ceilings: bool) -> Result<Self, Failure> {
        platform.holds(&sharing.tasks)?;
        let tasks = &sharing.tasks;
        let tables = RequestTables::new(tasks, |task| &tasks[task].requests, Grouping::Clusters)?;
        let processors = processors(&tables, platform);
        let spans = vec![Tally::default(); tasks.len()];
        let partitioned = processors.iter().all(|processors| *processors == 1);
        let spans_of_each = partitioned.then(|| spans_of_each(&tables, has_ceilings));
        let ceilings = has_ceilings.then(|| ceilings(&tables));
        let (remote, crowd) = (spans.clone(), Crowd::new(tasks.len()));
        Ok(Self { tables, processors, own: true, remote, spans, spans_of_each, crowd, ceilings })
    }
}

impl Fifo {
    /// Computes all delays except those at the arrival.
    fn remote<A: Arithmetic>(&mut self) {
        self.remote.fill(Tally::default());
        let Some(spans) = &self.spans_of_each else {
            for task in 0..self.spans.len() {
                (self.remote[task], self.spans[task]) = self.of::<A>(task);
            }
            return;
        };
        let tables = &self.tables;
        for resource in 0..tables.resource_count() as u32 {
            let entries = tables.entries_of(resource);
            if tables.is_small() {
                let askers = entries.iter().map(|entry| {
                    let (key, issued) = (entry.cluster as i16, entry.count as i16);
                    tables.asker(entry.task, Turns { key, each: issued, total: issued })
                });
                let steps = entries.iter().map(|entry| tables.turn(entry, entry.cluster));
                self.crowd.delays(steps, askers, |place, tally| {
                    self.remote[entries[place].task as usize].add(tally);
                });
            } else {
                for entry in entries {
                    let (task, issued) = (entry.task as usize, u64::from(entry.count));
                    let (window, cluster) = (tables.window(task), |entry: &Entry| entry.cluster);
                    self.remote[task].add(longest_of_each::<A>(entries, cluster, window, entry.cluster, issued));
                }
            }
        }
        self.spans.copy_from_slice(spans);
        // A task without a job in the window does not precede others.
        for task in 0..self.spans.len() {
            if self.tables.responses[task] == 0 {
                self.spans[task] = self.of::<A>(task).1;
            }
        }
    }

    /// Returns the wait of all requests of `task`, and its longest span.
    fn of<A: Arithmetic>(&self, task: usize) -> (Tally, Tally) {
        let window = self.tables.window(task);
        let (mut remote, mut span) = (Tally::default(), Tally::default());
        for asked in self.tables.asked(task) {
            if self.ceilings.is_some() && self.tables.groups(asked.resource).len() == 1 {
                continue;
            }
            let issued = u64::from(asked.count);
            let whose = (self.processors.as_slice(), self.own);
            let (wait, mut once) = waits::<A>(&self.tables, whose, window, task, asked.resource, issued);
            remote.add(wait);
            once.count::<A>(1, asked.length);
            span = span.max(once);
        }
        (remote, span)
    }
}

/// Returns for each task the longest section of a less urgent task on its processor, on a resource of that processor
/// whose ceiling is at least its priority.
pub(crate) fn ceilings(tables: &RequestTables) -> Vec<u64> {
    let mut longest = vec![0; tables.rows.len()];
    for resource in 0..tables.resource_count() as u32 {
        let [group] = tables.groups(resource) else { continue };
        let entries = tables.entries(*group);
        let priority = |task: u32| tables.rows[task as usize].priority;
        let ceiling = entries.iter().map(|entry| priority(entry.task)).max().unwrap_or(0);
        for &task in tables.cluster(group.cluster as usize).iter().rev() {
            if priority(task) > ceiling {
                break;
            }
            // The longest entries come first.
            let lower = entries.iter().find(|entry| entry.task != task && priority(entry.task) <= priority(task));
            let own = &mut longest[task as usize];
            *own = lower.map_or(0, |entry| entry.length).max(*own);
        }
    }
    longest
}

impl DelayBounds for Fifo {
    fn set_responses(&mut self, responses: &[u64]) -> Result<(), Failure> {
        self.tables.set_responses(responses)
    }

    fn delays(&mut self, delays: &mut [Delay]) -> Result<(), Failure> {
        if self.tables.fits() {
            self.remote::<Fits>();
        } else {
            self.remote::<Saturates>();
        }
        for (delay, remote) in delays.iter_mut().zip(&self.remote) {
            *delay = Delay::new(*remote, Tally::default(), Tally::default());
        }
        at_arrival(&self.tables, &self.spans, delays);
        for (delay, ceiling) in delays.iter_mut().zip(self.ceilings.iter().flatten()) {
            delay.arrival = delay.arrival.max(*ceiling);
        }
        fitting(delays)
    }

    fn charge(&self, delay: &Delay) -> Option<Charge> {
        Some(Charge { suspended: 0, blocked: delay.arrival, executed: delay.remote? })
    }
}

/// Returns the number of processors of each cluster that execute jobs.
pub(crate) fn processors(tables: &RequestTables, platform: Platform) -> Vec<u64> {
    tables.cluster_ids.iter().map(|cluster| platform.parallelism(*cluster)).collect()
}

/// Returns the number of requests of a cluster that can precede one request of `task`.
#[inline]
fn before(tables: &RequestTables, processors: &[u64], task: usize, group: Group) -> u64 {
    let own = tables.rows[task].cluster == group.cluster;
    processors[group.cluster as usize].saturating_sub(u64::from(own))
}

/// Returns the longest span of each task, if each cluster has one processor and each task has a job. It is then
/// constant.
fn spans_of_each(tables: &RequestTables, ceilings: bool) -> Vec<Tally> {
    let mut spans = vec![Tally::default(); tables.rows.len()];
    for resource in 0..tables.resource_count() as u32 {
        let groups = tables.groups(resource);
        if ceilings && groups.len() == 1 {
            continue;
        }
        let longest = |group: &Group| tables.entries(*group)[0].length;
        let sum = groups.iter().map(longest).fold(0, u64::saturating_add);
        for group in groups {
            let others = if sum == u64::MAX { sum } else { sum - longest(group) };
            for entry in tables.entries(*group) {
                let span = Tally { length: others.saturating_add(entry.length), requests: groups.len() as u64 };
                let its = &mut spans[entry.task as usize];
                *its = span.max(*its);
            }
        }
    }
    spans
}

/// Returns how long `task` waits for a resource in `issued` requests, and in one of them.
#[inline]
fn waits<A: Arithmetic>(
    tables: &RequestTables,
    (processors, own): (&[u64], bool),
    window: Window,
    task: usize,
    resource: u32,
    issued: u64,
) -> (Tally, Tally) {
    let (mut all, mut once) = (Tally::default(), Tally::default());
    for group in tables.groups(resource) {
        let entries = tables.entries(*group);
        let processors = before(tables, processors, task, *group);
        if processors > 0 && (own || group.cluster != tables.rows[task].cluster) {
            all.add(longest::<A>(entries, task, window, issued.saturating_mul(processors), issued));
            once.add(longest::<A>(entries, task, window, processors, 1));
        }
    }
    (all, once)
}

/// Adds to each task its wait at the arrival: the longest span of another task on its cluster that is no more urgent.
pub(crate) fn at_arrival(tables: &RequestTables, spans: &[Tally], delays: &mut [Delay]) {
    for cluster in 0..tables.cluster_count() {
        let tasks = tables.cluster(cluster);
        let priority = |place: usize| tables.rows[tasks[place] as usize].priority;
        // The longest span of the less urgent tasks.
        let mut below = Tally::default();
        let mut end = tasks.len();
        while end > 0 {
            let mut begin = end - 1;
            while begin > 0 && priority(begin - 1) == priority(end - 1) {
                begin -= 1;
            }
            let equals = &tasks[begin..end];
            for &task in equals {
                let others = equals.iter().filter(|other| **other != task).map(|other| spans[*other as usize]);
                let arrival = others.max().unwrap_or_default().max(below);
                let delay = &mut delays[task as usize];
                delay.arrival = arrival.length;
                delay.requests = delay.requests.saturating_add(arrival.requests);
            }
            below = equals.iter().map(|task| spans[*task as usize]).max().unwrap_or_default().max(below);
            end = begin;
        }
    }
}

/// Tasks with requests for reading and for writing.
///
/// This is a plain value: users write it as a literal, and it gets no further fields.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct ReadersWriters {
    /// The tasks. Their requests are those for writing.
    pub tasks: Vec<Sharer>,
    /// The requests of each task for reading.
    pub reads: Vec<Vec<Demand>>,
}

impl ReadersWriters {
    fn is_whole(&self) -> Result<(), Failure> {
        if self.reads.len() == self.tasks.len() {
            Ok(())
        } else {
            let task = self.reads.len().min(self.tasks.len());
            Err(Failure::Unsupported { task, what: "its requests for reading are missing" })
        }
    }

    /// Returns the resources of a task, with its writes and reads of each.
    fn accesses(&self, task: usize) -> Vec<Accesses> {
        let mut accesses: Vec<Accesses> = self.tasks[task]
            .requests
            .iter()
            .map(|write| Accesses {
                resource: write.resource,
                writes: u64::from(write.count),
                write_length: write.length,
                reads: 0,
                read_length: 0,
            })
            .collect();
        for read in &self.reads[task] {
            let (reads, read_length) = (u64::from(read.count), read.length);
            match accesses.iter_mut().find(|access| access.resource == read.resource) {
                Some(access) => (access.reads, access.read_length) = (reads, read_length),
                None => {
                    accesses.push(Accesses { resource: read.resource, writes: 0, write_length: 0, reads, read_length });
                }
            }
        }
        accesses.retain(|access| access.writes + access.reads > 0);
        accesses
    }

    /// Returns the requests as if no task could read together with another.
    fn as_mutexes(&self) -> Result<Vec<Vec<Demand>>, Failure> {
        let demand = |access: &Accesses| {
            let count = u32::try_from(access.writes + access.reads).map_err(|_| Failure::Overflow)?;
            let write_length = if access.writes > 0 { access.write_length } else { 0 };
            let read_length = if access.reads > 0 { access.read_length } else { 0 };
            Ok(Demand { resource: access.resource, count, length: write_length.max(read_length) })
        };
        (0..self.tasks.len()).map(|task| self.accesses(task).iter().map(demand).collect()).collect()
    }
}

/// The accesses of a task to a resource.
#[derive(Clone, Copy, Debug)]
struct Accesses {
    resource: u16,
    writes: u64,
    write_length: u64,
    reads: u64,
    read_length: u64,
}

/// Returns bounds on the blocking of one job of each task under phase-fair reader-writer spinlocks, in the order of the
/// tasks.
///
/// ```text
/// writers: of each cluster the longest writes, at most reads + writes of each task, reads + writes c(k) in all
/// readers: as many phases as writers, and one more for each own write; at most reads + writes (m - 1);
///          in these phases, the longest reads of other processors
/// ```
/// reads and writes are the numbers of requests of the task. Times are in the unit of the input. The source is in the
/// [module](self).
///
/// # Errors
/// Returns the errors of [`fifo`], and [`Failure::Unsupported`] if the requests for reading of a task are missing.
pub fn phase_fair(sharing: &ReadersWriters, platform: Platform) -> Result<Vec<Delay>, Failure> {
    let (tables, reads) = of_readers_writers(sharing, platform)?;
    let parallel = processors(&tables, platform);
    let processors = u64::from(platform.clusters) * u64::from(platform.processors);
    let wait = |task: usize, access: Accesses, writes: u64, reads_issued: u64| {
        let window = tables.window(task);
        let mut wait = Tally::default();
        if let Some(place) = tables.resource(access.resource) {
            for group in tables.groups(place) {
                let c = before(&tables, &parallel, task, *group);
                if c > 0 {
                    let (total, each) = (reads_issued.saturating_add(writes.saturating_mul(c)), reads_issued + writes);
                    wait.add(longest::<Saturates>(tables.entries(*group), task, window, total, each));
                }
            }
        }
        let most = reads_issued.saturating_add(writes.saturating_mul(processors.saturating_sub(1)));
        let phases = wait.requests.saturating_add(writes).min(most);
        if let Some(place) = reads.resource(access.resource) {
            let cluster = reads.rows[task].cluster;
            let mut left = phases;
            for entry in reads.entries_of(place) {
                // On a cluster of one processor, no other task reads while the task waits.
                let other = entry.task as usize;
                if other == task || (platform.processors == 1 && reads.rows[other].cluster == cluster) {
                    continue;
                }
                let requests = window.jobs::<Saturates>(entry.task).saturating_mul(u64::from(entry.count)).min(left);
                wait.count::<Saturates>(requests, entry.length);
                left -= requests;
                if left == 0 {
                    break;
                }
            }
        }
        wait
    };
    readers_writers(sharing, &tables, |task, access| {
        let all = wait(task, access, access.writes, access.reads);
        let mut span = Tally::default();
        if access.writes > 0 {
            let mut once = wait(task, access, 1, 0);
            once.count::<Saturates>(1, access.write_length);
            span = span.max(once);
        }
        if access.reads > 0 {
            let mut once = wait(task, access, 0, 1);
            once.count::<Saturates>(1, access.read_length);
            span = span.max(once);
        }
        (all, span)
    })
}

/// Returns bounds on the blocking of one job of each task under task-fair reader-writer spinlocks, in the order of the
/// tasks.
///
/// Writers count as under [`fifo`], each with a preceding read phase. If that exceeds the bound with all requests as
/// writes, the latter holds. Times are in the unit of the input. The source is in the [module](self).
///
/// # Errors
/// Returns the errors of [`fifo`], and [`Failure::Unsupported`] if the requests for reading of a task are missing.
pub fn task_fair(sharing: &ReadersWriters, platform: Platform) -> Result<Vec<Delay>, Failure> {
    let (tables, reads) = of_readers_writers(sharing, platform)?;
    let mutexes = sharing.as_mutexes()?;
    let mutexes = RequestTables::new(&sharing.tasks, |task| &mutexes[task], Grouping::Clusters)?;
    let processors = processors(&tables, platform);
    let mut of_clusters = vec![0; reads.cluster_count()];
    let mut readers = |window: Window, task: usize, access: Accesses, issued: u64, phases: u64| {
        let Some(place) = reads.resource(access.resource) else { return Tally::default() };
        let per_task = phases.min(issued);
        let c = u64::from(platform.processors);
        of_clusters.fill(issued.saturating_mul(c));
        of_clusters[reads.rows[task].cluster as usize] = issued.saturating_mul(c - 1);
        let others = reads.entries_of(place).iter().filter(|entry| entry.task as usize != task);
        let mut left = phases;
        let mut tally = Tally::default();
        for entry in others {
            let of_cluster = &mut of_clusters[reads.rows[entry.task as usize].cluster as usize];
            let most = per_task.min(*of_cluster).min(left);
            if most > 0 {
                let requests = window.jobs::<Saturates>(entry.task).saturating_mul(u64::from(entry.count)).min(most);
                tally.count::<Saturates>(requests, entry.length);
                *of_cluster -= requests;
                left -= requests;
            }
        }
        tally
    };
    readers_writers(sharing, &tables, |task, access| {
        let window = tables.window(task);
        let issued = access.writes + access.reads;
        let of = |tables: &RequestTables| match tables.resource(access.resource) {
            Some(place) => waits::<Saturates>(tables, (&processors, true), window, task, place, issued),
            None => Default::default(),
        };
        let (mutex, mut mutex_once) = of(&mutexes);
        let own = |is: u64, length: u64| if is > 0 { length } else { 0 };
        let (write_length, read_length) =
            (own(access.writes, access.write_length), own(access.reads, access.read_length));
        mutex_once.count::<Saturates>(1, write_length.max(read_length));
        let (writers, writers_once) = of(&tables);
        let mut all = writers;
        all.add(readers(window, task, access, issued, writers.requests.saturating_add(access.writes)));
        let mut own_phase = Tally::default();
        if access.writes > 0 {
            let mut once = readers(window, task, access, 1, writers.requests.saturating_add(1));
            once.count::<Saturates>(1, write_length);
            own_phase = own_phase.max(once);
        }
        if access.reads > 0 {
            let mut once = readers(window, task, access, 1, writers.requests);
            once.count::<Saturates>(1, read_length);
            own_phase = own_phase.max(once);
        }
        let mut once = writers_once;
        once.add(own_phase);
        (all.min(mutex), once.min(mutex_once))
    })
}

/// Returns the tables of writes by cluster, and of all reads together.
fn of_readers_writers(sharing: &ReadersWriters, platform: Platform) -> Result<(RequestTables, RequestTables), Failure> {
    sharing.is_whole()?;
    platform.holds(&sharing.tasks)?;
    let tasks = &sharing.tasks;
    Ok((
        RequestTables::new(tasks, |task| &tasks[task].requests, Grouping::Clusters)?,
        RequestTables::new(tasks, |task| &sharing.reads[task], Grouping::Together)?,
    ))
}

/// Sums up the results of `wait` for each task and resource: the wait of all requests, and the longest span of one.
fn readers_writers(
    sharing: &ReadersWriters,
    tables: &RequestTables,
    mut wait: impl FnMut(usize, Accesses) -> (Tally, Tally),
) -> Result<Vec<Delay>, Failure> {
    let mut delays = Vec::with_capacity(sharing.tasks.len());
    let mut spans = Vec::with_capacity(sharing.tasks.len());
    for task in 0..sharing.tasks.len() {
        let (mut remote, mut span) = (Tally::default(), Tally::default());
        for access in sharing.accesses(task) {
            let (all, once) = wait(task, access);
            remote.add(all);
            span = span.max(once);
        }
        delays.push(Delay::new(remote, Tally::default(), Tally::default()));
        spans.push(span);
    }
    at_arrival(tables, &spans, &mut delays);
    fitting(&delays)?;
    Ok(delays)
}

/// Returns the `total` longest requests of the entries, at most as many of each as its limit.
pub(crate) fn longest_limited(limited: &mut [(Entry, u64)], total: u64) -> Tally {
    limited.sort_unstable_by_key(|(entry, _)| std::cmp::Reverse(entry.length));
    let mut tally = Tally::default();
    let mut left = total;
    for (entry, limit) in limited {
        let requests = left.min(*limit);
        tally.count::<Saturates>(requests, entry.length);
        left -= requests;
    }
    tally
}

/// Finds the requests that can precede `issued` requests of `task`, with their numbers.
pub(crate) fn candidates(
    tables: &RequestTables,
    processors: &[u64],
    window: Window,
    task: usize,
    resource: u32,
    issued: u64,
    into: &mut Vec<(Entry, u64)>,
) {
    into.clear();
    for group in tables.groups(resource) {
        let mut left = issued.saturating_mul(before(tables, processors, task, *group));
        for entry in tables.entries(*group).iter().filter(|entry| entry.task as usize != task) {
            let requests =
                window.jobs::<Saturates>(entry.task).saturating_mul(u64::from(entry.count)).min(issued).min(left);
            if requests > 0 {
                into.push((*entry, requests));
            }
            left -= requests;
        }
    }
}
