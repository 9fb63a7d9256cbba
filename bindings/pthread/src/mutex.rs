//! The functions `pthread_mutex_*`.
//!
//! A static initialiser contains no policy. So the first thread that uses such a mutex prepares it: it adds the policy
//! to the mutex's attributes, and marks it as prepared. Until then this library has never locked the mutex, and a
//! thread that locked it by the C library's own functions left a word that is not free.

use crate::attributes::{LEVELS, attributes_and_ceiling};
use crate::policy::Policy;
use crate::report::Quiet;
use crate::shared::{DESTROYED, PREPARED};
use crate::{clock, deadline, next, shared};
use libc::{EBUSY, EDEADLK, EINVAL, EOWNERDEAD, ETIMEDOUT, c_int, timespec};
use lockwright::mutex::{self, Acquired, Attributes, Clock, Limit, RawError, RawMutex, attributes, thread_id};
use std::cell::Cell;

/// The mutex inherits because of the policy, not because the program requested it.
const CONVERTED: u32 = 1 << 25;
/// The bits that a program or an initialiser may set in the attributes. The C library's bits for lock elision are
/// ignored here.
const KNOWN: u32 =
    attributes::TYPE | attributes::ROBUST | attributes::INHERIT | attributes::PROTECT | attributes::SHARED | ELISION;
const ELISION: u32 = 0x300;

/// The interval, in ns, at which a lock is tried again that can only succeed if something unusual happens.
pub(crate) const STAY_NAP_NS: u64 = 10_000_000;
/// How often, and at which interval in ns, a deadlock is checked again before it is reported. A deadlock with a timed
/// lock in it passes, and the other threads may not have executed since the time came.
const CONFIRMATIONS: u32 = 5;
const CONFIRM_NAP_NS: u64 = 1_000_000;

thread_local! {
    /// The calling thread's id before its last fork. In the child, the id of the parent's thread.
    static FORKED_FROM: Cell<u32> = const { Cell::new(0) };
}

/// Registers the handler of `fork`, once.
pub(crate) fn warm_up() {
    extern "C" fn before() {
        FORKED_FROM.set(thread_id());
    }
    // SAFETY: the handler takes nothing, cannot unwind out of `extern "C"`, and lives as long as the process.
    unsafe { libc::pthread_atfork(Some(before), None, None) };
}

/// Returns the calling thread's id before its last fork, or 0.
pub(crate) fn forked_from() -> u32 {
    FORKED_FROM.get()
}

/// In a child process: makes the caller the owner of a mutex that its thread locked in the parent, and that inherits
/// because of the policy. For the kernel, the owner of such a mutex is the parent's thread. Returns whether it did.
#[cold]
pub(crate) fn take_over(mutex: &RawMutex) -> bool {
    mutex.attributes() & CONVERTED != 0 && mutex.take_over(forked_from())
}

/// Returns the policy's bits for a mutex with these attributes.
fn policy_bits(bits: u32, may_convert: bool) -> u32 {
    let policy = Policy::get();
    let mut more = policy.bits();
    if more & attributes::INHERIT != 0 {
        if bits & (attributes::INHERIT | attributes::PROTECT) == 0 && may_convert {
            more |= CONVERTED;
        } else {
            more &= !attributes::INHERIT;
        }
    }
    // Programs use such a mutex as a semaphore: a thread that waits for itself may be released by another one.
    if policy.refuses() && !attributes::is_unlocked_by_owner(bits | more) {
        more &= !attributes::CHECKED;
    }
    more | PREPARED
}

/// Prepares a mutex that this library did not initialise, or returns why it cannot.
#[cold]
fn prepare(mutex: &RawMutex) -> Result<(), c_int> {
    // BOUND: a second round if another thread prepared it.
    loop {
        let before = mutex.attributes();
        if before & PREPARED != 0 {
            return Ok(());
        }
        if before & !KNOWN != 0 {
            return Err(EINVAL);
        }
        // If a thread holds the mutex, it may already be in use without inheritance.
        let may_convert = mutex.is_free();
        // SAFETY: POSIX forbids to move or free a mutex while a thread holds it, which is all that a robust mutex
        // requires.
        if unsafe { mutex.add_attributes(before, policy_bits(before, may_convert)) } {
            return Ok(());
        }
    }
}

/// Returns the error number of a lock, and shows the owner if it succeeded.
fn answer(mutex: &RawMutex, taken: Result<Acquired, RawError>) -> c_int {
    if taken.is_ok() {
        mutex.show_owner();
    }
    match taken {
        Ok(Acquired::Clean) => 0,
        Ok(Acquired::OwnerDied) => EOWNERDEAD,
        Err(error) => number(&error),
    }
}

pub(crate) fn number(error: &RawError) -> c_int {
    match error {
        RawError::Busy => EBUSY,
        RawError::TimedOut => ETIMEDOUT,
        RawError::Deadlock(_) => EDEADLK,
        RawError::NotRecoverable => libc::ENOTRECOVERABLE,
        RawError::NotOwner => libc::EPERM,
        RawError::TooOften => libc::EAGAIN,
        RawError::Sys(error) => error.errno,
        // AboveCeiling and Inapplicable.
        _ => EINVAL,
    }
}

/// Returns a mutex that is prepared.
#[inline(always)]
unsafe fn ready<'a>(mutex: *mut RawMutex) -> Result<&'a RawMutex, c_int> {
    // SAFETY: the program passes a mutex that stays valid during the call, and threads may share a `RawMutex`.
    let mutex = unsafe { &*mutex };
    if mutex.attributes() & PREPARED == 0 {
        prepare(mutex)?;
    }
    Ok(mutex)
}

#[inline(always)]
unsafe fn lock(mutex: *mut RawMutex, limit: Limit) -> c_int {
    // SAFETY: the program passes a mutex that stays valid during the call, and threads may share a `RawMutex`.
    let known = unsafe { &*mutex };
    if known.attributes() & PREPARED != 0 && known.lock_uncontended() {
        known.show_owner();
        return 0;
    }
    lock_otherwise(known, limit)
}

#[cold]
fn lock_otherwise(mutex: &RawMutex, limit: Limit) -> c_int {
    if shared::is_shared(mutex) {
        // SAFETY: the mutex is one of the C library's, and stays valid during the call. One with a deadline does not
        // come here: `lock_until` passes it on.
        return match unsafe {
            if limit == Limit::Now { next::pthread_mutex_trylock(mutex) } else { next::pthread_mutex_lock(mutex) }
        } {
            // The C library gives this answer if the owner of an error-checking mutex tries that is robust or inherits,
            // perhaps only because of the policy. POSIX demands EBUSY.
            EDEADLK if limit == Limit::Now => EBUSY,
            answer => answer,
        };
    }
    if let Err(errno) = prepare(mutex) {
        return errno;
    }
    settle(mutex, limit, mutex.lock(limit))
}

/// Completes a lock that has given this result, which may be an error in spite of which the caller waits. Returns the
/// error number.
///
/// BOUND: `limit`.
pub(crate) fn settle(mutex: &RawMutex, limit: Limit, taken: Result<Acquired, RawError>) -> c_int {
    match &taken {
        Err(error) if stays(mutex, limit, error) => stay(mutex, limit),
        Err(RawError::Deadlock(_)) if !mutex.is_mine() => confirm(mutex, limit),
        _ => answer(mutex, taken),
    }
}

/// Returns EDEADLK for a deadlock with other threads, if it lasts.
///
/// BOUND: CONFIRMATIONS naps; `limit`, if the deadlock passes.
fn confirm(mutex: &RawMutex, limit: Limit) -> c_int {
    let _quiet = Quiet::new();
    for _ in 0..CONFIRMATIONS {
        if mutex::nap(CONFIRM_NAP_NS, limit) {
            return ETIMEDOUT;
        }
        match mutex.lock(limit) {
            Err(RawError::Deadlock(_)) => {}
            // The deadlock has passed, perhaps because the owner has ended, for which the caller waits.
            taken => return settle(mutex, limit, taken),
        }
    }
    EDEADLK
}

/// Returns whether the caller waits in spite of the error. POSIX lets it wait for ever for a normal mutex of its own
/// and for a mutex whose owner ended. With a deadline the wait times out, as in the C library. A program whose mutexes
/// inherit only because of the policy does not expect to be refused.
fn stays(mutex: &RawMutex, limit: Limit, error: &RawError) -> bool {
    let is_normal = matches!(mutex.attributes() & attributes::TYPE, attributes::NORMAL | attributes::ADAPTIVE);
    match error {
        RawError::Sys(error) => error.errno == libc::ESRCH,
        RawError::Deadlock(_) if mutex.is_mine() => is_normal,
        RawError::Deadlock(_) if Policy::get().refuses() => false,
        RawError::Deadlock(_) => {
            // A robust mutex becomes available when one of the other threads ends.
            let may_come = is_normal && mutex.attributes() & attributes::ROBUST != 0 || matches!(limit, Limit::At(_));
            may_come || mutex.attributes() & CONVERTED != 0
        }
        _ => false,
    }
}

/// Waits for a mutex that is not expected to become available, and tries it at intervals. It does not try a mutex that
/// it owns itself: no thread can make that one available, and the program may use its memory for something else later.
///
/// BOUND: `limit`.
fn stay(mutex: &RawMutex, limit: Limit) -> c_int {
    let _quiet = Quiet::new();
    let mut is_own = mutex.is_mine();
    loop {
        if mutex::nap(if is_own { u64::MAX } else { STAY_NAP_NS }, limit) {
            return ETIMEDOUT;
        }
        if is_own {
            continue;
        }
        let taken = mutex.lock(limit);
        match &taken {
            Err(error) if stays(mutex, limit, error) => is_own = mutex.is_mine(),
            // Another owner may close a cycle, which may pass.
            _ => return settle(mutex, limit, taken),
        }
    }
}

/// Locks the mutex until `*time`. An invalid time is an error only if the mutex is busy.
unsafe fn lock_until(mutex: *mut RawMutex, clock: Clock, time: *const timespec) -> c_int {
    // SAFETY: the program passes a mutex that stays valid during the call, and threads may share a `RawMutex`.
    if shared::is_shared(unsafe { &*mutex }) {
        // SAFETY: the mutex is one of the C library's, and the program's time stays valid during the call.
        return unsafe { next::pthread_mutex_clocklock(mutex, shared::number(clock), time) };
    }
    // SAFETY: the program passes a time that stays valid and unchanged during the call.
    if let Some(deadline) = deadline(clock, unsafe { &*time }) {
        // SAFETY: the program passes a mutex that stays valid during the call.
        return unsafe { lock(mutex, Limit::At(deadline)) };
    }
    // SAFETY: the program passes a mutex that stays valid during the call, and `ready` returns a reference for no
    // longer.
    match unsafe { ready(mutex) } {
        Err(errno) => errno,
        Ok(mutex) => match mutex.lock(Limit::Now) {
            Err(RawError::Busy)
                if mutex.attributes() & attributes::TYPE == attributes::ERROR_CHECK && mutex.is_mine() =>
            {
                EDEADLK
            }
            Err(RawError::Busy) => EINVAL,
            taken => answer(mutex, taken),
        },
    }
}

/// Initialises a mutex. `attributes` may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutex_init(mutex: *mut RawMutex, attributes: *const u32) -> c_int {
    // SAFETY: the program passes null, or attributes that no other thread writes during the call.
    let (bits, ceiling) = match unsafe { attributes.as_ref() } {
        Some(&attributes) => attributes_and_ceiling(attributes),
        None => (attributes::NORMAL, 0),
    };
    if bits & attributes::SHARED != 0 {
        // SAFETY: the program passes memory for a mutex. The attributes set a bit, so they are not null.
        return unsafe { shared::init(mutex, attributes) };
    }
    // SAFETY: the program passes memory for a mutex, which has this size, and which no thread uses yet. POSIX forbids
    // to move or free the mutex while a thread holds it.
    unsafe { mutex.write(RawMutex::new(Attributes::from_bits(bits | policy_bits(bits, true)), ceiling)) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutex_destroy(mutex: *mut RawMutex) -> c_int {
    // SAFETY: the program passes a mutex that stays valid during the call, and threads may share a `RawMutex`.
    let known = unsafe { &*mutex };
    if shared::is_shared(known) {
        // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
        return unsafe { next::pthread_mutex_destroy(mutex) };
    }
    if known.is_in_use() {
        return EBUSY;
    }
    // SAFETY: POSIX requires that no other thread uses the mutex, and the reference above is not used any more. The new
    // contents are not robust.
    unsafe { mutex.write(RawMutex::new(Attributes::from_bits(DESTROYED), 0)) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutex_lock(mutex: *mut RawMutex) -> c_int {
    // SAFETY: the program passes a mutex that stays valid during the call.
    unsafe { lock(mutex, Limit::Never) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutex_trylock(mutex: *mut RawMutex) -> c_int {
    // SAFETY: the program passes a mutex that stays valid during the call.
    unsafe { lock(mutex, Limit::Now) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutex_timedlock(mutex: *mut RawMutex, time: *const timespec) -> c_int {
    // SAFETY: the program passes a mutex and a time that stay valid during the call.
    unsafe { lock_until(mutex, Clock::Realtime, time) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutex_clocklock(mutex: *mut RawMutex, id: c_int, time: *const timespec) -> c_int {
    match clock(id) {
        // SAFETY: the program passes a mutex and a time that stay valid during the call.
        Some(clock) => unsafe { lock_until(mutex, clock, time) },
        None => EINVAL,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutex_unlock(mutex: *mut RawMutex) -> c_int {
    // SAFETY: the program passes a mutex that stays valid until it is unlocked, and is not accessed afterwards. Threads
    // may share a `RawMutex`.
    let known = unsafe { &*mutex };
    let attributes = known.attributes();
    if attributes & PREPARED != 0 {
        known.hide_owner();
        if known.unlock_uncontended() {
            return 0;
        }
    }
    unlock_otherwise(known)
}

#[cold]
fn unlock_otherwise(mutex: &RawMutex) -> c_int {
    if shared::is_shared(mutex) {
        // SAFETY: the mutex is marked as shared, so the C library initialised it, and it is valid until it is unlocked.
        return unsafe { next::pthread_mutex_unlock(mutex) };
    }
    if let Err(errno) = prepare(mutex) {
        return errno;
    }
    let Err(error) = mutex.unlock() else { return 0 };
    // A child process unlocks a mutex that its thread locked in the parent, as handlers of `fork` do.
    if error == RawError::NotOwner && take_over(mutex) {
        return mutex.unlock().map_or_else(|error| number(&error), |()| 0);
    }
    number(&error)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutex_consistent(mutex: *mut RawMutex) -> c_int {
    // SAFETY: the program passes a mutex that stays valid during the call, and threads may share a `RawMutex`.
    let mutex = unsafe { &*mutex };
    if shared::is_shared(mutex) {
        // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
        return unsafe { next::pthread_mutex_consistent(mutex) };
    }
    mutex.make_consistent().map_or_else(|error| number(&error), |()| 0)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutex_getprioceiling(mutex: *const RawMutex, ceiling: *mut c_int) -> c_int {
    // SAFETY: the program passes a mutex that stays valid during the call, and threads may share a `RawMutex`.
    let mutex = unsafe { &*mutex };
    if shared::is_shared(mutex) {
        // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
        return unsafe { next::pthread_mutex_getprioceiling(mutex, ceiling) };
    }
    if mutex.attributes() & attributes::PROTECT == 0 || mutex.attributes() == DESTROYED {
        return EINVAL;
    }
    // SAFETY: the program passes a place for the ceiling, which no other thread uses during the call.
    unsafe { *ceiling = c_int::from(mutex.ceiling()) };
    0
}

/// Changes the ceiling. `before` may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutex_setprioceiling(
    mutex: *mut RawMutex,
    ceiling: c_int,
    before: *mut c_int,
) -> c_int {
    // SAFETY: the program passes a mutex that stays valid during the call, and threads may share a `RawMutex`.
    if shared::is_shared(unsafe { &*mutex }) {
        // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
        return unsafe { next::pthread_mutex_setprioceiling(mutex, ceiling, before) };
    }
    // SAFETY: the program passes a mutex that stays valid during the call, and `ready` returns a reference for no
    // longer.
    let mutex = match unsafe { ready(mutex) } {
        Ok(mutex) => mutex,
        Err(errno) => return errno,
    };
    if mutex.attributes() & attributes::PROTECT == 0 || !LEVELS.contains(&ceiling) {
        return EINVAL;
    }
    // A caller that finds the owner dead gets EOWNERDEAD here, and holds the mutex.
    let locks = mutex.attributes() & attributes::ROBUST != 0 && !mutex.is_mine();
    if locks {
        match answer(mutex, mutex.lock(Limit::Never)) {
            0 => {}
            errno => return errno,
        }
    }
    let changed = mutex.set_ceiling(ceiling as u8);
    if locks && let Err(error) = mutex.unlock() {
        return number(&error);
    }
    match changed {
        Ok(level) => {
            if !before.is_null() {
                // SAFETY: it is not null, so the program passed a place for the ceiling, which no other thread uses
                // during the call.
                unsafe { *before = c_int::from(level) };
            }
            0
        }
        Err(error) => number(&error),
    }
}

other_names! {
    pthread_mutex_consistent_np(mutex: *mut RawMutex) = pthread_mutex_consistent;
    __pthread_mutex_init(mutex: *mut RawMutex, attributes: *const u32) = pthread_mutex_init;
    __pthread_mutex_destroy(mutex: *mut RawMutex) = pthread_mutex_destroy;
    __pthread_mutex_lock(mutex: *mut RawMutex) = pthread_mutex_lock;
    __pthread_mutex_trylock(mutex: *mut RawMutex) = pthread_mutex_trylock;
    __pthread_mutex_unlock(mutex: *mut RawMutex) = pthread_mutex_unlock;
}
