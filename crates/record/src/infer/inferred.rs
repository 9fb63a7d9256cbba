//! The results of inferring a task set from a recording.

use super::choices::Choices;
use super::task::InferredTask;
use crate::recording::{ObjectId, ThreadIndex};
use lockwright_model::System;

/// The results of inferring a task set from a recording.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Inferred {
    /// The task set, or the reason why there is none.
    pub system: Result<System, String>,
    /// The evidence for each task, by task id.
    pub tasks: Vec<InferredTask>,
    /// The threads that are not tasks.
    pub left_out: Vec<LeftOut>,
    /// The object behind each resource, by resource id.
    pub objects: Vec<ObjectId>,
    /// The parts of the program that the task set does not express, and that its bounds therefore do not cover.
    pub warnings: Vec<String>,
    /// How the system was recorded, for the head of the file.
    pub(super) head: Vec<String>,
    pub(super) choices: Choices,
}

/// A thread that is not a task.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeftOut {
    /// The thread.
    pub thread: ThreadIndex,
    /// Why its jobs cannot be recognised.
    pub reason: String,
    /// Whether it has jobs, and only their period is unknown.
    pub has_jobs: bool,
}
