//! The checks as functions, for the macros.

pub(crate) use super::abort::{everyone_else_is_served, gives_up_while_held};
pub(crate) use super::exclusion::{against_an_arrival, excludes, excludes_tries};
pub(crate) use super::mutants::{LosesHandOff, NoExclusion, NoSharing};
pub(crate) use super::order::{scripted, two_waiters};
#[cfg(lockwright_loom)]
pub(crate) use super::orderings::{Mutation, each_ordering_is_needed};
pub(crate) use super::run::{NEVER_ENDS, OUT_OF_ORDER, TWO_INSIDE, caught, explore};
pub(crate) use super::sharing::{busy_phases, readers_meet, shares, shares_tries, writer_then_reader};
pub(crate) use super::stress::stress;
