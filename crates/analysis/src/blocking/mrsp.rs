//! The multiprocessor resource sharing protocol (MrsP), and spinlocks whose waits are not added to execution times.
//!
//! Scheduling is by partitioned fixed priorities, and queues are FIFO. Under MrsP a job spins at its processor's
//! ceiling of the resource, and a waiter helps a holder that was preempted. The source of [`original`] is Burns,
//! Wellings, *A schedulability compatible multiprocessor resource sharing protocol*, ECRTS 2013.
//!
//! ```text
//! e_q = c_q * number of processors that use q
//! R = C' + sum of N(i,q) e_q + max e_q + sum over h of ceil(R / T_h) (C'_h + sum of N(h,q) e_q)
//! ```
//! C' is the execution time without sections, c_q the longest section on q, and h ranges over the more urgent tasks on
//! i's processor. The maximum is over the resources that a less urgent task of the processor uses, with a local ceiling
//! of at least i's priority.
//!
//! Zhao, Garrido, Burns, Wellings, *New schedulability analysis for MrsP*, RTCSA 2017, count each remote request once,
//! as do their two analyses of spinlocks ([`Access`]). With t = R_i and `jobs_x = ceil((t + R_x) / T_x)`:
//!
//! ```text
//! rem_p(q) = sum over x on p of jobs_x N(x,q)        hp(i,q) = the same over h on i's processor more urgent than i
//! direct    = sum over q of c_q * sum over other p of min(rem_p(q) - hp(i,q), N(i,q))
//! indirect_h = sum over q of c_q * (n + sum over other p of min(rem_p(q) - hp(h,q), n)), n = jobs_h N(h,q)
//! arrival   = max over q as above of c_q * (1 + number of other p with rem_p(q) > hp(i,q) + N(i,q))
//! R = C' + sum of N(i,q) c_q + direct + arrival + sum over h of (ceil(t / T_h) C'_h + indirect_h)
//! ```
//! Differences are at least 0. As they are differences of growing terms, the sum may decrease as t grows. All response
//! times are therefore recomputed from those of the previous round, from C on, until a round changes nothing.
//!
//! Of two tasks of equal priority, each counts as more urgent, except in hp, and also as less urgent.
//!
//! With preemptable spinning, direct counts the requests of i and of all h together. Each preemption (there are `sum of
//! ceil(t / T_h)`) cancels a wait that then starts again: it costs one more of the requests left on each p, the most
//! expensive ones first. The arrival term is one section.
//!
//! # Examples
//! ```
//! use lockwright_analysis::blocking::mrsp;
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
//! // All sections on a resource count with the length of the longest, 5.
//! assert_eq!(mrsp::zhao(&sharing, mrsp::Access::Helped)?.responses, [17, 15]);
//! # Ok::<(), lockwright_analysis::Failure>(())
//! ```

pub(crate) mod system;

use super::joint::{ROUNDS_MAX, STEPS_MAX};
use crate::rows::divisor::Divisor;
use crate::rows::requests::{Entry, Group, Grouping, RequestTables, Window};
use crate::rows::tally::{Saturates, TIME_MAX};
use crate::{Failure, Limit, Sharing};

/// Response times and their parts, in the order of the tasks. Times are in the unit of the input.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub struct Answer {
    /// The response times, R.
    pub responses: Vec<u64>,
    /// The task's own sections and their waits; under [`Access::Helped`] the waits only.
    pub accesses: Vec<u64>,
    /// The delay that occurs once per job, at its arrival.
    pub arrivals: Vec<u64>,
}

/// The tasks that a less urgent task delays while it waits or holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Boosted {
    /// Every task of its processor.
    AboveAll,
    /// The tasks up to the ceiling of the resource on its processor.
    Ceiling,
}

/// How jobs wait for and hold resources that several processors use.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Access {
    /// At the local ceiling, with waiters that help: MrsP.
    Helped,
    /// Without preemption.
    NonPreemptive,
    /// Jobs wait at their own priority and lose their place when preempted. They hold resources without preemption.
    Preemptable,
}

impl Access {
    fn boosted(self) -> Boosted {
        match self {
            Self::Helped => Boosted::Ceiling,
            Self::NonPreemptive | Self::Preemptable => Boosted::AboveAll,
        }
    }
}

/// Returns the response times under MrsP and partitioned fixed priorities, by the original analysis.
///
/// Times are in the unit of the input. The source is Burns, Wellings (ECRTS 2013); see the [module](self).
///
/// # Errors
/// Returns [`Failure::Late`] or [`Failure::Diverged`] with a task that has no response time up to its deadline,
/// [`Failure::Unsupported`] for a task whose sections are longer than its execution or whose deadline exceeds its
/// period, and [`Failure::Overflow`] if a number does not fit.
pub fn original(sharing: &Sharing) -> Result<Answer, Failure> {
    inflated(sharing, Boosted::Ceiling)
}

/// Returns the response times under MrsP or spinlocks and partitioned fixed priorities, by the analyses of 2017.
///
/// Times are in the unit of the input. The source is Zhao, Garrido, Burns, Wellings (RTCSA 2017); see the
/// [module](self).
///
/// # Errors
/// Returns the errors of [`original`].
pub fn zhao(sharing: &Sharing, access: Access) -> Result<Answer, Failure> {
    let set = Set::new(sharing)?;
    let count = set.rows.len();
    let mut answer = Answer {
        responses: set.rows.iter().map(|row| row.alone.saturating_add(row.sections)).collect(),
        accesses: vec![0; count],
        arrivals: vec![0; count],
    };
    let mut tables = RequestTables::new(&sharing.tasks, |task| &sharing.tasks[task].requests, Grouping::Clusters)?;
    tables.set_responses(&answer.responses)?;
    let mut scratch = Scratch::default();
    for _ in 0..ROUNDS_MAX {
        let mut changed = false;
        for task in 0..count {
            let window = tables.window(task);
            let round = Round {
                set: &set,
                tables: &tables,
                task,
                t: tables.responses[task],
                window,
                boosted: access.boosted(),
            };
            let (wait, interference, arrival) = match access {
                Access::Preemptable => (round.preemptable(&mut scratch), round.executed_before(), round.arrival(false)),
                _ => (round.direct(), round.interference(), round.arrival(true)),
            };
            let row = &set.rows[task];
            // Preemptable waits already contain the sections.
            let own = if access == Access::Preemptable { 0 } else { row.sections };
            let response = [row.alone, own, wait, interference, arrival].into_iter().fold(0, u64::saturating_add);
            if response > sharing.tasks[task].deadline {
                return Err(Failure::Late { task, response });
            }
            changed |= response != answer.responses[task];
            answer.responses[task] = response;
            answer.accesses[task] = if access == Access::NonPreemptive { wait.saturating_add(own) } else { wait };
            answer.arrivals[task] = arrival;
        }
        if !changed {
            return Ok(answer);
        }
        tables.set_responses(&answer.responses)?;
    }
    Err(Failure::Diverged { task: 0, limit: Limit { name: "rounds", most: u64::from(ROUNDS_MAX) } })
}

/// A task without its sections.
struct Row {
    /// C'.
    alone: u64,
    /// The sum of N c.
    sections: u64,
    period: Divisor,
}

/// The tasks, and the length of a section on each resource.
struct Set {
    rows: Vec<Row>,
    /// c, by the places of the tables.
    lengths: Vec<u64>,
    /// For each resource and each of its groups, the highest priority of a user.
    ceilings: Vec<Vec<u32>>,
}

impl Set {
    fn new(sharing: &Sharing) -> Result<Self, Failure> {
        let tasks = &sharing.tasks;
        let tables = RequestTables::new(tasks, |task| &tasks[task].requests, Grouping::Clusters)?;
        let longest = |group: &Group| tables.entries(*group)[0].length;
        let ceiling = |group: &Group| {
            let priorities = tables.entries(*group).iter().map(|entry| tables.rows[entry.task as usize].priority);
            priorities.max().unwrap_or(0)
        };
        let resources = || (0..tables.resource_count() as u32).map(|resource| tables.groups(resource));
        let lengths: Vec<u64> = resources().map(|groups| groups.iter().map(longest).max().unwrap_or(0)).collect();
        let ceilings = resources().map(|groups| groups.iter().map(ceiling).collect()).collect();
        let mut rows = Vec::with_capacity(tasks.len());
        for (task, sharer) in tasks.iter().enumerate() {
            if sharer.deadline > sharer.period {
                return Err(Failure::Unsupported { task, what: "its deadline is beyond its period" });
            }
            let (mut own, mut sections) = (0_u64, 0_u64);
            for asked in tables.asked(task) {
                let count = u64::from(asked.count);
                own = own.saturating_add(asked.length.saturating_mul(count));
                sections = sections.saturating_add(lengths[asked.resource as usize].saturating_mul(count));
            }
            let alone = sharer.cost.checked_sub(own);
            let alone =
                alone.ok_or(Failure::Unsupported { task, what: "its sections are longer than its execution" })?;
            if alone.max(sections) > TIME_MAX / 2 {
                return Err(Failure::Overflow);
            }
            rows.push(Row { alone, sections, period: tables.arrivals[task].period });
        }
        Ok(Self { rows, lengths, ceilings })
    }

    /// Returns whether a less urgent task of the same processor can hold `resource` so that `task` has to wait.
    fn delays(&self, tables: &RequestTables, resource: u32, task: usize, boosted: Boosted) -> bool {
        let row = &tables.rows[task];
        let groups = tables.groups(resource);
        groups.iter().zip(&self.ceilings[resource as usize]).any(|(group, ceiling)| {
            let lower = |other: usize| other != task && tables.rows[other].priority <= row.priority;
            group.cluster == row.cluster
                && (*ceiling >= row.priority || (boosted == Boosted::AboveAll && groups.len() > 1))
                && tables.entries(*group).iter().any(|entry| lower(entry.task as usize))
        })
    }
}

/// One task in one round.
struct Round<'a> {
    set: &'a Set,
    tables: &'a RequestTables,
    task: usize,
    t: u64,
    /// The jobs of each task within t.
    window: Window<'a>,
    boosted: Boosted,
}

/// The requests of each processor for a resource that are left.
#[derive(Default)]
struct Scratch {
    left: Vec<u64>,
    /// The cost of a preemption, and the number of preemptions with this cost.
    steps: Vec<(u64, u64)>,
}

impl Round<'_> {
    /// Returns the other tasks of the same processor that are at least as urgent.
    fn more_urgent(&self) -> impl Iterator<Item = usize> + '_ {
        let row = &self.tables.rows[self.task];
        let cluster = self.tables.cluster(row.cluster as usize).iter().map(|other| *other as usize);
        let no_less = cluster.take_while(|other| self.tables.rows[*other].priority >= row.priority);
        no_less.filter(|other| *other != self.task)
    }

    fn of(&self, entry: Entry) -> u64 {
        self.window.jobs::<Saturates>(entry.task).saturating_mul(u64::from(entry.count))
    }

    /// Returns the number of requests of a group's tasks within t.
    fn requests(&self, group: Group) -> u64 {
        let entries = self.tables.entries(group).iter();
        entries.fold(0, |sum, entry| sum.saturating_add(self.of(*entry)))
    }

    /// Returns hp: the number of requests for a resource of more urgent tasks on the processor of `task`.
    fn requests_above(&self, resource: u32, task: usize) -> u64 {
        self.requests_of(resource, task, |priority, own| priority > own)
    }

    /// Returns the number of requests for a resource of other tasks on the processor of `task` for whose priority `is`
    /// holds.
    fn requests_of(&self, resource: u32, task: usize, is: impl Fn(u32, u32) -> bool) -> u64 {
        let row = &self.tables.rows[task];
        let mut sum = 0_u64;
        for group in self.tables.groups(resource).iter().filter(|group| group.cluster == row.cluster) {
            for entry in self.tables.entries(*group) {
                let other = entry.task as usize;
                if other != task && is(self.tables.rows[other].priority, row.priority) {
                    sum = sum.saturating_add(self.of(*entry));
                }
            }
        }
        sum
    }

    fn other_groups(&self, resource: u32) -> impl Iterator<Item = Group> + '_ {
        let cluster = self.tables.rows[self.task].cluster;
        self.tables.groups(resource).iter().copied().filter(move |group| group.cluster != cluster)
    }

    /// Returns the number of requests of other processors for which `issued` requests of `task` wait.
    fn remote(&self, resource: u32, task: usize, issued: u64) -> u64 {
        let above = self.requests_above(resource, task);
        let of = |group| self.requests(group).saturating_sub(above).min(issued);
        self.other_groups(resource).fold(0, |sum, group| sum.saturating_add(of(group)))
    }

    fn direct(&self) -> u64 {
        self.tables.asked(self.task).iter().fold(0, |sum, asked| {
            let waits = self.remote(asked.resource, self.task, u64::from(asked.count));
            sum.saturating_add(waits.saturating_mul(self.set.lengths[asked.resource as usize]))
        })
    }

    fn executed_before(&self) -> u64 {
        self.more_urgent().fold(0, |sum, other| {
            let row = &self.set.rows[other];
            sum.saturating_add(row.period.ceil(self.t).saturating_mul(row.alone))
        })
    }

    fn interference(&self) -> u64 {
        let mut sum = self.executed_before();
        for other in self.more_urgent() {
            let jobs = self.window.jobs::<Saturates>(other as u32);
            for asked in self.tables.asked(other) {
                let issued = jobs.saturating_mul(u64::from(asked.count));
                let sections = issued.saturating_add(self.remote(asked.resource, other, issued));
                sum = sum.saturating_add(sections.saturating_mul(self.set.lengths[asked.resource as usize]));
            }
        }
        sum
    }

    fn arrival(&self, waits: bool) -> u64 {
        let mut arrival = 0;
        for resource in 0..self.tables.resource_count() as u32 {
            if !self.set.delays(self.tables, resource, self.task, self.boosted) {
                continue;
            }
            let mut sections = 1;
            if waits {
                let own = self.tables.asked(self.task).iter().find(|asked| asked.resource == resource);
                let issued = own.map_or(0, |asked| u64::from(asked.count));
                let issued = issued.saturating_add(self.requests_above(resource, self.task));
                sections += self.other_groups(resource).filter(|group| self.requests(*group) > issued).count() as u64;
            }
            arrival = sections.saturating_mul(self.set.lengths[resource as usize]).max(arrival);
        }
        arrival
    }

    fn preemptable(&self, scratch: &mut Scratch) -> u64 {
        let mut sum = 0_u64;
        scratch.steps.clear();
        for resource in 0..self.tables.resource_count() as u32 {
            let length = self.set.lengths[resource as usize];
            let own = self.tables.asked(self.task).iter().find(|asked| asked.resource == resource);
            let issued = own.map_or(0, |asked| u64::from(asked.count));
            let before = self.requests_of(resource, self.task, |priority, own| priority >= own);
            let issued = issued.saturating_add(before);
            if issued == 0 {
                continue;
            }
            let mut sections = issued;
            scratch.left.clear();
            for group in self.other_groups(resource) {
                let requests = self.requests(group);
                sections = sections.saturating_add(requests.min(issued));
                if requests > issued {
                    scratch.left.push(requests - issued);
                }
            }
            sum = sum.saturating_add(sections.saturating_mul(length));
            // Each preemption costs one request of each processor that has any left.
            scratch.left.sort_unstable();
            let mut before = 0;
            for (place, left) in scratch.left.iter().enumerate() {
                let processors = (scratch.left.len() - place) as u64;
                scratch.steps.push((length.saturating_mul(processors), left - before));
                before = *left;
            }
        }
        let others = self.more_urgent().map(|other| self.set.rows[other].period.ceil(self.t));
        let mut preemptions = others.fold(0, u64::saturating_add);
        scratch.steps.sort_unstable_by_key(|(cost, _)| std::cmp::Reverse(*cost));
        for (cost, count) in &scratch.steps {
            let taken = preemptions.min(*count);
            sum = sum.saturating_add(cost.saturating_mul(taken));
            preemptions -= taken;
        }
        sum
    }
}

/// Returns the response times with all waits added to execution, each for one section of every processor that uses the
/// resource.
pub(crate) fn inflated(sharing: &Sharing, boosted: Boosted) -> Result<Answer, Failure> {
    let tasks = &sharing.tasks;
    let set = Set::new(sharing)?;
    let tables = RequestTables::new(tasks, |task| &tasks[task].requests, Grouping::Clusters)?;
    let served: Vec<u64> = (0..tables.resource_count() as u32)
        .map(|resource| set.lengths[resource as usize].saturating_mul(tables.groups(resource).len() as u64))
        .collect();
    let mut answer = Answer::default();
    for task in 0..tasks.len() {
        answer.accesses.push(tables.asked(task).iter().fold(0, |sum: u64, asked| {
            sum.saturating_add(served[asked.resource as usize].saturating_mul(u64::from(asked.count)))
        }));
        let delaying =
            (0..tables.resource_count() as u32).filter(|resource| set.delays(&tables, *resource, task, boosted));
        answer.arrivals.push(delaying.map(|resource| served[resource as usize]).max().unwrap_or(0));
    }
    let executed = |task: usize| set.rows[task].alone.saturating_add(answer.accesses[task]);
    let mut steps = STEPS_MAX;
    for (task, sharer) in tasks.iter().enumerate() {
        let round = Round { set: &set, tables: &tables, task, t: 0, window: tables.window(task), boosted };
        let own = executed(task).saturating_add(answer.arrivals[task]);
        let mut response = own;
        loop {
            if response > sharer.deadline {
                return Err(Failure::Late { task, response });
            }
            let limit = Limit { name: "steps", most: STEPS_MAX };
            steps = steps.checked_sub(1).ok_or(Failure::Diverged { task, limit })?;
            let next = round.more_urgent().fold(own, |sum, other| {
                let jobs = set.rows[other].period.ceil(response);
                sum.saturating_add(jobs.saturating_mul(executed(other)))
            });
            if next <= response {
                break;
            }
            response = next;
        }
        answer.responses.push(response);
    }
    Ok(answer)
}
