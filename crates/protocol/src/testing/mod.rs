//! Exhaustive walks over the reachable states of the machines, on one [harness](harness::Walk).
//!
//! | walk | machines |
//! |---|---|
//! | `locks` | `none`, `pip`, `icpp`, `mpcp` |
//! | `rules` | the protocols whose jobs are counted, held, sent elsewhere, or served in the order of their requests |
//! | `sections` | `ics`, `ics_lock` |
//! | `fulock` | fulocks of each pair of protections |
//! | `effects` | the threads that carry the actions out, one step at a time |
//! | `schedulers` | the same for `p-edf` and `g-edf` |
//!
//! `settled` draws its events at random instead, for more tasks. The walks of the machines of the schedulers are beside
//! these, and have the events of `deadlines`.

mod deadlines;
mod effects;
mod fulock;
mod harness;
mod locks;
mod rules;
mod schedulers;
mod sections;
mod settled;

pub(crate) use deadlines::{Answer, Event, Mutation, give};
pub(crate) use harness::{STATES_MOST, check_states, reach, reach_at_most};
