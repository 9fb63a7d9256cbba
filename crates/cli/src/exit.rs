//! Exit statuses: the same for every verb.

use std::process::ExitCode;

/// How a verb ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Exit {
    /// Done; where the verb is about deadlines, all of them hold.
    Holds = 0,
    /// Some deadlines do not.
    Misses = 1,
    /// The arguments or the file are wrong.
    BadInput = 2,
    /// The machine refuses: no permission, no space.
    Machine = 3,
    /// Ended by a signal before its time.
    Interrupted = 130,
}

impl Exit {
    /// From whether all deadlines hold.
    #[must_use]
    pub fn from_holds(holds: bool) -> Self {
        if holds { Self::Holds } else { Self::Misses }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Shown at the end of the help.
pub const HELP: &str = "Exit status:
  0  done; `check`: all deadlines hold; `simulate`, `run`: no miss was seen; `verify`: both, and no response was above its bound
  1  `check`: some deadlines do not, or cannot be shown to; `simulate`, `run`: a miss was seen, or, with `run --overheads` and
     `run --strict`, a response above its bound; `verify`: any of these
  2  the arguments or the file are wrong
  3  the machine refuses, such as no real-time permission
  130  interrupted (Ctrl-C); what was seen until then is printed";
