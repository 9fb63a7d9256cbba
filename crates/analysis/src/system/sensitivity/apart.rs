//! The search in systems whose processors share nothing: one search for each processor.
//!
//! The verdict on such a system is that on all of its processors, and a change of one task concerns its processor only.
//! An analysis gives up after a certain amount of work: a system that reaches this limit is searched as a whole.

use super::bisection;
use super::crew::Crew;
use super::growth::{Growth, Progress, Sensitivity};
use lockwright_model::{CpuId, Overheads, Protocol, Scheduler, System, Task, TaskId};
use std::cell::Cell;

/// The tasks of one processor, and the result for a system of these alone.
struct Part {
    tasks: Vec<TaskId>,
    found: Sensitivity,
}

impl Part {
    /// Whether all deadlines are met with the present execution times.
    fn holds(&self) -> bool {
        self.found.tolerated.iter().all(|(_, most)| most.is_some())
    }
}

/// Returns the tasks of each processor in use, or `None` if processors share a resource or execute sections of others'
/// tasks.
pub(super) fn processors(system: &System, protocol: Protocol) -> Option<Vec<Vec<TaskId>>> {
    let is_shared = |resource| system.is_global(resource) || system.protocol_of(resource, protocol).has_homes();
    if system.scheduler() != Scheduler::PFp || system.resource_ids().any(is_shared) {
        return None;
    }
    let of_cpu = |cpu| system.task_ids().filter(|&task| system.task(task).cpu == cpu).collect::<Vec<_>>();
    let all = (0..system.cpus()).map(CpuId::new).map(of_cpu);
    let all: Vec<Vec<TaskId>> = all.filter(|tasks| !tasks.is_empty()).collect();
    (!all.is_empty()).then_some(all)
}

/// Like [`sensitivity`](super::sensitivity()), for a system without overheads and with these tasks on its processors.
pub(super) fn find(
    system: &System,
    processors: &[Vec<TaskId>],
    protocol: Protocol,
    progress: &Progress<impl FnMut(usize, usize) -> bool>,
) -> Option<Sensitivity> {
    let crew = Crew::default();
    let go_on = || crew.report(progress);
    let share = |indices: &mut dyn Iterator<Item = usize>, go_on: &dyn Fn() -> bool| {
        let part = |index: usize| {
            let tasks = processors[index].clone();
            let alone: Vec<Task> = tasks.iter().map(|&task| system.task(task).clone()).collect();
            let alone = system.with_tasks(alone).expect("a part of a valid system is valid");
            // The factors of all tasks and of resources are those of the whole system only at the end.
            let (own, counted) = (2 * tasks.len(), Cell::new(0));
            let count = |found: usize| crew.add(found - counted.replace(found));
            let progress = Progress::new(0, |found, _| {
                count(found.min(own));
                go_on()
            });
            let found = match super::alone::find(&alone, protocol, &progress)? {
                Some(found) => found,
                None => bisection::find(&alone, &Overheads::default(), protocol, &progress)?,
            };
            count(own);
            Some((index, Part { tasks, found }))
        };
        indices.map(part).collect()
    };
    let (count, searches) = (processors.len(), 1 + 2 * system.tasks().len());
    let own = |indices: &mut dyn Iterator<Item = usize>| share(indices, &go_on);
    let other = |indices: &mut dyn Iterator<Item = usize>| share(indices, &|| crew.goes_on());
    let parts = crew.each((count, searches), &go_on, own, other)?;
    crew.add(1 + system.resources().len());
    go_on().then(|| merged(system, &parts))
}

/// Returns the result for the system from those for its processors. A deadline that is missed on one processor leaves
/// no factor to the tasks of the others.
fn merged(system: &System, parts: &[Part]) -> Sensitivity {
    let late = parts.iter().filter(|part| !part.holds()).count();
    let mut merged = Sensitivity::broken(system);
    merged.all = parts.iter().map(|part| part.found.all).min_by_key(rank).unwrap_or(Growth::Unlimited);
    for resource in system.resource_ids().filter(|&resource| system.users(resource).is_empty()) {
        merged.resources[resource.index()].1 = Growth::Unlimited;
    }
    for part in parts.iter().filter(|part| late == usize::from(!part.holds())) {
        for (&task, (_, growth)) in part.tasks.iter().zip(&part.found.tasks) {
            merged.tasks[task.index()].1 = *growth;
        }
        for &(resource, growth) in &part.found.resources {
            if system.users(resource).first().is_some_and(|user| part.tasks.contains(user)) {
                merged.resources[resource.index()].1 = growth;
            }
        }
        if late == 0 {
            for (&task, &(_, most)) in part.tasks.iter().zip(&part.found.tolerated) {
                merged.tolerated[task.index()].1 = most;
            }
        }
    }
    merged
}

/// The order of growths: the greater, the more.
fn rank(growth: &Growth) -> (u8, u64) {
    match *growth {
        Growth::Broken => (0, 0),
        Growth::Permille(most) => (1, most),
        Growth::Unlimited => (2, 0),
    }
}
