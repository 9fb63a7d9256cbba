//! Two calls by which a program could bypass this library: `dlopen` with `RTLD_DEEPBIND`, and `dlvsym`.
//!
//! A library that is opened with `RTLD_DEEPBIND` would call the C library's functions on this library's objects, and
//! threads would wait for ever. So the flag is removed, and a line on stderr reports it. `dlvsym` searches for a
//! version of a function, and this library's functions have no version. So it is replaced here, and finds these
//! functions.
//!
//! The loader depends on the library of its caller (for its search path, and for the libraries after it), and finds the
//! caller by the return address. So both functions jump to the C library's functions instead of calling them.

use crate::next::Next;
use crate::{attributes, condvar, mutex, once, report, rwlock, scheduling, sem, threads_h};
use libc::{c_char, c_int, c_void};
use std::ffi::CStr;

static DLOPEN: Next = Next::new("dlopen\0");
static DLVSYM: Next = Next::new("dlvsym\0");

/// Looks the C library's functions up.
pub(crate) fn warm_up() {
    DLOPEN.get();
    DLVSYM.get();
}

/// Returns the C library's `dlopen`. Reports that `RTLD_DEEPBIND` is removed from the flags, if it is among them.
extern "C" fn before_dlopen(file: *const c_char, flags: c_int) -> *mut c_void {
    if flags & libc::RTLD_DEEPBIND != 0 && !file.is_null() {
        // SAFETY: it is not null, so the program passed a string, which stays valid during the call.
        report::deepbind(unsafe { CStr::from_ptr(file) });
    }
    DLOPEN.get()
}

/// Returns this library's function of that name, or null.
extern "C" fn before_dlvsym(handle: *mut c_void, name: *const c_char, version: *const c_char) -> *mut c_void {
    let is_search = handle == libc::RTLD_DEFAULT || handle == libc::RTLD_NEXT;
    if !is_search || name.is_null() || version.is_null() {
        return std::ptr::null_mut();
    }
    // SAFETY: both are not null, so the program passed strings, which stay valid during the call.
    let (name, version) = unsafe { (CStr::from_ptr(name), CStr::from_ptr(version)) };
    // The condition variables of this version are other objects.
    if version == c"GLIBC_2.2.5" && name.to_bytes().starts_with(b"pthread_cond_") {
        return std::ptr::null_mut();
    }
    OURS.iter().find(|(ours, _)| *ours == name).map_or(std::ptr::null_mut(), |(_, function)| function())
}

extern "C" fn next_dlvsym() -> *mut c_void {
    DLVSYM.get()
}

/// A function of this library: its name, and its address.
type Ours = (&'static CStr, fn() -> *mut c_void);

macro_rules! ours {
    ($($module:ident::$name:ident)*) => {
        [$((
            match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => panic!("a name ends with a zero"),
            },
            || $module::$name as *mut c_void,
        )),*]
    };
}

/// The functions that `dlvsym` finds here: all that this library defines, except those of this file. The linker binds
/// these names to the functions of this library (`-Bsymbolic-functions`), even if a sanitizer's library defines the
/// same names.
const OURS: [Ours; 92] = ours![
    mutex::pthread_mutex_clocklock
    mutex::pthread_mutex_consistent
    mutex::pthread_mutex_consistent_np
    mutex::__pthread_mutex_destroy
    mutex::pthread_mutex_destroy
    mutex::pthread_mutex_getprioceiling
    mutex::__pthread_mutex_init
    mutex::pthread_mutex_init
    mutex::__pthread_mutex_lock
    mutex::pthread_mutex_lock
    mutex::pthread_mutex_setprioceiling
    mutex::pthread_mutex_timedlock
    mutex::__pthread_mutex_trylock
    mutex::pthread_mutex_trylock
    mutex::__pthread_mutex_unlock
    mutex::pthread_mutex_unlock
    condvar::pthread_cond_broadcast
    condvar::pthread_cond_clockwait
    condvar::pthread_cond_destroy
    condvar::pthread_cond_init
    condvar::pthread_cond_signal
    condvar::pthread_cond_timedwait
    condvar::pthread_cond_wait
    rwlock::pthread_rwlock_clockrdlock
    rwlock::pthread_rwlock_clockwrlock
    rwlock::__pthread_rwlock_destroy
    rwlock::pthread_rwlock_destroy
    rwlock::__pthread_rwlock_init
    rwlock::pthread_rwlock_init
    rwlock::__pthread_rwlock_rdlock
    rwlock::pthread_rwlock_rdlock
    rwlock::pthread_rwlock_timedrdlock
    rwlock::pthread_rwlock_timedwrlock
    rwlock::__pthread_rwlock_tryrdlock
    rwlock::pthread_rwlock_tryrdlock
    rwlock::__pthread_rwlock_trywrlock
    rwlock::pthread_rwlock_trywrlock
    rwlock::__pthread_rwlock_unlock
    rwlock::pthread_rwlock_unlock
    rwlock::__pthread_rwlock_wrlock
    rwlock::pthread_rwlock_wrlock
    once::call_once
    once::__pthread_once
    once::pthread_once
    sem::sem_clockwait
    sem::sem_destroy
    sem::sem_getvalue
    sem::sem_init
    sem::sem_post
    sem::sem_timedwait
    sem::sem_trywait
    sem::sem_wait
    threads_h::cnd_broadcast
    threads_h::cnd_destroy
    threads_h::cnd_init
    threads_h::cnd_signal
    threads_h::cnd_timedwait
    threads_h::cnd_wait
    threads_h::mtx_destroy
    threads_h::mtx_init
    threads_h::mtx_lock
    threads_h::mtx_timedlock
    threads_h::mtx_trylock
    threads_h::mtx_unlock
    scheduling::pthread_getschedparam
    scheduling::pthread_setschedparam
    scheduling::pthread_setschedprio
    attributes::pthread_condattr_destroy
    attributes::pthread_condattr_getclock
    attributes::pthread_condattr_getpshared
    attributes::pthread_condattr_init
    attributes::pthread_condattr_setclock
    attributes::pthread_condattr_setpshared
    attributes::__pthread_mutexattr_destroy
    attributes::pthread_mutexattr_destroy
    attributes::pthread_mutexattr_getkind_np
    attributes::pthread_mutexattr_getprioceiling
    attributes::pthread_mutexattr_getprotocol
    attributes::pthread_mutexattr_getpshared
    attributes::pthread_mutexattr_getrobust
    attributes::pthread_mutexattr_getrobust_np
    attributes::pthread_mutexattr_gettype
    attributes::__pthread_mutexattr_init
    attributes::pthread_mutexattr_init
    attributes::pthread_mutexattr_setkind_np
    attributes::pthread_mutexattr_setprioceiling
    attributes::pthread_mutexattr_setprotocol
    attributes::pthread_mutexattr_setpshared
    attributes::pthread_mutexattr_setrobust
    attributes::pthread_mutexattr_setrobust_np
    attributes::__pthread_mutexattr_settype
    attributes::pthread_mutexattr_settype
];

/// As in the C library, without `RTLD_DEEPBIND`.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlopen(file: *const c_char, flags: c_int) -> *mut c_void {
    // The stack is aligned for the call by three words.
    std::arch::naked_asm!(
        "push rdi",
        "push rsi",
        "push rax",
        "call {before}",
        "pop rcx",
        "pop rsi",
        "pop rdi",
        "and esi, {without}",
        "jmp rax",
        before = sym before_dlopen,
        without = const !libc::RTLD_DEEPBIND,
    )
}

/// As in the C library. Finds this library's functions under every version.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlvsym(handle: *mut c_void, name: *const c_char, version: *const c_char) -> *mut c_void {
    // The stack is aligned for the calls by three words.
    std::arch::naked_asm!(
        "push rdi",
        "push rsi",
        "push rdx",
        "call {before}",
        "test rax, rax",
        "jnz 2f",
        "call {next}",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        "jmp rax",
        "2:",
        "add rsp, 24",
        "ret",
        before = sym before_dlvsym,
        next = sym next_dlvsym,
    )
}
