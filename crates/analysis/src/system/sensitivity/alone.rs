//! The search in systems in which no response time depends on another, and all deadlines are met.
//!
//! Execution outside of sections changes neither blocking nor restarts, so the room of a task follows from the
//! equations of the unchanged system. It is the least room that the deadline of any task leaves.
//!
//! The room limits factors as well. If a task executes longer by more than its room, a deadline is missed, all the more
//! if sections, or other tasks, are also longer: no equation ever falls. If only execution outside of sections grows,
//! the room is the limit. Otherwise, the greatest factor within the rooms is tried first, by a whole analysis.

use super::bisection::Subject;
use super::growth::{Growth, Progress, Sensitivity};
use super::scale::{Part, greatest_factor, halve, of_parts, scaled, scaled_body, users};
use crate::rows::mutant::Omission;
use crate::rows::tables::Tables;
use crate::system::response::Uncoupled;
use lockwright_model::{DURATION_MAX, Overheads, Protocol, STEPS_MAX, System, TaskId};

/// Like [`sensitivity`](super::sensitivity()), for a system without overheads. The inner `None` means that this search
/// does not cover it.
pub(super) fn find(
    system: &System,
    protocol: Protocol,
    progress: &Progress<impl FnMut(usize, usize) -> bool>,
) -> Option<Option<Sensitivity>> {
    let tables = Tables::new(system, protocol, Omission::NOTHING);
    // A body that cannot be lengthened has no room, but its times can grow.
    let is_full = system.tasks().iter().any(|task| task.body.len() >= STEPS_MAX);
    let Some(uncoupled) = Uncoupled::new(&tables).filter(|_| !is_full) else { return Some(None) };
    let asked = || progress.asked();
    let of_task = |task| {
        asked().then_some(())?;
        progress.add();
        Some(room(system, &uncoupled, task))
    };
    let rooms = system.task_ids().map(of_task).collect::<Option<Vec<u64>>>()?;
    let none = Overheads::default();
    let subject = Subject::new(system, &none, protocol);
    let tolerated = rooms.iter().copied().map(Some);
    of_parts(system, tolerated, progress, |part| growth(&subject, part, &rooms, &asked)).map(Some)
}

/// Returns how much longer each job of a task can execute outside of sections.
fn room(system: &System, uncoupled: &Uncoupled<'_>, task: TaskId) -> u64 {
    let most = system.task(task).deadline.min(DURATION_MAX).as_ns();
    uncoupled.resting(task).fold(most, |most, other| match uncoupled.meets(other, task, most) {
        true => most,
        false => halve((0, most), |extra| Some(uncoupled.meets(other, task, extra))).unwrap_or(0),
    })
}

/// Returns the greatest factor of a part, or `None` if the search was interrupted.
fn growth(subject: &Subject<'_>, part: Part, rooms: &[u64], go_on: &dyn Fn() -> bool) -> Option<Growth> {
    let system = subject.system;
    let users = users(system, part);
    let within = |&user: &TaskId| {
        let most = system.task(user).wcet.as_ns().saturating_add(rooms[user.index()]);
        let wcet = |permille| Some(scaled_body(system.task(user), user, part, permille)?.1.as_ns());
        greatest_factor(|permille| wcet(permille).is_some_and(|wcet| wcet <= most))
    };
    let Some(most) = users.iter().map(within).min() else { return Some(Growth::Unlimited) };
    let holds = |permille| match scaled(system, part, permille) {
        Some(scaled) => subject.holds(&scaled, go_on),
        None => Some(false),
    };
    let found = match part {
        Part::Task(task) if system.sections(task).is_empty() => most,
        _ if holds(most)? => most,
        _ => halve((1000, most), holds)?,
    };
    Some(Growth::found(found))
}
