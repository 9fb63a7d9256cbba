//! Scheduling policies.

use core::fmt;

/// A scheduling policy. All of them are preemptive.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[non_exhaustive]
pub enum Scheduler {
    /// Partitioned fixed priorities: each task executes on its assigned processor.
    #[default]
    PFp,
    /// Partitioned EDF: on each processor, the job with the earliest absolute deadline executes.
    PEdf,
    /// Clustered fixed priorities: the most urgent jobs of a cluster execute on any of its processors.
    CFp,
    /// Global fixed priorities: the most urgent jobs execute on any processors.
    GFp,
    /// Global EDF: the jobs with the earliest absolute deadlines execute on any processors.
    GEdf,
}

impl Scheduler {
    /// All policies, the partitioned ones first.
    pub const ALL: [Self; 5] = [Self::PFp, Self::PEdf, Self::CFp, Self::GFp, Self::GEdf];

    /// Returns the name, as files and arguments spell it.
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

    /// Returns whether a job may execute on any processor.
    #[must_use]
    pub const fn is_global(self) -> bool {
        matches!(self, Self::GFp | Self::GEdf)
    }

    /// Returns whether jobs are ordered by absolute deadlines, and so without base priorities.
    #[must_use]
    pub const fn is_by_deadline(self) -> bool {
        matches!(self, Self::PEdf | Self::GEdf)
    }
}

impl fmt::Display for Scheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
