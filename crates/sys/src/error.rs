//! Errors of system calls.

use std::fmt;

/// A system call that failed.
///
/// This is a plain value: users write it as a literal, and it gets no further fields.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SysError {
    /// The operation that failed.
    pub call: &'static str,
    /// The kernel's answer.
    pub errno: i32,
}

impl SysError {
    /// The error of the call that failed last in this thread.
    pub(crate) fn last(call: &'static str) -> Self {
        Self { call, errno: errno() }
    }

    /// Whether the kernel refused for lack of permission.
    #[must_use]
    #[inline]
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

/// Restores `errno` on drop to its value at construction. The C library's mutexes do not change `errno` either.
#[derive(Debug)]
pub struct KeepErrno(i32);

impl KeepErrno {
    /// Saves the current `errno`.
    #[inline]
    #[must_use]
    pub fn now() -> Self {
        Self(errno())
    }
}

impl Drop for KeepErrno {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the address is that of the calling thread's own `errno`, which is valid while the thread lives.
        unsafe { *libc::__errno_location() = self.0 };
    }
}

/// The calling thread's `errno`.
#[inline]
pub(crate) fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}
