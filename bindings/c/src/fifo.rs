//! The functions `lw_fifo_mutex_*`.

use crate::argument::{self, CObject, Const, Mut};
use crate::errno::of_sys;
use crate::panic::guarded;
use libc::{c_int, timespec};
use lockwright::mutex::{FifoError, FifoNode, Limit, RawFifo};
use std::sync::atomic::{AtomicU32, Ordering};

/// The number of places in the queue of a `lw_fifo_mutex_t`. Each thread that holds or requests the mutex needs one,
/// and two more are needed. A request that gives up may need its place until the next thread in the queue executes.
pub const LW_FIFO_NODES: u32 = 64;

// Not for C.
const NODES: usize = LW_FIFO_NODES as usize;

/// A mutex that serves its users in the order of their requests, whatever their priorities are: 784 bytes, aligned to
/// 4.
///
/// The holder has at least the priority of every waiter, under SCHED_FIFO and SCHED_RR. A thread waits for at most one
/// critical section of each other thread. A mutex that inherits (`lw_mutex_t`) serves the most urgent waiter first, so
/// a less urgent thread may wait without bound there.
///
/// It is for the threads of one process, and neither recursive nor robust. Initialise it with
/// `LW_FIFO_MUTEX_INITIALIZER` or `lw_fifo_mutex_init`. Never move or copy it. Its fields are private.
#[repr(C)]
pub struct lw_fifo_mutex_t {
    lw_check: u32,
    lw_words: [u32; 195],
}

/// Check value of a FIFO mutex. The initialiser of the header contains this value.
const FIFO_CHECK: u32 = 0x4c57_6669;

/// The contents of a `lw_fifo_mutex_t`.
#[repr(C)]
pub struct Fifo {
    check: AtomicU32,
    raw: RawFifo<[FifoNode; NODES]>,
}

const _: () = assert!(size_of::<Fifo>() == size_of::<lw_fifo_mutex_t>());

// SAFETY: `check` and `raw` consist of atomics, which accept all bits. The queue checks every index that it reads from
// them.
unsafe impl CObject for lw_fifo_mutex_t {
    type Contents = Fifo;

    #[inline]
    fn is_made(fifo: &Fifo) -> bool {
        // ORDERING: Relaxed: the thread that made the mutex published it.
        fifo.check.load(Ordering::Relaxed) == FIFO_CHECK
    }
}

#[cold]
fn number(error: FifoError) -> c_int {
    match error {
        FifoError::Busy => libc::EBUSY,
        FifoError::TimedOut => libc::ETIMEDOUT,
        FifoError::Deadlock => libc::EDEADLK,
        FifoError::OwnerDied => libc::ENOTRECOVERABLE,
        FifoError::TooManyThreads => libc::EAGAIN,
        FifoError::Sys(error) => of_sys(error),
        _ => libc::EIO,
    }
}

/// Locks the mutex within a limit, or `None` for one that is not valid.
#[inline]
fn lock(mutex: Mut<'_, lw_fifo_mutex_t>, limit: impl FnOnce() -> Option<Limit>) -> c_int {
    guarded(|| {
        let (Some(mutex), Some(limit)) = (mutex.object(), limit()) else { return libc::EINVAL };
        mutex.raw.lock(limit).map_or_else(number, |_| 0)
    })
}

/// Initialises `*mutex` as a free mutex, whatever the memory contained before.
///
/// Returns:
/// - 0: success.
/// - EINVAL: `mutex` is NULL or misaligned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_fifo_mutex_init(mutex: Mut<'_, lw_fifo_mutex_t>) -> c_int {
    guarded(|| {
        let contents = Fifo { check: AtomicU32::new(FIFO_CHECK), raw: RawFifo::new() };
        if mutex.make(contents).is_some() { 0 } else { libc::EINVAL }
    })
}

/// Destroys a FIFO mutex: every later use except `lw_fifo_mutex_init` returns EINVAL.
///
/// No other thread may use the mutex during the call. The mutex owns no memory, so one that is never destroyed leaks
/// nothing.
///
/// Returns:
/// - 0: success, also after an owner has ended.
/// - EBUSY: a thread holds the mutex or waits for it.
/// - EINVAL: `mutex` is not an initialised FIFO mutex.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_fifo_mutex_destroy(mutex: Mut<'_, lw_fifo_mutex_t>) -> c_int {
    guarded(|| {
        let Some(mutex) = mutex.object() else { return libc::EINVAL };
        // The caller does not hold it afterwards: a thread counts what it holds.
        match mutex.raw.lock(Limit::Now).and_then(|_| mutex.raw.unlock()) {
            Ok(()) | Err(FifoError::OwnerDied) => {
                // ORDERING: Relaxed: the caller has made sure that no other thread uses the mutex.
                mutex.check.store(0, Ordering::Relaxed);
                0
            }
            Err(error) => number(error),
        }
    })
}

/// Locks the mutex. Suspends the calling thread until all earlier requests have been served.
///
/// Makes no system call if the mutex is free and nobody waits.
///
/// Returns:
/// - 0: the caller holds the mutex.
/// - EDEADLK: the caller holds the mutex, or would wait for itself through owners of mutexes that inherit.
/// - EAGAIN: more threads use the mutex at once than LW_FIFO_NODES permits, or the kernel kept asking to try again.
/// - ENOTRECOVERABLE: a thread ended while it held the mutex. No lock of this mutex succeeds any more.
/// - EINVAL: `mutex` is not an initialised FIFO mutex.
/// - Any other number is an error of the kernel, such as ENOMEM.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_fifo_mutex_lock(mutex: Mut<'_, lw_fifo_mutex_t>) -> c_int {
    lock(mutex, || Some(Limit::Never))
}

/// Locks the mutex if nobody holds it and nobody waits for it.
///
/// Returns:
/// - EBUSY: a thread holds the mutex or waits for it, or another one locks it at the same time.
/// - Otherwise the values of `lw_fifo_mutex_lock`, except EDEADLK.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_fifo_mutex_trylock(mutex: Mut<'_, lw_fifo_mutex_t>) -> c_int {
    lock(mutex, || Some(Limit::Now))
}

/// Locks the mutex as `lw_fifo_mutex_lock` does, but only waits until `clock` reads `*time`, as `lw_mutex_lock_until`
/// does. A request that gives up leaves the queue; the order of the others stays.
///
/// Returns the values of `lw_fifo_mutex_lock`, and:
/// - ETIMEDOUT: the time passed before it was the caller's turn.
/// - EINVAL, also: as for `lw_mutex_lock_until`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_fifo_mutex_lock_until(
    mutex: Mut<'_, lw_fifo_mutex_t>,
    clock: c_int,
    time: Const<'_, timespec>,
) -> c_int {
    lock(mutex, || argument::deadline(clock, time).map(Limit::At))
}

/// Locks the mutex as `lw_fifo_mutex_lock_until` does, but only waits for the duration `*time`, by CLOCK_MONOTONIC.
///
/// Returns the values of `lw_fifo_mutex_lock_until`, and:
/// - EINVAL, also: `*time` is negative.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_fifo_mutex_lock_for(mutex: Mut<'_, lw_fifo_mutex_t>, time: Const<'_, timespec>) -> c_int {
    lock(mutex, || argument::deadline_after(time).map(Limit::At))
}

/// Unlocks the mutex. The first waiter holds it then.
///
/// Returns:
/// - 0: success.
/// - EPERM: the caller does not hold the mutex.
/// - EINVAL: `mutex` is not an initialised FIFO mutex.
/// - Any other number is an error of the kernel.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_fifo_mutex_unlock(mutex: Mut<'_, lw_fifo_mutex_t>) -> c_int {
    guarded(|| match mutex.object() {
        None => libc::EINVAL,
        Some(mutex) if !mutex.raw.is_mine() => libc::EPERM,
        Some(mutex) => mutex.raw.unlock().map_or_else(number, |()| 0),
    })
}

/// Returns whether the calling thread holds the mutex: 1 or 0. Returns 0 if `mutex` is not an initialised FIFO mutex.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_fifo_mutex_is_mine(mutex: Const<'_, lw_fifo_mutex_t>) -> c_int {
    guarded(|| mutex.object().is_some_and(|mutex| mutex.raw.is_mine()).into())
}
