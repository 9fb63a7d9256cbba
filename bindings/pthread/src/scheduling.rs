//! The functions `pthread_setschedparam`, `pthread_setschedprio` and `pthread_getschedparam`.
//!
//! While the calling thread holds ceilings, the kernel schedules it at these. Its own scheduling is noted here, and
//! applies again when it falls. The C library handles all other calls, and those for other threads.

use libc::{EINVAL, ENOSYS, c_char, c_int, c_void, pthread_t, sched_param};
use lockwright::mutex::{own_scheduling, set_own_scheduling};
use std::ffi::CStr;
use std::sync::atomic::{AtomicPtr, Ordering};

type SetParam = unsafe extern "C" fn(pthread_t, c_int, *const sched_param) -> c_int;
type GetParam = unsafe extern "C" fn(pthread_t, *mut c_int, *mut sched_param) -> c_int;
type SetPrio = unsafe extern "C" fn(pthread_t, c_int) -> c_int;

/// The function of the same name in the libraries loaded after this one.
struct Next {
    name: &'static CStr,
    found: AtomicPtr<c_void>,
}

impl Next {
    const fn new(name: &'static CStr) -> Self {
        Self { name, found: AtomicPtr::new(std::ptr::null_mut()) }
    }

    fn get(&self) -> Option<*mut c_void> {
        // ORDERING: Relaxed: a function's address, which is the same for all threads.
        let mut found = self.found.load(Ordering::Relaxed);
        if found.is_null() {
            let name: *const c_char = self.name.as_ptr();
            // SAFETY: the name is a string.
            found = unsafe { libc::dlsym(libc::RTLD_NEXT, name) };
            self.found.store(found, Ordering::Relaxed);
        }
        (!found.is_null()).then_some(found)
    }
}

fn is_caller(thread: pthread_t) -> bool {
    // SAFETY: takes nothing and cannot fail.
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
    static NEXT: Next = Next::new(c"pthread_setschedparam");
    if is_caller(thread) {
        // SAFETY: POSIX requires valid pointers to objects of their types.
        let level = unsafe { (*param).sched_priority };
        if let Some(answer) = set_own(policy, level) {
            return answer;
        }
    }
    let Some(next) = NEXT.get() else { return ENOSYS };
    // SAFETY: the function of this name has this type.
    unsafe { std::mem::transmute::<*mut c_void, SetParam>(next)(thread, policy, param) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_setschedprio(thread: pthread_t, level: c_int) -> c_int {
    static NEXT: Next = Next::new(c"pthread_setschedprio");
    if is_caller(thread) {
        match own_scheduling().map(|(policy, _)| set_own(policy, level)) {
            Ok(None) => {}
            Ok(Some(answer)) => return answer,
            Err(_) => return EINVAL,
        }
    }
    let Some(next) = NEXT.get() else { return ENOSYS };
    // SAFETY: the function of this name has this type.
    unsafe { std::mem::transmute::<*mut c_void, SetPrio>(next)(thread, level) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_getschedparam(
    thread: pthread_t,
    policy: *mut c_int,
    param: *mut sched_param,
) -> c_int {
    static NEXT: Next = Next::new(c"pthread_getschedparam");
    if is_caller(thread)
        && let Ok((own, level)) = own_scheduling()
    {
        // SAFETY: POSIX requires valid pointers to objects of their types.
        unsafe {
            *policy = own;
            (*param).sched_priority = c_int::from(level);
        }
        return 0;
    }
    let Some(next) = NEXT.get() else { return ENOSYS };
    // SAFETY: the function of this name has this type.
    unsafe { std::mem::transmute::<*mut c_void, GetParam>(next)(thread, policy, param) }
}
