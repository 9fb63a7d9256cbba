//! `omlp`: waits are those of a FIFO spinlock. Once per job, the longest request of a less urgent task of its
//! processor, from the request to the unlock, delays it as well. All of this counts as execution; see
//! [`multiprocessor::omlp`](crate::multiprocessor::omlp).

use super::across::boxed;
use super::fmlp_short::platform;
use crate::multiprocessor::DelayBounds;
use crate::multiprocessor::spin::Fifo;
use crate::{Failure, Sharing};

pub(crate) fn bounds(sharing: &Sharing) -> Result<Box<dyn DelayBounds>, Failure> {
    boxed(Fifo::new(sharing, platform(sharing)))
}
