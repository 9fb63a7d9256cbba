//! The classic bound for the distributed priority ceiling protocol (DPCP).
//!
//! Scheduling is by partitioned fixed priorities. Each resource has a home processor, where all its sections execute,
//! under the priority ceiling protocol and above all jobs. Waiters suspend. The source is Rajkumar, Sha, Lehoczky,
//! *Real-time synchronization protocols for multiprocessors*, RTSS 1988, in the form that SchedCAT computes, with
//! `ceil((t + R) / T)` jobs. Sections do not count as execution on the processor of their task.
//!
//! ```text
//! remote = sum over homes p other than i's processor, where i has a(i,p) > 0 requests:
//!            all requests on p of tasks more urgent than i,
//!            and the a(i,p) longest of the others for resources with a ceiling of at least i's priority
//! local  = all requests of other tasks for resources whose home is i's processor
//! ```
//! Both are counted within R_i. Of two tasks of equal priority, each counts as more urgent than the other.
//!
//! # Examples
//! ```
//! use lockwright_analysis::blocking::dpcp::dpcp;
//! # use lockwright_analysis::{Demand, Sharer, Sharing};
//! let task = |cluster, priority, length| Sharer {
//!     cost: 10,
//!     period: 100,
//!     deadline: 100,
//!     response: 20,
//!     priority,
//!     cluster,
//!     requests: vec![Demand { resource: 0, count: 1, length }],
//! };
//! let sharing = Sharing { tasks: vec![task(0, 2, 3), task(1, 1, 5)] };
//! let delays = dpcp(&sharing, &[1])?;
//! assert_eq!((delays[0].remote, delays[1].local), (Some(5), 3));
//! # Ok::<(), lockwright_analysis::Failure>(())
//! ```

use super::delay::{Charge, Delay, DelayBounds, fitting, once};
use crate::rows::requests::{Asked, Chosen, Grouping, RequestTables, Window};
use crate::rows::simd::{self, Ceilings, Crowd};
use crate::rows::tally::{Arithmetic, Fits, Saturates, Tally};
use crate::{Failure, Sharer, Sharing};
use lockwright_model::TaskId;
use std::cmp::Reverse;
use std::hint::select_unpredictable;
use std::ops::Range;

/// Returns bounds on the blocking of one job of each task under DPCP, with partitioned fixed priorities, in the order
/// of the tasks.
///
/// `homes` contains the home processor of each resource. Times are in the unit of the input. The source is in the
/// [module](self).
///
/// # Errors
/// Returns [`Failure::Unsupported`] for a resource without a home or a period of 0, and [`Failure::Overflow`] if a
/// number does not fit.
pub fn dpcp(sharing: &Sharing, homes: &[u16]) -> Result<Vec<Delay>, Failure> {
    once(&mut Dpcp::new(sharing, homes)?, sharing.tasks.len())
}

/// The bounds of [`dpcp`] as a function of response times, for [`joint`](super::joint).
#[derive(Debug)]
pub struct Dpcp {
    tables: RequestTables,
    homes: Vec<Home>,
    /// By home, the longest request first.
    requests: Vec<Request>,
    /// By home, its residents first.
    waiters: Vec<Waiter>,
    remote: Vec<Tally>,
    local: Vec<Tally>,
    crowd: Crowd<Ceilings>,
    /// For one home, the places of the waiters whose delays are computed.
    places: Vec<usize>,
}

/// A processor where sections execute.
#[derive(Clone, Debug)]
struct Home {
    id: u16,
    requests: Range<u32>,
    /// The tasks that are its residents, or have requests there.
    waiters: Range<u32>,
    residents: u32,
}

/// The requests of a task for one resource.
#[derive(Clone, Copy, Debug, Default)]
struct Request {
    length: u64,
    count: u32,
    task: u32,
    resource: u32,
    priority: u32,
    /// The highest priority of the users of the resource.
    ceiling: u32,
}

/// A resident of a home, or a task with requests there.
#[derive(Clone, Copy, Debug)]
struct Waiter {
    task: u32,
    /// All requests of at least this priority delay it.
    priority: u32,
    /// The number of other requests that delay it.
    issued: u64,
}

impl Dpcp {
    /// Creates the bounds. `homes` contains the home processor of each resource.
    ///
    /// # Errors
    /// Returns the errors of [`dpcp`].
    pub fn new(sharing: &Sharing, homes: &[u16]) -> Result<Self, Failure> {
        let tasks = &sharing.tasks;
        let tables = RequestTables::new(tasks, |task| &tasks[task].requests, Grouping::Apart)?;
        // For each resource, the place of its home and its ceiling.
        let mut resources = vec![(0_u32, 0_u32); tables.resource_count()];
        let mut places = vec![u32::MAX; homes.iter().map(|home| usize::from(*home) + 1).max().unwrap_or(0)];
        let mut all: Vec<Home> = Vec::with_capacity(places.len().min(resources.len()));
        for (resource, id) in tables.resource_ids() {
            let home = *homes.get(usize::from(id)).ok_or_else(|| homeless(sharing, homes))?;
            let place = &mut places[usize::from(home)];
            if *place == u32::MAX {
                *place = all.len() as u32;
                all.push(Home { id: home, requests: 0..0, waiters: 0..0, residents: 0 });
            }
            resources[resource as usize].0 = *place;
        }
        for (task, row) in tables.rows.iter().enumerate() {
            for asked in tables.asked(task) {
                let (home, ceiling) = &mut resources[asked.resource as usize];
                *ceiling = select_unpredictable(row.priority > *ceiling, row.priority, *ceiling);
                all[*home as usize].requests.end += 1;
            }
        }
        let mut next = 0;
        for Home { requests, .. } in &mut all {
            (requests.start, next) = (next, next + requests.end);
            requests.end = requests.start;
        }
        let mut requests = vec![Request::default(); tables.all_asked().len()];
        for (task, row) in tables.rows.iter().enumerate() {
            for &Asked { length, resource, count } in tables.asked(task) {
                let (home, ceiling) = resources[resource as usize];
                let free = &mut all[home as usize].requests.end;
                requests[*free as usize] =
                    Request { length, count, task: task as u32, resource, priority: row.priority, ceiling };
                *free += 1;
            }
        }
        let mut waiters: Vec<Waiter> = Vec::with_capacity(requests.len() + tasks.len());
        for home in &mut all {
            home.waiters.start = waiters.len() as u32;
            let residents = tables.cluster_of(home.id);
            waiters.extend(residents.iter().map(|task| Waiter { task: *task, priority: 0, issued: 0 }));
            home.residents = residents.len() as u32;
            // The requests of a task are adjacent.
            let its = &mut requests[home.range()];
            for its in its.chunk_by(|a, b| a.task == b.task) {
                let issued = its.iter().map(|request| u64::from(request.count)).sum();
                let Request { task, priority, .. } = its[0];
                if sharing.tasks[task as usize].cluster != home.id {
                    waiters.push(Waiter { task, priority, issued });
                }
            }
            home.waiters.end = waiters.len() as u32;
            longest_first(its);
        }
        let none = vec![Tally::default(); tasks.len()];
        let crowd = Crowd::new(tasks.len());
        let places = Vec::new();
        Ok(Self { tables, homes: all, requests, waiters, local: none.clone(), remote: none, crowd, places })
    }

    /// Takes over the lengths of the requests of these tasks from `sharing`, which differs in these alone.
    pub(crate) fn set_lengths(&mut self, sharing: &Sharing, tasks: &[TaskId]) {
        let Self { tables, homes, requests, .. } = self;
        tables.set_lengths(sharing, tasks);
        for request in requests.iter_mut() {
            let mut asked = tables.asked(request.task as usize).iter();
            if let Some(asked) = asked.find(|asked| asked.resource == request.resource) {
                request.length = asked.length;
            }
        }
        for home in homes {
            // It is sorted except for the requests of these tasks.
            requests[home.range()].sort_by_key(|request| Reverse(request.length));
        }
    }

    /// Computes the delays of the chosen tasks.
    fn all<A: Arithmetic>(&mut self, chosen: Chosen<'_>, delays: &mut [Delay]) {
        let Self { tables, homes, requests, waiters, remote, local, crowd, places } = self;
        remote.fill(Tally::default());
        local.fill(Tally::default());
        for home in homes {
            let requests = &requests[home.range()];
            let waiters = &waiters[home.waiters.start as usize..home.waiters.end as usize];
            places.clear();
            places.extend((0..waiters.len()).filter(|&place| tables.is_chosen(waiters[place].task, chosen)));
            if places.is_empty() {
                continue;
            }
            let mut delays = |place: usize, tally: Tally| {
                let task = waiters[place].task as usize;
                if place < home.residents as usize {
                    local[task] = tally;
                } else {
                    remote[task].add(tally);
                }
            };
            if tables.counts_all() {
                let steps = requests.iter().map(|request| {
                    let Request { length, count, task, priority, ceiling, .. } = *request;
                    tables.step(task, length, count, simd::Ceiling::new(task, priority, ceiling))
                });
                let askers = places.iter().map(|&place| {
                    let Waiter { task, priority, issued } = waiters[place];
                    tables.asker(task, simd::Waiter::new(task, priority, issued))
                });
                crowd.delays(steps, askers, |asker, tally| delays(places[asker], tally));
            } else {
                for &place in &*places {
                    let waiter = waiters[place];
                    delays(place, waiter.delay::<A>(tables.window(waiter.task as usize), requests));
                }
            }
        }
        for (task, delay) in delays.iter_mut().enumerate().filter(|(task, _)| tables.is_chosen(*task as u32, chosen)) {
            *delay = Delay::new(remote[task], local[task], Tally::default());
        }
    }

    fn delays_of(&mut self, chosen: Chosen<'_>, delays: &mut [Delay]) -> Result<(), Failure> {
        if self.tables.fits() {
            self.all::<Fits>(chosen, delays);
        } else {
            self.all::<Saturates>(chosen, delays);
        }
        fitting(delays)
    }
}

impl Home {
    fn range(&self) -> Range<usize> {
        self.requests.start as usize..self.requests.end as usize
    }
}

impl Waiter {
    /// Returns the delay by `requests`, which are sorted with the longest first.
    fn delay<A: Arithmetic>(&self, window: Window, requests: &[Request]) -> Tally {
        let mut tally = Tally::default();
        let mut left = self.issued;
        for request in requests.iter().filter(|request| request.task != self.task) {
            let all = A::mul(window.jobs::<A>(request.task), u64::from(request.count));
            if request.priority >= self.priority {
                tally.count::<A>(all, request.length);
            } else if request.ceiling >= self.priority {
                let taken = A::least(all, left);
                left -= taken;
                tally.count::<A>(taken, request.length);
            }
        }
        tally
    }
}

fn longest_first(requests: &mut [Request]) {
    // A few requests are sorted without branches.
    const FEW: usize = 16;
    let count = requests.len();
    if count > FEW {
        requests.sort_unstable_by_key(|request| Reverse(request.length));
        return;
    }
    let mut copies = [Request::default(); FEW];
    let copies = &mut copies[..count];
    copies.copy_from_slice(requests);
    for (index, request) in copies.iter().enumerate() {
        let (before, after) = copies.split_at(index);
        let equal_before = before.iter().map(|other| usize::from(other.length >= request.length)).sum::<usize>();
        let longer_after = after.iter().map(|other| usize::from(other.length > request.length)).sum::<usize>();
        requests[equal_before + longer_after] = *request;
    }
}

/// Returns the error for the first task with a request for a resource without a home.
fn homeless(sharing: &Sharing, homes: &[u16]) -> Failure {
    let asks = |task: &Sharer| {
        task.requests.iter().any(|demand| demand.count > 0 && usize::from(demand.resource) >= homes.len())
    };
    let task = sharing.tasks.iter().position(asks).unwrap_or(0);
    Failure::Unsupported { task, what: "it has a request for a resource without a home" }
}

impl DelayBounds for Dpcp {
    fn set_responses(&mut self, responses: &[u64]) -> Result<(), Failure> {
        self.tables.set_responses(responses)
    }

    fn delays(&mut self, delays: &mut [Delay]) -> Result<(), Failure> {
        self.delays_of(Chosen::All, delays)
    }

    fn delays_in(&mut self, cluster: u16, delays: &mut [Delay]) -> Result<(), Failure> {
        self.delays_of(Chosen::Cluster(cluster), delays)
    }

    fn mark_changed(&self, before: &[u64], marked: &mut [bool]) {
        if !self.tables.mark_changed(before, marked) {
            return;
        }
        for home in &self.homes {
            let waiters = &self.waiters[home.waiters.start as usize..home.waiters.end as usize];
            for other in self.requests[home.range()].iter().map(|request| request.task) {
                let before = before[other as usize];
                if before != self.tables.responses[other as usize] {
                    for waiter in waiters {
                        let marked = &mut marked[waiter.task as usize];
                        *marked = *marked || self.tables.meets_other_jobs(waiter.task, other, before);
                    }
                }
            }
        }
    }

    fn delays_again(&mut self, marked: &mut [bool], delays: &mut [Delay]) -> Result<(), Failure> {
        self.delays_of(Chosen::Marked(marked), delays)
    }

    fn charge(&self, delay: &Delay) -> Option<Charge> {
        Charge::of_suspensions(delay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::random;

    #[test]
    fn the_vector_bounds_equal_the_scalar_ones() {
        let mut random = fastrand::Rng::with_seed(6);
        let mut most = 0;
        for round in 0..400 {
            let count = [8, 40, 130][if round % 20 == 0 { 2 } else { round % 2 }];
            let mut sharing = random::sharing(&mut random, 4, count, 6);
            // Many requests: their number in all jobs exceeds 16 bits, and that of one job stays small.
            for task in sharing.tasks.iter_mut().filter(|_| count == 130) {
                task.requests.iter_mut().for_each(|request| request.count = 20);
                task.period = task.period.min(30);
            }
            for task in &mut sharing.tasks {
                if random.u8(..8) == 0 {
                    task.response = 0;
                }
                if round % 3 == 0 {
                    task.priority /= 3;
                }
            }
            let homes: Vec<u16> = (0..6).map(|_| if count == 130 { 0 } else { random.u16(..5) }).collect();
            let mut protocol = Dpcp::new(&sharing, &homes).unwrap();
            let mut delays = vec![Delay::default(); sharing.tasks.len()];
            protocol.delays(&mut delays).unwrap();
            let mut expected = vec![(Tally::default(), Tally::default()); sharing.tasks.len()];
            for home in &protocol.homes {
                assert!(protocol.tables.counts_all());
                let requests = &protocol.requests[home.range()];
                assert!(requests.is_sorted_by(|a, b| a.length >= b.length));
                let waiters = home.waiters.start as usize..home.waiters.end as usize;
                for (place, waiter) in protocol.waiters[waiters].iter().enumerate() {
                    let task = waiter.task as usize;
                    let window = protocol.tables.window(task);
                    let delay = waiter.delay::<Saturates>(window, requests);
                    assert_eq!(waiter.delay::<Fits>(window, requests), delay);
                    let (remote, local) = &mut expected[task];
                    if place < home.residents as usize { local.add(delay) } else { remote.add(delay) }
                }
            }
            for ((remote, local), delay) in expected.into_iter().zip(delays) {
                assert_eq!(Delay::new(remote, local, Tally::default()), delay);
                most = delay.requests.max(most);
            }
        }
        assert!(most > i16::MAX as u64, "{most}");
    }
}
