//! The period of a task, from the distances of releases.

use crate::trends::quantile;

/// How regular releases are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Regularity {
    /// All distances are equal, as the program asked for them.
    Exact,
    /// The distances differ by less than 2 % of their median.
    Periodic,
    /// They differ by more.
    Sporadic,
}

/// The distances of releases in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Distances {
    pub(super) least: u64,
    pub(super) median: u64,
    pub(super) most: u64,
    pub(super) regularity: Regularity,
}

impl Distances {
    /// Of releases in order. `None` if there are fewer than two of different times.
    pub(super) fn of(releases: impl Iterator<Item = i64> + Clone, is_exact: bool) -> Option<Self> {
        let pairs = releases.clone().zip(releases.skip(1));
        let mut distances: Vec<u64> = pairs.map(|(one, next)| next.saturating_sub(one)).filter_map(positive).collect();
        distances.sort_unstable();
        let (&least, &most) = (distances.first()?, distances.last()?);
        let median = quantile(&distances, 500)?;
        let regularity = match most - least {
            0 if is_exact => Regularity::Exact,
            spread if u128::from(spread) * 50 < u128::from(median) => Regularity::Periodic,
            _ => Regularity::Sporadic,
        };
        Some(Self { least, median, most, regularity })
    }
}

fn positive(distance: i64) -> Option<u64> {
    u64::try_from(distance).ok().filter(|&distance| distance > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_percent_separate_periodic_from_sporadic() {
        let of = |releases: &[i64], is_exact| {
            Distances::of(releases.iter().copied(), is_exact).map(|found| (found.least, found.regularity))
        };
        assert_eq!(of(&[0, 1000, 2000], true), Some((1000, Regularity::Exact)));
        assert_eq!(of(&[0, 1000, 2000], false), Some((1000, Regularity::Periodic)));
        assert_eq!(of(&[0, 1000, 2019, 3019], false), Some((1000, Regularity::Periodic)));
        assert_eq!(of(&[0, 1000, 2020, 3020], true), Some((1000, Regularity::Sporadic)));
        assert_eq!(of(&[5, 5], true), None);
    }
}
