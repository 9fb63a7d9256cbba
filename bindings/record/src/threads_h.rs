//! The functions `mtx_*` and `cnd_*` of C11: the same objects under other names, with fewer error values.

use crate::entry::entries;
use crate::next::{self, Opaque};
use crate::{mutex, wait};
use libc::{EBUSY, ENOMEM, ETIMEDOUT, c_int, timespec};

/// Returns `thrd_success`, `thrd_busy`, `thrd_error`, `thrd_nomem` or `thrd_timedout`.
fn answer(errno: c_int) -> c_int {
    match errno {
        0 => 0,
        EBUSY => 1,
        ENOMEM => 3,
        ETIMEDOUT => 4,
        _ => 2,
    }
}

unsafe extern "C-unwind" fn init(mutex: Opaque, kind: c_int, site: usize) -> c_int {
    // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
    let answer = unsafe { next::mtx_init(mutex, kind) };
    if answer == 0 {
        // SAFETY: the mutex has just been initialised, and stays valid during the call.
        unsafe { mutex::initialised(mutex, site) };
    }
    answer
}

unsafe extern "C-unwind" fn lock(mutex: Opaque, site: usize) -> c_int {
    // SAFETY: the program passes an initialised mutex, which stays valid during the call; a `mtx_t` is a
    // `pthread_mutex_t`.
    answer(unsafe { mutex::lock(mutex, site) })
}

unsafe extern "C-unwind" fn trylock(mutex: Opaque, site: usize) -> c_int {
    // SAFETY: the program passes an initialised mutex, which stays valid during the call; a `mtx_t` is a
    // `pthread_mutex_t`.
    answer(unsafe { mutex::trylock(mutex, site) })
}

unsafe extern "C-unwind" fn timedlock(mutex: Opaque, time: *const timespec, site: usize) -> c_int {
    // SAFETY: the program passes an initialised mutex and a time, which stay valid during the call; a `mtx_t` is a
    // `pthread_mutex_t`.
    answer(unsafe { mutex::timedlock(mutex, time, site) })
}

/// As in the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn mtx_unlock(mutex: Opaque) -> c_int {
    // SAFETY: the program passes a mutex that it holds; a `mtx_t` is a `pthread_mutex_t`.
    answer(unsafe { mutex::pthread_mutex_unlock(mutex) })
}

unsafe extern "C-unwind" fn wait(cond: Opaque, mutex: Opaque, site: usize) -> c_int {
    // SAFETY: the program passes objects that stay valid during the wait, and holds the mutex; the types are those of
    // pthread.
    answer(unsafe { wait::cond_wait(cond, mutex, site) })
}

unsafe extern "C-unwind" fn timedwait(cond: Opaque, mutex: Opaque, time: *const timespec, site: usize) -> c_int {
    // SAFETY: the program passes objects and a time that stay valid during the wait, and holds the mutex; the types are
    // those of pthread.
    answer(unsafe { wait::cond_timedwait(cond, mutex, time, site) })
}

unsafe extern "C-unwind" fn signal(cond: Opaque, site: usize) -> c_int {
    // SAFETY: the program passes an initialised object, which stays valid during the call; a `cnd_t` is a
    // `pthread_cond_t`.
    answer(unsafe { wait::cond_signal(cond, site) })
}

unsafe extern "C-unwind" fn broadcast(cond: Opaque, site: usize) -> c_int {
    // SAFETY: the program passes an initialised object, which stays valid during the call; a `cnd_t` is a
    // `pthread_cond_t`.
    answer(unsafe { wait::cond_broadcast(cond, site) })
}

entries! {
    "rdx" mtx_init = init;
    "rsi" mtx_lock = lock;
    "rsi" mtx_trylock = trylock;
    "rdx" mtx_timedlock = timedlock;
    "rdx" cnd_wait = wait;
    "rcx" cnd_timedwait = timedwait;
    "rsi" cnd_signal = signal;
    "rsi" cnd_broadcast = broadcast;
}
