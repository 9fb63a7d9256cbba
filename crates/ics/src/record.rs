//! The commit record of a slot: what it posts, and what only it looks at.

use crate::sync::{AtomicU32, AtomicU64, array, constructor};
use core::sync::atomic::{AtomicU64 as Count, Ordering};

/// One of two writings of a record: one may be posted while the other is written.
#[derive(Debug)]
pub(crate) struct Page<const WRITES: usize> {
    /// How many of the writes count.
    pub(crate) len: AtomicU32,
    /// | word (16 bits) | place of its new value (16 bits) |
    pub(crate) writes: [AtomicU32; WRITES],
}

/// Nobody has the slot.
pub(crate) const FREE: u32 = 0;
/// Somebody has it, until it is dropped.
pub(crate) const CLAIMED: u32 = 1;
/// Nobody is given it any more.
pub(crate) const RESERVED: u32 = 2;

#[derive(Debug)]
pub(crate) struct Record<const WRITES: usize> {
    pub(crate) pages: [Page<WRITES>; 2],
    /// The last head that named this slot and of which all writes are performed. Before the slot, or anybody, commits after a head that names the slot, that head is here.
    pub(crate) performed: AtomicU64,
    /// Whether somebody has the slot: [`FREE`], [`CLAIMED`], [`RESERVED`].
    pub(crate) is_claimed: AtomicU32,

    // From here on its owner's alone.
    /// What it tried to post and has not settled; 0: nothing.
    pub(crate) pending: AtomicU64,
    /// What it posted last.
    pub(crate) last: AtomicU64,
    /// With each page the places that are the slot's own when it writes that page, combined (exclusive or) with those it was made with. Those of the other page become
    /// its own by the commit: what it replaced, and what it did not need.
    pub(crate) spares: [[AtomicU32; WRITES]; 2],
    pub(crate) counts: Counts,
}

#[derive(Debug)]
pub(crate) struct Counts {
    pub(crate) entries: Count,
    pub(crate) queries: Count,
    pub(crate) commits: Count,
    pub(crate) conflicts: Count,
    pub(crate) restarts: Count,
    pub(crate) helped: Count,
}

/// What a slot did since it was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Sections entered to write, each attempt counted.
    pub entries: u64,
    /// Sections entered to query, each attempt counted.
    pub queries: u64,
    /// Commits.
    pub commits: u64,
    /// Commits refused: another was first.
    pub conflicts: u64,
    /// Attempts given up earlier, at a read that found another commit.
    pub restarts: u64,
    /// Records of other slots performed, one an entry at most.
    pub helped: u64,
}

impl<const WRITES: usize> Record<WRITES> {
    constructor! {
        /// Zeros.
        pub(crate) fn new() -> Self {
            Self {
                pages: array!(Page { len: AtomicU32::new(0), writes: array!(AtomicU32::new(0)) }),
                performed: AtomicU64::new(0),
                is_claimed: AtomicU32::new(0),
                pending: AtomicU64::new(0),
                last: AtomicU64::new(0),
                spares: array!(array!(AtomicU32::new(0))),
                counts: Counts {
                    entries: Count::new(0),
                    queries: Count::new(0),
                    commits: Count::new(0),
                    conflicts: Count::new(0),
                    restarts: Count::new(0),
                    helped: Count::new(0),
                },
            }
        }
    }

    pub(crate) fn stats(&self) -> Stats {
        // ORDERING: Relaxed: counts, for people.
        let of = |count: &Count| count.load(Ordering::Relaxed);
        let counts = &self.counts;
        Stats {
            entries: of(&counts.entries),
            queries: of(&counts.queries),
            commits: of(&counts.commits),
            conflicts: of(&counts.conflicts),
            restarts: of(&counts.restarts),
            helped: of(&counts.helped),
        }
    }
}

/// One more. Only the slot's owner counts, so it need not be atomic; a count is no place where a model looks for interleavings.
#[inline]
pub(crate) fn count(count: &Count) {
    // ORDERING: Relaxed: a count, for people.
    count.store(count.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
}
