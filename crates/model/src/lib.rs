//! The model of a real-time system: tasks, resources, critical sections, processors and time.
//!
//! A [`System`] is one platform with its resources and its tasks. It is validated when it is built, so every rule
//! listed at [`System::new`] holds for it. The analysis, the simulator and the runtime all start from the same
//! `System`, and read the same ceilings and the same sections from it.
//!
//! Time is integer nanoseconds. A greater [`Priority`] is more urgent.
#![cfg_attr(not(any(test, feature = "format")), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod ceiling;
#[cfg(feature = "format")]
pub mod format;
mod id;
mod overheads;
mod priority;
mod resource;
mod scheduler;
mod section;
mod system;
mod task;
mod time;
mod trace;
mod utilization;
mod validate;

pub use ceiling::{MpcpCeiling, NestedCeilings};
pub use id::{CpuId, ResourceId, TaskId};
pub use overheads::{Cost, Overhead, Overheads};
pub use priority::{Priority, assign_deadline_monotonic, assign_rate_monotonic};
pub use resource::{Protocol, Resource};
pub use scheduler::Scheduler;
pub use section::{Request, Section, place_requests, sections_of};
pub use system::{MAX_CPUS, MAX_EXECUTED_TASKS, MAX_RESOURCES, MAX_TASKS, System};
pub use task::{MAX_NESTING, MAX_STEPS, Step, Task};
pub use time::{DURATION_MAX, Duration, DurationError, Instant};
pub use trace::{Event, Observation, Record};
pub use validate::{Invalid, Subject};
