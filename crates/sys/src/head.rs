//! The head of a thread's list of robust locks, as the C library registered it with the kernel.

use crate::error::SysError;
use std::ptr;

/// The distance from a node to the lock's word, in bytes. The C library registers it, so the list can have no other
/// layout.
pub const WORD_OFFSET: isize = -32;

/// The head, in the kernel's layout.
#[repr(C)]
#[derive(Debug)]
pub struct Head {
    pub(crate) list: usize,
    offset: isize,
    pub(crate) pending: usize,
}

/// The head the C library registered for the calling thread.
///
/// # Errors
/// ENOTSUP if the C library registered no head, or one with another layout. The kernel's error if the call fails.
pub fn registered() -> Result<*mut Head, SysError> {
    let mut head: *mut Head = ptr::null_mut();
    let mut bytes = 0_usize;
    // SAFETY: both are valid for writing; 0 is the calling thread.
    let result = unsafe { libc::syscall(libc::SYS_get_robust_list, 0, &raw mut head, &raw mut bytes) };
    let unsupported = SysError { call: "finding the list of robust locks", errno: libc::ENOTSUP };
    if result < 0 {
        return Err(SysError::last(unsupported.call));
    }
    // SAFETY: the C library gave the kernel this address, which stays valid while the thread lives.
    if head.is_null() || bytes != size_of::<Head>() || unsafe { (*head).offset } != WORD_OFFSET {
        return Err(unsupported);
    }
    Ok(head)
}
