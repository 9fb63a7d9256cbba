//! The checks that every lock passes, and their mutants, which must fail.
//!
//! The checks run in three ways: on real threads (`cargo test`); in loom, which explores all interleavings of two to
//! four threads and the reorderings of their atomics (`cargo xtask test --deep loom`); and in shuttle, which samples
//! interleavings of more threads (`cargo xtask test --deep shuttle`).
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
pub(crate) mod checks;
#[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
pub(crate) mod ends;
mod exclusion;
mod mutants;
mod order;
mod orderings;
pub(crate) mod run;
#[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
pub(crate) mod search;
mod sharing;
mod stress;
mod suites;

pub(crate) use lockwright_protocol::Order;
pub(crate) use order::Probe;
pub(crate) use run::Patient;
pub(crate) use sharing::{SharedOrder, SharedProbe};
pub(crate) use suites::{abort, exclusion, order, orderings, scripts, sharing};
