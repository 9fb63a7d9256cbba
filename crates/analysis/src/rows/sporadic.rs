//! Tasks for the tests without resources.

/// A sporadic task. Times are integers in one unit, which is the same for all tasks.
///
/// This is a plain value: users write it as a literal, and it gets no further fields.
///
/// # Examples
/// ```
/// use lockwright_analysis::Sporadic;
/// use lockwright_analysis::uniprocessor::edf;
/// let task = Sporadic { cost: 3, period: 10, deadline: 5 };
/// assert!(edf::schedulable(&[task], &[]).is_ok());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Sporadic {
    /// The worst-case execution time, C.
    pub cost: u64,
    /// The minimum time between two arrivals, T; above 0.
    pub period: u64,
    /// The deadline relative to the arrival, D.
    pub deadline: u64,
}
