//! Systems with scaled execution times.

use super::growth::{FACTOR_MAX, Growth, Progress, Sensitivity};
use crate::analyse;
use crate::charge;
use crate::overheads::charge::Charges;
use lockwright_model::{Duration, Overheads, Priority, Protocol, ResourceId, Scheduler, Step, System, Task, TaskId};
use std::ops::Range;

/// The execution times that are scaled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part {
    All,
    Task(TaskId),
    Sections(ResourceId),
}

/// Searches for the factor of each part by itself. `rooms` are the tolerated times in nanoseconds, by task. Returns
/// `None` if `growth` does, because it was interrupted.
pub(super) fn of_parts(
    system: &System,
    rooms: impl IntoIterator<Item = Option<u64>>,
    progress: &Progress<impl FnMut(usize, usize) -> bool>,
    growth: impl Fn(Part) -> Option<Growth>,
) -> Option<Sensitivity> {
    let find = |part| growth(part).inspect(|_| progress.add());
    let all = find(Part::All)?;
    let tasks = system.task_ids().map(|task| Some((task, find(Part::Task(task))?))).collect::<Option<_>>()?;
    let resources = system.resource_ids().map(|resource| Some((resource, find(Part::Sections(resource))?)));
    let resources = resources.collect::<Option<_>>()?;
    let tolerated = system.task_ids().zip(rooms).map(|(task, most)| (task, most.map(Duration::from_ns))).collect();
    Some(Sensitivity { all, tasks, resources, tolerated })
}
/// Returns the greatest amount for which `holds`, by bisection. It holds for the first of the two amounts, and not for
/// the second. Returns `None` if `holds` was interrupted.
///
/// BOUND: sixty-four halvings.
pub(super) fn halve(
    (mut holding, mut breaking): (u64, u64),
    mut holds: impl FnMut(u64) -> Option<bool>,
) -> Option<u64> {
    while breaking - holding > 1 {
        let middle = holding + (breaking - holding) / 2;
        if holds(middle)? {
            holding = middle;
        } else {
            breaking = middle;
        }
    }
    Some(holding)
}

/// Returns the system with the execution time of one task longer by `extra` nanoseconds, or `None` if that is not
/// valid.
pub(super) fn lengthened(system: &System, task: TaskId, extra: u64) -> Option<System> {
    let mut longer = system.clone();
    if extra > 0 {
        let mut body = system.task(task).body.clone();
        body.push(Step::Run(Duration::from_ns(extra)));
        longer.set_body(task, body).ok()?;
    }
    Some(longer)
}

/// Returns the system with the execution times of a part multiplied by `permille` / 1000 and rounded up, or `None` if
/// that is not valid.
pub(super) fn scaled(system: &System, part: Part, permille: u64) -> Option<System> {
    let mut scaled = system.clone();
    for task in users(system, part) {
        scaled.set_body(task, scaled_body(system.task(task), task, part, permille)?.0).ok()?;
    }
    Some(scaled)
}

/// A system under partitioned or clustered fixed priorities whose execution times are scaled. Overheads are charged
/// afterwards.
pub(super) struct Scale<'a> {
    /// The system without overheads.
    pub(super) system: &'a System,
    pub(super) overheads: &'a Overheads,
    pub(super) protocol: Protocol,
    /// The unchanged system with overheads. Interrupts follow its tasks.
    pub(super) charged: System,
    charges: Option<Charges<'a>>,
}

impl<'a> Scale<'a> {
    /// Returns `None` if the system is not under fixed priorities of processors or clusters, or if response times of
    /// interrupts may count for the verdict and may exceed their periods.
    pub(super) fn new(system: &'a System, overheads: &'a Overheads, protocol: Protocol) -> Option<Self> {
        if !matches!(system.scheduler(), Scheduler::PFp | Scheduler::CFp) {
            return None;
        }
        let charged = charge(system, overheads, protocol).ok()?;
        let count = system.tasks().len();
        if charged.tasks().len() > count {
            // Below these, no task delays an interrupt, except by non-preemptive and boosted sections.
            let top = Priority::BASE_MAX;
            let is_below = system.tasks().iter().all(|task| task.priority < top)
                && system.resources().iter().all(|resource| resource.ceiling.is_none_or(|ceiling| ceiling < top));
            let counts = |resource| system.protocol_of(resource, protocol) == Protocol::FmlpLong;
            let is_late = || analyse(&charged, protocol).tasks[count..].iter().any(|interrupt| !interrupt.schedulable);
            if !is_below || (system.resource_ids().any(counts) && is_late()) {
                return None;
            }
        }
        let charges = match overheads.charges_nothing() {
            true => None,
            false => Some(Charges::of(system, overheads, protocol)?),
        };
        Some(Self { system, overheads, protocol, charged, charges })
    }

    /// Returns the body of a task, with the execution times of a part multiplied by `permille` / 1000, and with
    /// overheads.
    pub(super) fn body(&self, id: TaskId, part: Part, permille: u64) -> Option<Vec<Step>> {
        Some(self.scaled(id, part, permille)?.0)
    }

    /// Returns the same with its execution time.
    fn scaled(&self, id: TaskId, part: Part, permille: u64) -> Option<(Vec<Step>, Duration)> {
        let (body, wcet) = scaled_body(self.system.task(id), id, part, permille)?;
        match &self.charges {
            Some(charges) => charges.body(id, &body),
            None => Some((body, wcet)),
        }
    }

    /// Returns the greatest factor of a part, at least 1000, with which the execution time of a task grows by at most
    /// `room` nanoseconds.
    pub(super) fn factor_within(&self, id: TaskId, part: Part, room: u64) -> u64 {
        let most = self.charged.task(id).wcet.as_ns().saturating_add(room);
        greatest_factor(|permille| self.scaled(id, part, permille).is_some_and(|(_, wcet)| wcet.as_ns() <= most))
    }

    /// Returns the system with overheads in which the execution times of these tasks, given by id, are divided by 1000.
    pub(super) fn shrunk(&self, shrunk: &Range<usize>) -> Option<System> {
        let mut system = self.charged.clone();
        for id in shrunk.clone().map(TaskId::new) {
            system.set_body(id, self.body(id, Part::Task(id), 1)?).ok()?;
        }
        Some(system)
    }
}

/// Returns the greatest factor, at least 1000, that fits.
pub(super) fn greatest_factor(fits: impl Fn(u64) -> bool) -> u64 {
    if fits(FACTOR_MAX) {
        return FACTOR_MAX;
    }
    halve((1000, FACTOR_MAX), |permille| Some(fits(permille))).unwrap_or(1000)
}

/// Returns the tasks that execute a part.
pub(super) fn users(system: &System, part: Part) -> Vec<TaskId> {
    match part {
        Part::All => system.task_ids().collect(),
        Part::Task(task) => vec![task],
        Part::Sections(resource) => system.users(resource).to_vec(),
    }
}

/// Returns the scaled body of one task, and its execution time.
pub(super) fn scaled_body(task: &Task, id: TaskId, part: Part, permille: u64) -> Option<(Vec<Step>, Duration)> {
    let mut body = task.body.clone();
    let mut wcet = Duration::ZERO;
    let mut inside = part == Part::All || part == Part::Task(id);
    for step in &mut body {
        match step {
            Step::Run(time) => {
                if inside {
                    let ns = u128::from(time.as_ns()) * u128::from(permille);
                    *time = Duration::from_ns(u64::try_from(ns.div_ceil(1000)).ok()?);
                }
                wcet = wcet.checked_add(*time)?;
            }
            Step::Lock(locked) | Step::Read(locked) if part == Part::Sections(*locked) => inside = true,
            Step::Unlock(locked) if part == Part::Sections(*locked) => inside = false,
            Step::Lock(_) | Step::Read(_) | Step::Unlock(_) => {}
        }
    }
    Some((body, wcet))
}
