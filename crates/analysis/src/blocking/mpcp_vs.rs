//! `mpcp_vs`: waits as under MPCP, which count as execution, and each less urgent task of the processor delays a job once; see
//! [`multiprocessor::mpcp`](crate::multiprocessor::mpcp).

use super::across::boxed;
use crate::bound::Unbounded;
use crate::multiprocessor::Protocol;
use crate::multiprocessor::mpcp::{CarryIn, Mpcp, Waiting};
use crate::tables::Tables;
use crate::{Failure, Sharing};
use lockwright_model::Protocol as Name;

type Boxed = Result<Box<dyn Protocol>, Failure>;

pub(crate) fn bounds(tables: &Tables<'_>, sharing: &Sharing) -> Result<Boxed, Unbounded> {
    let system = tables.system;
    let by_hand = |&id: &_| tables.protocol(id) == Name::MpcpVs && system.resource(id).ceiling.is_some();
    match system.resource_ids().find(by_hand) {
        Some(resource) => Err(Unbounded::Ceiling { resource }),
        None => Ok(boxed(Mpcp::new(sharing, Waiting::Virtual, CarryIn::Response))),
    }
}
