//! Three grant orders of a lock under bursts of requests: first come,
//! first served, by priority, and in batches ordered by priority.
//!
//! A [`Model`] has the parameters, and [`Random`] traffic with a seed decides the events. [`play`] simulates one
//! [`Lock`] and returns [`Statistics`]. The statistics of several runs can be merged; [`run_seeds`] has their seeds.
//! Different locks under the same traffic meet the same bursts and the same critical sections. The only floats are the
//! given rate and the resulting means, so one seed gives the same figures on every platform.
//!
//! ```
//! use lockwright_study::bpl::{FreeLock, Lock, Model, Random, play};
//!
//! let model = Model::new(64, 8, 0.1, FreeLock::Random)?;
//! let seen = |lock| play(&model, lock, 10_000, Random::new(&model, 7), |_| true).expect("the run is not stopped");
//! let (fifo, batched) = (seen(Lock::Fifo), seen(Lock::Batched));
//! assert!(batched.inversions < fifo.inversions);
//! assert_eq!(batched.mean_wait(), fifo.mean_wait());
//! # Ok::<(), lockwright_study::bpl::ModelError>(())
//! ```
//!
//! # Reference
//! Section 6.1 of "Bounded Priority-Aware Locking for Real-Time Kernels". The items here decide and document the
//! choices that it leaves open: the request that gets a free lock ([`FreeLock`]), the requests that count
//! ([`Statistics`]), and the end of a run ([`play`]).

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
