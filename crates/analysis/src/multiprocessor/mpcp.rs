//! The multiprocessor priority ceiling protocol (MPCP), classic bounds.
//!
//! Partitioned fixed priorities; who waits suspends, in queues by priority; a section executes at its ceiling on its own processor.
//! Lakshmanan, de Niz, Rajkumar, Coordinated task scheduling, allocation and synchronization on multiprocessors, RTSS 2009; in
//! the form SchedCAT computes.
//!
//! ```text
//! W_{t,q} = L_{t,q} + sum over o on t's processor, o != t, of max { L_{o,r} : ceiling(r) >= ceiling(q) }          a section's response time
//! X = max { W_{l,q} : l less urgent } + sum over h more urgent of jobs_h(X) N_{h,q} W_{h,q}                         one wait of i for q
//! remote = sum over q of N_{i,q} X_q
//! local = (1 + sum over q of N_{i,q}) * sum over less urgent l on i's processor of max over q of L_{l,q}         once, if it spins virtually
//! ```
//! ceiling(r), as a processor sees it, is the highest priority of any task elsewhere that uses r. "More urgent" includes tasks of the own
//! processor: X is a response time. Where priorities are equal, each of two tasks is taken for more urgent in the other's X, and for less
//! urgent in its local blocking.

use super::divisor::Divisor;
use super::tables::{Grouping, Tables};
use super::{Charge, Delay, Protocol, STEPS_MAX, fitting, once};
use crate::{Failure, Limit, Sharing};

/// What a job does while another processor's task holds what it wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Waiting {
    /// It suspends; less urgent tasks execute, and may delay it by a section each time it resumes.
    Suspended,
    /// Less urgent tasks may execute but not begin sections: they delay it once. The wait counts as execution ("virtual spinning").
    Virtual,
}

/// How jobs that were there before the wait began are counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CarryIn {
    /// One more job of each: `ceil(X / T) + 1`, as published. For response times up to the period.
    OneJob,
    /// Those that fit a response time: `ceil((X + R) / T)`. Never more than the other, where that is safe.
    Response,
}

/// The bounds on each task's blocking, in the order of the tasks. [`Delay::remote`] is `None` where one wait takes longer than the task's period
/// and its response time.
///
/// # Errors
/// [`Failure::Overflow`]; [`Failure::Unsupported`] for [`CarryIn::OneJob`] where a response time exceeds its period; [`Failure::Diverged`] after
/// [`STEPS_MAX`] steps.
pub fn mpcp(sharing: &Sharing, waiting: Waiting, carry_in: CarryIn) -> Result<Vec<Delay>, Failure> {
    once(&mut Mpcp::new(sharing, waiting, carry_in)?, sharing.tasks.len())
}

/// The same for [`joint`](super::joint).
#[derive(Debug)]
pub struct Mpcp {
    waiting: Waiting,
    carry_in: CarryIn,
    tables: Tables,
    periods: Vec<Divisor>,
    /// By resource, the most urgent task's first.
    sections: Vec<Section>,
    /// Where each resource's begin; one more than there are resources.
    resources: Vec<u32>,
    /// For each request in the order of the tables: how many sections of tasks no less urgent there are, and the longest of the others.
    below: Vec<(u32, u64)>,
    local: Vec<u64>,
}

/// Sections of one task on one resource.
#[derive(Clone, Copy, Debug)]
struct Section {
    /// N W.
    demand: u64,
    response: u64,
    task: u32,
    priority: u32,
}

impl Mpcp {
    /// # Errors
    /// As [`mpcp`].
    pub fn new(sharing: &Sharing, waiting: Waiting, carry_in: CarryIn) -> Result<Self, Failure> {
        let tasks = &sharing.tasks;
        let tables = Tables::new(tasks, |task| &tasks[task].requests, Grouping::Together)?;
        let ceilings = Ceilings::of(&tables);
        let responses = section_responses(&tables, &ceilings);
        let (resources, sections) = by_urgency(&tables, &responses);
        let below = below(&tables, &resources, &sections);
        let local = local(&tables, waiting);
        let periods = tasks.iter().map(|task| Divisor::new(task.period)).collect();
        Ok(Self { waiting, carry_in, tables, periods, sections, resources, below, local })
    }

    /// The longest that `task` waits for the resource of its request at `place`; `None` beyond `limit`.
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
                    CarryIn::OneJob => self.periods[other].ceil(x) + 1,
                    CarryIn::Response => self.tables.arrivals[other].jobs(x),
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

impl Protocol for Mpcp {
    fn set_responses(&mut self, responses: &[u64]) -> Result<(), Failure> {
        self.tables.set_responses(responses)
    }

    fn delays(&mut self, delays: &mut [Delay]) -> Result<(), Failure> {
        let mut steps = STEPS_MAX;
        for (task, delay) in delays.iter_mut().enumerate() {
            let (response, period) = (self.tables.responses[task], self.periods[task].by());
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

/// The highest priority of any user of a resource, plus one, and where; and the highest elsewhere.
struct Ceilings(Vec<(u64, u32, u64)>);

impl Ceilings {
    fn of(tables: &Tables) -> Self {
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

    /// As seen from `cluster`; 0 where nobody else uses it.
    fn seen_from(&self, cluster: u32, resource: u32) -> u64 {
        let (best, where_best, elsewhere) = self.0[resource as usize];
        if where_best == cluster { elsewhere } else { best }
    }
}

/// W of each request, in the order of the tables.
fn section_responses(tables: &Tables, ceilings: &Ceilings) -> Vec<u64> {
    let asked = tables.all_asked();
    let mut levels = Vec::with_capacity(asked.len());
    for task in 0..tables.rows.len() {
        let cluster = tables.rows[task].cluster;
        levels.extend(tables.asked(task).iter().map(|request| ceilings.seen_from(cluster, request.resource)));
    }
    let mut responses: Vec<u64> = asked.iter().map(|request| request.length).collect();
    for cluster in 0..tables.cluster_count() {
        for &task in tables.cluster(cluster) {
            for place in tables.asked_range(task as usize) {
                for &other in tables.cluster(cluster).iter().filter(|other| **other != task) {
                    let mut longest = 0;
                    for its in tables.asked_range(other as usize) {
                        if levels[its] >= levels[place] {
                            longest = asked[its].length.max(longest);
                        }
                    }
                    responses[place] = responses[place].saturating_add(longest);
                }
            }
        }
    }
    responses
}

/// Where each resource's sections begin, and all sections by resource, the most urgent task's first.
fn by_urgency(tables: &Tables, responses: &[u64]) -> (Vec<u32>, Vec<Section>) {
    let resources = tables.resource_count();
    let mut begins = vec![0_u32; resources + 1];
    for request in tables.all_asked() {
        begins[request.resource as usize + 1] += 1;
    }
    for resource in 0..resources {
        begins[resource + 1] += begins[resource];
    }
    let mut free = begins.clone();
    let mut sections = vec![Section { demand: 0, response: 0, task: 0, priority: 0 }; responses.len()];
    for (task, row) in tables.rows.iter().enumerate() {
        for place in tables.asked_range(task) {
            let request = tables.all_asked()[place];
            let response = responses[place];
            let demand = response.saturating_mul(u64::from(request.count));
            let free = &mut free[request.resource as usize];
            sections[*free as usize] = Section { demand, response, task: task as u32, priority: row.priority };
            *free += 1;
        }
    }
    for ends in begins.windows(2) {
        sections[ends[0] as usize..ends[1] as usize]
            .sort_unstable_by_key(|section| std::cmp::Reverse(section.priority));
    }
    (begins, sections)
}

/// For each request: how many sections of tasks no less urgent there are on its resource, its own included, and the longest of the others.
fn below(tables: &Tables, resources: &[u32], sections: &[Section]) -> Vec<(u32, u64)> {
    let mut below = Vec::with_capacity(sections.len());
    for task in 0..tables.rows.len() {
        let priority = tables.rows[task].priority;
        for request in tables.asked(task) {
            let resource = request.resource as usize;
            let all = &sections[resources[resource] as usize..resources[resource + 1] as usize];
            let higher = all.iter().take_while(|section| section.priority >= priority).count();
            let longest = all[higher..].iter().map(|section| section.response).max();
            below.push((higher as u32, longest.unwrap_or(0)));
        }
    }
    below
}

fn local(tables: &Tables, waiting: Waiting) -> Vec<u64> {
    let mut local = vec![0; tables.rows.len()];
    let longest = |task: u32| tables.asked(task as usize).iter().map(|request| request.length).max().unwrap_or(0);
    for cluster in 0..tables.cluster_count() {
        let tasks = tables.cluster(cluster);
        for (place, &task) in tasks.iter().enumerate() {
            let priority = |task: u32| tables.rows[task as usize].priority;
            let before = tasks[..place].iter().rev().take_while(|other| priority(**other) == priority(task));
            let sum = before.chain(&tasks[place + 1..]).fold(0_u64, |sum, other| sum.saturating_add(longest(*other)));
            let requests: u64 = tables.asked(task as usize).iter().map(|request| u64::from(request.count)).sum();
            local[task as usize] = match waiting {
                Waiting::Suspended => sum.saturating_mul(requests + 1),
                Waiting::Virtual => sum,
            };
        }
    }
    local
}
