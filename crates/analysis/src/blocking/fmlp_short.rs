//! `fmlp_short`: a FIFO spinlock for every resource, including those of one processor; see
//! [`multiprocessor::spin`](crate::multiprocessor::spin).

use super::across::boxed;
use crate::multiprocessor::spin::Fifo;
use crate::multiprocessor::{DelayBounds, Platform};
use crate::{Failure, Sharing};

pub(crate) fn bounds(sharing: &Sharing) -> Result<Box<dyn DelayBounds>, Failure> {
    boxed(Fifo::new(sharing, platform(sharing)))
}

/// Returns the platform whose clusters have one processor each.
pub(crate) fn platform(sharing: &Sharing) -> Platform {
    let clusters = sharing.tasks.iter().map(|task| task.cluster.saturating_add(1)).max().unwrap_or(0);
    Platform { clusters, processors: 1, interrupts: None }
}
