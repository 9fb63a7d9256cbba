//! What locks and sections cost on this machine: alone, against each other, and beside those of the C library.
//!
//! | function | what it measures |
//! |---|---|
//! | [`cost`](fn@cost) | lock and unlock of each spinlock without contention, with warm and with cold caches |
//! | [`contention`](fn@contention) | throughput and waits of spinlocks that several processors want |
//! | [`mutex_cost`], [`hand_over`] | mutexes, and the time from an unlock to the next owner |
//! | [`protocols`](fn@protocols) | what each protocol of a task set costs |
//! | [`overheads`], [`ics_overheads`] | the overheads that analyses charge |
//! | [`ics_experiments`] | interruptible sections beside locks |
//!
//! # Examples
//!
//! ```
//! use lockwright_engine::Control;
//!
//! // With the right to real-time priorities nothing else comes between; without it, it measures all the same.
//! let costs = lockwright_measure::cost(100, &Control::new())?;
//! for cost in costs.costs.iter().filter(|cost| !cost.cold) {
//!     println!("{}: {} cycles", cost.lock, cost.cycles[cost.cycles.len() / 2]);
//! }
//! # Ok::<(), lockwright_engine::RunError>(())
//! ```

#![deny(unsafe_code)]

mod contention;
mod cost;
mod ics;
#[cfg(test)]
#[path = "../../sys/tests/support/machine.rs"]
mod machine;
#[allow(unsafe_code)] // Robust mutexes stay where they are.
mod mutex;
mod pace;
mod protocols;
#[cfg(test)]
mod slots;
mod squad;
mod subject;

pub use contention::{Arrivals, Contended, ContentionConfig, OverFifo, contention};
pub use cost::{Cost, Costs, cost};
pub use ics::{Experiment, Mechanism, Overhead, Overheads, Setting, ics_experiments, ics_overheads};
pub use mutex::{HandOver, hand_over, mutex_cost};
pub use protocols::{Interruptions, Pick, ProtocolCost, Protocols, Readings, Work, overheads, protocols};
pub use subject::lock_names;
