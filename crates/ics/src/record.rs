//! The commit record of a writer: what it posts, and what only the writer reads.

use crate::sync::{AtomicU32, AtomicU64, array, constructor};
use core::sync::atomic::{AtomicU64 as Count, Ordering};

/// One of the two pages of a record: the writer writes one while the other may be posted.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Page<const WRITES: usize> {
    /// The number of writes that count.
    pub(crate) len: AtomicU32,
    /// | word (16 bits) | place of its new value (16 bits) |
    pub(crate) writes: [AtomicU32; WRITES],
}

/// No thread has the writer.
pub(crate) const FREE: u32 = 0;
/// A thread has the writer until it is dropped.
pub(crate) const CLAIMED: u32 = 1;
/// No thread gets the writer any more.
pub(crate) const RESERVED: u32 = 2;

#[derive(Debug)]
#[repr(C)]
pub(crate) struct Record<const WRITES: usize> {
    pub(crate) pages: [Page<WRITES>; 2],
    /// The last head that named this writer and whose writes are all performed.
    ///
    /// It is set before any thread commits after that head.
    pub(crate) performed: AtomicU64,
    /// [`FREE`], [`CLAIMED`] or [`RESERVED`].
    pub(crate) is_claimed: AtomicU32,

    // Only the owner of the record accesses the fields from here on.
    /// The head that the owner tried to post and has not settled, or 0.
    pub(crate) pending: AtomicU64,
    /// The head that the owner posted last.
    pub(crate) last: AtomicU64,
    /// The places that the owner may write.
    ///
    /// Each is combined by exclusive or with the place that it had at first.
    pub(crate) spares: [AtomicU32; WRITES],
    /// For each write of the attempt, the place that it replaces, combined in the same way.
    ///
    /// Once the attempt is committed, these places take the places of its spares.
    pub(crate) replaced: [AtomicU32; WRITES],
    pub(crate) counts: Counts,
}

#[derive(Debug)]
#[repr(C)]
pub(crate) struct Counts {
    pub(crate) entries: Count,
    pub(crate) queries: Count,
    pub(crate) commits: Count,
    pub(crate) conflicts: Count,
    pub(crate) restarts: Count,
    pub(crate) helped: Count,
}

/// The counts of a writer since its object was created.
///
/// # Examples
/// ```
/// use lockwright_ics::{Ics, Var, Word};
///
/// static SHARED: Ics<[Word; 1], 1, 1> = Ics::new([Word::new(0)]);
/// let mut writer = SHARED.writer().expect("one thread may write");
/// writer.update(|section| section.write(Var::<u64>::new(0), 1))?;
/// assert_eq!((writer.stats().entries, writer.stats().commits), (1, 1));
/// # Ok::<(), lockwright_ics::Stop>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub struct Stats {
    /// The attempts to write.
    pub entries: u64,
    /// The attempts to query.
    pub queries: u64,
    /// The commits.
    pub commits: u64,
    /// The attempts that another commit invalidated at their commit.
    pub conflicts: u64,
    /// The attempts that another commit invalidated earlier, at a read.
    pub restarts: u64,
    /// The records of other writers that were performed, at most one per entry.
    pub helped: u64,
}

impl<const WRITES: usize> Record<WRITES> {
    constructor! {
        /// Creates a record of zeros.
        pub(crate) fn new() -> Self {
            Self {
                pages: array!(Page { len: AtomicU32::new(0), writes: array!(AtomicU32::new(0)) }),
                performed: AtomicU64::new(0),
                is_claimed: AtomicU32::new(0),
                pending: AtomicU64::new(0),
                last: AtomicU64::new(0),
                spares: array!(AtomicU32::new(0)),
                replaced: array!(AtomicU32::new(0)),
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

    /// Returns the page of this number, 0 or 1.
    #[inline]
    pub(crate) const fn page(&self, number: usize) -> &Page<WRITES> {
        let [first, second] = &self.pages;
        if number == 0 { first } else { second }
    }

    pub(crate) fn stats(&self) -> Stats {
        // ORDERING: Relaxed: counts order nothing.
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

/// Increments a count.
///
/// Only the owner of a record counts, so load and store need not be one operation.
/// Counts are atomics of `core` in every build: a model need not interleave them.
#[inline]
pub(crate) fn count(count: &Count) {
    // ORDERING: Relaxed: counts order nothing.
    count.store(count.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
}
