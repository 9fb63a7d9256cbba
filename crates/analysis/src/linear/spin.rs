//! Spinlocks under partitioned fixed priorities: the delay of a job by its own spinning, by that of local jobs that
//! precede it, and by sections at its arrival.
//!
//! The response time is then R = C_i + B_i + sum over local h of higher priority of ceil(R / T_h) * C_h, with C without
//! spinning. A remote request counts once, however many local jobs wait for it in turn.
//!
//! Symbols: N(i,q) is the number of requests of one job of task i for q, and n(x,q) = N(x,q) * ceil((R_i + R_x) / T_x)
//! that of all jobs of x while one job of i is pending. The number of requests from this processor is own(q) = N(i,q) +
//! sum over local h of higher priority of N(h,q) * ceil(R_i / T_h). A remote request delays once, by spinning or at the
//! arrival.
//! - At the arrival, only one resource causes delay. A local task of lower priority uses it, and if no remote task
//!   does, its ceiling is at least the priority of i. One local request counts.
//! - On a resource that i itself does not use, spinning for x is limited to the sum over local h that use it of
//!   N(x,q) * ceil(R_i / T_h) * ceil((R_h + R_x) / T_x) requests.
//! - [`spin_fifo`]: on each remote processor spinning for at most own(q) requests, and one more at the arrival.
//! - [`spin_fifo_preemptable`]: spinning for at most own(q) + s(q) requests, where the s(q) count requests issued again
//!   after preemptions, at most the sum over local h of higher priority of ceil(R_i / T_h) in total. Nothing remote
//!   delays at the arrival.
//! - [`spin_unordered`]: spinning for each remote x for at most own(q) * N(x,q) * ceil((X(q) + R_x) / T_x) requests,
//!   and once that at the arrival unless spinning is preemptable. X(q), the longest wait, is the least `X = 1 + sum
//!   over remote x of N(x,q) * ceil((X + R_x) / T_x) * L(x,q)`. For preemptable spinning, the sum is over all resources
//!   that this processor requests at this priority or above, and includes interference. R replaces X if it exceeds T.
//!
//! The resource of the arrival is one of few, and s(q) is used where it adds most, which falls with each use. For fixed
//! choices the constraints are nested. The longest requests within these limits are therefore the optimum, in integers.
//!
//! # Reference
//! A. Wieder, B. Brandenburg, "On spin locks in AUTOSAR: blocking analysis of FIFO, unordered, and priority-ordered
//! spin locks", RTSS 2013.

use super::view::{Entry, View, add, add_product, product};
use super::{Blocked, Work, sum, wait};
use crate::{Failure, Sharing};

/// Returns bounds on the delay of one job of each task by non-preemptive FIFO spinlocks (MSRP), with partitioned fixed
/// priorities, in the order of the tasks.
///
/// The bound contains the spinning of local jobs of higher priority. Times are in the unit of the input. The source is
/// Wieder, Brandenburg, RTSS 2013.
///
/// # Errors
/// Returns [`Failure::Unsupported`] if a period is 0, and [`Failure::Overflow`] if a number does not fit.
pub fn spin_fifo(sharing: &Sharing) -> Result<Vec<u64>, Failure> {
    totals(sharing, Order::Fifo)
}

/// Like [`spin_fifo`], for preemptable spinning: a job that is preempted while it spins issues its request again.
///
/// # Errors
/// Returns [`Failure::Unsupported`] if a period is 0, and [`Failure::Overflow`] if a number does not fit.
pub fn spin_fifo_preemptable(sharing: &Sharing) -> Result<Vec<u64>, Failure> {
    totals(sharing, Order::FifoPreemptable)
}

/// Like [`spin_fifo`], for locks that are granted in no particular order.
///
/// # Errors
/// Returns [`Failure::Unsupported`] if a period is 0, and [`Failure::Overflow`] if a number does not fit.
pub fn spin_unordered(sharing: &Sharing) -> Result<Vec<u64>, Failure> {
    totals(sharing, Order::Unordered)
}

/// Like [`spin_unordered`], for preemptable spinning.
///
/// # Errors
/// Returns [`Failure::Unsupported`] if a period is 0, and [`Failure::Overflow`] if a number does not fit.
pub fn spin_unordered_preemptable(sharing: &Sharing) -> Result<Vec<u64>, Failure> {
    totals(sharing, Order::UnorderedPreemptable)
}

/// The order in which a lock is granted, and whether spinning is preemptable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Order {
    Fifo,
    FifoPreemptable,
    Unordered,
    UnorderedPreemptable,
}

/// The requests of less urgent tasks of its processor that can delay a job at its arrival.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Arrivals {
    /// Those for resources of several processors; for other resources, those with a ceiling of at least its priority
    /// (MSRP).
    Shared,
    /// All, as jobs that spin or hold are not preempted.
    All,
    /// Those for resources that a task of its processor with at least its priority uses (MrsP).
    Ceilings,
}

fn totals(sharing: &Sharing, order: Order) -> Result<Vec<u64>, Failure> {
    let view = View::new(sharing, &[])?;
    let bounds = bounds(&view, order, Arrivals::Shared, &mut Work::of_all(&view))?;
    bounds.iter().map(Blocked::total).collect()
}

/// Returns the bounds. The local part is the section of a less urgent task at the arrival, and the remote part all
/// spinning.
pub(super) fn bounds(view: &View, order: Order, arrivals: Arrivals, work: &mut Work) -> Result<Vec<Blocked>, Failure> {
    let local_only = view.local_only();
    let ceilings = view.ceilings();
    let mut job = Job::default();
    let mut all = Vec::with_capacity(view.tasks());
    for i in work.tasks.clone() {
        work.spend(i, 2 * view.entries.len() + view.clusters * view.resources + view.tasks())?;
        job.prepare(view, i, arrivals, &local_only, &ceilings)?;
        let spinning = match order {
            Order::Fifo => job.fifo(view, i, work)?,
            Order::FifoPreemptable => job.fifo_preemptable(view, i)?,
            Order::Unordered | Order::UnorderedPreemptable => job.unordered(view, i, order)?,
        };
        let first = (0..view.resources).filter_map(|q| Some((job.arrival[q]?, q))).max_by_key(|&(arrival, _)| arrival);
        let Some((arrival, q)) = first else {
            job.count(view, None, work);
            all.push(Blocked { remote: spinning, local: 0 });
            continue;
        };
        let section = job.blockers[q].map_or(0, |section| section.length);
        job.count(view, Some(q), work);
        let both = sum(spinning, arrival)?;
        all.push(Blocked { remote: both.saturating_sub(section), local: section.min(both) });
    }
    Ok(all)
}

/// The delays of a job of the task under analysis.
#[derive(Default, Debug)]
struct Job {
    jobs: Vec<u64>,
    /// own(q).
    own: Vec<u64>,
    /// Whether the task itself uses the resource.
    uses: Vec<bool>,
    /// The delay at the arrival because of each resource; `None` if it can cause none.
    arrival: Vec<Option<u64>>,
    /// The local request of that delay.
    blockers: Vec<Option<Entry>>,
    /// The highest priority of a local user of each resource.
    local_ceilings: Vec<Option<u32>>,
    /// For each entry, how many of its requests cause spinning, and how many delay if one of them may do so at the
    /// arrival. In the order of the entries, and only for [`Work::counted`].
    taken: Vec<(Entry, u64, u64)>,
    /// The requests that each remote processor and resource may still add, by processor, then by resource.
    pools: Vec<Pool>,
}

/// The requests for one resource on one remote processor.
#[derive(Clone, Copy, Default, Debug)]
struct Pool {
    /// The number of requests that can still cause spinning.
    spin: u64,
    /// The number that can still delay if one may do so at the arrival as well.
    with_arrival: u64,
    /// Whether the one at the arrival is still available.
    free: bool,
}

impl Job {
    fn prepare(
        &mut self,
        view: &View,
        i: usize,
        arrivals: Arrivals,
        local_only: &[bool],
        ceilings: &[u32],
    ) -> Result<(), Failure> {
        view.jobs_of_all(i, &mut self.jobs)?;
        self.own.clear();
        self.own.resize(view.resources, 0);
        self.uses.clear();
        self.uses.resize(view.resources, false);
        self.arrival.clear();
        self.arrival.resize(view.resources, None);
        self.blockers.clear();
        self.blockers.resize(view.resources, None);
        self.local_ceilings.clear();
        self.local_ceilings.resize(view.resources, None);
        self.taken.clear();
        for x in (0..view.tasks()).filter(|&x| view.is_local(i, x)) {
            for request in view.requests(x) {
                let ceiling = &mut self.local_ceilings[request.resource];
                *ceiling = (*ceiling).max(Some(view.rows[x].priority));
            }
        }
        let response = view.rows[i].response;
        for x in (0..view.tasks()).filter(|&x| view.is_local(i, x)) {
            for request in view.requests(x) {
                let q = request.resource;
                if x == i {
                    self.uses[q] = true;
                    add(&mut self.own[q], request.count)?;
                    continue;
                }
                if view.rows[x].priority >= view.rows[i].priority {
                    add_product(&mut self.own[q], request.count, view.jobs_fresh(x, response))?;
                }
                let delays = match arrivals {
                    Arrivals::Shared => !local_only[q] || ceilings[q] >= view.rows[i].priority,
                    Arrivals::All => true,
                    Arrivals::Ceilings => self.local_ceilings[q] >= Some(view.rows[i].priority),
                };
                if view.rows[x].priority <= view.rows[i].priority
                    && self.jobs[x] > 0
                    && delays
                    && self.arrival[q].is_none_or(|longest| longest < request.length)
                {
                    self.arrival[q] = Some(request.length);
                    self.blockers[q] = Some(*request);
                }
            }
        }
        Ok(())
    }

    /// Returns how many of the requests like `entry`, of which a remote task issues `issued`, can cause spinning,
    /// whatever the order.
    fn spun_for(&self, view: &View, i: usize, entry: &Entry, issued: u64) -> Result<u64, Failure> {
        if self.uses[entry.resource] {
            return Ok(issued);
        }
        let mut overlaps = 0;
        for h in (0..view.tasks()).filter(|&h| h != i && view.is_local(i, h) && !view.is_higher(h, i)) {
            if view.requests(h).iter().any(|request| request.resource == entry.resource) {
                let (fresh, each) =
                    (view.jobs_fresh(h, view.rows[i].response), view.jobs(entry.task, view.rows[h].response)?);
                add_product(&mut overlaps, fresh, each)?;
            }
        }
        Ok(issued.min(product(overlaps, entry.count)?))
    }

    /// Computes the spinning, and adds the remote part to the arrival delay of each resource. Returns the spinning.
    fn fifo(&mut self, view: &View, i: usize, work: &Work) -> Result<u64, Failure> {
        self.pools.clear();
        for _ in 0..view.clusters {
            for &own in &self.own {
                let with_arrival = sum(own, 1)?;
                self.pools.push(Pool { spin: own, with_arrival, free: true });
            }
        }
        let mut spinning = 0;
        for entry in view.entries.iter().filter(|entry| !view.is_local(i, entry.task)) {
            let q = entry.resource;
            let pool = &mut self.pools[view.rows[entry.task].cluster * view.resources + q];
            if pool.with_arrival == 0 || (pool.spin == 0 && self.arrival[q].is_none()) {
                continue;
            }
            let issued = product(entry.count, self.jobs[entry.task])?;
            let most = if self.own[q] == 0 { 0 } else { self.spun_for(view, i, entry, issued)? };
            let pool = &mut self.pools[view.rows[entry.task].cluster * view.resources + q];
            let spun = most.min(pool.spin);
            pool.spin -= spun;
            let with_arrival = issued.min(most.saturating_add(pool.free.into())).min(pool.with_arrival);
            pool.with_arrival -= with_arrival;
            pool.free &= with_arrival <= most;
            if work.counted.is_some() {
                self.taken.push((*entry, spun, with_arrival));
            }
            add_product(&mut spinning, spun, entry.length)?;
            if let Some(arrival) = &mut self.arrival[q] {
                // Summed over all entries, the longer pool never takes less than the shorter one. For a single entry it
                // may.
                *arrival = if with_arrival >= spun {
                    sum(*arrival, product(with_arrival - spun, entry.length)?)?
                } else {
                    arrival.checked_sub(product(spun - with_arrival, entry.length)?).ok_or(Failure::Overflow)?
                };
            }
        }
        Ok(spinning)
    }

    /// Records the requests that delay under [`Order::Fifo`], if the resource `first` delays at the arrival.
    fn count(&self, view: &View, first: Option<usize>, work: &mut Work) {
        for (entry, spun, with_arrival) in &self.taken {
            work.count(view, entry, if first == Some(entry.resource) { *with_arrival } else { *spun }, true);
        }
        if let Some(blocker) = first.and_then(|q| self.blockers[q].as_ref()) {
            work.count(view, blocker, 1, false);
        }
    }

    fn fifo_preemptable(&mut self, view: &View, i: usize) -> Result<u64, Failure> {
        let mut spinning = 0;
        // By processor and resource, the number of requests so far, the longest first.
        let mut seen = vec![0_u64; view.clusters * view.resources];
        // By resource, the numbers of reissued requests from which on one more adds more, or less, and by how much.
        let mut steps: Vec<Vec<(u64, u64, u64)>> = vec![Vec::new(); view.resources];
        let mut anew = 0;
        for h in (0..view.tasks()).filter(|&h| h != i && view.is_local(i, h) && !view.is_higher(h, i)) {
            add(&mut anew, view.jobs_fresh(h, view.rows[i].response))?;
        }
        for entry in view.entries.iter().filter(|entry| !view.is_local(i, entry.task)) {
            let q = entry.resource;
            let own = self.own[q];
            if own == 0 {
                continue;
            }
            let seen = &mut seen[view.rows[entry.task].cluster * view.resources + q];
            if *seen >= own.saturating_add(anew) {
                continue;
            }
            let issued = product(entry.count, self.jobs[entry.task])?;
            let most = self.spun_for(view, i, entry, issued)?;
            let until = seen.saturating_add(most);
            add_product(&mut spinning, until.min(own).saturating_sub(*seen), entry.length)?;
            if until > own.max(*seen) {
                steps[q].push((seen.saturating_sub(own), entry.length, 0));
                steps[q].push((until - own, 0, entry.length));
            }
            *seen = until;
        }
        // The amount that each reissued request adds falls with their number, so the stretches that add most come
        // first.
        let mut stretches: Vec<(u64, u64)> = Vec::new();
        for steps in &mut steps {
            steps.sort_unstable();
            let mut adds = 0_u64;
            let mut from = 0;
            for &(at, more, less) in steps.iter() {
                if at > from && adds > 0 {
                    stretches.push((adds, at - from));
                }
                from = at;
                // An increase occurs only at 0, or where an equal stretch ends on the same processor, so the sum never
                // wraps.
                adds = sum(adds, more)?.checked_sub(less).ok_or(Failure::Overflow)?;
            }
        }
        stretches.sort_unstable_by(|a, b| b.cmp(a));
        for (adds, times) in stretches {
            let times = times.min(anew);
            anew -= times;
            add_product(&mut spinning, times, adds)?;
        }
        Ok(spinning)
    }

    fn unordered(&mut self, view: &View, i: usize, order: Order) -> Result<u64, Failure> {
        let preemptable = order == Order::UnorderedPreemptable;
        let row = &view.rows[i];
        let mut spinning = 0;
        for q in 0..view.resources {
            if self.own[q] == 0 && self.arrival[q].is_none() {
                continue;
            }
            let longest = self.longest_wait(view, i, q, preemptable)?.unwrap_or(row.response);
            for entry in view.entries.iter().filter(|entry| entry.resource == q && !view.is_local(i, entry.task)) {
                let issued = product(entry.count, self.jobs[entry.task])?;
                let passes = product(entry.count, view.jobs(entry.task, longest)?)?;
                let most = self.spun_for(view, i, entry, issued)?;
                let spun = most.min(passes.saturating_mul(self.own[q]));
                add_product(&mut spinning, spun, entry.length)?;
                if let (Some(arrival), false) = (&mut self.arrival[q], preemptable) {
                    add_product(arrival, issued.min(spun.saturating_add(passes)) - spun, entry.length)?;
                }
            }
        }
        Ok(spinning)
    }

    /// Returns X(q), or `None` if it exceeds T.
    fn longest_wait(&self, view: &View, i: usize, q: usize, preemptable: bool) -> Result<Option<u64>, Failure> {
        let row = &view.rows[i];
        let delays = |entry: &&Entry| {
            let r = entry.resource;
            !view.is_local(i, entry.task) && (r == q || (preemptable && self.own[r] > 0))
        };
        let local = || (0..view.tasks()).filter(|&h| h != i && view.is_local(i, h) && !view.is_higher(h, i));
        Ok(wait(1, row.period, |waited| {
            let mut delay = 1;
            for entry in view.entries.iter().filter(delays) {
                add_product(&mut delay, product(entry.count, view.jobs(entry.task, waited)?)?, entry.length)?;
            }
            if preemptable {
                for h in local() {
                    add_product(&mut delay, view.jobs_fresh(h, waited), view.rows[h].cost)?;
                }
            }
            Ok(delay)
        }))
    }
}
