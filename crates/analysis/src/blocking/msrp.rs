//! `msrp`: like `fmlp_short` for global resources. At its arrival a job is delayed by one section of its processor,
//! which is spun for or has a ceiling; see [`multiprocessor::msrp`](crate::multiprocessor::msrp).

use super::across::{boxed, refuse_fixed_ceilings};
use crate::bound::Unbounded;
use crate::multiprocessor::{DelayBounds, msrp};
use crate::tables::Tables;
use crate::{Failure, Sharing};
use lockwright_model::Protocol;

type Boxed = Result<Box<dyn DelayBounds>, Failure>;

pub(crate) fn bounds(tables: &Tables<'_>, sharing: &Sharing) -> Result<Boxed, Unbounded> {
    refuse_fixed_ceilings(tables, Protocol::Icpp)?;
    Ok(boxed(msrp::protocol(sharing, None)))
}
