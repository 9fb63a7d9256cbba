//! Task sets that follow from recordings.
//!
//! A thread is a task if its jobs can be told: one wait of its code separates them (`jobs`). The steps of all jobs
//! give its body (`body`), and the distances of their releases its period (`period`). `system` makes a task set of
//! them, and `remarks` the comments that tell the evidence for each value.

mod body;
mod jobs;
mod period;
mod remarks;
mod system;
mod task;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

pub use jobs::Boundary;
pub use period::Regularity;
pub use task::{InferredTask, Job};

use crate::history::histories;
use crate::recording::{ObjectId, Recording, ThreadIndex};
use lockwright_model::System;

/// How to infer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choices {
    /// Execution times are lengthened by this many percent.
    pub margin: u32,
    /// Places of waits that separate jobs: parts of the names of call sites, addresses, or names of objects.
    pub job_at: Vec<String>,
}

/// What follows from a recording.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Inferred {
    /// The task set, or the reason why there is none.
    pub system: Result<System, String>,
    /// The evidence for each task, by task id.
    pub tasks: Vec<InferredTask>,
    /// The threads that are no tasks.
    pub left_out: Vec<LeftOut>,
    /// The object behind each resource, by resource id.
    pub objects: Vec<ObjectId>,
    /// What the task set does not express, and its bounds therefore do not cover.
    pub warnings: Vec<String>,
    /// How the system was recorded, for the head of the file.
    head: Vec<String>,
    choices: Choices,
}

/// A thread that is not a task.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeftOut {
    /// The thread.
    pub thread: ThreadIndex,
    /// Why its jobs cannot be told.
    pub reason: String,
}

/// Infers a task set from a recording.
///
/// # Examples
/// ```
/// use lockwright_record::{Choices, Recording, infer};
///
/// let inferred = infer(&Recording::default(), &Choices::default());
/// assert_eq!(inferred.system.unwrap_err(), "switches of threads were not recorded, so execution times are unknown");
/// ```
#[must_use]
pub fn infer(recording: &Recording, choices: &Choices) -> Inferred {
    let histories = histories(recording);
    let (mut tasks, mut left_out) = (Vec::new(), Vec::new());
    for (thread, history) in (0..).zip(&histories) {
        match task::task_of(recording, thread, history, choices) {
            Ok(task) => tasks.push(task),
            Err(reason) => left_out.push(LeftOut { thread, reason }),
        }
    }
    system::assemble(recording, &histories, tasks, left_out, choices)
}
