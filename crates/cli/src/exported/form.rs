//! The common parts of the forms: levels of SCHED_FIFO, and the reasons why a system cannot be expressed.

use lockwright_model::{Protocol, System};

/// A system that the form cannot express: what it cannot express, and what to do.
pub(super) struct Inexpressible {
    pub(super) message: String,
    pub(super) help: &'static str,
}

impl Inexpressible {
    pub(super) fn new(message: String, help: &'static str) -> Self {
        Self { message, help }
    }
}

/// The level of SCHED_FIFO of each task, in the order of the tasks: 1 for the least priority, and so on.
pub(super) fn levels(system: &System) -> Result<Vec<u8>, Inexpressible> {
    let mut priorities: Vec<_> = system.tasks().iter().map(|task| task.priority).collect();
    priorities.sort_unstable();
    priorities.dedup();
    if priorities.len() > LEVELS_MAX {
        let message = format!("the tasks have {} different priorities, and SCHED_FIFO has 99 levels", priorities.len());
        return Err(Inexpressible::new(message, "give the same priority to some tasks"));
    }
    let rank = |priority| priorities.partition_point(|other| *other < priority) as u8 + 1;
    Ok(system.tasks().iter().map(|task| rank(task.priority)).collect())
}

/// One level remains above all tasks, for a watchdog.
const LEVELS_MAX: usize = 98;

/// The fault of a protocol that the form does not have.
pub(super) fn unknown(protocol: Protocol, what: &str, help: &'static str) -> Inexpressible {
    Inexpressible::new(format!("{what} do not have the protocol `{protocol}`"), help)
}
