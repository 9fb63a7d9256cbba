//! Mutexes with a ceiling: a thread rises to the ceiling before it locks, and falls after it has unlocked.

use super::attributes::PROTECT;
use super::ceiling;
use super::error::RawError;
use super::raw::RawMutex;
use super::word::FREE;
use lockwright_sys::sched::Tid;
use std::sync::atomic::Ordering;

impl RawMutex {
    /// Raises the caller to the ceiling before it locks the mutex. Returns the ceiling, or `None` if the mutex has
    /// none.
    ///
    /// # Errors
    /// Those of [`ceiling::rise`].
    pub(super) fn rise(&self, attributes: u32, may_wait: bool) -> Result<Option<u8>, RawError> {
        if attributes & PROTECT == 0 {
            return Ok(None);
        }
        let ceiling = self.ceiling();
        ceiling::rise(ceiling, may_wait).map(|()| Some(ceiling))
    }

    /// Locks a mutex with a ceiling if it is free. Returns whether it is locked.
    #[inline(never)]
    pub(super) fn lock_protected(&self, me: Tid) -> bool {
        let ceiling = self.ceiling();
        // ORDERING: Relaxed: a hint whether rising is worthwhile. The slow path finds out why the caller could not
        // rise.
        if self.word.load(Ordering::Relaxed) != FREE || ceiling::rise(ceiling, false).is_err() {
            return false;
        }
        if !self.lock_free_word(me) {
            ceiling::fall(ceiling);
            return false;
        }
        // If the ceiling has changed meanwhile, the slow path starts anew.
        let is_risen = self.ceiling() == ceiling;
        if !is_risen {
            // The mutex was locked just now and is not robust, so the unlock leaves it as it was.
            let _ = self.unlock_word(me, self.attributes());
            ceiling::fall(ceiling);
        }
        is_risen
    }

    /// Unlocks a mutex with a ceiling if no thread waits for it. Returns whether it is unlocked.
    #[inline(never)]
    pub(super) fn unlock_protected(&self, me: Tid, attributes: u32) -> bool {
        // Read before another thread can own the mutex.
        let ceiling = self.ceiling();
        let given = self.is_locked_once(attributes) && self.free_word(me);
        if given {
            ceiling::fall(ceiling);
        }
        given
    }
}
