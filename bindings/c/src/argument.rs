//! Whether what C gave is what it should be.

use crate::cond::lw_cond_t;
use crate::mutex::lw_mutex_t;
use libc::{c_int, timespec};
use lockwright::mutex::{Clock, Deadline, RawCondvar, RawMutex};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Check value of a mutex of kind 0; others have theirs mixed in, so that a kind that was overwritten is noticed. The header has it, too.
const MUTEX_CHECK: u32 = 0x4c57_6d78;
/// Check value of a condition variable. The header has it, too.
const COND_CHECK: u32 = 0x4c57_6376;
const NS_PER_S: i64 = 1_000_000_000;
/// What is later than that, 292 years after a clock's zero, is then.
const LAST_NS: u64 = i64::MAX as u64;

/// What is in a `lw_mutex_t`.
#[repr(C)]
pub struct Mutex {
    pub raw: RawMutex,
    check: AtomicU32,
}

/// What is in a `lw_cond_t`.
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
    /// The mutex at `mutex`, if there is one.
    ///
    /// # Safety
    /// Null, misaligned, or memory of a `lw_mutex_t` that stays for the call.
    #[inline]
    pub unsafe fn at<'a>(mutex: *const lw_mutex_t) -> Option<&'a Self> {
        if mutex.is_null() || !mutex.is_aligned() {
            return None;
        }
        // SAFETY: promised by the caller. All fields are atomics, or integers that only this library touches, so any bits are one.
        let mutex = unsafe { &*mutex.cast::<Self>() };
        // ORDERING: Relaxed: who made it made it known.
        (mutex.check.load(Ordering::Relaxed) == MUTEX_CHECK ^ mutex.raw.kind()).then_some(mutex)
    }

    /// Makes one there.
    ///
    /// # Safety
    /// Not null, aligned, and nobody else's memory.
    pub unsafe fn make(mutex: *mut lw_mutex_t, raw: RawMutex) {
        let check = AtomicU32::new(MUTEX_CHECK ^ raw.kind());
        // SAFETY: promised by the caller.
        unsafe {
            mutex.write_bytes(0, 1);
            mutex.cast::<Self>().write(Self { raw, check });
        }
    }

    pub fn unmake(&self) {
        // ORDERING: Relaxed: who destroys it made sure that nobody else uses it.
        self.check.store(0, Ordering::Relaxed);
    }
}

impl Cond {
    /// As [`Mutex::at`].
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
        // ORDERING: Relaxed: who made it made it known.
        (cond.check.load(Ordering::Relaxed) == COND_CHECK).then_some(cond)
    }

    /// As [`Mutex::make`].
    ///
    /// # Safety
    /// As [`Mutex::make`].
    pub unsafe fn make(cond: *mut lw_cond_t, raw: RawCondvar) {
        // SAFETY: promised by the caller.
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

/// What is at `pointer`, if it can be there.
///
/// # Safety
/// Null, misaligned, or a `T` that nobody changes during the call.
pub unsafe fn read<T: Copy>(pointer: *const T) -> Option<T> {
    if pointer.is_null() || !pointer.is_aligned() {
        return None;
    }
    // SAFETY: promised by the caller.
    Some(unsafe { *pointer })
}

/// Puts `value` there, if it can be. Says whether.
///
/// # Safety
/// Null, misaligned, or memory for a `T` that nobody else uses during the call.
pub unsafe fn write<T>(pointer: *mut T, value: T) -> bool {
    let is_there = !pointer.is_null() && pointer.is_aligned();
    if is_there {
        // SAFETY: promised by the caller.
        unsafe { pointer.write(value) };
    }
    is_there
}

/// A clock and a time by it. A time before the clock's zero has passed.
///
/// # Safety
/// As [`read`].
pub unsafe fn deadline(clock: c_int, time: *const timespec) -> Option<Deadline> {
    let clock = match clock {
        libc::CLOCK_MONOTONIC => Clock::Monotonic,
        libc::CLOCK_REALTIME => Clock::Realtime,
        _ => return None,
    };
    // SAFETY: promised by the caller.
    let time = unsafe { read(time) }?;
    if !(0..NS_PER_S).contains(&time.tv_nsec) {
        return None;
    }
    Some(Deadline { clock, at_ns: u64::try_from(ns(time)).unwrap_or(0) })
}

/// So long from now by the monotonic clock.
///
/// # Safety
/// As [`read`].
pub unsafe fn deadline_after(time: *const timespec) -> Option<Deadline> {
    // SAFETY: promised by the caller.
    let time = unsafe { read(time) }?;
    if time.tv_sec < 0 || !(0..NS_PER_S).contains(&time.tv_nsec) {
        return None;
    }
    Some(Deadline::after(Duration::from_nanos(u64::try_from(ns(time)).unwrap_or(LAST_NS))))
}

/// Nanoseconds; at most LAST_NS.
fn ns(time: timespec) -> i64 {
    time.tv_sec.saturating_mul(NS_PER_S).saturating_add(time.tv_nsec)
}
