//! A mutex with a ceiling: a thread rises before it locks, and falls after it has unlocked.

use super::ceiling;
use super::error::RawError;
use super::kind::PROTECT;
use super::raw::RawMutex;
use super::word::FREE;
use lockwright_sys::sched::Tid;
use std::sync::atomic::Ordering;

impl RawMutex {
    /// Rises to the ceiling of one that protects, before it is locked. `None` for others.
    ///
    /// # Errors
    /// Those of [`ceiling::rise`].
    pub(super) fn rise(&self, kind: u32) -> Result<Option<u8>, RawError> {
        if kind & PROTECT == 0 {
            return Ok(None);
        }
        let ceiling = self.ceiling();
        ceiling::rise(ceiling).map(|()| Some(ceiling))
    }

    /// Takes one that protects and is free. Says whether it was.
    #[inline(never)]
    pub(super) fn lock_protected(&self, me: Tid) -> bool {
        let ceiling = self.ceiling();
        // ORDERING: Relaxed: only whether it is worth to rise. Why it could not, the other way finds, too.
        if self.word.load(Ordering::Relaxed) != FREE || ceiling::rise(ceiling).is_err() {
            return false;
        }
        if !self.lock_free_word(me) {
            ceiling::fall(ceiling);
            return false;
        }
        // Changed meanwhile, it is asked for anew.
        let is_risen = self.ceiling() == ceiling;
        if !is_risen {
            // One that is just taken, and not robust, is given back as it was.
            let _ = self.unlock_word(me, self.kind());
            ceiling::fall(ceiling);
        }
        is_risen
    }

    /// Gives back one that protects and nobody waits for. Says whether it was.
    #[inline(never)]
    pub(super) fn unlock_protected(&self, me: Tid, kind: u32) -> bool {
        // Read before the mutex is another's.
        let ceiling = self.ceiling();
        let given = self.is_locked_once(kind) && self.free_word(me);
        if given {
            ceiling::fall(ceiling);
        }
        given
    }
}
