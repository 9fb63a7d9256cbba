//! The functions `lw_rwlock_*`.

use crate::argument::{self, CObject, Const, Mut};
use crate::errno::number;
use crate::panic::guarded;
use libc::{c_int, timespec};
use lockwright::mutex::{Limit, RawError};
use lockwright::rwlock::RawRwLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// A reader-writer lock: 64 bytes, aligned to 8.
///
/// Readers share it, and a writer holds it alone. Readers and writers alternate: after each writer, all waiting readers
/// enter together, and once a writer waits for the readers inside, later readers wait for this writer. So a reader
/// waits for at most one writer. Writers are served in the order of their priorities.
///
/// Every thread that waits for a writer lends it its priority. A writer that waits for readers lends them nothing.
///
/// It may be wherever a mutex may be. Initialise it with `LW_RWLOCK_INITIALIZER` or `lw_rwlock_init`. Never move or
/// copy it. Its fields are private.
#[repr(C)]
pub struct lw_rwlock_t {
    lw_state: u64,
    lw_words: [u32; 12],
    lw_check: u32,
    lw_spare: u32,
}

/// Check value of a reader-writer lock. The initialisers of the header contain this value.
const RWLOCK_CHECK: u32 = 0x4c57_7277;

/// The contents of a `lw_rwlock_t`.
#[repr(C)]
pub struct RwLock {
    raw: RawRwLock,
    check: AtomicU32,
    /// As for a mutex.
    spare: u32,
}

const _: () = assert!(std::mem::offset_of!(RwLock, check) == std::mem::offset_of!(lw_rwlock_t, lw_check));

// SAFETY: `raw` and `check` consist of atomics, and nothing uses `spare`.
unsafe impl CObject for lw_rwlock_t {
    type Contents = RwLock;

    #[inline]
    fn is_made(rwlock: &RwLock) -> bool {
        // ORDERING: Relaxed: the thread that made the lock published it.
        rwlock.check.load(Ordering::Relaxed) == RWLOCK_CHECK
    }
}

/// Performs an operation on the lock at `rwlock`.
#[inline]
fn with(rwlock: Mut<'_, lw_rwlock_t>, operation: impl FnOnce(&RawRwLock) -> Result<(), RawError>) -> c_int {
    guarded(|| {
        let Some(rwlock) = rwlock.object() else { return libc::EINVAL };
        match operation(&rwlock.raw) {
            Ok(()) => 0,
            Err(error) => number(&error),
        }
    })
}

/// The same with a limit, or `None` for one that is not valid.
#[inline]
fn lock(
    rwlock: Mut<'_, lw_rwlock_t>,
    lock: fn(&RawRwLock, Limit) -> Result<(), RawError>,
    limit: impl FnOnce() -> Option<Limit>,
) -> c_int {
    with(rwlock, |raw| lock(raw, limit().ok_or(RawError::Inapplicable)?))
}

/// Initialises `*rwlock` as a free lock, whatever the memory contained before.
///
/// `shared` is 0 for threads of this process, and 1 for threads of all processes that map the memory.
///
/// Returns:
/// - 0: success.
/// - EINVAL: `rwlock` is NULL or misaligned, or `shared` is neither 0 nor 1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_rwlock_init(rwlock: Mut<'_, lw_rwlock_t>, shared: c_int) -> c_int {
    guarded(|| {
        if !matches!(shared, 0 | 1) {
            return libc::EINVAL;
        }
        let raw = RawRwLock::new(shared == 1, 0);
        let contents = RwLock { raw, check: AtomicU32::new(RWLOCK_CHECK), spare: 0 };
        if rwlock.make(contents).is_some() { 0 } else { libc::EINVAL }
    })
}

/// Destroys a reader-writer lock: every later use except `lw_rwlock_init` returns EINVAL.
///
/// No other thread may use the lock during the call. A thread that was the last to lock it may call this as soon as its
/// own unlock has returned, even if the unlocks of others have not.
///
/// Returns:
/// - 0: success.
/// - EBUSY: a thread holds the lock or waits for it.
/// - EINVAL: `rwlock` is not an initialised lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_rwlock_destroy(rwlock: Mut<'_, lw_rwlock_t>) -> c_int {
    guarded(|| {
        match rwlock.object() {
            None => libc::EINVAL,
            Some(rwlock) if rwlock.raw.is_in_use() => libc::EBUSY,
            Some(rwlock) => {
                // ORDERING: Relaxed: the caller has made sure that no other thread uses the lock.
                rwlock.check.store(0, Ordering::Relaxed);
                0
            }
        }
    })
}

/// Locks for reading. Suspends the calling thread while a writer holds the lock or waits for readers.
///
/// Makes no system call without a writer. A thread that holds the lock must not call this function, because a writer
/// may wait for that thread; see `lw_rwlock_rdlock_nested`.
///
/// Returns:
/// - 0: the caller holds the lock for reading.
/// - EDEADLK: the caller holds the lock for writing, or would wait for itself through writers and mutexes that inherit.
/// - EAGAIN: 65,535 readers hold the lock or wait for it, or the kernel kept asking to try again.
/// - ESRCH: a writer has ended without unlocking. The lock will never be unlocked.
/// - EINVAL: `rwlock` is not an initialised lock.
/// - Any other number is an error of the kernel, such as ENOMEM.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_rwlock_rdlock(rwlock: Mut<'_, lw_rwlock_t>) -> c_int {
    lock(rwlock, RawRwLock::read, || Some(Limit::Never))
}

/// Locks for reading as `lw_rwlock_rdlock` does, for a thread that may already hold the lock for reading. It does not
/// wait for a writer that waits for readers, so writers have no bound if threads do this again and again.
///
/// Returns the values of `lw_rwlock_rdlock`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_rwlock_rdlock_nested(rwlock: Mut<'_, lw_rwlock_t>) -> c_int {
    lock(rwlock, RawRwLock::read_nested, || Some(Limit::Never))
}

/// Locks for reading without waiting.
///
/// Returns:
/// - EBUSY: a writer holds the lock or waits for readers.
/// - Otherwise the values of `lw_rwlock_rdlock`, except EDEADLK and ESRCH.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_rwlock_tryrdlock(rwlock: Mut<'_, lw_rwlock_t>) -> c_int {
    lock(rwlock, RawRwLock::read, || Some(Limit::Now))
}

/// Locks for reading as `lw_rwlock_rdlock` does, but only waits until `clock` reads `*time`, as `lw_mutex_lock_until`
/// does.
///
/// Returns the values of `lw_rwlock_rdlock`, and:
/// - ETIMEDOUT: the time passed before the caller could lock.
/// - EINVAL, also: as for `lw_mutex_lock_until`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_rwlock_rdlock_until(
    rwlock: Mut<'_, lw_rwlock_t>,
    clock: c_int,
    time: Const<'_, timespec>,
) -> c_int {
    lock(rwlock, RawRwLock::read, || argument::deadline(clock, time).map(Limit::At))
}

/// Locks for reading as `lw_rwlock_rdlock_until` does, but only waits for the duration `*time`, by CLOCK_MONOTONIC.
///
/// Returns the values of `lw_rwlock_rdlock_until`, and:
/// - EINVAL, also: `*time` is negative.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_rwlock_rdlock_for(rwlock: Mut<'_, lw_rwlock_t>, time: Const<'_, timespec>) -> c_int {
    lock(rwlock, RawRwLock::read, || argument::deadline_after(time).map(Limit::At))
}

/// Locks for writing. Suspends the calling thread until all others have unlocked. Waiting writers get the lock in the
/// order of their priorities, and all waiting readers before each of them.
///
/// Makes no system call if the lock is free.
///
/// Returns the values of `lw_rwlock_rdlock`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_rwlock_wrlock(rwlock: Mut<'_, lw_rwlock_t>) -> c_int {
    lock(rwlock, RawRwLock::write, || Some(Limit::Never))
}

/// Locks for writing without waiting.
///
/// Returns:
/// - EBUSY: a thread holds the lock, or another one also tries.
/// - Otherwise the values of `lw_rwlock_wrlock`, except EDEADLK and ESRCH.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_rwlock_trywrlock(rwlock: Mut<'_, lw_rwlock_t>) -> c_int {
    lock(rwlock, RawRwLock::write, || Some(Limit::Now))
}

/// Locks for writing as `lw_rwlock_wrlock` does, but only waits until `clock` reads `*time`, as `lw_mutex_lock_until`
/// does.
///
/// Returns the values of `lw_rwlock_rdlock_until`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_rwlock_wrlock_until(
    rwlock: Mut<'_, lw_rwlock_t>,
    clock: c_int,
    time: Const<'_, timespec>,
) -> c_int {
    lock(rwlock, RawRwLock::write, || argument::deadline(clock, time).map(Limit::At))
}

/// Locks for writing as `lw_rwlock_wrlock_until` does, but only waits for the duration `*time`, by CLOCK_MONOTONIC.
///
/// Returns the values of `lw_rwlock_rdlock_for`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_rwlock_wrlock_for(rwlock: Mut<'_, lw_rwlock_t>, time: Const<'_, timespec>) -> c_int {
    lock(rwlock, RawRwLock::write, || argument::deadline_after(time).map(Limit::At))
}

/// Unlocks, after writing if the caller holds the lock for writing, and otherwise after reading.
///
/// May suspend the caller while the unlock of an earlier writer has yet to return; that writer has at least the
/// priority of the caller meanwhile. So the memory of the lock may be freed after the last unlock.
///
/// Returns:
/// - 0: success.
/// - EPERM: the caller does not hold the lock for writing, and no thread holds it for reading. (Which threads hold it
///   for reading is not known.)
/// - EINVAL: `rwlock` is not an initialised lock.
/// - Any other number is an error of the kernel.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_rwlock_unlock(rwlock: Mut<'_, lw_rwlock_t>) -> c_int {
    with(rwlock, |raw| if raw.is_writer() { raw.unlock_write() } else { raw.unlock_read() })
}
