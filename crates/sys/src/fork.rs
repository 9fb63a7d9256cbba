//! What a child process forgets.

/// Calls `handler` in every child of a `fork` from now on, in the one thread it has. Children made by system calls of their own
/// (`clone`, `vfork`) are not told.
///
/// Where the C library has no memory for it, children are not told either.
pub fn in_child(handler: extern "C" fn()) {
    // SAFETY: the handler takes nothing, cannot unwind out of `extern "C"`, and lives as long as the process.
    unsafe { libc::pthread_atfork(None, None, Some(handler)) };
}
