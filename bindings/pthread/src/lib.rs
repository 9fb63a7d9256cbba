//! POSIX mutexes and condition variables on Lockwright, for unmodified programs: `LD_PRELOAD=liblockwright_pthread.so program`.
//!
//! | file | carries |
//! |---|---|
//! | `mutex` | `pthread_mutex_*` |
//! | `attributes` | `pthread_mutexattr_*`, `pthread_condattr_*` |
//! | `condvar` | `pthread_cond_*`; `suspend.c` is the part of a wait in which a thread may be cancelled |
//! | `threads_h` | `mtx_*`, `cnd_*` |
//! | `scheduling` | `pthread_setschedparam`, `pthread_setschedprio`, `pthread_getschedparam`: what a thread is by itself, ceilings not counted |
//! | `policy` | the environment: what all mutexes of the program become |
//! | `report` | what is told of deadlocks |
//!
//! What is not carried is the C library's. Locking and waiting is in `lockwright::mutex`; here is what POSIX and the C library say beyond that.
//! docs/pthread.md says what differs.
//!
//! # Safety
//! Every function is POSIX's of that name, and asks the same of its caller: pointers are valid, and to objects of their type. None is told to
//! be `null` unless its description says so.
#![allow(clippy::missing_safety_doc)]

#[cfg(not(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64")))]
compile_error!("the layouts here are those of glibc on 64-bit Linux");

/// Other names of the same functions, for programs that were linked long ago.
macro_rules! other_names {
    ($($name:ident($($argument:ident: $type:ty),*) = $function:ident;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> libc::c_int {
            // SAFETY: promised by the caller.
            unsafe { $function($($argument),*) }
        }
    )*};
}

mod attributes;
mod condvar;
mod mutex;
mod policy;
mod report;
mod scheduling;
mod threads_h;

use libc::{c_int, timespec};
use lockwright::mutex::{Clock, Deadline};

/// The clocks that timed waits are by; `None` for all others.
fn clock(id: c_int) -> Option<Clock> {
    match id {
        libc::CLOCK_REALTIME => Some(Clock::Realtime),
        libc::CLOCK_MONOTONIC => Some(Clock::Monotonic),
        _ => None,
    }
}

/// `None` where it is no time. Before the clock's zero is long ago, and after all nanoseconds that can be counted is never.
fn deadline(clock: Clock, time: &timespec) -> Option<Deadline> {
    const NS_PER_S: i64 = 1_000_000_000;
    if !(0..NS_PER_S).contains(&time.tv_nsec) {
        return None;
    }
    let at_ns = time.tv_sec.saturating_mul(NS_PER_S).saturating_add(time.tv_nsec);
    Some(Deadline { clock, at_ns: u64::try_from(at_ns).unwrap_or(0) })
}
