//! Systems with scaled execution times.

use super::growth::FACTOR_MAX;
use lockwright_model::{Duration, ResourceId, Step, System, Task, TaskId};
use std::ops::Range;

/// The execution times that are scaled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part {
    All,
    Task(TaskId),
    Sections(ResourceId),
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

/// Returns the greatest factor of a part, at least 1000, with which the execution time of a task grows by at most
/// `room` nanoseconds.
pub(super) fn factor_within(system: &System, id: TaskId, part: Part, room: u64) -> u64 {
    let task = system.task(id);
    let most = task.wcet.as_ns().saturating_add(room);
    let fits = |permille| scaled_body(task, id, part, permille).is_some_and(|(_, wcet)| wcet.as_ns() <= most);
    if fits(FACTOR_MAX) {
        return FACTOR_MAX;
    }
    halve((1000, FACTOR_MAX), |permille| Some(fits(permille))).unwrap_or(1000)
}

/// Returns the system with the execution time of one task longer by `extra` nanoseconds, or `None` if that is not
/// valid.
pub(super) fn lengthened(system: &System, task: TaskId, extra: u64) -> Option<System> {
    let mut tasks = system.tasks().to_vec();
    if extra > 0 {
        let longer = &mut tasks[task.index()];
        longer.wcet = longer.wcet.checked_add(Duration::from_ns(extra))?;
        longer.body.push(Step::Run(Duration::from_ns(extra)));
    }
    system.with_tasks(tasks).ok()
}

/// Returns the system with the execution times of a part multiplied by `permille` / 1000 and rounded up, or `None` if
/// that is not valid.
pub(super) fn scaled(system: &System, part: Part, permille: u64) -> Option<System> {
    let mut tasks = system.tasks().to_vec();
    for (index, task) in tasks.iter_mut().enumerate() {
        (task.body, task.wcet) = scaled_body(task, TaskId::new(index), part, permille)?;
    }
    system.with_tasks(tasks).ok()
}

/// Returns the system with the execution times of these tasks, given by id, divided by 1000.
pub(super) fn shrunk(system: &System, shrunk: &Range<usize>) -> Option<System> {
    let mut tasks = system.tasks().to_vec();
    for index in shrunk.clone() {
        let (task, id) = (&mut tasks[index], TaskId::new(index));
        (task.body, task.wcet) = scaled_body(task, id, Part::Task(id), 1)?;
    }
    system.with_tasks(tasks).ok()
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
