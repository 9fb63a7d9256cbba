//! The functions `pthread_rwlock_*`.

use crate::entry::entries;
use crate::next::{self, Opaque};
use crate::ring::Ring;
use crate::thread::current;
use libc::{CLOCK_REALTIME, EBUSY, c_int, c_void, clockid_t, timespec};
use lockwright_record::file::format::{DETAIL_SHIFT, TRIED, class, event};

fn place(site: usize) -> u64 {
    site as u64 | u64::from(class::RWLOCK) << DETAIL_SHIFT
}

/// How a lock is locked: what is recorded for it.
#[derive(Clone, Copy)]
struct Mode {
    request: u8,
    locked: u8,
}

const READ: Mode = Mode { request: event::REQUEST_READ, locked: event::LOCKED_READ };
const WRITE: Mode = Mode { request: event::REQUEST_WRITE, locked: event::LOCKED_WRITE };

/// Locks by `attempt`, and by `wait` if the lock is busy.
#[inline(always)]
fn lock_by(
    lock: Opaque,
    mode: Mode,
    site: usize,
    attempt: impl FnOnce() -> c_int,
    wait: impl FnOnce() -> c_int,
) -> c_int {
    let Some(ring) = current() else { return wait() };
    match attempt() {
        0 => {
            ring.put(mode.locked, [lock.addr() as u64, place(site)]);
            0
        }
        EBUSY => contended(ring, lock, mode, site, wait),
        answer => answer,
    }
}

#[cold]
#[inline(never)]
fn contended(ring: &Ring, lock: Opaque, mode: Mode, site: usize, wait: impl FnOnce() -> c_int) -> c_int {
    ring.put(mode.request, [lock.addr() as u64, place(site)]);
    let answer = ring.within(wait);
    if answer == 0 {
        ring.put(mode.locked, [lock.addr() as u64, place(site)]);
    } else {
        ring.put(event::REFUSED, [lock.addr() as u64]);
    }
    answer
}

fn tried(lock: Opaque, mode: Mode, site: usize, answer: c_int) -> c_int {
    if answer == 0
        && let Some(ring) = current()
    {
        ring.put(mode.locked, [lock.addr() as u64, place(site) | TRIED]);
    }
    answer
}

/// Whether the C library takes this limit of a wait. It refuses another one even if the lock is free.
///
/// # Safety
///
/// `time` is null, or points to a time that stays valid during the call.
unsafe fn is_valid(clock: clockid_t, time: *const timespec) -> bool {
    // SAFETY: the caller passes null, or a time that stays valid during the call.
    let nanoseconds = unsafe { time.as_ref() }.map_or(0, |time| time.tv_nsec);
    matches!(clock, CLOCK_REALTIME | libc::CLOCK_MONOTONIC) && (0..1_000_000_000).contains(&nanoseconds)
}

/// Defines the functions that lock in one mode.
macro_rules! locks {
    ($($mode:ident $attempt:ident $function:ident($($argument:ident: $type:ty),*) $(if $valid:expr)? => $name:ident;)*) => {$(
        unsafe extern "C-unwind" fn $name(lock: Opaque, $($argument: $type,)* site: usize) -> c_int {
            // SAFETY: the program passes null or a time that stays valid until the call returns.
            let valid = true $(&& unsafe { $valid })?;
            // SAFETY: the program passes an initialised lock to be locked, which stays valid during the call.
            let attempt = || if valid { unsafe { next::$attempt(lock) } } else { EBUSY };
            // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
            lock_by(lock, $mode, site, attempt, || unsafe { next::$function(lock, $($argument),*) })
        }
    )*};
}

locks! {
    READ pthread_rwlock_tryrdlock pthread_rwlock_rdlock() => rdlock;
    READ pthread_rwlock_tryrdlock pthread_rwlock_timedrdlock(time: *const timespec) if is_valid(CLOCK_REALTIME, time) => timedrdlock;
    READ pthread_rwlock_tryrdlock pthread_rwlock_clockrdlock(clock: clockid_t, time: *const timespec) if is_valid(clock, time) => clockrdlock;
    WRITE pthread_rwlock_trywrlock pthread_rwlock_wrlock() => wrlock;
    WRITE pthread_rwlock_trywrlock pthread_rwlock_timedwrlock(time: *const timespec) if is_valid(CLOCK_REALTIME, time) => timedwrlock;
    WRITE pthread_rwlock_trywrlock pthread_rwlock_clockwrlock(clock: clockid_t, time: *const timespec) if is_valid(clock, time) => clockwrlock;
}

unsafe extern "C-unwind" fn tryrdlock(lock: Opaque, site: usize) -> c_int {
    // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
    tried(lock, READ, site, unsafe { next::pthread_rwlock_tryrdlock(lock) })
}

unsafe extern "C-unwind" fn trywrlock(lock: Opaque, site: usize) -> c_int {
    // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
    tried(lock, WRITE, site, unsafe { next::pthread_rwlock_trywrlock(lock) })
}

/// As in the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_rwlock_unlock(lock: Opaque) -> c_int {
    if let Some(ring) = current() {
        ring.put(event::UNLOCK, [lock.addr() as u64]);
    }
    // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
    unsafe { next::pthread_rwlock_unlock(lock) }
}

unsafe extern "C-unwind" fn init(lock: Opaque, attributes: *const c_void, site: usize) -> c_int {
    // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
    let answer = unsafe { next::pthread_rwlock_init(lock, attributes) };
    if answer == 0
        && let Some(ring) = current()
    {
        ring.put(event::INIT, [lock.addr() as u64, place(site), 0]);
    }
    answer
}

entries! {
    "rdx" pthread_rwlock_init = init;
    "rsi" pthread_rwlock_rdlock = rdlock;
    "rsi" pthread_rwlock_tryrdlock = tryrdlock;
    "rdx" pthread_rwlock_timedrdlock = timedrdlock;
    "rcx" pthread_rwlock_clockrdlock = clockrdlock;
    "rsi" pthread_rwlock_wrlock = wrlock;
    "rsi" pthread_rwlock_trywrlock = trywrlock;
    "rdx" pthread_rwlock_timedwrlock = timedwrlock;
    "rcx" pthread_rwlock_clockwrlock = clockwrlock;
}
