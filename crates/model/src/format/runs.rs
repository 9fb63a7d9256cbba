//! The execution time of a job that the file does not give.

use crate::{Duration, Step};

/// Returns the sum of a body's runs, or a value above every limit if the sum does not fit.
pub(super) fn sum_of_runs(body: &[Step]) -> Duration {
    let runs = body.iter().filter_map(|step| if let Step::Run(time) = step { Some(*time) } else { None });
    runs.fold(Duration::ZERO, |sum, time| sum.checked_add(time).unwrap_or(Duration::from_ns(u64::MAX)))
}
