//! Task sets that follow from recordings.
//!
//! A thread is a task if its jobs can be recognised: one wait in its code separates them (`jobs`). The steps of all
//! jobs give its body (`body`), and the distances between their releases its period (`period`). `system` makes a task
//! set of them, and `remarks` the comments that state the evidence for each value.

mod body;
mod choices;
mod inferred;
mod jobs;
mod period;
mod release;
mod remarks;
mod system;
mod taken;
mod task;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

pub use choices::Choices;
pub use inferred::{Inferred, LeftOut};
pub use jobs::{Boundary, has_wait_at};
pub use period::Regularity;
pub use task::{InferredTask, Job};

use crate::history::histories;
use crate::recording::Recording;
use task::Refusal;

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
    let taken = taken::Taken::of(recording);
    let (mut tasks, mut left_out) = (Vec::new(), Vec::new());
    for (thread, history) in (0..).zip(&histories) {
        match task::task_of(recording, thread, history, &taken, choices) {
            Ok(task) => tasks.push(task),
            Err(Refusal { reason, has_jobs }) => left_out.push(LeftOut { thread, reason, has_jobs }),
        }
    }
    system::assemble(recording, &histories, tasks, left_out, choices)
}
