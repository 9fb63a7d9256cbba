//! `mpcp_vs`: waits are those of MPCP and count as execution, and each less urgent task of the processor delays a job
//! once; see [`multiprocessor::mpcp`](crate::multiprocessor::mpcp).

use super::across::{boxed, refuse_fixed_ceilings};
use crate::bound::Unbounded;
use crate::multiprocessor::DelayBounds;
use crate::multiprocessor::mpcp::{CarryIn, Mpcp, Waiting};
use crate::tables::Tables;
use crate::{Failure, Sharing};
use lockwright_model::Protocol;

type Boxed = Result<Box<dyn DelayBounds>, Failure>;

pub(crate) fn bounds(tables: &Tables<'_>, sharing: &Sharing) -> Result<Boxed, Unbounded> {
    refuse_fixed_ceilings(tables, Protocol::MpcpVs)?;
    Ok(boxed(Mpcp::new(sharing, Waiting::Virtual, CarryIn::Response)))
}
