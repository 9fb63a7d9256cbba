//! The common parts of all analyses: their input, their results, and arithmetic.
//!
//! Tests on rows of integers take [`Sporadic`](sporadic::Sporadic) or [`Sharing`](sharing::Sharing) and return a
//! [`Failure`](failure::Failure). Analyses of systems work on [`Tables`](tables::Tables) and return an
//! [`Analysis`](bound::Analysis).

pub(crate) mod bound;
pub(crate) mod divisor;
pub(crate) mod exact;
pub(crate) mod failure;
pub(crate) mod fixed_point;
pub(crate) mod mutant;
#[cfg(test)]
pub(crate) mod random;
pub(crate) mod requests;
pub(crate) mod sharing;
pub(crate) mod simd;
pub(crate) mod sporadic;
pub(crate) mod tables;
pub(crate) mod tally;
