//! A simulator of multiprocessors: executes a task set under its locking protocols in virtual time.
//!
//! Processors are identical, and partitioned or in clusters. Scheduling is preemptive with fixed priorities, as under
//! SCHED_FIFO of Linux:
//!
//! - Tasks of one priority are served first come, first served.
//! - A preempted task stays at the head of its priority.
//! - A task whose priority falls goes to the head of the lower priority.
//! - A task whose priority rises goes to the tail of the higher priority.
//!
//! Locking, unlocking and switching take no time. The decisions are made by `lockwright-protocol`, as in the runtime.
//!
//! At one instant, executions end before jobs arrive. If a processor takes several steps at one instant, it takes them
//! one by one, and a more urgent task preempts it in between.
//!
//! # Examples
//! ```
//! use lockwright_model::{CpuId, Duration, Instant, Priority, Step, System, Task};
//! use lockwright_sim::{Config, Simulation};
//! let ms = Duration::from_ms;
//! let task = Task {
//!     name: "control".into(),
//!     cpu: CpuId(0),
//!     priority: Priority::base(1),
//!     period: ms(10),
//!     deadline: ms(10),
//!     jitter: Duration::ZERO,
//!     offset: Duration::ZERO,
//!     wcet: ms(3),
//!     body: vec![Step::Run(ms(3))],
//! };
//! let system = System::new("one".into(), 1, None, vec![], vec![task])?;
//! let mut simulation = Simulation::new(&system, &Config::default(), ());
//! simulation.run_until(Instant::from_ns(25_000_000));
//! let seen = simulation.observations()[0];
//! assert_eq!((seen.jobs, seen.response), (3, Some(ms(3))));
//! # Ok::<(), lockwright_model::Invalid>(())
//! ```
#![warn(missing_debug_implementations)]
#![forbid(unsafe_code)]

mod config;
mod cpu;
mod earliest;
mod horizon;
mod machines;
pub mod plain;
mod run_ends;
mod simulation;
mod task;
mod tracer;

pub use config::{Arrivals, Change, Config, Execution, Offsets, Stall, Taken};
pub use horizon::{Horizon, HorizonReason, JOBS_DEFAULT, default_horizon};
pub use lockwright_protocol::fulock::Unlock;
pub use simulation::Simulation;
pub use tracer::Tracer;

/// A thread may hand a simulation to another thread.
const _: () = {
    const fn handed<T: Send>() {}
    handed::<(Simulation<'static>, Config, Horizon)>();
};

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
