//! `msrp`: as `fmlp_short` for global resources; a job is delayed by one section of its processor, spun for or under a ceiling. See
//! [`multiprocessor::msrp`](crate::multiprocessor::msrp).

use super::across::boxed;
use crate::multiprocessor::{Protocol, msrp};
use crate::{Failure, Sharing};

pub(crate) fn bounds(sharing: &Sharing) -> Result<Box<dyn Protocol>, Failure> {
    boxed(msrp::protocol(sharing, None))
}
