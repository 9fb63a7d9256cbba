//! The part of Lockwright that calls Linux: every system call of its runtime behind a typed error, the words and lists that it shares with the
//! kernel, and the guard around what is decided in user space.
//!
//! This crate is not meant for programs: it has what the crates of Lockwright need, no more, and changes with them. Depend on
//! [`lockwright`](https://docs.rs/lockwright), which has mutexes, condition variables, sections and task sets.
//!
//! | file | calls |
//! |---|---|
//! | `futex` | `futex`: wait, wake, move waiters, lock and unlock with priority inheritance |
//! | `pi_word` | none of its own: a word with an owner, free and locked in user space, waited for in the kernel |
//! | `guard` | none of its own: a value behind such a word |
//! | `head` | `get_robust_list` |
//! | `robust` | none: the list itself |
//! | `rseq` | `membarrier`; then none: restartable sequences |
//! | `sched` | `gettid`, `sched_{set,get}scheduler`, `sched_{set,get}param`, `sched_{set,get}affinity`, timer slack, `tgkill` |
//! | `block` | `prctl`, once; then none: the C library's own record of the thread |
//! | `held` | none: what the thread itself counts |
//! | `clock` | `clock_gettime`, `clock_nanosleep` |
//! | `cycles` | none: the processor's counter and caches |
//! | `fork` | `pthread_atfork` |
//! | `memory` | `mlockall`, resource limits |
//! | `signal` | `pthread_sigmask` |
//! | `native` | the C library's mutex, to measure beside |
//! | `probe` | calls that only ask whether something exists |
//!
//! Times are nanoseconds of `CLOCK_MONOTONIC`.
//!
//! # Examples
//!
//! A value for one thread at a time. A thread that waits for it lends its priority to the thread that has it.
//!
//! ```
//! use lockwright_sys::guard::Guarded;
//!
//! let counter = Guarded::new(1);
//! *counter.lock() += 1;
//! assert_eq!(*counter.lock(), 2);
//! ```

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
#[allow(dead_code)] // One function is for the tests of sections.
#[path = "../tests/support/process.rs"]
mod process;
pub mod robust;
pub mod rseq;
pub mod sched;
pub mod signal;

pub use error::{KeepErrno, SysError};
