//! Periods.

use super::Stream;
use lockwright_model::Duration;

/// The distribution of periods.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Periods {
    /// All nanoseconds from `least` to `most` are equally likely.
    Uniform {
        /// The least period.
        least: Duration,
        /// The greatest period.
        most: Duration,
    },
    /// The logarithm is uniform from that of `least` to that of `most`, so each order of magnitude is equally likely.
    ///
    /// # Reference
    /// Emberson, Stafford and Davis, Techniques For The Synthesis Of Multiprocessor Tasksets, WATERS 2010.
    LogUniform {
        /// The least period, above zero.
        least: Duration,
        /// The greatest period.
        most: Duration,
    },
    /// `least` times a power of two, with an exponent from 0 to `doublings`. All exponents are equally likely. Of two
    /// periods, one divides the other.
    Harmonic {
        /// The least period.
        least: Duration,
        /// The greatest exponent.
        doublings: u32,
    },
    /// The periods of automotive software, from 1 ms to 1 s, in the published shares. The 15 % of code that is
    /// synchronous to the angle of the engine has no period and is left out.
    ///
    /// # Reference
    /// Kramer, Ziegenbein and Hamann, Real World Automotive Benchmarks For Free, WATERS 2015, table III.
    Automotive,
}

/// The automotive periods in milliseconds, and the percentage of runnables that have them.
const AUTOMOTIVE: [(u64, u64); 9] =
    [(1, 3), (2, 2), (5, 2), (10, 25), (20, 25), (50, 3), (100, 20), (200, 1), (1_000, 4)];

impl Periods {
    /// Draws one period.
    ///
    /// # Panics
    /// Panics if a range ends before it begins, or if a period does not fit in 64 bits of nanoseconds.
    #[must_use]
    pub fn draw(self, random: &mut Stream) -> Duration {
        match self {
            Self::Uniform { least, most } => Duration::from_ns(random.whole((least.as_ns(), most.as_ns()))),
            Self::LogUniform { least, most } => {
                let range = (libm::log(least.as_ns() as f64), libm::log(most.as_ns() as f64));
                let drawn = libm::exp(random.real(range)) as u64;
                Duration::from_ns(drawn.clamp(least.as_ns(), most.as_ns()))
            }
            Self::Harmonic { least, doublings } => {
                let factor = 1_u64.checked_shl(random.whole((0, u64::from(doublings))) as u32);
                let period = factor.and_then(|factor| least.as_ns().checked_mul(factor));
                Duration::from_ns(period.expect("the period fits in 64 bits"))
            }
            Self::Automotive => {
                let all = AUTOMOTIVE.iter().map(|(_, share)| share).sum::<u64>();
                let mut left = random.whole((0, all - 1));
                for (period, share) in AUTOMOTIVE {
                    match left.checked_sub(share) {
                        Some(rest) => left = rest,
                        None => return Duration::from_ms(period),
                    }
                }
                unreachable!("the number is below the sum of the shares")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generators::Philox;
    use crate::generators::testing::{distance, limit};

    const COUNT: usize = 50_000;

    fn drawn(periods: Periods) -> Vec<u64> {
        let mut random = Philox::new(8, 0).stream(0, 1);
        (0..COUNT).map(|_| periods.draw(&mut random).as_ns()).collect()
    }

    #[test]
    fn ranges_have_their_distributions() {
        let (least, most) = (Duration::from_ms(1), Duration::from_ms(1_000));
        let ms = |ns: &u64| *ns as f64 / 1e6;
        let uniform: Vec<f64> = drawn(Periods::Uniform { least, most }).iter().map(ms).collect();
        let log_uniform: Vec<f64> = drawn(Periods::LogUniform { least, most }).iter().map(ms).collect();
        let linear = |x: f64| (x - 1.0) / 999.0;
        let logarithmic = |x: f64| x.ln() / 1_000_f64.ln();
        assert!(distance(&uniform, linear) < limit(COUNT));
        assert!(distance(&log_uniform, logarithmic) < limit(COUNT));
        // Negative controls: each has not the distribution of the other.
        assert!(distance(&uniform, logarithmic) > limit(COUNT));
        assert!(distance(&log_uniform, linear) > limit(COUNT));
        for period in [Duration::from_ns(1), Duration::from_ms(7)] {
            let one = Periods::LogUniform { least: period, most: period };
            assert!(drawn(one).iter().all(|&drawn| drawn == period.as_ns()));
        }
    }

    /// Asserts that each period comes as often as its share, within five standard deviations of a binomial
    /// distribution, and that no other period comes.
    fn assert_shares(periods: Periods, shares: &[(u64, f64)]) {
        let drawn = drawn(periods);
        let mut all = 0;
        for &(ns, share) in shares {
            let count = drawn.iter().filter(|&&drawn| drawn == ns).count();
            let deviation = (COUNT as f64 * share * (1.0 - share)).sqrt();
            assert!((count as f64 - COUNT as f64 * share).abs() < 5.0 * deviation, "{ns}: {count}");
            all += count;
        }
        assert_eq!(all, COUNT);
    }

    #[test]
    fn lists_have_their_shares() {
        let harmonic = Periods::Harmonic { least: Duration::from_ms(5), doublings: 3 };
        assert_shares(harmonic, &[5, 10, 20, 40].map(|ms| (ms * 1_000_000, 0.25)));
        // The table is written out again, so that an edit of one of the two is noticed.
        let shares = [3, 2, 2, 25, 25, 3, 20, 1, 4].map(|percent| f64::from(percent) / 85.0);
        let periods = [1, 2, 5, 10, 20, 50, 100, 200, 1_000].map(|ms: u64| ms * 1_000_000);
        assert_shares(Periods::Automotive, &periods.into_iter().zip(shares).collect::<Vec<_>>());
    }
}
