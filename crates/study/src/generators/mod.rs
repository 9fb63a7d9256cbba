//! Random task sets and their parts, as the studies of the field draw them. [`Systems`] puts the parts together.
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
mod impossible;
mod limited_sum;
mod periods;
mod philox;
mod sections;
mod systems;
#[cfg(test)]
mod testing;
mod utilization;

pub use fixed_sum::{RandFixedSum, uunifast, uunifast_discard};
pub use impossible::Impossible;
pub use limited_sum::ConvolutionalFixedSum;
pub(crate) use limited_sum::sums;
pub use periods::Periods;
pub use philox::{Philox, Stream};
pub use sections::{Access, DrawnSections, Lengths, Nesting, Sections, Sharing};
pub use systems::{Division, Groups, Systems, Utilizations};
pub use utilization::Utilization;
