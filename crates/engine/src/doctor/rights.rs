//! The permissions of the process.

use super::finding::{Finding, State, finding};
use lockwright::raw::WATCHDOG_LEVEL;
use lockwright::tasks::MachineError;
use lockwright_sys::memory::Limit;
use lockwright_sys::{memory, sched};

/// The locked memory that suffices for a run of a few tasks, in bytes.
const LOCKED_BYTES_MIN: u64 = 64 << 20;

/// Checks that this process may use every real-time level, by trying the highest on a new thread.
///
/// # Errors
/// [`MachineError::NoPermission`], which names the permission to grant, or the error of a system call.
pub fn try_realtime() -> Result<(), MachineError> {
    Ok(sched::try_fifo(WATCHDOG_LEVEL)?)
}

pub(super) fn realtime() -> Finding {
    const NAME: &str = "real-time priority";
    match try_realtime() {
        Ok(()) => finding(NAME, State::Ok, format!("SCHED_FIFO up to {WATCHDOG_LEVEL} is permitted"), ""),
        Err(MachineError::NoPermission(error)) => finding(
            NAME,
            State::Missing,
            error.to_string(),
            "run with sudo, or `sudo setcap cap_sys_nice+ep <binary>`, or a line `<user> - rtprio 99` in \
             /etc/security/limits.d and a new login",
        ),
        Err(error) => finding(NAME, State::Missing, error.to_string(), "find out what keeps threads from starting"),
    }
}

pub(super) fn realtime_limit() -> Finding {
    const NAME: &str = "rtprio limit";
    match memory::realtime_limit() {
        Ok(Limit { soft: None, .. }) => finding(NAME, State::Ok, "unlimited", ""),
        Ok(Limit { soft: Some(soft), .. }) if soft >= u64::from(WATCHDOG_LEVEL) => {
            finding(NAME, State::Ok, soft.to_string(), "")
        }
        // A capability overrides the limit.
        Ok(Limit { soft: Some(soft), .. }) if try_realtime().is_ok() => {
            finding(NAME, State::Ok, format!("{soft}, overridden by CAP_SYS_NICE"), "")
        }
        Ok(Limit { soft: Some(soft), hard, .. }) => finding(
            NAME,
            State::Warn,
            format!("{soft} (at most {})", hard.map_or("unlimited".into(), |hard| hard.to_string())),
            "a line `<user> - rtprio 99` in /etc/security/limits.d and a new login; with systemd LimitRTPRIO=99",
        ),
        Err(error) => finding(NAME, State::Warn, error.to_string(), "find out why limits cannot be read"),
    }
}

pub(super) fn memory_limit() -> Finding {
    const NAME: &str = "locked memory";
    match memory::lock_limit() {
        Ok(Limit { soft: None, .. }) => finding(NAME, State::Ok, "unlimited", ""),
        Ok(_) if memory::may_lock_anything() => finding(NAME, State::Ok, "the limit is overridden by CAP_IPC_LOCK", ""),
        Ok(Limit { soft: Some(soft), .. }) => {
            let state = if soft >= LOCKED_BYTES_MIN { State::Ok } else { State::Warn };
            let fix = "a line `<user> - memlock unlimited` in /etc/security/limits.d and a new login, or CAP_IPC_LOCK; \
                       without it page faults may delay jobs";
            finding(NAME, state, format!("{} KiB", soft >> 10), fix)
        }
        Err(error) => finding(NAME, State::Warn, error.to_string(), "find out why limits cannot be read"),
    }
}
