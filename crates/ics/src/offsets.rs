//! Where the parts of an object are, for code in C that is compiled with its caller.

use crate::commit::Commit;
use crate::ics::Ics;
use crate::record::{Counts, Page, Record};
use crate::transaction::Transaction;
use crate::word::{Word, Words};
use core::mem::offset_of;
use crossbeam_utils::CachePadded;

/// The parts of an object and of an attempt that code in C accesses, in bytes from the beginning of what contains them.
#[doc(hidden)]
#[derive(PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Offsets {
    /// The head, the first word, the first record and the first value, in the object.
    pub object: [usize; 4],
    /// The locator and the place, in a word, and its size.
    pub word: [usize; 3],
    /// The pages, `performed`, `pending`, `last`, `spares`, `replaced`, and the counts of entries and of commits, in a
    /// record, and the distance of two records.
    pub record: [usize; 9],
    /// The length and the writes, in a page, and its size.
    pub page: [usize; 3],
    /// The object, the page, the record, the number of the writer, `seen`, the number of the page, the length and the
    /// filter, in an attempt, and its size.
    pub attempt: [usize; 9],
}

impl<W: Words, const WRITERS: usize, const WRITES: usize, C: Commit> Ics<W, WRITERS, WRITES, C> {
    /// The offsets of this type of object.
    #[doc(hidden)]
    pub const OFFSETS: Offsets = Offsets {
        object: [offset_of!(Self, head), offset_of!(Self, words), offset_of!(Self, records), offset_of!(Self, values)],
        word: [offset_of!(Word, locator), offset_of!(Word, place), size_of::<Word>()],
        record: [
            offset_of!(Record<WRITES>, pages),
            offset_of!(Record<WRITES>, performed),
            offset_of!(Record<WRITES>, pending),
            offset_of!(Record<WRITES>, last),
            offset_of!(Record<WRITES>, spares),
            offset_of!(Record<WRITES>, replaced),
            offset_of!(Record<WRITES>, counts) + offset_of!(Counts, entries),
            offset_of!(Record<WRITES>, counts) + offset_of!(Counts, commits),
            size_of::<CachePadded<Record<WRITES>>>(),
        ],
        page: [offset_of!(Page<WRITES>, len), offset_of!(Page<WRITES>, writes), size_of::<Page<WRITES>>()],
        attempt: [
            offset_of!(Transaction<'_, W, WRITERS, WRITES, C>, ics),
            offset_of!(Transaction<'_, W, WRITERS, WRITES, C>, page),
            offset_of!(Transaction<'_, W, WRITERS, WRITES, C>, record),
            offset_of!(Transaction<'_, W, WRITERS, WRITES, C>, writer),
            offset_of!(Transaction<'_, W, WRITERS, WRITES, C>, seen),
            offset_of!(Transaction<'_, W, WRITERS, WRITES, C>, named_page),
            offset_of!(Transaction<'_, W, WRITERS, WRITES, C>, len),
            offset_of!(Transaction<'_, W, WRITERS, WRITES, C>, filter),
            size_of::<Transaction<'_, W, WRITERS, WRITES, C>>(),
        ],
    };
}
