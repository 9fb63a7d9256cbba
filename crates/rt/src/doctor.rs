//! What this machine lacks for real time.

use crate::run::RunError;
use crate::sys::{SysError, sched};

/// Whether this process may use every real-time level: tries the highest on a thread of its own.
///
/// # Errors
/// [`RunError::NoPermission`] says what to grant.
pub fn try_realtime() -> Result<(), RunError> {
    let probe = || sched::set_fifo(sched::gettid(), crate::priorities::WATCHDOG_LEVEL);
    let thread = std::thread::Builder::new()
        .spawn(probe)
        .map_err(|error| SysError { call: "starting a thread", errno: error.raw_os_error().unwrap_or(libc::EAGAIN) })?;
    match thread.join() {
        Ok(result) => Ok(result?),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}
