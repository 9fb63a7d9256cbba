//! Executes task sets on Linux: real-time threads, real locks, what was seen held against what was promised.
//!
//! [`run`] takes a [`System`](lockwright_model::System) and executes it: one SCHED_FIFO thread a task, bound to its CPU, burning the
//! execution times its body names, taking real locks under the protocol asked for. What was seen comes
//! back as an [`Outcome`]: response times, misses, lock waits, and a record of who executed when.
//!
//! - [`observe`] reads blocking and time lines off such records, of a run or of a simulation.
//! - [`ics`] shares data without waiting: urgent threads interrupt others, which begin again.
//! - [`section`] keeps other threads of a processor from preempting a user of spinlocks.
//! - [`doctor`] says what this machine lacks for real time, and how to mend it.
//!
//! The protocols are the state machines of `lockwright_protocol`; `icpp` and `mpcp` execute them
//! unchanged, under a guard that no thread spins on in user space. `pip` is the kernel's priority inheritance, `none` a plain mutex.
//!
//! Real-time priorities need a permission; without it [`run`] returns [`RunError::NoPermission`], which says what to grant.

#![deny(unsafe_code)]

#[cfg(not(target_os = "linux"))]
compile_error!("lockwright runs on Linux: it needs SCHED_FIFO and futexes with priority inheritance");

#[cfg(test)]
extern crate self as lockwright;

mod burn;
mod calibrate;
pub mod doctor;
mod executor;
#[allow(unsafe_code)] // The value behind the guard's word.
mod guard;
pub mod ics;
mod lock;
mod log;
#[cfg(test)]
#[path = "../tests/realtime/machine.rs"]
mod machine;
pub mod measure;
#[allow(unsafe_code)] // The value behind the word, and memory that processes share.
pub mod mutex;
pub mod observe;
mod occupancy;
mod pi_word;
mod priorities;
mod run;
pub mod section;
#[allow(unsafe_code)] // System calls.
mod sys;
pub mod tasks;
mod team;

pub use calibrate::Calibration;
pub use lock::LockError;
pub use lockwright_locks as locks;
pub use occupancy::{Occupancy, Taker};
pub use priorities::TASK_LEVELS_MAX;
pub use run::{
    Control, Ended, Job, LOG_CAPACITY, Outcome, PriorityChange, RunConfig, RunError, TaskOutcome, Throttling, run,
};
pub use sys::SysError;
