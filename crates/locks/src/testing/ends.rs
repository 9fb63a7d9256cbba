//! A program ends where it must not continue.

use std::process::Command;

/// The variable that tells the program which case it executes.
const CASE: &str = "LOCKWRIGHT_TEST_ENDS";

/// Whether `work` ends the program with a message that contains `word`. A program of its own executes it: this one,
/// with the test of the full name `test` alone. `case` distinguishes several cases of one test.
pub(crate) fn ends(test: &str, case: &str, word: &str, work: impl FnOnce()) -> bool {
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
    output.status.code().is_none() && message.contains(word)
}
