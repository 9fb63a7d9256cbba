//! Generalized FMLP+: clusters of any size under fixed priorities or EDF, FIFO queues, and restricted segment boosting.
//!
//! Symbols are those of [`fmlp_plus`](super::fmlp_plus()). A job of i has 1 + 2 * sum over q of N(i,q) segments, and
//! every other task delays it once per segment.
//! - A task x on another cluster p: direct delay on q at most N(i,q), indirect delay at most d(p,x), both together at
//!   most d(p).
//! - A task x on the same cluster: direct and indirect delay at most d(P_i). Delay by preemption is at most N(x,q)
//!   times its jobs of lower priority: under fixed priorities all or none; under EDF those with a later deadline,
//!   ceil((D_x + R_i - D_i + R_x) / T_x).
//! - On clusters of one processor, a local task of lower or equal priority delays once per arrival.
//!
//! # Reference
//! B. Brandenburg, "The FMLP+: an asymptotically optimal real-time locking protocol for suspension-aware analysis",
//! ECRTS 2014.

use super::fmlp_plus::{Left, Waits};
use super::view::{View, add_product, product};
use super::{Blocked, sum};
use crate::{Failure, Sharing};

/// The scheduling policy within a cluster.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Policy {
    /// Fixed priorities.
    Fixed,
    /// Earliest deadline first.
    Edf,
}

/// Returns bounds on the blocking of one job of each task under the generalized FMLP+, on clusters of `processors`
/// processors each, in the order of the tasks.
///
/// The source is Brandenburg, ECRTS 2014.
///
/// # Errors
/// Returns [`Failure::Unsupported`] if a period is 0, and [`Failure::Overflow`] if a number does not fit.
pub fn generalized_fmlp_plus(sharing: &Sharing, processors: u16, policy: Policy) -> Result<Vec<Blocked>, Failure> {
    let view = View::new(sharing, &[])?;
    let mut jobs = Vec::new();
    let mut own = Vec::new();
    let mut waits = Waits::default();
    let mut left: Vec<Left> = Vec::new();
    let mut later: Vec<u64> = Vec::new();
    let mut all = Vec::with_capacity(view.tasks());
    for i in 0..view.tasks() {
        view.jobs_of_all(i, &mut jobs)?;
        view.own_counts(i, &mut own)?;
        waits.count(&view, i, &jobs)?;
        let segments = view.requests(i).iter().try_fold(1, |all, request| sum(all, product(2, request.count)?))?;
        left.clear();
        later.clear();
        for x in 0..view.tasks() {
            let by = waits.by(view.rows[x].cluster);
            if !view.is_local(i, x) {
                left.push(Left { all: by.min(segments), indirect: waits.without(&view, i, x, &jobs)? });
                later.push(0);
            } else if x != i {
                let once = processors == 1 && !view.is_higher(i, x);
                let all = if once { segments.min(waits.arrivals) } else { segments };
                left.push(Left { all, indirect: by });
                later.push(later_jobs(&view, i, x, policy, jobs[x])?);
            } else {
                left.push(Left::default());
                later.push(0);
            }
        }
        let mut blocked = Blocked::default();
        for entry in &view.entries {
            let issued = product(entry.count, jobs[entry.task])?;
            let local = view.is_local(i, entry.task);
            let alone = if local { product(entry.count, later[entry.task])? } else { own[entry.resource] };
            let taken = left[entry.task].take(issued, alone);
            add_product(if local { &mut blocked.local } else { &mut blocked.remote }, taken, entry.length)?;
        }
        all.push(blocked);
    }
    Ok(all)
}

/// Returns the most jobs of `x` with a lower priority than a job of `i` while that is pending.
fn later_jobs(view: &View, i: usize, x: usize, policy: Policy, jobs: u64) -> Result<u64, Failure> {
    let (row, other) = (&view.rows[i], &view.rows[x]);
    match policy {
        Policy::Fixed => Ok(if row.priority > other.priority { jobs } else { 0 }),
        Policy::Edf => match sum(row.response, other.deadline)?.checked_sub(row.deadline) {
            None | Some(0) => Ok(0),
            Some(interval) => view.jobs(x, interval),
        },
    }
}
