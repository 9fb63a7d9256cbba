//! Blocking under multiprocessor locking protocols, and response times with it.
//!
//! Each bound is for a set of sporadic tasks, [`Sharing`](crate::Sharing), whose sections are not nested. The file of
//! each protocol names its source and its formula. All bounds count the requests that others can issue while a job is
//! pending: in an interval of length t, task k has at most `ceil((t + R_k) / T_k)` jobs, including those pending at its
//! start (Yang, Chen, Huang, Real-Time Systems 53(2), 2017). Each of its `N(k,q)` requests for a resource takes at most
//! `L(k,q)`. The bound is the sum of the longest requests that the protocol allows to come first. It therefore depends
//! on response times and grows with them: [`joint`] finds both together.
//!
//! | file | protocol | waiting | charged to |
//! |---|---|---|---|
//! | [`mpcp`] | MPCP, also with virtual spinning | suspends | response |
//! | [`dpcp`] | DPCP | suspends | response |
//! | [`dflp`] | DFLP | suspends | response |
//! | [`fmlp`] | FMLP long (global), FMLP+ (partitioned) | suspends | execution; response |
//! | [`omlp`] | OMLP: global, partitioned, clustered, readers and writers, several units | suspends | execution |
//! | [`spin`] | FIFO spinlocks, non-preemptive; task-fair and phase-fair readers and writers | spins | execution |
//! | [`msrp`] | MSRP | spins | execution |
//! | [`mrsp`] | MrsP; spinlocks without inflated execution times | spins | response |
//!
//! All times are integers in the unit of the input. Overheads are not included.

pub mod dflp;
pub mod dpcp;
pub mod fmlp;
mod joint;
pub mod mpcp;
pub mod mrsp;
pub mod msrp;
pub mod omlp;
#[cfg(test)]
mod random;
mod simd;
pub mod spin;
mod tables;
#[cfg(test)]
mod tests;

use crate::Failure;
pub use joint::{Charge, DelayBounds, ROUNDS_MAX, Responses, STEPS_MAX, joint};
use tables::Tally;

/// The greatest delay of one job of a task. Times are in the unit of the input.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Delay {
    /// The waits of its requests for sections of others, suspended or spinning. `None` if there is no bound.
    pub remote: Option<u64>,
    /// The delay by sections of tasks that are no more urgent, on its own processor.
    pub local: u64,
    /// The delay by such sections that occurs only once per job, at its arrival.
    pub arrival: u64,
    /// The number of requests of others that these delays count; 0 if a bound does not consist of requests.
    pub requests: u64,
}

impl Delay {
    /// Returns the sum of the delays, or `None` if there is no bound or if it does not fit.
    #[must_use]
    pub fn total(&self) -> Option<u64> {
        self.remote?.checked_add(self.local)?.checked_add(self.arrival)
    }

    fn new(remote: Tally, local: Tally, arrival: Tally) -> Self {
        let mut all = remote;
        all.add(local);
        all.add(arrival);
        Self { remote: Some(remote.length), local: local.length, arrival: arrival.length, requests: all.requests }
    }

    /// Returns whether the sums fit. A saturated sum does not.
    fn fits(&self) -> bool {
        let sum = self.remote.unwrap_or(0).saturating_add(self.local).saturating_add(self.arrival);
        sum != u64::MAX && self.requests != u64::MAX
    }
}

/// Returns an error if a bound is saturated.
fn fitting(delays: &[Delay]) -> Result<(), Failure> {
    if delays.iter().all(Delay::fits) { Ok(()) } else { Err(Failure::Overflow) }
}

/// Returns the bounds of a protocol for the response times in its tables.
fn once(protocol: &mut impl DelayBounds, tasks: usize) -> Result<Vec<Delay>, Failure> {
    let mut delays = vec![Delay::default(); tasks];
    protocol.delays(&mut delays)?;
    Ok(delays)
}

/// The clusters and processors of a platform.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Platform {
    /// The number of clusters, which are numbered from 0.
    pub clusters: u16,
    /// The number of processors in each cluster.
    pub processors: u16,
    /// The cluster in which one processor handles interrupts only, if there is one.
    pub interrupts: Option<u16>,
}

impl Platform {
    /// Returns the number of processors that execute jobs of a cluster.
    fn parallelism(&self, cluster: u16) -> u64 {
        u64::from(self.processors) - u64::from(self.processors > 0 && self.interrupts == Some(cluster))
    }

    /// Returns an error unless the cluster of every task exists and has a processor.
    fn holds(&self, tasks: &[crate::Sharer]) -> Result<(), Failure> {
        match tasks.iter().position(|task| task.cluster >= self.clusters) {
            Some(task) => Err(Failure::Unsupported { task, what: "its cluster does not exist" }),
            None if self.processors == 0 && !tasks.is_empty() => Err(Failure::Overload),
            None => Ok(()),
        }
    }
}
