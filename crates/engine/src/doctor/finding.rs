//! The result of one check of the machine.

use std::fmt;

/// How serious a finding is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum State {
    /// As it should be.
    Ok,
    /// Runs work, but their times are worse or less meaningful.
    Warn,
    /// Runs do not work.
    Missing,
}

impl State {
    /// The state in one word: `ok`, `warn`, `missing`.
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

/// One finding: the result of a check, and a fix.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The thing that was checked.
    pub name: &'static str,
    /// How serious it is.
    pub state: State,
    /// The result of the check.
    pub found: String,
    /// How to fix it; empty if the state is [`State::Ok`].
    pub fix: String,
}

pub(super) fn finding(name: &'static str, state: State, found: impl Into<String>, fix: impl Into<String>) -> Finding {
    let fix = if state == State::Ok { String::new() } else { fix.into() };
    Finding { name, state, found: found.into(), fix }
}

/// The text of a file of the kernel, trimmed. `None` if it cannot be read.
pub(super) fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}
