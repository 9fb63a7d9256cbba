//! The clocks, and sleeping until a time.

use crate::error::SysError;

const NS_PER_S: u64 = 1_000_000_000;

/// Nanoseconds of `CLOCK_MONOTONIC`. Makes no system call if the clock source allows that.
#[inline]
pub fn now_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Nanoseconds of `CLOCK_REALTIME`.
#[inline]
pub fn time_of_day_ns() -> u64 {
    read(libc::CLOCK_REALTIME)
}

/// The CPU time of the calling thread, in nanoseconds.
#[inline]
pub fn executed_ns() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

#[inline]
fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writing, and these clocks exist on every Linux, so the call cannot fail.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * NS_PER_S + time.tv_nsec as u64
}

/// Converts `ns` to the kernel's representation.
#[inline]
pub fn timespec(ns: u64) -> libc::timespec {
    libc::timespec { tv_sec: (ns / NS_PER_S) as libc::time_t, tv_nsec: (ns % NS_PER_S) as libc::c_long }
}

/// Sleeps until the monotonic clock reads `at_ns`. A signal does not end the sleep.
///
/// # Errors
/// The kernel refused the call: `at_ns` is beyond its range, or a filter forbids the call.
pub fn sleep_until(at_ns: u64) -> Result<(), SysError> {
    let until = timespec(at_ns);
    // BOUND: each round ends at the absolute time or at a signal; signals alone repeat it.
    loop {
        // This is the system call, not the C library's function: that function is a cancellation point, and
        // cancellation cannot unwind Rust frames.
        // SAFETY: `until` is valid for reading; with TIMER_ABSTIME the remaining time is not written.
        let result = unsafe {
            libc::syscall(
                libc::SYS_clock_nanosleep,
                libc::CLOCK_MONOTONIC,
                libc::TIMER_ABSTIME,
                &raw const until,
                std::ptr::null_mut::<libc::timespec>(),
            )
        };
        match if result == 0 { 0 } else { crate::error::errno() } {
            0 => return Ok(()),
            libc::EINTR => {}
            errno => return Err(SysError { call: "clock_nanosleep", errno }),
        }
    }
}
