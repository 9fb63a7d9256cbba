//! The signal mask of a thread.

/// Calls `body` with all signals blocked. Threads that `body` starts keep them blocked.
pub fn with_all_blocked<T>(body: impl FnOnce() -> T) -> T {
    // SAFETY: all zeros is a valid set, and it is filled before it is read.
    let (mut all, mut before): (libc::sigset_t, libc::sigset_t) = unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
    // SAFETY: both sets are valid for reading and writing; the calls cannot fail with these arguments.
    unsafe {
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
    }
    let _restored = Restore(before);
    body()
}

/// Restores the signal mask on drop, also after a panic.
struct Restore(libc::sigset_t);

impl Drop for Restore {
    fn drop(&mut self) {
        // SAFETY: the set is valid for reading.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, std::ptr::null_mut()) };
    }
}
