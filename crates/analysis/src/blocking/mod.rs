//! Blocking bounds, one file a protocol, named as in `lockwright-protocol`.

pub(crate) mod icpp;
pub(crate) mod mpcp;
pub(crate) mod pip;

use lockwright_model::{ResourceId, TaskId};

/// One section that may block: whose, on what, how long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Blocker {
    pub(crate) task: TaskId,
    pub(crate) resource: ResourceId,
    pub(crate) length: u64,
}
