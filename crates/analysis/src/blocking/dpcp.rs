//! `dpcp`: all sections on the job's own processor, and at each request those that precede it at the home of the
//! resource; see [`multiprocessor::dpcp`](crate::multiprocessor::dpcp).

use super::across::boxed;
use crate::multiprocessor::{DelayBounds, dpcp::Dpcp};
use crate::tables::Tables;
use crate::{Failure, Sharing};

pub(crate) fn bounds(tables: &Tables<'_>, sharing: &Sharing) -> Result<Box<dyn DelayBounds>, Failure> {
    boxed(Dpcp::new(sharing, &homes(tables)))
}

/// Returns the home of each resource.
pub(crate) fn homes(tables: &Tables<'_>) -> Vec<u16> {
    tables.system.resource_ids().map(|resource| tables.system.home(resource).0).collect()
}
