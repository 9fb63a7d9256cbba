//! The period of a task, from the distances of releases.

use crate::trends::quantile;

/// The release of the job behind a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Release {
    /// The instant. `None` if the wait ended at once, and what it waited for came at an unknown instant before.
    pub(super) at_ns: Option<i64>,
    /// How many releases the wait took: a read of a timer returns all expirations since the read before. The instant is
    /// that of the first one.
    pub(super) count: u64,
    /// Whether the program asked for this instant.
    pub(super) is_requested: bool,
}

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
    /// Of releases in order. Between known releases with others in between, all distances count as equal: the least one
    /// is at most that long. `None` if there are fewer than two known ones of different times.
    pub(super) fn of(releases: &[Release]) -> Option<Self> {
        let mut distances = Vec::new();
        // The last known release, and the number of distances from there on.
        let (mut last, mut count) = (None, 0_u64);
        for release in releases {
            if let Some(at_ns) = release.at_ns {
                let length = last.map(|last| at_ns.saturating_sub(last)).and_then(positive);
                distances.extend(length.and_then(|length| length.checked_div(count)).filter(|&distance| distance > 0));
                (last, count) = (Some(at_ns), 0);
            }
            count = count.saturating_add(release.count);
        }
        let is_exact = releases.iter().all(|release| release.is_requested);
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

pub(super) fn signed(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

fn positive(distance: i64) -> Option<u64> {
    u64::try_from(distance).ok().filter(|&distance| distance > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_percent_separate_periodic_from_sporadic() {
        let of = |releases: &[i64], is_requested| {
            let releases: Vec<Release> =
                releases.iter().map(|&at_ns| Release { at_ns: Some(at_ns), count: 1, is_requested }).collect();
            Distances::of(&releases).map(|found| (found.least, found.regularity))
        };
        assert_eq!(of(&[0, 1000, 2000], true), Some((1000, Regularity::Exact)));
        assert_eq!(of(&[0, 1000, 2000], false), Some((1000, Regularity::Periodic)));
        assert_eq!(of(&[0, 1000, 2019, 3019], false), Some((1000, Regularity::Periodic)));
        assert_eq!(of(&[0, 1000, 2020, 3020], true), Some((1000, Regularity::Sporadic)));
        assert_eq!(of(&[5, 5], true), None);
    }

    #[test]
    fn releases_between_known_ones_have_equal_distances() {
        let of = |releases: &[(Option<i64>, u64)]| {
            let of = |&(at_ns, count)| Release { at_ns, count, is_requested: false };
            let releases: Vec<Release> = releases.iter().map(of).collect();
            Distances::of(&releases).map(|found| (found.least, found.most))
        };
        assert_eq!(of(&[(Some(0), 1), (None, 1), (Some(2000), 1), (Some(3100), 1)]), Some((1000, 1100)));
        // The second wait takes three releases at once.
        assert_eq!(of(&[(Some(0), 1), (Some(1000), 3), (Some(4000), 1)]), Some((1000, 1000)));
        assert_eq!(of(&[(None, 1), (Some(1000), 1), (None, 1)]), None);
    }
}
