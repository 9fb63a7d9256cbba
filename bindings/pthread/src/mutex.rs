//! `pthread_mutex_*`.
//!
//! A static initialiser says nothing of the policy. So whoever takes a mutex first prepares it: adds the policy to its kind, and that it is
//! prepared. Nobody has taken it before by this library, and whoever did by the C library's own functions left a word that is not free.

use crate::attributes::{self, LEVELS};
use crate::policy::Policy;
use crate::report::Quiet;
use crate::{clock, deadline};
use libc::{EBUSY, EDEADLK, EINVAL, EOWNERDEAD, ETIMEDOUT, c_int, timespec};
use lockwright::mutex::{self, Acquired, Clock, Limit, RawError, RawMutex, kind, thread_id};
use std::cell::Cell;

/// The policy is in the kind.
const PREPARED: u32 = 1 << 24;
/// It inherits because the policy says so, not the program.
const CONVERTED: u32 = 1 << 25;
/// What a program, or an initialiser, may have in a kind. The C library's bits for lock elision mean nothing here.
const KNOWN: u32 = kind::TYPE | kind::ROBUST | kind::INHERIT | kind::PROTECT | kind::SHARED | ELISION;
const ELISION: u32 = 0x300;
/// The kind of one that was destroyed: known to nobody.
const DESTROYED: u32 = !PREPARED;

/// How often a mutex that cannot come is asked for again.
const STAY_NAP_NS: u64 = 10_000_000;
/// How often, and how soon, it is asked again whether a deadlock is one: with a timed lock in it, it passes, and others may not have got
/// to execute since its time came.
const CONFIRMATIONS: u32 = 5;
const CONFIRM_NAP_NS: u64 = 1_000_000;

thread_local! {
    /// The calling thread's id before the last fork it asked for; in the child that of the parent's thread.
    static FORKED_FROM: Cell<u32> = const { Cell::new(0) };
}

/// What is asked of the system once.
pub(crate) fn warm_up() {
    extern "C" fn before() {
        FORKED_FROM.set(thread_id());
    }
    // SAFETY: the handler takes nothing, cannot unwind out of `extern "C"`, and lives as long as the process.
    unsafe { libc::pthread_atfork(Some(before), None, None) };
}

/// The policy's bits for a mutex of this kind.
fn policy_bits(bits: u32, may_convert: bool) -> u32 {
    let mut more = Policy::get().bits();
    if more & kind::INHERIT != 0 {
        if bits & (kind::INHERIT | kind::PROTECT) == 0 && may_convert {
            more |= CONVERTED;
        } else {
            more &= !kind::INHERIT;
        }
    }
    more | PREPARED
}

/// Prepares one that others initialised, or says why not.
#[cold]
fn prepare(mutex: &RawMutex) -> Result<(), c_int> {
    // BOUND: a second round where somebody else prepared it.
    loop {
        let before = mutex.kind();
        if before & PREPARED != 0 {
            return Ok(());
        }
        if before & !KNOWN != 0 {
            return Err(EINVAL);
        }
        // Where other processes map it, or somebody has it, it may be known as what it was.
        let may_convert = before & kind::SHARED == 0 && mutex.is_free();
        // SAFETY: POSIX asks the same of programs: a mutex stays where it is.
        if unsafe { mutex.add_to_kind(before, policy_bits(before, may_convert)) } {
            return Ok(());
        }
    }
}

fn answer(taken: Result<Acquired, RawError>) -> c_int {
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
        RawError::AboveCeiling | RawError::BadKind => EINVAL,
        RawError::Sys(error) => error.errno,
    }
}

/// One that is ready to be taken.
#[inline(always)]
unsafe fn ready<'a>(mutex: *mut RawMutex) -> Result<&'a RawMutex, c_int> {
    // SAFETY: promised by the caller.
    let mutex = unsafe { &*mutex };
    if mutex.kind() & PREPARED == 0 {
        prepare(mutex)?;
    }
    Ok(mutex)
}

#[inline(always)]
unsafe fn lock(mutex: *mut RawMutex, limit: Limit) -> c_int {
    // SAFETY: promised by the caller.
    let known = unsafe { &*mutex };
    if known.kind() & PREPARED != 0 && known.take_simply() { 0 } else { lock_otherwise(known, limit) }
}

#[cold]
fn lock_otherwise(mutex: &RawMutex, limit: Limit) -> c_int {
    if let Err(errno) = prepare(mutex) {
        return errno;
    }
    let taken = mutex.lock(limit);
    match &taken {
        Err(error) if stays(mutex, limit, error) => stay(mutex, limit),
        Err(RawError::Deadlock(_)) if !mutex.is_mine() => confirm(mutex, limit),
        _ => answer(taken),
    }
}

/// Answers a deadlock with others, if it lasts.
///
/// BOUND: CONFIRMATIONS naps, where it does.
fn confirm(mutex: &RawMutex, limit: Limit) -> c_int {
    let _quiet = Quiet::new();
    for _ in 0..CONFIRMATIONS {
        if mutex::nap(CONFIRM_NAP_NS, limit) {
            return ETIMEDOUT;
        }
        match mutex.lock(limit) {
            Err(RawError::Deadlock(_)) => {}
            taken => return answer(taken),
        }
    }
    EDEADLK
}

/// Whether the caller waits all the same: POSIX lets it wait for ever for a normal mutex of its own, and for one whose owner ended; who gave
/// a time is told that it has come, as by the C library. A program whose mutexes inherit because the policy says so does not expect to be refused.
fn stays(mutex: &RawMutex, limit: Limit, error: &RawError) -> bool {
    let is_normal = matches!(mutex.kind() & kind::TYPE, kind::NORMAL | kind::ADAPTIVE);
    match error {
        RawError::Sys(error) => error.errno == libc::ESRCH,
        RawError::Deadlock(_) if Policy::get().refuses() => false,
        RawError::Deadlock(_) if mutex.is_mine() => is_normal,
        RawError::Deadlock(_) => {
            // A robust one comes when one of the others ends.
            let may_come = is_normal && mutex.kind() & kind::ROBUST != 0 || matches!(limit, Limit::At(_));
            may_come || mutex.kind() & CONVERTED != 0
        }
        _ => false,
    }
}

/// Waits for what cannot come, and asks now and then whether it can.
///
/// BOUND: `limit`.
fn stay(mutex: &RawMutex, limit: Limit) -> c_int {
    let _quiet = Quiet::new();
    loop {
        if mutex::nap(STAY_NAP_NS, limit) {
            return ETIMEDOUT;
        }
        let taken = mutex.lock(limit);
        match &taken {
            Err(error) if stays(mutex, limit, error) => {}
            _ => return answer(taken),
        }
    }
}

/// The address of `time` is not looked at before the mutex is busy.
unsafe fn lock_until(mutex: *mut RawMutex, clock: Clock, time: *const timespec) -> c_int {
    // SAFETY: promised by the caller.
    if let Some(deadline) = deadline(clock, unsafe { &*time }) {
        // SAFETY: promised by the caller.
        return unsafe { lock(mutex, Limit::At(deadline)) };
    }
    // SAFETY: promised by the caller.
    match unsafe { ready(mutex) } {
        Err(errno) => errno,
        Ok(mutex) => match mutex.lock(Limit::Now) {
            Err(RawError::Busy) if mutex.kind() & kind::TYPE == kind::ERROR_CHECK && mutex.is_mine() => EDEADLK,
            Err(RawError::Busy) => EINVAL,
            taken => answer(taken),
        },
    }
}

/// `attributes` may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutex_init(mutex: *mut RawMutex, attributes: *const u32) -> c_int {
    // SAFETY: promised by the caller.
    let (bits, ceiling) = match unsafe { attributes.as_ref() } {
        Some(&attributes) => attributes::kind_and_ceiling(attributes),
        None => (kind::NORMAL, 0),
    };
    // SAFETY: promised by the caller: it is memory for a mutex, which is as large.
    unsafe { mutex.write(RawMutex::new(bits | policy_bits(bits, true), ceiling)) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutex_destroy(mutex: *mut RawMutex) -> c_int {
    // SAFETY: promised by the caller.
    let known = unsafe { &*mutex };
    // A robust one may be in the name of a thread that ended.
    if known.kind() & kind::ROBUST == 0 && known.is_in_use() {
        return EBUSY;
    }
    // SAFETY: promised by the caller; nobody uses it.
    unsafe { mutex.write(RawMutex::new(DESTROYED, 0)) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutex_lock(mutex: *mut RawMutex) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { lock(mutex, Limit::Never) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutex_trylock(mutex: *mut RawMutex) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { lock(mutex, Limit::Now) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutex_timedlock(mutex: *mut RawMutex, time: *const timespec) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { lock_until(mutex, Clock::Realtime, time) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutex_clocklock(mutex: *mut RawMutex, id: c_int, time: *const timespec) -> c_int {
    match clock(id) {
        // SAFETY: promised by the caller.
        Some(clock) => unsafe { lock_until(mutex, clock, time) },
        None => EINVAL,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutex_unlock(mutex: *mut RawMutex) -> c_int {
    // SAFETY: promised by the caller. It is not looked at once it is given back.
    let known = unsafe { &*mutex };
    if known.kind() & PREPARED != 0 && known.give_back_simply() { 0 } else { unlock_otherwise(known) }
}

#[cold]
fn unlock_otherwise(mutex: &RawMutex) -> c_int {
    if let Err(errno) = prepare(mutex) {
        return errno;
    }
    let Err(error) = mutex.unlock() else { return 0 };
    // A child process gives back what its thread took in the parent, as handlers of `fork` do. The kernel knows such a mutex as the parent's.
    let is_converted = mutex.kind() & (CONVERTED | kind::SHARED) == CONVERTED;
    if error == RawError::NotOwner && is_converted && mutex.take_over(FORKED_FROM.get()) {
        return mutex.unlock().map_or_else(|error| number(&error), |()| 0);
    }
    number(&error)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutex_consistent(mutex: *mut RawMutex) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { &*mutex }.make_consistent().map_or_else(|error| number(&error), |()| 0)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutex_getprioceiling(mutex: *const RawMutex, ceiling: *mut c_int) -> c_int {
    // SAFETY: promised by the caller.
    let mutex = unsafe { &*mutex };
    if mutex.kind() & kind::PROTECT == 0 || mutex.kind() == DESTROYED {
        return EINVAL;
    }
    // SAFETY: promised by the caller.
    unsafe { *ceiling = c_int::from(mutex.ceiling()) };
    0
}

/// `before` may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutex_setprioceiling(
    mutex: *mut RawMutex,
    ceiling: c_int,
    before: *mut c_int,
) -> c_int {
    // SAFETY: promised by the caller.
    let mutex = match unsafe { ready(mutex) } {
        Ok(mutex) => mutex,
        Err(errno) => return errno,
    };
    if mutex.kind() & kind::PROTECT == 0 || !LEVELS.contains(&ceiling) {
        return EINVAL;
    }
    // Who finds the owner dead is told so here, and has the mutex.
    let locks = mutex.kind() & kind::ROBUST != 0 && !mutex.is_mine();
    if locks {
        match answer(mutex.lock(Limit::Never)) {
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
                // SAFETY: promised by the caller.
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
