//! POSIX mutexes, condition variables, reader-writer locks and semaphores by Lockwright, for unmodified programs:
//! `LD_PRELOAD=liblockwright_pthread.so program`.
//!
//! | file | contents |
//! |---|---|
//! | `mutex` | `pthread_mutex_*` |
//! | `attributes` | `pthread_mutexattr_*`, `pthread_condattr_*` |
//! | `condvar` | `pthread_cond_*`; `suspend.c` is the part of a wait in which a thread may be cancelled |
//! | `rwlock` | `pthread_rwlock_*` |
//! | `sem` | `sem_*` |
//! | `once` | `pthread_once`, `call_once`; `once.c` is the call of an initialiser |
//! | `shared` | objects that several processes share, which are the C library's |
//! | `dlopen` | `dlopen` and `dlvsym`, by which a program could bypass this library (x86-64) |
//! | `next` | the C library's own functions |
//! | `threads_h` | `mtx_*`, `cnd_*` |
//! | `scheduling` | `pthread_setschedparam`, `pthread_setschedprio`, `pthread_getschedparam` without ceilings |
//! | `policy` | the environment variables, which change all mutexes of the program |
//! | `report` | reports of deadlocks |
//! | `stats` | `LOCKWRIGHT_STATS`: what the mutexes did |
//! | `load` | the set-up when the library is loaded |
//!
//! All other functions remain those of the C library. `lockwright` locks and waits; this crate adds what POSIX
//! and the C library require beyond that. docs/pthread.md lists the differences.
//!
//! # Safety
//! Every function is the POSIX function of that name, and requires the same of its caller: pointers are valid and point
//! to objects of their type. A pointer may be null only if the description of the function says so.
#![allow(clippy::missing_safety_doc)]

#[cfg(not(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64")))]
compile_error!("the layouts here are those of glibc on 64-bit Linux");

/// Defines functions under their other names, for programs that were linked long ago.
macro_rules! other_names {
    ($($name:ident($($argument:ident: $type:ty),*) = $function:ident;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> libc::c_int {
            // SAFETY: both names denote one function, so arguments that are valid for one are valid for the other.
            unsafe { $function($($argument),*) }
        }
    )*};
}

mod attributes;
mod condvar;
#[cfg(target_arch = "x86_64")]
mod dlopen;
mod load;
mod mutex;
mod next;
mod once;
mod policy;
mod report;
mod rwlock;
mod scheduling;
mod sem;
mod shared;
mod stats;
mod threads_h;

use libc::{c_int, timespec};
use lockwright::mutex::{Clock, Deadline};

/// Returns the clock of a timed wait, or `None` for a clock that cannot be waited by.
fn clock(id: c_int) -> Option<Clock> {
    match id {
        libc::CLOCK_REALTIME => Some(Clock::Realtime),
        libc::CLOCK_MONOTONIC => Some(Clock::Monotonic),
        _ => None,
    }
}

/// Returns a deadline, or `None` if `time` is not valid. A time before the clock's zero has passed, and a time beyond
/// the range of nanoseconds never comes.
fn deadline(clock: Clock, time: &timespec) -> Option<Deadline> {
    const NS_PER_S: i64 = 1_000_000_000;
    if !(0..NS_PER_S).contains(&time.tv_nsec) {
        return None;
    }
    let at_ns = time.tv_sec.saturating_mul(NS_PER_S).saturating_add(time.tv_nsec);
    Some(Deadline { clock, at_ns: u64::try_from(at_ns).unwrap_or(0) })
}
