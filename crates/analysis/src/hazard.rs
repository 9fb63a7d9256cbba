//! What no bound covers, found before any bound is computed.

use crate::bound::Unbounded;
use crate::tables::Tables;
use lockwright_model::{Protocol, ResourceId, TaskId};

/// By task: why it has no bound, whatever the times are.
pub(crate) fn hazards(tables: &Tables<'_>) -> Vec<Option<Unbounded>> {
    let system = tables.system;
    if let Some(nested) = uncovered_nesting(tables) {
        return vec![Some(nested); system.tasks().len()];
    }
    let mut hazards = vec![None; system.tasks().len()];
    for resource in system.resource_ids() {
        let protocol = tables.protocol(resource);
        if protocol == Protocol::Mpcp {
            continue;
        }
        if system.is_global(resource) {
            mark_shared(tables, resource, protocol, &mut hazards);
        } else if protocol == Protocol::None {
            mark_inversions(tables, resource, &mut hazards);
        }
    }
    hazards
}

/// A nested pair under two protocols, or with a resource under `mpcp`: inheritance does not reach through a
/// ceiling, and a holder that suspends for another processor breaks the bounds of the outer section.
fn uncovered_nesting(tables: &Tables<'_>) -> Option<Unbounded> {
    let system = tables.system;
    system.task_ids().find_map(|task| {
        let sections = system.sections(task);
        sections.iter().find_map(|section| {
            let (outer, inner) = (sections[section.parent?].resource, section.resource);
            let (over, under) = (tables.protocol(outer), tables.protocol(inner));
            (over != under || over == Protocol::Mpcp).then_some(Unbounded::Nested { task, outer, inner })
        })
    })
}

/// A resource shared across processors without `mpcp`: its users wait for other processors without bound, tasks
/// below them on their processor run into what was deferred, and tasks above them up to the ceiling may be
/// preempted by a holder that inherited or rose.
fn mark_shared(tables: &Tables<'_>, resource: ResourceId, protocol: Protocol, hazards: &mut [Option<Unbounded>]) {
    let system = tables.system;
    let ceiling = tables.ceilings.get(resource);
    for &user in system.users(resource) {
        for &task in tables.neighbours(user) {
            let below = system.task(task).priority <= system.task(user).priority;
            if below || system.task(task).priority <= ceiling {
                hazards[task.index()].get_or_insert(Unbounded::Shared { resource, protocol });
            }
        }
    }
}

/// A plain mutex within one processor: any task between a holder and a more urgent user delays both. A pair
/// of users with no task between them behaves as under inheritance.
fn mark_inversions(tables: &Tables<'_>, resource: ResourceId, hazards: &mut [Option<Unbounded>]) {
    let system = tables.system;
    let priority = |id: TaskId| system.task(id).priority;
    for &user in system.users(resource) {
        let mut holders: Vec<TaskId> =
            system.users(resource).iter().copied().filter(|&holder| priority(holder) < priority(user)).collect();
        // The least urgent holder meets the most tasks between.
        holders.sort_by_key(|&holder| priority(holder));
        let Some(&holder) = holders.first() else { continue };
        let neighbours = tables.neighbours(user).iter().copied();
        let between: Vec<TaskId> = neighbours
            .filter(|&id| id != user && priority(id) > priority(holder) && priority(id) <= priority(user))
            .collect();
        if between.is_empty() {
            continue;
        }
        // Its own reason names the inversion, whatever was found for it as a bystander.
        let inversion = Unbounded::Inversion { resource, holder, between };
        match &mut hazards[user.index()] {
            Some(Unbounded::Inversion { .. } | Unbounded::Shared { .. }) => {}
            reason => *reason = Some(inversion),
        }
        for &task in tables.neighbours(user) {
            if task != user && priority(task) <= priority(user) {
                hazards[task.index()].get_or_insert(Unbounded::Deferred { by: user });
            }
        }
    }
}
