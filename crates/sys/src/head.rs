//! The head of a thread's list of robust locks, as the C library registered it with the kernel.

use crate::error::SysError;
use std::ptr;

/// From a node to the lock's word, in bytes: what the C library registers, and so the only layout the list can have.
pub const WORD_OFFSET: isize = -32;

/// The head as the kernel has it.
#[repr(C)]
pub struct Head {
    pub(crate) list: usize,
    offset: isize,
    pub(crate) pending: usize,
}

/// The head the C library registered for the calling thread.
///
/// # Errors
/// Where the C library registered none, or one of another layout.
pub fn registered() -> Result<*mut Head, SysError> {
    let mut head: *mut Head = ptr::null_mut();
    let mut bytes = 0_usize;
    // SAFETY: both are valid for writing; 0 is the calling thread.
    let result = unsafe { libc::syscall(libc::SYS_get_robust_list, 0, &raw mut head, &raw mut bytes) };
    let unsupported = SysError { call: "finding the list of robust locks", errno: libc::ENOTSUP };
    if result < 0 {
        return Err(SysError::last(unsupported.call));
    }
    // SAFETY: the kernel was given this address by the C library, for as long as the thread lives.
    if head.is_null() || bytes != size_of::<Head>() || unsafe { (*head).offset } != WORD_OFFSET {
        return Err(unsupported);
    }
    Ok(head)
}
