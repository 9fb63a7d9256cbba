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

use super::tables::{Entry, Grouping, Tables, Tally};
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
    let delays: Vec<Delay> = (0..tasks.len())
        .map(|task| {
            let mut remote = Tally::default();
            for asked in tables.asked(task) {
                let (entries, each) = (tables.entries_of(asked.resource), u64::from(asked.count));
                remote.add(tables.longest(entries, task, tables.responses[task], u64::MAX, each));
            }
            Delay::new(remote, Tally::default(), Tally::default())
        })
        .collect();
    fitting(&delays)?;
    Ok(delays)
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
                by_length.push(Entry { length: asked.length, task: task as u32, count: asked.count });
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
        Ok(Self { tables, by_length, clusters, blocked })
    }

    /// The `total` longest requests of `task` within `t`.
    #[inline]
    fn longest_of(&self, task: u32, t: u64, total: u64) -> Tally {
        let mut tally = Tally::default();
        let mut left = total;
        for entry in &self.by_length[self.tables.asked_range(task as usize)] {
            let requests = self.tables.requests(*entry, t, left);
            tally.count(requests, entry.length);
            left -= requests;
            if left == 0 {
                break;
            }
        }
        tally
    }

    fn delay(&mut self, task: usize) -> Delay {
        let (row, t) = (self.tables.rows[task], self.tables.responses[task]);
        self.blocked.fill((0, 0));
        let (mut issued, mut direct) = (0, 0_u64);
        for asked in self.tables.asked(task) {
            let count = u64::from(asked.count);
            issued += count;
            for group in self.tables.groups(asked.resource) {
                let (d, e) = &mut self.blocked[group.cluster as usize];
                *e += count;
                for entry in self.tables.entries(*group) {
                    if entry.task as usize != task {
                        *d += self.tables.requests(*entry, t, count);
                    }
                }
            }
        }
        let mut remote = Tally::default();
        for (cluster, &(d, e)) in self.blocked.iter().enumerate() {
            direct += d;
            let each = d.min(e);
            if each == 0 || cluster == row.cluster as usize {
                continue;
            }
            for &other in self.tables.cluster(cluster) {
                remote.add(self.longest_of(other, t, each));
            }
            if let Some(all) = self.clusters.get(cluster) {
                remote.add(self.tables.longest(all, task, t, d, d));
            }
        }
        let arrivals = issued.min(direct) + 1;
        let mut local = Tally::default();
        for &other in self.tables.cluster(row.cluster as usize).iter().rev() {
            if self.tables.rows[other as usize].priority > row.priority {
                break;
            }
            if other as usize != task {
                local.add(self.longest_of(other, t, arrivals));
            }
        }
        Delay::new(remote, local, Tally::default())
    }
}

impl Protocol for FmlpPlus {
    fn set_responses(&mut self, responses: &[u64]) -> Result<(), Failure> {
        self.tables.set_responses(responses)
    }

    fn delays(&mut self, delays: &mut [Delay]) -> Result<(), Failure> {
        for (task, delay) in delays.iter_mut().enumerate() {
            *delay = self.delay(task);
        }
        fitting(delays)
    }

    fn charge(&self, delay: &Delay) -> Option<Charge> {
        Some(Charge { suspended: delay.remote?, blocked: delay.local, executed: 0 })
    }
}
