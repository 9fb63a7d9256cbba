//! Utilizations with a given sum, each within limits of its own.

use super::Stream;
use super::impossible::Impossible;

/// Values with a given sum, each within limits of its own, uniform among all such vectors: the distribution of
/// ConvolutionalFixedSum.
///
/// Its authors compute this distribution by convolution, on a grid. Here the values are drawn exactly. All values but
/// one are drawn independently, each from an exponential density within its limits, with one rate for all. On vectors
/// with one sum, the product of such densities is constant, so every rate gives the same distribution; the rate that is
/// used gives the values the required mean. The last value follows from the sum, and the vector is drawn again
/// unless this value, too, obeys its density.
///
/// # Reference
/// Griffin and Davis, ConvolutionalFixedSum: Uniformly Generating Random Values with a Fixed Sum Subject to Arbitrary
/// Constraints, RTAS 2025. [`RandFixedSum`](super::RandFixedSum) is faster if all limits are 0 and 1.
///
/// # Examples
/// ```
/// use lockwright_study::generators::{ConvolutionalFixedSum, Philox};
///
/// let limits = [(0.0, 0.1), (0.2, 0.9), (0.0, 0.5)];
/// let drawn = ConvolutionalFixedSum::new(&limits, 1.0)?.draw(&mut Philox::new(42, 0).stream(0, 0));
/// assert!((drawn.iter().sum::<f64>() - 1.0).abs() < 1e-12);
/// assert!(drawn.iter().zip(limits).all(|(&u, (least, most))| least <= u && u <= most));
/// # Ok::<(), lockwright_study::generators::Impossible>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct ConvolutionalFixedSum {
    limits: Vec<(f64, f64)>,
    /// The sum of what the values have above their least ones.
    above: f64,
    /// The rate of the densities, which grow with the value if it is positive.
    rate: f64,
    /// The value with the widest limits. It follows from the others.
    last: usize,
}

impl ConvolutionalFixedSum {
    /// Prepares values within these limits, both ends included, with the sum `total`.
    ///
    /// # Errors
    /// Returns an error if there are no limits, if they are not finite or end before they begin, or if no such values
    /// have this sum.
    pub fn new(limits: &[(f64, f64)], total: f64) -> Result<Self, Impossible> {
        let (above, whole) = sums(limits, total)?;
        let widest = |one: &usize, other: &usize| width(limits[*one]).total_cmp(&width(limits[*other]));
        let last = (0..limits.len()).max_by(widest).unwrap_or(0);
        Ok(Self { limits: limits.to_vec(), above, rate: rate(limits, above, whole), last })
    }

    /// Draws one vector. Its values are in the order of their limits.
    #[must_use]
    pub fn draw(&self, random: &mut Stream) -> Vec<f64> {
        let whole: f64 = self.limits.iter().map(|limit| width(*limit)).sum();
        // At an end there is one vector, up to rounding.
        if self.above.min(whole - self.above) <= f64::EPSILON * whole {
            let share = if whole > 0.0 { self.above / whole } else { 0.0 };
            return self.limits.iter().map(|limit| limit.0 + share * width(*limit)).collect();
        }
        // BOUND: for n values, an attempt succeeds with a probability of at least 0.1 / sqrt(n): the densities are
        // log-concave, the sum is at its mean, and the last value has the flattest density.
        loop {
            if let Some(drawn) = self.attempt(random) {
                return drawn;
            }
        }
    }

    fn attempt(&self, random: &mut Stream) -> Option<Vec<f64>> {
        let mut left = self.above;
        let mut drawn = Vec::with_capacity(self.limits.len());
        for (index, &(least, most)) in self.limits.iter().enumerate() {
            let above = if index == self.last { 0.0 } else { tilted(random.unit(), most - least, self.rate) };
            left -= above;
            drawn.push((least + above).min(most));
        }
        let (least, most) = self.limits[self.last];
        let width = most - least;
        if !(0.0..=width).contains(&left) {
            return None;
        }
        // The density as a share of its greatest value, which is at one of the ends.
        let density = libm::exp(self.rate * if self.rate > 0.0 { left - width } else { left });
        drawn[self.last] = (least + left).min(most);
        (random.unit() < density).then_some(drawn)
    }
}

/// Returns what the values have above their least ones in all, and the most of it that the limits allow.
pub(crate) fn sums(limits: &[(f64, f64)], total: f64) -> Result<(f64, f64), Impossible> {
    let is_range = |&(least, most): &(f64, f64)| least.is_finite() && most.is_finite() && least <= most;
    let above = total - limits.iter().map(|(least, _)| least).sum::<f64>();
    let whole: f64 = limits.iter().map(|limit| width(*limit)).sum();
    // The sum of the limits is rounded.
    let rounding = f64::EPSILON * limits.len() as f64 * (1.0 + total.abs());
    let is_possible = total.is_finite() && above >= -rounding && above <= whole + rounding;
    if limits.is_empty() || !limits.iter().all(is_range) || !is_possible {
        return Err(Impossible::Limits { tasks: limits.len() });
    }
    Ok((above.clamp(0.0, whole), whole))
}

fn width((least, most): (f64, f64)) -> f64 {
    most - least
}

/// The value from 0 to `width` at the share `unit` of an exponential density with this rate.
fn tilted(unit: f64, width: f64, rate: f64) -> f64 {
    let decay = -(rate * width).abs();
    // The density is level.
    if decay > -1e-12 {
        return unit * width;
    }
    let from_peak = (width * (libm::log1p(unit * libm::expm1(decay)) / decay)).clamp(0.0, width);
    if rate > 0.0 { width - from_peak } else { from_peak }
}

/// The mean of an exponential density with this rate, from 0 to `width`.
fn mean(width: f64, rate: f64) -> f64 {
    let growth = rate * width;
    if growth.abs() < 1e-4 {
        return width * (0.5 + growth / 12.0);
    }
    width * (-1.0 / libm::expm1(-growth) - 1.0 / growth)
}

/// The rate with which the means have the sum `above`, of `whole` in all.
fn rate(limits: &[(f64, f64)], above: f64, whole: f64) -> f64 {
    let count = limits.len() as f64;
    if above.min(whole - above) <= f64::EPSILON * whole {
        return 0.0;
    }
    // With a rate of -r, each mean is at most 1 / r. So these rates are too low and too high.
    let (mut low, mut high) = (-count / above, count / (whole - above));
    // Every rate is right; a better one only saves attempts.
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        let sum: f64 = limits.iter().map(|limit| mean(width(*limit), middle)).sum();
        if sum < above { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generators::testing::{distance, limit};
    use crate::generators::{Philox, RandFixedSum};

    const SAMPLES: u64 = 20_000;

    /// The integral up to `sum` of the density of a sum of uniform numbers from 0 to each of `widths`, up to a factor.
    fn volume(widths: &[f64], sum: f64) -> f64 {
        let term = |subset: usize| {
            let chosen = widths.iter().enumerate().filter(|(index, _)| subset >> index & 1 == 1);
            let sign = if subset.count_ones().is_multiple_of(2) { 1.0 } else { -1.0 };
            sign * (sum - chosen.map(|(_, width)| width).sum::<f64>()).max(0.0).powi(widths.len() as i32)
        };
        (0..1 << widths.len()).map(term).sum()
    }

    /// The greatest distance of a coordinate from its distribution, as a share of the limit.
    fn worst(limits: &[(f64, f64)], total: f64, all: &[Vec<f64>]) -> f64 {
        let above = total - limits.iter().map(|(least, _)| least).sum::<f64>();
        let of = |index: usize| {
            let mut others: Vec<f64> = limits.iter().map(|limit| width(*limit)).collect();
            let own = others.remove(index);
            let below = |x: f64| volume(&others, above) - volume(&others, above - x);
            let values: Vec<f64> = all.iter().map(|drawn| drawn[index] - limits[index].0).collect();
            distance(&values, |x| below(x) / below(own)) / limit(values.len())
        };
        (0..limits.len()).map(of).fold(0.0, f64::max)
    }

    fn samples(draw: impl Fn(&mut Stream) -> Vec<f64>) -> Vec<Vec<f64>> {
        let philox = Philox::new(13, 0);
        (0..SAMPLES).map(|sample| draw(&mut philox.stream(sample, 0))).collect()
    }

    /// Limits and sums: equal and unequal limits, and sums near both ends.
    fn settings() -> Vec<(Vec<(f64, f64)>, f64)> {
        let mixed = vec![(0.0, 0.1), (0.2, 0.9), (0.0, 0.5), (0.1, 0.3), (0.0, 1.0)];
        vec![
            (vec![(0.0, 1.0), (0.0, 0.5), (0.0, 0.1)], 1.0),
            (vec![(0.0, 1.0); 4], 1.7),
            (mixed.clone(), 0.45),
            (mixed.clone(), 1.4),
            (mixed, 2.6),
        ]
    }

    #[test]
    fn sums_within_limits_are_uniform() {
        for (limits, total) in settings() {
            let prepared = ConvolutionalFixedSum::new(&limits, total).expect("the sum is possible");
            let all = samples(|random| prepared.draw(random));
            for drawn in &all {
                assert!((drawn.iter().sum::<f64>() - total).abs() < 1e-12, "{drawn:?}");
                let within = |(&u, &(least, most)): (&f64, &(f64, f64))| (least..=most).contains(&u);
                assert!(drawn.iter().zip(&limits).all(within), "{drawn:?}");
            }
            assert!(worst(&limits, total, &all) < 1.0, "{limits:?} {total}");
            // Another rate gives the same distribution.
            let other = ConvolutionalFixedSum { rate: prepared.rate + 1.0, ..prepared.clone() };
            assert!(worst(&limits, total, &samples(|random| other.draw(random))) < 1.0, "{limits:?} {total}");
        }
    }

    /// Negative control: without its density, the last value has a wrong distribution.
    #[test]
    fn a_last_value_without_density_is_noticed() {
        let caught = settings().into_iter().filter(|(limits, total)| {
            let prepared = ConvolutionalFixedSum::new(limits, *total).expect("the sum is possible");
            let mutant = |random: &mut Stream| loop {
                let one = |limit: &(f64, f64)| limit.0 + tilted(random.unit(), width(*limit), prepared.rate);
                let mut drawn: Vec<f64> = limits.iter().map(one).collect();
                let rest = drawn[prepared.last] + total - drawn.iter().sum::<f64>();
                let (least, most) = limits[prepared.last];
                if (least..=most).contains(&rest) {
                    drawn[prepared.last] = rest;
                    return drawn;
                }
            };
            worst(limits, *total, &samples(mutant)) > 1.0
        });
        assert!(caught.count() >= 3);
    }

    #[test]
    fn equal_limits_give_the_distribution_of_rand_fixed_sum() {
        let (count, total) = (40, 9.0);
        let tables = RandFixedSum::new(count, total).expect("the sum is possible");
        let prepared = ConvolutionalFixedSum::new(&vec![(0.0, 1.0); count], total).expect("the sum is possible");
        let one = samples(|random| tables.draw(random));
        let other = samples(|random| prepared.draw(random));
        let greatest = |all: &[Vec<f64>]| -> Vec<f64> {
            all.iter().map(|drawn| drawn.iter().copied().fold(0.0, f64::max)).collect()
        };
        let first = |all: &[Vec<f64>]| -> Vec<f64> { all.iter().map(|drawn| drawn[0]).collect() };
        let distance = crate::generators::testing::distance_of_two;
        assert!(distance(&first(&one), &first(&other)) < 1.0);
        assert!(distance(&greatest(&one), &greatest(&other)) < 1.0);
        assert!(distance(&first(&one), &greatest(&other)) > 1.0, "negative control");
    }

    #[test]
    fn many_values_near_an_end_are_drawn() {
        let limits: Vec<(f64, f64)> = (0..1_000).map(|index| (0.0, 0.001 + f64::from(index % 7) / 10.0)).collect();
        let most: f64 = limits.iter().map(|(_, most)| most).sum();
        for total in [1e-9, 0.5, most / 2.0, most - 0.5, most - 1e-9] {
            let prepared = ConvolutionalFixedSum::new(&limits, total).expect("the sum is possible");
            let drawn = prepared.draw(&mut Philox::new(1, 0).stream(0, 0));
            assert!((drawn.iter().sum::<f64>() - total).abs() < 1e-9, "{total}");
        }
    }

    #[test]
    fn ends_have_one_vector() {
        let mut random = Philox::new(1, 0).stream(0, 0);
        let mut draw = |limits: &[(f64, f64)], total: f64| {
            ConvolutionalFixedSum::new(limits, total).map(|prepared| prepared.draw(&mut random))
        };
        assert_eq!(draw(&[(0.25, 0.5), (0.0, 0.25)], 0.25), Ok(vec![0.25, 0.0]));
        assert_eq!(draw(&[(0.25, 0.5), (0.0, 0.25)], 0.75), Ok(vec![0.5, 0.25]));
        assert_eq!(draw(&[(0.25, 0.25)], 0.25), Ok(vec![0.25]));
        assert_eq!(draw(&[(0.0, 1.0)], 0.5), Ok(vec![0.5]));
        for (limits, total) in [
            (&[][..], 0.0),
            (&[(0.0, 0.5); 3], 1.6),
            (&[(0.5, 1.0); 3], 1.4),
            (&[(0.5, 0.4)], 0.45),
            (&[(0.0, f64::NAN)], 0.5),
            (&[(0.0, 1.0)], f64::INFINITY),
        ] {
            assert_eq!(draw(limits, total), Err(Impossible::Limits { tasks: limits.len() }));
        }
    }
}
