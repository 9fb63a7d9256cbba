//! Blocking bounds and response times under partitioned and clustered fixed-priority scheduling.
//!
//! [`analyse`] gives every task of a system a bound on its blocking and on its response time, or says
//! why it has none. [`explain`] takes one bound apart, term by term; [`sensitivity`] says how far
//! execution times can grow before a deadline breaks.
//!
//! All bounds are in integer nanoseconds, hold for every offset and for sporadic arrivals, and for executions shorter than
//! the worst case. They charge no overhead: no context switch, no lock operation, no interrupt.
//!
//! Letters, as the literature has them: C worst-case execution time, T period, D deadline, J release jitter,
//! R response-time bound, N requests of one job for one resource, L its longest section, B blocking, S time
//! suspended.
#![forbid(unsafe_code)]

mod across;
mod blocking;
mod bound;
mod charge;
mod clustered;
mod divisor;
mod exact;
mod explain;
mod failure;
mod fixed_point;
pub mod global;
mod hazard;
pub mod ics;
#[cfg(feature = "lp")]
pub mod linear;
pub mod multiprocessor;
pub mod nonblocking;
mod omit;
pub mod overheads;
mod partition;
mod response;
mod scheduled;
mod sensitivity;
mod sharing;
mod sporadic;
mod tables;
#[cfg(feature = "lp")]
mod tighten;
pub mod uniprocessor;

pub use bound::{Analysis, Blocking, Proof, TaskBound, Unbounded};
pub use charge::charge;
#[cfg(feature = "twins")]
pub use charge::{Uncharged, charge_omitting};
pub use explain::{Cause, Term, explain};
pub use failure::{Failure, Limit};
#[cfg(feature = "twins")]
pub use omit::Omit;
pub use partition::{Fit, partition, together_first};
pub use response::analyse;
#[cfg(feature = "twins")]
pub use response::analyse_omitting;
pub use scheduled::{Blocker, Demanded, Point, Scheduled, Test, Untested, explain_demand, partitioned, scheduled};
pub use sensitivity::{FACTOR_MAX, Growth, Sensitivity, sensitivity};
pub use sharing::{Demand, Sharer, Sharing};
pub use sporadic::Sporadic;
#[cfg(all(feature = "lp", feature = "twins"))]
pub use tighten::tighten_omitting;
#[cfg(feature = "lp")]
pub use tighten::{PROGRAM_WORK_MAX, Uncovered, best, tighten};
