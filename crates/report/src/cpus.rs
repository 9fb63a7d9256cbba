//! A schedule by processor: which task each of them executes.

use crate::{Schedule, Span};
use lockwright_model::{System, TaskId};

/// For each processor, the times at which it executes a task, in order of time. A task that spins executes.
#[must_use]
pub fn by_cpu<'a>(system: &System, schedule: &'a Schedule) -> Vec<Vec<(TaskId, &'a Span)>> {
    let mut cpus = vec![Vec::new(); system.cpus()];
    for row in &schedule.rows {
        for span in row.spans.iter().filter(|span| span.state.executes()) {
            cpus[span.cpu.index()].push((row.task, span));
        }
    }
    for spans in &mut cpus {
        spans.sort_by_key(|(task, span)| (span.from, *task));
    }
    cpus
}
