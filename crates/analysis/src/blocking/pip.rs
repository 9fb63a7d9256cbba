//! `pip`: at most one section of each less urgent task of the same processor, and, if no sections are nested, at most
//! one section of each resource.
//!
//! Consider the time from when a job of task i or a more urgent one is pending until none is. Less urgent tasks execute
//! in this time only with an inherited priority, so only inside sections that began before it. After its outermost
//! section, such a task is less urgent than i and does not execute again, so each causes one section. A section counts
//! if its resource can pass on a priority of i or above, also through nesting
//! ([`NestedCeilings`](lockwright_model::NestedCeilings)). Without nesting, a resource that is released in this time
//! goes to a task at or above i, since a more urgent request locks it even before a waiter that was woken. Each
//! resource then causes one section. The smaller sum holds.
//!
//! The same holds for a plain mutex (`none`) if no task has a priority between those of holder and waiter; `hazard.rs`
//! excludes all other cases beforehand.
//!
//! Reference: Sha, Rajkumar, Lehoczky, IEEE TC 39(9), 1990, theorems on the number of tasks and of semaphores.

use super::delay::BlockingSection;
use crate::rows::tables::Tables;
use lockwright_model::{Protocol, ResourceId, TaskId};

fn rules(tables: &Tables<'_>, resource: ResourceId) -> bool {
    matches!(tables.protocol(resource), Protocol::Pip | Protocol::None)
}

/// Returns the sections that may block a job of `task`. Their sum is the bound.
pub(crate) fn blockers(tables: &Tables<'_>, task: TaskId) -> Vec<BlockingSection> {
    let system = tables.system;
    if !system.resource_ids().any(|resource| rules(tables, resource)) {
        return Vec::new();
    }
    let priority = system.task(task).priority;
    let mut by_task: Vec<BlockingSection> = Vec::new();
    let mut by_resource: Vec<BlockingSection> = Vec::new();
    let mut flat = true;
    for &holder in tables.lesser(task) {
        flat &= !system.sections(holder).iter().any(|s| s.parent.is_some() && rules(tables, s.resource));
        let mut longest: Option<BlockingSection> = None;
        for request in system.requests(holder) {
            if !rules(tables, request.resource) || tables.ceilings.get(request.resource) < priority {
                continue;
            }
            let section = BlockingSection { task: holder, resource: request.resource, length: request.length.as_ns() };
            if longest.is_none_or(|longest| section.length > longest.length) {
                longest = Some(section);
            }
            match by_resource.iter_mut().find(|other| other.resource == section.resource) {
                Some(other) if other.length < section.length => *other = section,
                Some(_) => {}
                None => by_resource.push(section),
            }
        }
        by_task.extend(longest);
    }
    // If tasks at or above i have nested sections, one of them may hold a resource while it waits for another. Only the
    // sum by task holds then.
    let nested = |id: TaskId| system.sections(id).iter().any(|s| s.parent.is_some() && rules(tables, s.resource));
    flat &= !tables.neighbours(task).iter().any(|&id| nested(id));
    let sum = |blockers: &[BlockingSection]| blockers.iter().map(|blocker| u128::from(blocker.length)).sum::<u128>();
    if flat && sum(&by_resource) < sum(&by_task) { by_resource } else { by_task }
}
