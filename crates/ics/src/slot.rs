//! Who writes: a slot, with a record of its own.

use crate::commit::Commit;
use crate::ics::{Ics, free_page, names, next};
use crate::left_out::{Part, is_left_out};
use crate::record::{CLAIMED, FREE, Record, Stats, count};
use crate::sync::fence;
use crate::transaction::{Stop, Transaction, View};
use crate::value::Words;
use core::sync::atomic::Ordering;

/// The right to write sections of an object, with one of its records: a thread's, or that of several which a lock serialises.
///
/// Sections of different objects may be nested: each commits by itself. Of two slots of one object, an inner section that commits
/// makes the outer one restart, each time anew: do not.
#[derive(Debug)]
pub struct Slot<'s, W, const SLOTS: usize, const WRITES: usize, C> {
    ics: &'s Ics<W, SLOTS, WRITES, C>,
    index: usize,
    is_claimed: bool,
}

impl<'s, W: Words, const SLOTS: usize, const WRITES: usize, C: Commit> Slot<'s, W, SLOTS, WRITES, C> {
    pub(crate) const fn new(ics: &'s Ics<W, SLOTS, WRITES, C>, index: usize, is_claimed: bool) -> Self {
        Self { ics, index, is_claimed }
    }

    /// Its number, below `SLOTS`.
    #[must_use]
    pub const fn index(&self) -> usize {
        self.index
    }

    /// The object.
    #[must_use]
    pub const fn ics(&self) -> &'s Ics<W, SLOTS, WRITES, C> {
        self.ics
    }

    /// What it did.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.record().stats()
    }

    #[inline]
    fn record(&self) -> &'s Record<WRITES> {
        &self.ics.records[self.index]
    }

    /// Executes a section, again and again until no other one commits in between, and commits what it wrote.
    ///
    /// What `body` reads is consistent at each instant: it never computes with a state that was not. It should have no other effect
    /// than what it writes and returns, for it may be executed several times. If it panics, or stops by itself, nothing is changed.
    ///
    /// # Errors
    /// What `body` stops with, but for [`Stop::Conflict`].
    ///
    /// # Bound
    /// That of an entry for each attempt; one attempt more for each time another commit comes between. On one processor those come from more urgent threads
    /// alone; use [`Slot::attempt`] to count.
    #[inline]
    pub fn update<R>(
        &mut self,
        mut body: impl FnMut(&mut Transaction<'_, W, SLOTS, WRITES, C>) -> Result<R, Stop>,
    ) -> Result<R, Stop> {
        // BOUND: the commits of others.
        loop {
            match self.attempt(&mut body) {
                Err(Stop::Conflict) => {}
                done => return done,
            }
        }
    }

    /// The same, once.
    ///
    /// # Errors
    /// [`Stop::Conflict`] where another commit came between, and what `body` stops with. Nothing is changed then.
    #[inline]
    pub fn attempt<R>(
        &mut self,
        body: impl FnOnce(&mut Transaction<'_, W, SLOTS, WRITES, C>) -> Result<R, Stop>,
    ) -> Result<R, Stop> {
        let record = self.record();
        let mut transaction = self.begin();
        let done = body(&mut transaction);
        match done {
            Ok(result) => self.end(&transaction).map(|()| result),
            Err(stop) => {
                if stop == Stop::Conflict {
                    count(&record.counts.restarts);
                }
                Err(stop)
            }
        }
    }

    /// As [`Ics::query`], counted.
    ///
    /// # Errors
    /// What `body` stops with, but for [`Stop::Conflict`].
    pub fn query<R>(
        &mut self,
        mut body: impl FnMut(&View<'_, W, SLOTS, WRITES, C>) -> Result<R, Stop>,
    ) -> Result<R, Stop> {
        let counts = &self.record().counts;
        self.ics.query(|view| {
            count(&counts.queries);
            body(view)
        })
    }

    /// Enters: performs what is posted, and settles what this slot did last.
    #[inline]
    fn begin(&mut self) -> Transaction<'s, W, SLOTS, WRITES, C> {
        let record = self.record();
        count(&record.counts.entries);
        // ORDERING: Acquire pairs with the Release of the commit.
        let seen = self.ics.head.load(Ordering::Acquire);
        // ORDERING: Relaxed, here and below: this slot's own.
        let pending = record.pending.load(Ordering::Relaxed);
        if pending == seen && pending != 0 {
            // The last commit was this slot's. Who else performs it may mark that late: after this slot's next commit such a mark would say that the next is not performed, and
            // the one who performed the next would fail to say that it is. So it is marked before there is a next; from then on late marks of this commit, and of those before, fail.
            self.ics.perform(seen, self.index, pending_page(pending));
            if !is_left_out(Part::OwnMark) {
                // ORDERING: Release pairs with the Acquire of `Ics::help`. A store is enough: only this slot posts heads that name it, so no newer mark is there.
                record.performed.store(pending, Ordering::Release);
            }
            self.settle(pending, true);
        } else {
            if self.ics.help(seen) && !names(seen, self.index) {
                count(&record.counts.helped);
            }
            if pending != 0 {
                // ORDERING: Relaxed: who committed after this slot marked it before, or found it marked, and the head has that.
                self.settle(pending, record.performed.load(Ordering::Relaxed) == pending);
            }
        }
        // ORDERING: Release pairs with the Acquire fences of readers: who reads what this slot writes into its page and its spares from here on
        // sees that the head has changed.
        if !is_left_out(Part::WriterFence) {
            fence(Ordering::Release);
        }
        Transaction::new(self.ics, record, self.index, seen, free_page(record.last.load(Ordering::Relaxed)))
    }

    /// The last attempt is committed, and what it replaced is spare, for the pages change their parts; or it is not. Doing it twice, or a part of it and then all,
    /// does no harm.
    #[inline]
    fn settle(&self, pending: u64, is_committed: bool) {
        let record = self.record();
        if is_left_out(Part::SettleBefore) {
            record.pending.store(0, Ordering::Release);
        }
        if is_committed {
            // ORDERING: Relaxed: this slot's own.
            record.last.store(pending, Ordering::Relaxed);
        }
        // ORDERING: Release keeps it behind: a successor of an owner that was killed settles all of it anew, or finds it settled.
        record.pending.store(0, Ordering::Release);
    }

    /// Commits.
    #[inline]
    fn end(&mut self, transaction: &Transaction<'_, W, SLOTS, WRITES, C>) -> Result<(), Stop> {
        let record = self.record();
        if transaction.len == 0 {
            // The body may have taken a conflict for a value.
            return self.ics.validate(transaction.seen).inspect_err(|_| count(&record.counts.restarts));
        }
        let new = next(transaction.seen, self.index, transaction.named_page);
        // ORDERING: Relaxed: the commit releases the page. Release: what is pending is told with its page, before it is posted; see `settle`.
        transaction.keep_rest();
        record.pages[transaction.named_page].len.store(transaction.len as u32, Ordering::Relaxed);
        if !is_left_out(Part::NoteBefore) {
            record.pending.store(new, Ordering::Release);
        }
        let is_posted = self.ics.commit.post(&self.ics.head, transaction.seen, new);
        if is_left_out(Part::NoteBefore) {
            record.pending.store(new, Ordering::Release);
        }
        if is_posted {
            count(&record.counts.commits);
            Ok(())
        } else {
            count(&record.counts.conflicts);
            Err(Stop::Conflict)
        }
    }
}

/// The page a head of one's own names.
#[inline]
const fn pending_page(pending: u64) -> usize {
    ((pending - 1) % 2) as usize
}

impl<W, const SLOTS: usize, const WRITES: usize, C> Drop for Slot<'_, W, SLOTS, WRITES, C> {
    fn drop(&mut self) {
        if self.is_claimed {
            // ORDERING: Release pairs with the Acquire of who claims it next. One that was reserved meanwhile stays so.
            let is_claimed = &self.ics.records[self.index].is_claimed;
            let _ = is_claimed.compare_exchange(CLAIMED, FREE, Ordering::Release, Ordering::Relaxed);
        }
    }
}
