//! A lock word with an owner. It is locked in user space when it is free. Waiters wait in the kernel, which lends the
//! owner their priority.
//!
//! ```text
//!   word                   meaning                             lock                    unlock
//!   0                      free                                -> tid, one CAS         -
//!   tid                    owned, no waiters                   ask the kernel, wait    -> 0, one CAS
//!   tid | WAITERS          owned, the kernel has a queue       ask the kernel, wait    ask the kernel
//!   tid of a dead thread   the owner ended, no waiters         the kernel: ESRCH       -
//!   tid | WAITERS | DIED   the owner ended, and the kernel     ask the kernel, wait    ask the kernel
//!                          handed the word to a waiter
//! ```
//!
//! [`PiWord::lock`] is for owners that always unlock before they end; [`PiWord::lock_or_inherit`] is for owners that
//! may not.
//!
//! No thread spins in user space: a more urgent thread that spins for a less urgent one on its own processor would spin
//! for ever.

use crate::clock;
use crate::error::SysError;
use crate::futex::{self, Deadline, Scope};
use crate::sched::{self, Tid};
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};

/// How often the kernel may answer "try again" before that counts as an error. The kernel answers so if the word
/// changes during the call, or if it is short of memory.
const ATTEMPTS_MAX: u32 = 1_000;
/// How often a word of a dead owner is requested. One attempt is enough unless other threads request it at the same
/// time.
const INHERIT_ATTEMPTS_MAX: u32 = 100;
/// How long the heir of a word is given to execute in each nap, and the number of naps.
const HEIR_NAP_NS: u64 = 100_000;
const HEIR_NAPS_MAX: u32 = 100;

/// Why a word could not be locked or unlocked.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PiError {
    /// The calling thread already owns the word, or would wait for itself.
    Deadlock,
    /// The owner has ended without unlocking.
    OwnerDied,
    /// Anything else.
    Sys(SysError),
}

impl fmt::Display for PiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deadlock => f.write_str("the thread already owns the word, or would wait for itself"),
            Self::OwnerDied => f.write_str("the owner of the word ended without unlocking it"),
            Self::Sys(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for PiError {}

/// How the caller acquired a word.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Locked {
    /// It was free.
    Free,
    /// The caller asked the kernel, and the previous owner had unlocked.
    Waited,
    /// The owner ended without unlocking, or the word was already in the caller's name.
    Inherited,
}

/// Waits in the kernel until the caller owns the word, which has the states at the top of this file. The owner has at
/// least the priority of the caller meanwhile.
///
/// # Errors
/// [`PiError::Deadlock`]; [`PiError::OwnerDied`], also if the owner of a private word is a thread of the parent
/// process; [`PiError::Sys`] with ETIMEDOUT after `until`, with EINVAL if the owner has ended and its heir does not
/// execute, and with the kernel's other errors.
///
/// BOUND: until the owner and the waiters before the caller unlock, or `until`. An heir that does not execute:
/// HEIR_NAPS_MAX naps.
#[cold]
pub fn wait(scope: Scope, word: &AtomicU32, until: Option<Deadline>) -> Result<(), PiError> {
    let (mut attempts, mut naps) = (0, 0);
    // BOUND: ATTEMPTS_MAX rounds in which the kernel answers "try again", and HEIR_NAPS_MAX for an heir.
    loop {
        let Err(error) = futex::lock_pi(scope, word, until) else { return Ok(()) };
        match error.errno {
            libc::EAGAIN | libc::EINTR | libc::ENOMEM if attempts < ATTEMPTS_MAX => attempts += 1,
            // The owner ended, and the waiter that was handed the word has not executed since: the word and the
            // kernel's queue disagree.
            libc::EINVAL if naps < HEIR_NAPS_MAX => {
                naps += 1;
                let left = until.map_or(HEIR_NAP_NS, Deadline::left_ns);
                if left == 0 {
                    return Err(PiError::Sys(SysError { errno: libc::ETIMEDOUT, ..error }));
                }
                clock::sleep_until(clock::now_ns() + left.min(HEIR_NAP_NS)).map_err(PiError::Sys)?;
            }
            libc::EDEADLK => return Err(PiError::Deadlock),
            // EPERM: the owner's id now belongs to a kernel thread, or the owner is a thread of the parent process.
            libc::ESRCH | libc::EPERM => return Err(PiError::OwnerDied),
            _ => return Err(PiError::Sys(error)),
        }
    }
}

/// Waits as [`wait`] does, but also acquires a word whose owner ended without unlocking, and one that is already in the
/// caller's name.
///
/// # Errors
/// Those of [`PiWord::lock_or_inherit_until`].
///
/// BOUND: as in [`PiWord::lock_or_inherit`].
#[cold]
pub fn wait_or_inherit(scope: Scope, word: &AtomicU32, me: Tid, until: Option<Deadline>) -> Result<Locked, PiError> {
    // BOUND: INHERIT_ATTEMPTS_MAX rounds.
    for _ in 0..INHERIT_ATTEMPTS_MAX {
        // ORDERING: Relaxed: the value is only compared.
        let seen = word.load(Ordering::Relaxed);
        match wait(scope, word, until) {
            Ok(()) => {
                // ORDERING: Relaxed: the caller owns the word.
                let has_died = word.load(Ordering::Relaxed) & libc::FUTEX_OWNER_DIED != 0;
                return Ok(if has_died { Locked::Inherited } else { Locked::Waited });
            }
            // The owner that was seen is alive: it is ending, or it locked the word again after the kernel read
            // another owner.
            Err(PiError::OwnerDied) if sched::is_ours(Tid(seen & libc::FUTEX_TID_MASK)) => {
                clock::sleep_until(clock::now_ns() + HEIR_NAP_NS).map_err(PiError::Sys)?;
            }
            Err(PiError::OwnerDied) => {
                // dead | WAITERS -> tid | WAITERS. The kernel sets WAITERS before it looks for the owner. It was
                // not asked about an owner of the parent process. A word that has changed since it was read is no
                // longer the dead owner's.
                let takes = |bits| {
                    // ORDERING: Acquire: pairs with the last unlock. The dead owner itself published nothing.
                    word.compare_exchange(seen | bits, me.0 | bits, Ordering::Acquire, Ordering::Relaxed).is_ok()
                };
                if takes(libc::FUTEX_WAITERS) || seen & libc::FUTEX_WAITERS == 0 && takes(0) {
                    return Ok(Locked::Inherited);
                }
            }
            Err(PiError::Deadlock) if is_owned_by(word, me) => return Ok(Locked::Inherited),
            Err(PiError::Sys(SysError { errno: libc::EINVAL, .. })) => return Err(PiError::OwnerDied),
            Err(error) => return Err(error),
        }
    }
    Err(PiError::OwnerDied)
}

/// Whether the thread `tid` owns the word.
#[inline]
fn is_owned_by(word: &AtomicU32, tid: Tid) -> bool {
    // ORDERING: Relaxed: a thread sees its own id if it wrote it, and no other thread writes that id.
    word.load(Ordering::Relaxed) & libc::FUTEX_TID_MASK == tid.0
}

/// A lock word with an owner; see the table at the top of this file.
#[derive(Debug, Default)]
pub struct PiWord(AtomicU32);

impl PiWord {
    /// A free word.
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Locks the word: `0 -> tid`, or waits. Returns whether it asked the kernel.
    ///
    /// # Errors
    /// [`PiError::Deadlock`], [`PiError::OwnerDied`], and [`PiError::Sys`] if the kernel refuses.
    ///
    /// BOUND: until the owner unlocks; the owner has at least the caller's priority meanwhile.
    #[inline]
    pub fn lock(&self, me: Tid) -> Result<bool, PiError> {
        // ORDERING: Acquire pairs with the Release of the CAS in `unlock`; the kernel's own path is a full barrier.
        match self.0.compare_exchange(0, me.0, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => Ok(false),
            Err(_) => wait(Scope::Private, &self.0, None).map(|()| true),
        }
    }

    /// Locks the word if it is free. Returns whether it is locked.
    #[inline]
    pub fn try_lock(&self, me: Tid) -> bool {
        // ORDERING: as in `lock`.
        self.0.compare_exchange(0, me.0, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// As [`PiWord::lock`], but also acquires a word whose owner ended without unlocking. It also acquires a word that
    /// is already in the caller's name: the caller did not unlock it, or it has the thread id of a thread that ended.
    ///
    /// # Errors
    /// Those of [`PiWord::lock`]; [`PiError::OwnerDied`] only if another heir of the word does not execute.
    ///
    /// BOUND: as in `lock`. If another thread was handed the word of a dead owner and does not execute, HEIR_NAPS_MAX
    /// naps, and then [`PiError::OwnerDied`].
    #[inline]
    pub fn lock_or_inherit(&self, me: Tid) -> Result<Locked, PiError> {
        // ORDERING: as in `lock`.
        match self.0.compare_exchange(0, me.0, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => Ok(Locked::Free),
            Err(_) => wait_or_inherit(Scope::Private, &self.0, me, None),
        }
    }

    /// As [`PiWord::lock_or_inherit`], but waits at most until `until`.
    ///
    /// # Errors
    /// [`PiError::Sys`] with ETIMEDOUT after `until`, and those of [`PiWord::lock_or_inherit`].
    pub fn lock_or_inherit_until(&self, me: Tid, until: Deadline) -> Result<Locked, PiError> {
        // ORDERING: as in `lock`.
        match self.0.compare_exchange(0, me.0, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => Ok(Locked::Free),
            Err(_) => wait_or_inherit(Scope::Private, &self.0, me, Some(until)),
        }
    }

    /// Locks the word if its owner is no thread of this process: it ended without unlocking, or is one of the parent
    /// process. (The kernel would wait for a thread of the parent.) Returns whether it did.
    ///
    /// If a dead owner had waiters, the kernel has chosen one of them, which may not have executed since. It has the
    /// word then, and the result is `false`.
    #[cold]
    pub fn take_over(&self, me: Tid) -> bool {
        // ORDERING: Relaxed: the value is only compared.
        let owner = self.0.load(Ordering::Relaxed) & libc::FUTEX_TID_MASK;
        if owner == 0 || sched::is_ours(Tid(owner)) {
            return false;
        }
        match futex::trylock_pi(Scope::Private, &self.0) {
            Ok(()) => true,
            Err(error) if error.errno == libc::EINVAL => false,
            Err(_) => {
                // The call may have set the bit of waiters, although there are none.
                let seen = self.0.load(Ordering::Relaxed);
                // ORDERING: Acquire: as in `wait_or_inherit`.
                seen & libc::FUTEX_TID_MASK == owner
                    && self.0.compare_exchange(seen, me.0, Ordering::Acquire, Ordering::Relaxed).is_ok()
            }
        }
    }

    /// Makes the word free in a child process, which has no other threads.
    #[inline]
    pub fn reset(&self) {
        // ORDERING: Relaxed: there is only one thread.
        self.0.store(0, Ordering::Relaxed);
    }

    /// Whether the word is free.
    #[inline]
    pub fn is_free(&self) -> bool {
        // ORDERING: Acquire pairs with the Release of the CAS in `unlock`.
        self.0.load(Ordering::Acquire) == 0
    }

    /// Whether the thread `tid` owns the word.
    #[inline]
    pub fn is_owned_by(&self, tid: Tid) -> bool {
        is_owned_by(&self.0, tid)
    }

    /// Whether the kernel has a queue for the word.
    #[must_use]
    #[inline]
    pub fn has_waiters(&self) -> bool {
        // ORDERING: Relaxed: the value publishes nothing.
        self.0.load(Ordering::Relaxed) & libc::FUTEX_WAITERS != 0
    }

    /// Unlocks the word: `tid -> 0`, or lets the kernel hand it to its most urgent waiter.
    ///
    /// # Errors
    /// [`PiError::Sys`]: EPERM if the caller does not own the word, and the kernel's other errors.
    #[inline]
    pub fn unlock(&self, me: Tid) -> Result<(), PiError> {
        // ORDERING: Release pairs with the Acquire of the CAS in `lock`.
        match self.0.compare_exchange(me.0, 0, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => Ok(()),
            Err(_) => futex::unlock_pi(Scope::Private, &self.0).map_err(PiError::Sys),
        }
    }
}
