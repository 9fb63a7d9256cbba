//! The distributed priority ceiling protocol (DPCP), classic bound.
//!
//! Partitioned fixed priorities; each resource has a home processor, where all its sections execute, under the priority ceiling protocol and
//! above all jobs; who waits suspends. Rajkumar, Sha, Lehoczky, Real-time synchronization protocols for multiprocessors, RTSS 1988; in the form
//! SchedCAT computes, with `ceil((t + R) / T)` jobs. Sections are no part of what their task's processor executes.
//!
//! ```text
//! remote = sum over homes p other than i's processor, where i has a(i,p) > 0 requests:
//!            all requests on p of tasks more urgent than i, and the a(i,p) longest of the others for resources with a ceiling of at least i's
//! local  = all requests of other tasks for resources whose home is i's processor
//! ```
//! Both within R_i. Of two tasks of equal priority each counts as more urgent than the other.

use super::tables::{Arithmetic, Entry, Fits, Grouping, Saturates, Tables, Tally, Window};
use super::{Charge, Delay, Protocol, fitting, once};
use crate::{Failure, Sharing};
use std::cmp::Reverse;

/// The bounds on each task's blocking, in the order of the tasks. `homes` has each resource's processor.
///
/// # Errors
/// [`Failure::Unsupported`] where a resource has no home; [`Failure::Overflow`].
pub fn dpcp(sharing: &Sharing, homes: &[u16]) -> Result<Vec<Delay>, Failure> {
    once(&mut Dpcp::new(sharing, homes)?, sharing.tasks.len())
}

/// The same for [`joint`](super::joint).
#[derive(Debug)]
pub struct Dpcp {
    tables: Tables,
    homes: Homes,
    /// By home, the longest first.
    requests: Vec<Request>,
}

/// A task's requests for one resource.
#[derive(Clone, Copy, Debug, Default)]
struct Request {
    length: u64,
    count: u32,
    task: u32,
    priority: u32,
    /// The highest priority of its resource's users.
    ceiling: u32,
}

/// Who asks for sections where.
#[derive(Debug)]
pub(crate) struct Homes {
    /// Where each home's agents, and its requests, begin, and where its agents end.
    pub(crate) ranges: Vec<(u32, u32)>,
    /// By home, the most urgent first.
    pub(crate) agents: Vec<Agent>,
    /// For each task, by home, the place of its own agent.
    pub(crate) own: Vec<(u32, u32)>,
    /// Where each task's part of that is.
    pub(crate) owns: Vec<(u32, u32)>,
    /// For each task's processor, its place as a home, if it is one.
    pub(crate) local: Vec<Option<u32>>,
}

/// All requests of one task on one home.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Agent {
    /// The sum of N L.
    pub(crate) demand: u64,
    /// The sum of N.
    pub(crate) count: u64,
    pub(crate) task: u32,
    pub(crate) priority: u32,
}

impl Homes {
    /// Where the tasks of `tables` ask, and each request's home, in the order of the tables.
    pub(crate) fn new(sharing: &Sharing, tables: &Tables, homes: &[u16]) -> Result<(Self, Vec<u32>), Failure> {
        let highest = homes.iter().map(|home| usize::from(*home) + 1).max().unwrap_or(0);
        let mut places = vec![u32::MAX; highest];
        let mut ranges: Vec<(u32, u32)> = Vec::with_capacity(highest);
        let mut of_requests = Vec::with_capacity(tables.all_asked().len());
        for (task, sharer) in sharing.tasks.iter().enumerate() {
            for demand in sharer.requests.iter().filter(|demand| demand.count > 0) {
                let home = homes.get(usize::from(demand.resource));
                let home = home.ok_or(Failure::Unsupported { task, what: "it asks for a resource without a home" })?;
                let place = &mut places[usize::from(*home)];
                if *place == u32::MAX {
                    *place = ranges.len() as u32;
                    ranges.push((0, 0));
                }
                ranges[*place as usize].1 += 1;
                of_requests.push(*place);
            }
        }
        let mut next = 0;
        for (first, last) in &mut ranges {
            (*first, next) = (next, next + *last);
            *last = *first;
        }
        let mut agents = vec![Agent::default(); of_requests.len()];
        let mut own = Vec::with_capacity(of_requests.len());
        let mut owns = vec![(0, 0); tables.rows.len()];
        for task in tables.by_priority() {
            let begin = own.len() as u32;
            for place in tables.asked_range(task as usize) {
                let request = tables.all_asked()[place];
                let (first, last) = &mut ranges[of_requests[place] as usize];
                if first == last || agents[*last as usize - 1].task != task {
                    own.push((of_requests[place], *last));
                    let priority = tables.rows[task as usize].priority;
                    agents[*last as usize] = Agent { demand: 0, count: 0, task, priority };
                    *last += 1;
                }
                let agent = &mut agents[*last as usize - 1];
                let demand = request.length.saturating_mul(u64::from(request.count));
                agent.demand = agent.demand.saturating_add(demand);
                agent.count += u64::from(request.count);
            }
            owns[task as usize] = (begin, own.len() as u32);
        }
        let local = sharing
            .tasks
            .iter()
            .map(|task| places.get(usize::from(task.cluster)).copied().filter(|place| *place != u32::MAX));
        let local = local.collect();
        Ok((Self { ranges, agents, own, owns, local }, of_requests))
    }

    pub(crate) fn agents(&self, home: u32) -> &[Agent] {
        let (first, last) = self.ranges[home as usize];
        &self.agents[first as usize..last as usize]
    }

    /// All requests of others on `task`'s own processor, in `window`.
    pub(crate) fn local<A: Arithmetic>(&self, window: Window, task: usize) -> Tally {
        let mut local = Tally::default();
        if let Some(home) = self.local[task] {
            all_of::<A>(window, self.agents(home), task, &mut local);
        }
        local
    }
}

/// All requests of `agents` but `task`'s own.
#[inline]
fn all_of<A: Arithmetic>(window: Window, agents: &[Agent], task: usize, tally: &mut Tally) {
    for agent in agents {
        let jobs = window.jobs::<A>(agent.task) & u64::from(agent.task as usize != task).wrapping_neg();
        tally.length = A::add(tally.length, A::mul(jobs, agent.demand));
        tally.requests = A::add(tally.requests, A::mul(jobs, agent.count));
    }
}

impl Dpcp {
    /// # Errors
    /// As [`dpcp`].
    pub fn new(sharing: &Sharing, homes: &[u16]) -> Result<Self, Failure> {
        let tasks = &sharing.tasks;
        let tables = Tables::new(tasks, |task| &tasks[task].requests, Grouping::Together)?;
        let (homes, of_requests) = Homes::new(sharing, &tables, homes)?;
        let mut ceilings = vec![0; tables.resource_count()];
        for (task, row) in tables.rows.iter().enumerate() {
            for request in tables.asked(task) {
                let ceiling = &mut ceilings[request.resource as usize];
                *ceiling = row.priority.max(*ceiling);
            }
        }
        let mut requests = vec![Request::default(); of_requests.len()];
        let mut free: Vec<u32> = homes.ranges.iter().map(|(first, _)| *first).collect();
        let mut of_resources = vec![0; ceilings.len()];
        for (asked, home) in tables.all_asked().iter().zip(&of_requests) {
            of_resources[asked.resource as usize] = *home;
        }
        // Those of one resource are sorted.
        for (resource, home) in of_resources.iter().enumerate() {
            let free = &mut free[*home as usize];
            for &Entry { length, count, task, .. } in tables.entries_of(resource as u32) {
                let (priority, ceiling) = (tables.rows[task as usize].priority, ceilings[resource]);
                requests[*free as usize] = Request { length, count, task, priority, ceiling };
                *free += 1;
            }
        }
        for ((first, _), last) in homes.ranges.iter().zip(free) {
            let its = &mut requests[*first as usize..last as usize];
            if !its.is_sorted_by(|a, b| a.length >= b.length) {
                its.sort_unstable_by_key(|request| Reverse(request.length));
            }
        }
        Ok(Self { tables, homes, requests })
    }

    fn all<A: Arithmetic>(&self, delays: &mut [Delay]) {
        for (task, delay) in delays.iter_mut().enumerate() {
            let window = self.tables.window(task);
            let (remote, local) = (self.remote::<A>(window, task), self.homes.local::<A>(window, task));
            *delay = Delay::new(remote, local, Tally::default());
        }
    }

    fn remote<A: Arithmetic>(&self, window: Window, task: usize) -> Tally {
        let mut remote = Tally::default();
        let priority = self.tables.rows[task].priority;
        let (begin, end) = self.homes.owns[task];
        for &(home, own) in &self.homes.own[begin as usize..end as usize] {
            if self.homes.local[task] == Some(home) {
                continue;
            }
            let (first, last) = self.homes.ranges[home as usize];
            let mut higher = own + 1;
            while higher < last && self.homes.agents[higher as usize].priority == priority {
                higher += 1;
            }
            all_of::<A>(window, &self.homes.agents[first as usize..higher as usize], task, &mut remote);
            if higher == last {
                continue;
            }
            let mut left = self.homes.agents[own as usize].count;
            let requests_end =
                self.homes.ranges.get(home as usize + 1).map_or(self.requests.len(), |next| next.0 as usize);
            for request in &self.requests[first as usize..requests_end] {
                if request.priority < priority && request.ceiling >= priority {
                    let requests = A::least(A::mul(window.jobs::<A>(request.task), u64::from(request.count)), left);
                    remote.count::<A>(requests, request.length);
                    left -= requests;
                    if left == 0 {
                        break;
                    }
                }
            }
        }
        remote
    }
}

impl Protocol for Dpcp {
    fn set_responses(&mut self, responses: &[u64]) -> Result<(), Failure> {
        self.tables.set_responses(responses)
    }

    fn delays(&mut self, delays: &mut [Delay]) -> Result<(), Failure> {
        if self.tables.fits() {
            self.all::<Fits>(delays);
        } else {
            self.all::<Saturates>(delays);
        }
        fitting(delays)
    }

    fn charge(&self, delay: &Delay) -> Option<Charge> {
        Some(Charge { suspended: delay.remote?, blocked: delay.local, executed: 0 })
    }
}
