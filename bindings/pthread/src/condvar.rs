//! The functions `pthread_cond_*`.
//!
//! A wait is a cancellation point: the calling thread may be cancelled in `suspend.c`, after it has unlocked the mutex
//! and before it locks it again. Unwinding then passes through the functions here that call it, and nothing in them
//! needs to be dropped.

use crate::attributes;
use crate::mutex::number;
use crate::{clock, deadline};
use libc::{EBUSY, EINVAL, EOWNERDEAD, ETIMEDOUT, c_int, c_long, c_void, timespec};
use lockwright::mutex::{
    Acquired, Clock, Deadline, Destroyed, Limit, RawCondvar, RawError, RawMutex, Suspended, WaitEnd, Waiting,
};

/// A wait that may be cancelled.
#[derive(Clone, Copy)]
struct Wait<'a> {
    cond: &'a RawCondvar,
    mutex: &'a RawMutex,
    waiting: Waiting,
}

unsafe extern "C-unwind" {
    /// Makes the system call and returns the kernel's answer. If the thread is cancelled, calls `cancelled` with `wait`
    /// and unwinds.
    fn lockwright_suspend(
        arguments: *const c_long,
        cancelled: unsafe extern "C" fn(*mut c_void),
        wait: *mut c_void,
    ) -> c_long;
}

/// Locks the mutex again, because the caller's cleanup handlers expect to hold it.
unsafe extern "C" fn cancelled(wait: *mut c_void) {
    // SAFETY: it is the wait that `suspend` passed, in a frame that still exists.
    let Wait { cond, mutex, waiting } = unsafe { *wait.cast::<Wait<'_>>() };
    // If a robust mutex is not recoverable now, its unlock reports that.
    let _ = cond.withdraw(waiting, mutex);
}

/// Suspends until there is a reason to check the condition.
unsafe fn suspend(mut wait: Wait<'_>, until: Option<Deadline>) -> Suspended {
    // BOUND: `until`; one round for each signal handler that runs.
    loop {
        let mut suspension = wait.cond.suspension(&mut wait.waiting, wait.mutex, until);
        if let Some(time) = &suspension.time {
            suspension.arguments[3] = std::ptr::from_ref(time).expose_provenance() as c_long;
        }
        // SAFETY: arguments, time and wait outlive the call, and need not be dropped.
        let answer =
            unsafe { lockwright_suspend(suspension.arguments.as_ptr(), cancelled, (&raw mut wait).cast::<c_void>()) };
        wait.cond.resumed(&mut wait.waiting, wait.mutex);
        let ended = Suspended::answered(answer);
        if !wait.cond.is_disturbed(&wait.waiting, ended) {
            return ended;
        }
    }
}

/// Waits until `until`, or for ever if it is `None`.
unsafe fn wait(cond: *mut RawCondvar, mutex: *mut RawMutex, until: Option<Deadline>) -> c_int {
    // SAFETY: POSIX requires valid pointers to objects of their types.
    let (cond, mutex) = unsafe { (&*cond, &*mutex) };
    // Programs destroy a condition variable and its mutex right after a broadcast, so the kernel must not hand the
    // mutex to the waiter then.
    // SAFETY: the wait rejoins below, or withdraws if the thread is cancelled. POSIX requires that the mutex stays
    // until then.
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
        // The mutex has been unlocked. The caller gets an error, and must hold the mutex.
        Err(RawError::Sys(_)) if !mutex.is_mine() => {
            mutex.lock(Limit::Never).map_or_else(|error| number(&error), |_| EINVAL)
        }
        Err(error) => number(&error),
    }
}

unsafe fn wait_until(cond: *mut RawCondvar, mutex: *mut RawMutex, clock: Clock, time: *const timespec) -> c_int {
    // SAFETY: POSIX requires valid pointers to objects of their types.
    match deadline(clock, unsafe { &*time }) {
        // SAFETY: POSIX requires valid pointers to objects of their types.
        Some(until) => unsafe { wait(cond, mutex, Some(until)) },
        None => EINVAL,
    }
}

/// Initialises a condition variable. `attributes` may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_cond_init(cond: *mut RawCondvar, attributes: *const u32) -> c_int {
    // SAFETY: POSIX requires valid pointers to objects of their types.
    let (shared, id) = unsafe { attributes.as_ref() }.map_or((false, 0), |&bits| attributes::shared_and_clock(bits));
    let clock = clock(id).unwrap_or(Clock::Realtime);
    // SAFETY: POSIX requires memory for a condition variable, which has this size.
    unsafe { cond.write(RawCondvar::new(shared).with_clock(clock)) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_cond_destroy(cond: *mut RawCondvar) -> c_int {
    // SAFETY: POSIX requires valid pointers to objects of their types.
    match unsafe { &*cond }.destroy() {
        Destroyed::Done => 0,
        Destroyed::InUse => EBUSY,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_cond_wait(cond: *mut RawCondvar, mutex: *mut RawMutex) -> c_int {
    // SAFETY: POSIX requires valid pointers to objects of their types.
    unsafe { wait(cond, mutex, None) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_cond_timedwait(
    cond: *mut RawCondvar,
    mutex: *mut RawMutex,
    time: *const timespec,
) -> c_int {
    // SAFETY: POSIX requires valid pointers to objects of their types.
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
        // SAFETY: POSIX requires valid pointers to objects of their types.
        Some(clock) => unsafe { wait_until(cond, mutex, clock, time) },
        None => EINVAL,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_cond_signal(cond: *mut RawCondvar) -> c_int {
    // SAFETY: POSIX requires valid pointers to objects of their types.
    unsafe { &*cond }.signal();
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_cond_broadcast(cond: *mut RawCondvar) -> c_int {
    // SAFETY: POSIX requires valid pointers to objects of their types.
    unsafe { &*cond }.broadcast();
    0
}
