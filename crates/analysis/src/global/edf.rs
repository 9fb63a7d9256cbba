//! Several tests of global EDF together.

use super::{bak, bar, gfb, rta};
use crate::{Failure, Sporadic};

/// Whether [`bak()`], [`gfb()`], [`rta()`] or [`bar()`] accepts, the cheap ones first. On one processor other tests are exact: the processor demand.
///
/// # Errors
/// What [`rta()`] said, for constrained deadlines; else what [`bak()`] said, the only one that takes others.
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
