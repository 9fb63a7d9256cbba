//! Threads and processes that end in ways of their own, for the tests of this crate and of the mutexes and sections.

/// Calls `body` in a child process, and says whether it held there.
pub fn holds_in_child(body: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child calls `body` and then ends without returning. It has one thread, for which the C library
    // prepares its own state.
    match unsafe { libc::fork() } {
        0 => {
            let held = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).unwrap_or(false);
            // SAFETY: the call takes an integer and ends the child at once.
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

/// Ends the calling thread at once: nothing is dropped, and no thread-local is told.
pub fn exit_at_once() -> ! {
    // SAFETY: the call ends this thread without unwinding. Its stack stays mapped, because nobody joins the thread.
    unsafe { libc::syscall(libc::SYS_exit, 0) };
    unreachable!("the thread has ended")
}
