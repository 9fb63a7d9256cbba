//! The machine, for one test at a time: tests on real threads take its real-time levels and its CPUs.
//!
//! Included by the tests of this crate and of all above it, which may be several processes at once.

use lockwright_sys::sched;
use std::fs::File;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The highest level there is.
const HIGHEST: u8 = 99;

/// Held by whoever runs in this process.
static HERE: Mutex<()> = Mutex::new(());

/// The right to the machine, until dropped.
pub struct Machine {
    _here: MutexGuard<'static, ()>,
    /// Locked by whoever runs in any process.
    _everywhere: Option<File>,
}

/// The machine, or `None`, with a word on why, where the process may not use real-time priorities; there it
/// is a failure if LOCKWRIGHT_REQUIRE_RT is set.
pub fn require_realtime() -> Option<Machine> {
    let here = HERE.lock().unwrap_or_else(PoisonError::into_inner);
    match sched::try_fifo(HIGHEST) {
        Ok(()) => Some(Machine { _here: here, _everywhere: lock_file() }),
        Err(error) if std::env::var_os("LOCKWRIGHT_REQUIRE_RT").is_some() => {
            panic!("no permission for real-time priorities: {error}")
        }
        Err(error) => {
            eprintln!("skipped: no permission for real-time priorities: {error}");
            None
        }
    }
}

/// BOUND: the test before. Without the file (no permission for it, say) tests of this process still take turns.
fn lock_file() -> Option<File> {
    let path = std::env::temp_dir().join("lockwright-realtime-tests.lock");
    let file = File::options().create(true).append(true).open(path).ok()?;
    file.lock().ok()?;
    Some(file)
}
