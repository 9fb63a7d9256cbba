//! Unlocking a mutex.

use super::at_once::AtOnce;
use super::attributes::{
    BY_OTHERS, CHECKED, COUNTED, INHERIT, PROTECT, RECURSIVE, ROBUST, SLOW, TYPE, is_unlocked_by_owner,
};
use super::ceiling;
use super::error::{Acquired, RawError};
use super::raw::{INCONSISTENT, NOT_RECOVERABLE, RawMutex};
use super::word::{FREE, owner};
use lockwright_sys::block::block;
use lockwright_sys::robust::List;
use lockwright_sys::sched::{Tid, gettid};
use lockwright_sys::{KeepErrno, held};
use std::sync::atomic::Ordering;

impl RawMutex {
    /// Unlocks the mutex.
    ///
    /// # Errors
    /// [`RawError::NotOwner`] if the attributes check the owner and the caller is not the owner; [`RawError::Sys`] if
    /// the kernel refuses. After an error the mutex is unchanged.
    ///
    /// # Bound
    /// One exchange of the word; with waiters, one to three system calls. A robust mutex that does not inherit: two,
    /// and up to four more for each waiter that leaves meanwhile, at most 34.
    #[inline]
    pub fn unlock(&self) -> Result<(), RawError> {
        if self.unlock_uncontended() { Ok(()) } else { self.unlock_slow() }
    }

    /// Unlocks the mutex if the caller holds it in a consistent state and no thread waits for it. Returns whether it is
    /// unlocked; if not, it is unchanged, and [`RawMutex::unlock`] finds out why.
    #[inline(always)]
    pub fn unlock_uncontended(&self) -> bool {
        match self.unlock_at_once() {
            AtOnce::Done => true,
            came => self.unlock_uncontended_asking(came),
        }
    }

    /// Unlocks the mutex if one exchange of the word and stores of the caller suffice. After any other result,
    /// [`RawMutex::finish_unlock`] continues. Inlined, and without calls, for the same reason as
    /// [`RawMutex::lock_at_once`].
    #[inline(always)]
    pub fn unlock_at_once(&self) -> AtOnce {
        let attributes = self.attributes();
        match block() {
            Some(block) if attributes & SLOW == 0 => AtOnce::of(self.unlock_plain(Tid(block.tid()), attributes)),
            Some(block) if attributes & SLOW == ROBUST => {
                let (me, list, inherits) = (Tid(block.tid()), List::of(block), attributes & INHERIT != 0);
                if !self.is_locked_simply(me, attributes) || !List::is_first(block, &self.node, inherits) {
                    return AtOnce::Not;
                }
                List::begin_in(block, &self.node, inherits);
                List::remove_first(block, &self.node);
                if list.unlock_at_once(&self.word, me.0) { AtOnce::Done } else { AtOnce::Begun }
            }
            _ => AtOnce::Not,
        }
    }

    /// Continues an unlock after [`RawMutex::unlock_at_once`] has not unlocked the mutex.
    ///
    /// # Errors
    /// As [`RawMutex::unlock`].
    pub fn finish_unlock(&self, came: AtOnce) -> Result<(), RawError> {
        if self.unlock_uncontended_asking(came) { Ok(()) } else { self.unlock_slow() }
    }

    /// Out-of-line variant: looks up the thread id and the robust list.
    #[inline(never)]
    fn unlock_uncontended_asking(&self, came: AtOnce) -> bool {
        let (me, attributes) = (gettid(), self.attributes());
        match attributes & SLOW {
            0 => block().is_none() && self.unlock_plain(me, attributes),
            ROBUST if came == AtOnce::Begun || self.is_locked_simply(me, attributes) => {
                let Ok(list) = List::of_this_thread() else { return false };
                if came == AtOnce::Not {
                    list.begin(&self.node, attributes & INHERIT != 0);
                    list.remove(&self.node);
                }
                self.unlock_linked(list, me, attributes)
            }
            PROTECT => self.unlock_protected(me, attributes),
            _ => false,
        }
    }

    /// Unlocks a mutex whose attributes need only the exchange of the word; the counterpart of `lock_plain`.
    #[inline(always)]
    fn unlock_plain(&self, me: Tid, attributes: u32) -> bool {
        let is_given = self.is_locked_once(attributes) && self.free_word(me);
        if is_given && attributes & INHERIT != 0 {
            held::gave_one_back();
        }
        is_given
    }

    /// Frees the word if the caller owns it and no thread waits. Returns whether it did.
    #[inline(always)]
    pub(super) fn free_word(&self, me: Tid) -> bool {
        // ORDERING: Release pairs with the Acquire of the lock.
        self.word.compare_exchange(me.0, FREE, Ordering::Release, Ordering::Relaxed).is_ok()
    }

    #[cold]
    fn unlock_slow(&self) -> Result<(), RawError> {
        let _errno = KeepErrno::now();
        let (me, attributes) = (gettid(), self.attributes());
        // ORDERING: Relaxed, here and below: a thread that reads its own id wrote it, and the other fields belong to
        // the owner.
        let has = owner(self.word.load(Ordering::Relaxed)) == me.0;
        if is_unlocked_by_owner(attributes) && !has {
            return Err(RawError::NotOwner);
        }
        if attributes & COUNTED != 0 {
            self.count_unlock();
        }
        if !has && attributes & CHECKED != 0 {
            // ORDERING: Relaxed: a hint for later deadlock checks.
            self.attributes.fetch_or(BY_OTHERS, Ordering::Relaxed);
        }
        if attributes & TYPE == RECURSIVE {
            let depth = self.depth.load(Ordering::Relaxed);
            if depth > 0 {
                self.depth.store(depth - 1, Ordering::Relaxed);
                return Ok(());
            }
        }
        // Read before another thread can own the mutex.
        let ceiling = self.ceiling();
        if attributes & ROBUST != 0 && self.state.load(Ordering::Relaxed) == INCONSISTENT {
            self.state.store(NOT_RECOVERABLE, Ordering::Relaxed);
        }
        self.release(me, attributes)?;
        if attributes & PROTECT != 0 {
            ceiling::fall(ceiling);
        }
        Ok(())
    }

    /// Unlinks the mutex if it is robust, and unlocks the word.
    pub(super) fn release(&self, me: Tid, attributes: u32) -> Result<(), RawError> {
        if attributes & ROBUST == 0 {
            let given = self.unlock_word(me, attributes);
            if attributes & INHERIT != 0 && given.is_ok() {
                held::gave_one_back();
            }
            return given;
        }
        let list = List::of_this_thread().map_err(RawError::Sys)?;
        list.begin(&self.node, attributes & INHERIT != 0);
        list.remove(&self.node);
        let given = self.unlock_unlinked(list, me, attributes);
        list.end();
        given
    }

    /// Unlocks a mutex that the caller has just locked and cannot keep, in the state in which it was locked.
    pub(super) fn pass_on(&self, me: Tid, attributes: u32, acquired: Acquired) -> Result<(), RawError> {
        match acquired {
            Acquired::Clean => self.release(me, attributes),
            Acquired::OwnerDied => self.release_dead(attributes),
        }
    }
}
