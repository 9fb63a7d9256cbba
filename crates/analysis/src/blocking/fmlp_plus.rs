//! `fmlp_plus`: see [`multiprocessor::fmlp`](crate::multiprocessor::fmlp). A holder can be preempted by a holder whose
//! request was earlier.

use super::across::boxed;
use crate::multiprocessor::DelayBounds;
use crate::multiprocessor::fmlp::{FmlpPlus, Sections};
use crate::{Failure, Sharing};

pub(crate) fn bounds(sharing: &Sharing) -> Result<Box<dyn DelayBounds>, Failure> {
    boxed(FmlpPlus::new(sharing, Sections::Preemptive))
}
