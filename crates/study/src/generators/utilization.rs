//! Utilizations of single tasks.

use super::Stream;

/// The distribution of the utilization of one task.
///
/// # Reference
/// The constants are those of Brandenburg, Calandrino, Block, Leontyev and Anderson, Real-Time Synchronization on
/// Multiprocessors: To Block or Not to Block, to Suspend or Spin?, RTAS 2008.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Utilization {
    /// All utilizations of a range are equally likely.
    Uniform {
        /// The least utilization.
        least: f64,
        /// The greatest utilization.
        most: f64,
    },
    /// An exponential distribution, cut to a range. Its mean differs from `mean`, as the rest was cut off.
    Exponential {
        /// The mean without limits.
        mean: f64,
        /// The least utilization.
        least: f64,
        /// The greatest utilization.
        most: f64,
    },
    /// Eight tasks of nine are uniform from 0.001 to 0.5, and one is uniform from 0.5 to 0.999.
    Bimodal,
}

impl Utilization {
    /// Uniform from 0.001 to 0.1.
    pub const UNIFORM_LOW: Self = Self::Uniform { least: 0.001, most: 0.1 };
    /// Uniform from 0.1 to 0.4.
    pub const UNIFORM_MEDIUM: Self = Self::Uniform { least: 0.1, most: 0.4 };
    /// Uniform from 0.5 to 0.9.
    pub const UNIFORM_HIGH: Self = Self::Uniform { least: 0.5, most: 0.9 };
    /// Exponential of mean 0.05, from 0.001 to 0.1.
    pub const EXPONENTIAL_LOW: Self = Self::Exponential { mean: 0.05, least: 0.001, most: 0.1 };
    /// Exponential of mean 0.25, from 0.1 to 0.4.
    pub const EXPONENTIAL_MEDIUM: Self = Self::Exponential { mean: 0.25, least: 0.1, most: 0.4 };
    /// Exponential of mean 0.7, from 0.5 to 0.9.
    pub const EXPONENTIAL_HIGH: Self = Self::Exponential { mean: 0.7, least: 0.5, most: 0.9 };

    /// Draws one utilization.
    #[must_use]
    pub fn draw(self, random: &mut Stream) -> f64 {
        match self {
            Self::Uniform { least, most } => random.real((least, most)),
            Self::Exponential { mean, least, most } => {
                // The inverse of the distribution between both ends, so that nothing is drawn again.
                let share = -libm::expm1((least - most) / mean);
                (least - mean * libm::log1p(-share * random.unit())).clamp(least, most)
            }
            Self::Bimodal => match random.index(9) {
                0 => random.real((0.5, 0.999)),
                _ => random.real((0.001, 0.5)),
            },
        }
    }

    /// Returns the least number that no utilization exceeds.
    #[must_use]
    pub fn greatest(self) -> f64 {
        match self {
            Self::Uniform { most, .. } | Self::Exponential { most, .. } => most,
            Self::Bimodal => 0.999,
        }
    }

    /// Draws the utilizations of one task set: as many as keep their sum at or below `cap`, and at most `tasks`. The
    /// first one that would exceed `cap` is dropped, and the task set is complete.
    #[must_use]
    pub fn draw_up_to(self, random: &mut Stream, cap: f64, tasks: usize) -> Vec<f64> {
        let mut sum = 0.0;
        (0..tasks)
            .map(|_| self.draw(random))
            .take_while(|next| {
                sum += next;
                sum <= cap
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generators::Philox;
    use crate::generators::testing::{distance, limit};

    fn drawn(utilization: Utilization) -> Vec<f64> {
        let mut random = Philox::new(5, 0).stream(0, 0);
        (0..50_000).map(|_| utilization.draw(&mut random)).collect()
    }

    fn uniform(least: f64, most: f64) -> impl Fn(f64) -> f64 {
        move |x| ((x - least) / (most - least)).clamp(0.0, 1.0)
    }

    #[test]
    fn utilizations_have_their_distributions() {
        use Utilization as U;
        let uniforms = [(U::UNIFORM_LOW, 0.001, 0.1), (U::UNIFORM_MEDIUM, 0.1, 0.4), (U::UNIFORM_HIGH, 0.5, 0.9)];
        let exponentials = [
            (U::EXPONENTIAL_LOW, 0.05, 0.001, 0.1),
            (U::EXPONENTIAL_MEDIUM, 0.25, 0.1, 0.4),
            (U::EXPONENTIAL_HIGH, 0.7, 0.5, 0.9),
        ];
        for (of, least, most) in uniforms {
            assert!(distance(&drawn(of), uniform(least, most)) < limit(50_000), "{of:?}");
        }
        for (of, mean, least, most) in exponentials {
            let tail = |x: f64| (-x / mean).exp();
            let expected = |x: f64| (tail(least) - tail(x)) / (tail(least) - tail(most));
            assert!(distance(&drawn(of), expected) < limit(50_000), "{of:?}");
            // Negative control: the uniform distribution on the same range.
            assert!(distance(&drawn(of), uniform(least, most)) > limit(50_000), "{of:?}");
        }
        let (light, heavy) = (uniform(0.001, 0.5), uniform(0.5, 0.999));
        let of_nine = |share: f64| {
            let (light, heavy) = (&light, &heavy);
            move |x| (1.0 - share) * light(x) + share * heavy(x)
        };
        assert!(distance(&drawn(U::Bimodal), of_nine(1.0 / 9.0)) < limit(50_000));
        assert!(distance(&drawn(U::Bimodal), of_nine(1.0 / 8.0)) > limit(50_000), "negative control");
    }

    #[test]
    fn a_task_set_ends_at_its_cap() {
        for sample in 0..1_000 {
            let mut random = Philox::new(6, 0).stream(sample, 0);
            let drawn = Utilization::UNIFORM_MEDIUM.draw_up_to(&mut random, 2.6, 100);
            let sum: f64 = drawn.iter().sum();
            // The dropped task had at most 0.4.
            assert!(sum <= 2.6 && sum > 2.2 - 1e-12, "{sum}");
            let mut random = Philox::new(6, 0).stream(sample, 0);
            assert_eq!(Utilization::UNIFORM_LOW.draw_up_to(&mut random, 10.4, 100).len(), 100);
        }
    }
}
