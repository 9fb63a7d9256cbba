//! Tests whether the kernel has a feature.

/// Whether threads can register a list of robust futexes with the kernel.
pub fn has_robust_list() -> bool {
    let mut head: *mut libc::c_void = std::ptr::null_mut();
    let mut length: usize = 0;
    // SAFETY: both pointers are valid for writing; 0 is the calling thread.
    unsafe { libc::syscall(libc::SYS_get_robust_list, 0, &raw mut head, &raw mut length) == 0 }
}

/// Whether the kernel supports restartable sequences. A kernel that does refuses an empty registration as invalid;
/// others refuse the system call as unknown.
pub fn has_rseq() -> bool {
    // SAFETY: a null area of no size with an unknown flag is refused before anything is registered.
    let result = unsafe { libc::syscall(libc::SYS_rseq, std::ptr::null::<u8>(), 0, 1 << 30, 0) };
    result == 0 || crate::error::errno() != libc::ENOSYS
}

/// Whether the process can request memory barriers on all of its threads.
pub fn has_membarrier() -> bool {
    const QUERY: i32 = 0;
    const PRIVATE_EXPEDITED: i64 = 1 << 3;
    // SAFETY: a query takes no pointer and changes nothing.
    let commands = unsafe { libc::syscall(libc::SYS_membarrier, QUERY, 0, 0) };
    commands > 0 && commands & PRIVATE_EXPEDITED != 0
}

/// Whether the kernel is a PREEMPT_RT kernel. Those with patches have a file that says so, and others do not.
pub fn is_preempt_rt() -> bool {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    read("/sys/kernel/realtime").trim() == "1" || read("/proc/version").contains("PREEMPT_RT")
}

/// Locks and unlocks a PI futex through the kernel.
///
/// # Errors
/// ENOSYS if the kernel has no PI futexes, and its other errors.
pub fn try_pi_futex() -> Result<(), crate::error::SysError> {
    let word = std::sync::atomic::AtomicU32::new(0);
    crate::futex::lock_pi(crate::futex::Scope::Private, &word, None)?;
    crate::futex::unlock_pi(crate::futex::Scope::Private, &word)
}
