//! The reasons why a generator cannot draw what was asked for.

/// The number of draws after which [`uunifast_discard`] fails.
pub(super) const DRAWS: usize = 1_000;

/// The reason why a generator cannot draw what was asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Impossible {
    /// No vector of utilizations within the limits has the given sum.
    Sum {
        /// The number of tasks.
        tasks: usize,
    },
    /// Every one of 1,000 vectors had a utilization above the limit.
    Discarded,
}

impl std::fmt::Display for Impossible {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Sum { tasks } => write!(f, "the utilizations of {tasks} tasks cannot have this sum"),
            Self::Discarded => write!(f, "each of {} draws had too high a utilization", DRAWS),
        }
    }
}

impl std::error::Error for Impossible {}
