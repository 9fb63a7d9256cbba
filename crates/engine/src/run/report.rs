//! What the thread of a task leaves behind.

use super::failure::Failure;
use super::outcome::TaskOutcome;
use crate::log::Log;

/// What a task leaves behind.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) outcome: TaskOutcome,
    pub(super) log: Log,
    pub(super) failure: Option<Failure>,
}
