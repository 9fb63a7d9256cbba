//! A mutex that survives its owner: it is in the list of the thread that has it, by which the kernel finds it when the thread ends.

use super::error::{Acquired, RawError};
use super::kind::{INHERIT, ROBUST};
use super::raw::{INCONSISTENT, NOT_RECOVERABLE, RawMutex};
use super::word::{DIED, WAITERS};
use lockwright_sys::futex;
use lockwright_sys::robust::List;
use lockwright_sys::sched::{Tid, gettid};
use std::sync::atomic::Ordering;

impl RawMutex {
    /// Takes and links a robust one that is free and healthy. Says whether it was.
    #[inline(always)]
    pub(super) fn lock_linked(&self, list: List, me: Tid, kind: u32) -> bool {
        let inherits = kind & INHERIT != 0;
        list.begin(&self.node, inherits);
        if !self.lock_free_word(me) {
            list.end();
            return false;
        }
        // ORDERING: Relaxed: the mutex orders it.
        if self.state.load(Ordering::Relaxed) >= NOT_RECOVERABLE {
            return self.refuse_lost(list, me, kind);
        }
        list.insert(&self.node, inherits);
        list.end();
        true
    }

    /// One that is lost is given back at once: the other way finds that, too.
    #[cold]
    fn refuse_lost(&self, list: List, me: Tid, kind: u32) -> bool {
        let _ = self.unlock_word(me, kind);
        list.end();
        false
    }

    /// Says to the kernel that a robust one is about to be locked; `None` for others.
    pub(super) fn begin_linking(&self, kind: u32) -> Result<Option<List>, RawError> {
        if kind & ROBUST == 0 {
            return Ok(None);
        }
        let list = List::of_this_thread().map_err(RawError::Sys)?;
        list.begin(&self.node, kind & INHERIT != 0);
        Ok(Some(list))
    }

    /// Links one whose word was locked, unless it is lost, and says so to the kernel.
    pub(super) fn end_linking(
        &self,
        list: List,
        me: Tid,
        kind: u32,
        locked: Result<Acquired, RawError>,
    ) -> Result<Acquired, RawError> {
        let settled = locked.and_then(|acquired| {
            // ORDERING: Relaxed, here and below: the mutex orders its state.
            if self.state.load(Ordering::Relaxed) == NOT_RECOVERABLE {
                return self.unlock_word(me, kind).and(Err(RawError::NotRecoverable));
            }
            if acquired == Acquired::OwnerDied {
                self.depth.store(0, Ordering::Relaxed);
                self.state.store(INCONSISTENT, Ordering::Relaxed);
            }
            list.insert(&self.node, kind & INHERIT != 0);
            Ok(acquired)
        });
        list.end();
        settled
    }

    /// Unlocks a robust one that is [simply locked](Self::is_locked_simply) and was taken out of the list. Says whether it did.
    #[inline(always)]
    pub(super) fn unlock_linked(&self, list: List, me: Tid, kind: u32) -> bool {
        if !self.free_word(me) {
            return self.unlock_waited(list, me, kind);
        }
        list.end();
        true
    }

    /// Whether it is the caller's, taken once, and nobody waited for it then.
    #[inline(always)]
    pub(super) fn is_locked_simply(&self, me: Tid, kind: u32) -> bool {
        // ORDERING: Relaxed: who reads its own id there wrote it, and the state is the owner's.
        self.word.load(Ordering::Relaxed) == me.0
            && self.state.load(Ordering::Relaxed) < NOT_RECOVERABLE
            && self.is_locked_once(kind)
    }

    /// Somebody has come to wait meanwhile.
    #[cold]
    fn unlock_waited(&self, list: List, me: Tid, kind: u32) -> bool {
        let given = self.unlock_unlinked(list, me, kind).is_ok();
        list.end();
        given
    }

    /// Gives the word back of one that was taken out of the list; where that is refused it is in there again.
    pub(super) fn unlock_unlinked(&self, list: List, me: Tid, kind: u32) -> Result<(), RawError> {
        self.unlock_word(me, kind).inspect_err(|_| list.insert(&self.node, kind & INHERIT != 0))
    }

    /// Gives one back as it came from an owner that ended.
    pub(super) fn release_dead(&self, kind: u32) -> Result<(), RawError> {
        let list = List::of_this_thread().map_err(RawError::Sys)?;
        let address = std::ptr::from_ref(&self.word);
        list.begin(&self.node, false);
        list.remove(&self.node);
        // It says that others may wait: should the one that is woken end, too, the next owner goes on to them.
        // ORDERING: Release pairs with the Acquire of who asks.
        if self.word.swap(DIED | WAITERS, Ordering::Release) & WAITERS != 0 {
            futex::wake(Self::scope(kind), address, 1);
        }
        list.end();
        Ok(())
    }

    /// Before a wait for something else, from where the kernel may make the caller the owner of this one, which inherits. Should it end before
    /// it says so, the kernel looks at it.
    pub(super) fn expect_gift(&self) {
        if self.kind() & ROBUST != 0
            && let Ok(list) = List::of_this_thread()
        {
            list.begin(&self.node, true);
        }
    }

    /// After that wait.
    pub(super) fn expected_gift(&self) {
        if self.kind() & ROBUST != 0
            && !self.is_mine()
            && let Ok(list) = List::of_this_thread()
        {
            list.end();
        }
    }

    /// What was half done is whole again; the caller holds the mutex after [`Acquired::OwnerDied`].
    ///
    /// # Errors
    /// [`RawError::BadKind`] where it is not robust, or nothing was half done.
    pub fn make_consistent(&self) -> Result<(), RawError> {
        // ORDERING: Relaxed: the mutex orders it.
        if self.kind() & ROBUST == 0 || self.state.load(Ordering::Relaxed) != INCONSISTENT {
            return Err(RawError::BadKind);
        }
        if self.owner() != gettid().0 {
            return Err(RawError::NotOwner);
        }
        self.state.store(0, Ordering::Relaxed);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
