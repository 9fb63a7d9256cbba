//! Why a verb gave up, kept for `--json`.
//!
//! People read it on standard error as it happens. A program reads one JSON object on standard output, whatever happens: the result, or this.

use schemars::JsonSchema;
use serde::Serialize;
use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// One fault.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Fault {
    /// What is wrong.
    pub message: String,
    /// What to do about it; null where that is not known.
    pub help: Option<String>,
    /// Where; null where it is not a place in a file.
    pub place: Option<Place>,
}

/// A place in a file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Place {
    /// The file as it was given; "standard input" for `-`.
    pub file: String,
    /// From 1; null where the whole file is meant.
    pub line: Option<usize>,
    /// In characters, from 1.
    pub column: Option<usize>,
}

/// Those of this process, in order.
static FAULTS: Mutex<Vec<Fault>> = Mutex::new(Vec::new());
/// Whether data went to standard output: there is one JSON object, not two.
// ORDERING: a flag alone, it publishes nothing: relaxed.
static PRINTED: AtomicBool = AtomicBool::new(false);

/// Keeps a fault.
pub fn keep(fault: Fault) {
    FAULTS.lock().unwrap_or_else(PoisonError::into_inner).push(fault);
}

/// What was kept.
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

/// Whether these arguments ask for JSON: also where they are wrong otherwise.
#[must_use]
pub fn wants_json(arguments: impl Iterator<Item = OsString>) -> bool {
    arguments.take_while(|argument| argument != "--").any(|argument| argument == "--json")
}

impl Fault {
    /// What is wrong with the arguments.
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
