//! Checks of the arguments that C passes.

use libc::{c_int, timespec};
use lockwright::mutex::{Clock, Deadline};
use std::time::Duration;

const NS_PER_S: i64 = 1_000_000_000;
/// The latest time, 292 years after a clock's zero. Later times are treated as this one.
const LAST_NS: u64 = i64::MAX as u64;

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
