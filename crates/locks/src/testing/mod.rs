//! The checks that every lock passes, and their mutants, which must fail.
//!
//! The checks run in three ways: on real threads (`cargo test`), in loom, which explores all interleavings of two to
//! four threads and the reorderings of their atomics (`cargo xtask loom`), and in shuttle, which samples interleavings
//! of more threads
//! (`cargo xtask shuttle`).
//!
//! | check | guarantee | mutants |
//! |---|---|---|
//! | [`exclusion!`] | exclusion, visibility, and service | no exclusion; a lost hand-off; weaker orderings |
//! | [`orderings!`] | each Acquire and Release is needed | each of them weakened alone |
//! | [`order!`] | hand-offs follow `lockwright_protocol::Waiting` | the same lock compared with another order |
//! | [`sharing!`] | readers share, exclude writers, and enter in order | no exclusion; no sharing; a lost release; another order; each ordering weakened |
//! | [`abort!`] | a waiter gives up, and is served when it returns | no exclusion; a lost hand-off; weaker orderings |

#![allow(unused)] // No way to run the checks uses everything.

mod abort;
#[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
pub(crate) mod alone;
mod exclusion;
mod mutants;
mod order;
mod orderings;
pub(crate) mod run;
#[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
pub(crate) mod search;
mod sharing;
mod stress;

pub(crate) use abort::abort;
pub(crate) use exclusion::exclusion;
pub(crate) use lockwright_protocol::Order;
pub(crate) use order::{Probe, order};
pub(crate) use orderings::{orderings, scripts};
pub(crate) use run::Patient;
pub(crate) use sharing::{SharedOrder, SharedProbe, sharing};

/// The checks as functions, for the macros.
pub(crate) mod checks {
    pub(crate) use super::abort::{everyone_else_is_served, gives_up_while_held};
    pub(crate) use super::exclusion::{against_an_arrival, excludes, excludes_tries};
    pub(crate) use super::mutants::{LosesHandOff, NoExclusion, NoSharing};
    pub(crate) use super::order::{scripted, two_waiters};
    #[cfg(lockwright_loom)]
    pub(crate) use super::orderings::{Mutation, each_ordering_is_needed};
    pub(crate) use super::run::{NEVER_ENDS, OUT_OF_ORDER, TWO_INSIDE, caught, explore};
    pub(crate) use super::sharing::{busy_phases, readers_meet, shares, shares_tries, writer_then_reader};
    pub(crate) use super::stress::stress;
}
