//! Locking a mutex: without contention, and otherwise from top to bottom.

use super::at_once::AtOnce;
use super::attributes::{CHECKED, COUNTED, ERROR_CHECK, INHERIT, PROTECT, RECURSIVE, ROBUST, SLOW, TYPE};
use super::ceiling;
use super::cycle::Cycle;
use super::error::{Acquired, Limit, RawError};
use super::raw::RawMutex;
use super::word::{FREE, owner};
use lockwright_sys::block::block;
use lockwright_sys::robust::List;
use lockwright_sys::sched::{Tid, gettid};
use lockwright_sys::{KeepErrno, held};
use std::sync::atomic::Ordering;

/// How the caller gets the word.
#[derive(Clone, Copy)]
enum Way {
    /// It requests the word, within this limit.
    Asks(Limit),
    /// It has already waited for the word of a mutex that does not inherit.
    Waited {
        /// Within this limit it may wait further.
        limit: Limit,
        /// Whether it was woken.
        was_woken: bool,
    },
    /// The kernel has given it the word of a mutex that inherits.
    Given,
}

impl RawMutex {
    /// Locks the mutex.
    ///
    /// # Errors
    /// See [`RawError`].
    ///
    /// # Bound
    /// Without contention, one exchange of the word, plus the extra work of robust mutexes and ceilings. Otherwise
    /// until `limit`, or until the owner and the waiters before the caller unlock.
    #[inline]
    pub fn lock(&self, limit: Limit) -> Result<Acquired, RawError> {
        if self.lock_uncontended() { Ok(Acquired::Clean) } else { self.lock_slow(limit) }
    }

    /// Locks the mutex if it is free and recoverable and its attributes allow a lock without waiting here. Returns
    /// whether it is locked; if not, [`RawMutex::lock`] finds out why.
    #[inline(always)]
    pub fn lock_uncontended(&self) -> bool {
        match self.lock_at_once() {
            AtOnce::Done => true,
            came => self.lock_uncontended_asking(came),
        }
    }

    /// Locks the mutex if one exchange of the word and stores of the caller suffice. After any other result,
    /// [`RawMutex::finish_lock`] continues.
    ///
    /// An exchange of the word waits for all earlier stores, including those of a call and of the registers saved for
    /// it. So this function is inlined, and calls nothing.
    #[inline(always)]
    pub fn lock_at_once(&self) -> AtOnce {
        let attributes = self.attributes();
        match block() {
            Some(block) if attributes & SLOW == 0 => AtOnce::of(self.lock_plain(Tid(block.tid()), attributes)),
            Some(block) if attributes & SLOW == ROBUST => {
                List::begin_in(block, &self.node, attributes & INHERIT != 0);
                self.lock_announced(List::of(block), Tid(block.tid()), attributes)
            }
            _ => AtOnce::Not,
        }
    }

    /// Continues a lock after [`RawMutex::lock_at_once`] has not locked the mutex.
    ///
    /// # Errors
    /// See [`RawError`].
    pub fn finish_lock(&self, came: AtOnce, limit: Limit) -> Result<Acquired, RawError> {
        if self.lock_uncontended_asking(came) { Ok(Acquired::Clean) } else { self.lock_slow(limit) }
    }

    /// Out-of-line variant: looks up the thread id and the robust list.
    #[inline(never)]
    fn lock_uncontended_asking(&self, came: AtOnce) -> bool {
        let attributes = self.attributes();
        match attributes & SLOW {
            0 | ROBUST if came == AtOnce::Not && block().is_some() => false,
            0 => self.lock_plain(gettid(), attributes),
            ROBUST => {
                let Ok(list) = List::of_this_thread() else { return false };
                let mut came = came;
                if came == AtOnce::Not {
                    list.begin(&self.node, attributes & INHERIT != 0);
                    came = self.lock_announced(list, gettid(), attributes);
                }
                if came == AtOnce::Begun {
                    self.refuse_lost(list, gettid(), attributes);
                }
                came == AtOnce::Done
            }
            PROTECT => self.lock_protected(gettid()),
            _ => false,
        }
    }

    #[inline(always)]
    pub(super) fn lock_free_word(&self, me: Tid) -> bool {
        // ORDERING: Acquire pairs with the Release of the unlock.
        self.word.compare_exchange(FREE, me.0, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Locks a mutex whose attributes need only the exchange of the word, if it is free. An inheriting mutex is
    /// counted.
    #[inline(always)]
    fn lock_plain(&self, me: Tid, attributes: u32) -> bool {
        let is_taken = self.lock_free_word(me);
        if is_taken && attributes & INHERIT != 0 {
            held::took_one();
        }
        is_taken
    }

    #[cold]
    fn lock_slow(&self, limit: Limit) -> Result<Acquired, RawError> {
        let _errno = KeepErrno::now();
        let (me, attributes) = (gettid(), self.attributes());
        if attributes & COUNTED == 0 {
            return self.lock_from_top(me, attributes, limit);
        }
        self.counting(me, limit, |limit, _| self.lock_from_top(me, attributes, limit))
    }

    fn lock_from_top(&self, me: Tid, attributes: u32, limit: Limit) -> Result<Acquired, RawError> {
        // ORDERING: Relaxed: a thread that reads its own id wrote it.
        if owner(self.word.load(Ordering::Relaxed)) == me.0 {
            match (attributes & TYPE, limit) {
                (RECURSIVE, _) => return self.lock_again(),
                (_, Limit::Now) => return Err(RawError::Busy),
                (ERROR_CHECK, _) => {
                    return Err(RawError::Deadlock((attributes & CHECKED != 0).then(|| Cycle::of_one(me, self))));
                }
                _ => {}
            }
        }
        let risen = self.rise(attributes, limit != Limit::Now)?;
        let locked = self.lock_risen(me, attributes, Way::Asks(limit));
        self.settle_ceiling(me, attributes, risen, locked)
    }

    fn lock_again(&self) -> Result<Acquired, RawError> {
        // ORDERING: Relaxed, here and below: only the owner reads and writes it.
        let depth = self.depth.load(Ordering::Relaxed).checked_add(1).ok_or(RawError::TooOften)?;
        self.depth.store(depth, Ordering::Relaxed);
        Ok(Acquired::Clean)
    }

    /// Locks the mutex at the caller's present level: gets the word, then links or counts the mutex.
    fn lock_risen(&self, me: Tid, attributes: u32, way: Way) -> Result<Acquired, RawError> {
        let list = self.begin_linking(attributes)?;
        let inherits = attributes & INHERIT != 0;
        let locked = match way {
            Way::Asks(limit) if inherits => self.lock_inheriting(me, attributes, limit),
            Way::Asks(limit) => self.wait_for_word(me, attributes, limit, None),
            Way::Waited { limit, was_woken } => self.wait_for_word(me, attributes, limit, Some(was_woken)),
            Way::Given => Ok(self.settle_inherited()),
        };
        if let Some(list) = list {
            return self.end_linking(list, me, attributes, locked);
        }
        if inherits && locked.is_ok() {
            held::took_one();
        }
        locked
    }

    /// Settles at the ceiling that the mutex had when it was locked, because the owner may have changed it since the
    /// caller rose. Falls if the lock failed.
    fn settle_ceiling(
        &self,
        me: Tid,
        attributes: u32,
        risen: Option<u8>,
        locked: Result<Acquired, RawError>,
    ) -> Result<Acquired, RawError> {
        let Some(risen) = risen else { return locked };
        let now = self.ceiling();
        let acquired = locked.inspect_err(|_| ceiling::fall(risen))?;
        if now == risen {
            return Ok(acquired);
        }
        let settled = ceiling::rise(now, true);
        if settled.is_err() {
            self.pass_on(me, attributes, acquired)?;
        }
        ceiling::fall(risen);
        settled.map(|()| acquired)
    }

    /// Locks a mutex that does not inherit, after a wait for a condition during which the caller may have been moved to
    /// the mutex.
    pub(super) fn lock_after_wait(&self, was_woken: bool) -> Result<Acquired, RawError> {
        let (me, attributes) = (gettid(), self.attributes());
        if attributes & COUNTED == 0 {
            return self.lock_after(me, attributes, Limit::Never, was_woken);
        }
        // If another thread owns the mutex, a later hand-over is not for a waiter that was woken before.
        self.counting(me, Limit::Never, |limit, is_locked| {
            self.lock_after(me, attributes, limit, was_woken && !is_locked)
        })
    }

    fn lock_after(&self, me: Tid, attributes: u32, limit: Limit, was_woken: bool) -> Result<Acquired, RawError> {
        // A caller that cannot rise was not handed the mutex: waiters of a mutex with a ceiling are not moved to it.
        let risen = self.rise(attributes, true)?;
        let locked = self.lock_risen(me, attributes, Way::Waited { limit, was_woken });
        self.settle_ceiling(me, attributes, risen, locked)
    }

    /// Completes the lock after the kernel has made the caller the owner of a mutex that inherits.
    pub(super) fn settle_moved(&self) -> Result<Acquired, RawError> {
        let (me, attributes) = (gettid(), self.attributes());
        let settle = || self.lock_risen(me, attributes, Way::Given);
        if attributes & COUNTED == 0 { settle() } else { self.counting(me, Limit::Now, |_, _| settle()) }
    }

    /// Changes the ceiling of a mutex that has one, to a level of SCHED_FIFO. Returns the previous ceiling.
    ///
    /// A caller that does not hold the mutex locks it for the change, whatever its own level is. If the previous owner
    /// ended, the next lock still reports that.
    ///
    /// # Errors
    /// [`RawError::Inapplicable`] if the mutex has no ceiling or `ceiling` is not a level; [`RawError::AboveCeiling`]
    /// if the caller holds the mutex and is more urgent than the new ceiling; those of [`RawMutex::lock`]. After an
    /// error the ceiling is unchanged.
    ///
    /// # Bound
    /// That of [`RawMutex::lock`].
    pub fn set_ceiling(&self, ceiling: u8) -> Result<u8, RawError> {
        let (me, attributes) = (gettid(), self.attributes());
        if attributes & PROTECT == 0 || !ceiling::is_level(ceiling) {
            return Err(RawError::Inapplicable);
        }
        // ORDERING: Relaxed, here and below: the mutex orders it.
        if self.owner() == me.0 {
            // The owner falls by the ceiling that it finds when it unlocks, so it must have risen to that one.
            ceiling::rise(ceiling, true)?;
            let before = self.ceiling.swap(ceiling, Ordering::Relaxed);
            ceiling::fall(before);
            return Ok(before);
        }
        let acquired = self.lock_risen(me, attributes, Way::Asks(Limit::Never))?;
        let before = self.ceiling.swap(ceiling, Ordering::Relaxed);
        self.pass_on(me, attributes, acquired)?;
        Ok(before)
    }
}
