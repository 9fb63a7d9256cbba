//! The first words of a command that executes a command line in a process of its own.

use std::ffi::OsString;
use std::sync::OnceLock;

static WORDS: OnceLock<Box<[OsString]>> = OnceLock::new();

/// Sets the words: the program, and its first arguments. The first call counts.
pub fn set(words: &[OsString]) {
    WORDS.get_or_init(|| words.into());
}

/// The program, and its first arguments.
#[cfg(feature = "serve")]
pub fn get() -> Option<(&'static OsString, &'static [OsString])> {
    WORDS.get().and_then(|words| words.split_first())
}
