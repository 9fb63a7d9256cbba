//! The functions `sem_*`.
//!
//! These semaphores are the C library's, except private ones under the policies `inherit` and `serial`: there, a unit
//! that is posted while threads wait belongs to these threads, as an unlocked mutex does.
//!
//! A wait is a cancellation point: the calling thread may be cancelled in `suspend.c`. Unwinding then passes through
//! the functions here that call it, and nothing in them needs to be dropped.

use crate::policy::Policy;
use crate::{clock, deadline, next, shared};
use libc::{EAGAIN, EINTR, EINVAL, EOVERFLOW, ETIMEDOUT, c_int, c_long, c_uint, c_void, timespec};
use lockwright::mutex::{Clock, Deadline, Suspended, attributes};
use lockwright::semaphore::{Progress, Request, Semaphore, SemaphoreError};

// The C library's semaphore has 32 bytes. It has 0 at 8 if it is private, as ours has.
const _: () = assert!(size_of::<Semaphore>() <= size_of::<libc::sem_t>());
const _: () = assert!(align_of::<Semaphore>() <= align_of::<libc::sem_t>());

/// A wait that may be cancelled.
#[derive(Clone, Copy)]
struct Wait<'a> {
    sem: &'a Semaphore,
    request: Request,
}

unsafe extern "C-unwind" {
    /// As in `condvar`.
    fn lockwright_suspend(
        arguments: *const c_long,
        cancelled: unsafe extern "C" fn(*mut c_void),
        wait: *mut c_void,
    ) -> c_long;
    /// The C library's.
    safe fn pthread_testcancel();
}

unsafe extern "C" fn cancelled(wait: *mut c_void) {
    // SAFETY: `lockwright_suspend` passes the `Wait` of `wait`, whose frame is below it on the stack and not yet
    // unwound.
    let Wait { sem, request } = unsafe { *wait.cast::<Wait<'_>>() };
    sem.cancel(request);
}

/// Sets `errno`, and returns what the functions return then.
#[cold]
fn fails(errno: c_int) -> c_int {
    // SAFETY: the C library returns the address of the calling thread's own error number.
    unsafe { *libc::__errno_location() = errno };
    -1
}

/// Whether private semaphores are this library's.
fn hands_over() -> bool {
    Policy::get().bits() & (attributes::INHERIT | attributes::SERIAL) != 0
}

/// Returns the semaphore if it is this library's.
///
/// # Safety
/// `sem` points to a semaphore of this library or of the C library, which stays valid for `'a`.
#[inline(always)]
unsafe fn own<'a>(sem: *mut Semaphore) -> Option<&'a Semaphore> {
    // SAFETY: the caller passes a semaphore that stays valid for `'a`, and threads share a `Semaphore` by atomic
    // operations.
    let sem = unsafe { &*sem };
    (hands_over() && !sem.is_shared()).then_some(sem)
}

/// Waits until `until`, or for ever if it is `None`.
unsafe fn wait(sem: &Semaphore, until: Option<Deadline>) -> c_int {
    pthread_testcancel();
    let Some(request) = sem.request() else { return 0 };
    let mut wait = Wait { sem, request };
    // BOUND: `until`. A round ends with a unit that another thread took.
    loop {
        let mut suspension = sem.suspension(&wait.request, until);
        if let Some(time) = &suspension.time {
            suspension.arguments[3] = std::ptr::from_ref(time).expose_provenance() as c_long;
        }
        // SAFETY: `suspension` and `wait` live in this frame, and so outlive the call. Neither needs to be dropped, so
        // the call may unwind through the frame.
        let answer =
            unsafe { lockwright_suspend(suspension.arguments.as_ptr(), cancelled, (&raw mut wait).cast::<c_void>()) };
        let errno = match sem.answered(&mut wait.request, Suspended::answered(answer)) {
            Progress::Acquired => return 0,
            Progress::Waits => continue,
            Progress::Interrupted => EINTR,
            Progress::TimedOut => ETIMEDOUT,
            Progress::Refused(error) => error.errno,
        };
        return if sem.give_up(wait.request) { 0 } else { fails(errno) };
    }
}

/// Waits until `*time`, or returns `None` if the semaphore is the C library's. An invalid time is an error even if a
/// unit is free, as in the C library.
///
/// # Safety
/// `sem` points to a semaphore, and `time` to a time; both stay valid until the wait has ended.
unsafe fn wait_until(sem: *mut Semaphore, clock: Clock, time: *const timespec) -> Option<c_int> {
    // SAFETY: the caller passes a semaphore and a time that stay valid until the wait has ended.
    unsafe {
        let sem = own(sem)?;
        Some(match deadline(clock, &*time) {
            Some(until) => wait(sem, Some(until)),
            None => fails(EINVAL),
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sem_init(sem: *mut Semaphore, is_shared: c_int, value: c_uint) -> c_int {
    if is_shared != 0 || !hands_over() {
        // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
        return unsafe { next::sem_init(sem, is_shared, value) };
    }
    if value > Semaphore::MAX {
        return fails(EINVAL);
    }
    // SAFETY: the program passes memory for a `sem_t`, which is not smaller, and which no thread uses yet.
    unsafe { sem.write(Semaphore::new(value)) };
    0
}

/// A thread may destroy and free a semaphore as soon as it has got the last unit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sem_destroy(sem: *mut Semaphore) -> c_int {
    // SAFETY: the program passes a semaphore that stays valid during the call.
    match unsafe { own(sem) } {
        Some(_) => 0,
        // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
        None => unsafe { next::sem_destroy(sem) },
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sem_wait(sem: *mut Semaphore) -> c_int {
    // SAFETY: the program passes a semaphore that stays valid until the wait has ended.
    unsafe {
        match own(sem) {
            Some(own) => wait(own, None),
            None => next::sem_wait(sem),
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sem_timedwait(sem: *mut Semaphore, time: *const timespec) -> c_int {
    // SAFETY: the program passes a semaphore and a time that stay valid until the wait has ended.
    unsafe { wait_until(sem, Clock::Realtime, time).unwrap_or_else(|| next::sem_timedwait(sem, time)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sem_clockwait(sem: *mut Semaphore, id: c_int, time: *const timespec) -> c_int {
    let Some(clock) = clock(id) else { return fails(EINVAL) };
    // SAFETY: the program passes a semaphore and a time that stay valid until the wait has ended.
    unsafe { wait_until(sem, clock, time).unwrap_or_else(|| next::sem_clockwait(sem, shared::number(clock), time)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sem_trywait(sem: *mut Semaphore) -> c_int {
    // SAFETY: the program passes a semaphore that stays valid during the call.
    match unsafe { own(sem) } {
        Some(own) => own.try_acquire().map_or_else(|_| fails(EAGAIN), |()| 0),
        // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
        None => unsafe { next::sem_trywait(sem) },
    }
}

/// A signal handler may call this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sem_post(sem: *mut Semaphore) -> c_int {
    // SAFETY: the program passes a semaphore that stays valid until the unit is released.
    match unsafe { own(sem) } {
        Some(own) => match own.release() {
            Ok(()) => 0,
            Err(SemaphoreError::Overflow) => fails(EOVERFLOW),
            Err(_) => fails(EINVAL),
        },
        // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
        None => unsafe { next::sem_post(sem) },
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sem_getvalue(sem: *mut Semaphore, value: *mut c_int) -> c_int {
    // SAFETY: the program passes a semaphore and a place for the value, which stay valid during the call.
    unsafe {
        match own(sem) {
            Some(own) => {
                // At most `Semaphore::MAX`, which fits.
                *value = own.available() as c_int;
                0
            }
            None => next::sem_getvalue(sem, value),
        }
    }
}
