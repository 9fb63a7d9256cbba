//! `msrp`: as `fmlp_short` for global resources; a job is delayed by one section of its processor, spun for or under a ceiling. See
//! [`multiprocessor::msrp`](crate::multiprocessor::msrp).

use super::across::boxed;
use crate::bound::Unbounded;
use crate::multiprocessor::{Protocol, msrp};
use crate::tables::Tables;
use crate::{Failure, Sharing};
use lockwright_model::Protocol as Name;

type Boxed = Result<Box<dyn Protocol>, Failure>;

pub(crate) fn bounds(tables: &Tables<'_>, sharing: &Sharing) -> Result<Boxed, Unbounded> {
    let system = tables.system;
    let by_hand = |&id: &_| tables.protocol(id) == Name::Icpp && system.resource(id).ceiling.is_some();
    match system.resource_ids().find(by_hand) {
        Some(resource) => Err(Unbounded::Ceiling { resource }),
        None => Ok(boxed(msrp::protocol(sharing, None))),
    }
}
