//! Memory that stays in memory, and the limits of the process.

use super::SysError;

/// Keeps in memory all that is mapped now.
pub(crate) fn lock_all() -> Result<(), SysError> {
    // SAFETY: takes flags only. What is mapped later is not locked, so later allocations cannot fail by it.
    if unsafe { libc::mlockall(libc::MCL_CURRENT) } == 0 { Ok(()) } else { Err(SysError::last("mlockall")) }
}

/// Touches the calling thread's stack, so that its pages are there before they are needed.
#[inline(never)]
pub(crate) fn prefault_stack<const BYTES: usize>() {
    let mut stack = [0_u8; BYTES];
    std::hint::black_box(&mut stack);
}

/// A limit of the process, or `None` where there is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Limit {
    pub(crate) soft: Option<u64>,
    pub(crate) hard: Option<u64>,
}

/// The highest real-time priority the process may ask for without a capability.
pub(crate) fn realtime_limit() -> Result<Limit, SysError> {
    limit(libc::RLIMIT_RTPRIO as u32)
}

/// The bytes the process may lock without a capability.
pub(crate) fn lock_limit() -> Result<Limit, SysError> {
    limit(libc::RLIMIT_MEMLOCK as u32)
}

fn limit(resource: u32) -> Result<Limit, SysError> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is valid for writing.
    if unsafe { libc::getrlimit(resource as _, &raw mut limit) } != 0 {
        return Err(SysError::last("getrlimit"));
    }
    let read = |value| (value != libc::RLIM_INFINITY).then_some(value);
    Ok(Limit { soft: read(limit.rlim_cur), hard: read(limit.rlim_max) })
}
