//! Errors as C's error numbers.

use crate::deadlock;
use libc::c_int;
use lockwright::SysError;
use lockwright::mutex::{Acquired, RawError, RawMutex};

/// Converts the result of an attempt to lock `mutex`.
#[inline]
pub fn of_acquired(mutex: &RawMutex, result: Result<Acquired, RawError>) -> c_int {
    match result {
        Ok(Acquired::Clean) => 0,
        Ok(Acquired::OwnerDied) => libc::EOWNERDEAD,
        Err(error) => of_error(mutex, error),
    }
}

/// Converts the result of any other operation on `mutex`.
#[inline]
pub fn of_done(mutex: &RawMutex, result: Result<(), RawError>) -> c_int {
    match result {
        Ok(()) => 0,
        Err(error) => of_error(mutex, error),
    }
}

#[cold]
pub fn of_error(mutex: &RawMutex, error: RawError) -> c_int {
    let number = number(&error);
    if let RawError::Deadlock(cycle) = error {
        deadlock::note(mutex, cycle);
    }
    number
}

/// Converts an error, without the cycle of a deadlock.
#[cold]
pub fn number(error: &RawError) -> c_int {
    match error {
        RawError::Busy => libc::EBUSY,
        RawError::TimedOut => libc::ETIMEDOUT,
        RawError::Deadlock(_) => libc::EDEADLK,
        RawError::NotRecoverable => libc::ENOTRECOVERABLE,
        RawError::NotOwner => libc::EPERM,
        RawError::TooOften => libc::EAGAIN,
        RawError::Sys(error) => of_sys(*error),
        // AboveCeiling and Inapplicable.
        _ => libc::EINVAL,
    }
}

/// Never returns 0, which would mean success.
pub fn of_sys(error: SysError) -> c_int {
    if error.errno > 0 { error.errno } else { libc::EIO }
}
