//! Checks of the arguments that C passes.

use crate::cond::lw_cond_t;
use crate::mutex::lw_mutex_t;
use libc::{c_int, timespec};
use lockwright::mutex::{Clock, Deadline, RawCondvar, RawMutex};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Check value of a mutex of kind 0. Other mutexes mix in their kind, so that an overwritten kind is noticed. The
/// initialisers of the header contain this value.
const MUTEX_CHECK: u32 = 0x4c57_6d78;
/// Check value of a condition variable. The initialisers of the header contain this value.
const COND_CHECK: u32 = 0x4c57_6376;
const NS_PER_S: i64 = 1_000_000_000;
/// The latest time, 292 years after a clock's zero. Later times are treated as this one.
const LAST_NS: u64 = i64::MAX as u64;

/// The contents of a `lw_mutex_t`.
#[repr(C)]
pub struct Mutex {
    pub raw: RawMutex,
    check: AtomicU32,
}

/// The contents of a `lw_cond_t`.
#[repr(C)]
pub struct Cond {
    pub raw: RawCondvar,
    check: AtomicU32,
}

const _: () = assert!(size_of::<Mutex>() <= size_of::<lw_mutex_t>() && align_of::<Mutex>() == align_of::<lw_mutex_t>());
const _: () = assert!(size_of::<Cond>() <= size_of::<lw_cond_t>() && align_of::<Cond>() == align_of::<lw_cond_t>());
const _: () = assert!(std::mem::offset_of!(Mutex, check) == std::mem::offset_of!(lw_mutex_t, lw_check));
const _: () = assert!(std::mem::offset_of!(Cond, check) == std::mem::offset_of!(lw_cond_t, lw_check));

impl Mutex {
    /// Returns the mutex at `mutex`, or `None` if there is none.
    ///
    /// # Safety
    /// `mutex` is null, misaligned, or points to memory of a `lw_mutex_t` that stays for the call.
    #[inline]
    pub unsafe fn at<'a>(mutex: *const lw_mutex_t) -> Option<&'a Self> {
        if mutex.is_null() || !mutex.is_aligned() {
            return None;
        }
        // SAFETY: not null, aligned, and the caller promises memory of this size. All fields are atomics, or integers
        // that only this library touches, so any bits are valid.
        let mutex = unsafe { &*mutex.cast::<Self>() };
        // ORDERING: Relaxed: the thread that made the mutex published it.
        (mutex.check.load(Ordering::Relaxed) == MUTEX_CHECK ^ mutex.raw.kind()).then_some(mutex)
    }

    /// Makes a mutex at `mutex`.
    ///
    /// # Safety
    /// `mutex` is not null, is aligned, and points to memory that nothing else uses.
    pub unsafe fn make(mutex: *mut lw_mutex_t, raw: RawMutex) {
        let check = AtomicU32::new(MUTEX_CHECK ^ raw.kind());
        // SAFETY: the caller promises aligned memory of this size that nothing else uses.
        unsafe {
            mutex.write_bytes(0, 1);
            mutex.cast::<Self>().write(Self { raw, check });
        }
    }

    pub fn unmake(&self) {
        // ORDERING: Relaxed: the thread that destroys the mutex has made sure that no other thread uses it.
        self.check.store(0, Ordering::Relaxed);
    }
}

impl Cond {
    /// Returns the condition variable at `cond`, or `None` if there is none.
    ///
    /// # Safety
    /// As [`Mutex::at`].
    #[inline]
    pub unsafe fn at<'a>(cond: *const lw_cond_t) -> Option<&'a Self> {
        if cond.is_null() || !cond.is_aligned() {
            return None;
        }
        // SAFETY: as in `Mutex::at`.
        let cond = unsafe { &*cond.cast::<Self>() };
        // ORDERING: Relaxed: the thread that made the condition variable published it.
        (cond.check.load(Ordering::Relaxed) == COND_CHECK).then_some(cond)
    }

    /// Makes a condition variable at `cond`.
    ///
    /// # Safety
    /// As [`Mutex::make`].
    pub unsafe fn make(cond: *mut lw_cond_t, raw: RawCondvar) {
        // SAFETY: the caller promises aligned memory of this size that nothing else uses.
        unsafe {
            cond.write_bytes(0, 1);
            cond.cast::<Self>().write(Self { raw, check: AtomicU32::new(COND_CHECK) });
        }
    }

    pub fn unmake(&self) {
        // ORDERING: Relaxed: as for a mutex.
        self.check.store(0, Ordering::Relaxed);
    }
}

/// Returns the value at `pointer`, or `None` if the pointer is null or misaligned.
///
/// # Safety
/// `pointer` is null, misaligned, or points to a `T` that does not change during the call.
pub unsafe fn read<T: Copy>(pointer: *const T) -> Option<T> {
    if pointer.is_null() || !pointer.is_aligned() {
        return None;
    }
    // SAFETY: not null and aligned, and the caller promises a `T` there.
    Some(unsafe { *pointer })
}

/// Writes `value` to `pointer`, unless it is null or misaligned. Returns whether it wrote.
///
/// # Safety
/// `pointer` is null, misaligned, or points to memory for a `T` that nothing else uses during the call.
pub unsafe fn write<T>(pointer: *mut T, value: T) -> bool {
    let is_there = !pointer.is_null() && pointer.is_aligned();
    if is_there {
        // SAFETY: not null and aligned, and the caller promises memory for a `T` there.
        unsafe { pointer.write(value) };
    }
    is_there
}

/// Returns the deadline at `*time` by `clock`, or `None` if the clock or the time is not valid. A time before the
/// clock's zero has passed.
///
/// # Safety
/// As [`read`].
pub unsafe fn deadline(clock: c_int, time: *const timespec) -> Option<Deadline> {
    let clock = match clock {
        libc::CLOCK_MONOTONIC => Clock::Monotonic,
        libc::CLOCK_REALTIME => Clock::Realtime,
        _ => return None,
    };
    // SAFETY: the caller promises what `read` requires.
    let time = unsafe { read(time) }?;
    if !(0..NS_PER_S).contains(&time.tv_nsec) {
        return None;
    }
    Some(Deadline { clock, at_ns: u64::try_from(ns(time)).unwrap_or(0) })
}

/// Returns the deadline `*time` from now by the monotonic clock, or `None` if the time is not valid.
///
/// # Safety
/// As [`read`].
pub unsafe fn deadline_after(time: *const timespec) -> Option<Deadline> {
    // SAFETY: the caller promises what `read` requires.
    let time = unsafe { read(time) }?;
    if time.tv_sec < 0 || !(0..NS_PER_S).contains(&time.tv_nsec) {
        return None;
    }
    Some(Deadline::after(Duration::from_nanos(u64::try_from(ns(time)).unwrap_or(LAST_NS))))
}

/// Converts to nanoseconds, at most `LAST_NS`.
fn ns(time: timespec) -> i64 {
    time.tv_sec.saturating_mul(NS_PER_S).saturating_add(time.tv_nsec)
}
