//! The engine: a [`System`](lockwright_model::System) as real SCHED_FIFO threads with real locks, for a while.
//!
//! | file | thread | level |
//! |---|---|---|
//! | `watchdog` | ends the run in bounded time | 99 |
//! | `script` | changes base priorities on time | 98 |
//! | `job` | one a task, bound to its CPU | 1..=97, see `priorities` |
//! | `set_up` | the caller, under its own policy: prepares, then waits for the watchdog | - |
//!
//! All threads are ready, their memory touched, before the common start is named; job k of a task arrives at
//! start + offset + k * period. Nothing on the way of a job allocates.

mod config;
mod failure;
#[cfg(test)]
mod fault;
mod job;
mod outcome;
mod report;
mod script;
mod set_up;
mod shared;
mod watchdog;

pub use config::{LOG_CAPACITY, PriorityChange, RunConfig};
pub use outcome::{Ended, Job, Outcome, TaskOutcome};
pub use set_up::run;
