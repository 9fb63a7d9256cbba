//! The locks of a task set, for a program's own threads.
//!
//! Protocols such as `dpcp` or `mpcp` are no property of one mutex: what a lock does follows from who uses it, where, and how urgently. So the program says what tasks
//! and resources there are, in a task-set file or by a [`TaskSetBuilder`]; each of its threads joins as one task, begins and ends its jobs, and locks in them.
//! [`check`](https://docs.rs/lockwright-cli) bounds the same file.
//!
//! ```no_run
//! use lockwright::tasks::{Protocol, TaskSet};
//!
//! let mut builder = TaskSet::builder(Protocol::Dpcp);
//! let bus = builder.resource("bus");
//! let control = builder.task("control", 0, 20, &[bus]);
//! let logging = builder.task("logging", 1, 10, &[bus]);
//! let set = builder.build()?;
//!
//! std::thread::scope(|scope| {
//!     for task in [control, logging] {
//!         let set = &set;
//!         scope.spawn(move || {
//!             let me = set.join(task)?;
//!             for _ in 0..100 {
//!                 let job = me.begin()?;
//!                 {
//!                     let _bus = job.lock(bus)?;
//!                     // On the bus, executing on its home CPU.
//!                 }
//!             }
//!             Ok::<(), lockwright::tasks::TaskError>(())
//!         });
//!     }
//! });
//! # Ok::<(), lockwright::tasks::TaskError>(())
//! ```
//!
//! # What a program keeps to
//!
//! - One thread a task; it is under SCHED_FIFO, bound to its CPU, from joining to leaving. Nothing else changes its policy, priority or CPUs meanwhile.
//! - A task locks what it was said to use, and nothing else.
//! - It begins a job when it goes on after a sleep, and ends it before the next.
//! - Under protocols without nested requests it holds one resource at a time; a lock for several is one resource.

pub(crate) mod error;
pub(crate) mod executor;
pub(crate) mod lock;
pub(crate) mod priorities;
mod set;

pub use crate::levels::TASK_LEVELS_MAX;
pub use error::{MachineError, TaskError};
pub use lock::ResourceError;
pub use lockwright_model::{Invalid, Protocol, ResourceId, Scheduler, System, TaskId};
pub use lockwright_protocol::Refusal;
pub use set::{Job, Member, Section, TaskSet, TaskSetBuilder};
