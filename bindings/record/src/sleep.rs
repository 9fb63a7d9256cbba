//! Sleeps: until an instant, which is the release of the next job, or for a duration.

use crate::entry::entries;
use crate::next;
use crate::wait::waits;
use libc::{c_int, c_uint, clockid_t, timespec};
use lockwright_record::file::format::{DETAIL_SHIFT, event};

const NS_PER_S: u64 = 1_000_000_000;

/// A time in nanoseconds. The next function refuses times that are none.
///
/// # Safety
/// `time` is null or points to a time.
pub(crate) unsafe fn ns(time: *const timespec) -> u64 {
    // SAFETY: the program passes null, which the next function refuses, or a time that stays valid during the call.
    let Some(time) = (unsafe { time.as_ref() }) else { return 0 };
    (time.tv_sec as u64).saturating_mul(NS_PER_S).saturating_add(time.tv_nsec as u64)
}

unsafe extern "C-unwind" fn sleep_by(
    clock: clockid_t,
    flags: c_int,
    time: *const timespec,
    left: *mut timespec,
    site: usize,
) -> c_int {
    // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
    let (value, call) = unsafe { (ns(time), || next::clock_nanosleep(clock, flags, time, left)) };
    if flags & libc::TIMER_ABSTIME == 0 {
        return waits(event::SLEEP_FOR, value, site as u64, call);
    }
    let place = site as u64 | u64::from(clock as u16) << DETAIL_SHIFT;
    waits(event::SLEEP_UNTIL, value, place, call)
}

unsafe extern "C-unwind" fn nano(time: *const timespec, left: *mut timespec, site: usize) -> c_int {
    // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
    unsafe { waits(event::SLEEP_FOR, ns(time), site as u64, || next::nanosleep(time, left)) }
}

unsafe extern "C-unwind" fn micro(us: c_uint, site: usize) -> c_int {
    // SAFETY: the call takes an integer.
    waits(event::SLEEP_FOR, u64::from(us) * 1000, site as u64, || unsafe { next::usleep(us) })
}

unsafe extern "C-unwind" fn seconds(s: c_uint, site: usize) -> c_uint {
    // SAFETY: the call takes an integer.
    waits(event::SLEEP_FOR, u64::from(s) * NS_PER_S, site as u64, || unsafe { next::sleep(s) })
}

unsafe extern "C-unwind" fn of_c11(time: *const timespec, left: *mut timespec, site: usize) -> c_int {
    // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
    unsafe { waits(event::SLEEP_FOR, ns(time), site as u64, || next::thrd_sleep(time, left)) }
}

entries! {
    "r8" clock_nanosleep = sleep_by;
    "rdx" nanosleep = nano;
    "rsi" usleep = micro;
    "rsi" sleep = seconds;
    "rdx" thrd_sleep = of_c11;
}
