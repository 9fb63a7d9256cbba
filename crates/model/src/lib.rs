//! The model of a real-time system: tasks, resources, critical sections, processors and time.
//!
//! A [`System`] is one platform with its resources and its tasks. It is validated when it is built, so every rule
//! listed at [`System::new`] holds for it. The analysis, the simulator and the runtime all start from the same
//! `System`, and read the same ceilings and the same sections from it.
//!
//! Time is integer nanoseconds. A greater [`Priority`] is more urgent.
//!
//! # Features
//!
//! - `alloc`: the types that own memory, such as [`System`] and [`Task`]. Without it, the crate contains only
//!   identifiers, priorities, times, records and limits, and needs no allocator.
//! - `format` (default): reading and writing task-set files. It implies `alloc` and needs the standard library.
//!
//! # Examples
//! ```
//! use lockwright_model::{CpuId, Duration, Priority, Resource, ResourceId, Step, System, Task};
//!
//! let ms = Duration::from_ms;
//! let bus = Resource::new("bus");
//! let task = |name: &str, priority, period| Task {
//!     name: name.into(),
//!     cpu: CpuId::new(0),
//!     priority: Priority::base(priority),
//!     period: ms(period),
//!     deadline: ms(period),
//!     jitter: Duration::ZERO,
//!     offset: Duration::ZERO,
//!     wcet: ms(3),
//!     body: vec![
//!         Step::Run(ms(1)),
//!         Step::Lock(ResourceId::new(0)),
//!         Step::Run(ms(2)),
//!         Step::Unlock(ResourceId::new(0)),
//!     ],
//! };
//! let tasks = vec![task("control", 2, 20), task("log", 1, 100)];
//! let system = System::new("example".into(), 1, None, vec![bus], tasks)?;
//! assert_eq!(system.users(ResourceId::new(0)).len(), 2);
//! # Ok::<(), lockwright_model::Invalid>(())
//! ```
#![warn(missing_debug_implementations)]
#![cfg_attr(not(any(test, feature = "format")), no_std)]
#![forbid(unsafe_code)]

#[cfg(feature = "alloc")]
extern crate alloc;

#[cfg(feature = "alloc")]
mod build;
#[cfg(feature = "alloc")]
mod ceiling;
#[cfg(feature = "format")]
pub mod format;
mod id;
mod limits;
mod mode;
mod mpcp_ceiling;
mod object;
#[cfg(feature = "alloc")]
mod overheads;
mod priority;
mod protocol;
#[cfg(feature = "alloc")]
mod resource;
mod scheduler;
#[cfg(feature = "alloc")]
mod section;
#[cfg(feature = "alloc")]
mod system;
#[cfg(feature = "alloc")]
mod task;
mod time;
mod trace;
#[cfg(feature = "alloc")]
mod utilization;
#[cfg(feature = "alloc")]
mod validate;

#[cfg(feature = "alloc")]
pub use ceiling::NestedCeilings;
pub use id::{CpuId, ResourceId, TaskId};
pub use limits::{CPUS_MAX, EXECUTED_TASKS_MAX, NESTING_MAX, RESOURCES_MAX, STEPS_MAX, TASKS_MAX};
pub use mode::Mode;
pub use mpcp_ceiling::MpcpCeiling;
pub use object::{ObjectKind, Progress};
#[cfg(feature = "alloc")]
pub use overheads::{Cost, Overhead, Overheads};
pub use priority::Priority;
pub use protocol::{Protocol, UnknownProtocol};
#[cfg(feature = "alloc")]
pub use resource::Resource;
pub use scheduler::Scheduler;
#[cfg(feature = "alloc")]
pub use section::{Request, Section, place_requests, sections_of};
#[cfg(feature = "alloc")]
pub use system::System;
#[cfg(feature = "alloc")]
pub use task::{Step, Task, assign_deadline_monotonic, assign_rate_monotonic};
pub use time::{DURATION_MAX, Duration, DurationError, Instant};
pub use trace::{Event, Observation, Record};
#[cfg(feature = "alloc")]
pub use validate::{Invalid, Subject};

/// Threads may share all values.
const _: () = {
    const fn shared<T: Send + Sync>() {}
    shared::<(Duration, Instant, Priority, Protocol, Record, Observation)>();
    #[cfg(feature = "alloc")]
    shared::<(System, Overheads, NestedCeilings, Invalid)>();
    #[cfg(feature = "format")]
    shared::<(format::Diagnostics, format::Imported, format::Placed)>();
};

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
