//! The order of tasks in tables and traces.

use lockwright_model::{System, TaskId};
use std::cmp::Reverse;

/// The order of the rows: by CPU, then by decreasing priority, then as in the file.
#[must_use]
pub fn table_order(system: &System) -> Vec<TaskId> {
    let mut order: Vec<TaskId> = system.task_ids().collect();
    order.sort_by_key(|&id| {
        let task = system.task(id);
        (task.cpu, Reverse(task.priority), id)
    });
    order
}
