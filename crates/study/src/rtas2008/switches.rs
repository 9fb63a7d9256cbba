//! The questions that the paper leaves open.

use super::charges::Others;
use super::sets::Length;

/// Answers to the questions that the paper leaves open. The default is our reading of it.
///
/// This is a plain value: users write it as a literal, and it gets no further fields.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Switches {
    /// The lengths of sections below the greatest one.
    pub lengths: Length,
    /// The way in which the requests of others are counted.
    pub counting: Counting,
    /// The charge to the sections of others.
    pub others: Others,
    /// The tests for hard deadlines.
    pub tests: Tests,
    /// Which resources are held together.
    pub nesting: Nested,
    /// The way in which failed attempts are counted.
    pub retries: Retries,
}

/// The way in which the requests of others are counted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Counting {
    /// Each request waits for the longest sections of the others.
    #[default]
    PerRequest,
    /// As often as the others request during the job, if that is less.
    PerJob,
}

/// The tests for hard deadlines.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Tests {
    /// GFB under global EDF, and utilizations with blocking on each processor.
    #[default]
    Published,
    /// The best tests of Lockwright: several tests of global EDF, and the processor demand.
    Best,
}

/// Which resources are held together.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Nested {
    /// Sections are nested as traced in Linux. Resources that are held together are one lock.
    #[default]
    Traced,
    /// No sections are nested.
    Never,
}

/// The way in which failed attempts are counted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Retries {
    /// For each access, the accesses of two jobs of each other task, if that is less than per job. This is no safe
    /// bound where an access may be preempted for longer than a period.
    #[default]
    PerAccess,
    /// All accesses of others during the job.
    PerJob,
}
