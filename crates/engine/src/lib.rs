//! Executes task sets on Linux with real-time threads and real locks, and compares observed times with guaranteed
//! bounds.
//!
//! [`run`] executes a [`System`](lockwright_model::System), by fixed priorities or by deadlines (`p-fp`, `c-fp`,
//! `p-edf`, `g-edf`). Each task is a SCHED_FIFO thread, bound to its CPU or its cluster, or to none under `g-edf`. It
//! is a SCHED_DEADLINE thread under `g-edf` without locks and, on request, under `p-edf`. It burns the execution times
//! that its body names, and acquires real locks under the chosen protocol. The result is an [`Outcome`]: response
//! times, deadline misses, lock waits, and a record of which task executed when.
//!
//! - [`observe`] derives blocking and time lines from such records, of a run or of a simulation.
//! - [`doctor`] reports what this machine lacks for real time, and how to fix it.
//!
//! The protocols are the state machines of `lockwright_protocol`. The locks are those of [`lockwright::tasks`], which
//! programs can use for their own threads.
//!
//! Real-time priorities require a permission. Without it, [`run`] returns
//! [`MachineError::NoPermission`](lockwright::tasks::MachineError::NoPermission), which names the permission to grant.
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

mod audit;
mod beside;
mod burn;
mod calibrate;
mod control;
mod cpusets;
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
mod rounds;
mod run;
mod steal;
mod switches;
mod team;
mod throttling;

pub use audit::{Audit, Departed, Departure};
pub use beside::run_beside;
pub use calibrate::Calibration;
pub use control::Control;
pub use cpusets::CpusetError;
pub use error::RunError;
pub use occupancy::{Occupancy, Taker};
pub use run::{Ended, Job, LOG_CAPACITY, Outcome, PriorityChange, RunConfig, TaskOutcome, run};
pub use throttling::{Limiter, Throttling};
