//! Runs a [`System`](lockwright_model::System) as real SCHED_FIFO threads with real locks for a limited time.
//!
//! | file | thread | level |
//! |---|---|---|
//! | `watchdog` | ends the run in bounded time | 99 |
//! | `script` | changes base priorities on time | 98 |
//! | `job` | one per task, on the CPUs that its scheduler gives it | 1..=97, see `priorities` |
//! | `reservation` | the parameters of the tasks under SCHED_DEADLINE, which have no levels | - |
//! | `set_up` | the caller, under its own policy: prepares, then waits for the watchdog | - |
//!
//! All threads are ready, and their memory is touched, before the common start is chosen. Job k of a task arrives at
//! start + offset + k * period. No job allocates memory.

mod config;
mod failure;
#[cfg(test)]
mod fault;
mod job;
mod outcome;
mod report;
mod reservation;
mod script;
mod set_up;
mod shared;
mod taken;
mod watchdog;

pub use config::{LOG_CAPACITY, PriorityChange, RunConfig};
pub use outcome::{Ended, Job, Outcome, TaskOutcome};
pub use set_up::run;
