//! Comparison of a protocol without waits (interruptible sections, lock-free and wait-free objects) with the best lock:
//! for each task, the bounds under both.

use crate::report::{Report, Row};
use crate::units;
use lockwright_analysis::{Analysis, Cause, explain};
use lockwright_model::{Duration, Protocol, ResourceId, System, TaskId};

/// A comparison of two protocols.
pub struct Beside {
    /// The other protocol: the best of those that are locks.
    pub lock: String,
    /// Tasks whose response bound is lower under this protocol, or that have a bound only under this one.
    pub better: Vec<Changed>,
    /// Tasks whose response bound is higher under this protocol, or that have none under this one.
    pub worse: Vec<Changed>,
}

/// A task's bounds under both protocols.
pub struct Changed {
    /// The task.
    pub task: TaskId,
    /// Its bound under this protocol.
    pub response: Option<Duration>,
    /// Its bound under the lock.
    pub under_lock: Option<Duration>,
    /// The critical sections that can delay it under the lock: task and resource.
    pub sections: Vec<(TaskId, ResourceId)>,
}

/// Compares a report under `ics`, `ics_lock`, `lock_free` or `wait_free` with the first report of `all` that is about a
/// lock. `None` if there is no such report, or no bound under `protocol`.
#[must_use]
pub fn beside(system: &System, all: &[(&Report, &Analysis)], report: &Report, protocol: Protocol) -> Option<Beside> {
    let bounded = |report: &Report| report.rows.iter().any(|row| row.bound.response.is_some());
    if !protocol.is_interruptible() || !bounded(report) {
        return None;
    }
    let (lock, analysis) = all.iter().find(|(_, analysis)| !analysis.protocol.is_interruptible())?;
    let analysed = lock.analysed(system);
    let (mut better, mut worse) = (Vec::new(), Vec::new());
    for row in &report.rows {
        let there = lock.rows.iter().find(|other| other.task == row.task)?;
        let response = |row: &Row| row.bound.response.unwrap_or(Duration::from_ns(u64::MAX));
        let changed = |sections| Changed {
            task: row.task,
            response: row.bound.response,
            under_lock: there.bound.response,
            sections,
        };
        match response(row).cmp(&response(there)) {
            std::cmp::Ordering::Less => better.push(changed(waited_for(analysed, analysis, row.task))),
            std::cmp::Ordering::Equal => {}
            std::cmp::Ordering::Greater => worse.push(changed(Vec::new())),
        }
    }
    Some(Beside { lock: lock.protocol.clone(), better, worse })
}

/// Critical sections of others that can delay a task.
fn waited_for(system: &System, analysis: &Analysis, task: TaskId) -> Vec<(TaskId, ResourceId)> {
    let terms = explain(system, analysis, task);
    let local = terms.iter().filter(|term| matches!(term.cause, Cause::Local | Cause::Boosted | Cause::Waiting));
    local.filter_map(|term| Some((term.by.filter(|&by| by.index() < system.tasks().len())?, term.resource?))).collect()
}

/// Greatest number of tasks in a list.
const SHOWN: usize = 4;

fn list(parts: &[String]) -> String {
    match parts.len() {
        n if n > SHOWN => format!("{} and {} more", parts[..SHOWN].join(", "), n - SHOWN),
        _ => parts.join(", "),
    }
}

/// The comparison as one line of text.
#[must_use]
pub fn sentence(system: &System, protocol: &str, beside: &Beside) -> String {
    let name = |task: TaskId| &system.task(task).name;
    let bound = |bound: Option<Duration>| bound.map_or_else(|| "no bound".into(), units::text);
    let told = |changed: &Changed| {
        let section = |&(by, resource): &(TaskId, ResourceId)| {
            format!("the section of {} on {}", name(by), system.resource(resource).name)
        };
        let sections: Vec<String> = changed.sections.iter().map(section).collect();
        let waits =
            if sections.is_empty() { String::new() } else { format!(", no wait for {}", sections.join(" and ")) };
        format!("{} ({} instead of {}{waits})", name(changed.task), bound(changed.response), bound(changed.under_lock))
    };
    let better: Vec<String> = beside.better.iter().map(told).collect();
    let worse: Vec<String> = beside.worse.iter().map(told).collect();
    let wins = if better.is_empty() { "no task".into() } else { list(&better) };
    let loses = if worse.is_empty() { "no task".into() } else { list(&worse) };
    format!("{protocol}: better than {} for {wins}; worse for {loses}.", beside.lock)
}
