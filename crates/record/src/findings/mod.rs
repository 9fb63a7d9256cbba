//! The problems of a recorded run: those that occurred, and those that could occur.
//!
//! `waits` follows all threads at once: it finds the holder of each contended lock, and inversions. `order` finds
//! orders of locking that can deadlock. `uses` counts the operations of threads and locks. `sentences` describes all
//! findings.

mod order;
mod sentences;
#[cfg(test)]
mod tests;
mod uses;
mod waits;

pub use order::{Cycle, CycleStep};
pub use uses::{LockUse, LongSection, ThreadUse};
pub use waits::{INVERSION_MIN_NS, Inversion, Inverted, LockWait};

use crate::held::held;
use crate::history::histories;
use crate::recording::Recording;

/// The findings of one recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Findings {
    /// The priority inversions, one for each pair of waiter and holder, the longest first.
    pub inversions: Vec<Inversion>,
    /// The waits for locks, the longest first.
    pub waits: Vec<LockWait>,
    /// The cycles of lock orders that can deadlock.
    pub cycles: Vec<Cycle>,
    /// How many times a thread locked while it held so many locks that no cycles through this lock were looked for.
    pub left_out: u64,
    /// The use of each lock that was locked, in the order of their objects.
    pub locks: Vec<LockUse>,
    /// The sections that are longer than the requested limit, the longest first; one for each thread, lock and place.
    pub long_sections: Vec<LongSection>,
    /// All threads, in the order of the recording.
    pub threads: Vec<ThreadUse>,
}

impl Findings {
    /// The findings in `recording`. Sections are long from `longer_than_ns` on; `None` looks for none.
    #[must_use]
    pub fn of(recording: &Recording, longer_than_ns: Option<u64>) -> Self {
        let histories = histories(recording);
        let sections: Vec<_> = histories.iter().map(held).collect();
        let mut waits = waits::waits(recording);
        waits.sort_by_key(|wait| (std::cmp::Reverse(wait.length_ns()), wait.from_ns));
        let inversions = waits::inversions(&waits);
        let (cycles, left_out) = order::cycles(&sections);
        let long = |ns| uses::long_sections(&histories, &sections, ns);
        Self {
            inversions,
            cycles,
            left_out,
            locks: uses::locks(recording, &histories, &sections, &waits),
            long_sections: longer_than_ns.map(long).unwrap_or_default(),
            threads: uses::threads(&histories),
            waits,
        }
    }
}
