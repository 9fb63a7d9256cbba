//! `lw_cond_*`.

use crate::argument::{self, Cond, Mutex};
use crate::errno::{guarded, of_error};
use crate::mutex::lw_mutex_t;
use libc::{c_int, timespec};
use lockwright::mutex::{Acquired, Deadline, Destroyed, RawCondvar, WaitEnd};

/// A condition variable: 64 bytes, aligned to 8, wherever a mutex can be. Initialise it by `LW_COND_INITIALIZER` or `lw_cond_init`, and never move or copy it.
/// Its fields are nobody's business.
#[repr(C)]
pub struct lw_cond_t {
    lw_count: [u32; 2],
    lw_mutex: usize,
    lw_flags: [u32; 8],
    pub(crate) lw_check: u32,
    lw_spare: [u32; 3],
}

/// Makes a condition variable in `*cond`, whatever was there; with `shared` 1 for threads of all processes that map it, with 0 for those of this one.
/// Where it or its mutex is shared, signals wake waiters, who then ask for the mutex; otherwise they move waiters to the mutex.
///
/// EINVAL: an argument is not one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_cond_init(cond: *mut lw_cond_t, shared: c_int) -> c_int {
    guarded(|| {
        if cond.is_null() || !cond.is_aligned() || !matches!(shared, 0 | 1) {
            return libc::EINVAL;
        }
        // SAFETY: looked at just now; the header's head asks for the rest.
        unsafe { Cond::make(cond, RawCondvar::new(shared == 1)) };
        0
    })
}

/// Ends a condition variable: every use of it but `lw_cond_init` is refused (EINVAL) from then on.
///
/// EBUSY: somebody waits, or was woken and has not left for 1 s. EINVAL: it is not a condition variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_cond_destroy(cond: *mut lw_cond_t) -> c_int {
    guarded(|| {
        // SAFETY: the header's head asks for it.
        match unsafe { Cond::at(cond) } {
            None => libc::EINVAL,
            // Those that were woken have left when it returns.
            Some(cond) if cond.raw.destroy() == Destroyed::InUse => libc::EBUSY,
            Some(cond) => {
                cond.unmake();
                0
            }
        }
    })
}

unsafe fn wait(
    cond: *mut lw_cond_t,
    mutex: *mut lw_mutex_t,
    until: impl FnOnce() -> Option<Option<Deadline>>,
) -> c_int {
    guarded(|| {
        // SAFETY: promised by the caller.
        let Some(cond) = (unsafe { Cond::at(cond) }) else { return libc::EINVAL };
        // SAFETY: as above.
        let Some(mutex) = (unsafe { Mutex::at(mutex) }) else { return libc::EINVAL };
        let Some(until) = until() else { return libc::EINVAL };
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

/// Gives the mutex back and waits, for a signal or for no reason; takes the mutex again. All who wait at a time use the same mutex.
///
/// 0, EOWNERDEAD: the caller has the mutex, as after `lw_mutex_lock`. EPERM: the caller did not have it. EINVAL: an argument is not one, or the
/// caller took the mutex more than once; nothing has changed then. Otherwise as `lw_mutex_lock`, and the caller does not have it (`lw_mutex_is_mine` tells).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_cond_wait(cond: *mut lw_cond_t, mutex: *mut lw_mutex_t) -> c_int {
    // SAFETY: the header's head asks for it.
    unsafe { wait(cond, mutex, || Some(None)) }
}

/// As `lw_cond_wait`, until `clock` (CLOCK_MONOTONIC or CLOCK_REALTIME) reads `*time`.
///
/// ETIMEDOUT: the time has come without a signal, and the caller has the mutex. EINVAL also: another clock, no time, or its nanoseconds are not below a second.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_cond_wait_until(
    cond: *mut lw_cond_t,
    mutex: *mut lw_mutex_t,
    clock: c_int,
    time: *const timespec,
) -> c_int {
    // SAFETY: the header's head asks for it.
    unsafe { wait(cond, mutex, || argument::deadline(clock, time).map(Some)) }
}

/// As `lw_cond_wait_until`, so long from now by CLOCK_MONOTONIC. EINVAL also: a negative time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_cond_wait_for(
    cond: *mut lw_cond_t,
    mutex: *mut lw_mutex_t,
    time: *const timespec,
) -> c_int {
    // SAFETY: the header's head asks for it.
    unsafe { wait(cond, mutex, || argument::deadline_after(time).map(Some)) }
}

unsafe fn take_off(cond: *mut lw_cond_t, take_off: impl FnOnce(&RawCondvar)) -> c_int {
    guarded(|| {
        // SAFETY: promised by the caller.
        let Some(cond) = (unsafe { Cond::at(cond) }) else { return libc::EINVAL };
        take_off(&cond.raw);
        0
    })
}

/// Takes the most urgent waiter off, if there is one. Without one, no system call.
///
/// EINVAL: it is not a condition variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_cond_signal(cond: *mut lw_cond_t) -> c_int {
    // SAFETY: the header's head asks for it.
    unsafe { take_off(cond, RawCondvar::signal) }
}

/// Takes all waiters off, the most urgent first.
///
/// EINVAL: it is not a condition variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_cond_broadcast(cond: *mut lw_cond_t) -> c_int {
    // SAFETY: the header's head asks for it.
    unsafe { take_off(cond, RawCondvar::broadcast) }
}
