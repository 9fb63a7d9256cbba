//! The object: a head, words, and a record for each writer.
//!
//! The head holds the version and names the record posted last; `layout` has the bits.
//!
//! ```text
//!   head       one compare-and-swap commits, counts, and publishes
//!   locator    of each word: the place of its value, and the version of the commit that put it there
//!   places     WRITES values for each writer and one for each word; a place belongs to a word, or is a writer's spare
//!
//!   enter      head := h. If its record is not performed yet, for each of its writes:
//!                  locator (older, p) -> (h, q)         if head is still h; once, by whichever thread is first
//!   write      value into a spare q; (word, q) into the page that is not posted
//!   read       locator, value, then head: still h?      else restart
//!   commit     head h -> (version + 1, me)              else restart
//!   next entry the places that my writes replaced are my spares
//! ```
//!
//! # Why a late helper does no harm
//! A helper may be preempted in the middle and continue much later.
//! Before it changes a locator it has read the locator, and after that the head, which was `h`; so it read a locator
//! older than `h`.
//! A thread that commits after `h` has performed all of `h` before.
//! Once the head has changed, the locator has therefore changed too.
//! A locator never returns, because each version is given once; so the compare-and-swap of the helper fails.
//!
//! # Why a writer can determine the result of its last attempt
//! Every thread that commits after a head `h` has marked `h` as performed in its record, or has found the mark; this
//! includes the owner of the record.
//! Marks are changed as locators are, so a late mark changes nothing once the head is not `h`.
//! The record therefore holds `h` until its writer commits again.
//!
//! # Why a page can be rewritten
//! A writer writes the page that it did not post last.
//! It posted that page before some later commit of its own, so the head has changed since.
//! A thread that still reads the page checks the head before it acts.
//!
//! # Why a place can be rewritten
//! It is a spare of a writer whose commit replaced it and which has entered again since.
//! That commit is performed, so no locator leads to the place, and the head has changed since one did.
//! A thread that still reads the place checks the head before it uses the value.
//!
//! # Versions
//! Versions wrap around after 2^48 commits, which take a month at one commit every 10 ns.
//! A helper could undo a write if it stood still for exactly that many commits between its check of the head and its
//! change, and its word were back at exactly its former place.

use crate::commit::{Commit, Locked, Work};
use crate::layout::{self, PLACES_MAX, WRITERS_MAX, locator_place, posted, word_of};
#[cfg(test)]
use crate::mutation::Mutation;
use crate::record::{Page, Record, Stats};
use crate::stop::Stop;
use crate::sync::{AtomicU64, array, constructor, fence};
use crate::word::{Word, Words};
use core::sync::atomic::Ordering;
use crossbeam_utils::CachePadded;

/// Shared words, and sections on them that are interrupted instead of waited for.
///
/// `WRITERS` threads may have a [`Writer`](crate::Writer); any thread may query.
/// A section writes at most `WRITES` words.
/// The strategy `C` decides commits, see [`Commit`]; [`Locked`] is correct everywhere.
///
/// With [`Locked`], memory of zeros is an object whose words are zero.
///
/// # Bound
/// - An entry performs the writes of at most one record: `WRITES` conditional stores and one more. It takes over as
///   many places.
/// - A read is a few loads. A read of a word that the section wrote itself searches its writes.
/// - A commit is one conditional store.
/// - A section restarts only if another one committed between its entry and its own commit.
///
/// # Examples
/// ```
/// use lockwright_ics::{Ics, Var, Word};
///
/// const LEFT: Var<u64> = Var::new(0);
/// const RIGHT: Var<u64> = Var::new(1);
/// static SHARED: Ics<[Word; 2], 4, 2> = Ics::new([Word::new(100), Word::new(0)]);
///
/// let mut writer = SHARED.writer().expect("four threads may write");
/// writer.update(|section| {
///     let left = section.read(LEFT)?;
///     section.write(LEFT, left - 30)?;
///     let right = section.read(RIGHT)?;
///     section.write(RIGHT, right + 30)
/// })?;
/// assert_eq!(SHARED.query(|view| Ok(view.read(LEFT)? + view.read(RIGHT)?))?, 100);
/// # Ok::<(), lockwright_ics::Stop>(())
/// ```
#[derive(Debug)]
#[repr(C)] // See `offsets`.
pub struct Ics<W, const WRITERS: usize, const WRITES: usize, C = Locked> {
    pub(crate) head: CachePadded<AtomicU64>,
    pub(crate) words: W,
    pub(crate) records: [CachePadded<Record<WRITES>>; WRITERS],
    pub(crate) values: [[AtomicU64; WRITES]; WRITERS],
    pub(crate) commit: C,
}

impl<W: Words, const WRITERS: usize, const WRITES: usize> Ics<W, WRITERS, WRITES> {
    constructor! {
        /// Creates an object for threads on any processors.
        #[must_use]
        pub fn new(words: W) -> Self {
            Self::with(words, Locked)
        }
    }
}

impl<W: Words, const WRITERS: usize, const WRITES: usize, C> Ics<W, WRITERS, WRITES, C> {
    const FITS: () = {
        assert!(1 <= WRITERS && WRITERS <= WRITERS_MAX, "an object has 1 to WRITERS_MAX writers");
        assert!(1 <= WRITES && WRITES <= PLACES_MAX, "a section writes at least one word");
        assert!(W::COUNT + WRITERS * WRITES <= PLACES_MAX, "too many places: words + writers * writes");
    };

    constructor! {
        /// Creates an object with another strategy.
        #[must_use]
        pub fn with(words: W, commit: C) -> Self {
            const { Self::FITS };
            Self {
                head: CachePadded::new(AtomicU64::new(0)),
                words,
                records: array!(CachePadded::new(Record::new())),
                values: array!(array!(AtomicU64::new(0))),
                commit,
            }
        }
    }

    /// Returns the strategy.
    #[must_use]
    pub const fn commit(&self) -> &C {
        &self.commit
    }
}

impl<W: Words, const WRITERS: usize, const WRITES: usize, C: Commit> Ics<W, WRITERS, WRITES, C> {
    /// Returns the counts of the writer of a number, for all threads that had it.
    #[must_use]
    pub fn stats(&self, index: usize) -> Option<Stats> {
        Some(self.records.get(index)?.stats())
    }

    /// Performs the posted writes if they are not performed yet. Returns whether there was something to do.
    #[inline]
    pub(crate) fn help(&self, seen: u64) -> bool {
        let Some((writer, page, marked)) = self.unperformed(seen) else { return false };
        self.perform_and_mark(seen, writer, page, marked);
        true
    }

    /// Returns the writer and the page that the head `seen` names, and the writer's mark, if its writes are not marked
    /// as performed.
    #[inline]
    pub(crate) fn unperformed(&self, seen: u64) -> Option<(usize, usize, u64)> {
        let (writer, page) = posted(seen)?;
        // ORDERING: Acquire pairs with the Release of the mark: the performed writes are seen.
        let marked = self.records.get(writer)?.performed.load(Ordering::Acquire);
        (marked != seen).then_some((writer, page, marked))
    }

    /// Stays out of line, because most entries have nothing to perform.
    #[inline(never)]
    fn perform_and_mark(&self, seen: u64, writer: usize, page: usize, marked: u64) {
        let Some(record) = self.records.get(writer) else { return };
        let page = record.page(page);
        // ORDERING: Relaxed: the Acquire of the head covers it. If it was overwritten since, `Commit::perform` sees
        // another head.
        self.perform(seen, page, page.len.load(Ordering::Relaxed) as usize);
        // A mark is changed as a word is. A late mark fails, because every thread that committed after `seen` has
        // marked it; the owner of the record has done so by a store.
        self.commit.perform(&self.head, seen, &record.performed, marked, seen);
    }

    /// Performs the `len` writes of the page that `seen` names, as long as the head is `seen`.
    #[inline(always)]
    pub(crate) fn perform(&self, seen: u64, page: &Page<WRITES>, len: usize) {
        self.commit.chosen(Performance { ics: self, seen, page, len });
    }

    /// Returns a word by its number, which must also fit into a page.
    #[inline]
    pub(crate) fn word(&self, index: usize) -> Option<&Word> {
        if index < W::COUNT { self.words.word(index) } else { None }
    }

    /// Returns the bits of a word in the state of the head `seen`.
    #[inline]
    pub(crate) fn read(&self, index: usize, seen: u64) -> Result<u64, Stop> {
        let word = self.word(index).ok_or(Stop::NoSuchWord)?;
        // ORDERING: Relaxed, like the value: the acquired head covers all that counts. If they are newer, the check of
        // the head below, which the fence keeps behind them, sees a newer head.
        let locator = word.locator.load(Ordering::Relaxed);
        let place = match locator_place(locator) {
            // The word's own place, which is the most frequent one when sections write few words.
            0 => &word.place,
            place => self.place(word, place ^ Self::home(index)),
        };
        let value = place.load(Ordering::Relaxed);
        self.validate(seen)?;
        Ok(value)
    }

    /// Checks whether everything read so far is from one instant.
    #[inline]
    pub(crate) fn validate(&self, seen: u64) -> Result<(), Stop> {
        #[cfg(test)]
        if Mutation::NoValidation.is_active() {
            return Ok(());
        }
        // ORDERING: the fence pairs with that of `Writer::begin`.
        fence(Ordering::Acquire);
        if self.head.load(Ordering::Relaxed) == seen { Ok(()) } else { Err(Stop::Conflict) }
    }

    /// Returns a place by its number. A number that no write ever had leads to some word's place; no locator leads
    /// there.
    #[inline]
    pub(crate) fn place<'a>(&'a self, some: &'a Word, number: usize) -> &'a AtomicU64 {
        match self.values.as_flattened().get(number) {
            Some(value) => value,
            None => self.word(number.wrapping_sub(Self::HOMES)).map_or(&some.place, |word| &word.place),
        }
    }

    /// The number of the first word's own place. The places of the words follow those of the writers.
    const HOMES: usize = WRITERS * WRITES;

    /// Returns the number of a word's own place, with which locators and writes combine their place by exclusive or.
    ///
    /// Zero in a locator thus means the word's own place.
    #[inline]
    pub(crate) const fn home(index: usize) -> usize {
        Self::HOMES.wrapping_add(index)
    }
}

/// The writes of a page, which the head `seen` names.
struct Performance<'s, W, const WRITERS: usize, const WRITES: usize, C> {
    ics: &'s Ics<W, WRITERS, WRITES, C>,
    seen: u64,
    page: &'s Page<WRITES>,
    len: usize,
}

impl<W: Words, const WRITERS: usize, const WRITES: usize, C: Commit> Work for Performance<'_, W, WRITERS, WRITES, C> {
    /// BOUND: WRITES.
    #[inline(always)]
    fn with(self, commit: &impl Commit) {
        let Self { ics, seen, page, len } = self;
        // ORDERING: Relaxed, here and below: the Acquire of the head covers all of them. If they were overwritten
        // since, `Commit::perform` sees another head.
        for write in page.writes.iter().take(len) {
            let write = write.load(Ordering::Relaxed);
            let Some(word) = ics.word(word_of(write)) else { return };
            let target = layout::locator(seen, write);
            let old = word.locator.load(Ordering::Relaxed);
            if old != target {
                commit.perform(&ics.head, seen, &word.locator, old, target);
            }
        }
    }
}
