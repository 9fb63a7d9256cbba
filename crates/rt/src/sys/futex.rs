//! Futexes of this process: wait and wake, and those with an owner the kernel lends priority to.

use super::clock::timespec;
use super::{SysError, errno};
use std::sync::atomic::AtomicU32;

/// Why a wait ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Waited {
    /// A wake-up, a signal, or a value other than the expected one: look at the word again.
    Look,
    /// The time has come.
    TimedOut,
}

/// Suspends while `word` is `expected`, until woken or until the clock reads `until_ns`.
///
/// BOUND: `until_ns` where one is given; else whoever changes the word must wake it.
///
/// # Panics
/// When the kernel refuses futexes (a filter, say): to look again and again would be to spin.
pub(crate) fn wait(word: &AtomicU32, expected: u32, until_ns: Option<u64>) -> Waited {
    let until = until_ns.map(timespec);
    let until = until.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the word outlives the call; `until` is null or points to a timespec that does.
    let result = unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG,
            expected,
            until,
            std::ptr::null::<u32>(),
            libc::FUTEX_BITSET_MATCH_ANY,
        )
    };
    match if result == 0 { 0 } else { errno() } {
        0 | libc::EAGAIN | libc::EINTR => Waited::Look,
        libc::ETIMEDOUT => Waited::TimedOut,
        refused => panic!("the kernel refuses to wait on a futex: error {refused}"),
    }
}

/// Wakes up to `count` waiters, the most urgent first.
pub(crate) fn wake(word: &AtomicU32, count: i32) {
    // SAFETY: the kernel uses the address as a name only; a wake-up cannot fail on a mapped, aligned word.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, count);
    }
}

/// Locks a word that another thread owns; the kernel lends that thread the caller's priority.
///
/// BOUND: until the owner unlocks.
pub(crate) fn lock_pi(word: &AtomicU32) -> Result<(), SysError> {
    // SAFETY: the word outlives the call; a null timeout waits for ever.
    let result = unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_LOCK_PI | libc::FUTEX_PRIVATE_FLAG,
            0,
            std::ptr::null::<libc::timespec>(),
        )
    };
    if result == 0 { Ok(()) } else { Err(SysError::last("futex lock")) }
}

/// Unlocks a word the calling thread owns, and wakes its most urgent waiter.
pub(crate) fn unlock_pi(word: &AtomicU32) -> Result<(), SysError> {
    // SAFETY: the word outlives the call.
    let result =
        unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_UNLOCK_PI | libc::FUTEX_PRIVATE_FLAG) };
    if result == 0 { Ok(()) } else { Err(SysError::last("futex unlock")) }
}
