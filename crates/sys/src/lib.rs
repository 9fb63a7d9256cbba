//! Lockwright's interface to Linux.
//!
//! This crate wraps every system call of the runtime with a typed error. It also has the lock words and the list that
//! Lockwright shares with the kernel, and the guard around decisions that are made in user space.
//!
//! Programs should not depend on this crate. It has only what Lockwright's other crates need, and changes with them.
//! Depend on [`lockwright`](https://docs.rs/lockwright) instead, which has mutexes, condition variables, sections and
//! task sets.
//!
//! | file | calls |
//! |---|---|
//! | `futex` | `futex`: wait, wake, move waiters, lock and unlock with priority inheritance |
//! | `pi_word` | none itself: a lock word with an owner; uncontended in user space, contended in the kernel |
//! | `guard` | none itself: a value behind such a word |
//! | `head` | `get_robust_list` |
//! | `robust` | none: the list of robust locks |
//! | `vdso` | none: finds functions that the kernel has mapped |
//! | `rseq` | `membarrier`; then none: restartable sequences |
//! | `time_slice` | `prctl` and `rseq`, once; `rseq_slice_yield` |
//! | `sched` | `gettid`, `sched_{set,get}{scheduler,param,affinity}`, `sched_yield`, timer slack, `tgkill` |
//! | `block` | `prctl`, once; then none: reads the C library's own record of the thread |
//! | `held` | none: counts the locks that the thread holds |
//! | `clock` | `clock_gettime`, `clock_nanosleep` |
//! | `cycles` | none: the processor's counter and caches |
//! | `fork` | `pthread_atfork` |
//! | `memory` | `mlockall`, resource limits |
//! | `shared` | `memfd_create`, `mmap`; reads those of other processes in `/proc` |
//! | `signal` | `pthread_sigmask` |
//! | `native` | the C library's mutex and semaphore, for comparison in measurements |
//! | `tracepoint` | none: reads the descriptions of events in tracefs |
//! | `probe` | calls that only test whether the kernel has a feature |
//!
//! Times are in nanoseconds of `CLOCK_MONOTONIC`.
//!
//! # Examples
//!
//! A value that one thread at a time may access. A thread that waits for the value lends its priority to the holder.
//!
//! ```
//! use lockwright_sys::guard::Guarded;
//!
//! let counter = Guarded::new(1);
//! *counter.lock() += 1;
//! assert_eq!(*counter.lock(), 2);
//! ```

#![warn(missing_debug_implementations)]

#[cfg(not(target_os = "linux"))]
compile_error!("lockwright runs on Linux: it needs SCHED_FIFO and futexes with priority inheritance");

#[cfg(test)]
extern crate self as lockwright_sys;

pub mod block;
pub mod clock;
pub mod cycles;
mod error;
pub mod fork;
pub mod futex;
pub mod guard;
mod head;
pub mod held;
#[cfg(test)]
#[path = "../tests/support/machine.rs"]
mod machine;
pub mod memory;
pub mod native;
pub mod pi_word;
pub mod probe;
#[cfg(test)]
#[allow(dead_code)] // One function is used only by the tests of sections.
#[path = "../tests/support/process.rs"]
mod process;
pub mod robust;
pub mod rseq;
pub mod sched;
pub mod shared;
pub mod signal;
pub mod time_slice;
pub mod tracepoint;
mod vdso;

pub use error::{KeepErrno, SysError};
