//! DFLP: resources on home processors, FIFO queues, and agents that are boosted in the order of their requests.
//!
//! Symbols: N(i,q) is the number of requests of one job of task i for q, and n(x,q) = N(x,q) * ceil((R_i + R_x) / T_x)
//! that of all jobs of x while one job of i is pending. a(i,p) is the number of requests of one job of i for resources
//! on p, and P_i the processor of i. Every request of x delays a job of i in at most one way. Direct or indirect delay
//! by x on p is limited to a(i,p) requests. Delay by preemption occurs only on P_i, and for each local task of lower or
//! equal priority it is limited to `1 + sum over p other than P_i of a(i,p)` requests.
//!
//! No constraint involves two tasks, or two processors. The longest requests within these limits are therefore the
//! optimum.
//!
//! # Reference
//! B. Brandenburg, "Improved analysis and evaluation of real-time semaphore protocols for P-FP scheduling", RTAS 2013:
//! constraints 1 to 5.

use super::view::{View, add_product, product};
use super::{Blocked, Work, sum};
use crate::{Failure, Sharing};

/// Returns bounds on the blocking of one job of each task under the DFLP, with partitioned fixed priorities, in the
/// order of the tasks.
///
/// `sites` contains the processor of each resource, by its number. Blocking is remote if the resource is on another
/// processor. The agents of tasks of higher priority on a task's own processor count as local blocking. The source is
/// Brandenburg, RTAS 2013.
///
/// # Errors
/// Returns [`Failure::Unsupported`] if a period is 0 or a resource has no processor, and [`Failure::Overflow`] if a
/// number does not fit.
pub fn dflp(sharing: &Sharing, sites: &[u16]) -> Result<Vec<Blocked>, Failure> {
    let view = View::new(sharing, sites)?;
    let placed = view.placed(sites)?;
    bounds(&view, &placed, &mut Work::of_all(&view))
}

pub(super) fn bounds(view: &View, placed: &[usize], work: &mut Work) -> Result<Vec<Blocked>, Failure> {
    let mut jobs = Vec::new();
    let mut left = Vec::new();
    let mut asked = vec![0; view.clusters];
    let mut all = Vec::with_capacity(view.tasks());
    for i in work.tasks.clone() {
        work.spend(i, view.entries.len() + view.tasks())?;
        view.jobs_of_all(i, &mut jobs)?;
        let here = view.rows[i].cluster;
        let arrivals = asked_where(view, i, placed, &mut asked)?;
        // The number of requests that task x may still contribute on each processor.
        left.clear();
        for _ in 0..view.tasks() {
            left.extend_from_slice(&asked);
        }
        for x in 0..view.tasks() {
            let fits = &mut left[x * view.clusters + here];
            let limited = view.is_local(i, x) && !view.is_higher(i, x);
            *fits = if limited { sum(*fits, arrivals)? } else { u64::MAX };
        }
        let mut blocked = Blocked::default();
        for entry in view.entries.iter().filter(|entry| entry.task != i) {
            let site = placed[entry.resource];
            let fits = &mut left[entry.task * view.clusters + site];
            let taken = product(entry.count, jobs[entry.task])?.min(*fits);
            if site == here {
                if *fits != u64::MAX {
                    *fits -= taken;
                }
                add_product(&mut blocked.local, taken, entry.length)?;
                work.count(view, entry, taken, false);
            } else {
                *fits -= taken;
                add_product(&mut blocked.remote, taken, entry.length)?;
                work.count(view, entry, taken, true);
            }
        }
        all.push(blocked);
    }
    Ok(all)
}

/// Computes how many requests one job of `i` has on each processor. Returns how often it arrives: at its release, and
/// after each wait elsewhere.
pub(super) fn asked_where(view: &View, i: usize, placed: &[usize], asked: &mut [u64]) -> Result<u64, Failure> {
    asked.fill(0);
    let mut arrivals = 1;
    for request in view.requests(i) {
        let site = placed[request.resource];
        asked[site] = sum(asked[site], request.count)?;
        if site != view.rows[i].cluster {
            arrivals = sum(arrivals, request.count)?;
        }
    }
    Ok(arrivals)
}
