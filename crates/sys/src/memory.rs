//! Locked memory, and the limits of the process.

use crate::error::SysError;

/// Locks all memory that is mapped now.
///
/// # Errors
/// EPERM or ENOMEM if the process may not lock that much.
pub fn lock_all() -> Result<(), SysError> {
    // SAFETY: the call takes flags only. Memory that is mapped later is not locked, so locking cannot make later
    // allocations fail.
    if unsafe { libc::mlockall(libc::MCL_CURRENT) } == 0 { Ok(()) } else { Err(SysError::last("mlockall")) }
}

/// Touches the calling thread's stack, so that its pages are present before they are needed.
#[inline(never)]
pub fn prefault_stack<const BYTES: usize>() {
    let mut stack = [0_u8; BYTES];
    std::hint::black_box(&mut stack);
}

/// A limit of the process; `None` means unlimited.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Limit {
    /// The limit in effect.
    pub soft: Option<u64>,
    /// The highest value to which the process may raise it.
    pub hard: Option<u64>,
}

/// The highest real-time priority that the process may request without a capability.
///
/// # Errors
/// The kernel refused `prlimit`, which only a filter of system calls makes it do.
pub fn realtime_limit() -> Result<Limit, SysError> {
    limit(i64::from(libc::RLIMIT_RTPRIO))
}

/// The number of bytes that the process may lock without a capability.
///
/// # Errors
/// Those of [`realtime_limit`].
pub fn lock_limit() -> Result<Limit, SysError> {
    limit(i64::from(libc::RLIMIT_MEMLOCK))
}

fn limit(resource: i64) -> Result<Limit, SysError> {
    let mut limit = libc::rlimit64 { rlim_cur: 0, rlim_max: 0 };
    let keep = std::ptr::null::<libc::rlimit64>();
    // SAFETY: the null pointer changes nothing, and `limit` is valid for writing.
    if unsafe { libc::syscall(libc::SYS_prlimit64, 0, resource, keep, &raw mut limit) } != 0 {
        return Err(SysError::last("prlimit"));
    }
    let read = |value| (value != u64::MAX).then_some(value);
    Ok(Limit { soft: read(limit.rlim_cur), hard: read(limit.rlim_max) })
}

/// Whether the process has CAP_IPC_LOCK in its effective capabilities.
pub fn may_lock_anything() -> bool {
    const CAP_IPC_LOCK: u32 = 14;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
    effective.is_some_and(|bits| bits >> CAP_IPC_LOCK & 1 == 1)
}
