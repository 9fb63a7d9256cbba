//! The functions `pthread_rwlock_*`.
//!
//! These locks are the C library's, except private ones under the policy `inherit`.
//!
//! There, readers and writers alternate, whatever kind the program requests. A thread that reads while a writer waits
//! for readers usually waits for that writer, and would wait for itself if it held the lock for reading already. POSIX
//! allows it to read again, and programs do. So each thread counts its locks for reading: with none it waits its turn,
//! and otherwise it may hold this lock, and enters beside a writer that waits. Only
//! `PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP` excludes this.
//!
//! The attributes are the C library's.

use crate::attributes::RwLockAttributes;
use crate::mutex::{STAY_NAP_NS, forked_from, number};
use crate::policy::Policy;
use crate::{clock, deadline, next, shared};
use libc::{EINVAL, ETIMEDOUT, c_int, timespec};
use lockwright::mutex::{Clock, Limit, RawError, attributes, nap};
use lockwright::rwlock::RawRwLock;
use std::cell::Cell;

/// The kind of a lock that no thread reads again: `PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP`.
const NONRECURSIVE: u32 = 2;

thread_local! {
    /// How many private locks the thread holds for reading, as far as it unlocks them itself.
    static READS: Cell<u32> = const { Cell::new(0) };
}

/// A lock, and an operation of it.
type Locks = fn(&RawRwLock, Limit) -> Result<(), RawError>;

fn read(lock: &RawRwLock, limit: Limit) -> Result<(), RawError> {
    let reads = READS.get();
    let locked = if reads > 0 && lock.kind() != NONRECURSIVE { lock.read_nested(limit) } else { lock.read(limit) };
    if locked.is_ok() {
        READS.set(reads.saturating_add(1));
    }
    locked
}

#[inline(always)]
fn lock(lock: &RawRwLock, locks: Locks, limit: Limit) -> c_int {
    match locks(lock, limit) {
        Ok(()) => 0,
        Err(error) => lock_otherwise(lock, locks, limit, &error),
    }
}

/// Returns the error number, or waits where the C library waits: for a lock whose writer ended or is a thread of the
/// parent, in a deadlock with other threads, and where the kernel refuses to wait with inheritance.
///
/// BOUND: `limit`.
#[cold]
fn lock_otherwise(lock: &RawRwLock, locks: Locks, limit: Limit, error: &RawError) -> c_int {
    let stays = |error: &RawError| match error {
        RawError::Sys(error) => matches!(error.errno, libc::ESRCH | libc::ENOSYS),
        RawError::Deadlock(_) => !lock.is_writer(),
        _ => false,
    };
    if limit == Limit::Now && stays(error) {
        return libc::EBUSY;
    }
    if !stays(error) {
        return number(error);
    }
    loop {
        if nap(STAY_NAP_NS, limit) {
            return ETIMEDOUT;
        }
        match locks(lock, limit) {
            Ok(()) => return 0,
            Err(error) if stays(&error) => {}
            Err(error) => return number(&error),
        }
    }
}

/// Returns whether private locks are this library's.
fn inherits() -> bool {
    Policy::get().bits() & attributes::INHERIT != 0
}

/// Returns the lock if it is this library's.
///
/// # Safety
/// `rwlock` points to a lock of this library or of the C library, which stays valid for `'a`.
#[inline(always)]
unsafe fn own<'a>(rwlock: *mut RawRwLock) -> Option<&'a RawRwLock> {
    // SAFETY: the caller passes a lock that stays valid for `'a`, and threads share a `RawRwLock` by atomic operations.
    let lock = unsafe { &*rwlock };
    (inherits() && !lock.is_shared()).then_some(lock)
}

/// Locks until `*time`, or returns `None` if the lock is the C library's. An invalid time is an error even if the lock
/// is free, as in the C library.
///
/// # Safety
/// `rwlock` points to a lock, and `time` to a time; both stay valid during the call.
unsafe fn lock_until(rwlock: *mut RawRwLock, locks: Locks, clock: Clock, time: *const timespec) -> Option<c_int> {
    // SAFETY: the caller passes a lock that stays valid during the call.
    let known = unsafe { own(rwlock) }?;
    // SAFETY: the caller passes a time that stays valid and unchanged during the call.
    Some(deadline(clock, unsafe { &*time }).map_or(EINVAL, |deadline| lock(known, locks, Limit::At(deadline))))
}

/// Initialises a lock. `attributes` may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_rwlock_init(rwlock: *mut RawRwLock, attributes: *const RwLockAttributes) -> c_int {
    // SAFETY: the program passes null, or attributes that no other thread writes during the call.
    let (kind, is_shared) = match unsafe { attributes.as_ref() } {
        Some(attributes) => (attributes.kind as u32, attributes.shared != 0),
        None => (0, false),
    };
    if is_shared || !inherits() {
        // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
        return unsafe { next::pthread_rwlock_init(rwlock, attributes) };
    }
    // SAFETY: the program passes memory for a lock, which has this size, and which no thread uses yet.
    unsafe { rwlock.write(RawRwLock::new(false, kind)) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_rwlock_destroy(rwlock: *mut RawRwLock) -> c_int {
    // SAFETY: the program passes a lock that stays valid during the call.
    match unsafe { own(rwlock) } {
        Some(_) => 0,
        // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
        None => unsafe { next::pthread_rwlock_destroy(rwlock) },
    }
}

/// Defines a function that locks a private lock within a limit, and a shared one by the function of the C library.
macro_rules! locks {
    ($($name:ident: $locks:expr, $limit:expr;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(rwlock: *mut RawRwLock) -> c_int {
            // SAFETY: the program passes a lock that stays valid during the call.
            match unsafe { own(rwlock) } {
                Some(known) => lock(known, $locks, $limit),
                // SAFETY: the program called this function with these arguments, so they are valid for it until it
                // returns.
                None => unsafe { next::$name(rwlock) },
            }
        }
    )*};
}

locks! {
    pthread_rwlock_rdlock: read, Limit::Never;
    pthread_rwlock_tryrdlock: read, Limit::Now;
    pthread_rwlock_wrlock: RawRwLock::write, Limit::Never;
    pthread_rwlock_trywrlock: RawRwLock::write, Limit::Now;
}

/// The same with a clock and a time.
macro_rules! timed_locks {
    ($($timed:ident, $clocked:ident: $locks:expr;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $timed(rwlock: *mut RawRwLock, time: *const timespec) -> c_int {
            // SAFETY: the program passes a lock and a time that stay valid during the call.
            unsafe { $clocked(rwlock, libc::CLOCK_REALTIME, time) }
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $clocked(rwlock: *mut RawRwLock, id: c_int, time: *const timespec) -> c_int {
            let Some(clock) = clock(id) else { return EINVAL };
            // SAFETY: the program passes a lock and a time that stay valid during the call.
            match unsafe { lock_until(rwlock, $locks, clock, time) } {
                Some(answer) => answer,
                // SAFETY: the program called this function with these arguments, so they are valid for it until it
                // returns.
                None => unsafe { next::$clocked(rwlock, shared::number(clock), time) },
            }
        }
    )*};
}

timed_locks! {
    pthread_rwlock_timedrdlock, pthread_rwlock_clockrdlock: read;
    pthread_rwlock_timedwrlock, pthread_rwlock_clockwrlock: RawRwLock::write;
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_rwlock_unlock(rwlock: *mut RawRwLock) -> c_int {
    // SAFETY: the program passes a lock that it holds, and that stays valid until it is unlocked.
    let Some(lock) = (unsafe { own(rwlock) }) else {
        // SAFETY: the program called this function with these arguments, so they are valid for it until it returns.
        return unsafe { next::pthread_rwlock_unlock(rwlock) };
    };
    // A child process unlocks what its thread locked in the parent, as handlers of `fork` do.
    let unlocked = if lock.is_writer() || lock.take_over(forked_from()) {
        lock.unlock_write()
    } else {
        lock.unlock_read().inspect(|()| READS.set(READS.get().saturating_sub(1)))
    };
    match unlocked {
        Ok(()) => 0,
        Err(error) => number(&error),
    }
}

other_names! {
    __pthread_rwlock_init(rwlock: *mut RawRwLock, attributes: *const RwLockAttributes) = pthread_rwlock_init;
    __pthread_rwlock_destroy(rwlock: *mut RawRwLock) = pthread_rwlock_destroy;
    __pthread_rwlock_rdlock(rwlock: *mut RawRwLock) = pthread_rwlock_rdlock;
    __pthread_rwlock_tryrdlock(rwlock: *mut RawRwLock) = pthread_rwlock_tryrdlock;
    __pthread_rwlock_wrlock(rwlock: *mut RawRwLock) = pthread_rwlock_wrlock;
    __pthread_rwlock_trywrlock(rwlock: *mut RawRwLock) = pthread_rwlock_trywrlock;
    __pthread_rwlock_unlock(rwlock: *mut RawRwLock) = pthread_rwlock_unlock;
}
