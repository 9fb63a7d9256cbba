//! Executes task sets on Linux: real-time threads, real locks, what was seen held against what was promised.
//!
//! [`run`] takes a [`System`](lockwright_model::System) and executes it: one SCHED_FIFO thread a task, bound to its CPU, burning the
//! execution times its body names, taking real locks under the protocol asked for. What was seen comes
//! back as an [`Outcome`]: response times, misses, lock waits, and a record of who executed when.
//!
//! - [`observe`] reads blocking and time lines off such records, of a run or of a simulation.
//! - [`doctor`] says what this machine lacks for real time, and how to mend it.
//!
//! The protocols are the state machines of `lockwright_protocol`; the locks are those of [`lockwright::tasks`], which a program can have for threads of its own.
//!
//! Real-time priorities need a permission; without it [`run`] returns [`MachineError::NoPermission`](lockwright::tasks::MachineError::NoPermission), which says what to grant.
//!
//! # Examples
//!
//! ```
//! use lockwright_engine::doctor::{State, examine};
//!
//! for finding in examine().iter().filter(|finding| finding.state != State::Ok) {
//!     println!("{}: {}; {}", finding.name, finding.found, finding.fix);
//! }
//! ```

#![forbid(unsafe_code)]

#[cfg(test)]
extern crate self as lockwright_engine;

mod burn;
mod calibrate;
mod control;
pub mod doctor;
mod error;
mod log;
#[cfg(test)]
#[path = "../../sys/tests/support/machine.rs"]
mod machine;
pub mod observe;
mod occupancy;
#[doc(hidden)]
pub mod raw;
mod run;
mod switches;
mod team;
mod throttling;

pub use calibrate::Calibration;
pub use control::Control;
pub use error::RunError;
pub use occupancy::{Occupancy, Taker};
pub use run::{Ended, Job, LOG_CAPACITY, Outcome, PriorityChange, RunConfig, TaskOutcome, run};
pub use throttling::Throttling;
