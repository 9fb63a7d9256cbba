//! Partitioned EDF: processor demand with blocking that counts a remote request once, however many local jobs it
//! delays.
//!
//! The test is `dbf(t) + B(t) <= t` on each processor, for every t from the shortest deadline to the end L of the
//! longest busy interval, which is the least `L = sum of ceil(L / T) * C + B'(L)`. dbf(t) is the execution of the jobs
//! with arrival and deadline in an interval of length t. B(t) is the most that these jobs are delayed: by requests of
//! others for which their requests wait, and once at the start of the interval by a local job with a later deadline. B'
//! is the same for all jobs that arrive, without the start. Deadlines bound response times.
//!
//! Points are tested from the end. From t the test continues at `dbf(t) + B*(t)` if that is less, where B* is B with
//! any local job at the start, which never decreases as t grows. Otherwise it continues at the next point where B or
//! dbf may change. (Continuing at `dbf(t) + B(t)`, as QPA does, may miss points, because B decreases where a deadline
//! is passed.)
//!
//! # Reference
//! A. Biondi, B. Brandenburg, "Lightweight real-time synchronization under P-EDF on symmetric and asymmetric
//! multiprocessors", ECRTS 2016.

mod lock_free;
mod msrp;
mod processor;
mod spin;

use super::view::{View, add_product};
use super::{Counted, Work, sum};
use crate::rows::mutant::{Mutant, Omission};
use crate::{Failure, Limit, Sharing};
pub use processor::Edf;
use processor::{Mode, Processor};

/// The most points at which the demand of one processor is tested.
pub const POINTS_MAX: u64 = 1_000_000;

/// Tests whether every job meets its deadline under partitioned EDF.
///
/// Clusters are processors. Priorities and the `response` of tasks are ignored. The source is Biondi, Brandenburg,
/// ECRTS 2016.
///
/// # Errors
/// Returns [`Failure::Demand`] if a deadline may be missed, [`Failure::Diverged`] after [`POINTS_MAX`] points of one
/// processor, [`Failure::Unsupported`] if a period is 0, and [`Failure::Overflow`] if a number does not fit.
pub fn p_edf(sharing: &Sharing, edf: Edf) -> Result<(), Failure> {
    test_all(sharing, edf, Omission::NOTHING)
}

/// Like [`p_edf`], with one term omitted: a mutant, for tests of the tests.
///
/// # Errors
/// Returns the errors of [`p_edf`].
#[cfg(feature = "mutants")]
pub fn p_edf_mutant(sharing: &Sharing, edf: Edf, mutant: Mutant) -> Result<(), Failure> {
    test_all(sharing, edf, Omission::of(mutant))
}

fn test_all(sharing: &Sharing, edf: Edf, omission: Omission<Mutant>) -> Result<(), Failure> {
    let view = View::new(sharing, &[])?;
    let mut work = Work::of_all(&view);
    for cluster in 0..view.clusters {
        Processor::new(&view, cluster, edf, omission, &mut work)?.test(POINTS_MAX, &mut work)?;
    }
    Ok(())
}

/// The test of MSRP for the processors of one system, with limited work.
pub(crate) struct MsrpDemand {
    view: View,
    /// The requests that the test of one processor may look at.
    most: u64,
    omission: Omission<Mutant>,
}

/// The requests and sections that the program counts in one interval of one processor.
pub(crate) struct Delayed {
    /// The requests for which local jobs spin.
    pub(crate) spun: Vec<Counted>,
    /// The section of a later deadline that delays at the start.
    pub(crate) start: Option<Start>,
}

/// A section that delays at the start of an interval.
#[derive(Clone, Copy)]
pub(crate) struct Start {
    pub(crate) task: usize,
    /// By its own number.
    pub(crate) resource: u16,
    pub(crate) length: u64,
    /// The spinning before the section, which is among the requests of [`Delayed::spun`].
    pub(crate) spin: u64,
}

impl MsrpDemand {
    /// Creates the test. A job of task x is released up to `lateness[x]` after its arrival, and its deadline in
    /// `sharing` counts from the latest release. The test of one processor looks at `most` requests.
    ///
    /// # Errors
    /// Returns [`Failure::Unsupported`] if a period is 0.
    pub(crate) fn new(
        sharing: &Sharing,
        lateness: &[u64],
        most: u64,
        omission: Omission<Mutant>,
    ) -> Result<Self, Failure> {
        let mut view = View::new(sharing, &[])?;
        for (row, &late) in view.rows.iter_mut().zip(lateness) {
            row.jitter = late;
        }
        Ok(Self { view, most, omission })
    }

    fn processor(&self, cpu: u16, work: &mut Work) -> Result<Processor<'_>, Failure> {
        Processor::new(&self.view, self.view.cluster(cpu), Edf::Msrp, self.omission, work)
    }

    /// Tests one processor. The result holds if all tasks on other processors that share resources with it meet their
    /// deadlines.
    ///
    /// # Errors
    /// Returns the errors of [`p_edf`]. Its limit is on the work.
    pub(crate) fn test(&self, cpu: u16) -> Result<(), Failure> {
        let mut work = Work::limited(&self.view, self.most);
        self.processor(cpu, &mut work)?.test(u64::MAX, &mut work)
    }

    /// Returns the delay of the jobs that are due in an interval of length `t`.
    ///
    /// # Errors
    /// Returns [`Failure::Overflow`] if a number does not fit.
    pub(crate) fn delayed(&self, cpu: u16, t: u64) -> Result<Delayed, Failure> {
        let processor = self.processor(cpu, &mut Work::of_all(&self.view))?;
        let optimum = processor.msrp(t, Mode::Due)?;
        let counted = |(spun, count): (&processor::Spun, u64)| Counted {
            task: spun.entry.task,
            resource: self.view.resource_id(spun.entry.resource),
            count,
            length: spun.entry.length,
            remote: true,
        };
        let spun = processor.spun.iter().zip(optimum.all(&processor)).map(counted).filter(|one| one.count > 0);
        let start = optimum.start.map(|(entry, spin)| Start {
            task: entry.task,
            resource: self.view.resource_id(entry.resource),
            length: entry.length,
            spin,
        });
        Ok(Delayed { spun: spun.collect(), start })
    }

    /// Returns a task of another processor that uses a resource of tasks on `cpu`, and for which `is_late` holds.
    pub(crate) fn partner(&self, cpu: u16, is_late: impl Fn(usize) -> bool) -> Option<usize> {
        let cluster = self.view.cluster(cpu);
        let is_local = |task: usize| self.view.rows[task].cluster == cluster;
        let mut is_used = vec![false; self.view.resources];
        for task in (0..self.view.tasks()).filter(|&task| is_local(task)) {
            self.view.requests(task).iter().for_each(|request| is_used[request.resource] = true);
        }
        let shared = self.view.entries.iter().filter(|entry| is_used[entry.resource] && !is_local(entry.task));
        shared.map(|entry| entry.task).find(|&task| is_late(task))
    }
}

impl Processor<'_> {
    /// BOUND: `most` points, and the work that is left.
    fn test(&self, most: u64, work: &mut Work) -> Result<(), Failure> {
        let Some(shortest) = self.local.iter().map(|&i| self.view.rows[i].deadline).min() else { return Ok(()) };
        let mut left = most;
        let mut count = || {
            work.spend(self.local[0], self.rows())?;
            let limit = Limit { name: "points of one processor's demand", most };
            left = left.checked_sub(1).ok_or(Failure::Diverged { task: self.local[0], limit })?;
            Ok(())
        };
        let mut busy = 1;
        // Each round tests at least one point, or lengthens the busy interval.
        loop {
            let mut longer = self.blocking(busy, Mode::Arriving)?;
            for &i in &self.local {
                add_product(&mut longer, self.view.jobs_fresh(i, busy), self.view.rows[i].cost)?;
            }
            if longer <= busy {
                return Ok(());
            }
            self.test_between(busy.max(shortest), longer, &mut count)?;
            busy = longer;
            count()?;
        }
    }

    /// Tests the points from `first` up to but excluding `end`.
    fn test_between(
        &self,
        first: u64,
        end: u64,
        count: &mut dyn FnMut() -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut next = self.point_before(end)?;
        while let Some(t) = next.filter(|&t| t >= first) {
            count()?;
            let due = self.due(t)?;
            let demand = sum(due, self.blocking(t, Mode::Due)?)?;
            if demand > t {
                return Err(Failure::Demand { interval: t, demand });
            }
            let most = sum(due, self.blocking(t, Mode::DueAny)?)?;
            next = if most < t { Some(most) } else { self.point_before(t)? };
        }
        Ok(())
    }

    fn blocking(&self, t: u64, mode: Mode) -> Result<u64, Failure> {
        match self.edf {
            Edf::Msrp => Ok(self.msrp(t, mode)?.total),
            Edf::SpinFifoPreemptable => self.fifo_preemptable(t, mode),
            Edf::LockFree => self.lock_free(t, mode),
        }
    }
}
