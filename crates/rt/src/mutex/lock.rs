//! Locking a mutex: without contention, and otherwise from top to bottom.

use super::ceiling;
use super::cycle::Cycle;
use super::error::{Acquired, Limit, RawError};
use super::kind::{CHECKED, ERROR_CHECK, INHERIT, PROTECT, RECURSIVE, ROBUST, SLOW, TYPE};
use super::raw::RawMutex;
use super::word::{FREE, owner};
use lockwright_sys::block::block;
use lockwright_sys::robust::List;
use lockwright_sys::sched::{Tid, gettid};
use lockwright_sys::{KeepErrno, held};
use std::sync::atomic::Ordering;

/// How the caller comes by the word.
#[derive(Clone, Copy)]
enum Way {
    /// It asks for the word, so long.
    Asks(Limit),
    /// It waited for the word of one that does not inherit already.
    Waited {
        /// Whether it was woken.
        was_woken: bool,
    },
    /// The kernel has given it the word of one that inherits.
    Given,
}

impl RawMutex {
    /// Takes the mutex.
    ///
    /// # Errors
    /// See [`RawError`].
    ///
    /// # Bound
    /// Without contention one exchange of the word, where the kind has no more to do. Otherwise `limit`, and until those before give back.
    #[inline]
    pub fn lock(&self, limit: Limit) -> Result<Acquired, RawError> {
        if self.lock_uncontended() { Ok(Acquired::Clean) } else { self.lock_slow(limit) }
    }

    /// Takes it if it is free and healthy, and its kind lets that be done here. Says whether it came; where not, [`RawMutex::lock`] knows why.
    ///
    /// An exchange of the word waits for all stores before it, also those of a call and of the registers saved for one. So this is inlined, and
    /// whatever is called is called last.
    #[inline(always)]
    pub fn lock_uncontended(&self) -> bool {
        let kind = self.kind();
        match block() {
            Some(block) if kind & SLOW == 0 => self.lock_plain(Tid(block.tid()), kind),
            Some(block) if kind & SLOW == ROBUST => self.lock_linked(List::of(block), Tid(block.tid()), kind),
            _ => self.lock_uncontended_asking(kind),
        }
    }

    /// With calls for what is not at hand.
    #[inline(never)]
    fn lock_uncontended_asking(&self, kind: u32) -> bool {
        match kind & SLOW {
            0 => self.lock_plain(gettid(), kind),
            ROBUST => List::of_this_thread().is_ok_and(|list| self.lock_linked(list, gettid(), kind)),
            PROTECT => self.lock_protected(gettid()),
            _ => false,
        }
    }

    #[inline(always)]
    pub(super) fn lock_free_word(&self, me: Tid) -> bool {
        // ORDERING: Acquire pairs with the Release of the unlock.
        self.word.compare_exchange(FREE, me.0, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Takes one of those that nothing else is done for, if it is free. What inherits is counted.
    #[inline(always)]
    fn lock_plain(&self, me: Tid, kind: u32) -> bool {
        let is_taken = self.lock_free_word(me);
        if is_taken && kind & INHERIT != 0 {
            held::took_one();
        }
        is_taken
    }

    #[cold]
    fn lock_slow(&self, limit: Limit) -> Result<Acquired, RawError> {
        let _errno = KeepErrno::now();
        let (me, kind) = (gettid(), self.kind());
        // ORDERING: Relaxed: who reads its own id there wrote it.
        if owner(self.word.load(Ordering::Relaxed)) == me.0 {
            match (kind & TYPE, limit) {
                (RECURSIVE, _) => return self.lock_again(),
                (_, Limit::Now) => return Err(RawError::Busy),
                (ERROR_CHECK, _) => {
                    return Err(RawError::Deadlock((kind & CHECKED != 0).then(|| Cycle::of_one(me, self))));
                }
                _ => {}
            }
        }
        let risen = self.rise(kind)?;
        let locked = self.lock_risen(me, kind, Way::Asks(limit));
        self.settle_ceiling(me, kind, risen, locked)
    }

    fn lock_again(&self) -> Result<Acquired, RawError> {
        // ORDERING: Relaxed, here and below: only the owner reads and writes it.
        let depth = self.depth.load(Ordering::Relaxed).checked_add(1).ok_or(RawError::TooOften)?;
        self.depth.store(depth, Ordering::Relaxed);
        Ok(Acquired::Clean)
    }

    /// Locks it at the level that the caller has: gets the word, and links it or counts it.
    fn lock_risen(&self, me: Tid, kind: u32, way: Way) -> Result<Acquired, RawError> {
        let list = self.begin_linking(kind)?;
        let inherits = kind & INHERIT != 0;
        let locked = match way {
            Way::Asks(limit) if inherits => self.lock_inheriting(me, kind, limit),
            Way::Asks(limit) => self.wait_for_word(me, kind, limit, None),
            Way::Waited { was_woken } => self.wait_for_word(me, kind, Limit::Never, Some(was_woken)),
            Way::Given => Ok(self.settle_inherited()),
        };
        if let Some(list) = list {
            return self.end_linking(list, me, kind, locked);
        }
        if inherits && locked.is_ok() {
            held::took_one();
        }
        locked
    }

    /// Settles at the ceiling of the moment it was locked, for its owner may have changed it since the caller rose; falls where it was not locked.
    fn settle_ceiling(
        &self,
        me: Tid,
        kind: u32,
        risen: Option<u8>,
        locked: Result<Acquired, RawError>,
    ) -> Result<Acquired, RawError> {
        let Some(risen) = risen else { return locked };
        let now = self.ceiling();
        let acquired = locked.inspect_err(|_| ceiling::fall(risen))?;
        if now == risen {
            return Ok(acquired);
        }
        let settled = ceiling::rise(now);
        if settled.is_err() {
            self.pass_on(me, kind, acquired)?;
        }
        ceiling::fall(risen);
        settled.map(|()| acquired)
    }

    /// Locks a mutex that does not inherit, after a wait that may have been for it, behind others or before them.
    pub(super) fn lock_after_wait(&self, was_woken: bool) -> Result<Acquired, RawError> {
        let (me, kind) = (gettid(), self.kind());
        match self.rise(kind) {
            Ok(risen) => {
                let locked = self.lock_risen(me, kind, Way::Waited { was_woken });
                self.settle_ceiling(me, kind, risen, locked)
            }
            Err(error) => {
                // It could not rise. But it may have been handed the mutex, or woken in the place of others: it goes on to them.
                let acquired = self.lock_risen(me, kind, Way::Waited { was_woken })?;
                self.pass_on(me, kind, acquired)?;
                Err(error)
            }
        }
    }

    /// The kernel has made the caller the owner of a mutex that inherits.
    pub(super) fn settle_moved(&self) -> Result<Acquired, RawError> {
        self.lock_risen(gettid(), self.kind(), Way::Given)
    }

    /// Another ceiling, a level of SCHED_FIFO, for those that protect. Says which it had. Who does not have the mutex takes it for that, whatever
    /// its own level is; of one whose owner ended, the next who locks it is told so.
    ///
    /// # Errors
    /// [`RawError::BadKind`] where it does not protect, or for what is no level; [`RawError::AboveCeiling`] where the caller has the mutex and
    /// is more urgent than the new ceiling; those of [`RawMutex::lock`]. The ceiling is as it was then.
    ///
    /// # Bound
    /// That of [`RawMutex::lock`].
    pub fn set_ceiling(&self, ceiling: u8) -> Result<u8, RawError> {
        let (me, kind) = (gettid(), self.kind());
        if kind & PROTECT == 0 || !ceiling::is_level(ceiling) {
            return Err(RawError::BadKind);
        }
        // ORDERING: Relaxed, here and below: the mutex orders it.
        if self.owner() == me.0 {
            // It falls by the ceiling that it finds when it gives back: it must have risen by that one.
            ceiling::rise(ceiling)?;
            let before = self.ceiling.swap(ceiling, Ordering::Relaxed);
            ceiling::fall(before);
            return Ok(before);
        }
        let acquired = self.lock_risen(me, kind, Way::Asks(Limit::Never))?;
        let before = self.ceiling.swap(ceiling, Ordering::Relaxed);
        self.pass_on(me, kind, acquired)?;
        Ok(before)
    }
}
