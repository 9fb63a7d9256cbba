//! Mutexes and condition variables for real-time threads.
//!
//! | requirement | use |
//! |---|---|
//! | no unbounded priority inversion, without knowledge of the users | [`MutexProtocol::Inherit`] |
//! | the same with costs known in advance, and no deadlocks between mutexes of one processor | [`MutexProtocol::Protect`] |
//! | recovery after a thread or process ends while it holds the mutex | [`Builder::robust`] |
//! | a choice between order of service and throughput | [`Unlock`] |
//! | service in the order of requests, so that each thread waits for a known number of sections | [`FifoMutex`] |
//!
//! Without contention, lock and unlock are one atomic operation each and make no system call. Ceilings, the list of
//! robust mutexes, [`Builder::kernel_owned`] and [`Builder::counted`] add to this cost. Nothing spins: a waiter
//! suspends, and the waiters of a [`Mutex`] are served in the order of their priorities. Only the report of a deadlock
//! allocates.
//!
//! ```
//! use lockwright::mutex::{Mutex, MutexProtocol};
//!
//! static SHARED: Mutex<u32> = Mutex::builder().protocol(MutexProtocol::Inherit).build(0);
//!
//! *SHARED.lock()? += 1;
//! # Ok::<(), lockwright::mutex::LockError<'static, u32>>(())
//! ```

mod at_once;
#[doc(hidden)]
pub mod attributes;
mod builder;
mod ceiling;
mod condvar;
mod counted;
mod cycle;
mod error;
mod fifo;
mod guarded;
#[cfg(test)]
mod held;
pub(crate) mod inherit;
mod lock;
#[cfg(test)]
mod model;
mod protect;
mod raw;
mod robust;
mod unlock;
mod wait;
mod word;

pub use at_once::AtOnce;
pub use attributes::Attributes;
pub use builder::{Builder, MutexProtocol, Unlock};
pub use ceiling::{note_own, own_scheduling, set_own_scheduling};
pub use condvar::{Destroyed, RawCondvar, Rejoined, Suspended, Suspension, WaitEnd, Waiting};
pub use cycle::{CHAIN_MAX, Cycle, Link, NamedThread, OnCycle, on_cycle, thread_name};
pub use error::{Acquired, Limit, RawError};
pub use fifo::{FifoError, FifoGuard, FifoMutex, Node as FifoNode, RawFifo};
pub use guarded::{Condvar, Guard, LockError, Mutex};
pub use lockwright_sys::futex::{Clock, Deadline};
pub use raw::RawMutex;

use lockwright_sys::robust::List;
use lockwright_sys::{KeepErrno, clock, futex, sched};
use std::sync::atomic::AtomicU32;

/// Performs the one-time initialisation of the process and of the calling thread, so that no later lock of this thread
/// does it.
pub fn warm_up() {
    sched::gettid();
    condvar::warm_up();
    cycle::warm_up();
    ceiling::warm_up();
    // A failure is reported by the operations that need the list.
    let _ = List::of_this_thread();
}

/// Sleeps for `ns` nanoseconds, or until `limit` if that comes first. Returns whether the limit has passed.
///
/// This is not a cancellation point.
pub fn nap(ns: u64, limit: Limit) -> bool {
    let _errno = KeepErrno::now();
    let nap = Deadline::monotonic(clock::now_ns().saturating_add(ns));
    let nowhere = AtomicU32::new(0);
    if let Limit::At(until) = limit
        && until.left_ns() < ns
    {
        return futex::wait(futex::Scope::Private, &nowhere, 0, Some(until)) == futex::Ended::TimedOut;
    }
    let _ = futex::wait(futex::Scope::Private, &nowhere, 0, Some(nap));
    limit == Limit::Now
}

/// The kernel's id of the calling thread.
#[must_use]
pub fn thread_id() -> u32 {
    sched::gettid().0
}
