//! The functions `pthread_cond_*`.
//!
//! A wait is a cancellation point: the calling thread may be cancelled in `suspend.c`, after it has unlocked the mutex
//! and before it locks it again. Unwinding then passes through the functions here that call it, and nothing in them
//! needs to be dropped.

use crate::attributes;
use crate::mutex::{number, settle, take_over};
use crate::shared::Place;
use crate::{clock, deadline, next, shared};
use libc::{EBUSY, EINVAL, ETIMEDOUT, c_int, c_long, c_void, timespec};
use lockwright::mutex::{
    Clock, Deadline, Destroyed, Limit, RawCondvar, RawError, RawMutex, Rejoined, Suspended, WaitEnd, Waiting,
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
    // SAFETY: `lockwright_suspend` passes the `Wait` of `suspend`, whose frame is below it on the stack and not yet
    // unwound.
    let Wait { cond, mutex, waiting } = unsafe { *wait.cast::<Wait<'_>>() };
    if shared::is_shared(mutex) {
        cond.leave_stranger(waiting, None);
        // SAFETY: the mutex is one of the C library's, and POSIX requires that it stays valid until the wait has ended.
        unsafe { next::pthread_mutex_lock(mutex) };
        return;
    }
    // After an error, the caller does not hold the mutex, and its unlock reports that: the mutex is not recoverable, or
    // locking it would have been a deadlock that the policy refuses.
    settle(mutex, Limit::Never, cond.withdraw(waiting, mutex));
}

/// Suspends until there is a reason to check the condition.
unsafe fn suspend(mut wait: Wait<'_>, until: Option<Deadline>) -> Suspended {
    // BOUND: `until`; one round for each signal handler that runs.
    loop {
        let mut suspension = wait.cond.suspension(&mut wait.waiting, wait.mutex, until);
        if let Some(time) = &suspension.time {
            suspension.arguments[3] = std::ptr::from_ref(time).expose_provenance() as c_long;
        }
        // SAFETY: `suspension` and `wait` live in this frame, and so outlive the call. Neither needs to be dropped, so
        // the call may unwind through the frame.
        let answer =
            unsafe { lockwright_suspend(suspension.arguments.as_ptr(), cancelled, (&raw mut wait).cast::<c_void>()) };
        wait.cond.resumed(&mut wait.waiting, wait.mutex);
        let ended = Suspended::answered(answer);
        if !wait.cond.is_disturbed(&wait.waiting, ended) {
            return ended;
        }
    }
}

/// Waits at a private condition variable with a mutex of the C library.
unsafe fn wait_with_shared(cond: &RawCondvar, mutex: &RawMutex, until: Option<Deadline>) -> c_int {
    let waiting = cond.enlist_stranger();
    // SAFETY: the mutex is one of the C library's, and POSIX requires that it stays valid until the wait has ended.
    let refused = unsafe { next::pthread_mutex_unlock(mutex) };
    if refused != 0 {
        cond.leave_stranger(waiting, None);
        return refused;
    }
    // SAFETY: `cond` and `mutex` are borrowed until the wait has ended, and this frame has nothing to drop if the wait
    // unwinds.
    let ended = unsafe { suspend(Wait { cond, mutex, waiting }, until) };
    let end = cond.leave_stranger(waiting, Some(ended));
    // SAFETY: POSIX requires that the mutex, which is one of the C library's, stays valid until the wait has ended.
    match (unsafe { next::pthread_mutex_lock(mutex) }, end) {
        (0, WaitEnd::TimedOut) => ETIMEDOUT,
        (errno, _) => errno,
    }
}

/// Waits until `until`, or for ever if it is `None`.
unsafe fn wait(cond: *const RawCondvar, mutex: *mut RawMutex, until: Option<Deadline>) -> c_int {
    // SAFETY: POSIX requires objects that stay valid until the wait has ended; threads may share both types.
    let (cond, mutex) = unsafe { (&*cond, &*mutex) };
    if shared::is_shared(mutex) {
        // SAFETY: the mutex is one of the C library's, and both objects stay valid until the wait has ended.
        return unsafe { wait_with_shared(cond, mutex, until) };
    }
    mutex.hide_owner();
    // Programs destroy a condition variable and its mutex right after a broadcast, so the kernel must not hand the
    // mutex to the waiter then.
    // SAFETY: the wait rejoins below, or withdraws if the thread is cancelled. POSIX requires that the mutex stays
    // where it is until then.
    let enlist = || unsafe { cond.enlist(mutex, false) };
    let enlisted = match enlist() {
        // A child process waits with a mutex that its thread locked in the parent.
        Err(RawError::NotOwner) if take_over(mutex) => enlist(),
        enlisted => enlisted,
    };
    let waiting = match enlisted {
        Ok(waiting) => waiting,
        Err(error) => return number(&error),
    };
    // SAFETY: `cond` and `mutex` are valid until the wait has ended, and this frame has nothing to drop if the wait
    // unwinds.
    let ended = unsafe { suspend(Wait { cond, mutex, waiting }, until) };
    let Rejoined { locked, end, .. } = cond.rejoin(waiting, mutex, ended);
    match (settle(mutex, Limit::Never, locked), end) {
        (0, Ok(WaitEnd::Woken)) => 0,
        (0, Ok(WaitEnd::TimedOut)) => ETIMEDOUT,
        // The kernel refused to wait. The caller holds the mutex.
        (0, Err(_)) => EINVAL,
        (errno, _) => errno,
    }
}

unsafe fn wait_until(cond: *const RawCondvar, mutex: *mut RawMutex, clock: Clock, time: *const timespec) -> c_int {
    // SAFETY: the program passes a time that stays valid and unchanged during the call.
    match deadline(clock, unsafe { &*time }) {
        // SAFETY: POSIX requires objects that stay valid until the wait has ended, and a mutex that the caller holds.
        Some(until) => unsafe { wait(cond, mutex, Some(until)) },
        None => EINVAL,
    }
}

/// Initialises a condition variable. `attributes` may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_cond_init(cond: *mut RawCondvar, attributes: *const u32) -> c_int {
    // SAFETY: the program passes null, or attributes that no other thread writes during the call.
    let (is_shared, id) = unsafe { attributes.as_ref() }.map_or((false, 0), |&bits| attributes::shared_and_clock(bits));
    if is_shared {
        // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
        return unsafe { next::pthread_cond_init(cond, attributes) };
    }
    let clock = clock(id).unwrap_or(Clock::Realtime);
    // SAFETY: the program passes memory for a condition variable, which has this size, and which no thread uses yet.
    unsafe { cond.write(RawCondvar::new(false).with_clock(clock)) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_cond_destroy(cond: *mut RawCondvar) -> c_int {
    // SAFETY: the program passes a condition variable that stays valid during the call.
    if unsafe { shared::is_shared_cond(cond) } {
        if shared::stand_in(cond).is_some_and(|own| own.destroy() == Destroyed::InUse) {
            return EBUSY;
        }
        shared::free_stand_in(cond);
        // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
        return unsafe { next::pthread_cond_destroy(cond) };
    }
    // SAFETY: the program passes a condition variable that stays valid until `destroy` returns, and threads may share
    // it.
    match unsafe { &*cond }.destroy() {
        Destroyed::Done => 0,
        Destroyed::InUse => EBUSY,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_cond_wait(cond: *mut RawCondvar, mutex: *mut RawMutex) -> c_int {
    // SAFETY: the program passes objects that stay valid until the wait has ended. `place` returns the library to which
    // the wait belongs, and each branch calls that library.
    unsafe {
        match shared::place(cond, mutex) {
            Ok(Place::Ours(cond)) => wait(cond, mutex, None),
            Ok(Place::Theirs) => next::pthread_cond_wait(cond, mutex),
            Err(errno) => errno,
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_cond_timedwait(
    cond: *mut RawCondvar,
    mutex: *mut RawMutex,
    time: *const timespec,
) -> c_int {
    // SAFETY: the program passes objects and a time that stay valid until the wait has ended. `place` returns the
    // library to which the wait belongs, and each branch calls that library.
    unsafe {
        match shared::place(cond, mutex) {
            Ok(Place::Ours(own)) => wait_until(own, mutex, shared::clock_of(cond), time),
            Ok(Place::Theirs) => next::pthread_cond_timedwait(cond, mutex, time),
            Err(errno) => errno,
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_cond_clockwait(
    cond: *mut RawCondvar,
    mutex: *mut RawMutex,
    id: c_int,
    time: *const timespec,
) -> c_int {
    let Some(clock) = clock(id) else { return EINVAL };
    // SAFETY: the program passes objects and a time that stay valid until the wait has ended. `place` returns the
    // library to which the wait belongs, and each branch calls that library.
    unsafe {
        match shared::place(cond, mutex) {
            Ok(Place::Ours(cond)) => wait_until(cond, mutex, clock, time),
            Ok(Place::Theirs) => next::pthread_cond_clockwait(cond, mutex, id, time),
            Err(errno) => errno,
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_cond_signal(cond: *mut RawCondvar) -> c_int {
    // SAFETY: the program passes a condition variable that stays valid during the call.
    if unsafe { shared::is_shared_cond(cond) } {
        if let Some(own) = shared::stand_in(cond) {
            own.signal();
        }
        // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
        return unsafe { next::pthread_cond_signal(cond) };
    }
    // SAFETY: the program passes a condition variable that stays valid during the call, and threads may share it.
    unsafe { &*cond }.signal();
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_cond_broadcast(cond: *mut RawCondvar) -> c_int {
    // SAFETY: the program passes a condition variable that stays valid during the call.
    if unsafe { shared::is_shared_cond(cond) } {
        if let Some(own) = shared::stand_in(cond) {
            own.broadcast();
        }
        // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
        return unsafe { next::pthread_cond_broadcast(cond) };
    }
    // SAFETY: the program passes a condition variable that stays valid during the call, and threads may share it.
    unsafe { &*cond }.broadcast();
    0
}
