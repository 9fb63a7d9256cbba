//! A combination of several tests for global EDF.

use super::{bak, bar, gfb, rta};
use crate::{Failure, Sporadic};

/// Tests whether all deadlines are met under global EDF on `processors` processors: whether [`gfb()`], [`bak()`],
/// [`rta()`] or [`bar()`] accepts, the fast tests first. On one processor, the processor demand
/// ([`uniprocessor::edf`](crate::uniprocessor::edf)) is an exact test.
///
/// # Errors
/// Returns the error of [`rta()`] for constrained deadlines. Otherwise returns that of [`bak()`], which is the only one
/// of these tests for deadlines beyond periods.
pub fn edf(tasks: &[Sporadic], processors: u32) -> Result<(), Failure> {
    if gfb(tasks, processors).is_ok() {
        return Ok(());
    }
    let why = match bak(tasks, processors) {
        Ok(()) => return Ok(()),
        Err(why) => why,
    };
    if tasks.iter().any(|task| task.deadline > task.period) {
        return Err(why);
    }
    match rta(tasks, processors) {
        Ok(_) => Ok(()),
        Err(why) => bar(tasks, processors).map_err(|_| why),
    }
}
