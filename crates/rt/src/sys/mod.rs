//! Every system call of the runtime, each behind a safe function with a typed error.
//!
//! | file | calls |
//! |---|---|
//! | `futex` | `futex`: wait, wake, move waiters, lock and unlock with priority inheritance |
//! | `robust` | `get_robust_list`, and the list itself |
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
//! | `switches` | `perf_event_open`: who executes |
//! | `probe` | calls that only ask whether something exists |
//!
//! Times are nanoseconds of `CLOCK_MONOTONIC`.

pub(crate) mod block;
pub(crate) mod clock;
pub(crate) mod cycles;
pub(crate) mod fork;
pub(crate) mod futex;
pub(crate) mod held;
pub(crate) mod memory;
pub(crate) mod native;
pub(crate) mod probe;
pub(crate) mod robust;
pub(crate) mod rseq;
pub(crate) mod sched;
pub(crate) mod signal;
pub(crate) mod switches;

use std::fmt;

/// A system call that failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SysError {
    /// What was attempted.
    pub call: &'static str,
    /// The kernel's answer.
    pub errno: i32,
}

impl SysError {
    /// The error of the call that failed last in this thread.
    fn last(call: &'static str) -> Self {
        Self { call, errno: errno() }
    }

    /// Whether the kernel refused for want of permission.
    #[must_use]
    pub fn is_permission(self) -> bool {
        matches!(self.errno, libc::EPERM | libc::EACCES)
    }
}

impl fmt::Display for SysError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed: {}", self.call, std::io::Error::from_raw_os_error(self.errno))
    }
}

impl std::error::Error for SysError {}

/// Leaves `errno` as it was when this was made: the C library's mutexes do not touch it.
pub(crate) struct KeepErrno(i32);

impl KeepErrno {
    pub(crate) fn new() -> Self {
        Self(errno())
    }
}

impl Drop for KeepErrno {
    fn drop(&mut self) {
        // SAFETY: the address is that of the calling thread's own, for as long as it lives.
        unsafe { *libc::__errno_location() = self.0 };
    }
}

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}
