//! How a program uses its locks: nesting, and lengths of outermost critical sections.
//!
//! These are the figures by which Brandenburg et al., *Real-Time Synchronization on Multiprocessors: To Block or Not
//! to Block, to Suspend or Spin?* (RTAS 2008), section 4.1, describe the locks of Linux and of programs.

use crate::held::held;
use crate::history::histories;
use crate::recording::Recording;

/// The lengths below which the shares of sections are reported, in nanoseconds.
pub const SHORT_NS: [u64; 3] = [5_000, 10_000, 13_000];

/// The use of locks in one recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Trends {
    /// The number of critical sections that ended.
    pub sections: u64,
    /// The number of sections around which d others were open, for each d from 0.
    pub by_depth: Vec<u64>,
    /// The number of outermost sections inside which locks nest n deep, for each n from 0.
    pub by_nesting: Vec<u64>,
    /// The lengths of all outermost sections in nanoseconds, ascending. A length includes nested sections, waits for
    /// them, and preemption.
    pub outermost_ns: Vec<u64>,
}

impl Trends {
    /// The use of locks in `recording`.
    #[must_use]
    pub fn of(recording: &Recording) -> Self {
        let mut trends = Self::default();
        for history in &histories(recording) {
            let sections = held(history);
            // By section: how deep others nest in it.
            let mut nesting = vec![0_usize; sections.len()];
            // Inner sections stand behind outer ones.
            for index in (0..sections.len()).rev() {
                if let Some(parent) = sections[index].parent {
                    nesting[parent] = nesting[parent].max(nesting[index] + 1);
                }
            }
            for (section, nesting) in sections.iter().zip(nesting) {
                let Some((length, _)) = section.lengths(&history.entries) else { continue };
                trends.sections += 1;
                count(&mut trends.by_depth, section.depth);
                if section.parent.is_none() {
                    count(&mut trends.by_nesting, nesting);
                    trends.outermost_ns.push(length);
                }
            }
        }
        trends.outermost_ns.sort_unstable();
        trends
    }

    /// The greatest number of locks that were held around a lock.
    #[must_use]
    pub fn deepest(&self) -> usize {
        self.by_depth.len().saturating_sub(1)
    }

    /// How many outermost sections were shorter than this.
    #[must_use]
    pub fn below(&self, ns: u64) -> u64 {
        self.outermost_ns.partition_point(|&length| length < ns) as u64
    }

    /// The least length that is not exceeded by this many thousandths of the outermost sections.
    #[must_use]
    pub fn quantile(&self, permille: u64) -> Option<u64> {
        quantile(&self.outermost_ns, permille)
    }

    /// The mean length of outermost sections, rounded down.
    #[must_use]
    pub fn mean_ns(&self) -> Option<u64> {
        let sum: u128 = self.outermost_ns.iter().map(|&ns| u128::from(ns)).sum();
        u64::try_from(sum.checked_div(self.outermost_ns.len() as u128)?).ok()
    }
}

fn count(counts: &mut Vec<u64>, index: usize) {
    if counts.len() <= index {
        counts.resize(index + 1, 0);
    }
    counts[index] += 1;
}

/// The least of these ascending values that at least this many thousandths of them do not exceed.
pub(crate) fn quantile(ascending: &[u64], permille: u64) -> Option<u64> {
    let rank = (ascending.len() as u128 * u128::from(permille)).div_ceil(1000).max(1);
    ascending.get(usize::try_from(rank).ok()? - 1).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Event, EventKind};
    use crate::recording::Thread;
    use lockwright_model::Mode;

    #[test]
    fn depths_and_lengths_are_counted() {
        let lock = |at_ns, object| (at_ns, EventKind::Locked { object, mode: Mode::Write, site: 0, tried: false });
        let unlock = |at_ns, object| (at_ns, EventKind::Unlock { object });
        // Nested; locked again by the same thread; hand over hand; and one without an end.
        let script = [
            lock(0, 0),
            lock(1_000, 1),
            lock(2_000, 1),
            unlock(2_500, 1),
            unlock(3_000, 1),
            unlock(5_000, 0),
            lock(10_000, 2),
            lock(11_000, 3),
            unlock(14_999, 2),
            unlock(30_000, 3),
            lock(40_000, 4),
        ];
        let events = script.map(|(at_ns, kind)| Event { at_ns, thread: 0, kind });
        let recording = Recording {
            length_ns: 50_000,
            threads: vec![Thread::default()],
            events: events.into(),
            ..Recording::default()
        };
        let trends = Trends::of(&recording);
        assert_eq!((trends.sections, trends.deepest()), (4, 1));
        assert_eq!((trends.by_depth.as_slice(), trends.by_nesting.as_slice()), (&[2, 2][..], &[0, 2][..]));
        assert_eq!(trends.outermost_ns, [4_999, 5_000]);
        assert_eq!(SHORT_NS.map(|ns| trends.below(ns)), [1, 2, 2]);
        assert_eq!(
            (trends.quantile(500), trends.quantile(999), trends.mean_ns()),
            (Some(4_999), Some(5_000), Some(4_999))
        );
    }
}
