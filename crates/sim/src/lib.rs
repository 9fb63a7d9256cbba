//! A virtual multiprocessor: executes a task set under its locking protocols in virtual time.
//!
//! Processors are identical, partitioned or in clusters, schedulers preemptive with fixed priorities, as Linux' SCHED_FIFO:
//! first come, first served inside a priority; a preempted task stays at the head of its priority; a task
//! whose priority falls goes to the head of the lower one, one whose priority rises to the tail of the higher. Locking, unlocking
//! and switching take no time. The decisions are those of `lockwright-protocol`, the same that the runtime executes.
//!
//! At one instant, executions that end come before jobs that arrive; a processor that has several things to do
//! at one instant does them one by one, and gives way to a more urgent task in between.
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
#![forbid(unsafe_code)]

mod config;
mod cpu;
mod earliest;
mod horizon;
mod machines;
pub mod plain;
mod simulation;
mod task;
mod tracer;

pub use config::{Arrivals, Change, Config, Execution, Offsets, Taken};
pub use horizon::{Horizon, HorizonReason, JOBS_DEFAULT, default_horizon};
pub use lockwright_protocol::fulock::Unlock;
pub use simulation::Simulation;
pub use tracer::Tracer;

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
