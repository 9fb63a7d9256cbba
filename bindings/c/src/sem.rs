//! The functions `lw_sem_*`.

use crate::argument::{self, CObject, Const, Mut};
use crate::errno::of_sys;
use crate::panic::guarded;
use libc::{c_int, c_uint, timespec};
use lockwright::mutex::Limit;
use lockwright::semaphore::{Semaphore, SemaphoreError};
use std::sync::atomic::{AtomicU32, Ordering};

/// A counting semaphore: 32 bytes, aligned to 8.
///
/// A unit that is posted while threads wait belongs to these threads: a thread that requests one later cannot take it.
/// The most urgent waiter is woken. A semaphore has no owner, so a waiter lends its priority to no thread.
///
/// It may be wherever a mutex may be. Initialise it with `LW_SEM_INITIALIZER(value)` or `lw_sem_init`. Never move or
/// copy it. Its fields are private.
#[repr(C)]
pub struct lw_sem_t {
    lw_state: u64,
    lw_words: [u32; 4],
    lw_check: u32,
    lw_spare: u32,
}

/// Check value of a semaphore. The initialiser of the header contains this value.
const SEM_CHECK: u32 = 0x4c57_736d;

/// The contents of a `lw_sem_t`.
#[repr(C)]
pub struct Sem {
    semaphore: Semaphore,
    check: AtomicU32,
    /// As for a mutex.
    spare: u32,
}

const _: () = assert!(std::mem::offset_of!(Sem, check) == std::mem::offset_of!(lw_sem_t, lw_check));

// SAFETY: `semaphore` and `check` consist of atomics, and nothing uses `spare`.
unsafe impl CObject for lw_sem_t {
    type Contents = Sem;

    #[inline]
    fn is_made(sem: &Sem) -> bool {
        // ORDERING: Relaxed: the thread that made the semaphore published it.
        sem.check.load(Ordering::Relaxed) == SEM_CHECK
    }
}

/// Performs an operation on the semaphore at `sem`.
#[inline]
fn with(sem: Mut<'_, lw_sem_t>, operation: impl FnOnce(&Semaphore) -> Result<(), SemaphoreError>) -> c_int {
    guarded(|| {
        let Some(sem) = sem.object() else { return libc::EINVAL };
        match operation(&sem.semaphore) {
            Ok(()) => 0,
            Err(error) => number(error),
        }
    })
}

#[cold]
fn number(error: SemaphoreError) -> c_int {
    match error {
        SemaphoreError::Empty => libc::EAGAIN,
        SemaphoreError::TimedOut => libc::ETIMEDOUT,
        SemaphoreError::Overflow => libc::EOVERFLOW,
        SemaphoreError::Sys(error) => of_sys(error),
        _ => libc::EIO,
    }
}

/// Waits within a limit, or returns EINVAL if it is `None`.
#[inline]
fn wait(sem: Mut<'_, lw_sem_t>, limit: impl FnOnce() -> Option<Limit>) -> c_int {
    guarded(|| match (sem.object(), limit()) {
        (Some(sem), Some(limit)) => sem.semaphore.acquire_within(limit).map_or_else(number, |()| 0),
        _ => libc::EINVAL,
    })
}

/// Initialises `*sem` with `value` units, whatever the memory contained before.
///
/// `shared` is 0 for threads of this process, and 1 for threads of all processes that map the memory.
///
/// Returns:
/// - 0: success.
/// - EINVAL: `sem` is NULL or misaligned, `shared` is neither 0 nor 1, or `value` is above 2,147,483,647.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_sem_init(sem: Mut<'_, lw_sem_t>, shared: c_int, value: c_uint) -> c_int {
    guarded(|| {
        let semaphore = match shared {
            _ if value > Semaphore::MAX => return libc::EINVAL,
            0 => Semaphore::new(value),
            1 => Semaphore::shared(value),
            _ => return libc::EINVAL,
        };
        let contents = Sem { semaphore, check: AtomicU32::new(SEM_CHECK), spare: 0 };
        if sem.make(contents).is_some() { 0 } else { libc::EINVAL }
    })
}

/// Destroys a semaphore: every later use except `lw_sem_init` returns EINVAL.
///
/// A thread may call this as soon as its own wait has acquired the last unit, even if the thread that posted it has
/// yet to return from `lw_sem_post`.
///
/// Returns:
/// - 0: success.
/// - EBUSY: a thread waits.
/// - EINVAL: `sem` is not an initialised semaphore.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_sem_destroy(sem: Mut<'_, lw_sem_t>) -> c_int {
    guarded(|| {
        match sem.object() {
            None => libc::EINVAL,
            Some(sem) if sem.semaphore.is_waited_for() => libc::EBUSY,
            Some(sem) => {
                // ORDERING: Relaxed: the caller has made sure that no other thread uses the semaphore.
                sem.check.store(0, Ordering::Relaxed);
                0
            }
        }
    })
}

/// Takes a unit. Suspends the calling thread until it gets one. Makes no system call if a unit is free.
///
/// Returns:
/// - 0: the caller has taken a unit.
/// - EINVAL: `sem` is not an initialised semaphore.
/// - Any other number is an error of the kernel.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_sem_wait(sem: Mut<'_, lw_sem_t>) -> c_int {
    wait(sem, || Some(Limit::Never))
}

/// Takes a unit without waiting.
///
/// Returns:
/// - 0: the caller has taken a unit.
/// - EAGAIN: no unit is free.
/// - EINVAL: `sem` is not an initialised semaphore.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_sem_trywait(sem: Mut<'_, lw_sem_t>) -> c_int {
    wait(sem, || Some(Limit::Now))
}

/// Takes a unit as `lw_sem_wait` does, but only waits until `clock` reads `*time`, as `lw_mutex_lock_until` does.
///
/// Returns the values of `lw_sem_wait`, and:
/// - ETIMEDOUT: the time passed before the caller could take a unit.
/// - EINVAL, also: as for `lw_mutex_lock_until`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_sem_wait_until(sem: Mut<'_, lw_sem_t>, clock: c_int, time: Const<'_, timespec>) -> c_int {
    wait(sem, || argument::deadline(clock, time).map(Limit::At))
}

/// Takes a unit as `lw_sem_wait_until` does, but only waits for the duration `*time`, by CLOCK_MONOTONIC.
///
/// Returns the values of `lw_sem_wait_until`, and:
/// - EINVAL, also: `*time` is negative.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_sem_wait_for(sem: Mut<'_, lw_sem_t>, time: Const<'_, timespec>) -> c_int {
    wait(sem, || argument::deadline_after(time).map(Limit::At))
}

/// Adds a unit, and wakes the most urgent waiter. A signal handler may call this.
///
/// Makes no system call if no thread waits.
///
/// Returns:
/// - 0: success.
/// - EOVERFLOW: the semaphore would have more than 2,147,483,647 units. Nothing has changed.
/// - EINVAL: `sem` is not an initialised semaphore.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_sem_post(sem: Mut<'_, lw_sem_t>) -> c_int {
    with(sem, Semaphore::release)
}

/// Adds `count` units at once. The most urgent waiters get them, and the remaining units are free. A signal handler may
/// call this.
///
/// Returns the values of `lw_sem_post`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_sem_post_many(sem: Mut<'_, lw_sem_t>, count: c_uint) -> c_int {
    with(sem, |semaphore| semaphore.release_many(count))
}

/// Stores in `*value` how many units are free at this moment: 0 while threads wait.
///
/// Returns:
/// - 0: success.
/// - EINVAL: `sem` is not an initialised semaphore, or `value` is NULL or misaligned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_sem_value(sem: Mut<'_, lw_sem_t>, value: Mut<'_, c_uint>) -> c_int {
    guarded(|| match sem.object() {
        Some(sem) if value.write(sem.semaphore.available()) => 0,
        _ => libc::EINVAL,
    })
}
