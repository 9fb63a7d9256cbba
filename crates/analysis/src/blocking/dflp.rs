//! `dflp`: like `dpcp`, except that the requests of each other task that come first count; see
//! [`multiprocessor::dflp`](crate::multiprocessor::dflp).

use super::across::boxed;
use super::dpcp::homes;
use crate::multiprocessor::{DelayBounds, dflp::Dflp};
use crate::tables::Tables;
use crate::{Failure, Sharing};

pub(crate) fn bounds(tables: &Tables<'_>, sharing: &Sharing) -> Result<Box<dyn DelayBounds>, Failure> {
    boxed(Dflp::new(sharing, &homes(tables)))
}
