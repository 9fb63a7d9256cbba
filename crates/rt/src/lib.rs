//! Locks for real-time threads on Linux: mutexes with a known worst case, non-preemptive sections, and the locks of
//! whole task sets.
//!
//! | module | contents |
//! |---|---|
//! | [`mutex`] | mutexes and condition variables: priority inheritance and ceilings, recovery from dead owners, deadlocks reported with their cycle |
//! | [`rwlock`] | reader-writer locks in which readers and writers alternate, with priority inheritance to writers |
//! | [`semaphore`] | counting semaphores that hand their units to the most urgent waiter |
//! | [`barrier`] | barriers: threads wait for each other |
//! | [`once`] | initialisation that happens once, with priority inheritance |
//! | [`section`] | non-preemptive sections: no other thread of the processor preempts a holder of a spinlock |
//! | [`ics`] | interruptible sections: urgent threads interrupt others, whose sections are executed again |
//! | [`tasks`] | the locks of a task set under any of the protocols, for the threads of a program |
//! | [`statistics`] | what counted mutexes did, those of a preloaded program too, also of another process |
//! | [`locks`] | spinlocks, the crate `lockwright-locks` |
//! | [`objects`] | non-blocking buffers, queues and priority queues, the crate `lockwright-objects` |
//! | [`model`] | the systems from which [`tasks`] makes its locks, the crate `lockwright-model`; its feature `format` reads task-set files |
//!
//! The command `lockwright` executes a whole task set from a file, and measures the costs of the locks. A program that
//! uses locks needs neither.
//!
//! # Examples
//!
//! ```
//! use lockwright::mutex::{Mutex, MutexProtocol};
//!
//! static COUNTER: Mutex<u32> = Mutex::builder().protocol(MutexProtocol::Inherit).build(0);
//!
//! *COUNTER.lock()? += 1;
//! assert_eq!(*COUNTER.lock()?, 1);
//! # Ok::<(), lockwright::mutex::LockError<'static, u32>>(())
//! ```

#![warn(missing_debug_implementations)]
#![deny(unsafe_code)]

#[cfg(not(target_os = "linux"))]
compile_error!("lockwright runs on Linux: it needs SCHED_FIFO and futexes with priority inheritance");

pub mod barrier;
#[cfg(test)]
mod behind;
mod groups;
pub mod ics;
mod levels;
#[cfg(test)]
#[path = "../../sys/tests/support/machine.rs"]
mod machine;
#[allow(unsafe_code)] // The protected value, and memory that processes share.
pub mod mutex;
pub mod once;
#[cfg(test)]
#[allow(unsafe_code)] // Child processes, and threads that end at once.
#[path = "../../sys/tests/support/process.rs"]
mod process;
#[doc(hidden)]
pub mod raw;
#[allow(unsafe_code)] // The protected value.
pub mod rwlock;
#[cfg(test)]
#[path = "../../locks/src/testing/search.rs"]
mod search;
pub mod section;
pub mod semaphore;
pub mod statistics;
pub mod tasks;

pub use lockwright_locks as locks;
pub use lockwright_model as model;
pub use lockwright_objects as objects;
pub use lockwright_sys::SysError;

/// Threads share the locks, and hand over the errors. Guards, members and sections stay with their thread: each has a
/// field that is neither `Send` nor `Sync`.
const _: () = {
    const fn shared<T: Send + Sync>() {}
    shared::<(mutex::Mutex<Vec<u8>>, mutex::FifoMutex<Vec<u8>>, mutex::RawMutex, mutex::Condvar, mutex::RawCondvar)>();
    shared::<(rwlock::RwLock<Vec<u8>>, rwlock::RawRwLock, semaphore::Semaphore, barrier::Barrier, once::Once)>();
    shared::<(tasks::TaskSet, tasks::TaskSetBuilder, locks::SpinLock<locks::Ticket, Vec<u8>>)>();
    shared::<(locks::RwSpinLock<locks::PhaseFair, Vec<u8>>, objects::LockFreeQueue<u64, 8, 4>)>();
    shared::<(objects::WaitFreeQueue<u64, 8, 4>, objects::LockFreeBuffer<u64, 2, 4>)>();
    shared::<(mutex::RawError, mutex::FifoError, rwlock::RwLockError, semaphore::SemaphoreError, once::OnceError)>();
    shared::<(tasks::TaskError, section::SectionError, ics::InterruptibleLockError, SysError)>();
};

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// The examples of the project's README.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct ProjectReadme;
