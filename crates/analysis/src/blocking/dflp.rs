//! A closed bound for the distributed FIFO locking protocol (DFLP).
//!
//! The protocol is like the DPCP, except that the sections at a home execute in the order of their requests, above all
//! jobs. The source is Brandenburg, *Improved analysis and evaluation of real-time semaphore protocols for P-FP
//! scheduling*, RTAS 2013, which bounds it by a linear program. The bound here follows from one constraint of that
//! program alone, and is never below it.
//!
//! ```text
//! remote = sum over homes p other than i's processor, and other tasks x, of the a(i,p) longest requests of x on p
//! local  = all requests of other tasks for resources whose home is i's processor
//! ```
//! a(i,p) is the number of requests of i on p. Each waits for at most one request of each other task: a task issues its
//! requests one after another, and a later one is queued behind.
//!
//! # Examples
//! ```
//! use lockwright_analysis::blocking::dflp::dflp;
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
//! assert_eq!(dflp(&sharing, &[1])?[0].remote, Some(5));
//! # Ok::<(), lockwright_analysis::Failure>(())
//! ```

use super::delay::{Charge, Delay, DelayBounds, fitting, once};
use crate::rows::requests::{Asked, Chosen, Entry, Grouping, RequestTables, Window, longest_of_each};
use crate::rows::simd::{Crowd, Fair, Turns};
use crate::rows::tally::{Arithmetic, Fits, Saturates, Tally};
use crate::{Failure, Sharing};
use lockwright_model::TaskId;
use std::cmp::Reverse;

/// Returns bounds on the blocking of one job of each task under DFLP, with partitioned fixed priorities, in the order
/// of the tasks.
///
/// `homes` contains the home processor of each resource. Times are in the unit of the input. The source is in the
/// [module](self).
///
/// # Errors
/// Returns [`Failure::Unsupported`] for a resource without a home or a period of 0, and [`Failure::Overflow`] if a
/// number does not fit.
pub fn dflp(sharing: &Sharing, homes: &[u16]) -> Result<Vec<Delay>, Failure> {
    once(&mut Dflp::new(sharing, homes)?, sharing.tasks.len())
}

/// The bounds of [`dflp`] as a function of response times, for [`joint`](super::joint).
#[derive(Debug)]
pub struct Dflp {
    tables: RequestTables,
    homes: Homes,
    /// By home, then by agent, the longest request first.
    requests: Vec<Entry>,
    /// The start of each home's requests, with one more entry than there are homes.
    begins: Vec<u32>,
    crowd: Crowd<Fair>,
    remote: Vec<Tally>,
    /// For one home, the places of the agents whose delays are computed.
    places: Vec<usize>,
}

impl Dflp {
    /// Creates the bounds. `homes` contains the home processor of each resource.
    ///
    /// # Errors
    /// Returns the errors of [`dflp`].
    pub fn new(sharing: &Sharing, homes: &[u16]) -> Result<Self, Failure> {
        let tasks = &sharing.tasks;
        let tables = RequestTables::new(tasks, |task| &tasks[task].requests, Grouping::Apart)?;
        let homes = Homes::new(sharing, &tables, homes)?;
        let requests = Vec::with_capacity(homes.of_requests.len());
        let begins = Vec::with_capacity(homes.ranges.len() + 1);
        let (crowd, remote) = (Crowd::new(tasks.len()), vec![Tally::default(); tasks.len()]);
        let mut bounds = Self { tables, homes, requests, begins, crowd, remote, places: Vec::new() };
        bounds.sort();
        Ok(bounds)
    }

    /// Collects the requests of the tables by home.
    fn sort(&mut self) {
        let Self { tables, homes: Homes { ranges, agents, of_requests, .. }, requests, begins, .. } = self;
        requests.clear();
        begins.clear();
        for (home, &(first, last)) in ranges.iter().enumerate() {
            begins.push(requests.len() as u32);
            for agent in &mut agents[first as usize..last as usize] {
                let begin = requests.len();
                agent.demand = 0;
                for place in tables.asked_range(agent.task as usize) {
                    if of_requests[place] == home as u32 {
                        let Asked { length, count, .. } = tables.all_asked()[place];
                        agent.demand = agent.demand.saturating_add(length.saturating_mul(u64::from(count)));
                        requests.push(Entry { length, count, task: agent.task, ..Entry::default() });
                    }
                }
                let its = &mut requests[begin..];
                if its.len() > 1 {
                    its.sort_unstable_by_key(|entry| Reverse(entry.length));
                }
                its[0].leads = true;
            }
        }
        begins.push(requests.len() as u32);
    }

    /// Takes over the lengths of the requests of these tasks from `sharing`, which differs in these alone.
    pub(crate) fn set_lengths(&mut self, sharing: &Sharing, tasks: &[TaskId]) {
        self.tables.set_lengths(sharing, tasks);
        self.sort();
    }

    /// Computes the delays of the chosen tasks.
    fn all<A: Arithmetic>(&mut self, chosen: Chosen<'_>, delays: &mut [Delay]) {
        self.remote.fill(Tally::default());
        for (home, ends) in self.begins.windows(2).enumerate() {
            let home = home as u32;
            let its = &self.requests[ends[0] as usize..ends[1] as usize];
            let (tables, homes) = (&self.tables, &self.homes);
            let agents = homes.agents(home);
            let places = &mut self.places;
            places.clear();
            places.extend((0..agents.len()).filter(|&place| tables.is_chosen(agents[place].task, chosen)));
            if places.is_empty() {
                continue;
            }
            let mut add = |place: usize, tally: Tally| {
                let task = agents[place].task as usize;
                if homes.local[task] != Some(home) {
                    self.remote[task].add(tally);
                }
            };
            if tables.is_small() {
                let askers = places.iter().map(|&place| {
                    let agent = &agents[place];
                    let (key, issued) = (agent.task as i16, agent.count as i16);
                    tables.asker(agent.task, Turns { key, each: issued, total: issued })
                });
                let steps = its.iter().map(|entry| tables.turn(entry, entry.task));
                self.crowd.delays(steps, askers, |asker, tally| add(places[asker], tally));
            } else {
                for &place in &*places {
                    let agent = &agents[place];
                    let (window, task) = (tables.window(agent.task as usize), |entry: &Entry| entry.task);
                    add(place, longest_of_each::<A>(its, task, window, agent.task, agent.count));
                }
            }
        }
        for (task, delay) in
            delays.iter_mut().enumerate().filter(|(task, _)| self.tables.is_chosen(*task as u32, chosen))
        {
            let local = self.homes.local::<A>(self.tables.window(task), task);
            *delay = Delay::new(self.remote[task], local, Tally::default());
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

impl DelayBounds for Dflp {
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
        let mut residents = vec![Vec::new(); self.homes.ranges.len()];
        for (task, home) in self.homes.local.iter().enumerate() {
            home.iter().for_each(|&home| residents[home as usize].push(task as u32));
        }
        for (home, residents) in residents.iter().enumerate() {
            let agents = self.homes.agents(home as u32);
            for other in agents.iter().map(|agent| agent.task) {
                let before = before[other as usize];
                if before != self.tables.responses[other as usize] {
                    for task in residents.iter().copied().chain(agents.iter().map(|agent| agent.task)) {
                        let marked = &mut marked[task as usize];
                        *marked = *marked || self.tables.meets_other_jobs(task, other, before);
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

/// The homes of resources, with the tasks that have requests there.
#[derive(Debug)]
struct Homes {
    /// For each home, the start of its agents and of its requests, and the end of its agents.
    ranges: Vec<(u32, u32)>,
    /// By home, in the order of the tasks.
    agents: Vec<Agent>,
    /// For each task's processor, its place as a home, if it is one.
    local: Vec<Option<u32>>,
    /// The home of each request, in the order of the tables.
    of_requests: Vec<u32>,
}

/// All requests of one task at one home.
#[derive(Clone, Copy, Debug, Default)]
struct Agent {
    /// The sum of N L.
    demand: u64,
    /// The sum of N.
    count: u64,
    task: u32,
}

impl Homes {
    /// Returns the homes with the requests of `tables`. No demand is summed up yet.
    fn new(sharing: &Sharing, tables: &RequestTables, homes: &[u16]) -> Result<Self, Failure> {
        let highest = homes.iter().map(|home| usize::from(*home) + 1).max().unwrap_or(0);
        let mut places = vec![u32::MAX; highest];
        let mut ranges: Vec<(u32, u32)> = Vec::with_capacity(highest);
        let mut of_requests = Vec::with_capacity(tables.all_asked().len());
        for (task, sharer) in sharing.tasks.iter().enumerate() {
            for demand in sharer.requests.iter().filter(|demand| demand.count > 0) {
                let home = homes.get(usize::from(demand.resource));
                let home =
                    home.ok_or(Failure::Unsupported { task, what: "it has a request for a resource without a home" })?;
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
        for task in 0..tables.rows.len() {
            for place in tables.asked_range(task) {
                let request = tables.all_asked()[place];
                let (first, last) = &mut ranges[of_requests[place] as usize];
                if first == last || agents[*last as usize - 1].task != task as u32 {
                    agents[*last as usize] = Agent { demand: 0, count: 0, task: task as u32 };
                    *last += 1;
                }
                agents[*last as usize - 1].count += u64::from(request.count);
            }
        }
        let local = sharing
            .tasks
            .iter()
            .map(|task| places.get(usize::from(task.cluster)).copied().filter(|place| *place != u32::MAX));
        let local = local.collect();
        Ok(Self { ranges, agents, local, of_requests })
    }

    fn agents(&self, home: u32) -> &[Agent] {
        let (first, last) = self.ranges[home as usize];
        &self.agents[first as usize..last as usize]
    }

    /// Returns all requests of others on the processor of `task`, within `window`.
    fn local<A: Arithmetic>(&self, window: Window, task: usize) -> Tally {
        let mut local = Tally::default();
        if let Some(home) = self.local[task] {
            all_of::<A>(window, self.agents(home), task, &mut local);
        }
        local
    }
}

/// Adds all requests of `agents` except those of `task`.
#[inline]
fn all_of<A: Arithmetic>(window: Window, agents: &[Agent], task: usize, tally: &mut Tally) {
    for agent in agents {
        let jobs = window.jobs::<A>(agent.task) & u64::from(agent.task as usize != task).wrapping_neg();
        tally.length = A::add(tally.length, A::mul(jobs, agent.demand));
        tally.requests = A::add(tally.requests, A::mul(jobs, agent.count));
    }
}
