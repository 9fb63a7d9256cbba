//! A lock word with an owner: free and taken in user space, waited for in the kernel, which lends the
//! owner the priority of its waiters.
//!
//! ```text
//!   word                   meaning                             lock                    unlock
//!   0                      free                                -> tid, one CAS         -
//!   tid                    owned, nobody waits                 ask the kernel, wait    -> 0, one CAS
//!   tid | WAITERS          owned, the kernel has a queue       ask the kernel, wait    ask the kernel
//!   tid of the dead        the owner ended, nobody waited      the kernel: ESRCH       -
//!   tid | WAITERS | DIED   the owner ended, a waiter was       ask the kernel, wait    ask the kernel
//!                          given the word
//! ```
//!
//! [`PiWord::lock`] is for owners that end only after they unlocked; [`PiWord::lock_or_inherit`] for those that may not.
//!
//! Nothing here spins in user space: a more urgent thread that spun for a less urgent one of its own processor would spin for ever.

use crate::clock;
use crate::error::SysError;
use crate::futex::{self, Scope};
use crate::sched::{self, Tid};
use std::sync::atomic::{AtomicU32, Ordering};

/// How often the kernel may answer "try again" (it does where the word changes under its hands, or where it
/// is short of memory) before that counts as an error.
const ATTEMPTS_MAX: u32 = 1_000;
/// How often a word of the dead is asked for. Once, but for races with others who ask, and for an heir that has yet to execute.
const INHERIT_ATTEMPTS_MAX: u32 = 100;
/// How long the heir of a word is given to execute, each time.
const HEIR_NAP_NS: u64 = 100_000;

/// Why a word could not be locked or unlocked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PiError {
    /// The caller would wait for itself.
    Deadlock,
    /// The owner has ended without unlocking.
    OwnerDied,
    /// Anything else.
    Sys(SysError),
}

/// How the caller came by a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Locked {
    /// It was free.
    Free,
    /// Its owner unlocked it.
    Waited,
    /// Its owner ended, or forgot it.
    Inherited,
}

/// See the table above.
#[derive(Debug, Default)]
pub struct PiWord(AtomicU32);

impl PiWord {
    /// Nobody has it.
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// `0 -> tid`, or waits. Says whether it asked the kernel.
    ///
    /// BOUND: until the owner, which has at least the caller's priority meanwhile, unlocks.
    #[inline]
    pub fn lock(&self, me: Tid) -> Result<bool, PiError> {
        // ORDERING: Acquire pairs with the Release of the CAS in `unlock`; the kernel's own path is a full barrier.
        match self.0.compare_exchange(0, me.0, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => Ok(false),
            Err(_) => self.lock_slow().map(|()| true),
        }
    }

    /// As [`PiWord::lock`], and a word whose owner ended without unlocking becomes the caller's. So does one that is in the
    /// caller's name already: the caller forgot it, or has the id of a thread that ended.
    ///
    /// BOUND: as in `lock`. Where another was given the word of the dead and does not execute to say so, INHERIT_ATTEMPTS_MAX naps, and
    /// then [`PiError::OwnerDied`].
    #[inline]
    pub fn lock_or_inherit(&self, me: Tid) -> Result<Locked, PiError> {
        // ORDERING: as in `lock`.
        match self.0.compare_exchange(0, me.0, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => Ok(Locked::Free),
            Err(_) => self.wait_or_inherit(me),
        }
    }

    #[cold]
    fn wait_or_inherit(&self, me: Tid) -> Result<Locked, PiError> {
        // BOUND: INHERIT_ATTEMPTS_MAX rounds.
        for _ in 0..INHERIT_ATTEMPTS_MAX {
            // ORDERING: Relaxed: only compared with.
            let seen = self.0.load(Ordering::Relaxed);
            match self.lock_slow() {
                Ok(()) => {
                    // ORDERING: Relaxed: the word is the caller's.
                    let has_died = self.0.load(Ordering::Relaxed) & libc::FUTEX_OWNER_DIED != 0;
                    return Ok(if has_died { Locked::Inherited } else { Locked::Waited });
                }
                // The kernel read another name than was seen, and who was seen may have come back since; or who was seen is on its way out.
                Err(PiError::OwnerDied) if sched::is_ours(Tid(seen & libc::FUTEX_TID_MASK)) => {
                    clock::sleep_until(clock::now_ns() + HEIR_NAP_NS).map_err(PiError::Sys)?;
                }
                Err(PiError::OwnerDied) => {
                    // dead | WAITERS -> tid | WAITERS. The kernel sets WAITERS before it looks for the owner; a word that
                    // changed since it was seen is not that of the dead.
                    let (dead, mine) = (seen | libc::FUTEX_WAITERS, me.0 | libc::FUTEX_WAITERS);
                    // ORDERING: Acquire: the dead published nothing; for what was published before it.
                    if self.0.compare_exchange(dead, mine, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                        return Ok(Locked::Inherited);
                    }
                }
                Err(PiError::Deadlock) if self.is_owned_by(me) => return Ok(Locked::Inherited),
                // The owner ended, and the waiter that was given the word has not executed since: word and queue disagree.
                Err(PiError::Sys(SysError { errno: libc::EINVAL, .. })) => {
                    clock::sleep_until(clock::now_ns() + HEIR_NAP_NS).map_err(PiError::Sys)?;
                }
                Err(error) => return Err(error),
            }
        }
        Err(PiError::OwnerDied)
    }

    /// Nobody has the word: in a child process, which has no other threads.
    #[inline]
    pub fn reset(&self) {
        // ORDERING: Relaxed: there is one thread.
        self.0.store(0, Ordering::Relaxed);
    }

    /// Whether nobody has the word.
    #[inline]
    pub fn is_free(&self) -> bool {
        // ORDERING: Acquire pairs with the Release of the CAS in `unlock`.
        self.0.load(Ordering::Acquire) == 0
    }

    /// Whether the word is in this thread's name.
    #[inline]
    pub fn is_owned_by(&self, tid: Tid) -> bool {
        // ORDERING: Relaxed: a thread sees its own name where it wrote it, and nobody else writes it.
        self.0.load(Ordering::Relaxed) & libc::FUTEX_TID_MASK == tid.0
    }

    /// Whether the kernel has a queue for the word.
    #[must_use]
    #[inline]
    pub fn has_waiters(&self) -> bool {
        // ORDERING: Relaxed: only looked at.
        self.0.load(Ordering::Relaxed) & libc::FUTEX_WAITERS != 0
    }

    #[cold]
    fn lock_slow(&self) -> Result<(), PiError> {
        let mut last = None;
        // BOUND: ATTEMPTS_MAX rounds.
        for _ in 0..ATTEMPTS_MAX {
            let Err(error) = futex::lock_pi(Scope::Private, &self.0, None) else { return Ok(()) };
            match error.errno {
                libc::EAGAIN | libc::EINTR | libc::ENOMEM => last = Some(error),
                libc::EDEADLK => return Err(PiError::Deadlock),
                // EPERM: the owner's id is that of a kernel thread, or of another user's process, now.
                libc::ESRCH | libc::EPERM => return Err(PiError::OwnerDied),
                _ => return Err(PiError::Sys(error)),
            }
        }
        last.map_or(Ok(()), |error| Err(PiError::Sys(error)))
    }

    /// `tid -> 0`, or lets the kernel hand the word to its most urgent waiter.
    #[inline]
    pub fn unlock(&self, me: Tid) -> Result<(), PiError> {
        // ORDERING: Release pairs with the Acquire of the CAS in `lock`.
        match self.0.compare_exchange(me.0, 0, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => Ok(()),
            Err(_) => self.unlock_slow(),
        }
    }

    #[cold]
    fn unlock_slow(&self) -> Result<(), PiError> {
        let mut last = None;
        // BOUND: ATTEMPTS_MAX rounds.
        for _ in 0..ATTEMPTS_MAX {
            match futex::unlock_pi(Scope::Private, &self.0) {
                Ok(()) => return Ok(()),
                Err(error) if matches!(error.errno, libc::EAGAIN | libc::EINTR) => last = Some(error),
                Err(error) => return Err(PiError::Sys(error)),
            }
        }
        last.map_or(Ok(()), |error| Err(PiError::Sys(error)))
    }
}
