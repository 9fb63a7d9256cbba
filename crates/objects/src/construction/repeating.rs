//! The lock-free object.

use super::{Construction, LINES};
use crate::Bound;
use crate::sequential::{Answer, Request, Sequential};
use crate::sync::constructor;
use core::marker::PhantomData;

/// A sequential object that participants change by repeated attempts.
pub(crate) struct Repeating<O, const BLOCKS: usize, const SLOTS: usize> {
    object: Construction<BLOCKS, SLOTS, 0>,
    kind: PhantomData<fn() -> O>,
}

impl<O: Sequential, const BLOCKS: usize, const SLOTS: usize> Repeating<O, BLOCKS, SLOTS> {
    /// The values that fit.
    pub(crate) const CAPACITY: usize = BLOCKS * LINES * O::PER_LINE - O::HEADER;

    /// The bound of an operation. All overlapping operations of others interfere.
    pub(crate) fn bound() -> Bound {
        let attempt = Construction::<BLOCKS, SLOTS, 0>::steps(O::accesses(Self::CAPACITY), 1);
        Bound { once: 0, attempt, attempts: None }
    }

    constructor! {
        pub(crate) fn new() -> Self {
            Self { object: Construction::new(), kind: PhantomData }
        }
    }

    pub(crate) fn perform(&self, me: usize, request: Request) -> Answer {
        // BOUND: an attempt fails only if another one has committed during it.
        loop {
            let mut attempt = self.object.begin(me);
            let answer = O::apply(&mut attempt, Self::CAPACITY, request);
            if attempt.commit() {
                return answer;
            }
        }
    }
}
