//! What this machine lacks for real time, each with its fix.
//!
//! Nothing is changed: files are read, and what can only be known by trying is tried on a thread of its own.
//!
//! | file | about |
//! |---|---|
//! | `rights` | what the process may do: priorities, locked memory |
//! | `kernel` | how the kernel was built and set up |
//! | `hardware` | processors, clock, virtual machine, and a sample of wake-up latencies |

mod hardware;
mod kernel;
mod rights;

pub use rights::try_realtime;

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

fn finding(name: &'static str, state: State, found: impl Into<String>, fix: impl Into<String>) -> Finding {
    let fix = if state == State::Ok { String::new() } else { fix.into() };
    Finding { name, state, found: found.into(), fix }
}

/// Examines this machine and this process. Takes less than half a second.
#[must_use]
pub fn examine() -> Vec<Finding> {
    let mut findings = vec![
        rights::realtime(),
        rights::realtime_limit(),
        rights::memory_limit(),
        kernel::pi_futexes(),
        kernel::preemption(),
        kernel::throttling(),
        kernel::tracefs(),
        kernel::robust_list(),
        kernel::rseq(),
        kernel::membarrier(),
        hardware::cpus(),
        hardware::isolation(),
    ];
    findings.extend(hardware::governor());
    findings.extend([hardware::clock(), hardware::virtual_machine(), hardware::latency()]);
    findings
}

/// The text of a file of the kernel, without the line's end.
fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_finding_that_is_not_well_says_what_to_do() {
        for finding in examine() {
            println!("{:<24} {:<8} {}  {}", finding.name, finding.state, finding.found, finding.fix);
            assert!(!finding.found.is_empty(), "{finding:?}");
            assert_eq!(finding.fix.is_empty(), finding.state == State::Ok, "{finding:?}");
        }
    }
}
