//! The functions `lw_cond_*`.

use crate::argument::{self, CObject, Const, Mut};
use crate::errno::of_error;
use crate::mutex::lw_mutex_t;
use crate::panic::guarded;
use libc::{c_int, timespec};
use lockwright::mutex::{Acquired, Deadline, Destroyed, RawCondvar, WaitEnd};
use std::sync::atomic::{AtomicU32, Ordering};

/// A condition variable: 64 bytes, aligned to 8.
///
/// It may be wherever a mutex may be. Initialise it with `LW_COND_INITIALIZER` or `lw_cond_init`. Never move or copy
/// it. Its fields are private.
#[repr(C)]
pub struct lw_cond_t {
    lw_count: [u32; 2],
    lw_mutex: usize,
    lw_flags: [u32; 8],
    lw_check: u32,
    lw_spare: [u32; 3],
}

/// Check value of a condition variable. The initialisers of the header contain this value.
const COND_CHECK: u32 = 0x4c57_6376;

/// The contents of a `lw_cond_t`.
#[repr(C)]
pub struct Cond {
    pub raw: RawCondvar,
    check: AtomicU32,
    /// As for a mutex.
    spare: [u32; 3],
}

const _: () = assert!(std::mem::offset_of!(Cond, check) == std::mem::offset_of!(lw_cond_t, lw_check));

// SAFETY: `raw` and `check` consist of atomics, and of integers that only `raw` uses.
unsafe impl CObject for lw_cond_t {
    type Contents = Cond;

    #[inline]
    fn is_made(cond: &Cond) -> bool {
        // ORDERING: Relaxed: the thread that made the condition variable published it.
        cond.check.load(Ordering::Relaxed) == COND_CHECK
    }
}

/// Initialises `*cond` as a condition variable without waiters, whatever the memory contained before.
///
/// `shared` is 0 for threads of this process, and 1 for threads of all processes that map the memory. If the condition
/// variable or the mutex of its waiters is shared, a signal wakes waiters, which then lock the mutex. Otherwise a
/// signal may move waiters to the mutex, so that they execute only when they hold it.
///
/// Returns:
/// - 0: success.
/// - EINVAL: `cond` is NULL or misaligned, or `shared` is neither 0 nor 1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_cond_init(cond: Mut<'_, lw_cond_t>, shared: c_int) -> c_int {
    guarded(|| {
        if !matches!(shared, 0 | 1) {
            return libc::EINVAL;
        }
        let raw = RawCondvar::new(shared == 1);
        let cond = cond.make(Cond { raw, check: AtomicU32::new(COND_CHECK), spare: [0; 3] });
        if cond.is_some() { 0 } else { libc::EINVAL }
    })
}

/// Destroys a condition variable, once all woken waiters have left it. Every later use except `lw_cond_init` returns
/// EINVAL.
///
/// A woken waiter of a shared condition variable that has not left for 1 s is presumed dead.
///
/// Returns:
/// - 0: success.
/// - EBUSY: a thread waits, a woken waiter can leave only when the caller unlocks the mutex, or a woken waiter of a
///   condition variable that is not shared has not left for 1 s.
/// - EINVAL: `cond` is not an initialised condition variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_cond_destroy(cond: Mut<'_, lw_cond_t>) -> c_int {
    guarded(|| {
        match cond.object() {
            None => libc::EINVAL,
            // `destroy` returns only after the woken waiters have left.
            Some(cond) if cond.raw.destroy() == Destroyed::InUse => libc::EBUSY,
            Some(cond) => {
                // ORDERING: Relaxed: as for a mutex.
                cond.check.store(0, Ordering::Relaxed);
                0
            }
        }
    })
}

fn wait(
    cond: Mut<'_, lw_cond_t>,
    mutex: Mut<'_, lw_mutex_t>,
    until: impl FnOnce() -> Option<Option<Deadline>>,
) -> c_int {
    guarded(|| {
        let (Some(cond), Some(mutex), Some(until)) = (cond.object(), mutex.object(), until()) else {
            return libc::EINVAL;
        };
        if mutex.raw.is_mine() && mutex.raw.is_taken_again() {
            return libc::EINVAL;
        }
        match cond.raw.wait(&mutex.raw, until) {
            Ok((Acquired::OwnerDied, _)) => libc::EOWNERDEAD,
            Ok((Acquired::Clean, WaitEnd::Woken)) => 0,
            Ok((Acquired::Clean, WaitEnd::TimedOut)) => libc::ETIMEDOUT,
            Err(error) => of_error(&mutex.raw, error),
        }
    })
}

/// Unlocks the mutex, waits for a signal, and locks the mutex again.
///
/// The caller must hold the mutex. All threads that wait at the same time must use the same mutex. The function may
/// also return without a signal, so check the condition in a loop.
///
/// Returns:
/// - 0: the caller holds the mutex.
/// - EOWNERDEAD: the caller holds the mutex, as after EOWNERDEAD from `lw_mutex_lock`.
/// - EPERM: the caller did not hold the mutex. It has not waited.
/// - EINVAL: `cond` or `mutex` is not initialised, or the caller has locked a recursive mutex more than once. It has
///   not waited.
/// - Otherwise an error of `lw_mutex_lock`. The caller does not hold the mutex, unless the error came before the wait:
///   use `lw_mutex_is_mine` to find out.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_cond_wait(cond: Mut<'_, lw_cond_t>, mutex: Mut<'_, lw_mutex_t>) -> c_int {
    wait(cond, mutex, || Some(None))
}

/// Waits as `lw_cond_wait` does, at most until `clock` reads `*time`.
///
/// `clock` is CLOCK_MONOTONIC or CLOCK_REALTIME, and `*time` is an absolute time by that clock.
///
/// Returns the values of `lw_cond_wait`, and:
/// - ETIMEDOUT: the time passed without a signal. The caller holds the mutex.
/// - EINVAL, also: `clock` is another clock, `time` is NULL or misaligned, or `time->tv_nsec` is not from 0 to
///   999999999.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_cond_wait_until(
    cond: Mut<'_, lw_cond_t>,
    mutex: Mut<'_, lw_mutex_t>,
    clock: c_int,
    time: Const<'_, timespec>,
) -> c_int {
    wait(cond, mutex, || argument::deadline(clock, time).map(Some))
}

/// Waits as `lw_cond_wait_until` does, at most for the duration `*time`, by CLOCK_MONOTONIC.
///
/// Returns the values of `lw_cond_wait_until`, and:
/// - EINVAL, also: `*time` is negative.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_cond_wait_for(
    cond: Mut<'_, lw_cond_t>,
    mutex: Mut<'_, lw_mutex_t>,
    time: Const<'_, timespec>,
) -> c_int {
    wait(cond, mutex, || argument::deadline_after(time).map(Some))
}

fn take_off(cond: Mut<'_, lw_cond_t>, take_off: fn(&RawCondvar)) -> c_int {
    match cond.object() {
        // Nothing is called, so no registers are saved.
        Some(cond) if !cond.raw.is_waited_for() => 0,
        Some(cond) => take_off_waiters(&cond.raw, take_off),
        None => libc::EINVAL,
    }
}

#[cold]
#[inline(never)]
fn take_off_waiters(cond: &RawCondvar, take_off: fn(&RawCondvar)) -> c_int {
    guarded(|| {
        take_off(cond);
        0
    })
}

/// Wakes the most urgent waiter, if there is one. The caller need not hold the mutex. Wakes all waiters if the priority
/// of one of them has changed since it began to wait.
///
/// Makes no system call if no thread waits.
///
/// Returns:
/// - 0: success.
/// - EINVAL: `cond` is not an initialised condition variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_cond_signal(cond: Mut<'_, lw_cond_t>) -> c_int {
    take_off(cond, RawCondvar::signal)
}

/// Wakes all waiters, the most urgent first. The caller need not hold the mutex.
///
/// Returns:
/// - 0: success.
/// - EINVAL: `cond` is not an initialised condition variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_cond_broadcast(cond: Mut<'_, lw_cond_t>) -> c_int {
    take_off(cond, RawCondvar::broadcast)
}
