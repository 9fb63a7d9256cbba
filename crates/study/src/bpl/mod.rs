//! Three orders of a lock under bursts of requests: first come first served, by priority, and in batches of priority.
//!
//! A [`Model`] says what there is; [`Random`] traffic, one seed each, decides what happens; [`play`] simulates one [`Lock`];
//! and [`Statistics`] are what was seen; those of several runs, whose seeds [`run_seeds`] has, can be merged. Other locks under the same traffic meet the same bursts and the same critical
//! sections. Nothing here is a float but the rate that is given and the means that come out: one seed gives the same figures
//! on every platform.
//!
//! ```
//! use lockwright_study::bpl::{FreeLock, Lock, Model, Random, play};
//!
//! let model = Model::new(64, 8, 0.1, FreeLock::Random)?;
//! let seen = |lock| play(&model, lock, 10_000, Random::new(&model, 7), |_| true).expect("nobody stops it");
//! let (fifo, batched) = (seen(Lock::Fifo), seen(Lock::Batched));
//! assert!(batched.inversions < fifo.inversions);
//! assert_eq!(batched.mean_wait(), fifo.mean_wait());
//! # Ok::<(), lockwright_study::bpl::ModelError>(())
//! ```
//!
//! # Reference
//! Section 6.1 of "Bounded Priority-Aware Locking for Real-Time Kernels". Where it leaves something open, the item that
//! decides says so: who gets a free lock ([`FreeLock`]), which requests count ([`Statistics`]), when a run ends ([`play`]).

mod model;
mod order;
mod play;
mod random;
mod statistics;
mod traffic;

pub use model::{BURST_MAX, CORES_MAX, FreeLock, Model, ModelError, RATE_MAX, RATE_MIN};
pub use order::Lock;
pub use play::play;
pub use statistics::{Source, Statistics};
pub use traffic::{Random, TICKS_PER_SECTION, Traffic, run_seeds};
