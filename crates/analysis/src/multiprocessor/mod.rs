//! Blocking under multiprocessor locking protocols, and response times with it.
//!
//! Each bound is of a set of sporadic tasks, [`Sharing`](crate::Sharing), whose sections are not nested, and comes with a file that says where it
//! is from and what it charges. All count the requests that others can make while a job is pending: in an interval of length t
//! task k has at most `ceil((t + R_k) / T_k)` jobs, those included that were there before it (Yang, Chen, Huang, Real-Time Systems
//! 53(2), 2017); of its `N` requests for a resource each takes at most `L`. The longest of them that the protocol lets pass are
//! the bound. So a bound needs response times, and grows with them: [`joint`] finds both together.
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
//! No overhead is charged.

pub mod dflp;
pub mod dpcp;
pub mod fmlp;
mod joint;
mod lanes;
pub mod mpcp;
pub mod mrsp;
pub mod msrp;
pub mod omlp;
#[cfg(test)]
mod random;
pub mod spin;
mod tables;
#[cfg(test)]
mod tests;

use crate::Failure;
pub use joint::{Charge, Protocol, ROUNDS_MAX, Responses, STEPS_MAX, joint};
use tables::Tally;

/// What one job of a task may have to wait for, at most.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Delay {
    /// At its requests, for sections of others: suspended, or spinning. `None` where there is no bound.
    pub remote: Option<u64>,
    /// Through sections of tasks no more urgent, on its own processor.
    pub local: u64,
    /// The same where it can be once a job only, when it arrives.
    pub arrival: u64,
    /// How many requests of others that counts; 0 where a bound is not made of requests.
    pub requests: u64,
}

impl Delay {
    /// All together; `None` where there is no bound, or it does not fit.
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

    /// A sum that stopped at the greatest number did not fit.
    fn fits(&self) -> bool {
        let sum = self.remote.unwrap_or(0).saturating_add(self.local).saturating_add(self.arrival);
        sum != u64::MAX && self.requests != u64::MAX
    }
}

/// Bounds that stopped at the greatest number become a failure.
fn fitting(delays: &[Delay]) -> Result<(), Failure> {
    if delays.iter().all(Delay::fits) { Ok(()) } else { Err(Failure::Overflow) }
}

/// The bounds of a protocol for the response times its tables have.
fn once(protocol: &mut impl Protocol, tasks: usize) -> Result<Vec<Delay>, Failure> {
    let mut delays = vec![Delay::default(); tasks];
    protocol.delays(&mut delays)?;
    Ok(delays)
}

/// Where the processors are, and where resources are bound to one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Platform {
    /// Clusters, from 0.
    pub clusters: u16,
    /// Processors in each.
    pub processors: u16,
    /// The cluster one of whose processors serves interrupts only.
    pub interrupts: Option<u16>,
}

impl Platform {
    /// Processors that execute jobs of a cluster.
    fn parallelism(&self, cluster: u16) -> u64 {
        u64::from(self.processors) - u64::from(self.processors > 0 && self.interrupts == Some(cluster))
    }

    /// Every task has a cluster, and there is a processor.
    fn holds(&self, tasks: &[crate::Sharer]) -> Result<(), Failure> {
        match tasks.iter().position(|task| task.cluster >= self.clusters) {
            Some(task) => Err(Failure::Unsupported { task, what: "its cluster does not exist" }),
            None if self.processors == 0 && !tasks.is_empty() => Err(Failure::Overload),
            None => Ok(()),
        }
    }
}
