//! Blocking under multiprocessor locking protocols, and response times with it.
//!
//! Each bound is for a set of sporadic tasks, [`Sharing`](crate::Sharing), whose sections are not nested. The file of
//! each protocol names its source and its formula. All bounds count the requests that others can issue while a job is
//! pending: in an interval of length t, task k has at most `ceil((t + R_k) / T_k)` jobs, including those pending at its
//! start (Yang, Chen, Huang, Real-Time Systems 53(2), 2017). Each of its `N(k,q)` requests for a resource takes at most
//! `L(k,q)`. The bound is the sum of the longest requests that the protocol allows to come first. It therefore depends
//! on response times and grows with them: [`joint`] finds both together.
//!
//! | file | protocol | waiting | charged to |
//! |---|---|---|---|
//! | [`mpcp`] | MPCP, also with virtual spinning | suspends | response |
//! | [`dpcp`] | DPCP | suspends | response |
//! | [`dflp`] | DFLP | suspends | response |
//! | [`fmlp`] | FMLP long (global), FMLP+ (partitioned) | suspends | execution; response |
//! | [`omlp`] | OMLP: global, partitioned, clustered, readers and writers, several units | suspends | execution |
//! | [`spin`] | FIFO spinlocks, non-preemptive; task-fair and phase-fair readers and writers | spins | execution |
//! | [`msrp`] | MSRP | spins | execution |
//! | [`mrsp`] | MrsP; spinlocks without inflated execution times | spins | response |
//!
//! Other files contain bounds for whole systems only. `pip.rs`, `icpp.rs`, `ics.rs`,
//! `lock_free.rs`, `readers_writers.rs`, `mpcp/system.rs` and
//! `fmlp_long.rs` need priorities, ceilings or nesting that rows do not have. `bounds.rs` chooses the bounds of a
//! protocol for a system, and `accounting.rs` how they are charged. `pcp` and `srp` have no bounds of their own, as
//! they delay jobs as `icpp` does.
//!
//! All times are integers in the unit of the input. Overheads are not included.
//!
//! # Examples
//! The bounds of one protocol for given response times, and response times with them:
//! ```
//! use lockwright_analysis::blocking::dpcp::{Dpcp, dpcp};
//! use lockwright_analysis::blocking::joint;
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
//! // The resource is at home on processor 1.
//! let delays = dpcp(&sharing, &[1])?;
//! assert_eq!(delays[0].remote, Some(5));
//! let found = joint(&sharing, &mut Dpcp::new(&sharing, &[1])?)?;
//! assert_eq!(found.responses, [15, 13]);
//! # Ok::<(), lockwright_analysis::Failure>(())
//! ```

pub(crate) mod accounting;
pub(crate) mod bounds;
pub(crate) mod delay;
pub mod dflp;
pub mod dpcp;
pub mod fmlp;
pub(crate) mod fmlp_long;
pub(crate) mod icpp;
pub(crate) mod ics;
mod joint;
pub(crate) mod lock_free;
pub mod mpcp;
pub mod mrsp;
pub mod msrp;
pub mod omlp;
pub(crate) mod pip;
pub(crate) mod readers_writers;
pub mod spin;
#[cfg(test)]
mod tests;

pub use delay::{Charge, Delay, DelayBounds, Platform};
pub use joint::{ROUNDS_MAX, Responses, STEPS_MAX, joint};
