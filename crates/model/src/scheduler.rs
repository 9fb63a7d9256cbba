//! How processors are given to jobs.

use core::fmt;

/// How processors are given to jobs. All preempt.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[non_exhaustive]
pub enum Scheduler {
    /// Partitioned: each task on its processor. Fixed priorities.
    #[default]
    PFp,
    /// Partitioned. The job with the earliest absolute deadline first.
    PEdf,
    /// Clustered: the most urgent jobs of a cluster on any of its processors. Fixed priorities.
    CFp,
    /// Global: the most urgent jobs on any processors. Fixed priorities.
    GFp,
    /// Global. The jobs with the earliest absolute deadlines first.
    GEdf,
}

impl Scheduler {
    /// All, partitioned ones first.
    pub const ALL: [Self; 5] = [Self::PFp, Self::PEdf, Self::CFp, Self::GFp, Self::GEdf];

    /// The name, as files and arguments spell it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::PFp => "p-fp",
            Self::PEdf => "p-edf",
            Self::CFp => "c-fp",
            Self::GFp => "g-fp",
            Self::GEdf => "g-edf",
        }
    }

    /// Whether a job may execute on any processor.
    #[must_use]
    pub const fn is_global(self) -> bool {
        matches!(self, Self::GFp | Self::GEdf)
    }
}

impl fmt::Display for Scheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
