//! Mutexes that survive their owner. Each is linked into its owner's robust list, through which the kernel finds it
//! when the thread ends.

pub(super) use pass::OPEN;

use super::at_once::AtOnce;
use super::attributes::{INHERIT, ROBUST};
use super::error::{Acquired, RawError};
use super::raw::{INCONSISTENT, NOT_RECOVERABLE, RawMutex};
use super::word::{DIED, WAITERS};
use lockwright_sys::futex;
use lockwright_sys::robust::List;
use lockwright_sys::sched::{Tid, gettid};
use std::sync::atomic::Ordering;

impl RawMutex {
    /// Locks and links a robust mutex that is announced, if it is free. [`AtOnce::Begun`] means that the word is
    /// locked, but the mutex is not recoverable: it is still announced, and `refuse_lost` ends that.
    #[inline(always)]
    pub(super) fn lock_announced(&self, list: List, me: Tid, attributes: u32) -> AtOnce {
        if !self.lock_free_word(me) {
            list.end();
            return AtOnce::Not;
        }
        // ORDERING: Relaxed: the mutex orders it.
        if self.state.load(Ordering::Relaxed) >= NOT_RECOVERABLE {
            return AtOnce::Begun;
        }
        list.insert(&self.node, attributes & INHERIT != 0);
        list.end();
        AtOnce::Done
    }

    /// Unlocks a mutex that turned out not to be recoverable; the slow path then finds and reports that.
    #[cold]
    pub(super) fn refuse_lost(&self, list: List, me: Tid, attributes: u32) {
        let _ = self.unlock_unlinked(list, me, attributes);
        list.end();
    }

    /// Announces to the kernel that the caller is about to lock a robust mutex. Returns `None` if the mutex is not
    /// robust.
    pub(super) fn begin_linking(&self, attributes: u32) -> Result<Option<List>, RawError> {
        if attributes & ROBUST == 0 {
            return Ok(None);
        }
        let list = List::of_this_thread().map_err(RawError::Sys)?;
        list.begin(&self.node, attributes & INHERIT != 0);
        Ok(Some(list))
    }

    /// Links a mutex whose word is locked, unless it is not recoverable, and ends the announcement to the kernel.
    pub(super) fn end_linking(
        &self,
        list: List,
        me: Tid,
        attributes: u32,
        locked: Result<Acquired, RawError>,
    ) -> Result<Acquired, RawError> {
        let settled = locked.and_then(|acquired| {
            // ORDERING: Relaxed, here and below: the mutex orders its state.
            if self.state.load(Ordering::Relaxed) == NOT_RECOVERABLE {
                return self.unlock_unlinked(list, me, attributes).and(Err(RawError::NotRecoverable));
            }
            if acquired == Acquired::OwnerDied {
                self.depth.store(0, Ordering::Relaxed);
                self.state.store(INCONSISTENT, Ordering::Relaxed);
            }
            list.insert(&self.node, attributes & INHERIT != 0);
            Ok(acquired)
        });
        list.end();
        settled
    }

    /// Unlocks a robust mutex that is [simply locked](Self::is_locked_simply) and is already out of the list. Returns
    /// whether it is unlocked.
    #[inline(always)]
    pub(super) fn unlock_linked(&self, list: List, me: Tid, attributes: u32) -> bool {
        list.unlock(&self.word, me.0) || self.unlock_waited(list, me, attributes)
    }

    /// Whether the caller has locked the mutex once and no waiter has been announced.
    #[inline(always)]
    pub(super) fn is_locked_simply(&self, me: Tid, attributes: u32) -> bool {
        // ORDERING: Relaxed: a thread that reads its own id wrote it, and the state belongs to the owner.
        self.word.load(Ordering::Relaxed) == me.0
            && self.state.load(Ordering::Relaxed) < NOT_RECOVERABLE
            && self.is_locked_once(attributes)
    }

    /// Unlocks a mutex for which a waiter has been announced meanwhile.
    #[cold]
    fn unlock_waited(&self, list: List, me: Tid, attributes: u32) -> bool {
        let given = self.unlock_unlinked(list, me, attributes).is_ok();
        list.end();
        given
    }

    /// Unlocks the word of a mutex that is not in the list. If that is refused, the mutex is linked.
    pub(super) fn unlock_unlinked(&self, list: List, me: Tid, attributes: u32) -> Result<(), RawError> {
        self.unlock_word(me, attributes).inspect_err(|_| list.insert(&self.node, attributes & INHERIT != 0))
    }

    /// Unlocks a mutex whose last owner ended, and leaves it marked so.
    pub(super) fn release_dead(&self, attributes: u32) -> Result<(), RawError> {
        let list = List::of_this_thread().map_err(RawError::Sys)?;
        let address = std::ptr::from_ref(&self.word);
        list.begin(&self.node, false);
        list.remove(&self.node);
        // The word announces waiters, so that the next owner wakes another one even if the woken waiter ends.
        // ORDERING: Release pairs with the Acquire of the next lock.
        if self.word.swap(DIED | WAITERS, Ordering::Release) & WAITERS != 0 {
            futex::wake(Self::scope(attributes), address, 1);
        }
        list.end();
        Ok(())
    }

    /// Prepares a wait during which the kernel may make the caller the owner of this inheriting mutex. If the caller
    /// ends before it has linked the mutex, the kernel checks the announced one.
    pub(super) fn expect_gift(&self) {
        if self.attributes() & ROBUST != 0
            && let Ok(list) = List::of_this_thread()
        {
            list.begin(&self.node, true);
        }
    }

    /// Ends what [`RawMutex::expect_gift`] began, after that wait.
    pub(super) fn expected_gift(&self) {
        if self.attributes() & ROBUST != 0
            && !self.is_mine()
            && let Ok(list) = List::of_this_thread()
        {
            list.end();
        }
    }

    /// Declares the protected value consistent again. The caller holds the mutex after [`Acquired::OwnerDied`].
    ///
    /// # Errors
    /// [`RawError::Inapplicable`] if the mutex is not robust or is already consistent; [`RawError::NotOwner`] if the
    /// caller does not hold it.
    pub fn make_consistent(&self) -> Result<(), RawError> {
        // ORDERING: Relaxed: the mutex orders it.
        if self.attributes() & ROBUST == 0 || self.state.load(Ordering::Relaxed) != INCONSISTENT {
            return Err(RawError::Inapplicable);
        }
        if self.owner() != gettid().0 {
            return Err(RawError::NotOwner);
        }
        self.state.store(0, Ordering::Relaxed);
        Ok(())
    }
}

mod pass;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod walk;
