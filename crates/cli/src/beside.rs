//! What interruptible sections win, and lose, beside the best lock: by task, with the sections that it waits for there.

use crate::report::{Report, Row};
use crate::units;
use lockwright_analysis::{Analysis, Cause, explain};
use lockwright_model::{Duration, Protocol, ResourceId, System, TaskId};

/// One protocol beside another.
pub struct Beside {
    /// The other: the best of those that are locks.
    pub lock: String,
    /// Tasks with a lower bound on the response than there, or the only one.
    pub better: Vec<Changed>,
    /// Tasks with a higher one, or none.
    pub worse: Vec<Changed>,
}

/// A task's bound, here and there.
pub struct Changed {
    /// Whose.
    pub task: TaskId,
    /// Here.
    pub response: Option<Duration>,
    /// There.
    pub under_lock: Option<Duration>,
    /// Whose sections it waits for there, on what.
    pub sections: Vec<(TaskId, ResourceId)>,
}

/// Of a report under `ics` or `ics_lock`, beside the first of those under locks, the best first. `None` where there is none, or no bound under this one.
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

/// Sections of less urgent tasks that can delay one.
fn waited_for(system: &System, analysis: &Analysis, task: TaskId) -> Vec<(TaskId, ResourceId)> {
    let terms = explain(system, analysis, task);
    let local = terms.iter().filter(|term| matches!(term.cause, Cause::Local | Cause::Boosted));
    local.filter_map(|term| Some((term.by.filter(|&by| by.index() < system.tasks().len())?, term.resource?))).collect()
}

/// Tasks shown of those that are better or worse off.
const SHOWN: usize = 4;

fn list(parts: &[String]) -> String {
    match parts.len() {
        n if n > SHOWN => format!("{} and {} more", parts[..SHOWN].join(", "), n - SHOWN),
        _ => parts.join(", "),
    }
}

/// One line for a person.
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
    let wins = if better.is_empty() { "nobody".into() } else { list(&better) };
    let loses = if worse.is_empty() { "nobody".into() } else { list(&worse) };
    format!("{protocol}: better than {} for {wins}; worse for {loses}.\n", beside.lock)
}
