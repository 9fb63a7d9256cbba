//! What tests on real threads inside this crate share.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Held by whoever runs: such tests take the real-time levels of the machine.
static MACHINE: Mutex<()> = Mutex::new(());

/// The machine for one test, or `None` where it may not use real-time priorities; a failure where
/// LOCKWRIGHT_REQUIRE_RT is set.
pub(crate) fn require_realtime() -> Option<MutexGuard<'static, ()>> {
    let guard = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    match crate::doctor::try_realtime() {
        Ok(()) => Some(guard),
        Err(error) if std::env::var_os("LOCKWRIGHT_REQUIRE_RT").is_some() => panic!("{error}"),
        Err(error) => {
            eprintln!("skipped: {error}");
            None
        }
    }
}
