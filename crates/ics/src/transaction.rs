//! One attempt to write.

use crate::commit::Commit;
use crate::data::{Data, Value};
use crate::ics::Ics;
use crate::layout::{locator_place, next, pack, place_of, word_of};
#[cfg(test)]
use crate::mutation::Mutation;
use crate::record::{Page, Record, count};
use crate::stop::Stop;
use crate::sync::AtomicU64;
use crate::var::Var;
use crate::word::{Word, Words};
use core::sync::atomic::Ordering;

/// One attempt to write, as [`Writer::update`](crate::Writer::update) passes it to its body.
///
/// Other threads see its writes once it has committed, and never if it does not commit.
///
/// # Examples
/// ```
/// use lockwright_ics::{Ics, Locked, Stop, Transaction, Var, Word};
///
/// type Section<'s> = Transaction<'s, [Word; 1], 1, 1, Locked>;
///
/// fn increment(section: &mut Section<'_>) -> Result<u64, Stop> {
///     let value = section.read(Var::<u64>::new(0))? + 1;
///     section.write(Var::new(0), value)?;
///     Ok(value)
/// }
///
/// let ics: Ics<[Word; 1], 1, 1> = Ics::new([Word::new(0)]);
/// assert_eq!(ics.writer().expect("one thread may write").update(increment), Ok(1));
/// ```
#[derive(Debug)]
#[repr(C)] // See `offsets`.
pub struct Transaction<'s, W, const WRITERS: usize, const WRITES: usize, C> {
    pub(crate) ics: &'s Ics<W, WRITERS, WRITES, C>,
    /// The page of the record that this section writes.
    pub(crate) page: &'s Page<WRITES>,
    pub(crate) record: &'s Record<WRITES>,
    pub(crate) writer: usize,
    pub(crate) seen: u64,
    pub(crate) named_page: usize,
    pub(crate) len: usize,
    /// A bit for each word that was written; several words share a bit.
    pub(crate) filter: u64,
}

const fn bit(index: usize) -> u64 {
    1 << (index % 64)
}

impl<'s, W: Words, const WRITERS: usize, const WRITES: usize, C: Commit> Transaction<'s, W, WRITERS, WRITES, C> {
    #[inline]
    pub(crate) fn new(
        ics: &'s Ics<W, WRITERS, WRITES, C>,
        record: &'s Record<WRITES>,
        writer: usize,
        seen: u64,
        named_page: usize,
    ) -> Self {
        Self { ics, page: record.page(named_page), record, writer, seen, named_page, len: 0, filter: 0 }
    }

    /// Commits, unless the body was not `done`.
    ///
    /// # Errors
    /// As [`Writer::attempt`](crate::Writer::attempt).
    #[inline(always)]
    pub(crate) fn end<R>(&self, done: Result<R, Stop>) -> Result<R, Stop> {
        let record = self.record;
        if let Err(stop) = done {
            if stop == Stop::Conflict {
                count(&record.counts.restarts);
            }
            return done;
        }
        if self.len == 0 {
            // The body may have ignored a conflict.
            return self.ics.validate(self.seen).inspect_err(|_| count(&record.counts.restarts)).and(done);
        }
        let new = next(self.seen, self.writer, self.named_page);
        // ORDERING: Relaxed: the commit releases the page.
        self.page.len.store(self.len as u32, Ordering::Relaxed);
        if self.note_and_post(self.seen, new) {
            count(&record.counts.commits);
            done
        } else {
            count(&record.counts.conflicts);
            Err(Stop::Conflict)
        }
    }

    /// Notes the attempt as pending and posts it. Returns whether it was posted.
    #[inline(always)]
    fn note_and_post(&self, seen: u64, new: u64) -> bool {
        let record = self.record;
        #[cfg(test)]
        if Mutation::LateNote.is_active() {
            let is_posted = self.ics.commit.post(&self.ics.head, seen, new);
            record.pending.store(new, Ordering::Release);
            return is_posted;
        }
        // ORDERING: Release: the note covers the page, and comes before the post; see `Writer::settle`.
        record.pending.store(new, Ordering::Release);
        self.ics.commit.post(&self.ics.head, seen, new)
    }

    /// Returns the number of the section's writer, which is below `WRITERS`.
    #[must_use]
    pub const fn writer(&self) -> usize {
        self.writer
    }

    /// Returns the index of this section's write to a word, if there is one.
    ///
    /// BOUND: WRITES.
    #[inline]
    fn find(&self, index: usize) -> Option<usize> {
        // `search` receives parts of the transaction, so that the transaction stays in registers.
        if self.may_have_written(index) { search(self.page, self.len, index) } else { None }
    }

    /// Whether this section may have written the word of this number. If not, reading it and writing it calls nothing.
    #[doc(hidden)]
    #[must_use]
    #[inline]
    pub const fn may_have_written(&self, index: usize) -> bool {
        self.filter & bit(index) != 0
    }

    /// Whether this section has written the word.
    pub(crate) fn has_written<T>(&self, var: Var<T>) -> bool {
        self.find(var.index).is_some()
    }

    /// Reads a variable as this section wrote it, or else as it was when the section began.
    ///
    /// It and all earlier reads of this attempt are from one instant.
    ///
    /// # Errors
    /// [`Stop::Conflict`] if that no longer holds, [`Stop::NoSuchWord`] if the object does not have the variable.
    #[inline]
    pub fn read<T: Data>(&self, var: Var<T>) -> Result<T, Stop> {
        var.take(|index| match self.find(index) {
            None => self.ics.read(index, self.seen),
            Some(nth) => {
                let word = self.ics.word(index).ok_or(Stop::NoSuchWord)?;
                // ORDERING: Relaxed: page and place belong to this writer.
                Ok(self.place(word, index, nth).load(Ordering::Relaxed))
            }
        })
    }

    /// Returns the place of a write of this section.
    #[inline]
    fn place(&self, word: &'s Word, index: usize, nth: usize) -> &'s AtomicU64 {
        // ORDERING: Relaxed: the page belongs to this writer.
        let write = self.page.writes[nth].load(Ordering::Relaxed);
        self.ics.place(word, place_of(write) ^ Ics::<W, WRITERS, WRITES, C>::home(index))
    }

    /// Checks whether the section can still commit. A long section calls it from time to time to stop early.
    ///
    /// # Errors
    /// [`Stop::Conflict`] if another commit invalidated the section.
    #[inline]
    pub fn check(&self) -> Result<(), Stop> {
        self.ics.validate(self.seen)
    }

    /// Writes a variable as a whole. The write takes effect when the section commits.
    ///
    /// # Errors
    /// [`Stop::Full`] if the section would write more than `WRITES` words, [`Stop::NoSuchWord`] if the object does not
    /// have the variable. The variable is not written then.
    #[inline]
    pub fn write<T: Data>(&mut self, var: Var<T>, value: T) -> Result<(), Stop> {
        if T::WORDS > 1 {
            self.reserve(var.index, T::WORDS)?;
        }
        var.put(value, |index, bits| self.write_word(index, bits))
    }

    /// Checks whether `count` words from `first` on can be written.
    ///
    /// BOUND: `count` searches of the writes.
    #[inline]
    fn reserve(&self, first: usize, count: usize) -> Result<(), Stop> {
        #[cfg(test)]
        if Mutation::NoRoomCheck.is_active() {
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
        match self.find(index) {
            // ORDERING: Relaxed: the place belongs to this writer until the commit, which releases it.
            Some(nth) => {
                self.place(word, index, nth).store(bits, Ordering::Relaxed);
                Ok(())
            }
            None => self.append(word, index, bits),
        }
    }

    /// Writes a word that this section has not written, without a call. Returns false, and changes nothing, if the
    /// section may have written it or cannot write it.
    #[doc(hidden)]
    #[inline]
    pub fn write_first(&mut self, index: usize, bits: u64) -> bool {
        match self.ics.word(index) {
            Some(word) if !self.may_have_written(index) => self.append(word, index, bits).is_ok(),
            _ => false,
        }
    }

    /// Adds a word that this section has not written to its writes.
    #[inline]
    fn append(&mut self, word: &'s Word, index: usize, bits: u64) -> Result<(), Stop> {
        let nth = self.len;
        if nth >= WRITES {
            return Err(Stop::Full);
        }
        // ORDERING: Relaxed, here and below: page and places belong to this writer until the commit, which releases
        // them. The locator is that of the entry, or the commit fails.
        let (home, made_with) = (Ics::<W, WRITERS, WRITES, C>::home(index), self.writer.wrapping_mul(WRITES) + nth);
        let spare = self.record.spares[nth].load(Ordering::Relaxed) as usize ^ made_with;
        let replaced = locator_place(word.locator.load(Ordering::Relaxed)) ^ home;
        self.ics.place(word, spare).store(bits, Ordering::Relaxed);
        self.record.replaced[nth].store((replaced ^ made_with) as u32, Ordering::Relaxed);
        self.page.writes[nth].store(pack(index, spare ^ home), Ordering::Relaxed);
        self.len = nth + 1;
        self.filter |= bit(index);
        Ok(())
    }

    /// Writes a word at once, without a place in the record.
    ///
    /// The word must belong to the spare node of this writer (see `shadow`): no other thread uses it before this
    /// section commits.
    #[inline]
    pub(crate) fn write_owned<T: Value>(&self, var: Var<T>, value: T) -> Result<(), Stop> {
        let word = self.ics.word(var.index).ok_or(Stop::NoSuchWord)?;
        // ORDERING: Relaxed: the commit that links the node releases the word. A reader from before the node was this
        // writer's sees another head, by the fence of `Writer::begin`.
        let locator = word.locator.load(Ordering::Relaxed);
        let home = Ics::<W, WRITERS, WRITES, C>::home(var.index);
        self.ics.place(word, locator_place(locator) ^ home).store(value.to_bits(), Ordering::Relaxed);
        Ok(())
    }
}

/// Returns the index of the write to a word among the first `len` writes of a page.
///
/// It stays out of line, because few sections call it.
///
/// BOUND: WRITES.
#[cold]
#[inline(never)]
fn search<const WRITES: usize>(page: &Page<WRITES>, len: usize, index: usize) -> Option<usize> {
    // ORDERING: Relaxed: the page belongs to this writer.
    page.writes.iter().take(len).position(|write| word_of(write.load(Ordering::Relaxed)) == index)
}
