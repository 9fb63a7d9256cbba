//! Condition variables, semaphores and barriers. A wait is recorded even where it ends at once: it may be the start of
//! a job.

use crate::entry::entries;
use crate::mutex;
use crate::next::{self, Opaque};
use crate::ring::Ring;
use crate::thread::current;
use libc::{c_int, c_uint, c_void, clockid_t, sem_t, timespec};
use lockwright_record::file::format::{DETAIL_SHIFT, class, event};

fn place(class: u8, site: usize) -> u64 {
    site as u64 | u64::from(class) << DETAIL_SHIFT
}

/// Records a wait around `call`.
#[inline(always)]
pub(crate) fn waits<T>(kind: u8, value: u64, place: u64, call: impl FnOnce() -> T) -> T {
    waits_for(kind, value, place, call, |_, _| ())
}

/// The same, with an event about the answer before the end of the wait.
#[inline(always)]
pub(crate) fn waits_for<T>(
    kind: u8,
    value: u64,
    place: u64,
    call: impl FnOnce() -> T,
    answered: impl FnOnce(&Ring, &T),
) -> T {
    let Some(ring) = current() else { return call() };
    ring.put(kind, [value, place]);
    let answer = ring.within(call);
    answered(ring, &answer);
    ring.put(event::RESUMED, []);
    answer
}

fn signals(class: u8, object: Opaque, site: usize) {
    if let Some(ring) = current() {
        ring.put(event::SIGNAL, [object.addr() as u64, place(class, site)]);
    }
}

/// Records the initialisation of an object; `value` is that of a semaphore.
fn initialised(class: u8, object: Opaque, value: c_uint, site: usize) {
    if let Some(ring) = current() {
        ring.put(event::INIT, [object.addr() as u64, place(class, site), u64::from(value)]);
    }
}

/// Waits for a condition: unlocks the mutex, waits and locks it again, whatever the answer is.
///
/// # Safety
/// `mutex` points to a mutex of the caller that stays valid until `call` has returned.
#[inline(always)]
unsafe fn condition(cond: Opaque, mutex: Opaque, site: usize, call: impl FnOnce() -> c_int) -> c_int {
    let Some(ring) = current() else { return call() };
    let wait = || waits(event::CONDITION, cond.addr() as u64, place(class::CONDITION, site), call);
    // SAFETY: the caller passes a valid mutex.
    unsafe { mutex::without(ring, mutex, site, wait) }
}

pub(crate) unsafe extern "C-unwind" fn cond_wait(cond: Opaque, mutex: Opaque, site: usize) -> c_int {
    // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
    unsafe { condition(cond, mutex, site, || next::pthread_cond_wait(cond, mutex)) }
}

pub(crate) unsafe extern "C-unwind" fn cond_timedwait(
    cond: Opaque,
    mutex: Opaque,
    time: *const timespec,
    site: usize,
) -> c_int {
    // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
    unsafe { condition(cond, mutex, site, || next::pthread_cond_timedwait(cond, mutex, time)) }
}

unsafe extern "C-unwind" fn cond_clockwait(
    cond: Opaque,
    mutex: Opaque,
    clock: clockid_t,
    time: *const timespec,
    site: usize,
) -> c_int {
    // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
    unsafe { condition(cond, mutex, site, || next::pthread_cond_clockwait(cond, mutex, clock, time)) }
}

pub(crate) unsafe extern "C-unwind" fn cond_signal(cond: Opaque, site: usize) -> c_int {
    signals(class::CONDITION, cond, site);
    // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
    unsafe { next::pthread_cond_signal(cond) }
}

pub(crate) unsafe extern "C-unwind" fn cond_broadcast(cond: Opaque, site: usize) -> c_int {
    signals(class::CONDITION, cond, site);
    // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
    unsafe { next::pthread_cond_broadcast(cond) }
}

unsafe extern "C-unwind" fn cond_init(cond: Opaque, attributes: *const c_void, site: usize) -> c_int {
    // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
    let answer = unsafe { next::pthread_cond_init(cond, attributes) };
    if answer == 0 {
        initialised(class::CONDITION, cond, 0, site);
    }
    answer
}

/// Records a wait for a semaphore, and whether it ended without a post.
fn semaphore(semaphore: *mut sem_t, site: usize, call: impl FnOnce() -> c_int) -> c_int {
    let object = semaphore.addr() as u64;
    let failed = |ring: &Ring, answer: &c_int| {
        if *answer != 0 {
            ring.put(event::REFUSED, [object]);
        }
    };
    waits_for(event::SEMAPHORE, object, place(class::SEMAPHORE, site), call, failed)
}

unsafe extern "C-unwind" fn semaphore_wait(object: *mut sem_t, site: usize) -> c_int {
    // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
    semaphore(object, site, || unsafe { next::sem_wait(object) })
}

unsafe extern "C-unwind" fn semaphore_timedwait(object: *mut sem_t, time: *const timespec, site: usize) -> c_int {
    // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
    semaphore(object, site, || unsafe { next::sem_timedwait(object, time) })
}

unsafe extern "C-unwind" fn semaphore_clockwait(
    object: *mut sem_t,
    clock: clockid_t,
    time: *const timespec,
    site: usize,
) -> c_int {
    // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
    semaphore(object, site, || unsafe { next::sem_clockwait(object, clock, time) })
}

/// A successful attempt is a wait that ended at once; another one is none.
unsafe extern "C-unwind" fn semaphore_trywait(object: *mut sem_t, site: usize) -> c_int {
    // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
    let answer = unsafe { next::sem_trywait(object) };
    if answer == 0 { semaphore(object, site, || 0) } else { answer }
}

unsafe extern "C-unwind" fn semaphore_post(object: *mut sem_t, site: usize) -> c_int {
    signals(class::SEMAPHORE, object.cast(), site);
    // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
    unsafe { next::sem_post(object) }
}

unsafe extern "C-unwind" fn semaphore_init(object: *mut sem_t, shared: c_int, value: c_uint, site: usize) -> c_int {
    // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
    let answer = unsafe { next::sem_init(object, shared, value) };
    if answer == 0 {
        initialised(class::SEMAPHORE, object.cast(), value, site);
    }
    answer
}

unsafe extern "C-unwind" fn barrier_wait(barrier: Opaque, site: usize) -> c_int {
    let place = place(class::BARRIER, site);
    // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
    waits(event::BARRIER, barrier.addr() as u64, place, || unsafe { next::pthread_barrier_wait(barrier) })
}

unsafe extern "C-unwind" fn barrier_init(
    barrier: Opaque,
    attributes: *const c_void,
    count: c_uint,
    site: usize,
) -> c_int {
    // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
    let answer = unsafe { next::pthread_barrier_init(barrier, attributes, count) };
    if answer == 0 {
        initialised(class::BARRIER, barrier, 0, site);
    }
    answer
}

entries! {
    "rdx" pthread_cond_init = cond_init;
    "rdx" pthread_cond_wait = cond_wait;
    "rcx" pthread_cond_timedwait = cond_timedwait;
    "r8" pthread_cond_clockwait = cond_clockwait;
    "rsi" pthread_cond_signal = cond_signal;
    "rsi" pthread_cond_broadcast = cond_broadcast;
    "rcx" sem_init = semaphore_init;
    "rsi" sem_wait = semaphore_wait;
    "rdx" sem_timedwait = semaphore_timedwait;
    "rcx" sem_clockwait = semaphore_clockwait;
    "rsi" sem_trywait = semaphore_trywait;
    "rsi" sem_post = semaphore_post;
    "rcx" pthread_barrier_init = barrier_init;
    "rsi" pthread_barrier_wait = barrier_wait;
}
