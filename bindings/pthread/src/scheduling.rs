//! The functions `pthread_setschedparam`, `pthread_setschedprio` and `pthread_getschedparam`.
//!
//! While the calling thread holds ceilings, the kernel schedules it at these. Its own scheduling is noted here, and
//! applies again when it falls. The C library handles all other calls, and those for other threads.

use crate::next;
use libc::{EINVAL, c_int, pthread_t, sched_param};
use lockwright::mutex::{own_scheduling, set_own_scheduling};

fn is_caller(thread: pthread_t) -> bool {
    // SAFETY: the call takes nothing and cannot fail.
    thread == unsafe { libc::pthread_self() }
}

/// Returns `None` if the calling thread holds no ceiling.
fn set_own(policy: c_int, level: c_int) -> Option<c_int> {
    // The kernel refuses this level as well.
    let level = u8::try_from(level).unwrap_or(u8::MAX);
    set_own_scheduling(policy, level).map(|set| set.map_or_else(|error| error.errno, |()| 0))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_setschedparam(thread: pthread_t, policy: c_int, param: *const sched_param) -> c_int {
    if is_caller(thread) {
        // SAFETY: the program passes a valid parameter, which no other thread writes during the call.
        let level = unsafe { (*param).sched_priority };
        if let Some(answer) = set_own(policy, level) {
            return answer;
        }
    }
    // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
    unsafe { next::pthread_setschedparam(thread, policy, param) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_setschedprio(thread: pthread_t, level: c_int) -> c_int {
    if is_caller(thread) {
        match own_scheduling().map(|(policy, _)| set_own(policy, level)) {
            Ok(None) => {}
            Ok(Some(answer)) => return answer,
            Err(_) => return EINVAL,
        }
    }
    // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
    unsafe { next::pthread_setschedprio(thread, level) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_getschedparam(
    thread: pthread_t,
    policy: *mut c_int,
    param: *mut sched_param,
) -> c_int {
    if is_caller(thread)
        && let Ok((own, level)) = own_scheduling()
    {
        // SAFETY: the program passes places for both results, which no other thread uses during the call.
        unsafe {
            *policy = own;
            (*param).sched_priority = c_int::from(level);
        }
        return 0;
    }
    // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
    unsafe { next::pthread_getschedparam(thread, policy, param) }
}
