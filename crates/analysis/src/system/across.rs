//! Response times under the protocols for several processors whose bounds are [`DelayBounds`].
//!
//! ```text
//!   w = C_i + I_i + S_i + B_i + n L_i
//!       + sum over h at least as urgent on the processor of ceil((w + J_h) / T_h) * (C_h + I_h)
//!   R_i = w + J_i
//! ```
//! The protocol's bounds are functions of the response times of all tasks. I_i is the execution that waiting adds to a
//! job (spinning, or suspension that counts as execution), S_i the time that it suspends, and B_i the delay by boosted
//! sections of less urgent tasks. L_i is the longest section of a less urgent task under `icpp`. n is 1 if the job
//! keeps its processor while it waits; otherwise n is 1 plus the number of its requests.
//!
//! J_h is `R_h - C_h` if h suspends or executes elsewhere, otherwise its release jitter. C_h is the execution on the
//! task's own processor, without sections that execute on others.
//!
//! If waiting counts as execution, a job with requests can be suspended while a more urgent job of its processor has a
//! request. A section under `icpp` that delays the more urgent job then delays both. It can do so as often as it can
//! delay the more urgent job itself, for each job of h.
//!
//! The response times are the least joint fixed point (`solve.rs`). If a task with requests has no bound, the tasks
//! that its requests can delay have none.

use crate::Failure;
use crate::blocking::accounting::{Accounting, accounting};
use crate::blocking::bounds::Bounds;
use crate::blocking::delay::{BlockingSection, Delay, DelayBounds};
use crate::blocking::icpp;
use crate::rows::bound::{Analysis, Blocking, Unbounded};
use crate::rows::divisor::Divisor;
use crate::rows::mutant::Mutant;
use crate::rows::sharing::{Demand, Sharing, sharing_of};
use crate::rows::tables::Tables;
use crate::system::hazard::hazards;
use crate::system::solve::{Equations, Rising, raise};
use lockwright_model::{Duration, Protocol, TaskId};

/// Returns the protocol of the system's resources whose bounds are in this file, or `None` if there is none.
pub(crate) fn ruling(tables: &Tables<'_>) -> Option<Protocol> {
    tables.protocols.iter().copied().find(|&protocol| accounting(protocol).is_some())
}

/// The parameters of one task's equation, in nanoseconds.
pub(crate) struct Row {
    task: TaskId,
    cost: u64,
    /// The execution time on the task's own processor.
    here: u64,
    period: Divisor,
    jitter: u64,
    /// The delay by sections under `icpp`.
    local: u64,
    /// How often sections under `icpp` of one less urgent task can delay a job: at its arrival, and at each request.
    occasions: u64,
    /// The longest of these sections, if a more urgent task can keep the job waiting before it has its resource. A
    /// section that delays the more urgent task then delays this one as well.
    kept: u64,
    /// Whether waiting can defer the work of the task.
    defers: bool,
    /// The release jitter, which others count if the work is not deferred.
    late: u64,
    /// The place after the last task of the processor that is at least as urgent.
    end: usize,
    /// Another bound of the task, above which the response time does not rise.
    known: Option<u64>,
    /// Why the task has that other bound because the protocol's bounds give none.
    settled: Option<Unbounded>,
    // The values of this round.
    suspended: u64,
    executed: u64,
    blocked: u64,
    /// The response time of the last round.
    response: u64,
}

impl Row {
    /// Returns whether the protocol's bounds gave the task none because they need too many steps.
    #[cfg(feature = "lp")]
    pub(crate) fn is_unsettled(&self) -> bool {
        self.settled == Some(Unbounded::Unsettled)
    }

    /// Returns the other tasks of the processor that are at least as urgent.
    #[inline]
    fn urgent(&self, tables: &Tables<'_>) -> impl Iterator<Item = usize> {
        let urgent = &tables.neighbours(self.task)[..self.end];
        urgent.iter().filter(|&&h| h != self.task).map(|h| h.index())
    }

    /// Returns whether waiting of the task delays less urgent tasks: as deferred work, or as execution.
    fn is_felt(&self) -> bool {
        self.defers || self.executed > 0
    }
}

/// Bounds the response times of a system whose shared resources are under `ruling`. If `judged` is given, only the
/// verdict on the first `judged` tasks is meaningful.
pub(crate) fn solve(tables: &Tables<'_>, protocol: Protocol, ruling: Protocol, judged: Option<usize>) -> Analysis {
    let make = || Bounds::new(tables, ruling, &sharing(tables, ruling));
    solve_by(tables, protocol, ruling, judged, &[], make).0
}

/// The parts of a response time with a bound, besides execution and jitter.
pub(crate) struct Parts {
    /// The waits at requests, suspended or executed.
    pub(crate) waits: u64,
    /// Boosted sections and requests of others on the task's processor.
    pub(crate) blocked: u64,
    /// The jobs of tasks at least as urgent.
    pub(crate) urgent: Vec<Urgent>,
}

/// The jobs of one task at least as urgent, on the same processor.
pub(crate) struct Urgent {
    pub(crate) task: TaskId,
    pub(crate) jobs: u64,
    /// The execution of one job there, without waiting.
    pub(crate) here: u64,
    /// The waiting of one job that counts as execution.
    pub(crate) executed: u64,
    /// How often sections under `icpp` can delay these jobs, and with them a job that they keep waiting.
    pub(crate) delayed: u64,
}

/// Returns the parts of the bound of `task`, or `None` if it has no bound.
pub(crate) fn parts(tables: &Tables<'_>, protocol: Protocol, ruling: Protocol, task: TaskId) -> Option<Parts> {
    let make = || Bounds::new(tables, ruling, &sharing(tables, ruling));
    let (analysis, rows) = solve_by(tables, protocol, ruling, None, &[], make);
    analysis.task(task).response?;
    let responses: Vec<u64> = rows.iter().map(|row| row.response).collect();
    parts_of(tables, &rows, task, &responses)
}

/// Returns the parts of the bound of `task` by `bounds`, for the response times of `analysis`.
#[cfg(feature = "lp")]
pub(crate) fn parts_by(
    tables: &Tables<'_>,
    analysis: &Analysis,
    ruling: Protocol,
    task: TaskId,
    bounds: &mut impl DelayBounds,
) -> Option<Parts> {
    analysis.task(task).response?;
    let responses: Vec<u64> = analysis.tasks.iter().map(|bound| bound.response.map_or(0, Duration::as_ns)).collect();
    let mut rows: Vec<Row> = tables.system.task_ids().map(|id| row(tables, ruling, id)).collect();
    let mut delays = vec![Delay::default(); rows.len()];
    bounds.set_responses(&responses).and_then(|()| bounds.delays(&mut delays)).ok()?;
    for ((row, delay), &response) in rows.iter_mut().zip(&delays).zip(&responses) {
        let charge = bounds.charge(delay)?;
        (row.suspended, row.executed, row.blocked) = (charge.suspended, charge.executed, charge.blocked);
        row.response = response;
    }
    parts_of(tables, &rows, task, &responses)
}

fn parts_of(tables: &Tables<'_>, rows: &[Row], task: TaskId, responses: &[u64]) -> Option<Parts> {
    let row = rows.get(task.index())?;
    let urgent = row.urgent(tables).map(|h| {
        let jobs = jobs(rows, h, row.response - row.jitter, responses)?;
        let delayed = if row.kept > 0 { jobs.checked_mul(rows[h].occasions)? } else { 0 };
        Some(Urgent { task: rows[h].task, jobs, here: rows[h].here, executed: rows[h].executed, delayed })
    });
    Some(Parts {
        waits: row.suspended.checked_add(row.executed)?,
        blocked: row.blocked,
        urgent: urgent.collect::<Option<_>>()?,
    })
}

/// Returns the longest section of a less urgent task under `icpp`, and how often it can delay a job of `task`.
pub(crate) fn local(tables: &Tables<'_>, ruling: Protocol, task: TaskId) -> Option<(BlockingSection, u64)> {
    // The bounds of `msrp` contain these sections, of which one delays a job.
    let counts = ruling != Protocol::Msrp && !tables.is_mutant(Mutant::LocalIcpp);
    let longest = counts.then(|| icpp::longest(tables, task)).flatten()?;
    let occasions = match accounting(ruling) {
        Some(Accounting::Spins) => 1,
        _ if tables.is_mutant(Mutant::Repeats) => 1,
        _ => 1 + requests(tables, ruling, task),
    };
    Some((longest, occasions))
}

/// Returns the number of requests of a job of `task` for resources under `ruling`.
pub(crate) fn requests(tables: &Tables<'_>, ruling: Protocol, task: TaskId) -> u64 {
    let ruled = tables.system.requests(task).iter().filter(|request| tables.protocol(request.resource) == ruling);
    ruled.map(|request| u64::from(request.count)).sum()
}

/// Bounds the response times by the bounds that `make` returns. If `known` is not empty, it contains another bound of
/// each task, or `None`; no response time then rises above it.
pub(crate) fn solve_by(
    tables: &Tables<'_>,
    protocol: Protocol,
    ruling: Protocol,
    judged: Option<usize>,
    known: &[Option<u64>],
    make: impl FnOnce() -> Result<Bounds, Unbounded>,
) -> (Analysis, Vec<Row>) {
    let system = tables.system;
    let mut rising = Rising::new(system, hazards(tables));
    let mut rows: Vec<Row> = Vec::new();
    if rising.reasons.iter().all(Option::is_none) {
        match make() {
            Ok(bounds) => {
                rows = system.task_ids().map(|id| row(tables, ruling, id)).collect();
                rows.iter_mut().zip(known).for_each(|(row, known)| row.known = *known);
                let delays = vec![Delay::default(); rows.len()];
                let (committers, owners) = (committers(tables, ruling), owners(tables, ruling));
                let mut equations = Across { tables, ruling, bounds, rows, delays, committers, owners };
                raise(tables, &mut equations, &mut rising, judged);
                rows = equations.rows;
            }
            // The system is valid, but its numbers do not fit.
            Err(Unbounded::BeyondPeriod) => rising.overflow_all(),
            Err(reason) => rising.give_up_all(&reason),
        }
    }
    for (row, &response) in rows.iter_mut().zip(&rising.responses) {
        row.response = response;
    }
    let analysis = rising.into_analysis(tables, protocol, |task, responses| match judged {
        Some(_) => Blocking::default(),
        None => Blocking {
            local: Duration::from_ns(rows[task].local.saturating_add(delayed(tables, &rows, task, responses))),
            boosted: Duration::from_ns(rows[task].blocked),
            remote: Duration::from_ns(waits(tables, ruling, &rows, task, responses)),
        },
    });
    (analysis, rows)
}

/// Returns the time for which a job waits at its requests. If waiting counts as execution, the waits of more urgent
/// tasks are included, because they keep the job from executing.
fn waits(tables: &Tables<'_>, ruling: Protocol, rows: &[Row], index: usize, responses: &[u64]) -> u64 {
    let row = &rows[index];
    let own = row.suspended.saturating_add(row.executed);
    if accounting(ruling) != Some(Accounting::Oblivious) {
        return own;
    }
    row.urgent(tables).fold(own, |sum, h| {
        let jobs = jobs(rows, h, responses[index] - row.jitter, responses);
        sum.saturating_add(jobs.unwrap_or(u64::MAX).saturating_mul(rows[h].executed))
    })
}

/// Returns the delay by sections under `icpp` that delay more urgent jobs while these keep the job waiting, suspended.
fn delayed(tables: &Tables<'_>, rows: &[Row], index: usize, responses: &[u64]) -> u64 {
    let row = &rows[index];
    row.urgent(tables).filter(|_| row.kept > 0).fold(0, |sum: u64, h| {
        let jobs = jobs(rows, h, responses[index] - row.jitter, responses).unwrap_or(u64::MAX);
        sum.saturating_add(jobs.saturating_mul(rows[h].occasions).saturating_mul(row.kept))
    })
}

/// Returns the tasks with the requests that the protocol's bounds count.
pub(crate) fn sharing(tables: &Tables<'_>, ruling: Protocol) -> Sharing {
    sharing_of(tables.system, |demand| counts(tables, ruling, demand))
}

/// Returns those demands that the protocol's bounds count.
pub(crate) fn counted(tables: &Tables<'_>, ruling: Protocol, mut demands: Vec<Demand>) -> Vec<Demand> {
    demands.retain(|demand| counts(tables, ruling, demand));
    demands
}

fn counts(tables: &Tables<'_>, ruling: Protocol, demand: &Demand) -> bool {
    let protocol = tables.protocols[usize::from(demand.resource)];
    protocol == ruling || (ruling == Protocol::Msrp && protocol == Protocol::Icpp)
}

/// Returns whether waiting can defer the work of a task.
pub(crate) fn defers(tables: &Tables<'_>, ruling: Protocol, task: TaskId) -> bool {
    !matches!(accounting(ruling), Some(Accounting::Oblivious | Accounting::Spins))
        && !tables.is_mutant(Mutant::SuspensionJitter)
        && requests(tables, ruling, task) > 0
}

/// Returns whether a section under `icpp` that delays a job of the task can delay it again with each more urgent job
/// that keeps it waiting.
pub(crate) fn repeats_local(tables: &Tables<'_>, ruling: Protocol, task: TaskId) -> bool {
    accounting(ruling) == Some(Accounting::Oblivious)
        && requests(tables, ruling, task) > 0
        && !tables.is_mutant(Mutant::Repeats)
}

/// Returns the time for which a job of the task executes on other processors.
pub(crate) fn away(tables: &Tables<'_>, ruling: Protocol, id: TaskId) -> u64 {
    let (system, task) = (tables.system, tables.system.task(id));
    if accounting(ruling) != Some(Accounting::Away) {
        return 0;
    }
    let is_away = |resource| tables.protocol(resource) == ruling && tables.home(resource) != task.cpu;
    let sections = system.sections(id).iter().filter(|section| is_away(section.resource));
    sections.fold(0, |sum: u64, section| sum.saturating_add(section.length.as_ns())).min(task.wcet.as_ns())
}

fn row(tables: &Tables<'_>, ruling: Protocol, id: TaskId) -> Row {
    let task = tables.system.task(id);
    let requests = requests(tables, ruling, id);
    let local = local(tables, ruling, id);
    Row {
        task: id,
        cost: task.wcet.as_ns(),
        here: task.wcet.as_ns() - away(tables, ruling, id),
        period: Divisor::new(task.period.as_ns()).expect("a period is positive"),
        jitter: task.jitter.as_ns(),
        local: local.as_ref().map_or(0, |(section, occasions)| section.length.saturating_mul(*occasions)),
        occasions: 1 + requests,
        kept: local.filter(|_| repeats_local(tables, ruling, id)).map_or(0, |(section, _)| section.length),
        defers: defers(tables, ruling, id),
        late: if tables.is_mutant(Mutant::ReleaseJitter) { 0 } else { task.jitter.as_ns() },
        end: tables.interfering_end(id),
        known: None,
        settled: None,
        suspended: 0,
        executed: 0,
        blocked: 0,
        response: 0,
    }
}

/// The equations of all tasks.
struct Across<'a> {
    tables: &'a Tables<'a>,
    ruling: Protocol,
    bounds: Bounds,
    rows: Vec<Row>,
    /// The delays in this round, by task.
    delays: Vec<Delay>,
    /// Under `lock_free`, by task: the tasks of other processors that use an object of it.
    committers: Vec<Vec<usize>>,
    /// Under `fmlp_long`, by task: the processors of the tasks that its requests wait for, with one bit each.
    owners: Vec<u64>,
}

impl Equations for Across<'_> {
    fn prepare(&mut self, rising: &mut Rising) {
        let known = self.bounds.set_responses(&rising.responses).and_then(|()| self.bounds.delays(&mut self.delays));
        if let Err(failure) = known {
            for task in 0..self.rows.len() {
                match failure {
                    Failure::Diverged { .. } => self.give_up(rising, task, &Unbounded::Unsettled),
                    _ if self.rows[task].known.is_none() => rising.overflow(task),
                    _ => self.give_up(rising, task, &Unbounded::BeyondPeriod),
                }
            }
            return;
        }
        for task in 0..self.rows.len() {
            let Some(charge) = self.bounds.charge(&self.delays[task]) else {
                self.give_up(rising, task, &Unbounded::BeyondPeriod);
                continue;
            };
            let row = &mut self.rows[task];
            (row.suspended, row.executed, row.blocked) = (charge.suspended, charge.executed, charge.blocked);
            if self.tables.is_mutant(Mutant::Waiting) {
                (row.suspended, row.executed) = (0, 0);
            }
            if self.tables.is_mutant(Mutant::Boosted) {
                row.blocked = 0;
            }
        }
    }

    fn respond(&mut self, task: usize, rising: &Rising) -> Result<u64, Unbounded> {
        let row = &self.rows[task];
        let found = respond(self.tables, row, &self.rows, &rising.responses);
        match row.known {
            Some(known) if row.settled.is_some() => Ok(known),
            Some(known) => Ok(found.map_or(known, |found| found.min(known))),
            None => found,
        }
    }

    fn asks(&self, task: usize) -> bool {
        let requests = self.tables.system.requests(TaskId::new(task));
        requests.iter().any(|request| self.tables.protocol(request.resource) == self.ruling)
    }

    fn depends_on(&self, task: usize, asking: Option<usize>, rising: &Rising) -> Option<usize> {
        let row = &self.rows[task];
        if row.settled.is_some() {
            return None;
        }
        let of = |task: usize| self.tables.system.task(TaskId::new(task)).priority;
        // The commits of tasks of equal priority are counted by their response times.
        let is_counted = |h: usize| self.ruling == Protocol::LockFree && of(h) == of(task);
        let urgent =
            row.urgent(self.tables).find(|&h| rising.reasons[h].is_some() && (self.rows[h].is_felt() || is_counted(h)));
        let delaying = match self.committers.get(task) {
            Some(others) => others.iter().copied().find(|&other| rising.reasons[other].is_some()),
            None => asking.filter(|_| self.delays[task] != Delay::default()),
        };
        urgent.or(delaying).or_else(|| self.keeps_owners(task, rising))
    }

    /// Gives the task its known bound, if it has one.
    fn give_up(&mut self, rising: &mut Rising, task: usize, reason: &Unbounded) {
        match self.rows[task].known {
            Some(known) => {
                rising.responses[task] = known;
                self.rows[task].settled.get_or_insert_with(|| reason.clone());
            }
            None => rising.give_up(task, reason),
        }
    }
}

impl Across<'_> {
    /// Returns a task without a bound that may execute instead of the owners that `task` waits for, by its own priority
    /// or in a section, if the bounds of these waits count its jobs. It need not have requests under the protocol.
    fn keeps_owners(&self, task: usize, rising: &Rising) -> Option<usize> {
        let (owners, system) = (*self.owners.get(task)?, self.tables.system);
        let priority = system.task(TaskId::new(task)).priority;
        let may_execute = |&&h: &&TaskId| system.task(h).priority >= priority || !system.requests(h).is_empty();
        let there = self.tables.cpus.iter().enumerate().filter(|(cpu, _)| owners >> cpu & 1 == 1);
        let mut counted = there.flat_map(|(_, tasks)| tasks.iter().filter(may_execute)).map(|h| h.index());
        counted.find(|&h| h != task && rising.reasons[h].is_some())
    }
}

/// Returns, by task, the tasks of other processors that commit on its objects. None under another protocol than
/// `lock_free`.
fn committers(tables: &Tables<'_>, ruling: Protocol) -> Vec<Vec<usize>> {
    if ruling != Protocol::LockFree {
        return Vec::new();
    }
    let system = tables.system;
    let mut users: Vec<Vec<usize>> = vec![Vec::new(); system.resources().len()];
    for task in system.task_ids() {
        system.requests(task).iter().for_each(|request| users[request.resource.index()].push(task.index()));
    }
    let of = |task: TaskId| {
        let shared = system.requests(task).iter().flat_map(|request| &users[request.resource.index()]);
        let is_remote = |other: &usize| system.task(TaskId::new(*other)).cpu != system.task(task).cpu;
        let mut others: Vec<usize> = shared.copied().filter(is_remote).collect();
        others.sort_unstable();
        others.dedup();
        others
    };
    system.task_ids().map(of).collect()
}

/// Returns, by task, the processors of the other users of its resources. None under another protocol than `fmlp_long`.
fn owners(tables: &Tables<'_>, ruling: Protocol) -> Vec<u64> {
    if ruling != Protocol::FmlpLong {
        return Vec::new();
    }
    let system = tables.system;
    let of = |id: TaskId| {
        let requests = system.requests(id).iter().filter(|request| tables.protocol(request.resource) == ruling);
        let others = requests.flat_map(|request| system.users(request.resource)).filter(|&&user| user != id);
        others.fold(0, |cpus, &user| cpus | 1 << system.task(user).cpu.index())
    };
    system.task_ids().map(of).collect()
}

/// Returns the number of jobs of `h` that can execute in a window on its processor.
fn jobs(rows: &[Row], h: usize, window: u64, responses: &[u64]) -> Option<u64> {
    let row = &rows[h];
    let jitter = if row.defers { responses[h].saturating_sub(row.here) } else { row.late };
    Some(row.period.ceil(window.checked_add(jitter)?))
}

fn respond(tables: &Tables<'_>, row: &Row, rows: &[Row], responses: &[u64]) -> Result<u64, Unbounded> {
    let index = row.task.index();
    let own = [row.executed, row.suspended, row.blocked, row.local].into_iter().try_fold(row.cost, u64::checked_add);
    let own = own.ok_or(Unbounded::BeyondPeriod)?;
    let start = own.max(responses[index] - row.jitter);
    // The task itself is not before the end if the mutant omits tasks of equal priority.
    let terms = 1 + (row.end - usize::from(tables.places[index] < row.end)) as u64;
    let window = tables.budget.least(start, row.period.get() - row.jitter, terms, |window| {
        row.urgent(tables).try_fold(own, |sum, h| {
            let kept = if row.kept > 0 { row.kept.checked_mul(rows[h].occasions)? } else { 0 };
            let each = rows[h].here.checked_add(rows[h].executed)?.checked_add(kept)?;
            sum.checked_add(jobs(rows, h, window, responses)?.checked_mul(each)?)
        })
    });
    Ok(window? + row.jitter)
}
