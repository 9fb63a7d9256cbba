//! MPCP: owners boosted to the ceiling of their resource, and queues by priority.
//!
//! Symbols: N(i,q) is the number of requests of one job of task i for q, and n(x,q) = N(x,q) * ceil((R_i + R_x) / T_x)
//! that of all jobs of x while one job of i is pending. P_i is the processor of i. g(x,q) is a bound on the time that x
//! holds q: its section and, of each other task on its processor, the longest section whose ceiling there is at least
//! that of q (the ceiling on p is the priority of the most urgent user elsewhere). X(i,q), the longest wait of i for q,
//! is the least `X = longest g of lower + sum of g of equal + sum over x of higher priority of N(x,q) * ceil((X + R_x)
//! / T_x) * g(x,q)`.
//! - Direct delay on q: by tasks of lower priority N(i,q) in total; by each task of equal priority N(i,q); by a task x
//!   of higher priority N(i,q) * N(x,q) * ceil((X(i,q) + R_x) / T_x), if X(i,q) is at most R_i or D_i.
//! - Indirect delay: a request of x for q preempts owners on its processor that delay i directly. It does so at most as
//!   often as requests of other tasks there, for other resources of no higher ceiling, delay directly. All requests of
//!   x together do so at most as often as requests there delay directly whose ceiling is at most the highest of x.
//! - These delays, for which i waits, are in total at most the sum over q of N(i,q) * X(i,q).
//! - A local task of lower or equal priority: at most 1 + sum over q of min(N(i,q), sum over remote x of n(x,q)), once
//!   per arrival.
//! - Local tasks of higher priority: none; they interfere.
//!
//! Indirect delay exists on P_i, too. While i and h, a local task of higher or equal priority, wait for q, a less
//! urgent task l executes, and requests a resource with a higher ceiling. If q is granted to h first, the section of l
//! preempts that of h, and i waits for both. The next time h stands before i in the queue, l can have made its next
//! request. The published program lacks this delay. Each section of h before a request of i admits one section of l:
//! another request needs l to execute, and neither h with its section nor the next owner lets it. Tasks of lower
//! priority on P_i never own q while i waits for it: i does not execute while they own it, and precedes them in the
//! queue.
//!
//! A request elsewhere is taken from the pool of its resource (direct) or of its task (indirect). The optimum is a
//! greatest weight in such a network. Taking requests longest first, and rerouting those already taken, finds it
//! ([`super::network`]).
//!
//! # Reference
//! B. Brandenburg, "Improved analysis and evaluation of real-time semaphore protocols for P-FP scheduling", RTAS 2013:
//! constraints 1, 9 to 11 and 15 to 20.

use super::fmlp_plus::Waits;
use super::network::Network;
use super::view::{Entry, View, add, add_product, product};
use super::{Blocked, Work, wait};
use crate::rows::mutant::{Mutant, Omission};
use crate::{Failure, Sharing};

/// Returns bounds on the blocking of one job of each task under the MPCP, with partitioned fixed priorities, in the
/// order of the tasks.
///
/// The source is Brandenburg, RTAS 2013.
///
/// # Errors
/// Returns [`Failure::Unsupported`] if a period is 0, and [`Failure::Overflow`] if a number does not fit.
pub fn mpcp(sharing: &Sharing) -> Result<Vec<Blocked>, Failure> {
    let view = View::new(sharing, &[])?;
    let owners = Owners::new(&view, Omission::NOTHING)?;
    bounds(&view, &owners, &mut Work::of_all(&view))
}

/// How long sections last, and at which priority. This depends neither on the task under analysis nor on response
/// times.
#[derive(Debug)]
pub(super) struct Owners {
    /// g, by entry of the view.
    held: Vec<u64>,
    /// The ceiling of the entry's resource on the entry's processor, plus 1; 0 if no task elsewhere uses it.
    ceiling: Vec<u64>,
    /// The entries of each resource.
    of_resource: Vec<Vec<usize>>,
    /// The tasks on each cluster that have requests, with the highest ceiling at which each preempts.
    preempting: Vec<Vec<(usize, u64)>>,
    omission: Omission<Mutant>,
}

/// An entry that delays directly.
#[derive(Clone, Copy, Debug)]
struct Delaying {
    task: usize,
    resource: usize,
    ceiling: u64,
    /// How often it delays.
    times: u64,
}

impl Owners {
    pub fn new(view: &View, omission: Omission<Mutant>) -> Result<Self, Failure> {
        let mut of_resource = vec![Vec::new(); view.resources];
        let mut of_cluster = vec![Vec::new(); view.clusters];
        for (e, entry) in view.entries.iter().enumerate() {
            of_resource[entry.resource].push(e);
            of_cluster[view.rows[entry.task].cluster].push(e);
        }
        let ceiling: Vec<u64> = (view.entries.iter())
            .map(|entry| {
                let users = of_resource[entry.resource].iter().map(|&e| view.entries[e].task);
                let elsewhere = users.filter(|&x| !view.is_local(entry.task, x));
                elsewhere.map(|x| u64::from(view.rows[x].priority) + 1).max().unwrap_or(0)
            })
            .collect();
        let mut held = Vec::with_capacity(view.entries.len());
        let mut longest = vec![0; view.tasks()];
        for (e, entry) in view.entries.iter().enumerate() {
            longest.fill(0);
            let mut time = entry.length;
            for &o in &of_cluster[view.rows[entry.task].cluster] {
                let other = &view.entries[o];
                // Entries are sorted longest first, so the first one of a task counts.
                if other.task != entry.task && ceiling[o] >= ceiling[e] && longest[other.task] == 0 {
                    longest[other.task] = other.length;
                    add(&mut time, other.length)?;
                }
            }
            held.push(time);
        }
        let mut highest: Vec<Option<u64>> = vec![None; view.tasks()];
        for (entry, &ceiling) in view.entries.iter().zip(&ceiling) {
            highest[entry.task] = highest[entry.task].max(Some(ceiling));
        }
        let mut preempting = vec![Vec::new(); view.clusters];
        for (x, highest) in highest.into_iter().enumerate() {
            if let Some(highest) = highest {
                preempting[view.rows[x].cluster].push((x, highest));
            }
        }
        Ok(Self { held, ceiling, of_resource, preempting, omission })
    }

    /// Returns whether requests like `entry`, of a local task, can stand before those of `i` in the queue, so that a
    /// section that preempts theirs delays `i`.
    fn stands_before(&self, view: &View, i: usize, e: usize) -> bool {
        let x = view.entries[e].task;
        // Without users elsewhere, the queue is always empty.
        x != i && !view.is_lower(i, x) && self.ceiling[e] > 0 && !self.omission.is(Mutant::OwnOwners)
    }

    /// Returns X, the longest wait of `i` for `resource`, or `None` if that exceeds R and D.
    fn longest_wait(&self, view: &View, i: usize, resource: usize) -> Result<Option<u64>, Failure> {
        let (mut lower, mut equal) = (0, 0);
        for &e in &self.of_resource[resource] {
            let x = view.entries[e].task;
            if view.rows[x].priority < view.rows[i].priority {
                lower = self.held[e].max(lower);
            } else if x != i && view.rows[x].priority == view.rows[i].priority {
                add(&mut equal, self.held[e])?;
            }
        }
        let mut start = lower;
        add(&mut start, equal)?;
        Ok(wait(start, view.wait_most(i), |waited| {
            let mut delay = start;
            for &e in &self.of_resource[resource] {
                let entry = &view.entries[e];
                if view.is_higher(i, entry.task) {
                    add_product(&mut delay, product(entry.count, view.jobs(entry.task, waited)?)?, self.held[e])?;
                }
            }
            Ok(delay)
        }))
    }
}

pub(super) fn bounds(view: &View, owners: &Owners, work: &mut Work) -> Result<Vec<Blocked>, Failure> {
    let mut jobs = Vec::new();
    let mut own = Vec::new();
    let mut waits = Waits::default();
    let mut longest = Vec::new();
    let mut direct = Vec::new();
    let mut network = Network::default();
    // By cluster, the entries there that delay directly.
    let mut delaying: Vec<Vec<Delaying>> = vec![Vec::new(); view.clusters];
    let mut all = Vec::with_capacity(view.tasks());
    for i in work.tasks.clone() {
        work.spend(i, 4 * view.entries.len() + view.tasks())?;
        view.jobs_of_all(i, &mut jobs)?;
        view.own_counts(i, &mut own)?;
        waits.count(view, i, &jobs)?;
        let mut blocked = Blocked { remote: 0, local: locally(view, i, &jobs, waits.arrivals, work)? };

        // X by resource, and the total that these waits allow.
        longest.clear();
        longest.resize(view.resources, None);
        let mut most = Some(0);
        for request in view.requests(i) {
            let wait = owners.longest_wait(view, i, request.resource)?;
            longest[request.resource] = wait;
            // A total that does not fit is no limit.
            most = most.zip(wait).and_then(|(most, wait)| wait.checked_mul(request.count)?.checked_add(most));
        }

        // The most direct delays by each entry.
        direct.clear();
        delaying.iter_mut().for_each(Vec::clear);
        for (e, entry) in view.entries.iter().enumerate() {
            let x = entry.task;
            let is_local = view.is_local(i, x);
            let times = if own[entry.resource] == 0 || is_local && !owners.stands_before(view, i, e) {
                0
            } else {
                let issued = product(entry.count, jobs[x])?;
                match longest[entry.resource] {
                    _ if !view.is_higher(i, x) => issued.min(own[entry.resource]),
                    Some(wait) => issued.min(product(product(entry.count, view.jobs(x, wait)?)?, own[entry.resource])?),
                    None => issued,
                }
            };
            // The section of a local task is interference already, unlike those that preempt it.
            direct.push(if is_local { 0 } else { times });
            if times > 0 {
                let (resource, ceiling) = (entry.resource, owners.ceiling[e]);
                delaying[view.rows[x].cluster].push(Delaying { task: x, resource, ceiling, times });
            }
        }

        // The pools: lower priorities on each resource, then each task for indirect delay.
        let met = |(preempting, delaying): (&Vec<_>, &Vec<_>)| preempting.len() * delaying.len();
        work.spend(i, owners.preempting.iter().zip(&delaying).map(met).sum())?;
        let mut indirect = indirect_of_tasks(view, owners, i, &delaying)?;
        network.clear(own.iter().chain(&indirect).copied());
        for (e, entry) in view.entries.iter().enumerate() {
            let x = entry.task;
            if x == i || view.is_local(i, x) && view.is_higher(i, x) {
                continue;
            }
            let preempts = if indirect[x] > 0 {
                preemptions(entry, owners.ceiling[e], &delaying[view.rows[x].cluster])?
            } else {
                0
            };
            if direct[e] == 0 && preempts == 0 {
                continue;
            }
            let issued = product(entry.count, jobs[x])?;
            let taken = if !view.is_lower(i, x) {
                // Direct delay by these tasks has a limit of its own.
                let taken = issued.min(direct[e].saturating_add(preempts.min(indirect[x])));
                indirect[x] -= taken.saturating_sub(direct[e]);
                taken
            } else {
                network.take(issued, entry.resource, direct[e], view.resources + x, preempts)
            };
            add_product(&mut blocked.remote, taken, entry.length)?;
            work.count(view, entry, taken, true);
        }
        blocked.remote = most.map_or(blocked.remote, |most| blocked.remote.min(most));
        all.push(blocked);
    }
    Ok(all)
}

/// Returns the delay by local tasks of lower or equal priority: the longest requests of each, one per arrival.
fn locally(view: &View, i: usize, jobs: &[u64], arrivals: u64, work: &mut Work) -> Result<u64, Failure> {
    let mut left = vec![arrivals; view.tasks()];
    let mut delay = 0;
    for entry in &view.entries {
        let x = entry.task;
        if x != i && view.is_local(i, x) && !view.is_higher(i, x) {
            let taken = product(entry.count, jobs[x])?.min(left[x]);
            left[x] -= taken;
            add_product(&mut delay, taken, entry.length)?;
            work.count(view, entry, taken, false);
        }
    }
    Ok(delay)
}

/// Returns how often requests like `entry`, with this ceiling, can preempt owners on its processor that delay directly.
fn preemptions(entry: &Entry, ceiling: u64, delaying: &[Delaying]) -> Result<u64, Failure> {
    let mut times = 0;
    for other in delaying {
        let preempted = (other.task != entry.task) & (other.resource != entry.resource) & (other.ceiling <= ceiling);
        add(&mut times, if preempted { other.times } else { 0 })?;
    }
    Ok(times)
}

/// Returns how often all requests of each task can preempt such owners.
fn indirect_of_tasks(view: &View, owners: &Owners, i: usize, delaying: &[Vec<Delaying>]) -> Result<Vec<u64>, Failure> {
    let mut times = vec![0; view.tasks()];
    for (preempting, delaying) in owners.preempting.iter().zip(delaying) {
        for &(x, highest) in preempting.iter().filter(|&&(x, _)| x != i) {
            for other in delaying {
                let preempted = (other.task != x) & (other.ceiling <= highest);
                add(&mut times[x], if preempted { other.times } else { 0 })?;
            }
        }
    }
    Ok(times)
}
