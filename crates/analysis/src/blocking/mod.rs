//! Blocking bounds of a system, with one file per protocol, named as in `lockwright-protocol`. `pcp` and `srp` have
//! none of their own, as they delay jobs as `icpp` does.

pub(crate) mod across;
pub(crate) mod dflp;
pub(crate) mod dpcp;
pub(crate) mod fmlp_long;
pub(crate) mod fmlp_plus;
pub(crate) mod fmlp_short;
pub(crate) mod icpp;
pub(crate) mod ics;
pub(crate) mod mpcp;
pub(crate) mod mpcp_vs;
pub(crate) mod mrsp;
pub(crate) mod msrp;
pub(crate) mod omlp;
pub(crate) mod pip;

use lockwright_model::{ResourceId, TaskId};

/// A section that may block: its task, its resource and its length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BlockingSection {
    pub(crate) task: TaskId,
    pub(crate) resource: ResourceId,
    pub(crate) length: u64,
}
