//! The functions `mtx_*` and `cnd_*` of C11: the same objects under other names, with fewer error values.

use crate::{condvar, mutex};
use libc::{EBUSY, ENOMEM, EOWNERDEAD, ETIMEDOUT, c_int, timespec};
use lockwright::mutex::{RawCondvar, RawMutex, attributes};

/// `mtx_recursive`, a bit. `mtx_timed` is another bit, and has no effect here.
const RECURSIVE: c_int = 1;

/// Returns `thrd_success`, `thrd_busy`, `thrd_error`, `thrd_nomem` or `thrd_timedout`.
fn answer(errno: c_int) -> c_int {
    match errno {
        // After EOWNERDEAD the caller holds the mutex. C11 has no way to report that the owner ended.
        0 | EOWNERDEAD => 0,
        EBUSY => 1,
        ENOMEM => 3,
        ETIMEDOUT => 4,
        _ => 2,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn mtx_init(mutex: *mut RawMutex, kinds: c_int) -> c_int {
    let attributes = if kinds & RECURSIVE == 0 { attributes::NORMAL } else { attributes::RECURSIVE };
    // SAFETY: the program passes memory for a mutex, and `attributes` lives in this frame; a `mtx_t` is a
    // `pthread_mutex_t`.
    answer(unsafe { mutex::pthread_mutex_init(mutex, &raw const attributes) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn mtx_destroy(mutex: *mut RawMutex) {
    // SAFETY: the program passes a mutex that no other thread uses; a `mtx_t` is a `pthread_mutex_t`.
    unsafe { mutex::pthread_mutex_destroy(mutex) };
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn mtx_lock(mutex: *mut RawMutex) -> c_int {
    // SAFETY: the program passes a mutex that stays valid during the call; a `mtx_t` is a `pthread_mutex_t`.
    answer(unsafe { mutex::pthread_mutex_lock(mutex) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn mtx_trylock(mutex: *mut RawMutex) -> c_int {
    // SAFETY: the program passes a mutex that stays valid during the call; a `mtx_t` is a `pthread_mutex_t`.
    answer(unsafe { mutex::pthread_mutex_trylock(mutex) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn mtx_timedlock(mutex: *mut RawMutex, time: *const timespec) -> c_int {
    // SAFETY: the program passes a mutex and a time that stay valid during the call; a `mtx_t` is a `pthread_mutex_t`.
    answer(unsafe { mutex::pthread_mutex_timedlock(mutex, time) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn mtx_unlock(mutex: *mut RawMutex) -> c_int {
    // SAFETY: the program passes a mutex that it holds; a `mtx_t` is a `pthread_mutex_t`.
    answer(unsafe { mutex::pthread_mutex_unlock(mutex) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cnd_init(cond: *mut RawCondvar) -> c_int {
    // SAFETY: the program passes memory for a condition variable; a `cnd_t` is a `pthread_cond_t`, and null attributes
    // are allowed.
    answer(unsafe { condvar::pthread_cond_init(cond, std::ptr::null()) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cnd_destroy(cond: *mut RawCondvar) {
    // SAFETY: the program passes a condition variable that no other thread begins to use; a `cnd_t` is a
    // `pthread_cond_t`.
    unsafe { condvar::pthread_cond_destroy(cond) };
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn cnd_wait(cond: *mut RawCondvar, mutex: *mut RawMutex) -> c_int {
    // SAFETY: the program passes objects that stay valid until the wait has ended, and holds the mutex; the types are
    // those of pthread.
    answer(unsafe { condvar::pthread_cond_wait(cond, mutex) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn cnd_timedwait(
    cond: *mut RawCondvar,
    mutex: *mut RawMutex,
    time: *const timespec,
) -> c_int {
    // SAFETY: the program passes objects and a time that stay valid until the wait has ended, and holds the mutex; the
    // types are those of pthread.
    answer(unsafe { condvar::pthread_cond_timedwait(cond, mutex, time) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cnd_signal(cond: *mut RawCondvar) -> c_int {
    // SAFETY: the program passes a condition variable that stays valid during the call; a `cnd_t` is a
    // `pthread_cond_t`.
    answer(unsafe { condvar::pthread_cond_signal(cond) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cnd_broadcast(cond: *mut RawCondvar) -> c_int {
    // SAFETY: the program passes a condition variable that stays valid during the call; a `cnd_t` is a
    // `pthread_cond_t`.
    answer(unsafe { condvar::pthread_cond_broadcast(cond) })
}
