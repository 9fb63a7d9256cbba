//! A program ends where it must not continue.

use crate::{Algorithm, Shareable};
use std::process::Command;

/// The variable that tells the program which case it executes.
const CASE: &str = "LOCKWRIGHT_TEST_ENDS";

/// A part of the message with which the program ends.
const MESSAGE: &str = "2^29 requests";

/// Whether `work` ends the program because there are too many requests. A program of its own executes it: this one,
/// with the test of the full name `test` alone. `case` distinguishes several cases of one test.
pub(crate) fn ends(test: &str, case: &str, work: impl FnOnce()) -> bool {
    match std::env::var(CASE) {
        Ok(asked) if asked == case => {
            work();
            std::process::exit(0);
        }
        // This program executes another case of the test.
        Ok(_) => return true,
        Err(_) => {}
    }
    let program = std::env::current_exe().expect("this program has a path");
    let output = Command::new(program)
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(CASE, case)
        .output()
        .expect("this program is executed");
    // A panic alone would end only the test, with a status of its own.
    let message = std::string::String::from_utf8_lossy(&output.stderr);
    std::eprintln!("{case}: {}: {message}", output.status);
    output.status.code().is_none() && message.contains(MESSAGE)
}

/// Asserts that each kind of request ends the program if it is one too many for `lock`. `test` is the full name of the
/// test.
pub(crate) fn with_too_many_requests<A: for<'r> Algorithm<Request<'r> = (), Hold = u32> + Shareable>(
    test: &str,
    lock: fn() -> A,
) {
    assert!(ends(test, "read", || lock().acquire_shared()));
    assert!(ends(test, "try_read", || assert!(lock().try_acquire_shared())));
    // The first unsuccessful check would panic.
    assert!(ends(test, "write", || assert_ne!(lock().acquire(()), 0)));
}
