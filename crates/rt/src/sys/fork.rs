//! What a child process forgets.

/// Calls `handler` in every child of a `fork` from now on, in the one thread it has. Children made by system calls of their own
/// (`clone`, `vfork`) are not told.
///
/// Where the C library has no memory for it, children are not told either.
pub(crate) fn in_child(handler: extern "C" fn()) {
    // SAFETY: the handler takes nothing, cannot unwind out of `extern "C"`, and lives as long as the process.
    unsafe { libc::pthread_atfork(None, None, Some(handler)) };
}

/// Calls `body` in a child process, and says whether it held there.
#[cfg(test)]
pub(crate) fn holds_in_child(body: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child calls `body` and ends without returning; the C library makes its own state fit for one thread.
    match unsafe { libc::fork() } {
        0 => {
            let held = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).unwrap_or(false);
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(i32::from(!held)) }
        }
        child => {
            let mut status = -1;
            // SAFETY: `status` is valid for writing.
            let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
            waited == child && status == 0
        }
    }
}
