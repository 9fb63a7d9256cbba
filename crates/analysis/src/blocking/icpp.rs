//! `icpp`: at most one section of one less urgent task of the same processor, before the job starts.
//!
//! A section blocks task i only while its holder is at or above i's priority: sections on resources
//! whose ceiling is at least i's priority. Two such sections of two less urgent tasks cannot both be begun: the second
//! task would have had to execute while the first was at its ceiling. (With tasks that suspend, one of them may fall back
//! to a priority that ties with that ceiling, and go first; it then finds the resource taken and waits, holding nothing, for
//! a section that is charged to its resumption. Holding something is not covered: `hazard.rs`.) An inner section with a higher ceiling counts with
//! its own length: when it ends, its holder falls back to the outer ceiling.
//!
//! Reference: Sha, Rajkumar, Lehoczky, IEEE TC 39(9), 1990; formulas of the classic PCP and SRP.

use super::Blocker;
use super::ics::lock_ceiling;
use crate::tables::Tables;
use lockwright_model::TaskId;

/// The longest section that may block a job of `task`, if any may.
pub(crate) fn longest(tables: &Tables<'_>, task: TaskId) -> Option<Blocker> {
    let system = tables.system;
    if tables.lock_ceilings.iter().all(Option::is_none) {
        return None;
    }
    let priority = system.task(task).priority;
    let sections = tables.lesser(task).iter().flat_map(|&holder| {
        let requests = system.requests(holder).iter();
        requests.map(move |request| Blocker {
            task: holder,
            resource: request.resource,
            length: request.length.as_ns(),
        })
    });
    sections
        .filter(|section| {
            lock_ceiling(tables, section.task, section.resource).is_some_and(|ceiling| ceiling >= priority)
        })
        .max_by_key(|section| section.length)
}
