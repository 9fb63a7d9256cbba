//! One processor: its jobs within an interval, and the points at which their demand may change.

use super::super::view::{Entry, View, add_product, product};
use super::super::{Work, sum};
use crate::Failure;
use crate::rows::mutant::{Mutant, Omission};

/// How jobs share resources under partitioned EDF.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Edf {
    /// MSRP: non-preemptive spinning in FIFO order.
    Msrp,
    /// Preemptable spinning in FIFO order. A preempted job issues its request again.
    SpinFifoPreemptable,
    /// Lock-free objects with non-preemptive commit loops.
    LockFree,
}

/// The jobs that count, and the delay at the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mode {
    /// Jobs with arrival and deadline within the interval; at the start a job with a later deadline.
    Due,
    /// Jobs with arrival and deadline within the interval; at the start any local job.
    DueAny,
    /// Jobs that arrive within the interval; none at the start.
    Arriving,
}

/// One processor under test.
pub(super) struct Processor<'a> {
    pub(super) view: &'a View,
    pub(super) edf: Edf,
    /// The tasks of this processor.
    pub(super) local: Vec<usize>,
    pub(super) remote: Vec<usize>,
    pub(super) local_only: Vec<bool>,
    /// The shortest deadline of the local users of each resource.
    pub(super) ceilings: Vec<u64>,
    /// The requests of remote tasks for resources that local tasks use, the longest section first.
    pub(super) spun: Vec<Spun>,
    omission: Omission<Mutant>,
}

/// The requests of one job of a remote task for a resource that local tasks use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spun {
    pub(super) entry: Entry,
    /// The number of the pair of its processor and its resource.
    pub(super) pool: usize,
    /// The most requests of local jobs for the resource while one job of the remote task is pending.
    pub(super) each: u64,
}

impl<'a> Processor<'a> {
    /// Looks at each pair of a remote and a local request for one resource, which counts as `work`.
    pub(super) fn new(
        view: &'a View,
        cluster: usize,
        edf: Edf,
        omission: Omission<Mutant>,
        work: &mut Work,
    ) -> Result<Self, Failure> {
        let (local, remote) = (0..view.tasks()).partition(|&x| view.rows[x].cluster == cluster);
        let mut ceilings = vec![u64::MAX; view.resources];
        // By resource: the local tasks that request it, and how often a job does.
        let mut users: Vec<Vec<(usize, u64)>> = vec![Vec::new(); view.resources];
        for &i in &local {
            for request in view.requests(i) {
                let ceiling = &mut ceilings[request.resource];
                *ceiling = view.rows[i].deadline.min(*ceiling);
                users[request.resource].push((i, request.count));
            }
        }
        let local_only = view.local_only();
        let mut processor = Self { view, edf, local, remote, local_only, ceilings, spun: Vec::new(), omission };
        for &entry in view.entries.iter().filter(|entry| view.rows[entry.task].cluster != cluster) {
            let (x, q) = (&view.rows[entry.task], entry.resource);
            if users[q].is_empty() {
                continue;
            }
            work.spend(entry.task, users[q].len())?;
            let mut each = 0;
            for &(i, count) in &users[q] {
                add_product(&mut each, count, processor.jobs_within(i, sum(x.deadline, x.jitter)?)?)?;
            }
            processor.spun.push(Spun { entry, pool: x.cluster * view.resources + q, each });
        }
        Ok(processor)
    }

    pub(super) fn is_mutant(&self, mutant: Mutant) -> bool {
        self.omission.is(mutant)
    }

    /// Returns the number of requests and tasks that one point looks at, up to four times each, and a quarter of the
    /// numbers that it clears.
    pub(super) fn rows(&self) -> usize {
        let own: usize = self.local.iter().map(|&i| self.view.requests(i).len()).sum();
        4 * (self.spun.len() + self.view.tasks() + own) + self.view.clusters * self.view.resources / 4
    }

    /// Returns dbf(t).
    pub(super) fn due(&self, t: u64) -> Result<u64, Failure> {
        let mut due = 0;
        for &i in &self.local {
            add_product(&mut due, self.jobs_due(i, t)?, self.view.rows[i].cost)?;
        }
        Ok(due)
    }

    /// Returns the number of jobs of a local task with arrival and deadline within t.
    pub(super) fn jobs_due(&self, i: usize, t: u64) -> Result<u64, Failure> {
        let row = &self.view.rows[i];
        Ok(sum(t, row.period)?.saturating_sub(row.deadline) / row.period)
    }

    pub(super) fn jobs(&self, i: usize, t: u64, mode: Mode) -> Result<u64, Failure> {
        match mode {
            Mode::Due | Mode::DueAny => self.jobs_due(i, t),
            Mode::Arriving => Ok(self.view.jobs_fresh(i, t)),
        }
    }

    /// Returns the number of jobs of any task that execute within an interval of length t: ceil((t + D + J) / T).
    pub(super) fn jobs_within(&self, x: usize, t: u64) -> Result<u64, Failure> {
        let row = &self.view.rows[x];
        Ok(sum(t, sum(row.deadline, row.jitter)?)?.div_ceil(row.period))
    }

    /// Returns [`jobs_within`](Self::jobs_within) of each remote task, by task. Local tasks have 0.
    pub(super) fn jobs_of_remote(&self, t: u64) -> Result<Vec<u64>, Failure> {
        let mut jobs = vec![0; self.view.tasks()];
        for &x in &self.remote {
            jobs[x] = self.jobs_of_one(x, t)?;
        }
        Ok(jobs)
    }

    /// Returns whether a local task may delay at the start.
    pub(super) fn delays_at_start(&self, i: usize, t: u64, mode: Mode) -> bool {
        match mode {
            Mode::Due => self.view.rows[i].deadline.saturating_add(self.view.rows[i].jitter) > t,
            Mode::DueAny => true,
            Mode::Arriving => false,
        }
    }

    /// Returns the last point before `end` at which dbf or B may change: a deadline, an arrival, or one more remote
    /// job.
    pub(super) fn point_before(&self, end: u64) -> Result<Option<u64>, Failure> {
        let mut last = None;
        // Considers the greatest `first + k * period` before `end`.
        let mut see = |first: u64, period: u64| {
            if first < end {
                last = last.max(Some(first + (end - 1 - first) / period * period));
            }
        };
        for &i in &self.local {
            let row = &self.view.rows[i];
            see(row.deadline, row.period);
            // ceil((t + J) / T) increases where t + J = k T + 1.
            see((row.period - row.jitter % row.period + 1) % row.period, row.period);
        }
        for &x in &self.remote {
            let row = &self.view.rows[x];
            // ceil((t + D + J) / T) increases where t + D + J = k T + 1.
            let behind = sum(row.deadline, row.jitter)? % row.period;
            see(sum(row.period - behind, 1)? % row.period, row.period);
        }
        Ok(last)
    }

    /// Returns N(i,q) of local tasks times their jobs, summed by resource.
    pub(super) fn own(&self, t: u64, mode: Mode) -> Result<Vec<u64>, Failure> {
        let mut own = vec![0; self.view.resources];
        for &i in &self.local {
            let jobs = self.jobs(i, t, mode)?;
            for request in self.view.requests(i) {
                add_product(&mut own[request.resource], request.count, jobs)?;
            }
        }
        Ok(own)
    }

    /// Returns the number of requests of a remote task within an interval of length t.
    pub(super) fn issued(&self, x: usize, count: u64, t: u64) -> Result<u64, Failure> {
        product(count, self.jobs_of_one(x, t)?)
    }

    fn jobs_of_one(&self, x: usize, t: u64) -> Result<u64, Failure> {
        if self.is_mutant(Mutant::RemoteCarryIn) {
            return Ok(t.div_ceil(self.view.rows[x].period));
        }
        self.jobs_within(x, t)
    }
}
