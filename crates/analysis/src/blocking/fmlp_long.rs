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
use crate::rows::fixed_point::Budget;
use crate::rows::tables::Tables;
use crate::{Failure, Sharing};
use lockwright_model::{Protocol, Request, ResourceId, TaskId};

/// The bounds of a system as a function of response times.
pub(crate) struct FmlpLong {
    tasks: Vec<Task>,
    responses: Vec<u64>,
    budget: Budget,
}

struct Task {
    cost: u64,
    period: u64,
    /// The longest sections of less urgent tasks of its processor, times the number of times that they can delay it.
    local: u64,
    requests: Vec<Wait>,
}

/// The delay of the requests for one resource.
struct Wait {
    count: u64,
    /// The sum of the longest sections of the other users.
    sections: u64,
    /// The tasks that delay these users, with the work of one job of each.
    others: Vec<(usize, u64)>,
}

fn task(tables: &Tables<'_>, sharing: &Sharing, id: TaskId) -> Result<Task, Failure> {
    let own = &sharing.tasks[id.index()];
    let system = tables.system;
    let priority = system.task(id).priority;
    let rises = |request: &&Request| match tables.protocol(request.resource) {
        Protocol::FmlpLong => system.highest_user(request.resource) >= priority,
        _ => system.ceiling(request.resource) >= priority,
    };
    let count: u64 = own.requests.iter().map(|request| u64::from(request.count)).sum();
    let mut local: u64 = 0;
    for &lesser in tables.lesser(id) {
        let inherits = |request: &&Request| tables.protocol(request.resource) == Protocol::FmlpLong && rises(request);
        let longest = system.requests(lesser).iter().filter(inherits).map(|request| request.length.as_ns()).max();
        local = local.checked_add(longest.unwrap_or(0)).ok_or(Failure::Overflow)?;
    }
    let wait = |request: &crate::Demand| {
        let users = system.users(ResourceId(request.resource)).iter().filter(|&&user| user != id);
        let mut wait = Wait { count: u64::from(request.count), sections: 0, others: Vec::new() };
        let mut cpus = Vec::new();
        for user in users {
            let sharer = &sharing.tasks[user.index()];
            let longest =
                sharer.requests.iter().filter(|other| other.resource == request.resource).map(|other| other.length);
            wait.sections = wait.sections.checked_add(longest.max().unwrap_or(0)).ok_or(Failure::Overflow)?;
            cpus.push(sharer.cluster);
        }
        for other in system.task_ids().filter(|&other| other != id && cpus.contains(&system.task(other).cpu.0)) {
            let work = if system.task(other).priority >= priority {
                system.task(other).wcet.as_ns()
            } else {
                let sections = system.requests(other).iter().filter(rises);
                let each = |sum: u64, request: &Request| {
                    sum.checked_add(request.length.as_ns().checked_mul(u64::from(request.count))?)
                };
                sections.clone().try_fold(0, each).ok_or(Failure::Overflow)?
            };
            wait.others.push((other.index(), work));
        }
        Ok(wait)
    };
    Ok(Task {
        cost: own.cost,
        period: own.period,
        local: local.checked_mul(1 + count).ok_or(Failure::Overflow)?,
        requests: own.requests.iter().map(wait).collect::<Result<_, _>>()?,
    })
}

impl FmlpLong {
    /// Creates the bounds for a system.
    pub(crate) fn new(tables: &Tables<'_>, sharing: &Sharing) -> Result<Self, Failure> {
        let tasks = (0..sharing.tasks.len()).map(|index| task(tables, sharing, TaskId::new(index)));
        Ok(Self {
            tasks: tasks.collect::<Result<_, _>>()?,
            responses: vec![0; sharing.tasks.len()],
            budget: Budget::new(),
        })
    }

    /// Returns W of one request.
    fn wait(&self, wait: &Wait, limit: u64) -> Option<u64> {
        if wait.sections == 0 {
            return Some(0);
        }
        let found = self.budget.least(wait.sections, limit, 1 + wait.others.len() as u64, |window| {
            wait.others.iter().try_fold(wait.sections, |sum, &(other, work)| {
                let jobs = window.checked_add(self.responses[other])?.div_ceil(self.tasks[other].period);
                sum.checked_add(jobs.checked_mul(work)?)
            })
        });
        found.ok()
    }
}

impl DelayBounds for FmlpLong {
    fn set_responses(&mut self, responses: &[u64]) -> Result<(), Failure> {
        self.responses.copy_from_slice(responses);
        Ok(())
    }

    fn delays(&mut self, delays: &mut [Delay]) -> Result<(), Failure> {
        for (task, delay) in self.tasks.iter().zip(delays) {
            let limit = task.period - task.cost.min(task.period);
            let remote = task
                .requests
                .iter()
                .try_fold(0_u64, |sum, wait| sum.checked_add(self.wait(wait, limit)?.checked_mul(wait.count)?));
            *delay = Delay { remote, local: task.local, ..Delay::default() };
        }
        Ok(())
    }

    fn charge(&self, delay: &Delay) -> Option<Charge> {
        Charge::of_suspensions(delay)
    }
}
