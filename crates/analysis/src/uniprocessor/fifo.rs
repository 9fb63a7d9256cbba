//! First come, first served on one processor: jobs execute in the order of their releases, each to its end.
//!
//! ```text
//!   R = max over A of sum over k of ceil((A + 1 + J_k) / T_k) C_k - A        for A where some ceil grows, A < the longest busy interval
//! ```
//! from release, the same for all tasks; exact. George, Minet (ICDCS 1997); Bedarkar, Vardishvili, Bozhko, Maida, Brandenburg (RTSS 2022).

use super::{Arrivals, Task, Terms, busy_period};
use crate::failure::Failure;

/// Longest time from the release of any task's job to its end.
///
/// # Errors
/// [`Failure::Overload`] above full use of the processor. Busy intervals beyond `horizon` are not followed.
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
    // How many of each task's jobs are among those released.
    let mut counts = vec![0_u64; all.len()];
    let mut at = 0;
    // BOUND: the terms.
    while at < end {
        terms.spend(0, all.len())?;
        let mut next = u64::MAX;
        for (one, count) in all.iter().zip(&mut counts) {
            let until = one.count(at.checked_add(1).ok_or(Failure::Overflow)?).ok_or(Failure::Overflow)?;
            // None of these overflows before the work in the whole busy interval does.
            released += (until - *count) * one.cost;
            *count = until;
            next = next.min(one.release(until).ok_or(Failure::Overflow)?);
        }
        worst = worst.max(released - at);
        at = next;
    }
    Ok(worst)
}
