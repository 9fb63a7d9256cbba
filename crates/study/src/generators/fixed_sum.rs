//! Utilizations with a given sum.

use super::Stream;
use super::impossible::{DRAWS, Impossible};

/// Draws `count` utilizations that sum to `total`, uniformly among all such vectors: UUniFast. A utilization may exceed
/// 1 if `total` does.
///
/// # Reference
/// Bini and Buttazzo, Measuring the Performance of Schedulability Tests, Real-Time Systems 30, 2005.
#[must_use]
pub fn uunifast(random: &mut Stream, count: usize, total: f64) -> Vec<f64> {
    let mut left = total;
    let mut drawn = Vec::with_capacity(count);
    for others in (1..count).rev() {
        let next = left * libm::pow(random.unit(), 1.0 / others as f64);
        drawn.push(left - next);
        left = next;
    }
    if count > 0 {
        drawn.push(left);
    }
    drawn
}

/// Draws utilizations by [`uunifast`] until none exceeds `most`: UUniFast-discard. The result is uniform among all
/// vectors with this sum and this limit.
///
/// # Errors
/// Returns an error if 1,000 draws had a utilization above `most`. [`RandFixedSum`] discards nothing.
///
/// # Reference
/// Davis and Burns, Priority Assignment for Global Fixed Priority Pre-emptive Scheduling in Multiprocessor Real-Time
/// Systems, RTSS 2009.
pub fn uunifast_discard(random: &mut Stream, count: usize, total: f64, most: f64) -> Result<Vec<f64>, Impossible> {
    check(count, total, most)?;
    (0..DRAWS)
        .map(|_| uunifast(random, count, total))
        .find(|drawn| drawn.iter().all(|&u| u <= most))
        .ok_or(Impossible::Discarded)
}

/// Refuses a sum that no vector of `count` numbers from 0 to `most` has.
fn check(count: usize, total: f64, most: f64) -> Result<(), Impossible> {
    let fits = total >= 0.0 && most.is_finite() && total <= count as f64 * most;
    if count > 0 && fits { Ok(()) } else { Err(Impossible::Sum { tasks: count }) }
}

/// Utilizations from 0 to 1 with a given sum, uniform among all such vectors: RandFixedSum.
///
/// The value contains the tables for one number of tasks and one sum. They take time and memory of the order of the
/// square of the number of tasks.
///
/// # Reference
/// Stafford, Random Vectors with Fixed Sum, 2006; brought to task sets by Emberson, Stafford and Davis, Techniques For
/// The Synthesis Of Multiprocessor Tasksets, WATERS 2010.
#[derive(Clone, PartialEq, Debug)]
pub struct RandFixedSum {
    count: usize,
    total: f64,
    /// The whole part of the sum, which selects the first simplices.
    whole: usize,
    /// By dimension less 2 and by column: the probability to step to the simplex of the next smaller whole part.
    steps: Vec<Vec<f64>>,
}

impl RandFixedSum {
    /// Prepares the tables.
    ///
    /// # Errors
    /// Returns an error if no vector of `count` numbers from 0 to 1 has this sum.
    pub fn new(count: usize, total: f64) -> Result<Self, Impossible> {
        check(count, total, 1.0)?;
        let whole = (total as usize).min(count - 1);
        // By column j: total - (whole - j) and (whole + count - j) - total, which are the distances to the corners.
        let below = |column: usize| total - whole as f64 + column as f64;
        let above = |column: usize| (whole + count - column) as f64 - total;
        let mut volumes = vec![0.0; count + 1];
        volumes[1] = f64::MAX;
        let mut steps = Vec::with_capacity(count - 1);
        for dimension in 2..=count {
            let mut next = vec![0.0; count + 1];
            let mut row = vec![0.0; dimension];
            for column in 0..dimension {
                let (down, up) = (below(column), above(count - dimension + column));
                let one = volumes[column + 1] * down / dimension as f64;
                let other = volumes[column] * up / dimension as f64;
                let sum = one + other + f64::MIN_POSITIVE;
                next[column + 1] = one + other;
                row[column] = if up > down { other / sum } else { 1.0 - one / sum };
            }
            volumes = next;
            steps.push(row);
        }
        Ok(Self { count, total, whole, steps })
    }

    /// Draws the utilizations of one task set.
    #[must_use]
    pub fn draw(&self, random: &mut Stream) -> Vec<f64> {
        let mut drawn = Vec::with_capacity(self.count);
        let (mut left, mut column) = (self.total, self.whole);
        let (mut sum, mut product) = (0.0, 1.0);
        for others in (1..self.count).rev() {
            let step = random.unit() <= self.steps[others - 1][column];
            let coordinate = libm::pow(random.unit(), 1.0 / others as f64);
            sum += (1.0 - coordinate) * product * left / (others + 1) as f64;
            product *= coordinate;
            drawn.push(sum + product * f64::from(u8::from(step)));
            if step {
                left -= 1.0;
                // A probability of 0 is never met by rounding here, as `unit` may return 0.
                column = column.saturating_sub(1);
            }
        }
        drawn.push(sum + product * left);
        random.shuffle(&mut drawn);
        drawn
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generators::Philox;
    use crate::generators::testing::{distance, distance_of_two, limit};

    const SAMPLES: u64 = 20_000;

    /// The integral up to `sum` of the density of a sum of `count` uniform numbers from 0 to 1, up to a factor: the
    /// inclusion-exclusion formula of Irwin and Hall.
    fn irwin_hall(count: usize, sum: f64) -> f64 {
        let mut choose = 1.0;
        (0..=count)
            .map(|ones| {
                if ones > 0 {
                    choose *= -((count + 1 - ones) as f64) / ones as f64;
                }
                choose * (sum - ones as f64).max(0.0).powi(count as i32)
            })
            .sum()
    }

    /// The distribution of one of `count` numbers from 0 to 1 with the sum `total`.
    fn bounded(count: usize, total: f64) -> impl Fn(f64) -> f64 {
        let others = move |sum: f64| irwin_hall(count - 1, sum);
        move |x| (others(total) - others(total - x)) / (others(total) - others(total - 1.0))
    }

    fn samples(count: usize, total: f64, draw: impl Fn(&mut Stream) -> Vec<f64>) -> Vec<Vec<f64>> {
        let philox = Philox::new(11, count as u64);
        let all: Vec<Vec<f64>> = (0..SAMPLES).map(|sample| draw(&mut philox.stream(sample, 0))).collect();
        for drawn in &all {
            assert_eq!(drawn.len(), count);
            assert!((drawn.iter().sum::<f64>() - total).abs() < 1e-12 * count as f64, "{drawn:?}");
        }
        all
    }

    fn coordinate(all: &[Vec<f64>], index: usize) -> Vec<f64> {
        all.iter().map(|drawn| drawn[index]).collect()
    }

    /// The greatest distance of a coordinate from `distribution`, as a share of the limit.
    fn worst(all: &[Vec<f64>], distribution: impl Fn(f64) -> f64) -> f64 {
        let of = |index| distance(&coordinate(all, index), &distribution) / limit(all.len());
        (0..all[0].len()).map(of).fold(0.0, f64::max)
    }

    fn greatest(all: &[Vec<f64>]) -> Vec<f64> {
        all.iter().map(|drawn| drawn.iter().copied().fold(0.0, f64::max)).collect()
    }

    #[test]
    fn uunifast_is_uniform() {
        for (count, total) in [(2, 0.5), (5, 0.9), (20, 3.0)] {
            // On a simplex each coordinate has a beta distribution.
            let simplex = |x: f64| 1.0 - (1.0 - x / total).powi(count as i32 - 1);
            let all = samples(count, total, |random| uunifast(random, count, total));
            assert!(worst(&all, simplex) < 1.0, "{count}");
            // Negative control: uniform numbers that are scaled to the sum.
            let scaled = |random: &mut Stream| {
                let drawn: Vec<f64> = (0..count).map(|_| random.unit()).collect();
                let sum: f64 = drawn.iter().sum();
                drawn.iter().map(|u| u * total / sum).collect()
            };
            assert!(worst(&samples(count, total, scaled), simplex) > 1.0, "{count}");
        }
    }

    #[test]
    fn fixed_sums_within_limits_are_uniform() {
        for (count, total) in [(2, 1.2), (3, 1.5), (5, 2.0), (6, 2.4)] {
            let distribution = bounded(count, total);
            let tables = RandFixedSum::new(count, total).expect("the sum is possible");
            let all = samples(count, total, |random| tables.draw(random));
            assert!(all.iter().flatten().all(|u| (-1e-12..=1.0 + 1e-12).contains(u)));
            assert!(worst(&all, &distribution) < 1.0, "{count}");
            let discard =
                |random: &mut Stream| uunifast_discard(random, count, total, 1.0).expect("enough vectors fit");
            let discarded = samples(count, total, discard);
            assert!(worst(&discarded, &distribution) < 1.0, "{count}");
            // Not only single coordinates, but also the greatest one.
            assert!(distance_of_two(&greatest(&all), &greatest(&discarded)) < 1.0, "{count}");
            // Negative control: UUniFast without discarding exceeds 1.
            let loose = samples(count, total, |random| uunifast(random, count, total));
            assert!(worst(&loose, &distribution) > 1.0, "{count}");
        }
    }

    /// The formula of Irwin and Hall has no digits left for so many tasks. By symmetry the means are equal.
    #[test]
    fn many_tasks_share_a_high_load() {
        let tables = RandFixedSum::new(60, 45.0).expect("the sum is possible");
        let all = samples(60, 45.0, |random| tables.draw(random));
        assert!(all.iter().flatten().all(|u| (-1e-12..=1.0 + 1e-12).contains(u)));
        for index in [0, 30, 59] {
            let mean = coordinate(&all, index).iter().sum::<f64>() / SAMPLES as f64;
            // Five standard deviations of the mean of numbers whose standard deviation is below 0.29.
            assert!((mean - 0.75).abs() < 5.0 * 0.29 / (SAMPLES as f64).sqrt(), "{index}: {mean}");
        }
    }

    #[test]
    fn corners_have_one_vector() {
        let mut random = Philox::new(1, 0).stream(0, 0);
        for (count, total) in [(1, 0.0), (1, 0.4), (1, 1.0), (3, 0.0), (3, 3.0)] {
            let tables = RandFixedSum::new(count, total).expect("the sum is possible");
            let drawn = tables.draw(&mut random);
            let expected = total / count as f64;
            assert!(drawn.iter().all(|u| (u - expected).abs() < 1e-12), "{count} {total}: {drawn:?}");
        }
    }

    #[test]
    fn impossible_sums_are_refused() {
        for (count, total) in [(0, 0.0), (3, 3.1), (3, -0.1), (3, f64::NAN), (3, f64::INFINITY)] {
            assert_eq!(RandFixedSum::new(count, total).err(), Some(Impossible::Sum { tasks: count }));
        }
        let mut random = Philox::new(1, 0).stream(0, 0);
        assert_eq!(uunifast_discard(&mut random, 3, 1.0, 0.1), Err(Impossible::Sum { tasks: 3 }));
        assert_eq!(uunifast_discard(&mut random, 40, 36.0, 1.0), Err(Impossible::Discarded));
    }
}
