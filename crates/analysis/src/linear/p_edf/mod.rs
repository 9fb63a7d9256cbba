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
mod processor;
mod spin;

use super::sum;
use super::view::{View, add_product};
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
    let view = View::new(sharing, &[])?;
    for cluster in 0..view.clusters {
        Processor::new(&view, cluster, edf).test()?;
    }
    Ok(())
}

impl Processor<'_> {
    fn test(&self) -> Result<(), Failure> {
        let Some(shortest) = self.local.iter().map(|&i| self.view.rows[i].deadline).min() else { return Ok(()) };
        let mut points = 0;
        let mut busy = 1;
        // BOUND: each round tests at least one point, or lengthens the busy interval; POINTS_MAX in total.
        loop {
            let mut longer = self.blocking(busy, Mode::Arriving)?;
            for &i in &self.local {
                add_product(&mut longer, self.view.jobs_fresh(i, busy), self.view.rows[i].cost)?;
            }
            if longer <= busy {
                return Ok(());
            }
            self.test_between(busy.max(shortest), longer, &mut points)?;
            busy = longer;
            self.count(&mut points)?;
        }
    }

    fn count(&self, points: &mut u64) -> Result<(), Failure> {
        *points += 1;
        if *points > POINTS_MAX {
            let limit = Limit { name: "points of one processor's demand", most: POINTS_MAX };
            return Err(Failure::Diverged { task: self.local[0], limit });
        }
        Ok(())
    }

    /// Tests the points from `first` up to but excluding `end`.
    fn test_between(&self, first: u64, end: u64, points: &mut u64) -> Result<(), Failure> {
        let mut next = self.point_before(end)?;
        while let Some(t) = next.filter(|&t| t >= first) {
            self.count(points)?;
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
            Edf::Msrp => self.msrp(t, mode),
            Edf::SpinFifoPreemptable => self.fifo_preemptable(t, mode),
            Edf::LockFree => self.lock_free(t, mode),
        }
    }
}
