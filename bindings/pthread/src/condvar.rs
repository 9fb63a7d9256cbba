//! `pthread_cond_*`.
//!
//! A wait is a point where the calling thread may be cancelled: between giving the mutex back and taking it again, in `suspend.c`. Unwinding then passes
//! through the functions here that call it; nothing in them has to be dropped.

use crate::attributes;
use crate::mutex::number;
use crate::{clock, deadline};
use libc::{EBUSY, EINVAL, EOWNERDEAD, ETIMEDOUT, c_int, c_long, c_void, timespec};
use lockwright::mutex::{
    Acquired, Clock, Deadline, Destroyed, Limit, RawCondvar, RawError, RawMutex, Suspended, WaitEnd, Waiting,
};

/// A wait that may be given up.
#[derive(Clone, Copy)]
struct Wait<'a> {
    cond: &'a RawCondvar,
    mutex: &'a RawMutex,
    waiting: Waiting,
}

unsafe extern "C-unwind" {
    /// Makes the call, and says what the kernel answered. Cancelled, it calls `cancelled` with `wait`, and unwinds.
    fn lockwright_suspend(
        arguments: *const c_long,
        cancelled: unsafe extern "C" fn(*mut c_void),
        wait: *mut c_void,
    ) -> c_long;
}

/// The caller's cleanup handlers expect to have the mutex.
unsafe extern "C" fn cancelled(wait: *mut c_void) {
    // SAFETY: it is the wait that `suspend` passed, in a frame that is still there.
    let Wait { cond, mutex, waiting } = unsafe { *wait.cast::<Wait<'_>>() };
    // A robust one that is lost now is told to be so by the unlock.
    let _ = cond.withdraw(waiting, mutex);
}

/// Suspends until it is worth to look.
unsafe fn suspend(mut wait: Wait<'_>, until: Option<Deadline>) -> Suspended {
    // BOUND: `until`; each round a signal handler ran.
    loop {
        let mut suspension = wait.cond.suspension(&mut wait.waiting, wait.mutex, until);
        if let Some(time) = &suspension.time {
            suspension.arguments[3] = std::ptr::from_ref(time).expose_provenance() as c_long;
        }
        // SAFETY: arguments, time and wait outlive the call; they need no drop.
        let answer =
            unsafe { lockwright_suspend(suspension.arguments.as_ptr(), cancelled, (&raw mut wait).cast::<c_void>()) };
        wait.cond.resumed(&mut wait.waiting, wait.mutex);
        let ended = Suspended::answered(answer);
        if !wait.cond.is_disturbed(&wait.waiting, ended) {
            return ended;
        }
    }
}

/// By this deadline, or none.
unsafe fn wait(cond: *mut RawCondvar, mutex: *mut RawMutex, until: Option<Deadline>) -> c_int {
    // SAFETY: promised by the caller.
    let (cond, mutex) = unsafe { (&*cond, &*mutex) };
    // Programs destroy condition variables right after a broadcast, with the mutex: nobody is given that then.
    // SAFETY: it rejoins below, or withdraws where the thread is cancelled; the mutex stays as long, as POSIX asks for.
    let waiting = match unsafe { cond.enlist(mutex, false) } {
        Ok(waiting) => waiting,
        Err(error) => return number(&error),
    };
    // SAFETY: both outlive the wait.
    let ended = unsafe { suspend(Wait { cond, mutex, waiting }, until) };
    match cond.rejoin(waiting, mutex, ended) {
        Ok((Acquired::OwnerDied, _)) => EOWNERDEAD,
        Ok((Acquired::Clean, WaitEnd::Woken)) => 0,
        Ok((Acquired::Clean, WaitEnd::TimedOut)) => ETIMEDOUT,
        // It has been given back: the caller is told an error, and has the mutex.
        Err(RawError::Sys(_)) if !mutex.is_mine() => {
            mutex.lock(Limit::Never).map_or_else(|error| number(&error), |_| EINVAL)
        }
        Err(error) => number(&error),
    }
}

unsafe fn wait_until(cond: *mut RawCondvar, mutex: *mut RawMutex, clock: Clock, time: *const timespec) -> c_int {
    // SAFETY: promised by the caller.
    match deadline(clock, unsafe { &*time }) {
        // SAFETY: promised by the caller.
        Some(until) => unsafe { wait(cond, mutex, Some(until)) },
        None => EINVAL,
    }
}

/// `attributes` may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_cond_init(cond: *mut RawCondvar, attributes: *const u32) -> c_int {
    // SAFETY: promised by the caller.
    let (shared, id) = unsafe { attributes.as_ref() }.map_or((false, 0), |&bits| attributes::shared_and_clock(bits));
    let clock = clock(id).unwrap_or(Clock::Realtime);
    // SAFETY: promised by the caller: it is memory for a condition variable, which is as large.
    unsafe { cond.write(RawCondvar::new(shared).with_clock(clock)) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_cond_destroy(cond: *mut RawCondvar) -> c_int {
    // SAFETY: promised by the caller.
    match unsafe { &*cond }.destroy() {
        Destroyed::Done => 0,
        Destroyed::InUse => EBUSY,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_cond_wait(cond: *mut RawCondvar, mutex: *mut RawMutex) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { wait(cond, mutex, None) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_cond_timedwait(
    cond: *mut RawCondvar,
    mutex: *mut RawMutex,
    time: *const timespec,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { wait_until(cond, mutex, (*cond).clock(), time) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_cond_clockwait(
    cond: *mut RawCondvar,
    mutex: *mut RawMutex,
    id: c_int,
    time: *const timespec,
) -> c_int {
    match clock(id) {
        // SAFETY: promised by the caller.
        Some(clock) => unsafe { wait_until(cond, mutex, clock, time) },
        None => EINVAL,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_cond_signal(cond: *mut RawCondvar) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { &*cond }.signal();
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_cond_broadcast(cond: *mut RawCondvar) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { &*cond }.broadcast();
    0
}
