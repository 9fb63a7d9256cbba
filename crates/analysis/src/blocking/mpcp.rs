//! Classic bounds for the multiprocessor priority ceiling protocol (MPCP).
//!
//! Scheduling is by partitioned fixed priorities. Waiters suspend, in queues by priority. A section executes at its
//! ceiling on its task's processor. The source is Lakshmanan, de Niz, Rajkumar, *Coordinated task scheduling,
//! allocation and synchronization on multiprocessors*, RTSS 2009, in the form that SchedCAT computes.
//!
//! ```text
//! g(t,q) = L(t,q) + sum over o on t's processor, o != t, of max { L(o,r) : ceiling(r) >= ceiling(q) }
//! X(i,q) = max { g(l,q) : l less urgent } + sum over h more urgent of jobs_h(X) N(h,q) g(h,q)
//! remote = sum over q of N(i,q) X(i,q)
//! local  = (1 + sum over q of N(i,q)) * sum over less urgent l on i's processor of max over q of L(l,q)
//! ```
//! g(t,q) is the response time of a section, and X(i,q) one wait of i for q. With virtual spinning, local counts once,
//! without the factor. ceiling(r) on a processor is the highest priority of any task elsewhere that uses r. The more
//! urgent tasks include those of i's own processor, as X is a response time. Of two tasks of equal priority, each
//! counts as more urgent in the other's X, and as less urgent in its local blocking.
//!
//! # Examples
//! ```
//! use lockwright_analysis::blocking::mpcp::{CarryIn, Waiting, mpcp};
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
//! let delays = mpcp(&sharing, Waiting::Suspended, CarryIn::Response)?;
//! assert_eq!((delays[0].remote, delays[1].remote), (Some(5), Some(3)));
//! # Ok::<(), lockwright_analysis::Failure>(())
//! ```

pub(crate) mod system;

use super::delay::{Charge, Delay, DelayBounds, fitting, once};
use super::joint::STEPS_MAX;
use crate::rows::requests::{Grouping, RequestTables};
use crate::rows::tally::{Arithmetic, Saturates};
use crate::{Failure, Limit, Sharing};

/// How a job waits while a task of another processor holds the resource.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Waiting {
    /// The job suspends. Less urgent tasks execute, and may delay it by a section each time it resumes.
    Suspended,
    /// Less urgent tasks may execute but not begin sections, so they delay the job once. The wait counts as execution
    /// ("virtual spinning").
    Virtual,
}

/// How jobs that were pending before the wait began are counted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CarryIn {
    /// As one more job of each task: `ceil(X / T) + 1`, as published. This holds for response times up to the period.
    OneJob,
    /// By the response time: `ceil((X + R) / T)`. This is never more than the other count, if that is safe.
    Response,
}

/// Returns bounds on the blocking of one job of each task under MPCP, with partitioned fixed priorities, in the order
/// of the tasks.
///
/// [`Delay::remote`] is `None` if one wait exceeds both the task's period and its response time. Times are in the unit
/// of the input. The source is in the [module](self).
///
/// # Errors
/// Returns [`Failure::Overflow`] if a number does not fit, [`Failure::Unsupported`] for a period of 0 and for
/// [`CarryIn::OneJob`] if a response time exceeds its period, and [`Failure::Diverged`] after [`STEPS_MAX`] steps.
pub fn mpcp(sharing: &Sharing, waiting: Waiting, carry_in: CarryIn) -> Result<Vec<Delay>, Failure> {
    once(&mut Mpcp::new(sharing, waiting, carry_in)?, sharing.tasks.len())
}

/// The bounds of [`mpcp`] as a function of response times, for [`joint`](super::joint).
#[derive(Debug)]
pub struct Mpcp {
    waiting: Waiting,
    carry_in: CarryIn,
    tables: RequestTables,
    /// By resource, those of the most urgent task first.
    sections: Vec<Section>,
    /// The start of each resource's sections, with one more entry than there are resources.
    resources: Vec<u32>,
    /// For each request, in the order of the tables, the number of sections of tasks at least as urgent, and the
    /// longest of the others.
    below: Vec<(u32, u64)>,
    local: Vec<u64>,
}

/// The sections of one task on one resource.
#[derive(Clone, Copy, Debug, Default)]
struct Section {
    /// N g.
    demand: u64,
    response: u64,
    task: u32,
    priority: u32,
    /// The place of its request in the tables.
    place: u32,
}

impl Mpcp {
    /// Creates the bounds.
    ///
    /// # Errors
    /// Returns the errors of [`mpcp`].
    pub fn new(sharing: &Sharing, waiting: Waiting, carry_in: CarryIn) -> Result<Self, Failure> {
        let tasks = &sharing.tasks;
        let tables = RequestTables::new(tasks, |task| &tasks[task].requests, Grouping::Apart)?;
        let ceilings = Ceilings::of(&tables);
        let responses = section_responses(&tables, &ceilings);
        let (resources, sections, below) = by_urgency(&tables, &responses);
        let local = local(&tables, waiting);
        Ok(Self { waiting, carry_in, tables, sections, resources, below, local })
    }

    /// Returns the longest time that `task` waits for the resource of its request at `place`, or `None` if it exceeds
    /// `limit`.
    fn wait(&self, task: usize, place: usize, limit: u64, steps: &mut u64) -> Result<Option<u64>, Failure> {
        let (count, lower) = self.below[place];
        let first = self.resources[self.tables.all_asked()[place].resource as usize] as usize;
        let all = &self.sections[first..first + count as usize];
        let higher = || all.iter().filter(|section| section.task as usize != task);
        let mut x = higher().fold(lower, |sum, section| sum.saturating_add(section.demand));
        if x == 0 {
            return Ok(Some(0));
        }
        loop {
            if x > limit {
                return Ok(None);
            }
            *steps = steps
                .checked_sub(1)
                .ok_or(Failure::Diverged { task, limit: Limit { name: "steps", most: STEPS_MAX } })?;
            let mut sum = lower;
            for section in higher() {
                let other = section.task as usize;
                let jobs = match self.carry_in {
                    CarryIn::OneJob => self.tables.arrivals[other].period.ceil(x) + 1,
                    CarryIn::Response => Saturates::jobs(self.tables.arrivals[other], x),
                };
                sum = sum.saturating_add(jobs.saturating_mul(section.demand));
            }
            if sum <= x {
                return Ok(Some(x));
            }
            x = sum;
        }
    }
}

impl DelayBounds for Mpcp {
    fn set_responses(&mut self, responses: &[u64]) -> Result<(), Failure> {
        self.tables.set_responses(responses)
    }

    fn delays(&mut self, delays: &mut [Delay]) -> Result<(), Failure> {
        let mut steps = STEPS_MAX;
        for (task, delay) in delays.iter_mut().enumerate() {
            let (response, period) = (self.tables.responses[task], self.tables.arrivals[task].period.get());
            if self.carry_in == CarryIn::OneJob && response > period {
                return Err(Failure::Unsupported { task, what: "its response time exceeds its period" });
            }
            let mut remote = Some(0_u64);
            for place in self.tables.asked_range(task) {
                let count = u64::from(self.tables.all_asked()[place].count);
                let Some(wait) = self.wait(task, place, response.max(period), &mut steps)? else {
                    remote = None;
                    break;
                };
                remote = remote.map(|sum| sum.saturating_add(wait.saturating_mul(count)));
            }
            *delay = Delay { remote, local: self.local[task], arrival: 0, requests: 0 };
        }
        fitting(delays)
    }

    fn charge(&self, delay: &Delay) -> Option<Charge> {
        let remote = delay.remote?;
        Some(match self.waiting {
            Waiting::Suspended => Charge { suspended: remote, blocked: delay.local, executed: 0 },
            Waiting::Virtual => Charge { suspended: 0, blocked: delay.local, executed: remote },
        })
    }
}

/// For each resource, the highest priority of any user plus one, with the cluster of that user, and the same for users
/// elsewhere.
struct Ceilings(Vec<(u64, u32, u64)>);

impl Ceilings {
    fn of(tables: &RequestTables) -> Self {
        let mut ceilings = vec![(0, u32::MAX, 0); tables.resource_count()];
        for task in 0..tables.rows.len() {
            let row = tables.rows[task];
            let level = u64::from(row.priority) + 1;
            for request in tables.asked(task) {
                let (best, where_best, elsewhere) = &mut ceilings[request.resource as usize];
                if row.cluster == *where_best {
                    *best = level.max(*best);
                } else if level > *best {
                    (*elsewhere, *best, *where_best) = (*best, level, row.cluster);
                } else {
                    *elsewhere = level.max(*elsewhere);
                }
            }
        }
        Self(ceilings)
    }

    /// Returns the ceiling on the processor `cluster`, or 0 if no task elsewhere uses the resource.
    fn seen_from(&self, cluster: u32, resource: u32) -> u64 {
        let (best, where_best, elsewhere) = self.0[resource as usize];
        if where_best == cluster { elsewhere } else { best }
    }
}

/// Returns g of each request, in the order of the tables.
fn section_responses(tables: &RequestTables, ceilings: &Ceilings) -> Vec<u64> {
    let asked = tables.all_asked();
    let mut responses = vec![0; asked.len()];
    // For one processor: the ceiling and place of each request, the highest ceiling first; the longest section so far
    // of each task, and their sum.
    let mut keys: Vec<u64> = Vec::with_capacity(asked.len());
    let mut of_places = vec![0_u32; asked.len()];
    let mut longest = vec![0_u64; tables.rows.len()];
    for cluster in 0..tables.cluster_count() {
        keys.clear();
        for &task in tables.cluster(cluster) {
            for place in tables.asked_range(task as usize) {
                // This is at most 2^32.
                let ceiling = ceilings.seen_from(cluster as u32, asked[place].resource);
                keys.push(((SEEN_MAX - ceiling) << PLACE_BITS) | place as u64);
                of_places[place] = task;
            }
        }
        keys.sort_unstable();
        let mut sum = 0_u64;
        for equals in keys.chunk_by(|a, b| a >> PLACE_BITS == b >> PLACE_BITS) {
            let place = |key: &u64| (*key & ((1 << PLACE_BITS) - 1)) as usize;
            for place in equals.iter().map(place) {
                let (longest, length) = (&mut longest[of_places[place] as usize], asked[place].length);
                if length > *longest {
                    sum = sum.saturating_add(length - *longest);
                    *longest = length;
                }
            }
            for place in equals.iter().map(place) {
                let others = if sum == u64::MAX { sum } else { sum - longest[of_places[place] as usize] };
                responses[place] = others.saturating_add(asked[place].length);
            }
        }
    }
    responses
}

/// The number of bits for the place of a request in a key.
const PLACE_BITS: u32 = 31;

/// The highest ceiling.
const SEEN_MAX: u64 = 1 << 32;

/// Returns the start of each resource's sections; all sections by resource, those of the most urgent task first; and
/// for each request the number of sections on its resource of tasks at least as urgent, including its own, and the
/// longest of the others.
fn by_urgency(tables: &RequestTables, responses: &[u64]) -> (Vec<u32>, Vec<Section>, Vec<(u32, u64)>) {
    let resources = tables.resource_count();
    let mut begins = vec![0_u32; resources + 1];
    for request in tables.all_asked() {
        begins[request.resource as usize + 1] += 1;
    }
    for resource in 0..resources {
        begins[resource + 1] += begins[resource];
    }
    let mut free = begins.clone();
    let mut sections = vec![Section::default(); responses.len()];
    for task in tables.by_priority() {
        let priority = tables.rows[task as usize].priority;
        for place in tables.asked_range(task as usize) {
            let request = tables.all_asked()[place];
            let response = responses[place];
            let demand = response.saturating_mul(u64::from(request.count));
            let free = &mut free[request.resource as usize];
            sections[*free as usize] = Section { demand, response, task, priority, place: place as u32 };
            *free += 1;
        }
    }
    let mut below = vec![(0, 0); responses.len()];
    for ends in begins.windows(2) {
        let all = &sections[ends[0] as usize..ends[1] as usize];
        let mut longest = 0;
        let mut end = all.len();
        for equals in all.chunk_by(|a, b| a.priority == b.priority).rev() {
            for section in equals {
                below[section.place as usize] = (end as u32, longest);
            }
            end -= equals.len();
            longest = equals.iter().map(|section| section.response).max().unwrap_or(0).max(longest);
        }
    }
    (begins, sections, below)
}

fn local(tables: &RequestTables, waiting: Waiting) -> Vec<u64> {
    let mut local = vec![0; tables.rows.len()];
    let longest = |task: &u32| tables.asked(*task as usize).iter().map(|request| request.length).max().unwrap_or(0);
    for cluster in 0..tables.cluster_count() {
        let priority = |task: &u32| tables.rows[*task as usize].priority;
        let mut below = 0_u64;
        for equals in tables.cluster(cluster).chunk_by(|a, b| priority(a) == priority(b)).rev() {
            let sum = equals.iter().map(longest).fold(below, u64::saturating_add);
            for task in equals {
                let requests: u64 = tables.asked(*task as usize).iter().map(|request| u64::from(request.count)).sum();
                let others = if sum == u64::MAX { sum } else { sum - longest(task) };
                local[*task as usize] = match waiting {
                    Waiting::Suspended => others.saturating_mul(requests + 1),
                    Waiting::Virtual => others,
                };
            }
            below = sum;
        }
    }
    local
}
