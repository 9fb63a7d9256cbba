//! Writers: the right to write, with a record.

use crate::commit::Commit;
use crate::ics::Ics;
use crate::layout::{free_page, names, pending_page};
#[cfg(test)]
use crate::mutation::Mutation;
use crate::record::{CLAIMED, FREE, RESERVED, Record, Stats, count};
use crate::stop::Stop;
use crate::sync::fence;
use crate::transaction::Transaction;
use crate::view::View;
use crate::word::Words;
use core::sync::atomic::Ordering;
use crossbeam_utils::CachePadded;

/// The right to write sections of an object, with one of its records.
///
/// A thread has a writer for itself, or several threads that a lock serialises share one.
///
/// Sections of different objects may be nested; each commits by itself.
/// Sections of two writers of one object must not be nested: an inner section that commits invalidates the outer one,
/// each time.
///
/// # Examples
/// ```
/// use lockwright_ics::{Ics, Var, Word};
///
/// static SHARED: Ics<[Word; 1], 2, 1> = Ics::new([Word::new(5)]);
/// let mut writer = SHARED.writer().expect("two threads may write");
/// let before = writer.update(|section| {
///     let value: u64 = section.read(Var::new(0))?;
///     section.write(Var::new(0), value * 2)?;
///     Ok(value)
/// })?;
/// assert_eq!(before, 5);
/// # Ok::<(), lockwright_ics::Stop>(())
/// ```
#[derive(Debug)]
pub struct Writer<'s, W, const WRITERS: usize, const WRITES: usize, C> {
    ics: &'s Ics<W, WRITERS, WRITES, C>,
    index: usize,
    is_claimed: bool,
}

impl<W: Words, const WRITERS: usize, const WRITES: usize, C: Commit> Ics<W, WRITERS, WRITES, C> {
    /// Claims a free writer until it is dropped. Returns `None` if all are claimed.
    ///
    /// # Bound
    /// `WRITERS` attempts.
    #[must_use = "a writer becomes free when dropped"]
    pub fn writer(&self) -> Option<Writer<'_, W, WRITERS, WRITES, C>> {
        let claim = |record: &CachePadded<Record<WRITES>>| {
            // ORDERING: Acquire pairs with the Release of a writer's drop: its actions happen before.
            record.is_claimed.compare_exchange(FREE, CLAIMED, Ordering::Acquire, Ordering::Relaxed).is_ok()
        };
        self.records.iter().position(claim).map(|index| Writer::new(self, index, true))
    }

    /// Returns the writer of a number, claimed or not, and `None` if there is no such number.
    ///
    /// Threads that a lock serialises share a writer this way.
    /// It also takes over the writer of a thread that ended in a section.
    /// An attempt that the last user had begun is then either committed or without effect.
    ///
    /// # Safety
    /// While the returned writer lives, no other thread uses a writer of this number.
    /// All actions of its last user happen before this call.
    #[must_use]
    #[allow(unsafe_code)] // The caller guarantees the contract; the body is safe.
    pub unsafe fn shared_writer(&self, index: usize) -> Option<Writer<'_, W, WRITERS, WRITES, C>> {
        let record = self.records.get(index)?;
        // ORDERING: Relaxed: a later claim synchronises by the exchange of `writer`.
        if record.is_claimed.load(Ordering::Relaxed) == FREE {
            let _ = record.is_claimed.compare_exchange(FREE, CLAIMED, Ordering::Relaxed, Ordering::Relaxed);
        }
        Some(Writer::new(self, index, false))
    }

    /// Restores a writer that [`Ics::writer`] returned and `core::mem::forget` forgot. It becomes free when dropped.
    ///
    /// Returns `None` if there is no writer of this number.
    ///
    /// # Safety
    /// While the returned writer lives, no other thread uses a writer of this number.
    /// All actions of its last user happen before this call.
    #[must_use]
    #[allow(unsafe_code)] // The caller guarantees the contract; the body is safe.
    pub unsafe fn forgotten_writer(&self, index: usize) -> Option<Writer<'_, W, WRITERS, WRITES, C>> {
        (index < WRITERS).then(|| Writer::new(self, index, true))
    }

    /// Reserves the writer of a number for [`Ics::shared_writer`]: [`Ics::writer`] does not return it any more.
    ///
    /// A thread that has the writer keeps it, and does not free it on drop.
    pub fn reserve(&self, index: usize) {
        if let Some(record) = self.records.get(index) {
            // ORDERING: Relaxed: the users of a reserved writer synchronise by other means.
            record.is_claimed.store(RESERVED, Ordering::Relaxed);
        }
    }
}

impl<'s, W: Words, const WRITERS: usize, const WRITES: usize, C: Commit> Writer<'s, W, WRITERS, WRITES, C> {
    pub(crate) const fn new(ics: &'s Ics<W, WRITERS, WRITES, C>, index: usize, is_claimed: bool) -> Self {
        Self { ics, index, is_claimed }
    }

    /// Returns its number, which is below `WRITERS`.
    #[must_use]
    pub const fn index(&self) -> usize {
        self.index
    }

    /// Returns the object.
    #[must_use]
    pub const fn ics(&self) -> &'s Ics<W, WRITERS, WRITES, C> {
        self.ics
    }

    /// Returns the counts of this writer.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.record().stats()
    }

    #[inline]
    fn record(&self) -> &'s Record<WRITES> {
        &self.ics.records[self.index]
    }

    /// Executes a section until no other section commits during it, and commits its writes.
    ///
    /// Everything that `body` reads is from one instant, so it never computes with an inconsistent state.
    /// `body` may be executed several times, so it should have no effect except its writes and its result.
    /// A section that panics or returns an error changes nothing.
    ///
    /// # Errors
    /// The error of `body`, except [`Stop::Conflict`], which restarts it.
    ///
    /// # Bound
    /// Each attempt takes an entry, and there is one more attempt for each commit during the section.
    /// On one processor these are commits of more urgent threads. Use [`Writer::attempt`] to limit the attempts.
    #[inline]
    pub fn update<R>(
        &mut self,
        mut body: impl FnMut(&mut Transaction<'_, W, WRITERS, WRITES, C>) -> Result<R, Stop>,
    ) -> Result<R, Stop> {
        // BOUND: the commits of other threads.
        loop {
            match self.attempt(&mut body) {
                Err(Stop::Conflict) => {}
                done => return done,
            }
        }
    }

    /// Executes a section once, and commits its writes.
    ///
    /// # Errors
    /// [`Stop::Conflict`] if another commit invalidated the section, and the error of `body`. Nothing is changed then.
    #[inline]
    pub fn attempt<R>(
        &mut self,
        body: impl FnOnce(&mut Transaction<'_, W, WRITERS, WRITES, C>) -> Result<R, Stop>,
    ) -> Result<R, Stop> {
        // SAFETY: the attempt ends here.
        #[allow(unsafe_code)]
        let mut transaction = unsafe { self.begin() };
        let done = body(&mut transaction);
        transaction.end(done)
    }

    /// Queries as [`Ics::query`] does, and counts the attempts.
    ///
    /// # Errors
    /// The error of `body`, except [`Stop::Conflict`], which restarts it.
    pub fn query<R>(
        &mut self,
        mut body: impl FnMut(&View<'_, W, WRITERS, WRITES, C>) -> Result<R, Stop>,
    ) -> Result<R, Stop> {
        let counts = &self.record().counts;
        self.ics.query(|view| {
            count(&counts.queries);
            body(view)
        })
    }

    /// Enters: performs what is posted, and settles the last attempt of this writer.
    ///
    /// With [`Writer::end`], this is [`Writer::attempt`] without a closure.
    ///
    /// # Safety
    /// The writer has one attempt at a time: it ends ([`Writer::end`]), or is given up, before the writer is used
    /// again, released or dropped.
    #[doc(hidden)]
    #[inline(always)]
    #[allow(unsafe_code)] // The caller guarantees the contract; the body is safe.
    pub unsafe fn begin(&mut self) -> Transaction<'s, W, WRITERS, WRITES, C> {
        if let Some(transaction) = self.begin_at_once() {
            return transaction;
        }
        match self.begin_after_own() {
            Some(transaction) => transaction,
            None => self.enter(self.work_out_of_line()),
        }
    }

    /// Ends an attempt: commits, unless the body was not `done`.
    ///
    /// # Errors
    /// As [`Writer::attempt`].
    ///
    /// # Safety
    /// The attempt was begun by [`Writer::begin`], and has not ended.
    #[doc(hidden)]
    #[inline(always)]
    #[allow(unsafe_code)] // The caller guarantees the contract; the body is safe.
    pub unsafe fn end<R>(attempt: &Transaction<'_, W, WRITERS, WRITES, C>, done: Result<R, Stop>) -> Result<R, Stop> {
        attempt.end(done)
    }

    /// As [`Writer::begin`] if there is nothing to perform and to settle. Calls nothing.
    #[inline(always)]
    fn begin_at_once(&mut self) -> Option<Transaction<'s, W, WRITERS, WRITES, C>> {
        // ORDERING: as in `work`.
        let seen = self.ics.head.load(Ordering::Acquire);
        let is_settled = self.record().pending.load(Ordering::Relaxed) == 0;
        (is_settled && self.ics.unperformed(seen).is_none()).then(|| self.enter(seen))
    }

    /// As [`Writer::begin`] if the last commit was this writer's and wrote one word. Calls nothing, and returns `None`
    /// if the strategy does.
    ///
    /// An exchange waits for all earlier stores, also for those of the registers that a function with calls saves.
    #[inline(always)]
    fn begin_after_own(&mut self) -> Option<Transaction<'s, W, WRITERS, WRITES, C>> {
        // ORDERING: Acquire pairs with the Release of the commit.
        let seen = self.ics.head.load(Ordering::Acquire);
        // ORDERING: Relaxed: only this writer accesses this field.
        if seen == 0 || self.record().pending.load(Ordering::Relaxed) != seen || self.ics.commit.calls() {
            return None;
        }
        if self.pending_writes(seen) != 1 {
            return None;
        }
        self.settle_own(seen, 1);
        Some(self.enter(seen))
    }

    /// It returns a word and not the transaction, which would be copied in memory.
    #[inline(never)]
    fn work_out_of_line(&self) -> u64 {
        self.work()
    }

    /// Performs what is posted, and settles the last attempt of this writer. Returns the head.
    #[inline(always)]
    fn work(&self) -> u64 {
        let record = self.record();
        // ORDERING: Acquire pairs with the Release of the commit.
        let seen = self.ics.head.load(Ordering::Acquire);
        // ORDERING: Relaxed, here and below: only this writer accesses these fields.
        let pending = record.pending.load(Ordering::Relaxed);
        if pending == seen && pending != 0 {
            self.settle_own(seen, self.pending_writes(seen));
        } else {
            if self.ics.help(seen) && !names(seen, self.index) {
                count(&record.counts.helped);
            }
            if pending != 0 {
                // ORDERING: Relaxed: a thread that committed after this writer marked the commit before, or found the
                // mark, and the head covers it.
                let is_committed = record.performed.load(Ordering::Relaxed) == pending;
                self.settle(pending, is_committed.then(|| self.pending_writes(pending)));
            }
        }
        seen
    }

    /// Returns the number of writes of the last attempt.
    #[inline]
    fn pending_writes(&self, pending: u64) -> usize {
        // ORDERING: Relaxed: only this writer writes it.
        self.record().page(pending_page(pending)).len.load(Ordering::Relaxed) as usize
    }

    /// Performs, marks and settles the last commit, which is this writer's.
    #[inline(always)]
    fn settle_own(&self, seen: u64, writes: usize) {
        self.ics.perform(seen, self.record().page(pending_page(seen)), writes);
        self.mark_own(seen);
        self.settle(seen, Some(writes));
    }

    /// Begins an attempt on the state of the head `seen`, which is performed.
    #[inline(always)]
    fn enter(&self, seen: u64) -> Transaction<'s, W, WRITERS, WRITES, C> {
        let record = self.record();
        count(&record.counts.entries);
        // ORDERING: Release pairs with the Acquire fences of readers: a thread that reads what this writer writes into
        // its page and its spares from here on sees that the head has changed.
        fence(Ordering::Release);
        // ORDERING: Relaxed: only this writer accesses this field.
        Transaction::new(self.ics, record, self.index, seen, free_page(record.last.load(Ordering::Relaxed)))
    }

    /// Marks the last commit, which was this writer's, as performed.
    ///
    /// Another thread that performs it may mark it late.
    /// After the next commit of this writer, such a mark would claim that the next commit is not performed, and the
    /// thread that performed the next one would fail to mark it.
    /// The commit is therefore marked before there is a next one; then late marks of it and of earlier commits fail.
    #[inline]
    fn mark_own(&self, pending: u64) {
        #[cfg(test)]
        if Mutation::NoOwnMark.is_active() {
            return;
        }
        // ORDERING: Release pairs with the Acquire of `Ics::help`. A store is enough: only this writer posts heads that
        // name it, so there is no newer mark.
        self.record().performed.store(pending, Ordering::Release);
    }

    /// Settles the last attempt. If it has committed this number of writes, the pages change their roles, and the
    /// replaced places become spares.
    ///
    /// A repeated settlement does no harm, nor does one that is interrupted and then repeated.
    #[inline]
    fn settle(&self, pending: u64, committed: Option<usize>) {
        let record = self.record();
        #[cfg(test)]
        if Mutation::EarlySettle.is_active() {
            record.pending.store(0, Ordering::Release);
        }
        if let Some(writes) = committed {
            // ORDERING: Relaxed, here and below: only this writer accesses these fields.
            record.last.store(pending, Ordering::Relaxed);
            // BOUND: WRITES.
            for (spare, replaced) in record.spares.iter().zip(&record.replaced).take(writes) {
                spare.store(replaced.load(Ordering::Relaxed), Ordering::Relaxed);
            }
        }
        // ORDERING: Release keeps this store behind those above: the successor of a killed owner settles everything
        // again, or finds it settled.
        record.pending.store(0, Ordering::Release);
    }
}

impl<W, const WRITERS: usize, const WRITES: usize, C> Drop for Writer<'_, W, WRITERS, WRITES, C> {
    fn drop(&mut self) {
        if self.is_claimed {
            // ORDERING: Release pairs with the Acquire of the next claim. A writer that was reserved meanwhile stays
            // reserved.
            let is_claimed = &self.ics.records[self.index].is_claimed;
            let _ = is_claimed.compare_exchange(CLAIMED, FREE, Ordering::Release, Ordering::Relaxed);
        }
    }
}
