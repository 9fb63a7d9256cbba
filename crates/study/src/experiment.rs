//! Experiments: samples of several cells, judged by several methods.
//!
//! A cell is a combination of parameters, and a method judges every sample of a cell. All results are sums of integers,
//! so they depend neither on the order in which samples are judged nor on the number of threads.
//!
//! # Examples
//! ```
//! use lockwright_study::experiment::Tally;
//! // Two samples with half a processor and a whole one. The second is not accepted.
//! let mut tally = Tally::default();
//! tally.add(500_000, Some(0));
//! tally.add(1_000_000, None);
//! assert_eq!((tally.share(), tally.weighted()), (Some(0.5), Some(1.0 / 3.0)));
//! ```

use crate::generators::Impossible;
use lockwright_model::System;

/// Judges the sample with this number by each method of the experiment, and adds the results to one tally per method.
pub type Judge<'a> = Box<dyn FnMut(u64, &mut [Tally]) -> Result<(), Impossible> + 'a>;

/// Samples of several cells, judged by several methods.
pub trait Experiment: Sync {
    /// Returns the number of cells.
    fn cells(&self) -> usize;

    /// Returns the number of methods.
    fn methods(&self) -> usize;

    /// Returns the number of samples of each cell.
    fn samples(&self) -> u64;

    /// Returns the judge of one cell. It contains tables and memory that its samples share.
    fn judge(&self, cell: usize) -> Judge<'_>;
}

/// The sums over the samples of one cell under one method.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub struct Tally {
    /// The number of samples.
    pub samples: u64,
    /// The number of accepted samples.
    pub accepted: u64,
    /// The utilization of all samples, in millionths of a processor.
    pub utilization: u64,
    /// The utilization of the accepted samples, in millionths of a processor.
    pub utilization_accepted: u64,
    /// The sum over the accepted samples of the quantity that the method bounds, such as the tardiness in nanoseconds.
    pub bound: u64,
}

impl Tally {
    /// Adds one sample with this utilization, in millionths of a processor. An accepted sample has a bound, which is 0
    /// if the method bounds nothing.
    pub fn add(&mut self, utilization: u64, accepted: Option<u64>) {
        self.samples += 1;
        self.utilization += utilization;
        if let Some(bound) = accepted {
            self.accepted += 1;
            self.utilization_accepted += utilization;
            self.bound = self.bound.saturating_add(bound);
        }
    }

    /// Adds the sums of other samples.
    pub fn merge(&mut self, other: &Self) {
        self.samples += other.samples;
        self.accepted += other.accepted;
        self.utilization += other.utilization;
        self.utilization_accepted += other.utilization_accepted;
        self.bound = self.bound.saturating_add(other.bound);
    }

    /// Returns the share of accepted samples, or `None` without samples.
    #[must_use]
    pub fn share(&self) -> Option<f64> {
        (self.samples > 0).then(|| self.accepted as f64 / self.samples as f64)
    }

    /// Returns the weighted schedulability: the share of the utilization that belongs to accepted samples.
    ///
    /// # Reference
    /// Bastoni, Brandenburg and Anderson, Cache-Related Preemption and Migration Delays: Empirical Approximation and
    /// Impact on Schedulability, OSPERT 2010.
    #[must_use]
    pub fn weighted(&self) -> Option<f64> {
        (self.utilization > 0).then(|| self.utilization_accepted as f64 / self.utilization as f64)
    }

    /// Returns the mean bound of the accepted samples, or `None` without any.
    #[must_use]
    pub fn mean_bound(&self) -> Option<f64> {
        (self.accepted > 0).then(|| self.bound as f64 / self.accepted as f64)
    }

    /// Returns the ends of the interval that contains the true share with a confidence of 95 %, by Wilson's score.
    ///
    /// # Reference
    /// Wilson, Probable Inference, the Law of Succession, and Statistical Inference, Journal of the American
    /// Statistical Association 22, 1927.
    #[must_use]
    pub fn interval(&self) -> Option<(f64, f64)> {
        self.interval_of_repeated(1)
    }

    /// As [`Tally::interval`], where each sample was counted `times` times: the interval of the distinct samples.
    #[must_use]
    pub fn interval_of_repeated(&self, times: u64) -> Option<(f64, f64)> {
        /// The quantile of the normal distribution for 97.5 %.
        const Z: f64 = 1.959_963_984_540_054;
        let (share, n) = (self.share()?, self.samples as f64 / times.max(1) as f64);
        let denominator = 1.0 + Z * Z / n;
        let middle = share + Z * Z / (2.0 * n);
        let half = Z * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
        Some((((middle - half) / denominator).max(0.0), ((middle + half) / denominator).min(1.0)))
    }
}

/// Returns the utilization of a system in millionths of a processor, each task rounded down.
#[must_use]
pub fn millionths(system: &System) -> u64 {
    let of = |cost: u64, period: u64| (u128::from(cost) * 1_000_000 / u128::from(period)) as u64;
    system.tasks().iter().map(|task| of(task.wcet.as_ns(), task.period.as_ns())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(accepted: u64, samples: u64) -> Tally {
        let mut all = Tally::default();
        (0..samples).for_each(|sample| all.add(1_000 + sample, (sample < accepted).then_some(7)));
        all
    }

    /// The values of the Wilson interval that R's `prop.test(k, n, correct = FALSE)` computes.
    #[test]
    fn intervals_are_those_of_wilson() {
        for (accepted, samples, expected) in [
            (0, 10, (0.0, 0.277_533)),
            (5, 10, (0.236_593, 0.763_407)),
            (10, 10, (0.722_467, 1.0)),
            (45, 50, (0.786_398, 0.956_525)),
        ] {
            let (low, high) = tally(accepted, samples).interval().expect("there are samples");
            assert!((low - expected.0).abs() < 1e-5 && (high - expected.1).abs() < 1e-5, "{accepted}: {low} {high}");
        }
        assert_eq!(Tally::default().interval(), None);
        // The same ten samples twice say no more about others.
        assert_eq!(tally(10, 20).interval_of_repeated(2), tally(5, 10).interval());
        assert_ne!(tally(10, 20).interval(), tally(5, 10).interval());
        // Negative control: the interval of Wald would have no width here.
        assert!(tally(10, 10).interval().is_some_and(|(low, _)| low < 1.0));
    }

    #[test]
    fn merged_tallies_are_those_of_all_samples() {
        let mut merged = tally(3, 5);
        merged.merge(&tally(1, 4));
        assert_eq!((merged.samples, merged.accepted, merged.bound), (9, 4, 28));
        assert_eq!(merged.utilization, 9_000 + 10 + 6);
        assert_eq!(merged.utilization_accepted, 3_003 + 1_000);
        assert_eq!(merged.mean_bound(), Some(7.0));
        assert!(merged.weighted().is_some_and(|weighted| (weighted - 4_003.0 / 9_016.0).abs() < 1e-12));
        assert_eq!((tally(0, 3).mean_bound(), Tally::default().weighted()), (None, None));
    }
}
