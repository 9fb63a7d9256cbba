//! The border that no panic crosses.

use libc::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Calls `body`. Turns a panic, which is a fault of this library, into EIO.
#[inline]
pub fn guarded(body: impl FnOnce() -> c_int) -> c_int {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(libc::EIO)
}
