//! DPCP: resources on home processors, where agents execute requests under the priority ceiling protocol.
//!
//! Symbols: N(i,q) is the number of requests of one job of task i for q, L(i,q) the length of the longest, and n(x,q) =
//! N(x,q) * ceil((R_i + R_x) / T_x) the number of requests of all jobs of x while one job of i is pending. a(i,p) is
//! the number of requests of one job of i for resources on p, and P_i the processor of i. A resource conflicts with i
//! if its ceiling is at least the priority of i.
//! - Tasks of lower priority, on p: direct or indirect delay by a(i,p) requests in total, for resources that conflict.
//! - A task x of higher or equal priority, for q on p: at most the sum over the resources r of i on p of N(i,r) *
//!   N(x,q) * ceil((W_r + R_x) / T_x). W_r is the longest wait for r including the section, the least `W = L(i,r) +
//!   longest of lower or equal priority that conflicts on p + sum over higher x, q on p of N(x,q) * ceil((W + R_x) /
//!   T_x) * L(x,q)`. If W_r exceeds R_i and D_i, the limit is n(x,q).
//! - On P_i, agents preempt: those of each local task of lower or equal priority `1 + sum over p other than P_i of
//!   a(i,p)` times, all others as often as they have requests.
//!
//! A request is taken from the pool of its processor or, on P_i, from the pool of its task. The optimum is a greatest
//! weight in such a network. Taking requests longest first, and rerouting those already taken, finds it
//! ([`super::network`]).
//!
//! # Reference
//! B. Brandenburg, "Improved analysis and evaluation of real-time semaphore protocols for P-FP scheduling", RTAS 2013:
//! constraints 1 to 3 and 6 to 8. Constraint 7 limits delay by lower priorities, both direct and indirect: under the
//! priority ceiling protocol, lower priorities delay a request once. Without that limit (SchedCAT limits the direct
//! part alone), the program counts every request of lower priority, and is looser than the classic bound.

use super::dflp::asked_where;
use super::network::Network;
use super::view::{Entry, View, add_product, product};
use super::{Blocked, Work, sum, wait};
use crate::{Failure, Sharing};

/// Returns bounds on the blocking of one job of each task under the DPCP, with partitioned fixed priorities, in the
/// order of the tasks.
///
/// `sites` contains the processor of each resource, by its number. Blocking is remote if the resource is on another
/// processor. The agents of tasks of higher priority on a task's own processor count as local blocking. The source is
/// Brandenburg, RTAS 2013.
///
/// # Errors
/// Returns [`Failure::Unsupported`] if a period is 0 or a resource has no processor, and [`Failure::Overflow`] if a
/// number does not fit.
pub fn dpcp(sharing: &Sharing, sites: &[u16]) -> Result<Vec<Blocked>, Failure> {
    let view = View::new(sharing, sites)?;
    let placed = view.placed(sites)?;
    bounds(&view, &placed, &mut Work::of_all(&view))
}

pub(super) fn bounds(view: &View, placed: &[usize], work: &mut Work) -> Result<Vec<Blocked>, Failure> {
    let ceilings = view.ceilings();
    let mut of_site = vec![Vec::new(); view.clusters];
    for entry in &view.entries {
        of_site[placed[entry.resource]].push(*entry);
    }
    let mut jobs = Vec::new();
    let mut asked = vec![0; view.clusters];
    let mut waits = Vec::new();
    let mut network = Network::default();
    let mut all = Vec::with_capacity(view.tasks());
    for i in work.tasks.clone() {
        work.spend(i, view.entries.len() * (1 + view.requests(i).len()) + view.tasks())?;
        view.jobs_of_all(i, &mut jobs)?;
        let here = view.rows[i].cluster;
        let arrivals = asked_where(view, i, placed, &mut asked)?;
        waits.clear();
        for request in view.requests(i) {
            waits.push(longest_wait(view, i, &of_site[placed[request.resource]], &ceilings, request)?);
        }
        // The pools: lower priorities on each processor, then the arrivals of each local task.
        network.clear(asked.iter().copied().chain((0..view.tasks()).map(|_| arrivals)));
        let mut blocked = Blocked::default();
        for entry in view.entries.iter().filter(|entry| entry.task != i) {
            let (x, site) = (entry.task, placed[entry.resource]);
            let issued = product(entry.count, jobs[x])?;
            let taken = if !view.is_lower(i, x) {
                if site == here { issued } else { higher(view, i, placed, &waits, entry, site)?.min(issued) }
            } else if site == here && !view.is_local(i, x) {
                issued
            } else {
                let direct = if ceilings[entry.resource] >= view.rows[i].priority { issued } else { 0 };
                let boosted = if site == here { issued } else { 0 };
                network.take(issued, site, direct, view.clusters + x, boosted)
            };
            add_product(if site == here { &mut blocked.local } else { &mut blocked.remote }, taken, entry.length)?;
            work.count(view, entry, taken, site != here);
        }
        all.push(blocked);
    }
    Ok(all)
}

/// Returns how many requests like `entry`, of a task of higher priority, delay those of one job of `i` on `site`.
fn higher(
    view: &View,
    i: usize,
    placed: &[usize],
    waits: &[Option<u64>],
    entry: &Entry,
    site: usize,
) -> Result<u64, Failure> {
    let mut most = 0;
    for (request, wait) in view.requests(i).iter().zip(waits).filter(|(request, _)| placed[request.resource] == site) {
        let Some(wait) = *wait else { return Ok(u64::MAX) };
        let each = product(entry.count, view.jobs(entry.task, wait)?)?;
        add_product(&mut most, request.count, each)?;
    }
    Ok(most)
}

/// Returns the longest time that a request of `i` takes among those `there`, including its section, or `None` if that
/// exceeds R and D.
fn longest_wait(
    view: &View,
    i: usize,
    there: &[Entry],
    ceilings: &[u32],
    request: &Entry,
) -> Result<Option<u64>, Failure> {
    // The longest entries come first.
    let conflicts = |e: &&Entry| !view.is_higher(i, e.task) && ceilings[e.resource] >= view.rows[i].priority;
    let start = sum(request.length, there.iter().find(conflicts).map_or(0, |entry| entry.length))?;
    Ok(wait(start, view.wait_most(i), |waited| {
        let mut delay = start;
        for entry in there.iter().filter(|entry| entry.task != i && !view.is_lower(i, entry.task)) {
            add_product(&mut delay, product(entry.count, view.jobs(entry.task, waited)?)?, entry.length)?;
        }
        Ok(delay)
    }))
}
