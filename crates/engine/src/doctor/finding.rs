//! What one look at the machine finds.

use std::fmt;

/// How serious a finding is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum State {
    /// As it should be.
    Ok,
    /// Runs work, but times suffer or say less.
    Warn,
    /// Runs do not work.
    Missing,
}

impl State {
    /// In one word: `ok`, `warn`, `missing`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Missing => "missing",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// One thing that was examined.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// What.
    pub name: &'static str,
    /// How it stands.
    pub state: State,
    /// What was found.
    pub found: String,
    /// What to do; empty where there is nothing to do.
    pub fix: String,
}

pub(super) fn finding(name: &'static str, state: State, found: impl Into<String>, fix: impl Into<String>) -> Finding {
    let fix = if state == State::Ok { String::new() } else { fix.into() };
    Finding { name, state, found: found.into(), fix }
}

/// The text of a file of the kernel, without the line's end.
pub(super) fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}
