//! Partitioned FMLP+: FIFO queues, and owners that are boosted in the order of their requests.
//!
//! Symbols: N(i,q) is the number of requests of one job of task i for q, and n(x,q) = N(x,q) * ceil((R_i + R_x) / T_x)
//! that of all jobs of x while one job of i is pending. P_i is the processor of i. d(p) = sum over q of min(N(i,q), sum
//! over x on p of n(x,q)) is the number of waits that tasks on p can cause, and d(p,x) the same without x.
//! - A task x on p other than P_i: direct delay on q at most N(i,q), indirect delay at most d(p,x), both together at
//!   most d(p).
//! - A local task of lower or equal priority: at most 1 + sum over q of min(N(i,q), sum over remote x of n(x,q)), once
//!   per arrival.
//! - Local tasks of higher priority: none; they interfere.
//!
//! No constraint involves two tasks, and those of one task are nested. The longest requests within these limits are
//! therefore the optimum.
//!
//! # Reference
//! B. Brandenburg, "Improved analysis and evaluation of real-time semaphore protocols for P-FP scheduling", RTAS 2013:
//! constraints 1 and 9 to 14.

use super::view::{View, add, add_product, product};
use super::{Blocked, Work};
use crate::{Failure, Sharing};

/// Returns bounds on the blocking of one job of each task under the FMLP+, with partitioned fixed priorities, in the
/// order of the tasks.
///
/// The source is Brandenburg, RTAS 2013.
///
/// # Errors
/// Returns [`Failure::Unsupported`] if a period is 0, and [`Failure::Overflow`] if a number does not fit.
pub fn fmlp_plus(sharing: &Sharing) -> Result<Vec<Blocked>, Failure> {
    let view = View::new(sharing, &[])?;
    bounds(&view, &mut Work::of_all(&view))
}

pub(super) fn bounds(view: &View, work: &mut Work) -> Result<Vec<Blocked>, Failure> {
    let mut jobs = Vec::new();
    let mut own = Vec::new();
    let mut waits = Waits::default();
    let mut left: Vec<Left> = Vec::new();
    let mut all = Vec::with_capacity(view.tasks());
    for i in work.tasks.clone() {
        work.spend(i, 2 * view.entries.len() + view.tasks())?;
        view.jobs_of_all(i, &mut jobs)?;
        view.own_counts(i, &mut own)?;
        waits.count(view, i, &jobs)?;
        left.clear();
        for x in 0..view.tasks() {
            left.push(if !view.is_local(i, x) {
                Left { all: waits.by(view.rows[x].cluster), indirect: waits.without(view, i, x, &jobs)? }
            } else if x != i && !view.is_higher(i, x) {
                Left { all: waits.arrivals, indirect: u64::MAX }
            } else {
                Left::default()
            });
        }
        let mut blocked = Blocked::default();
        for entry in &view.entries {
            let left = &mut left[entry.task];
            if left.all == 0 {
                continue;
            }
            let issued = product(entry.count, jobs[entry.task])?;
            let taken = left.take(issued, own[entry.resource]);
            let local = view.is_local(i, entry.task);
            add_product(if local { &mut blocked.local } else { &mut blocked.remote }, taken, entry.length)?;
            work.count(view, entry, taken, !local);
        }
        all.push(blocked);
    }
    Ok(all)
}

/// How often one task may still delay.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Left {
    /// In total.
    pub all: u64,
    /// Beyond the direct delay that each resource allows.
    pub indirect: u64,
}

impl Left {
    /// Takes at most `issued` requests for a resource that allows `direct` direct delays. Returns the number taken.
    pub fn take(&mut self, issued: u64, direct: u64) -> u64 {
        let taken = issued.min(direct.saturating_add(self.indirect)).min(self.all);
        self.indirect -= taken.saturating_sub(direct).min(self.indirect);
        self.all -= taken;
        taken
    }
}

/// How often one job may have to wait, and because of which tasks.
#[derive(Default, Debug)]
pub(super) struct Waits {
    /// The requests of the tasks on each cluster for each of the job's resources, by cluster, then by the job's
    /// request.
    issued: Vec<u64>,
    /// d(p).
    by: Vec<u64>,
    /// The number of arrivals: its release and each wait for another cluster.
    pub arrivals: u64,
    /// The place of each resource among the job's requests.
    place: Vec<usize>,
}

impl Waits {
    /// Counts the waits of a job of `i`, with `jobs` of each other task.
    pub fn count(&mut self, view: &View, i: usize, jobs: &[u64]) -> Result<(), Failure> {
        let own = view.requests(i);
        self.place.clear();
        self.place.resize(view.resources, usize::MAX);
        for (place, request) in own.iter().enumerate() {
            self.place[request.resource] = place;
        }
        self.issued.clear();
        self.issued.resize(view.clusters * own.len(), 0);
        for entry in view.entries.iter().filter(|entry| entry.task != i) {
            let place = self.place[entry.resource];
            if place != usize::MAX {
                let issued = product(entry.count, jobs[entry.task])?;
                add(&mut self.issued[view.rows[entry.task].cluster * own.len() + place], issued)?;
            }
        }
        self.by.clear();
        for cluster in 0..view.clusters {
            let there = &self.issued[cluster * own.len()..][..own.len()];
            let mut waits = 0;
            for (request, &issued) in own.iter().zip(there) {
                add(&mut waits, request.count.min(issued))?;
            }
            self.by.push(waits);
        }
        self.arrivals = 1;
        for (place, request) in own.iter().enumerate() {
            let mut remote = 0_u64;
            for cluster in (0..view.clusters).filter(|&cluster| cluster != view.rows[i].cluster) {
                remote = remote.saturating_add(self.issued[cluster * own.len() + place]);
            }
            add(&mut self.arrivals, request.count.min(remote))?;
        }
        Ok(())
    }

    /// Returns d(p).
    pub fn by(&self, cluster: usize) -> u64 {
        self.by[cluster]
    }

    /// Returns d(p,x), where p is the cluster of x.
    pub fn without(&self, view: &View, i: usize, x: usize, jobs: &[u64]) -> Result<u64, Failure> {
        let own = view.requests(i);
        let there = &self.issued[view.rows[x].cluster * own.len()..][..own.len()];
        let mut waits = self.by[view.rows[x].cluster];
        for entry in view.requests(x) {
            let place = self.place[entry.resource];
            if place != usize::MAX {
                let (all, its) = (there[place], product(entry.count, jobs[x])?);
                waits -= own[place].count.min(all) - own[place].count.min(all - its);
            }
        }
        Ok(waits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn direct_delay_does_not_count_as_indirect() {
        let mut left = Left { all: 5, indirect: 1 };
        assert_eq!(left.take(4, 2), 3);
        assert_eq!((left.all, left.indirect), (2, 0));
        assert_eq!(left.take(4, 0), 0);
        assert_eq!(left.take(4, 3), 2);
        assert_eq!((left.all, left.indirect), (0, 0));
    }
}
