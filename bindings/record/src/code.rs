//! Recordings that the program itself begins and ends.

use crate::load;
use libc::{EINVAL, ENOENT, c_char, c_int};
use std::ffi::{CStr, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Begins to record this program. The recording goes into `folder`, which is made; an earlier recording in it is
/// replaced. `lockwright record --read FOLDER` reads it.
///
/// Call it before the program creates threads. Of threads that exist already the locks and waits are recorded, but not
/// when they execute. A process records once.
///
/// # Errors
/// The folder cannot be written, there is no thread or memory for the recording, or (`ResourceBusy`) the process is
/// recorded or has been recorded already.
///
/// # Examples
/// ```no_run
/// lockwright_recorder::start("recorded")?;
/// std::thread::spawn(|| println!("recorded")).join().expect("it does not panic");
/// assert!(lockwright_recorder::stop());
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn start(folder: impl AsRef<Path>) -> io::Result<()> {
    load::start(folder.as_ref())
}

/// Ends the recording, and waits until it is written, for ten seconds at most. Returns whether there was one. The end
/// of the program does the same.
pub fn stop() -> bool {
    load::stop()
}

/// [`start`] for C. Returns 0, or an error number: EINVAL if `folder` is null, EBUSY if the process is recorded or has
/// been recorded already, or why the folder cannot be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_record_start(folder: *const c_char) -> c_int {
    if folder.is_null() {
        return EINVAL;
    }
    // SAFETY: it is not null, so the program passes a string that stays valid during the call.
    let folder = unsafe { CStr::from_ptr(folder) };
    let started = start(OsStr::from_bytes(folder.to_bytes()));
    started.map_or_else(|error| error.raw_os_error().unwrap_or(EINVAL), |()| 0)
}

/// [`stop`] for C. Returns 0, or ENOENT if nothing is recorded.
#[unsafe(no_mangle)]
pub extern "C" fn lw_record_stop() -> c_int {
    if stop() { 0 } else { ENOENT }
}
