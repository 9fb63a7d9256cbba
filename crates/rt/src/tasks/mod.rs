//! The locks of a task set, for a program's own threads.
//!
//! Protocols such as `dpcp` or `mpcp` are not a property of one mutex: the effect of a lock depends on which tasks use
//! it, on which CPUs, and at which priorities. So the program declares its tasks and resources, in a task-set file or
//! with a [`TaskSetBuilder`]. Each of its threads joins as one task, begins and ends its jobs, and locks in them.
//! The command `lockwright check` computes bounds for the same file. [`model`](crate::model) has all types of a
//! [`System`].
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
//! [`TaskSet::measure`] begins to count what the jobs do, and [`TaskSet::statistics`] reports it. `lockwright watch`
//! shows it while the program runs. [`TaskSet::trace`] keeps each event with its time, and [`TaskSet::traced`] returns
//! them as the records of a simulation or a run.
//!
//! # Rules for a program
//!
//! - Each task has one thread. The thread is under SCHED_FIFO and bound to its CPU from joining to leaving. Nothing
//!   else changes its policy, priority or CPUs meanwhile.
//! - A task locks only the resources that it declared.
//! - It begins a job when it continues after a sleep, and ends it before the next sleep.
//! - Under protocols without nested requests it holds one resource at a time. A lock for several resources is declared
//!   as one resource.

mod builder;
mod counters;
pub(crate) mod error;
pub(crate) mod executor;
mod job;
pub(crate) mod journal;
pub(crate) mod lock;
mod log;
pub(crate) mod priorities;
mod set;
mod statistics;
mod trace;

pub use crate::levels::TASK_LEVELS_MAX;
pub use builder::TaskSetBuilder;
pub use error::{MachineError, TaskError};
pub use job::{Job, Section};
pub use lock::ResourceError;
pub use lockwright_model::{Invalid, Protocol, ResourceId, Scheduler, System, TaskId};
pub use lockwright_protocol::Refusal;
pub use lockwright_sys::futex::Deadline;
pub use set::{Member, TaskSet};
pub use statistics::{Request, ResourceStatistics, Statistics, TaskStatistics};
pub use trace::{TRACE_EVENTS_MAX, Trace};
