//! The checks every lock passes, and their twins, which must fail.
//!
//! One text, three ways to execute it: on real threads (a plain `cargo test`), in loom, which explores all interleavings of
//! two to four threads and the reorderings of their atomics (`cargo xtask loom`), and in shuttle, which samples interleavings of more
//! (`cargo xtask shuttle`).
//!
//! | check | what it says | twins |
//! |---|---|---|
//! | [`exclusion!`] | one at a time, each sees what the last one wrote, all get it | a lock that does nothing; a hand-off that gets lost; Acquire or Release left out |
//! | [`orderings!`] | each Acquire and each Release is needed where it is | itself: each of them left out alone |
//! | [`order!`] | hand-offs go as `lockwright_protocol::Waiting` says | the same lock held against another order |
//! | [`abort!`] | who gives up leaves, others still get it, one at a time, who comes back does too | a lock that does nothing; a hand-off that gets lost; Acquire or Release left out |

#![allow(unused)] // Each of the three leaves out what it has no use for.

mod abort;
#[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
pub(crate) mod alone;
mod exclusion;
mod order;
pub(crate) mod run;
#[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
pub(crate) mod search;
mod twins;

pub(crate) use abort::abort;
pub(crate) use exclusion::{exclusion, orderings, scripts};
pub(crate) use lockwright_protocol::Order;
pub(crate) use order::{Probe, order};
pub(crate) use run::Patient;

/// The checks as functions, for the macros.
pub(crate) mod checks {
    pub(crate) use super::abort::{everyone_else_is_served, gives_up_while_held};
    #[cfg(lockwright_loom)]
    pub(crate) use super::exclusion::{LeftOut, each_ordering_is_needed};
    pub(crate) use super::exclusion::{against_an_arrival, excludes, excludes_who_tries, torture};
    pub(crate) use super::order::{scripted, two_waiters};
    pub(crate) use super::run::{NEVER_ENDS, OUT_OF_ORDER, TWO_INSIDE, caught, explore};
    pub(crate) use super::twins::{LosesHandOff, Nothing};
}
