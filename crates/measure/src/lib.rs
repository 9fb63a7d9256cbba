//! Measures the costs of locks and sections on this machine: without contention, under contention, and compared with
//! the locks of the C library.
//!
//! | function | subject |
//! |---|---|
//! | [`cost`](fn@cost) | lock and unlock of each spinlock without contention, with warm and with cold caches |
//! | [`contention`](fn@contention) | throughput and waits of spinlocks under contention |
//! | [`mutex_cost`], [`hand_over`] | mutexes, and the time from an unlock to the next owner |
//! | [`protocols`](fn@protocols) | the costs of each protocol of a task set |
//! | [`overheads`] | the overheads that analyses charge |
//! | [`section_costs`], [`ics_experiments`] | interruptible sections, without contention and beside locks |
//! | [`object_costs`], [`contended_objects`] | non-blocking objects, beside sequential ones under locks |
//!
//! # Examples
//!
//! ```
//! use lockwright_engine::Control;
//!
//! // Without permission for real-time priorities, other threads may disturb the readings.
//! let costs = lockwright_measure::cost(100, &Control::new())?;
//! for cost in costs.costs.iter().filter(|cost| !cost.cold) {
//!     println!("{}: {:.1} ± {:.1} cycles", cost.lock, cost.cycles.each(0.5), cost.cycles.half_width());
//! }
//! # Ok::<(), lockwright_measure::CostError>(())
//! ```

#![deny(unsafe_code)]

mod contention;
mod cost;
mod counter;
mod harness;
mod ics;
#[cfg(test)]
#[path = "../../sys/tests/support/machine.rs"]
mod machine;
#[allow(unsafe_code)] // Robust mutexes must not move while a thread holds them.
mod mutex;
mod objects;
mod pace;
mod protocols;
#[cfg(test)]
mod slots;
mod squad;
mod subject;
mod works;

pub use contention::{Arrivals, Contended, ContentionConfig, OverFifo, contention};
pub use cost::{Cost, CostError, Costs, cost};
pub use harness::{Batches, Readings};
pub use ics::costs::{SectionCost, SectionCosts, section_costs};
pub use ics::experiment::{Experiment, Mechanism, Setting, ics_experiments};
pub use mutex::{HandOver, hand_over, mutex_cost};
pub use objects::Sharing;
pub use objects::alone::{AloneObject, ObjectCosts, object_costs};
pub use objects::contended::{ContendedObject, Steps, contended_objects};
pub use protocols::{ProtocolCost, Protocols, overheads, protocols};
pub use subject::lock_names;
pub use works::{Interruptions, Pick, Work};
