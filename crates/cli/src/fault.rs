//! The faults of a command, kept for `--json`. A command reports them on the thread that executes it.
//!
//! They are printed on standard error as they occur. With `--json`, standard output gets exactly one object: the
//! result, or these faults.

use schemars::JsonSchema;
use serde::Serialize;
use std::cell::{Cell, RefCell};
use std::ffi::OsString;

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

thread_local! {
    /// The faults, in order.
    static FAULTS: RefCell<Vec<Fault>> = const { RefCell::new(Vec::new()) };
    /// Whether data went to standard output: only one JSON object is printed.
    static PRINTED: Cell<bool> = const { Cell::new(false) };
}

/// Keeps a fault.
pub fn keep(fault: Fault) {
    FAULTS.with_borrow_mut(|faults| faults.push(fault));
}

/// Takes the faults so far.
#[must_use]
pub fn take() -> Vec<Fault> {
    FAULTS.take()
}

/// Notes that data was printed.
pub fn printed() {
    PRINTED.set(true);
}

/// Whether data was printed.
#[must_use]
pub fn is_printed() -> bool {
    PRINTED.get()
}

/// Forgets what an earlier command of this thread reported and printed.
pub fn forget() {
    FAULTS.take();
    PRINTED.set(false);
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
