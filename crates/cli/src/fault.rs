//! The faults of this process, kept for `--json`.
//!
//! They are printed on standard error as they occur. With `--json`, standard output gets exactly one object: the
//! result, or these faults.

use schemars::JsonSchema;
use serde::Serialize;
use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// One fault.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Fault {
    /// The message.
    pub message: String,
    /// How to fix it; null if that is not known.
    pub help: Option<String>,
    /// The place in a file; null if the fault has none.
    pub place: Option<Place>,
}

/// A place in a file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Place {
    /// The file, as it was given; "standard input" for `-`.
    pub file: String,
    /// Line, from 1; null if the fault concerns the whole file.
    pub line: Option<usize>,
    /// Column in characters, from 1.
    pub column: Option<usize>,
}

/// The faults of this process, in order.
static FAULTS: Mutex<Vec<Fault>> = Mutex::new(Vec::new());
/// Whether data went to standard output: only one JSON object is printed.
// ORDERING: a flag alone, it publishes nothing: relaxed.
static PRINTED: AtomicBool = AtomicBool::new(false);

/// Keeps a fault.
pub fn keep(fault: Fault) {
    FAULTS.lock().unwrap_or_else(PoisonError::into_inner).push(fault);
}

/// The faults so far.
#[must_use]
pub fn kept() -> Vec<Fault> {
    FAULTS.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Notes that data was printed.
pub fn printed() {
    PRINTED.store(true, Ordering::Relaxed);
}

/// Whether data was printed.
#[must_use]
pub fn is_printed() -> bool {
    PRINTED.load(Ordering::Relaxed)
}

/// Whether these arguments include `--json`, even if they are invalid otherwise.
#[must_use]
pub fn wants_json(arguments: impl Iterator<Item = OsString>) -> bool {
    arguments.take_while(|argument| argument != "--").any(|argument| argument == "--json")
}

impl Fault {
    /// The fault in the arguments.
    #[must_use]
    pub fn of_arguments(error: &clap::Error) -> Self {
        let text = error.render().to_string();
        let mut lines = text.trim().lines();
        let first = lines.next().unwrap_or_default();
        let help: Vec<&str> = lines.map(str::trim).filter(|line| !line.is_empty()).collect();
        Self {
            message: first.strip_prefix("error: ").unwrap_or(first).to_owned(),
            help: (!help.is_empty()).then(|| help.join("; ")),
            place: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_asked_for_before_the_double_dash() {
        let asks = |arguments: &[&str]| wants_json(arguments.iter().map(OsString::from));
        assert!(asks(&["check", "--json", "x"]) && asks(&["check", "x", "--json"]));
        assert!(!asks(&["check", "--", "--json"]) && !asks(&["check", "--jsonx"]));
    }
}
