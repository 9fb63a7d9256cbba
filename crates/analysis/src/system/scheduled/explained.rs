//! The terms of a processor demand.

use super::delayed::{self, Terms};
use super::inflated::kind;
#[cfg(feature = "lp")]
use super::program::demand;
use super::suspending::{Locks, uncharged};
use super::{Scheduled, Untested, charged, rows, uncovered};
#[cfg(feature = "lp")]
use crate::linear::Delayed;
#[cfg(feature = "lp")]
use crate::rows::bound::Proof;
use crate::rows::failure::Failure;
use crate::rows::mutant::Omission;
use crate::rows::sharing::Sharing;
use crate::system::explain::{Cause, Term};
#[cfg(feature = "lp")]
use crate::system::tighten::PROGRAM_WORK_MAX;
use crate::uniprocessor::edf;
use lockwright_model::{Duration, Overheads, ResourceId, System, TaskId};

/// What a test counts, split into its terms: the processor demand of one interval, or the execution time of one job.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Demanded {
    /// The length of the interval. Under global schedulers, the time in which the requests of others count: the
    /// deadline.
    pub interval: Duration,
    /// The terms, which sum to the work that is due in the interval and the section that blocks it. Under global
    /// schedulers, they sum to the execution time that all tests count for a job of the task, if deadlines are met; to
    /// more, if the time of failed attempts is cut because it is beyond the deadline.
    pub terms: Vec<Term>,
}

/// Returns every term of what the tests count for `task`: under partitioned EDF, the processor demand on its processor.
///
/// The demand is that of the test in `found` that proves the deadlines of the task, and the interval is as long as its
/// deadline. If no test does, the interval is one in which the processor demand is too great. `found` is the result for
/// the same system and overheads. All times are in nanoseconds; see [`uniprocessor::edf`](crate::uniprocessor::edf) for
/// the formula and its source.
///
/// Under global schedulers, the terms are those of one job: its execution and its delays, which every test counts as
/// execution.
///
/// # Errors
/// Returns the errors of [`scheduled`](super::scheduled()), and [`Untested::FixedPriorities`] under partitioned and
/// clustered fixed priorities.
///
/// # Examples
/// ```
/// use lockwright_analysis::{explain_demand, scheduled};
/// use lockwright_model::format::parse_system;
/// use lockwright_model::{Duration, Overheads, Scheduler, TaskId};
/// let system = parse_system(
///     r#"
///     [[resource]]
///     name = "bus"
///
///     [[task]]
///     name = "control"
///     period = "10 ms"
///     body = [{ run = "1 ms" }, { lock = "bus" }, { run = "1 ms" }, { unlock = "bus" }]
///
///     [[task]]
///     name = "log"
///     period = "50 ms"
///     body = [{ lock = "bus" }, { run = "4 ms" }, { unlock = "bus" }, { run = "10 ms" }]
///     "#,
/// )
/// .expect("a valid task set");
/// let (system, overheads) = (system.under(Scheduler::PEdf), Overheads::default());
/// let found = scheduled(&system, &overheads).expect("a test covers it");
/// let demanded = explain_demand(&system, &overheads, &found, TaskId(0)).expect("a test covers it");
/// assert_eq!(demanded.interval, Duration::from_ms(10));
/// assert!(demanded.terms.iter().map(|term| term.total).sum::<Duration>() <= demanded.interval);
/// ```
pub fn explain_demand(
    system: &System,
    overheads: &Overheads,
    found: &Scheduled,
    task: TaskId,
) -> Result<Demanded, Untested> {
    if let Some(resource) = uncharged(system, overheads) {
        return Err(Untested::Uncharged(resource));
    }
    if let Some(why) = uncovered(system) {
        return Err(why);
    }
    if system.scheduler().is_global() {
        let kind = kind(system)?;
        let terms = charged(system, overheads, Omission::NOTHING)
            .and_then(|charged| delayed::terms(system, &charged, kind, task));
        return Ok(Demanded { interval: system.task(task).deadline, terms: terms.map_err(Untested::Terms)? });
    }
    let sharing = rows(system, overheads).map_err(Untested::Terms)?;
    #[cfg(feature = "lp")]
    if found.proved[task.index()] && found.proof[task.index()] == Proof::Program {
        return by_program(system, &sharing, task).map_err(Untested::Terms);
    }
    let is_proved = found.proved[task.index()];
    classic(system, &sharing, task, is_proved).map_err(Untested::Terms)
}

/// Returns the terms of the processor demand: at the deadline of `task`, or if nothing is proved, where the demand is
/// too great.
fn classic(system: &System, sharing: &Sharing, task: TaskId, is_proved: bool) -> Result<Demanded, Failure> {
    let (cpu, locks) = (system.task(task).cpu.0, Locks::new(system, sharing, Omission::NOTHING));
    let mut interval = sharing.tasks[task.index()].deadline;
    if !is_proved {
        let (tasks, blocking) = locks.on_processor(cpu)?;
        if let Err(Failure::Demand { interval: short, .. }) = edf::schedulable(&tasks, &blocking) {
            interval = short;
        }
    }
    let mut terms = Terms(Vec::new());
    if let Some(suspending) = locks.suspending(cpu)? {
        for (id, jobs) in due(system, sharing, task, interval) {
            let by = terms.due(sharing, task, id, jobs);
            suspending.add_waits(&mut terms, id, by, jobs);
        }
        suspending.add_blocking(&mut terms, interval);
        return Ok(Demanded { interval: Duration::from_ns(interval), terms: terms.0 });
    }
    let held = edf::held(sharing, cpu)?;
    for (id, jobs) in due(system, sharing, task, interval) {
        let by = terms.due(sharing, task, id, jobs);
        for one in held.iter().filter(|one| one.task == id.index() && one.spin > 0) {
            let resource = ResourceId(one.resource);
            let why = "spins for the longest section of each other CPU";
            terms.add(Cause::Urgent, by, Some(resource), jobs.saturating_mul(u64::from(one.count)), one.spin, why);
        }
    }
    if let Some(one) = edf::blocker(&held, interval) {
        let (length, spin) = (Duration::from_ns(one.length), Duration::from_ns(one.spin));
        let spins = format!("has begun its section, or spins for it: {spin}, then {length}");
        let why = if one.spin > 0 { &spins } else { BEGUN };
        terms.add(Cause::Local, Some(TaskId::new(one.task)), Some(ResourceId(one.resource)), 1, one.span, why);
    }
    Ok(Demanded { interval: Duration::from_ns(interval), terms: terms.0 })
}

/// Returns the terms of the program on the processor of `task`, in an interval as long as its deadline.
#[cfg(feature = "lp")]
fn by_program(system: &System, sharing: &Sharing, task: TaskId) -> Result<Demanded, Failure> {
    let interval = sharing.tasks[task.index()].deadline;
    let Delayed { spun, start } =
        demand(system, sharing, PROGRAM_WORK_MAX, Omission::NOTHING)?.delayed(system.task(task).cpu.0, interval)?;
    let mut terms = Terms(Vec::new());
    for (id, jobs) in due(system, sharing, task, interval) {
        terms.due(sharing, task, id, jobs);
    }
    for one in spun {
        let why = "is spun for once, by a job that is due or by the one that has begun its section";
        let by = Some(TaskId::new(one.task));
        terms.add(Cause::Waiting, by, Some(ResourceId(one.resource)), one.count, one.length, why);
    }
    if let Some(start) = start {
        let by = Some(TaskId::new(start.task));
        terms.add(Cause::Local, by, Some(ResourceId(start.resource)), 1, start.length, BEGUN);
    }
    Ok(Demanded { interval: Duration::from_ns(interval), terms: terms.0 })
}

/// Why a section of a later deadline counts.
const BEGUN: &str = "has begun its section, and has a later deadline";

/// Returns the tasks on the processor of `task` with jobs that are due in the interval, and their number. `task` is the
/// first.
fn due(system: &System, sharing: &Sharing, task: TaskId, interval: u64) -> impl Iterator<Item = (TaskId, u64)> {
    let cpu = system.task(task).cpu;
    let others = system.task_ids().filter(move |&id| id != task && system.task(id).cpu == cpu);
    std::iter::once(task).chain(others).filter_map(move |id| {
        let it = &sharing.tasks[id.index()];
        Some((id, interval.checked_sub(it.deadline)? / it.period + 1))
    })
}

impl Terms {
    /// Adds the execution of these jobs. Returns the task, if it is not `task`.
    fn due(&mut self, sharing: &Sharing, task: TaskId, id: TaskId, jobs: u64) -> Option<TaskId> {
        let (cause, by) = if id == task { (Cause::Execution, None) } else { (Cause::Interference, Some(id)) };
        self.add(cause, by, None, jobs, sharing.tasks[id.index()].cost, "jobs with a deadline in it");
        by
    }
}
