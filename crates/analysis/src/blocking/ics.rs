//! `ics` and `ics_lock`: sections that begin again, and sections under a lock.
//!
//! ```text
//!   w = C_i + B_i + sum over h at least as urgent on the processor of ceil((w + J_h) / T_h) * (C_h + again(h, i))
//!   again(h, i) = the less of   sum over resources z that h commits without a lock of max over k of b(k, z)
//!                               sum over k of max over such z of b(k, z)
//!                 k: tasks at least as urgent as i and less than h; and, as one, the less urgent tasks whose section can block i
//!   B_i = max over l less urgent than i, z that l locks at a ceiling of at least i's priority, of b(l, z)
//! ```
//! Take the time from when a less urgent task that blocks i began its section (else, since when none at least as urgent as i was pending) until i is
//! done. All jobs and sections executed in it began in it, so a section that began again in it did so for a commit in it. Give each execution in vain to
//! the last commit during it, of all on its resource. No other section on that resource lay between the two then: it would have committed later. And what lies below a
//! job stands still from its start to its end. So of one job and one resource it commits there is at most one, the first below; and of one job and one task below it at
//! most one, for no sections are nested. An execution in vain lasts as long as the section at worst, as the conflict is found at its end.
//!
//! B_i counts its section once, however often it begins again: that is charged to who makes it do so. A task that locks makes nobody begin again: all that may be in the
//! section without the lock are more urgent, and do not wait.
//!
//! Reference: Johnson, Harathi: Interruptible critical sections, section 8, whose equations 4 and 5 differ: docs/errata.md.

use super::Blocker;
use crate::ics::charged;
use crate::omit::Omit;
use crate::tables::Tables;
use lockwright_model::{Priority, Protocol, ResourceId, TaskId};

/// The ceiling at which `holder` locks the resource, if it locks it at one on its processor.
pub(crate) fn lock_ceiling(tables: &Tables<'_>, holder: TaskId, resource: ResourceId) -> Option<Priority> {
    let system = tables.system;
    match tables.protocol(resource) {
        Protocol::Icpp => Some(system.ceiling(resource)),
        Protocol::IcsLock if system.task(holder).priority < system.cutoff(resource) => system.locked_ceiling(resource),
        _ => None,
    }
}

/// Whether what `task` commits on the resource can make others begin again.
fn commits_freely(tables: &Tables<'_>, task: TaskId, resource: ResourceId) -> bool {
    match tables.protocol(resource) {
        Protocol::Ics => true,
        Protocol::IcsLock => tables.system.task(task).priority >= tables.system.cutoff(resource),
        _ => false,
    }
}

fn sections<'a>(
    tables: &'a Tables<'_>,
    tasks: impl Iterator<Item = TaskId> + 'a,
    h: TaskId,
) -> impl Iterator<Item = Blocker> + 'a {
    let system = tables.system;
    let of = move |task: TaskId| {
        let requests = system.requests(task).iter();
        requests.map(move |request| Blocker { task, resource: request.resource, length: request.length.as_ns() })
    };
    let spoils = move |section: &Blocker| {
        commits_freely(tables, h, section.resource) && system.users(section.resource).contains(&h)
    };
    tasks.flat_map(of).filter(spoils)
}

/// Sections of less urgent tasks that can block `task`, and that a job of `h` makes begin again.
fn blocking(tables: &Tables<'_>, h: TaskId, task: TaskId) -> Vec<Blocker> {
    let priority = tables.system.task(task).priority;
    let blocks = |section: &Blocker| {
        lock_ceiling(tables, section.task, section.resource).is_some_and(|ceiling| ceiling >= priority)
    };
    sections(tables, tables.lesser(task).iter().copied(), h).filter(blocks).collect()
}

/// The longest section of a less urgent task that blocks `task` and that one job of `h` makes begin again.
pub(crate) fn blocker_again(tables: &Tables<'_>, h: TaskId, task: TaskId) -> u64 {
    blocking(tables, h, task).iter().map(|section| section.length).max().unwrap_or(0)
}

/// The sections that one job of `h` makes begin again at worst while `task` is delayed: their sum is the bound.
pub(crate) fn again(tables: &Tables<'_>, h: TaskId, task: TaskId) -> Vec<Blocker> {
    if tables.omits(Omit::Again) {
        return Vec::new();
    }
    let system = tables.system;
    let (own, urgency) = (system.task(task).priority, system.task(h).priority);
    let between = tables.neighbours(task).iter().copied().filter(|&k| {
        let priority = system.task(k).priority;
        own <= priority && priority < urgency
    });
    let mut below: Vec<(usize, Blocker)> =
        sections(tables, between, h).map(|section| (section.task.index(), section)).collect();
    if !tables.omits(Omit::AgainOfBlocker) {
        // As of one task: only one of them blocks a job.
        below.extend(blocking(tables, h, task).into_iter().map(|section| (usize::MAX, section)));
    }
    let rows: Vec<(usize, usize, u64)> =
        below.iter().map(|(task, section)| (*task, section.resource.index(), section.length)).collect();
    let mut chosen: Vec<Blocker> = charged(&rows).into_iter().map(|place| below[place].1).collect();
    if tables.omits(Omit::AgainRest) {
        chosen.sort_by_key(|section| core::cmp::Reverse(section.length));
        chosen.truncate(1);
    }
    chosen
}
