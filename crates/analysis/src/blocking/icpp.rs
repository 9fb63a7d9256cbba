//! `icpp`: at most one section of one less urgent task of the same processor, before the job starts.
//!
//! A section blocks task i only while its holder's priority is at least i's: only sections on resources whose ceiling
//! is at least i's priority count. Two such sections of two less urgent tasks cannot both have begun, as the second
//! task would have had to execute while the first was at its ceiling. (If tasks suspend, one of them may return to a
//! priority equal to that ceiling and execute first. It then finds the resource locked and waits, without holding
//! another, for a section that is charged to its resumption. A wait while holding another is not covered: see
//! `hazard.rs`.) An inner section with a higher ceiling counts with its own length, as its holder returns to the outer
//! ceiling at its end.
//!
//! Reference: Sha, Rajkumar, Lehoczky, IEEE TC 39(9), 1990, and the classic formulas of PCP and SRP.

use super::delay::BlockingSection;
use crate::rows::tables::Tables;
use lockwright_model::TaskId;

/// Returns the longest section that may block a job of `task`, or `None` if there is none.
pub(crate) fn longest(tables: &Tables<'_>, task: TaskId) -> Option<BlockingSection> {
    let priority = tables.system.task(task).priority;
    let sections = &tables.at_ceilings[tables.system.task(task).cpu.index()];
    let lesser = &sections[sections.partition_point(|section| section.priority >= priority)..];
    let longest = lesser.iter().filter(|section| section.ceiling >= priority).max_by_key(|section| section.length)?;
    Some(BlockingSection { task: longest.task, resource: longest.resource, length: longest.length })
}
