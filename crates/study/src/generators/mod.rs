//! Random parts of task sets, as the studies of the field draw them.
//!
//! Utilizations are shares of one processor, so 1 is a whole one. Periods are [`Duration`](lockwright_model::Duration)s
//! of whole nanoseconds. All random numbers come from a [`Stream`], which is computed from the seed of a study, the
//! number of a cell, the number of a sample and the number of a part. So each part of each sample can be drawn alone,
//! in any order and on any thread. Logarithms and powers are computed by the crate `libm`, so that the results have the
//! same bits on every platform.
//!
//! # Examples
//! ```
//! use lockwright_study::generators::{Periods, Philox, RandFixedSum};
//!
//! let (sample, utilizations, periods) = (0, 0, 1);
//! let study = Philox::new(42, 0);
//! let tables = RandFixedSum::new(10, 2.5)?;
//! let drawn = tables.draw(&mut study.stream(sample, utilizations));
//! assert!((drawn.iter().sum::<f64>() - 2.5).abs() < 1e-9);
//!
//! let period = Periods::Automotive.draw(&mut study.stream(sample, periods));
//! assert!(period.as_ns() >= 1_000_000);
//! # Ok::<(), lockwright_study::generators::Impossible>(())
//! ```

mod fixed_sum;
mod periods;
mod philox;
#[cfg(test)]
mod testing;
mod utilization;

pub use fixed_sum::{RandFixedSum, uunifast, uunifast_discard};
pub use periods::Periods;
pub use philox::{Philox, Stream};
pub use utilization::Utilization;

/// The reason why a generator cannot draw what was asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Impossible {
    /// No vector of utilizations within the limits has the given sum.
    Sum {
        /// The number of tasks.
        tasks: usize,
    },
    /// Every one of 1,000 vectors had a utilization above the limit.
    Discarded,
}

impl std::fmt::Display for Impossible {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Sum { tasks } => write!(f, "the utilizations of {tasks} tasks cannot have this sum"),
            Self::Discarded => write!(f, "each of {} draws had too high a utilization", fixed_sum::DRAWS),
        }
    }
}

impl std::error::Error for Impossible {}
