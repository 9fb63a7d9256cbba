//! `omlp`: waits as a FIFO spinlock's, and once a job the longest request of a less urgent task of its processor, from asking to giving back. All of it counts
//! as execution: [`multiprocessor::omlp`](crate::multiprocessor::omlp).

use super::across::boxed;
use super::fmlp_short::platform;
use crate::multiprocessor::Protocol;
use crate::multiprocessor::spin::Fifo;
use crate::{Failure, Sharing};

pub(crate) fn bounds(sharing: &Sharing) -> Result<Box<dyn Protocol>, Failure> {
    boxed(Fifo::new(sharing, platform(sharing)))
}
