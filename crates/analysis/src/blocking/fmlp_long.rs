//! `fmlp_long`: one section of each other user, and everything that can delay these users on their processors.
//!
//! While i waits for q, the owner of q is at least as urgent as i, because it inherits. On the owner's processor, only
//! tasks at least as urgent as i therefore execute in its stead: by their own priority, or in a section with such a
//! ceiling.
//! ```text
//!   W(i,q) = sum over other users k of L(k,q)
//!          + sum over processors of those users of (
//!                sum over h there at least as urgent as i of ceil((W + R_h) / T_h) C_h
//!              + sum over l there less urgent, r with ceiling(r) >= i, of ceil((W + R_l) / T_l) N(l,r) L(l,r) )
//!   S = sum of N(i,q) W(i,q)
//!   B = (1 + sum of N(i,q)) * sum over l less urgent on i's processor of max { L(l,r) : ceiling(r) >= i }
//! ```
//! A less urgent task delays i with the one section that it had requested before i arrived or resumed. The bound is our
//! own; the bounds of FMLP+ do not hold here.

use super::delay::{Charge, Delay, DelayBounds};
use crate::rows::divisor::Divisor;
use crate::rows::fixed_point::Budget;
use crate::rows::tables::Tables;
use crate::{Demand, Failure, Sharing};
use lockwright_model::{Priority, Protocol, Request, ResourceId, TaskId};

/// The bounds of a system as a function of response times. Tasks are given by index.
pub(crate) struct FmlpLong {
    tasks: Vec<Task>,
    /// The tasks of each processor.
    cpus: Vec<Vec<usize>>,
    responses: Vec<u64>,
    /// For one wait, the tasks that delay the users of its resource.
    others: Vec<Other>,
    budget: Budget,
}

struct Task {
    priority: Priority,
    cost: u64,
    period: Divisor,
    /// The longest sections of less urgent tasks of its processor, times the number of times that they can delay it.
    local: u64,
    /// The sections of one job for each resource: the priority to which they can rise, and their total length.
    sections: Vec<(Priority, u64)>,
    requests: Vec<Wait>,
}

/// The delay of the requests for one resource.
struct Wait {
    count: u64,
    /// The sum of the longest sections of the other users.
    sections: u64,
    /// The processors of the other users.
    cpus: Vec<u16>,
    /// W for the last response times, or 0. It is not above W for longer ones.
    last: u64,
}

/// A task that delays the users of a resource.
struct Other {
    period: Divisor,
    response: u64,
    /// The work of one job.
    work: u64,
}

/// Returns the priority to which the sections on each resource can rise.
fn tops(tables: &Tables<'_>) -> Vec<Priority> {
    let system = tables.system;
    let top = |resource| match tables.protocol(resource) {
        Protocol::FmlpLong => system.highest_user(resource),
        _ => system.ceiling(resource),
    };
    system.resource_ids().map(top).collect()
}

fn task(tables: &Tables<'_>, sharing: &Sharing, tops: &[Priority], id: TaskId) -> Result<Task, Failure> {
    let own = &sharing.tasks[id.index()];
    let system = tables.system;
    let priority = system.task(id).priority;
    let count: u64 = own.requests.iter().map(|request| u64::from(request.count)).sum();
    let mut local: u64 = 0;
    for &lesser in tables.lesser(id) {
        let inherits = |request: &&Request| {
            tables.protocol(request.resource) == Protocol::FmlpLong && tops[request.resource.index()] >= priority
        };
        let longest = system.requests(lesser).iter().filter(inherits).map(|request| request.length.as_ns()).max();
        local = local.checked_add(longest.unwrap_or(0)).ok_or(Failure::Overflow)?;
    }
    let sections = system.requests(id).iter().map(|request| {
        let all = request.length.as_ns().checked_mul(u64::from(request.count));
        Ok((tops[request.resource.index()], all.ok_or(Failure::Overflow)?))
    });
    let wait = |request: &Demand| {
        let users = system.users(ResourceId(request.resource)).iter().filter(|&&user| user != id);
        let mut wait = Wait { count: u64::from(request.count), sections: 0, cpus: Vec::new(), last: 0 };
        for user in users {
            let sharer = &sharing.tasks[user.index()];
            let longest =
                sharer.requests.iter().filter(|other| other.resource == request.resource).map(|other| other.length);
            wait.sections = wait.sections.checked_add(longest.max().unwrap_or(0)).ok_or(Failure::Overflow)?;
            wait.cpus.push(sharer.cluster);
        }
        wait.cpus.sort_unstable();
        wait.cpus.dedup();
        Ok(wait)
    };
    Ok(Task {
        priority,
        cost: own.cost,
        period: Divisor::new(own.period).ok_or(Failure::Overflow)?,
        local: local.checked_mul(1 + count).ok_or(Failure::Overflow)?,
        sections: sections.collect::<Result<_, Failure>>()?,
        requests: own.requests.iter().map(wait).collect::<Result<_, Failure>>()?,
    })
}

impl Task {
    /// Returns the work of one job that executes before a request of a task with this priority.
    fn work(&self, priority: Priority) -> Option<u64> {
        if self.priority >= priority {
            return Some(self.cost);
        }
        let mut rising = self.sections.iter().filter(|(top, _)| *top >= priority);
        rising.try_fold(0_u64, |sum, (_, length)| sum.checked_add(*length))
    }
}

impl FmlpLong {
    /// Creates the bounds for a system.
    pub(crate) fn new(tables: &Tables<'_>, sharing: &Sharing) -> Result<Self, Failure> {
        let tops = tops(tables);
        let tasks = (0..sharing.tasks.len()).map(|index| task(tables, sharing, &tops, TaskId::new(index)));
        Ok(Self {
            tasks: tasks.collect::<Result<_, _>>()?,
            cpus: tables.cpus.iter().map(|tasks| tasks.iter().map(|id| id.index()).collect()).collect(),
            responses: vec![0; sharing.tasks.len()],
            others: Vec::new(),
            budget: Budget::new(),
        })
    }

    /// Returns W of one request of a task, given by its place among the task's requests.
    fn wait(&mut self, index: usize, place: usize, limit: u64) -> Option<u64> {
        let Self { tasks, cpus, responses, others, budget } = self;
        let (wait, priority) = (&tasks[index].requests[place], tasks[index].priority);
        if wait.sections == 0 {
            return Some(0);
        }
        others.clear();
        for &other in wait.cpus.iter().flat_map(|&cpu| &cpus[usize::from(cpu)]).filter(|&&other| other != index) {
            let work = tasks[other].work(priority)?;
            if work > 0 {
                others.push(Other { period: tasks[other].period, response: responses[other], work });
            }
        }
        let found = budget.least(wait.sections.max(wait.last), limit, 1 + others.len() as u64, |window| {
            others.iter().try_fold(wait.sections, |sum, other| {
                let jobs = other.period.ceil(window.checked_add(other.response)?);
                sum.checked_add(jobs.checked_mul(other.work)?)
            })
        });
        tasks[index].requests[place].last = found.ok()?;
        Some(tasks[index].requests[place].last)
    }
}

impl DelayBounds for FmlpLong {
    fn set_responses(&mut self, responses: &[u64]) -> Result<(), Failure> {
        if responses.iter().zip(&self.responses).any(|(new, last)| new < last) {
            self.tasks.iter_mut().flat_map(|task| &mut task.requests).for_each(|wait| wait.last = 0);
        }
        self.responses.copy_from_slice(responses);
        Ok(())
    }

    fn delays(&mut self, delays: &mut [Delay]) -> Result<(), Failure> {
        for (index, delay) in delays.iter_mut().enumerate() {
            let task = &self.tasks[index];
            let (limit, local) = (task.period.get() - task.cost.min(task.period.get()), task.local);
            let remote = (0..task.requests.len()).try_fold(0_u64, |sum, place| {
                let wait = self.wait(index, place, limit)?;
                sum.checked_add(wait.checked_mul(self.tasks[index].requests[place].count)?)
            });
            *delay = Delay { remote, local, ..Delay::default() };
        }
        Ok(())
    }

    fn charge(&self, delay: &Delay) -> Option<Charge> {
        Charge::of_suspensions(delay)
    }
}
