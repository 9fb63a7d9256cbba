//! The functions `pthread_mutex_*`.
//!
//! A lock is tried first, and recorded as a request only if the mutex is busy. A lock is recorded after it happens, and
//! an unlock before it happens, so that the stamps of different threads have the order of the operations.

use crate::entry::entries;
use crate::next::{self, Opaque};
use crate::ring::Ring;
use crate::thread::current;
use libc::{EBUSY, EOWNERDEAD, c_int, c_void, clockid_t, timespec};
use lockwright_record::file::format::{DETAIL_SHIFT, TRIED, class, event, mutex};
use std::sync::atomic::{AtomicU32, Ordering};

/// Where the C library keeps the kind of a mutex, in bytes.
const KIND_AT: usize = 16;

/// Returns the site, with the properties of the mutex that a record contains.
///
/// # Safety
/// `mutex` points to an initialised mutex, which stays valid during the call.
#[inline(always)]
unsafe fn place(mutex: Opaque, site: usize) -> u64 {
    // SAFETY: the caller passes a valid mutex. The word lies inside it, is aligned, and is changed by atomic operations
    // only.
    let kind = unsafe { &*mutex.byte_add(KIND_AT).cast::<AtomicU32>() };
    // ORDERING: Relaxed: set before other threads know the mutex.
    let kind = (kind.load(Ordering::Relaxed) & u32::from(mutex::ALL)) as u64;
    site as u64 | (u64::from(class::MUTEX) | kind << 8) << DETAIL_SHIFT
}

/// Whether the caller has the mutex after this answer.
#[inline(always)]
fn has(answer: c_int) -> bool {
    answer == 0 || answer == EOWNERDEAD
}

/// Records that the caller has the mutex.
///
/// # Safety
/// That of [`place`].
#[inline(always)]
unsafe fn locked(ring: &Ring, mutex: Opaque, site: usize) {
    // SAFETY: the caller passes a valid mutex.
    let place = unsafe { place(mutex, site) };
    ring.put(event::LOCKED_WRITE, [mutex.addr() as u64, place]);
}

/// Locks a mutex by `wait` if it is busy.
///
/// # Safety
/// That of [`place`].
#[inline(always)]
unsafe fn lock_by(mutex: Opaque, site: usize, wait: impl FnOnce() -> c_int) -> c_int {
    let Some(ring) = current() else { return wait() };
    // SAFETY: the caller passes an initialised mutex to be locked, which stays valid during the call.
    unsafe {
        let answer = next::pthread_mutex_trylock(mutex);
        if has(answer) {
            locked(ring, mutex, site);
            return answer;
        }
        if answer == EBUSY { contended(ring, mutex, site, wait) } else { answer }
    }
}

/// Waits for a busy mutex.
///
/// # Safety
/// That of [`place`].
#[cold]
#[inline(never)]
unsafe fn contended(ring: &Ring, mutex: Opaque, site: usize, wait: impl FnOnce() -> c_int) -> c_int {
    // SAFETY: the caller passes a valid mutex.
    let place = unsafe { place(mutex, site) };
    ring.put(event::REQUEST_WRITE, [mutex.addr() as u64, place]);
    let answer = ring.within(wait);
    if has(answer) {
        // SAFETY: the caller passes a valid mutex, which it has now.
        unsafe { locked(ring, mutex, site) };
    } else {
        ring.put(event::REFUSED, [mutex.addr() as u64]);
    }
    answer
}

pub(crate) unsafe extern "C-unwind" fn lock(mutex: Opaque, site: usize) -> c_int {
    // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
    unsafe { lock_by(mutex, site, || next::pthread_mutex_lock(mutex)) }
}

pub(crate) unsafe extern "C-unwind" fn timedlock(mutex: Opaque, time: *const timespec, site: usize) -> c_int {
    // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
    unsafe { lock_by(mutex, site, || next::pthread_mutex_timedlock(mutex, time)) }
}

unsafe extern "C-unwind" fn clocklock(mutex: Opaque, clock: clockid_t, time: *const timespec, site: usize) -> c_int {
    // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
    unsafe { lock_by(mutex, site, || next::pthread_mutex_clocklock(mutex, clock, time)) }
}

pub(crate) unsafe extern "C-unwind" fn trylock(mutex: Opaque, site: usize) -> c_int {
    // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
    let answer = unsafe { next::pthread_mutex_trylock(mutex) };
    if has(answer)
        && let Some(ring) = current()
    {
        // SAFETY: the program passes an initialised mutex, which stays valid during the call.
        let place = unsafe { place(mutex, site) } | TRIED;
        ring.put(event::LOCKED_WRITE, [mutex.addr() as u64, place]);
    }
    answer
}

/// As in the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_mutex_unlock(mutex: Opaque) -> c_int {
    if let Some(ring) = current() {
        ring.put(event::UNLOCK, [mutex.addr() as u64]);
    }
    // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
    unsafe { next::pthread_mutex_unlock(mutex) }
}

/// As in the C library, under the name that older programs use.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __pthread_mutex_unlock(mutex: Opaque) -> c_int {
    // SAFETY: both names denote one function, and the program passes a mutex that it holds.
    unsafe { pthread_mutex_unlock(mutex) }
}

/// Records that a mutex was initialised.
///
/// # Safety
/// That of [`place`].
pub(crate) unsafe fn initialised(mutex: Opaque, site: usize) {
    let Some(ring) = current() else { return };
    let mut ceiling = 0;
    // The C library answers with an error unless the mutex has a ceiling.
    // SAFETY: the caller has just initialised the mutex, and `ceiling` is valid for writing.
    let place = unsafe {
        if next::pthread_mutex_getprioceiling(mutex, &raw mut ceiling) != 0 {
            ceiling = 0;
        }
        place(mutex, site)
    };
    ring.put(event::INIT, [mutex.addr() as u64, place, ceiling as u64]);
}

unsafe extern "C-unwind" fn init(mutex: Opaque, attributes: *const c_void, site: usize) -> c_int {
    // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
    let answer = unsafe { next::pthread_mutex_init(mutex, attributes) };
    if answer == 0 {
        // SAFETY: the mutex has just been initialised, and stays valid during the call.
        unsafe { initialised(mutex, site) };
    }
    answer
}

/// As in the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_mutex_setprioceiling(mutex: Opaque, ceiling: c_int, old: *mut c_int) -> c_int {
    // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
    let answer = unsafe { next::pthread_mutex_setprioceiling(mutex, ceiling, old) };
    if answer == 0
        && let Some(ring) = current()
    {
        ring.put(event::CEILING, [mutex.addr() as u64, ceiling as u64]);
    }
    answer
}

/// Unlocks a mutex around `wait`, as condition variables do.
///
/// # Safety
/// That of [`place`], until `wait` has returned.
#[inline(always)]
pub(crate) unsafe fn without(ring: &Ring, mutex: Opaque, site: usize, wait: impl FnOnce() -> c_int) -> c_int {
    ring.put(event::UNLOCK, [mutex.addr() as u64]);
    let answer = wait();
    // SAFETY: the caller passes a valid mutex.
    unsafe { locked(ring, mutex, site) };
    answer
}

entries! {
    "rdx" pthread_mutex_init = init;
    "rsi" pthread_mutex_lock = lock;
    "rsi" __pthread_mutex_lock = lock;
    "rsi" pthread_mutex_trylock = trylock;
    "rsi" __pthread_mutex_trylock = trylock;
    "rdx" pthread_mutex_timedlock = timedlock;
    "rcx" pthread_mutex_clocklock = clocklock;
}
