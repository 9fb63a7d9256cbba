//! The report of a task's thread.

use super::failure::Failure;
use super::outcome::TaskOutcome;
use crate::log::Log;

/// The report of a task's thread.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) outcome: TaskOutcome,
    pub(super) log: Log,
    /// The decisions on its requests; see [`Outcome::turns`](super::Outcome::turns).
    pub(super) turns: Log,
    pub(super) failure: Option<Failure>,
}
