//! First come, first served on one processor: jobs execute in the order of their releases, each to its end.
//!
//! ```text
//!   R = max over A of sum over k of ceil((A + 1 + J_k) / T_k) C_k - A
//! ```
//! A ranges over the offsets within the longest busy interval at which some ceil increases. R is measured from the
//! release and is the same for all tasks. It is exact. The sources are George, Minet (ICDCS 1997) and Bedarkar,
//! Vardishvili, Bozhko, Maida, Brandenburg (RTSS 2022).
//!
//! # Examples
//! ```
//! use lockwright_analysis::uniprocessor::{Task, fifo};
//! let task = |cost, period| Task { cost, period, deadline: period, ..Task::default() };
//! assert_eq!(fifo::response_bound(&[task(2, 10), task(3, 20)], u64::MAX)?, 5);
//! # Ok::<(), lockwright_analysis::Failure>(())
//! ```

use super::{Arrivals, Task, Terms, busy_period};
use crate::rows::failure::Failure;

/// Returns the longest time from the release of a job of any task to its end, under FIFO on one processor.
///
/// The time is in the unit of the input. The sources are in the [module](self).
///
/// # Errors
/// Returns [`Failure::Overload`] if U > 1, and [`Failure::Diverged`] if a busy interval exceeds `horizon` or takes too
/// many steps. Returns [`Failure::Unsupported`] for a task that suspends itself or has blocking, and
/// [`Failure::Overflow`] if a number does not fit.
pub fn response_bound(tasks: &[Task], horizon: u64) -> Result<u64, Failure> {
    let mut terms = Terms::new();
    let mut all = Vec::with_capacity(tasks.len());
    for (index, task) in tasks.iter().enumerate() {
        if task.suspension > 0 || task.blocking > 0 {
            return Err(Failure::Unsupported { task: index, what: "suspends itself or is blocked, under FIFO" });
        }
        all.push(Arrivals::of(task, index)?);
    }
    let end = busy_period(&all, horizon, &mut terms)?;
    let (mut worst, mut released) = (0, 0_u64);
    // The number of released jobs of each task.
    let mut counts = vec![0_u64; all.len()];
    let mut at = 0;
    // BOUND: the limit on terms.
    while at < end {
        terms.spend(0, all.len())?;
        let mut next = u64::MAX;
        for (one, count) in all.iter().zip(&mut counts) {
            let until = one.count(at.checked_add(1).ok_or(Failure::Overflow)?).ok_or(Failure::Overflow)?;
            // No sum overflows before the work in the whole busy interval does.
            released += (until - *count) * one.cost;
            *count = until;
            next = next.min(one.release(until).ok_or(Failure::Overflow)?);
        }
        worst = worst.max(released - at);
        at = next;
    }
    Ok(worst)
}
