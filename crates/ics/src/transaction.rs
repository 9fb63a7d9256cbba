//! Inside a section.

use crate::commit::Commit;
use crate::ics::{Ics, locator_place, pack, place_of, word_of};
use crate::left_out::{Part, is_left_out};
use crate::record::{Page, Record};
use crate::sync::{AtomicU32, AtomicU64};
use crate::value::{Data, Value, Var, Word, Words};
use core::fmt;
use core::sync::atomic::Ordering;

/// Why a section stopped before its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Stop {
    /// Another section committed meanwhile: begin again. Sections that repeat themselves do.
    Conflict,
    /// The section would write more words than its record holds, or needs a node where none is left.
    Full,
    /// There is no word of this number.
    NoSuchWord,
    /// The nodes of a structure are a ring: its memory was never constructed, or somebody else wrote into it.
    Damaged,
    /// The body itself gave up.
    Cancelled,
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Conflict => "another section committed meanwhile; begin again",
            Self::Full => {
                "more writes than a record holds, or no node left; make the object with more, or write less at once"
            }
            Self::NoSuchWord => "the object has no word of this number",
            Self::Damaged => "the structure's memory was never constructed, or somebody else wrote into it",
            Self::Cancelled => "the section gave up and changed nothing",
        })
    }
}

impl core::error::Error for Stop {}

/// One attempt to query.
#[derive(Debug)]
pub struct View<'s, W, const SLOTS: usize, const WRITES: usize, C> {
    ics: &'s Ics<W, SLOTS, WRITES, C>,
    seen: u64,
}

impl<'s, W: Words, const SLOTS: usize, const WRITES: usize, C: Commit> View<'s, W, SLOTS, WRITES, C> {
    pub(crate) const fn new(ics: &'s Ics<W, SLOTS, WRITES, C>, seen: u64) -> Self {
        Self { ics, seen }
    }

    pub(crate) const fn seen(&self) -> u64 {
        self.seen
    }

    /// A variable. With all that was read before, it was so at one instant.
    ///
    /// # Errors
    /// [`Stop::Conflict`] where that is not so any more, [`Stop::NoSuchWord`].
    #[inline]
    pub fn read<T: Data>(&self, var: Var<T>) -> Result<T, Stop> {
        var.take(|index| self.ics.read(index, self.seen))
    }

    /// Whether all that was read is so still: to be asked now and then in a long query.
    ///
    /// # Errors
    /// [`Stop::Conflict`] where it is not.
    #[inline]
    pub fn check(&self) -> Result<(), Stop> {
        self.ics.validate(self.seen)
    }
}

/// One attempt to write. What it wrote nobody sees before it has committed; nor at all if it does not.
#[derive(Debug)]
pub struct Transaction<'s, W, const SLOTS: usize, const WRITES: usize, C> {
    pub(crate) ics: &'s Ics<W, SLOTS, WRITES, C>,
    /// The one of the record's that is written.
    page: &'s Page<WRITES>,
    /// The slot's own places, and those that will be.
    spares: &'s [AtomicU32; WRITES],
    next_spares: &'s [AtomicU32; WRITES],
    pub(crate) slot: usize,
    pub(crate) seen: u64,
    pub(crate) named_page: usize,
    pub(crate) len: usize,
    /// A bit of each word that was written.
    filter: u64,
}

const fn bit(index: usize) -> u64 {
    1 << (index % 64)
}

impl<'s, W: Words, const SLOTS: usize, const WRITES: usize, C: Commit> Transaction<'s, W, SLOTS, WRITES, C> {
    #[inline]
    pub(crate) fn new(
        ics: &'s Ics<W, SLOTS, WRITES, C>,
        record: &'s Record<WRITES>,
        slot: usize,
        seen: u64,
        named_page: usize,
    ) -> Self {
        let ([page, _], [spares, next_spares]) = match (named_page, &record.pages, &record.spares) {
            (0, [first, second], [spares, others]) => ([first, second], [spares, others]),
            (_, [first, second], [others, spares]) => ([second, first], [spares, others]),
        };
        Self { ics, page, spares, next_spares, slot, seen, named_page, len: 0, filter: 0 }
    }

    /// Which slot the section is of, below `SLOTS`.
    #[must_use]
    pub const fn slot(&self) -> usize {
        self.slot
    }

    /// Which of the writes so far is of this word.
    ///
    /// BOUND: WRITES.
    #[inline]
    fn find(&self, index: usize) -> Option<usize> {
        // Nobody is handed the transaction itself: it stays in registers.
        if self.filter & bit(index) == 0 { None } else { search(self.page, self.len, index) }
    }

    /// Whether this section wrote the word.
    pub(crate) fn has_written<T>(&self, var: Var<T>) -> bool {
        self.find(var.index).is_some()
    }

    /// A variable, as this section wrote it, or as it was when the section began. With all that was read before, it was so at one instant.
    ///
    /// # Errors
    /// [`Stop::Conflict`] where that is not so any more, [`Stop::NoSuchWord`].
    #[inline]
    pub fn read<T: Data>(&self, var: Var<T>) -> Result<T, Stop> {
        var.take(|index| match self.find(index) {
            None => self.ics.read(index, self.seen),
            Some(nth) => {
                let word = self.ics.word(index).ok_or(Stop::NoSuchWord)?;
                // ORDERING: Relaxed: page and place are this slot's own.
                Ok(self.place(word, index, nth).load(Ordering::Relaxed))
            }
        })
    }

    /// Where a write of this section is.
    #[inline]
    fn place(&self, word: &'s Word, index: usize, nth: usize) -> &'s AtomicU64 {
        // ORDERING: Relaxed: the page is this slot's own.
        let write = self.page.writes[nth].load(Ordering::Relaxed);
        self.ics.place(word, place_of(write) ^ Ics::<W, SLOTS, WRITES, C>::home(index))
    }

    /// Whether the section can still commit: to be asked now and then in a long one, so as not to work on in vain.
    ///
    /// # Errors
    /// [`Stop::Conflict`] where it cannot.
    #[inline]
    pub fn check(&self) -> Result<(), Stop> {
        self.ics.validate(self.seen)
    }

    /// Writes a variable, if the section commits: all of it, or nothing.
    ///
    /// # Errors
    /// [`Stop::Full`] beyond `WRITES` words, [`Stop::NoSuchWord`].
    #[inline]
    pub fn write<T: Data>(&mut self, var: Var<T>, value: T) -> Result<(), Stop> {
        if T::WORDS > 1 {
            self.reserve(var.index, T::WORDS)?;
        }
        var.put(value, |index, bits| self.write_word(index, bits))
    }

    /// Whether so many words from this one on can be written.
    ///
    /// BOUND: `count` looks through the writes.
    #[inline]
    fn reserve(&self, first: usize, count: usize) -> Result<(), Stop> {
        if is_left_out(Part::Room) {
            return Ok(());
        }
        if W::COUNT.checked_sub(first).is_none_or(|left| left < count) {
            return Err(Stop::NoSuchWord);
        }
        let room = WRITES - self.len;
        let is_new = |index: &usize| self.find(*index).is_none();
        if count <= room || (first..first + count).filter(is_new).count() <= room { Ok(()) } else { Err(Stop::Full) }
    }

    #[inline]
    fn write_word(&mut self, index: usize, bits: u64) -> Result<(), Stop> {
        let word = self.ics.word(index).ok_or(Stop::NoSuchWord)?;
        // ORDERING: Relaxed, here and below: page and places are this slot's own until the commit, which releases them. The locator is what it was
        // at the entry, or the commit fails.
        if let Some(nth) = self.find(index) {
            self.place(word, index, nth).store(bits, Ordering::Relaxed);
            return Ok(());
        }
        let nth = self.len;
        if nth >= WRITES {
            return Err(Stop::Full);
        }
        let (home, made_with) = (Ics::<W, SLOTS, WRITES, C>::home(index), self.slot.wrapping_mul(WRITES) + nth);
        let spare = self.spares[nth].load(Ordering::Relaxed) as usize ^ made_with;
        let replaced = locator_place(word.locator.load(Ordering::Relaxed)) ^ home;
        self.ics.place(word, spare).store(bits, Ordering::Relaxed);
        self.next_spares[nth].store((replaced ^ made_with) as u32, Ordering::Relaxed);
        self.page.writes[nth].store(pack(index, spare ^ home), Ordering::Relaxed);
        self.len = nth + 1;
        self.filter |= bit(index);
        Ok(())
    }

    /// What the section did not need stays the slot's own.
    ///
    /// BOUND: WRITES.
    #[inline]
    pub(crate) fn keep_rest(&self) {
        // ORDERING: Relaxed: this slot's own.
        for (next, spare) in self.next_spares.iter().zip(self.spares).skip(self.len) {
            next.store(spare.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// Writes a word that nobody else reads or writes before this slot has committed, at once and without a place in the record.
    ///
    /// Only memory of a node that is this slot's spare; see `shadow`.
    #[inline]
    pub(crate) fn write_owned<T: Value>(&self, var: Var<T>, value: T) -> Result<(), Stop> {
        let word = self.ics.word(var.index).ok_or(Stop::NoSuchWord)?;
        // ORDERING: Relaxed: the commit that makes it known releases it; a reader from before it was this slot's sees another head, by the fence of `Slot::begin`.
        let locator = word.locator.load(Ordering::Relaxed);
        let home = Ics::<W, SLOTS, WRITES, C>::home(var.index);
        self.ics.place(word, locator_place(locator) ^ home).store(value.to_bits(), Ordering::Relaxed);
        Ok(())
    }
}

/// Which of the first `len` writes of a page is of this word.
///
/// BOUND: WRITES. Out of the way: few sections come here.
#[cold]
#[inline(never)]
fn search<const WRITES: usize>(page: &Page<WRITES>, len: usize, index: usize) -> Option<usize> {
    // ORDERING: Relaxed: the page is this slot's own.
    page.writes.iter().take(len).position(|write| word_of(write.load(Ordering::Relaxed)) == index)
}
