//! Futexes: wait, wake and move waiters, and those with an owner the kernel lends priority to.

use crate::clock::{self, timespec};
use crate::error::{SysError, errno};
use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// Who may meet at a futex.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// Threads of this process.
    Private,
    /// Those of all processes that map the memory.
    Shared,
}

impl Scope {
    fn flag(self) -> i32 {
        match self {
            Self::Private => libc::FUTEX_PRIVATE_FLAG,
            Self::Shared => 0,
        }
    }
}

/// A clock that futexes know.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Clock {
    /// `CLOCK_MONOTONIC`: does not jump.
    #[default]
    Monotonic,
    /// `CLOCK_REALTIME`: the time of day, as it is set.
    Realtime,
}

/// A point of time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Deadline {
    /// By which clock.
    pub clock: Clock,
    /// Nanoseconds since the clock's zero.
    pub at_ns: u64,
}

impl Deadline {
    /// When the monotonic clock reads this.
    #[inline]
    #[must_use]
    pub const fn monotonic(at_ns: u64) -> Self {
        Self { clock: Clock::Monotonic, at_ns }
    }

    /// So long from now by the monotonic clock.
    #[must_use]
    pub fn after(time: Duration) -> Self {
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX / 4);
        Self::monotonic(clock::now_ns().saturating_add(ns).min(u64::MAX / 4))
    }

    /// How long it is until then.
    #[must_use]
    pub fn left_ns(self) -> u64 {
        let now = match self.clock {
            Clock::Monotonic => clock::now_ns(),
            Clock::Realtime => clock::time_of_day_ns(),
        };
        self.at_ns.saturating_sub(now)
    }
}

impl Clock {
    fn flag(clock: Option<Self>) -> i32 {
        match clock {
            Some(Self::Realtime) => libc::FUTEX_CLOCK_REALTIME,
            _ => 0,
        }
    }
}

/// How a wait ended.
#[must_use = "where the kernel refused, to look at the word again and again would be to spin"]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// Somebody woke this waiter.
    Woken,
    /// The word had another value.
    Changed,
    /// A signal came.
    Interrupted,
    /// The time has come.
    TimedOut,
    /// The kernel refused: the error.
    Refused(i32),
}

impl Ended {
    /// For a caller that can only look at the word again.
    ///
    /// # Panics
    /// When the kernel refuses futexes (a filter, say): to look again and again would be to spin.
    #[inline]
    pub fn or_panic(self) {
        if let Self::Refused(errno) = self {
            panic!("the kernel refuses to wait on a futex: error {errno}");
        }
    }

    /// Of the kernel's own answer: an error is negative.
    #[inline]
    pub fn of(answer: libc::c_long) -> Self {
        match if answer >= 0 { 0 } else { i32::try_from(-answer).unwrap_or(libc::EINVAL) } {
            0 => Self::Woken,
            libc::EAGAIN => Self::Changed,
            libc::EINTR => Self::Interrupted,
            libc::ETIMEDOUT => Self::TimedOut,
            refused => Self::Refused(refused),
        }
    }
}

/// What the kernel is asked. The fourth one, the address of a deadline, is left open.
#[derive(Clone, Copy, Debug)]
pub struct Arguments([libc::c_long; 6]);

impl Arguments {
    /// Waits at `word` while it is `expected`.
    #[inline]
    pub fn wait(scope: Scope, word: &AtomicU32, expected: u32, clock: Option<Clock>) -> Self {
        Self([
            word.as_ptr().expose_provenance() as libc::c_long,
            libc::c_long::from(libc::FUTEX_WAIT_BITSET | scope.flag() | Clock::flag(clock)),
            libc::c_long::from(expected),
            0,
            0,
            libc::c_long::from(libc::FUTEX_BITSET_MATCH_ANY as u32),
        ])
    }

    /// Waits at `word` while it is `expected`, to be moved to `target`, which has an owner: returns as its owner when woken.
    #[inline]
    pub fn wait_requeue_pi(
        scope: Scope,
        word: &AtomicU32,
        expected: u32,
        clock: Option<Clock>,
        target: &AtomicU32,
    ) -> Self {
        Self([
            word.as_ptr().expose_provenance() as libc::c_long,
            libc::c_long::from(libc::FUTEX_WAIT_REQUEUE_PI | scope.flag() | Clock::flag(clock)),
            libc::c_long::from(expected),
            0,
            target.as_ptr().expose_provenance() as libc::c_long,
            0,
        ])
    }
}

impl Arguments {
    /// The arguments in the order of the system call.
    #[must_use]
    pub fn in_order(&self) -> [libc::c_long; 6] {
        self.0
    }
}

/// Asks that.
///
/// BOUND: `until`; else whoever changes the word must wake it, and an owner unlock.
#[inline]
pub fn call(&Arguments([word, operation, expected, _, target, mask]): &Arguments, until: Option<Deadline>) -> Ended {
    let time = until.map(|until| timespec(until.at_ns));
    let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the words outlive the call, for the callers borrow them; the time is null or points to a timespec that does.
    let result = unsafe { libc::syscall(libc::SYS_futex, word, operation, expected, time, target, mask) };
    if result >= 0 && operation & libc::c_long::from(libc::FUTEX_CMD_MASK) == libc::FUTEX_WAIT_REQUEUE_PI.into() {
        sanitizer::acquire(std::ptr::with_exposed_provenance(target as usize));
    }
    Ended::of(if result < 0 { -libc::c_long::from(errno()) } else { result })
}

/// Suspends while `word` is `expected`, until woken or until `until`, and says how that ended.
///
/// BOUND: `until`; else whoever changes the word must wake it.
#[inline]
pub fn wait(scope: Scope, word: &AtomicU32, expected: u32, until: Option<Deadline>) -> Ended {
    call(&Arguments::wait(scope, word, expected, until.map(|until| until.clock)), until)
}

/// Whether somebody waits at `word`: moved from there to there, the first one is counted, and keeps its place.
#[inline]
pub fn has_waiters(scope: Scope, word: &AtomicU32) -> bool {
    let operation = libc::FUTEX_REQUEUE | scope.flag();
    // SAFETY: the word outlives the call.
    let count =
        unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, 0, 1 as libc::c_long, word.as_ptr()) };
    // Those that wait to be moved to a word with inheritance are refused.
    count > 0 || count < 0 && errno() == libc::EINVAL
}

/// Wakes up to `count` waiters, the most urgent first. Says how many were woken.
///
/// It takes an address: the word may be gone by the time of the call, with its last user. What is woken then, if anything, looks and waits again.
#[inline]
pub fn wake(scope: Scope, word: *const AtomicU32, count: i32) -> usize {
    try_wake(scope, word, count).unwrap_or(0)
}

/// As [`wake`]. EINVAL where it meets a waiter of [`Arguments::wait_requeue_pi`]: those before it are woken then.
#[expect(
    clippy::not_unsafe_ptr_arg_deref,
    reason = "the kernel uses the address as a name, and refuses one that is not mapped"
)]
#[inline]
pub fn try_wake(scope: Scope, word: *const AtomicU32, count: i32) -> Result<usize, i32> {
    // SAFETY: the kernel uses the address as a name only, and refuses one that is not mapped.
    let woken = unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAKE | scope.flag(), count) };
    usize::try_from(woken).map_err(|_| errno())
}

/// While `word` is `expected`, wakes up to `wake` of its waiters and moves up to `count` others to `target`, the most urgent first.
/// Says how many both were; `None` where the word had another value.
#[expect(
    clippy::not_unsafe_ptr_arg_deref,
    reason = "the kernel uses the address as a name, and refuses one that is not mapped"
)]
#[inline]
pub fn requeue(
    scope: Scope,
    word: &AtomicU32,
    expected: u32,
    wake: i32,
    count: i32,
    target: *const AtomicU32,
) -> Option<usize> {
    let operation = libc::FUTEX_CMP_REQUEUE | scope.flag();
    // SAFETY: as in `wake`.
    let moved = unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), operation, wake, count as libc::c_long, target, expected)
    };
    usize::try_from(moved).ok()
}

/// While `word` is `expected`, makes the most urgent waiter of [`Arguments::wait_requeue_pi`] there the owner of `target`, or lets it wait for that,
/// and moves up to `count` others. The kernel's error where it refuses.
#[expect(
    clippy::not_unsafe_ptr_arg_deref,
    reason = "the kernel uses the address as a name, and refuses one that is not mapped"
)]
#[inline]
pub fn cmp_requeue_pi(
    scope: Scope,
    word: &AtomicU32,
    expected: u32,
    count: i32,
    target: *const AtomicU32,
) -> Result<usize, i32> {
    let operation = libc::FUTEX_CMP_REQUEUE_PI | scope.flag();
    // SAFETY: as in `wake`.
    let moved =
        unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, 1, count as libc::c_long, target, expected) };
    usize::try_from(moved).map_err(|_| errno())
}

/// Locks a word that another thread owns; the kernel lends that thread the caller's priority. The kernel's error where it refuses.
///
/// BOUND: `until`; else until the owner unlocks.
#[inline]
pub fn lock_pi(scope: Scope, word: &AtomicU32, until: Option<Deadline>) -> Result<(), SysError> {
    // The older call knows the time of day only.
    let operation = match until {
        Some(Deadline { clock: Clock::Monotonic, .. }) => libc::FUTEX_LOCK_PI2,
        _ => libc::FUTEX_LOCK_PI,
    };
    let time = until.map(|until| timespec(until.at_ns));
    let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the word outlives the call; the time is null, which waits for ever, or points to a timespec that outlives it, too.
    let result = unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation | scope.flag(), 0, time) };
    if result == 0 {
        sanitizer::acquire(word);
        Ok(())
    } else {
        Err(SysError::last("futex lock"))
    }
}

/// Takes a word that is free, or whose owner is dead, and is not free to see. The kernel's error where it refuses.
#[inline]
pub fn trylock_pi(scope: Scope, word: &AtomicU32) -> Result<(), SysError> {
    // SAFETY: the word outlives the call.
    let result = unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_TRYLOCK_PI | scope.flag()) };
    if result == 0 {
        sanitizer::acquire(word);
        Ok(())
    } else {
        Err(SysError::last("futex trylock"))
    }
}

/// Unlocks a word the calling thread owns, and wakes its most urgent waiter, which owns it from then on.
#[inline]
pub fn unlock_pi(scope: Scope, word: &AtomicU32) -> Result<(), SysError> {
    sanitizer::release(word);
    // SAFETY: the word outlives the call.
    let result = unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_UNLOCK_PI | scope.flag()) };
    if result == 0 { Ok(()) } else { Err(SysError::last("futex unlock")) }
}

/// The order between an unlock and a lock that the kernel performs: ThreadSanitizer sees atomic operations of the
/// program only. It sees everything that happens in user space without help.
mod sanitizer {
    use std::sync::atomic::AtomicU32;

    #[cfg(lockwright_tsan)]
    unsafe extern "C" {
        safe fn __tsan_acquire(address: *const AtomicU32);
        safe fn __tsan_release(address: *const AtomicU32);
    }

    /// The kernel made the caller the owner of the word.
    #[inline(always)]
    pub(super) fn acquire(word: *const AtomicU32) {
        #[cfg(lockwright_tsan)]
        __tsan_acquire(word);
        let _ = word;
    }

    /// The caller passes the word to the kernel.
    #[inline(always)]
    pub(super) fn release(word: *const AtomicU32) {
        #[cfg(lockwright_tsan)]
        __tsan_release(word);
        let _ = word;
    }
}
