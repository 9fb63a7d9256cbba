//! The object: a head that is the version and names the record posted last, words, and a record a slot.
//!
//! ```text
//!   head       | version, 48 bits | slot and page + 1, 16 bits |           one compare-and-swap: commit, count, and publish
//!   locator    | version, 48 bits | place of the value |                   of each word: who put it there
//!   places     of WRITES values a slot, and of one a word                  each is either a word's, or a slot's spare
//!
//!   enter      head := h. Its record not performed yet: for each write of it
//!                  locator (older, p) -> (h, q)         if head is h still; once, whoever tries, however late
//!   write      value into a spare q; (word, q) into my page that is not posted
//!   read       locator, value, then head: h still?      else restart
//!   commit     head h -> (version + 1, me)              else restart
//!   next entry what my writes replaced are my spares
//! ```
//!
//! Why a helper that was preempted in the middle and goes on much later harms nobody: before it changes a locator it has read it, and then seen the head
//! to be `h`, so what it read was older than `h`. Whoever commits after `h` has performed all of `h` before. So once the head has changed, the
//! locator has as well; no locator ever comes back, for a version is given once; and the helper's compare-and-swap fails.
//!
//! Why a slot knows what became of its last attempt: whoever commits after a head `h` has marked `h` as performed in its record, or has found it marked; the owner of the record as
//! all others. Marks are changed as locators are, so once the head is no longer `h` no late mark changes anything, and the record says `h` until its slot commits again.
//!
//! Why a page may be written again: its slot writes the page that it did not post last. That one was posted before some later commit of the same slot, so the head
//! has changed since; who still reads it looks at the head before it does anything.
//!
//! Why a place may be written again: it is a spare of a slot whose commit replaced it, and which has entered again since: that commit is performed,
//! no locator leads there, and the head has changed since one did; who still reads it looks at the head before it believes.
//!
//! Versions run over after 2^48 commits (a commit every 10 ns for a month). A helper that stands still for exactly so many, in the instant between its look at the head and its
//! change, and whose word is back at exactly the place it had, would undo a write.

use crate::commit::{Commit, Locked};
use crate::left_out::{Part, is_left_out};
use crate::record::{CLAIMED, FREE, RESERVED, Record, Stats};
use crate::slot::Slot;
use crate::sync::{AtomicU64, array, constructor, fence};
use crate::transaction::{Stop, View};
use crate::value::{Word, Words};
use core::sync::atomic::Ordering;
use crossbeam_utils::CachePadded;

/// Bits of a place, or of slot and page.
const LOW_BITS: u32 = 16;
const LOW: u64 = (1 << LOW_BITS) - 1;
/// Most places, words and spares.
pub const PLACES_MAX: usize = 1 << LOW_BITS;
/// Most slots of an object.
pub const SLOTS_MAX: usize = (1 << (LOW_BITS - 1)) - 1;

/// Shared words, and sections on them that are interrupted rather than waited for.
///
/// `SLOTS` threads may have a slot, to write; whoever likes may query. A section writes `WRITES` words at most. How commits are decided is `C`, see
/// [`Commit`]; [`Locked`] is right everywhere.
///
/// With [`Locked`], bits that are all zeros are an object whose words are zero.
///
/// # Bound
/// An entry performs the writes of one record at most, `WRITES` conditional stores and one more, and takes over as many places. A read is a few loads; one of a word that the section
/// wrote itself looks through its writes. A commit is one conditional store. A section is repeated only if another one committed
/// between its entry and its own commit.
///
/// # Examples
/// ```
/// use lockwright_ics::{Ics, Var, Word};
///
/// const LEFT: Var<u64> = Var::new(0);
/// const RIGHT: Var<u64> = Var::new(1);
/// static SHARED: Ics<[Word; 2], 4, 2> = Ics::new([Word::new(100), Word::new(0)]);
///
/// let mut slot = SHARED.slot().expect("four threads may have one");
/// slot.update(|section| {
///     let left = section.read(LEFT)?;
///     section.write(LEFT, left - 30)?;
///     let right = section.read(RIGHT)?;
///     section.write(RIGHT, right + 30)
/// })?;
/// assert_eq!(SHARED.query(|view| Ok(view.read(LEFT)? + view.read(RIGHT)?))?, 100);
/// # Ok::<(), lockwright_ics::Stop>(())
/// ```
#[derive(Debug)]
pub struct Ics<W, const SLOTS: usize, const WRITES: usize, C = Locked> {
    pub(crate) head: CachePadded<AtomicU64>,
    pub(crate) commit: C,
    pub(crate) words: W,
    pub(crate) records: [CachePadded<Record<WRITES>>; SLOTS],
    values: [[AtomicU64; WRITES]; SLOTS],
}

impl<W: Words, const SLOTS: usize, const WRITES: usize> Ics<W, SLOTS, WRITES> {
    constructor! {
        /// For threads on whatever processors.
        #[must_use]
        pub fn new(words: W) -> Self {
            Self::with(words, Locked)
        }
    }
}

impl<W: Words, const SLOTS: usize, const WRITES: usize, C> Ics<W, SLOTS, WRITES, C> {
    const FITS: () = {
        assert!(1 <= SLOTS && SLOTS <= SLOTS_MAX, "an object has 1 to SLOTS_MAX slots");
        assert!(1 <= WRITES && WRITES <= PLACES_MAX, "a section writes a word at least");
        assert!(W::COUNT + SLOTS * WRITES <= PLACES_MAX, "too many places: words + slots * writes");
    };

    constructor! {
        /// With another strategy.
        #[must_use]
        pub fn with(words: W, commit: C) -> Self {
            const { Self::FITS };
            Self {
                head: CachePadded::new(AtomicU64::new(0)),
                commit,
                words,
                records: array!(CachePadded::new(Record::new())),
                values: array!(array!(AtomicU64::new(0))),
            }
        }
    }

    /// The strategy.
    pub const fn commit(&self) -> &C {
        &self.commit
    }
}

/// Of a head: its slot and page, if it names one.
#[inline]
fn posted(head: u64) -> Option<(usize, usize)> {
    let named = (head & LOW).checked_sub(1)? as usize;
    Some((named / 2, named % 2))
}

impl<W: Words, const SLOTS: usize, const WRITES: usize, C: Commit> Ics<W, SLOTS, WRITES, C> {
    /// A slot nobody has, until dropped; `None` where all are taken.
    ///
    /// # Bound
    /// SLOTS.
    pub fn slot(&self) -> Option<Slot<'_, W, SLOTS, WRITES, C>> {
        let claim = |record: &CachePadded<Record<WRITES>>| {
            // ORDERING: Acquire pairs with the Release of a slot's drop: what it did happens before.
            record.is_claimed.compare_exchange(FREE, CLAIMED, Ordering::Acquire, Ordering::Relaxed).is_ok()
        };
        self.records.iter().position(claim).map(|index| Slot::new(self, index, true))
    }

    /// The slot of a number, claimed or not: to be shared by those that a lock serialises, or taken over from a thread that ended in the
    /// middle of a section. `None` where there is none.
    ///
    /// Whatever its last user had begun is as if it had not begun, or is committed.
    ///
    /// # Safety
    /// As long as it lives, nobody else uses a slot of this number, and what its last user did happens before.
    #[allow(unsafe_code)] // It says what the caller must promise; nothing unsafe is done.
    pub unsafe fn shared_slot(&self, index: usize) -> Option<Slot<'_, W, SLOTS, WRITES, C>> {
        let record = self.records.get(index)?;
        // ORDERING: Relaxed: whoever claims it later comes by the exchange of `slot`.
        if record.is_claimed.load(Ordering::Relaxed) == FREE {
            let _ = record.is_claimed.compare_exchange(FREE, CLAIMED, Ordering::Relaxed, Ordering::Relaxed);
        }
        Some(Slot::new(self, index, false))
    }

    /// A slot that [`Ics::slot`] gave and that was forgotten (`core::mem::forget`): dropped, it is given back. `None` where there is none of the number.
    ///
    /// # Safety
    /// As [`Ics::shared_slot`].
    #[allow(unsafe_code)] // It says what the caller must promise; nothing unsafe is done.
    pub unsafe fn forgotten_slot(&self, index: usize) -> Option<Slot<'_, W, SLOTS, WRITES, C>> {
        (index < SLOTS).then(|| Slot::new(self, index, true))
    }

    /// From now on [`Ics::slot`] gives the slot of this number to nobody: it is for [`Ics::shared_slot`]. Who has it keeps it, and does not give it back when it is dropped.
    pub fn reserve(&self, index: usize) {
        if let Some(record) = self.records.get(index) {
            // ORDERING: Relaxed: who uses it is told by other means.
            record.is_claimed.store(RESERVED, Ordering::Relaxed);
        }
    }

    /// What the slot of a number did, whoever had it.
    pub fn stats(&self, index: usize) -> Option<Stats> {
        Some(self.records.get(index)?.stats())
    }

    /// Reads a consistent state: all that `body` reads was so at one instant. Forces nobody to restart.
    ///
    /// `body` is executed again as often as another commit comes between; it should have no other effect than what it returns.
    ///
    /// # Errors
    /// What `body` stops with, but for [`Stop::Conflict`].
    ///
    /// # Bound
    /// That of an entry for each attempt; one attempt more for each time commits come between.
    pub fn query<R>(&self, mut body: impl FnMut(&View<'_, W, SLOTS, WRITES, C>) -> Result<R, Stop>) -> Result<R, Stop> {
        // BOUND: the commits of others.
        loop {
            let view = self.view();
            match body(&view) {
                // The body may have taken a conflict for a value.
                Ok(result) if self.validate(view.seen()).is_ok() => return Ok(result),
                Ok(_) | Err(Stop::Conflict) => {}
                stopped => return stopped,
            }
        }
    }

    /// One attempt.
    fn view(&self) -> View<'_, W, SLOTS, WRITES, C> {
        // ORDERING: Acquire pairs with the Release of the commit.
        let seen = self.head.load(Ordering::Acquire);
        self.help(seen);
        View::new(self, seen)
    }

    /// Sees to it that what is posted is performed. Says whether there was something to do.
    #[inline]
    pub(crate) fn help(&self, seen: u64) -> bool {
        let Some((slot, page)) = posted(seen) else { return false };
        let performed = &self.records[slot].performed;
        // ORDERING: Acquire pairs with the Release of who marked it: what it performed is seen.
        let marked = performed.load(Ordering::Acquire);
        if marked == seen {
            return false;
        }
        self.perform_and_mark(seen, slot, page, marked);
        true
    }

    /// Out of the way of entries that find nothing to do.
    #[inline(never)]
    fn perform_and_mark(&self, seen: u64, slot: usize, page: usize, marked: u64) {
        self.perform(seen, slot, page);
        // A mark is performed as a word is. A late one fails: whoever committed after `seen` has marked it, the owner of the record, too, who does that by a store.
        self.commit.perform(&self.head, seen, &self.records[slot].performed, marked, seen);
    }

    /// Performs the writes of the record that `seen` names, as long as the head is `seen`.
    ///
    /// BOUND: WRITES.
    #[inline(never)]
    pub(crate) fn perform(&self, seen: u64, slot: usize, page: usize) {
        let page = &self.records[slot].pages[page];
        // ORDERING: Relaxed, here and below: the Acquire of the head has them all; where they were overwritten since, `Commit::perform` sees another head.
        let len = page.len.load(Ordering::Relaxed) as usize;
        for write in page.writes.iter().take(len) {
            let write = write.load(Ordering::Relaxed);
            let Some(word) = self.word(word_of(write)) else { return };
            let target = seen & !LOW | place_of(write) as u64;
            let old = word.locator.load(Ordering::Relaxed);
            if old == target {
                continue;
            }
            if is_left_out(Part::StaleHelper) {
                word.locator.store(target, Ordering::Release);
                continue;
            }
            self.commit.perform(&self.head, seen, &word.locator, old, target);
        }
    }

    /// A word by its number, which has to fit into a page, too.
    #[inline]
    pub(crate) fn word(&self, index: usize) -> Option<&Word> {
        if index < W::COUNT { self.words.word(index) } else { None }
    }

    /// The bits of a word in the state that `seen` counts.
    #[inline]
    pub(crate) fn read(&self, index: usize, seen: u64) -> Result<u64, Stop> {
        let word = self.word(index).ok_or(Stop::NoSuchWord)?;
        // ORDERING: Relaxed, as the value: what counts is in the head that was acquired; if they are newer, the look at the head below, which the fence
        // keeps behind them, sees a newer one.
        let locator = word.locator.load(Ordering::Relaxed);
        let place = match locator_place(locator) {
            // The word's own: of most words, where sections write few.
            0 => &word.place,
            place => self.place(word, place ^ Self::home(index)),
        };
        let value = place.load(Ordering::Relaxed);
        self.validate(seen)?;
        Ok(value)
    }

    /// Whether all that was read so far was so at one instant.
    #[inline]
    pub(crate) fn validate(&self, seen: u64) -> Result<(), Stop> {
        // ORDERING: the fence pairs with that of `Slot::begin`.
        if !is_left_out(Part::ReaderFence) {
            fence(Ordering::Acquire);
        }
        if self.head.load(Ordering::Relaxed) == seen || is_left_out(Part::Validation) {
            Ok(())
        } else {
            Err(Stop::Conflict)
        }
    }

    /// A place by its number. One that no write ever had is some word's: nobody is misled, for nobody is led there.
    #[inline]
    pub(crate) fn place<'a>(&'a self, some: &'a Word, number: usize) -> &'a AtomicU64 {
        match self.values.as_flattened().get(number) {
            Some(value) => value,
            None => self.word(number.wrapping_sub(Self::HOMES)).map_or(&some.place, |word| &word.place),
        }
    }

    /// The first of the words' own places: they come behind those of the slots.
    const HOMES: usize = SLOTS * WRITES;

    /// What the number of a place is combined with where a word leads to it: zero then means the word's own place. Doing it twice gives the number again.
    #[inline]
    pub(crate) const fn home(index: usize) -> usize {
        Self::HOMES.wrapping_add(index)
    }
}

/// Whether a head names this slot.
#[inline]
pub(crate) fn names(head: u64, slot: usize) -> bool {
    posted(head).is_some_and(|(named, _)| named == slot)
}

/// A write, as a page has it.
#[inline]
pub(crate) const fn pack(word: usize, place: usize) -> u32 {
    (word as u32) << LOW_BITS | place as u32
}

/// What a slot posts after `seen`.
#[inline]
pub(crate) const fn next(seen: u64, slot: usize, page: usize) -> u64 {
    (seen & !LOW).wrapping_add(1 << LOW_BITS) | (slot * 2 + page + 1) as u64
}

/// The page that a slot may write: the one it did not post last.
#[inline]
pub(crate) fn free_page(last: u64) -> usize {
    match posted(last) {
        Some((_, page)) if is_left_out(Part::SecondPage) => page,
        Some((_, page)) => 1 - page,
        None => 0,
    }
}

/// Of a locator: its place, combined with the word's [`Ics::home`].
#[inline]
pub(crate) const fn locator_place(locator: u64) -> usize {
    (locator & LOW) as usize
}

/// Of a write: its word.
#[inline]
pub(crate) const fn word_of(write: u32) -> usize {
    (write >> LOW_BITS) as usize
}

/// Of a write: its place, combined with the word's [`Ics::home`].
#[inline]
pub(crate) const fn place_of(write: u32) -> usize {
    (write & LOW as u32) as usize
}
