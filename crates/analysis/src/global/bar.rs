//! BAR, Baruah's test for global EDF.
//!
//! ```text
//! for all k and all A ≥ 0:  Σ_i I1_i + the m − 1 greatest (I2_i − I1_i) ≤ m (A + D_k − C_k)
//! I1_i = min(dbf_i(A + D_k), A + D_k − (C_k − 1)),    for k itself min(dbf_k(A + D_k) − C_k, A)
//! I2_i = the same with ⌊t/T_i⌋ C_i + min(C_i, t mod T_i) in place of dbf_i(t)
//! ```
//! Only those A matter at which some dbf has a step, up to (C_Σ − D_k (m − U) + Σ (T_i − D_i) u_i + m C_k) / (m
//! − U), where C_Σ is the sum of the m − 1 greatest execution times. The source is Baruah, *Techniques for
//! multiprocessor global schedulability analysis*, RTSS 2007, with the author's correction (C_k − 1 in place of
//! C_k: a job that misses its deadline executed for less than C_k). The test requires U < m.

use super::set::{Deadlines, Greatest, Task, check, laid_out};
use crate::rows::exact::compare_sum;
use crate::{Failure, Limit, Sporadic};
use std::cmp::Ordering;

/// The most points A that are examined, for all tasks together. The interval grows without bound as U approaches m.
pub const POINTS_MAX: u64 = 1 << 20;

/// The number of fractional bits.
const BITS: u32 = 40;

/// Tests whether all deadlines are met under global EDF on `processors` processors, by Baruah's test. Deadlines must
/// not exceed periods.
///
/// The source is Baruah, RTSS 2007.
///
/// # Errors
/// Returns [`Failure::Overload`] if U ≥ m, [`Failure::Task`] with the first task for which the condition does not
/// hold, [`Failure::Diverged`] after [`POINTS_MAX`] points, and the errors of invalid sets (see the [module](super)).
pub fn bar(tasks: &[Sporadic], processors: u32) -> Result<(), Failure> {
    test::<true>(tasks, processors)
}

/// The mutant without carried-in work.
///
/// # Errors
/// Returns the errors of the test.
#[cfg(feature = "mutants")]
pub fn mutant(tasks: &[Sporadic], processors: u32) -> Result<(), Failure> {
    test::<false>(tasks, processors)
}

fn test<const CARRY_IN: bool>(tasks: &[Sporadic], processors: u32) -> Result<(), Failure> {
    check(tasks, processors, Deadlines::Constrained)?;
    if tasks.is_empty() {
        return Ok(());
    }
    if compare_sum(tasks.iter().map(|task| (task.cost, task.period)), u64::from(processors)) != Ordering::Less {
        return Err(Failure::Overload);
    }
    let set = laid_out(tasks);
    let carrying = (processors as usize - 1).min(set.len());
    let mut room = vec![0; carrying];
    let mut greatest = Greatest::new(&mut room);
    let last = last_points(tasks, processors, &mut greatest);
    let mut left = POINTS_MAX;
    for (k, last) in last.into_iter().enumerate() {
        let Some(last) = last else { continue };
        for stepping in &set {
            // The first A ≥ 0 with A + D_k = D_i plus a multiple of T_i.
            let behind = set[k].deadline.saturating_sub(stepping.deadline);
            let mut end = stepping.deadline + behind.div_ceil(stepping.period) * stepping.period;
            // BOUND: `POINTS_MAX` for all tasks together.
            while end - set[k].deadline <= last {
                if left == 0 {
                    return Err(Failure::Diverged { task: k, limit: Limit { name: "points", most: POINTS_MAX } });
                }
                left -= 1;
                if !holds::<CARRY_IN>(&set, k, end, processors, &mut greatest) {
                    return Err(Failure::Task { task: k });
                }
                let Some(next) = end.checked_add(stepping.period) else { break };
                end = next;
            }
        }
    }
    Ok(())
}

/// Returns for each task at least the greatest A to examine, or `None` if the condition holds for all A. It also holds
/// beyond these points, so rounding up changes no verdict.
fn last_points(tasks: &[Sporadic], processors: u32, greatest: &mut Greatest<'_>) -> Vec<Option<u64>> {
    let (mut utilization, mut early) = (0_u128, 0_u128);
    greatest.clear();
    for task in tasks {
        // Rounded up.
        utilization += (u128::from(task.cost) << BITS) / u128::from(task.period) + 1;
        early += (u128::from(task.cost) * u128::from(task.period - task.deadline)).div_ceil(u128::from(task.period));
        greatest.add(task.cost);
    }
    let m = u128::from(processors);
    // If rounding consumes the remainder, the true interval is longer than all points that are examined.
    let left = (m << BITS).saturating_sub(utilization).max(1);
    let fixed = early + u128::from(greatest.sum());
    tasks
        .iter()
        .map(|task| {
            let (least, own) = (left * u128::from(task.deadline), (fixed + m * u128::from(task.cost)) << BITS);
            let rest = own.checked_sub(least)?;
            // Beyond a quarter of the range of integers, the limit `POINTS_MAX` is reached first.
            Some(u64::try_from(rest.div_ceil(left)).unwrap_or(u64::MAX).min(u64::MAX / 4))
        })
        .collect()
}

/// Evaluates the condition for `end` = A + D_k.
fn holds<const CARRY_IN: bool>(set: &[Task], k: usize, end: u64, processors: u32, greatest: &mut Greatest<'_>) -> bool {
    let own = &set[k];
    let (offset, cap) = (end - own.deadline, (end + 1).saturating_sub(own.cost));
    greatest.clear();
    let mut sum = 0_u128;
    for (i, task) in set.iter().enumerate() {
        let (jobs, rest) = task.divide(end);
        // The values are at most the sum of `end` and a cost, so they fit.
        let whole = jobs.wrapping_mul(task.cost);
        let due = whole.wrapping_add(if rest >= task.deadline { task.cost } else { 0 });
        let carried = whole.wrapping_add(task.cost.min(rest));
        let (without, with) = if i == k {
            (due.saturating_sub(own.cost).min(offset), carried.saturating_sub(own.cost).min(offset))
        } else {
            (due.min(cap), carried.min(cap))
        };
        sum += u128::from(without);
        if CARRY_IN {
            greatest.add(with.saturating_sub(without));
        }
    }
    sum + u128::from(greatest.sum()) <= u128::from(processors) * u128::from(end - own.cost)
}
