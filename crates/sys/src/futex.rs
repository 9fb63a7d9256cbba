//! Futexes: wait, wake and move waiters; lock and unlock with priority inheritance.

use crate::clock::{self, timespec};
use crate::error::{SysError, errno};
use crate::fork;
use crate::sched::{self, Tid};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// The threads that share a futex.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Scope {
    /// Threads of this process.
    Private,
    /// Threads of all processes that map the memory.
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

/// A clock that futexes support.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Clock {
    /// `CLOCK_MONOTONIC`: does not jump.
    #[default]
    Monotonic,
    /// `CLOCK_REALTIME`: the time of day; jumps when it is set.
    Realtime,
}

/// A point in time.
///
/// This is a plain value: users write it as a literal, and it gets no further fields.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Deadline {
    /// The clock that measures it.
    pub clock: Clock,
    /// Nanoseconds since the clock's zero.
    pub at_ns: u64,
}

impl Deadline {
    /// The time at which the monotonic clock reads `at_ns`.
    #[inline]
    #[must_use]
    pub const fn monotonic(at_ns: u64) -> Self {
        Self { clock: Clock::Monotonic, at_ns }
    }

    /// `time` from now by the monotonic clock.
    #[must_use]
    pub fn after(time: Duration) -> Self {
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX / 4);
        Self::monotonic(clock::now_ns().saturating_add(ns).min(u64::MAX / 4))
    }

    /// The time left until the deadline, in nanoseconds; 0 if it has passed.
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
#[must_use = "a caller that ignores a refusal and reads the word again and again would spin"]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Ended {
    /// Another thread woke this waiter.
    Woken,
    /// The word had another value than expected.
    Changed,
    /// A signal arrived.
    Interrupted,
    /// The deadline passed.
    TimedOut,
    /// The kernel refused with this error.
    Refused(i32),
}

impl Ended {
    /// Panics on a refusal, for a caller that can only read the word again.
    ///
    /// # Panics
    /// If the kernel refuses futexes, for example because of a seccomp filter. Retrying would be spinning.
    #[inline]
    pub fn or_panic(self) {
        if let Self::Refused(errno) = self {
            panic!("the kernel refuses to wait on a futex: error {errno}");
        }
    }

    /// Converts the kernel's own answer, in which an error is negative.
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

/// The arguments of a waiting `futex` call at words that live for `'a`. The fourth, the address of the deadline, is
/// filled in by the caller.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Arguments<'a>([libc::c_long; 6], PhantomData<&'a AtomicU32>);

impl<'a> Arguments<'a> {
    /// Waits at `word` if it is `expected`.
    #[inline]
    pub fn wait(scope: Scope, word: &'a AtomicU32, expected: u32, clock: Option<Clock>) -> Self {
        let arguments = [
            word.as_ptr().expose_provenance() as libc::c_long,
            libc::c_long::from(libc::FUTEX_WAIT_BITSET | scope.flag() | Clock::flag(clock)),
            libc::c_long::from(expected),
            0,
            0,
            libc::c_long::from(libc::FUTEX_BITSET_MATCH_ANY as u32),
        ];
        Self(arguments, PhantomData)
    }

    /// The same wait with these marks in place of all of them. It ends by a wake-up that names one of the marks
    /// ([`try_wake_marked`]), and by those that name none.
    #[inline]
    #[must_use]
    pub fn marked(self, marks: u32) -> Self {
        let [word, call, expected, time, target, _] = self.0;
        Self([word, call, expected, time, target, libc::c_long::from(marks)], PhantomData)
    }

    /// Waits at `word` if it is `expected`, to be moved to `target`, a word with priority inheritance. When woken
    /// there, the caller owns `target`.
    #[inline]
    pub fn wait_requeue_pi(
        scope: Scope,
        word: &'a AtomicU32,
        expected: u32,
        clock: Option<Clock>,
        target: &'a AtomicU32,
    ) -> Self {
        let arguments = [
            word.as_ptr().expose_provenance() as libc::c_long,
            libc::c_long::from(libc::FUTEX_WAIT_REQUEUE_PI | scope.flag() | Clock::flag(clock)),
            libc::c_long::from(expected),
            0,
            target.as_ptr().expose_provenance() as libc::c_long,
            0,
        ];
        Self(arguments, PhantomData)
    }
}

impl Arguments<'_> {
    /// The arguments in the order of the system call.
    #[must_use]
    pub fn in_order(&self) -> [libc::c_long; 6] {
        self.0
    }
}

/// Makes the call with `arguments`.
///
/// BOUND: `until`. Without it, until the thread that changes the word wakes the caller, or the owner unlocks.
#[inline]
pub fn call(arguments: &Arguments<'_>, until: Option<Deadline>) -> Ended {
    let [word, operation, expected, _, target, mask] = arguments.0;
    let time = until.map(|until| timespec(until.at_ns));
    let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the lifetime of the arguments keeps the words alive during the call. The time is null, or points to
    // `time` above.
    let result = unsafe { libc::syscall(libc::SYS_futex, word, operation, expected, time, target, mask) };
    if result >= 0 && operation & libc::c_long::from(libc::FUTEX_CMD_MASK) == libc::FUTEX_WAIT_REQUEUE_PI.into() {
        sanitizer::acquire(std::ptr::with_exposed_provenance(target as usize));
    }
    Ended::of(if result < 0 { -libc::c_long::from(errno()) } else { result })
}

/// Returns the half of `word` that contains its 32 low bits, for waits that end when this half changes. The program
/// changes the word as a whole, and only the kernel reads the half.
#[inline]
#[must_use]
pub fn low_half(word: &AtomicU64) -> &AtomicU32 {
    let halves: *const AtomicU32 = word.as_ptr().cast_const().cast();
    // SAFETY: both halves are inside the word, are aligned, and live as long as it. All bits are valid.
    unsafe { &*halves.add(usize::from(cfg!(target_endian = "big"))) }
}

/// Suspends the caller if `word` is `expected`, until it is woken or `until` passes. Returns how the wait ended.
///
/// BOUND: `until`. Without it, until the thread that changes the word wakes the caller.
#[inline]
pub fn wait(scope: Scope, word: &AtomicU32, expected: u32, until: Option<Deadline>) -> Ended {
    call(&Arguments::wait(scope, word, expected, until.map(|until| until.clock)), until)
}

/// Whether a thread waits at `word`. Requeues the first waiter to the same word: the kernel counts it, and it keeps its
/// place.
#[inline]
pub fn has_waiters(scope: Scope, word: &AtomicU32) -> bool {
    let operation = libc::FUTEX_REQUEUE | scope.flag();
    // SAFETY: the word is borrowed, so it is valid during the call, which only compares and requeues.
    let count =
        unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, 0, 1 as libc::c_long, word.as_ptr()) };
    // The kernel refuses to move waiters that wait to be moved to a word with priority inheritance.
    count > 0 || count < 0 && errno() == libc::EINVAL
}

/// Wakes up to `count` waiters, the most urgent first. Returns the number of threads woken.
///
/// `word` is an address because the word may be gone, together with its last user, at the time of the call. A thread
/// that such a call wakes by mistake reads its own word and waits again.
#[inline]
pub fn wake(scope: Scope, word: *const AtomicU32, count: i32) -> usize {
    try_wake(scope, word, count).unwrap_or(0)
}

/// As [`wake`], but returns the kernel's error.
///
/// # Errors
/// EINVAL if there is a waiter of [`Arguments::wait_requeue_pi`]; the waiters before it have been woken by then.
#[expect(
    clippy::not_unsafe_ptr_arg_deref,
    reason = "the kernel uses the address as a name, and refuses one that is not mapped"
)]
#[inline]
pub fn try_wake(scope: Scope, word: *const AtomicU32, count: i32) -> Result<usize, SysError> {
    // SAFETY: the kernel uses the address only to find the waiters, and refuses one that is not mapped.
    let woken = unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAKE | scope.flag(), count) };
    usize::try_from(woken).map_err(|_| SysError::last("futex wake"))
}

/// Wakes up to `count` waiters that have one of `marks`. Returns the number of threads woken.
///
/// # Errors
/// As [`try_wake`].
pub fn try_wake_marked(scope: Scope, word: &AtomicU32, count: i32, marks: u32) -> Result<usize, SysError> {
    let call = libc::FUTEX_WAKE_BITSET | scope.flag();
    let nothing = std::ptr::null::<u32>();
    // SAFETY: the word is borrowed during the call, and the call reads nothing at the other addresses.
    let woken = unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), call, count, nothing, nothing, marks) };
    usize::try_from(woken).map_err(|_| SysError::last("futex wake"))
}

/// Clears bit `bit` of `word`, and wakes all its waiters. A thread that begins to wait does so before both or after
/// both: it compares the word under the same lock of the kernel. Returns the number of threads woken.
///
/// # Errors
/// The kernel's errors. Unless the word has priority inheritance (EINVAL), nothing has changed then.
pub fn clear_and_wake_all(scope: Scope, word: &AtomicU32, bit: u32) -> Result<usize, SysError> {
    const ARGUMENT_IS_SHIFTED: u32 = 8;
    change_and_wake_all(scope, word, (ARGUMENT_IS_SHIFTED | libc::FUTEX_OP_ANDN as u32) << 28 | bit << 12)
}

/// Writes 0 to `word`, and wakes all its waiters, in one step as [`clear_and_wake_all`]. Returns the number of threads
/// woken. The caller must not access the word afterwards.
///
/// # Errors
/// The kernel's errors. Unless the word has priority inheritance (EINVAL), nothing has changed then.
pub fn zero_and_wake_all(scope: Scope, word: &AtomicU32) -> Result<usize, SysError> {
    change_and_wake_all(scope, word, (libc::FUTEX_OP_SET as u32) << 28)
}

fn change_and_wake_all(scope: Scope, word: &AtomicU32, change: u32) -> Result<usize, SysError> {
    sanitizer::release(word);
    let (word, operation) = (word.as_ptr(), libc::FUTEX_WAKE_OP | scope.flag());
    // The second part of the call, which wakes waiters of the second word if that had a certain value before, would
    // find nobody left.
    let none = 0 as libc::c_long;
    let all = libc::c_long::from(i32::MAX);
    // SAFETY: the word is borrowed, so it is valid during the call, and it is atomic, so the kernel may change it.
    let woken = unsafe { libc::syscall(libc::SYS_futex, word, operation, all, none, word, libc::c_long::from(change)) };
    usize::try_from(woken).map_err(|_| SysError::last("futex wake"))
}

/// If `word` is `expected`, wakes up to `wake` of its waiters and moves up to `count` others to `target`, the most
/// urgent first.
///
/// Returns the number of waiters woken and moved, or `None` if the word had another value.
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
    // SAFETY: the kernel reads `word`, which is borrowed. It uses `target` only to name the new queue, and refuses an
    // address that is not mapped.
    let moved = unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), operation, wake, count as libc::c_long, target, expected)
    };
    usize::try_from(moved).ok()
}

/// If `word` is `expected`, moves its waiters to `target`, a word with priority inheritance.
///
/// The most urgent waiter of [`Arguments::wait_requeue_pi`] becomes the owner of `target`, or waits for it. Up to
/// `count` others are moved.
///
/// # Errors
/// EAGAIN if `word` is not `expected`; EINVAL if a waiter is no waiter of [`Arguments::wait_requeue_pi`], or named
/// another target; ENOMEM and the kernel's other errors.
#[expect(
    clippy::not_unsafe_ptr_arg_deref,
    reason = "the kernel changes only a word that a waiter named, and refuses an address that is not mapped"
)]
#[inline]
pub fn cmp_requeue_pi(
    scope: Scope,
    word: &AtomicU32,
    expected: u32,
    count: i32,
    target: *const AtomicU32,
) -> Result<usize, SysError> {
    let operation = libc::FUTEX_CMP_REQUEUE_PI | scope.flag();
    // SAFETY: the kernel reads `word`, which is borrowed. It changes the word at `target` only if the first waiter
    // named this address in [`Arguments::wait_requeue_pi`]; that waiter keeps the word valid while it waits. The kernel
    // refuses an address that is not mapped.
    let moved =
        unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, 1, count as libc::c_long, target, expected) };
    usize::try_from(moved).map_err(|_| SysError::last("futex requeue"))
}

/// How often the kernel may report a cycle of waits before the report counts.
const CYCLES_MAX: u32 = 16;

/// Locks a word that another thread owns. The kernel lends the owner the caller's priority.
///
/// # Errors
/// EDEADLK if the kernel has reported a cycle `CYCLES_MAX` times. One report can be wrong, see [`lock_pi_once`]: for
/// each, the caller must be preempted between two certain steps, while the owner at which it has arrived unlocks and
/// then requests a lock of the caller. ESRCH if the owner has ended; EPERM if it is a thread of the parent process,
/// which never unlocks this copy of the word; ETIMEDOUT after the deadline; EAGAIN and EINTR, after which the caller
/// tries again; and the kernel's other errors.
///
/// BOUND: `until`. Without it, until the owner unlocks.
#[inline]
pub fn lock_pi(scope: Scope, word: &AtomicU32, until: Option<Deadline>) -> Result<(), SysError> {
    let mut cycles = 0;
    // BOUND: CYCLES_MAX rounds.
    loop {
        let locked = lock_pi_once(scope, word, until);
        cycles += 1;
        if cycles == CYCLES_MAX || locked.as_ref().map_err(|error| error.errno) != Err(libc::EDEADLK) {
            return locked;
        }
    }
}

/// Locks a word that another thread owns, with one system call.
///
/// The kernel follows the owners before it suspends the caller, and answers EDEADLK if it comes back to the caller. It
/// holds no lock between two steps. So the caller can be preempted there, and an owner that it has just found blocked
/// can go on and wait for a lock of the caller. The kernel compares the addresses of its own objects to notice that,
/// and each thread uses the same object again. So the answer can be wrong, but not for long.
///
/// # Errors
/// EDEADLK for such an answer; otherwise those of [`lock_pi`].
///
/// BOUND: `until`. Without it, until the owner unlocks.
#[inline]
pub fn lock_pi_once(scope: Scope, word: &AtomicU32, until: Option<Deadline>) -> Result<(), SysError> {
    // Linux 6.18 refuses to wait for a thread of the parent, and Linux 6.1 would wait for it.
    if scope == Scope::Private && fork::generation() > 0 && is_of_parent(word) {
        return Err(SysError { call: "futex lock", errno: libc::EPERM });
    }
    // The older operation supports CLOCK_REALTIME only.
    let operation = match until {
        Some(Deadline { clock: Clock::Monotonic, .. }) => libc::FUTEX_LOCK_PI2,
        _ => libc::FUTEX_LOCK_PI,
    };
    let time = until.map(|until| timespec(until.at_ns));
    let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the word is borrowed, so it is valid during the call. The time is null, which means no deadline, or
    // points to a timespec that outlives the call.
    let result = unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation | scope.flag(), 0, time) };
    if result == 0 {
        sanitizer::acquire(word);
        Ok(())
    } else {
        Err(SysError::last("futex lock"))
    }
}

/// Whether the owner of a private word is a thread of another process: it locked the word before the `fork`.
#[cold]
fn is_of_parent(word: &AtomicU32) -> bool {
    // ORDERING: Relaxed: the value is only compared.
    let owner = word.load(Ordering::Relaxed) & libc::FUTEX_TID_MASK;
    owner != 0 && sched::is_foreign(Tid(owner))
}

/// Locks a word through the kernel without waiting. This also acquires a word whose owner has died and whose value does
/// not show it.
///
/// # Errors
/// EAGAIN if another thread owns the word, and the kernel's other errors.
#[inline]
pub fn trylock_pi(scope: Scope, word: &AtomicU32) -> Result<(), SysError> {
    // SAFETY: the word is borrowed, so it is valid during the call, and it is atomic, so the kernel may change it.
    let result = unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_TRYLOCK_PI | scope.flag()) };
    if result == 0 {
        sanitizer::acquire(word);
        Ok(())
    } else {
        Err(SysError::last("futex trylock"))
    }
}

/// How often the kernel may answer "try again" to an unlock before that counts as an error.
const UNLOCKS_MAX: u32 = 1_000;

/// Unlocks a word that the calling thread owns. The most urgent waiter is woken and becomes the owner.
///
/// # Errors
/// EPERM if the caller does not own the word; EAGAIN if the kernel still answers so after UNLOCKS_MAX attempts; and the
/// kernel's other errors.
#[cold]
pub fn unlock_pi(scope: Scope, word: &AtomicU32) -> Result<(), SysError> {
    sanitizer::release(word);
    let mut last = SysError { call: "futex unlock", errno: libc::EAGAIN };
    // BOUND: UNLOCKS_MAX rounds.
    for _ in 0..UNLOCKS_MAX {
        // SAFETY: the word is borrowed, so it is valid during the call, and it is atomic, so the kernel may change it.
        let result = unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_UNLOCK_PI | scope.flag()) };
        if result == 0 {
            return Ok(());
        }
        last = SysError::last("futex unlock");
        if !matches!(last.errno, libc::EAGAIN | libc::EINTR) {
            break;
        }
    }
    Err(last)
}

/// Annotations for ThreadSanitizer of the order that the kernel creates between an unlock and a lock. ThreadSanitizer
/// sees only the atomic operations of the program; operations in user space need no annotation.
mod sanitizer {
    use std::sync::atomic::AtomicU32;

    #[cfg(lockwright_tsan)]
    unsafe extern "C" {
        safe fn __tsan_acquire(address: *const AtomicU32);
        safe fn __tsan_release(address: *const AtomicU32);
    }

    /// States that the kernel made the caller the owner of the word.
    #[inline(always)]
    pub(super) fn acquire(word: *const AtomicU32) {
        #[cfg(lockwright_tsan)]
        __tsan_acquire(word);
        let _ = word;
    }

    /// States that the caller passes the word to the kernel.
    #[inline(always)]
    pub(super) fn release(word: *const AtomicU32) {
        #[cfg(lockwright_tsan)]
        __tsan_release(word);
        let _ = word;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;
    use crate::process::holds_in_child;

    #[test]
    fn a_child_does_not_wait_for_a_thread_of_its_parent() {
        let word = AtomicU32::new(sched::gettid().0);
        let lock = || {
            let soon = Deadline { clock: Clock::Monotonic, at_ns: clock::now_ns() + 100_000_000 };
            lock_pi(Scope::Private, &word, Some(soon)).expect_err("it is locked").errno
        };
        assert_eq!(lock(), libc::EDEADLK);
        assert!(holds_in_child(|| lock() == libc::EPERM));
    }
}
