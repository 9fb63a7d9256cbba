//! Schedulability analysis of real-time task sets that share resources.
//!
//! [`analyse`] bounds the blocking and the response time of each task of a system under partitioned or clustered fixed
//! priorities, or returns the reason why a task has no bound. [`explain()`] splits a bound into its terms.
//! [`sensitivity()`] finds how far execution times can grow before a deadline is missed. [`scheduled()`] tests systems
//! under partitioned EDF and under global schedulers.
//!
//! All bounds are in integer nanoseconds. They hold for every offset, for sporadic arrivals, and for executions shorter
//! than the worst case. They include no overheads, that is, no context switches, lock operations or interrupts, unless
//! [`charge()`] has added these to the system.
//!
//! The documentation uses the symbols of `docs/notation.md`: C is the worst-case execution time of a task, T its
//! period, D its deadline, J its release jitter, and R its response time or a bound on it. N(i,q) is the number of
//! requests of one job of task i for resource q, and L(i,q) the length of its longest section on q. B is blocking by
//! sections on the processor of the job, S the time that its requests wait while it is suspended, and I the time that
//! they wait and that counts as execution.
//!
//! # Examples
//! ```
//! use lockwright_analysis::analyse;
//! use lockwright_model::{Duration, Protocol, TaskId, format::parse_system};
//!
//! let system = parse_system(
//!     r#"
//!     [platform]
//!     cpus = 1
//!     priorities = "explicit"
//!     [[resource]]
//!     name = "bus"
//!     [[task]]
//!     name = "control"
//!     priority = 2
//!     period = "20 ms"
//!     body = [{ lock = "bus" }, { run = "2 ms" }, { unlock = "bus" }]
//!     [[task]]
//!     name = "log"
//!     priority = 1
//!     period = "100 ms"
//!     body = [{ lock = "bus" }, { run = "3 ms" }, { unlock = "bus" }]
//!     "#,
//! )?;
//! let analysis = analyse(&system, Protocol::Pip);
//! // Its own 2 ms, and at most 3 ms for which `log` holds the bus.
//! assert_eq!(analysis.tasks[0].response, Some(Duration::from_ms(5)));
//! # Ok::<(), lockwright_model::format::Diagnostics>(())
//! ```
#![warn(missing_debug_implementations)]
#![forbid(unsafe_code)]

pub mod blocking;
pub mod global;
#[cfg(feature = "lp")]
pub mod linear;
pub mod nonblocking;
pub mod overheads;
mod rows;
mod system;
pub mod uniprocessor;

pub use overheads::charge::charge;
#[cfg(feature = "mutants")]
pub use overheads::charge::charge_mutant;
pub use overheads::edf::charge_by_deadline;
pub use rows::bound::{Analysis, Blocking, Proof, TaskBound, Unbounded};
pub use rows::failure::{Failure, Limit};
#[cfg(feature = "mutants")]
pub use rows::mutant::{ChargeMutant, Mutant};
pub use rows::sharing::{Demand, Sharer, Sharing};
pub use rows::sporadic::Sporadic;
pub use system::explain::{Cause, Term, explain};
pub use system::partition::{Fit, partition, together_first};
#[cfg(feature = "mutants")]
pub use system::response::analyse_mutant;
pub use system::response::{analyse, schedulable};
pub use system::scheduled::explained::{Demanded, explain_demand};
#[cfg(feature = "lp")]
pub use system::scheduled::program::best_scheduled;
#[cfg(all(feature = "lp", feature = "mutants"))]
pub use system::scheduled::program::best_scheduled_mutant;
pub use system::scheduled::{Blocker, Point, Scheduled, Test, Untested, partitioned, scheduled};
#[cfg(feature = "mutants")]
pub use system::scheduled::{scheduled_mutant, scheduled_without};
pub use system::sensitivity::{FACTOR_MAX, Growth, Sensitivity, sensitivity};
#[cfg(all(feature = "lp", feature = "mutants"))]
pub use system::tighten::tighten_mutant;
#[cfg(feature = "lp")]
pub use system::tighten::{PROGRAM_WORK_MAX, Uncovered, best, tighten};

/// Threads may share the results.
const _: () = {
    const fn shared<T: Send + Sync>() {}
    shared::<(Analysis, TaskBound, Unbounded, Failure)>();
    shared::<(Scheduled, Untested, Demanded, Term)>();
    shared::<(Sensitivity, Sharing, Sporadic)>();
    #[cfg(feature = "lp")]
    shared::<Uncovered>();
};

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
