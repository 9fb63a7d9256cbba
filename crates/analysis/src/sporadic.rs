//! A task as the tests without resources know it.

/// A sporadic task. Times are integers in one unit, the same for all tasks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sporadic {
    /// Worst-case execution time, C.
    pub cost: u64,
    /// Least distance of two arrivals, T; above 0.
    pub period: u64,
    /// From arrival, D.
    pub deadline: u64,
}
