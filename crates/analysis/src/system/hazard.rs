//! Systems that no bound covers, found before any bound is computed.

use crate::blocking::accounting::accounting;
use crate::rows::bound::Unbounded;
use crate::rows::tables::Tables;
use lockwright_model::{Protocol, ResourceId, TaskId};

/// Returns for each task the reason why it has no bound, whatever its times are, or `None`.
pub(crate) fn hazards(tables: &Tables<'_>) -> Vec<Option<Unbounded>> {
    let system = tables.system;
    let mut hazards = vec![None; system.tasks().len()];
    if let Some(mixed) = mixed(tables) {
        hazards.fill(Some(mixed));
        return hazards;
    }
    for resource in system.resource_ids() {
        let protocol = tables.protocol(resource);
        if protocol == Protocol::Mpcp || accounting(protocol).is_some() {
            continue;
        }
        if system.is_global(resource) {
            mark_shared(tables, resource, protocol, &mut hazards);
        } else if protocol == Protocol::None {
            mark_inversions(tables, resource, &mut hazards);
        }
    }
    if let Some(nested) = uncovered_nesting(tables) {
        for hazard in &mut hazards {
            hazard.get_or_insert_with(|| nested.clone());
        }
    }
    hazards
}

/// Finds two resources whose protocols no bound covers together, or one that is shared across processors under `pcp` or
/// `srp`.
///
/// The protocols of `across.rs` can be combined with `icpp` for the resources of one processor. `ics` and `ics_lock`
/// can be combined with that as well, and with each other. `pcp` and `srp` cannot be combined with any protocol. (If
/// all resources are under one of these two, and each is used on one processor, the tables replace it by `icpp`
/// beforehand.)
fn mixed(tables: &Tables<'_>) -> Option<Unbounded> {
    let system = tables.system;
    let mut resources = system.resource_ids();
    let is_alone = |id: ResourceId| matches!(tables.protocol(id), Protocol::Pcp | Protocol::Srp);
    if let Some(one) = resources.clone().find(|&id| is_alone(id)) {
        let protocol = tables.protocol(one);
        let other = resources.clone().find(|&id| tables.protocol(id) != protocol);
        let shared = || {
            resources.clone().find(|&id| system.is_global(id)).map(|resource| Unbounded::Shared { resource, protocol })
        };
        return other.map(|other| Unbounded::Mixed { one, other }).or_else(shared);
    }
    let is_local_icpp = |id| tables.protocol(id) == Protocol::Icpp && !system.is_global(id);
    let is_interruptible = |id: ResourceId| tables.cutoffs[id.index()].is_some();
    if let Some(one) = resources.clone().find(|&id| is_interruptible(id)) {
        let other = resources.find(|&id| !is_interruptible(id) && !is_local_icpp(id))?;
        return Some(Unbounded::Mixed { one, other });
    }
    let one = resources.clone().find(|&id| accounting(tables.protocol(id)).is_some())?;
    let other = resources.find(|&id| tables.protocol(id) != tables.protocol(one) && !is_local_icpp(id))?;
    Some(Unbounded::Mixed { one, other })
}

/// Finds a nested pair of sections that no bound covers.
///
/// A delay inside the inner section prolongs the outer one, so it also delays every task that requests the outer
/// resource. These pairs are not covered:
/// - *Sections under two protocols:* inheritance does not reach through a ceiling.
/// - *Sections on a resource under `mpcp`:* the holder suspends for another processor.
/// - *Interruptible sections:* a section that restarts would restart the sections inside it.
/// - *Sections under plain mutexes:* an inversion at the inner mutex reaches the users of the outer one.
/// - *Sections under `icpp` of a task that can wait and is itself the most urgent user of the inner resource:* another
///   task locks the inner resource meanwhile. When the first one returns to its own priority, from a section elsewhere
///   or from an inherited priority, it has the priority of that holder, executes before it, and may then find the
///   inner resource locked while it holds the outer one.
fn uncovered_nesting(tables: &Tables<'_>) -> Option<Unbounded> {
    let system = tables.system;
    system.task_ids().find_map(|task| {
        let sections = system.sections(task);
        sections.iter().find_map(|section| {
            let (outer, inner) = (sections[section.parent?].resource, section.resource);
            let (over, under) = (tables.protocol(outer), tables.protocol(inner));
            let ties = system.ceiling(inner) <= system.task(task).priority;
            let uncovered = match over {
                _ if over != under => true,
                Protocol::Mpcp | Protocol::None => true,
                _ if accounting(over).is_some() || over.is_interruptible() => true,
                Protocol::Icpp => ties && can_wait(tables, task),
                _ => false,
            };
            uncovered.then_some(Unbounded::Nested { task, outer, inner })
        })
    })
}

/// Returns whether jobs of the task may wait, or execute elsewhere, while others of its processor execute.
fn can_wait(tables: &Tables<'_>, task: TaskId) -> bool {
    tables.system.requests(task).iter().any(|request| match tables.protocol(request.resource) {
        Protocol::None | Protocol::Pip => tables.system.users(request.resource).len() > 1,
        protocol => tables.system.is_global(request.resource) || protocol.has_homes(),
    })
}

/// Marks the tasks without a bound because of a resource that is shared across processors under a protocol without a
/// bound for that.
///
/// The users of the resource wait for other processors without bound. The late jobs of such a user delay the less
/// urgent tasks of its processor. Tasks above the user, up to the ceiling, may be preempted by a holder whose priority
/// was raised.
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

/// Marks the tasks without a bound because of a plain mutex within one processor.
///
/// A task whose priority is between those of a holder and of a more urgent user delays both. So does a task with the
/// priority of the holder, as it executes before the holder when it returns to that priority. A pair of users without
/// such a task behaves as under inheritance.
fn mark_inversions(tables: &Tables<'_>, resource: ResourceId, hazards: &mut [Option<Unbounded>]) {
    let system = tables.system;
    let priority = |id: TaskId| system.task(id).priority;
    for &user in system.users(resource) {
        let mut holders: Vec<TaskId> =
            system.users(resource).iter().copied().filter(|&holder| priority(holder) < priority(user)).collect();
        // The least urgent holder has the most tasks of intermediate priority.
        holders.sort_by_key(|&holder| priority(holder));
        let Some(&holder) = holders.first() else { continue };
        let neighbours = tables.neighbours(user).iter().copied();
        let between: Vec<TaskId> = neighbours
            .filter(|&id| id != user && id != holder && (priority(holder)..=priority(user)).contains(&priority(id)))
            .collect();
        if between.is_empty() {
            continue;
        }
        // The user's own inversion replaces the delay by another user's inversion.
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
