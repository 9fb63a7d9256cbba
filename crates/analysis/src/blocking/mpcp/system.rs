//! `mpcp`: waiting for other processors, and boosted sections on the job's own processor.
//!
//! *Stretch.* A section of t on q executes on t's processor above every base priority, at q's ceiling there. Only
//! boosted sections with at least that ceiling delay it, and at most one of every other task o of that processor: o
//! must execute below t to request another.
//! ```text
//!   g(t,q) = L(t,q) + sum over o on t's processor of max { L(o,r) : ceiling(r) >= ceiling(q) on that processor }
//! ```
//! *Waiting.* Waiters are served by base priority. A request of i for q waits for at most one less urgent holder, and
//! then only for sections of more urgent tasks. These have at most `ceil((X + R_h) / T_h)` jobs in a wait of X: those
//! that arrive in it, and those that arrived up to R_h before it and are not done.
//! ```text
//!   X = max { g(l,q) : l less urgent } + sum over e of equal priority of g(e,q)
//!     + sum over h more urgent of ceil((X + R_h) / T_h) * N(h,q) * g(h,q)
//! ```
//! A task of equal priority is served first only with the one request that it made before, as equals are served first
//! come, first served.
//!
//! *Boosted sections.* While i is pending and not suspended, a less urgent task of its processor executes at most the
//! section that it had requested before: one at the arrival of i, and one at each of its resumptions.
//!
//! Reference: Rajkumar, ICDCS 1990; Lakshmanan, de Niz, Rajkumar, RTSS 2009, for the form of the terms. The carry-in
//! R_h is that of Yang, Chen, Huang, Real-Time Systems 53(2), 2017; counting `ceil(X / T_h)` is unsafe. With R_h = T_h
//! the waiting time is the published one, `(ceil(X / T_h) + 1)`.

use crate::blocking::delay::BlockingSection;
use crate::rows::bound::Unbounded;
use crate::rows::divisor::Divisor;
use crate::rows::fixed_point::Budget;
use crate::rows::mutant::Mutant;
use crate::rows::tables::Tables;
use lockwright_model::{MpcpCeiling, Priority, Protocol, ResourceId, System, TaskId};

/// One user of a resource, with the parameters that matter to its waiters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct User {
    pub(crate) task: TaskId,
    priority: Priority,
    period: Divisor,
    /// The number of requests of one job.
    pub(crate) count: u64,
    /// The longest time for which one of its sections holds the resource, g.
    pub(crate) kept: u64,
}

/// The users of every resource under `mpcp`, most urgent first.
pub(crate) struct Remote {
    /// By resource; empty if another protocol governs it.
    users: Vec<Vec<User>>,
    /// By resource.
    ceilings: Vec<MpcpCeiling>,
}

/// The wait of one request for one resource.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Wait {
    /// The length of the wait, X.
    pub(crate) total: u64,
    /// The less urgent holder that the request may find.
    pub(crate) holder: Option<BlockingSection>,
}

impl Remote {
    /// Returns the value for a system without a resource under `mpcp`.
    pub(crate) fn none() -> Self {
        Self { users: Vec::new(), ceilings: Vec::new() }
    }

    /// Returns `None` if a time does not fit in 64 bits.
    pub(crate) fn new(tables: &Tables<'_>) -> Option<Self> {
        let system = tables.system;
        let mut users = vec![Vec::new(); system.resources().len()];
        let ceilings: Vec<MpcpCeiling> = system.resource_ids().map(|resource| system.mpcp_ceiling(resource)).collect();
        let stretches = Stretches::new(tables, &ceilings);
        for resource in system.resource_ids() {
            if tables.protocol(resource) != Protocol::Mpcp {
                continue;
            }
            for &task in system.users(resource) {
                let Some(request) = system.requests(task).iter().find(|r| r.resource == resource) else { continue };
                let stretch = if tables.is_mutant(Mutant::Stretch) { 0 } else { stretches.of(task, resource)? };
                let kept = request.length.as_ns().checked_add(stretch)?;
                let (priority, count) = (system.task(task).priority, u64::from(request.count));
                let Some(period) = Divisor::new(system.task(task).period.as_ns()) else { continue };
                users[resource.index()].push(User { task, priority, period, count, kept });
            }
            users[resource.index()].sort_by_key(|user: &User| (core::cmp::Reverse(user.priority), user.task));
        }
        Some(Self { users, ceilings })
    }

    /// Returns the same for `other`, a system that differs from that of `tables`, for which `self` was computed, only
    /// in the lengths of the sections of `task`.
    pub(crate) fn beside(&self, tables: &Tables<'_>, other: &System, task: TaskId) -> Option<Self> {
        let (system, cpu) = (tables.system, tables.system.task(task).cpu);
        let mut users = self.users.clone();
        for (resource, users) in system.resource_ids().zip(&mut users) {
            let ceiling = self.ceilings[resource.index()].on(cpu);
            let stretch = |system| longest_above(tables, system, &self.ceilings, task, ceiling);
            let stretches = if tables.is_mutant(Mutant::Stretch) { (0, 0) } else { (stretch(system), stretch(other)) };
            let own = |system: &System| {
                let request = system.requests(task).iter().find(|request| request.resource == resource);
                request.map_or(0, |request| request.length.as_ns())
            };
            for user in users.iter_mut().filter(|user| system.task(user.task).cpu == cpu) {
                let (old, new) = if user.task == task { (own(system), own(other)) } else { stretches };
                user.kept = user.kept.checked_sub(old)?.checked_add(new)?;
            }
        }
        Some(Self { users, ceilings: self.ceilings.clone() })
    }

    /// Returns the users by priority: those more urgent than `task`, those of its priority including itself, and those
    /// less urgent.
    fn split(&self, tables: &Tables<'_>, task: TaskId, resource: ResourceId) -> (&[User], &[User], &[User]) {
        let priority = tables.system.task(task).priority;
        let users = &self.users[resource.index()];
        let (urgent, rest) = users.split_at(users.partition_point(|user| user.priority > priority));
        let (equal, lesser) = rest.split_at(rest.partition_point(|user| user.priority == priority));
        (urgent, equal, lesser)
    }

    /// Returns the users that are more urgent than `task`.
    pub(crate) fn urgent(&self, tables: &Tables<'_>, task: TaskId, resource: ResourceId) -> &[User] {
        self.split(tables, task, resource).0
    }

    /// Returns the other users with the priority of `task`.
    pub(crate) fn equal(
        &self,
        tables: &Tables<'_>,
        task: TaskId,
        resource: ResourceId,
    ) -> impl Iterator<Item = &User> + Clone {
        self.split(tables, task, resource).1.iter().filter(move |user| user.task != task)
    }

    /// Returns X for one request of `task` for `resource`, at most `limit`, for the given response times of all tasks.
    pub(crate) fn wait(
        &self,
        tables: &Tables<'_>,
        task: TaskId,
        resource: ResourceId,
        responses: impl Fn(TaskId) -> Option<u64> + Copy,
        limit: u64,
    ) -> Result<Wait, Unbounded> {
        self.wait_within(tables, &tables.budget, (task, resource), responses, (0, limit))
    }

    /// Like [`Remote::wait`], with a budget other than that of the tables, and from a known lower bound, the first of
    /// the two limits.
    pub(crate) fn wait_within(
        &self,
        tables: &Tables<'_>,
        budget: &Budget,
        (task, resource): (TaskId, ResourceId),
        responses: impl Fn(TaskId) -> Option<u64> + Copy,
        (least, limit): (u64, u64),
    ) -> Result<Wait, Unbounded> {
        let (urgent, equal, lesser) = self.split(tables, task, resource);
        let holder = holder(lesser, resource).filter(|_| !tables.is_mutant(Mutant::RemoteHolder));
        if let Some(user) = urgent.iter().find(|user| responses(user.task).is_none()) {
            return Err(Unbounded::DependsOn { task: user.task });
        }
        let mut met = holder.map_or(0, |holder| holder.length);
        if !tables.is_mutant(Mutant::RemoteEquals) {
            for user in equal.iter().filter(|user| user.task != task) {
                met = met.checked_add(user.kept).ok_or(Unbounded::BeyondPeriod)?;
            }
        }
        // A wait of 0 would be a fixed point below the first value that is tried.
        if met == 0 && urgent.is_empty() {
            return Ok(Wait { total: 0, holder });
        }
        let total = budget.least(least.max(1), limit, 1 + urgent.len() as u64, |x| {
            let mut sum = met;
            if tables.is_mutant(Mutant::RemoteUrgent) {
                return Some(sum);
            }
            for user in urgent {
                let jobs = self.jobs(tables, user, x, responses)?;
                sum = sum.checked_add(jobs.checked_mul(user.count)?.checked_mul(user.kept)?)?;
            }
            Some(sum)
        });
        Ok(Wait { total: total?, holder })
    }

    /// Returns the number of jobs of a user that can execute in a wait of `x`.
    pub(crate) fn jobs(
        &self,
        tables: &Tables<'_>,
        user: &User,
        x: u64,
        responses: impl Fn(TaskId) -> Option<u64> + Copy,
    ) -> Option<u64> {
        let carry = if tables.is_mutant(Mutant::RemoteCarryIn) { 0 } else { responses(user.task)? };
        Some(user.period.ceil(x.checked_add(carry)?))
    }
}

/// Returns the one of these users that holds the resource longest.
fn holder(users: &[User], resource: ResourceId) -> Option<BlockingSection> {
    let longest = users.iter().max_by_key(|user| user.kept)?;
    Some(BlockingSection { task: longest.task, resource, length: longest.kept })
}

/// The time by which boosted sections on the same processor can stretch sections.
struct Stretches<'a> {
    tables: &'a Tables<'a>,
    ceilings: &'a [MpcpCeiling],
    /// By CPU, for each ceiling from the highest down: the sum over its tasks of the longest section of each at this
    /// ceiling or above.
    longest: Vec<Vec<(Priority, u128)>>,
}

impl<'a> Stretches<'a> {
    fn new(tables: &'a Tables<'_>, ceilings: &'a [MpcpCeiling]) -> Self {
        let system = tables.system;
        let mut so_far = vec![0; system.tasks().len()];
        let mut on = |tasks: &Vec<TaskId>| {
            let of = |&task: &TaskId| {
                let mpcp = system.requests(task).iter().filter(|r| tables.protocol(r.resource) == Protocol::Mpcp);
                mpcp.map(move |r| (ceilings[r.resource.index()].on(system.task(task).cpu), task, r.length.as_ns()))
            };
            let mut sections: Vec<(Priority, TaskId, u64)> = tasks.iter().flat_map(of).collect();
            sections.sort_unstable_by_key(|&(ceiling, ..)| core::cmp::Reverse(ceiling));
            let (mut longest, mut together) = (Vec::new(), 0);
            for (ceiling, task, length) in sections {
                let before: &mut u64 = &mut so_far[task.index()];
                together += u128::from(length.saturating_sub(*before));
                *before = length.max(*before);
                match longest.last_mut() {
                    Some((last, sum)) if *last == ceiling => *sum = together,
                    _ => longest.push((ceiling, together)),
                }
            }
            longest
        };
        Self { tables, ceilings, longest: tables.cpus.iter().map(&mut on).collect() }
    }

    /// Returns the time by which other tasks of the processor can stretch one section of `task` on `resource`, or
    /// `None` if it does not fit.
    fn of(&self, task: TaskId, resource: ResourceId) -> Option<u64> {
        let system = self.tables.system;
        let cpu = system.task(task).cpu;
        let ceiling = self.ceilings[resource.index()].on(cpu);
        let longest = &self.longest[cpu.index()];
        let above = longest.partition_point(|&(other, _)| other >= ceiling);
        let together = longest[..above].last().map_or(0, |&(_, together)| together);
        let own = longest_above(self.tables, system, self.ceilings, task, ceiling);
        u64::try_from(together.checked_sub(u128::from(own))?).ok()
    }
}

/// Returns the longest section of the task in `system` whose ceiling on its processor is at least `ceiling`, or 0 if
/// there is none.
fn longest_above(
    tables: &Tables<'_>,
    system: &System,
    ceilings: &[MpcpCeiling],
    task: TaskId,
    ceiling: Priority,
) -> u64 {
    let cpu = system.task(task).cpu;
    let above = system.requests(task).iter().filter(|request| {
        tables.protocol(request.resource) == Protocol::Mpcp && ceilings[request.resource.index()].on(cpu) >= ceiling
    });
    above.map(|request| request.length.as_ns()).max().unwrap_or(0)
}

/// Returns the longest boosted section of each less urgent task of the processor.
pub(crate) fn boosted<'t>(tables: &'t Tables<'_>, task: TaskId) -> impl Iterator<Item = BlockingSection> + 't {
    let system = tables.system;
    tables.lesser(task).iter().filter(|&&lesser| tables.suspends(lesser)).filter_map(move |&lesser| {
        let requests = system.requests(lesser).iter();
        let mpcp = requests.filter(|request| tables.protocol(request.resource) == Protocol::Mpcp);
        let longest = mpcp.max_by_key(|request| request.length)?;
        Some(BlockingSection { task: lesser, resource: longest.resource, length: longest.length.as_ns() })
    })
}

#[cfg(test)]
mod vectors;
