//! How far execution times and blocking can grow before a deadline breaks.

use crate::bound::Unbounded;
use crate::response::is_schedulable;
use crate::scheduled;
use crate::{analyse, charge};
use lockwright_model::{DURATION_MAX, Duration, Overheads, Protocol, ResourceId, Scheduler, Step, System, TaskId};

/// The largest factor a set of execution times can take with every deadline met.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Growth {
    /// In thousandths; 1000 is as it is now, less says how far they must shrink.
    Permille(u64),
    /// No factor helps: a deadline breaks, or a bound is missing, even with next to nothing.
    Broken,
    /// No factor up to [`FACTOR_MAX`] breaks a deadline.
    Unlimited,
}

/// The largest factor tried, in thousandths: a million times.
pub const FACTOR_MAX: u64 = 1_000_000_000;

/// What [`sensitivity`] found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sensitivity {
    /// All execution times together, sections included.
    pub all: Growth,
    /// All of one task's execution times, by task id.
    pub tasks: Vec<(TaskId, Growth)>,
    /// The sections on one resource, by resource id.
    pub resources: Vec<(ResourceId, Growth)>,
    /// The most time that something outside the system may block each job of one task, beside what blocks it now, with every deadline still
    /// met; `None` where one breaks without it. It counts as execution of the job: less urgent tasks wait for it, too. By task id.
    pub tolerated: Vec<(TaskId, Option<Duration>)>,
}

/// Whose growth is looked for.
struct Subject<'a> {
    system: &'a System,
    overheads: &'a Overheads,
    protocol: Protocol,
}

impl Subject<'_> {
    /// Whether every deadline holds, of this form of it.
    fn holds(&self, system: &System) -> bool {
        if system.scheduler() == Scheduler::PFp {
            // Of the system's tasks: interrupts stand behind them.
            let charged = charge(system, self.overheads);
            return charged.is_ok_and(|charged| is_schedulable(&charged, self.protocol, system.tasks().len()));
        }
        scheduled::is_schedulable(system, self.overheads)
    }
}

/// What is scaled.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    All,
    Task(TaskId),
    Sections(ResourceId),
}

/// Finds the factors by bisection over [`analyse`], whose verdict only worsens as execution times grow. Scaled times
/// are rounded up, so a factor is never too large.
///
/// Overheads are charged anew to each scaled system: they stay as they are.
///
/// `go_on` is told, again and again, how many of how many factors are found; `None` where it says no.
pub fn sensitivity(
    system: &System,
    overheads: &Overheads,
    protocol: Protocol,
    mut go_on: impl FnMut(usize, usize) -> bool,
) -> Option<Sensitivity> {
    let whole = 1 + 2 * system.tasks().len() + system.resources().len();
    // A task that has no bound, whatever the times are, has none with others.
    let subject = Subject { system, overheads, protocol };
    let has_hazard = match system.scheduler() {
        Scheduler::PFp => {
            analyse(system, protocol).tasks.iter().any(|task| task.unbounded.as_ref().is_some_and(is_hazard))
        }
        _ => scheduled(system, overheads).is_err(),
    };
    let mut done = 0;
    let mut find = |part| {
        done += 1;
        if has_hazard { Some(Growth::Broken) } else { growth(&subject, part, || go_on(done - 1, whole)) }
    };
    let all = find(Part::All)?;
    let tasks = system.task_ids().map(|task| Some((task, find(Part::Task(task))?))).collect::<Option<_>>()?;
    let resources = system.resource_ids().map(|resource| Some((resource, find(Part::Sections(resource))?)));
    let resources = resources.collect::<Option<_>>()?;
    let tolerated = system.task_ids().map(|task| {
        done += 1;
        let most = if has_hazard { None } else { tolerance(&subject, task, || go_on(done - 1, whole))? };
        Some((task, most))
    });
    let tolerated = tolerated.collect::<Option<_>>()?;
    Some(Sensitivity { all, tasks, resources, tolerated })
}

/// The most time a job of `task` can be blocked beside what blocks it now. The outer `None` where it was interrupted.
fn tolerance(subject: &Subject<'_>, task: TaskId, mut go_on: impl FnMut() -> bool) -> Option<Option<Duration>> {
    let mut holds =
        |extra| go_on().then(|| lengthened(subject.system, task, extra).is_some_and(|longer| subject.holds(&longer)));
    if !holds(0)? {
        return Some(None);
    }
    // No response within the deadline has room for more than that.
    let (mut holding, mut breaking) = (0, subject.system.task(task).deadline.as_ns().min(DURATION_MAX.as_ns()) + 1);
    // BOUND: fifty halvings.
    while breaking - holding > 1 {
        let middle = holding + (breaking - holding) / 2;
        if holds(middle)? {
            holding = middle;
        } else {
            breaking = middle;
        }
    }
    Some(Some(Duration::from_ns(holding)))
}

/// Whether the reason has nothing to do with execution times.
fn is_hazard(reason: &Unbounded) -> bool {
    !matches!(reason, Unbounded::BeyondPeriod | Unbounded::DependsOn { .. } | Unbounded::Unsettled)
}

fn growth(subject: &Subject<'_>, part: Part, mut go_on: impl FnMut() -> bool) -> Option<Growth> {
    let system = subject.system;
    if matches!(part, Part::Sections(resource) if system.users(resource).is_empty()) {
        return Some(Growth::Unlimited);
    }
    let is_scaled_schedulable = |permille| scaled(system, part, permille).is_some_and(|scaled| subject.holds(&scaled));
    let mut holds = |permille| go_on().then(|| is_scaled_schedulable(permille));
    // Every task of the last system that held, and the first that did not.
    let (mut holding, mut breaking) = if holds(1000)? {
        let mut factor = 1000;
        loop {
            if factor == FACTOR_MAX {
                return Some(Growth::Unlimited);
            }
            let next = (factor * 2).min(FACTOR_MAX);
            if !holds(next)? {
                break (factor, next);
            }
            factor = next;
        }
    } else if holds(1)? {
        (1, 1000)
    } else {
        return Some(Growth::Broken);
    };
    // BOUND: thirty halvings.
    while breaking - holding > 1 {
        let middle = holding + (breaking - holding) / 2;
        if holds(middle)? {
            holding = middle;
        } else {
            breaking = middle;
        }
    }
    Some(Growth::Permille(holding))
}

/// The system with jobs of one task that execute so many nanoseconds longer.
fn lengthened(system: &System, task: TaskId, extra: u64) -> Option<System> {
    let mut tasks = system.tasks().to_vec();
    if extra > 0 {
        let longer = &mut tasks[task.index()];
        longer.wcet = longer.wcet.checked_add(Duration::from_ns(extra))?;
        longer.body.push(Step::Run(Duration::from_ns(extra)));
    }
    system.with_tasks(tasks).ok()
}

/// The system with the runs of that part taken `permille` thousandths of; `None` where that is no valid system any more.
fn scaled(system: &System, part: Part, permille: u64) -> Option<System> {
    let mut tasks = system.tasks().to_vec();
    for (index, task) in tasks.iter_mut().enumerate() {
        let mut wcet = Duration::ZERO;
        let mut inside = part == Part::All || part == Part::Task(TaskId::new(index));
        for step in &mut task.body {
            match step {
                Step::Run(time) => {
                    if inside {
                        let ns = u128::from(time.as_ns()) * u128::from(permille);
                        *time = Duration::from_ns(u64::try_from(ns.div_ceil(1000)).ok()?);
                    }
                    wcet = wcet.checked_add(*time)?;
                }
                Step::Lock(locked) if part == Part::Sections(*locked) => inside = true,
                Step::Unlock(locked) if part == Part::Sections(*locked) => inside = false,
                Step::Lock(_) | Step::Unlock(_) => {}
            }
        }
        task.wcet = wcet;
    }
    system.with_tasks(tasks).ok()
}
