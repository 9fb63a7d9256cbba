//! Blocking bounds as strong as those of linear programs.
//!
//! The variables of a program count how often a request of another task delays one job of the task under analysis, and
//! in which way. Its constraints express what the protocol excludes, and its optimum is a bound. Requests of one task
//! for one resource are alike, so one variable stands for all of them.
//!
//! The programs of the partitioned protocols are packings: their constraints are nested, or form a network of two
//! layers. For these, taking the longest requests first yields the optimum in integers, without a solver or
//! floating-point numbers. The programs of global scheduling and of nested sections are not of that kind. For them, a
//! solver proposes the values of the dual program, and integer arithmetic derives a bound from these values that holds
//! whatever they are.
//!
//! The bounds of MPCP, DPCP, DFLP and FMLP+ never exceed the classic ones of the same protocol. Bounds on spinning
//! include all spinning within the response time of a job, so they can be compared with classic bounds only as response
//! times, and neither is always less. The program counts each remote request once, however many local jobs wait for it,
//! but counts all requests that fall into the response time of the task. The classic bound uses the fact that one local
//! job spins only for the requests within its own, shorter response time. Both bound the same schedules, so
//! [`responses`] returns the lesser for each task.
//!
//! All times are integers in the unit of the input. Overheads are not included.
//!
//! # Examples
//! ```
//! use lockwright_analysis::linear::{Locking, mpcp, responses};
//! # use lockwright_analysis::{Demand, Sharer, Sharing};
//! let task = |cluster, priority, length| Sharer {
//!     cost: 10,
//!     period: 100,
//!     deadline: 100,
//!     response: 20,
//!     priority,
//!     cluster,
//!     requests: vec![Demand { resource: 0, count: 1, length }],
//! };
//! let sharing = Sharing { tasks: vec![task(0, 2, 3), task(1, 1, 5)] };
//! assert_eq!(mpcp(&sharing)?[0].remote, 5);
//! assert_eq!(responses(&sharing, Locking::Mpcp)?.responses, [15, 13]);
//! # Ok::<(), lockwright_analysis::Failure>(())
//! ```

mod dflp;
mod dpcp;
mod fmlp_plus;
mod generalized_fmlp_plus;
mod global;
mod mpcp;
mod network;
mod omip;
mod p_edf;
mod program;
mod protocol;
mod response;
mod spin;
mod spin_nested;
#[cfg(test)]
mod tests;
mod view;
mod work;

pub use dflp::dflp;
pub use dpcp::dpcp;
pub use fmlp_plus::fmlp_plus;
pub use generalized_fmlp_plus::{Policy, generalized_fmlp_plus};
pub use global::{Global, global};
pub use mpcp::mpcp;
pub use omip::omip;
#[cfg(feature = "mutants")]
pub use p_edf::p_edf_mutant;
pub(crate) use p_edf::{Delayed, MsrpDemand};
pub use p_edf::{Edf, POINTS_MAX, p_edf};
pub(crate) use protocol::Program;
pub use response::{Locking, RESPONSE_STEPS_MAX, ROUNDS_MAX, Responses, responses, responses_of_program};
pub use spin::{spin_fifo, spin_fifo_preemptable, spin_unordered, spin_unordered_preemptable};
pub use spin_nested::{NESTED_RESOURCES_MAX, Section, spin_fifo_nested};
pub(crate) use work::Counted;
pub use work::{Blocked, WAIT_STEPS_MAX};
use work::{Work, sum, wait};
