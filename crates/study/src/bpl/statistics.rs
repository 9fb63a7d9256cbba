//! Statistics of the requests that were granted.

use super::traffic::TICKS_PER_SECTION;

/// The paper's units of time per mean critical section: its service rate is 0.01.
const UNITS_PER_SECTION: f64 = 100.0;

/// The statistics of one run or of several. They are counts and sums of integers, so runs can be merged in any order.
///
/// Only granted requests count: a request that still waits when the run ends has no
/// wait yet. So a source that never got the lock has no mean wait, and its weight
/// is left out of the weighted mean. [`Statistics::unserved`] counts such sources.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub struct Statistics {
    /// The statistics of each source, the least important one first.
    pub sources: Vec<Source>,
    /// The number of requests that waited at some instant while a less important source held the lock.
    pub inversions: u64,
    /// The maximum number of critical sections that one request waited for, including the one during which it was made.
    pub sections_max: u64,
}

/// The statistics of one source of traffic.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub struct Source {
    /// The number of times it got the lock.
    pub granted: u64,
    /// The total time it waited for these grants, in ticks.
    pub waited: u64,
}

impl Statistics {
    /// Adds the statistics of another run of the same model.
    pub fn merge(&mut self, other: &Self) {
        self.sources.resize(self.sources.len().max(other.sources.len()), Source::default());
        for (sum, source) in self.sources.iter_mut().zip(&other.sources) {
            sum.granted += source.granted;
            sum.waited += source.waited;
        }
        self.inversions += other.inversions;
        self.sections_max = self.sections_max.max(other.sections_max);
    }

    /// Returns the number of granted requests of all sources.
    #[must_use]
    pub fn granted(&self) -> u64 {
        self.sources.iter().map(|source| source.granted).sum()
    }

    /// Returns the number of sources that never got the lock.
    #[must_use]
    pub fn unserved(&self) -> usize {
        self.sources.iter().filter(|source| source.granted == 0).count()
    }

    /// Returns the requests with a priority inversion, in percent.
    #[must_use]
    pub fn inversions_pct(&self) -> f64 {
        100.0 * self.inversions as f64 / self.granted().max(1) as f64
    }

    /// Returns the mean wait of all requests, in units of time (a mean critical section has 100).
    ///
    /// It is one division of integer sums. So runs that granted the same requests at the same instants agree to the
    /// last digit, whatever the order of the grants.
    #[must_use]
    pub fn mean_wait(&self) -> f64 {
        let waited: u128 = self.sources.iter().map(|source| u128::from(source.waited)).sum();
        units(waited as f64) / self.granted().max(1) as f64
    }

    /// Returns the mean wait of the most important source, in units of time, or `None` if it never got the lock.
    #[must_use]
    pub fn top_mean_wait(&self) -> Option<f64> {
        self.sources.last().and_then(Source::mean_wait)
    }

    /// Returns the mean of the sources' mean waits, in units of time. The weights run from 1 for the least important
    /// source to the number of sources for the most important one.
    ///
    /// Sources that never got the lock are left out. Returns `None` if no source got it.
    #[must_use]
    pub fn weighted_delay(&self) -> Option<f64> {
        let (mut sum, mut weights) = (0.0, 0.0);
        for (index, source) in self.sources.iter().enumerate() {
            if let Some(wait) = source.mean_wait() {
                let weight = (index + 1) as f64;
                sum += weight * wait;
                weights += weight;
            }
        }
        (weights > 0.0).then(|| sum / weights)
    }
}

impl Source {
    /// Returns the mean wait in units of time, or `None` if the source never got the lock.
    fn mean_wait(&self) -> Option<f64> {
        (self.granted > 0).then(|| units(self.waited as f64) / self.granted as f64)
    }
}

fn units(ticks: f64) -> f64 {
    ticks * (UNITS_PER_SECTION / TICKS_PER_SECTION as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(granted: u64, sections: u64) -> Source {
        Source { granted, waited: sections * TICKS_PER_SECTION }
    }

    #[test]
    fn the_weighted_delay_by_hand() {
        let sources = vec![source(2, 6), source(1, 1), source(4, 2)];
        let seen = Statistics { sources, inversions: 2, sections_max: 5 };
        // Means of 300, 100 and 50 units, weights of 1, 2 and 3.
        assert_eq!(seen.weighted_delay(), Some(650.0 / 6.0));
        assert_eq!((seen.mean_wait(), seen.top_mean_wait()), (900.0 / 7.0, Some(50.0)));
        assert_eq!(seen.inversions_pct(), 200.0 / 7.0);
    }

    #[test]
    fn unserved_sources_have_no_mean() {
        let seen = Statistics { sources: vec![source(0, 0), source(1, 1), source(0, 0)], ..Statistics::default() };
        assert_eq!((seen.unserved(), seen.top_mean_wait(), seen.weighted_delay()), (2, None, Some(100.0)));
        assert_eq!(Statistics::default().weighted_delay(), None);
    }

    #[test]
    fn merging_adds() {
        let one = Statistics { sources: vec![source(1, 4)], inversions: 1, sections_max: 3 };
        let mut all = Statistics::default();
        all.merge(&one);
        assert_eq!(all, one);
        all.merge(&Statistics { sources: vec![source(3, 1)], inversions: 2, sections_max: 2 });
        assert_eq!(all, Statistics { sources: vec![source(4, 5)], inversions: 3, sections_max: 3 });
    }
}
