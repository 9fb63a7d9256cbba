//! BAK, Baker's test for global EDF.
//!
//! ```text
//! for all k, with λ = δ_k:  Σ_i min(1, β_i) ≤ m(1 − λ) + λ
//! β_i = u_i + max(0, u_i (T_i − D_i) + max(0, C_i − λ T_i)) / D_k
//! ```
//! The last term is 0 if u_i ≤ λ. The source is Baker, *A comparison of global and partitioned EDF schedulability
//! tests for multiprocessors*, 2005. The outer maximum matters only for deadlines beyond periods: the busy window may
//! be longer than D_k, and then a negative numerator weighs less. Without it, a task with a far deadline would reduce
//! the demand of others (docs/errata.md).

use super::set::{Deadlines, check};
use crate::{Failure, Sporadic};
use num_rational::BigRational;

/// The share β of a task, scaled.
struct Share {
    /// u, rounded down.
    utilization: i64,
    /// u (T − D), accurate to T.
    early: i64,
    cost: i64,
    period: i64,
}

/// Tests whether all deadlines are met under global EDF on `processors` processors, by Baker's test. Deadlines are
/// arbitrary.
///
/// The source is Baker, *A comparison of global and partitioned EDF schedulability tests for multiprocessors*, 2005.
///
/// # Errors
/// Returns [`Failure::Task`] with the first task for which the condition does not hold, and the errors of invalid sets
/// (see the [module](super)).
pub fn bak(tasks: &[Sporadic], processors: u32) -> Result<(), Failure> {
    test::<true>(tasks, processors)
}

/// The mutant without u (T − D).
///
/// # Errors
/// Returns the errors of the test.
#[cfg(feature = "mutants")]
pub fn mutant(tasks: &[Sporadic], processors: u32) -> Result<(), Failure> {
    test::<false>(tasks, processors)
}

fn test<const EARLY: bool>(tasks: &[Sporadic], processors: u32) -> Result<(), Failure> {
    check(tasks, processors, Deadlines::Arbitrary)?;
    let (n, m) = (tasks.len() as u64, u64::from(processors));
    let greatest = tasks.iter().map(|task| task.period.max(task.deadline)).max().unwrap_or(1);
    // Sums of 4n + m scaled times fit in 62 bits. The check has ensured that at least one bit is left.
    let bits = greatest.saturating_mul(4 * n + m).leading_zeros().saturating_sub(2).min(32);
    let scaled = |cost: u64, over: u64| ((u128::from(cost) << bits) / u128::from(over)) as i64;
    let quick =
        |cost: u64, over: u64| if cost >> 31 == 0 { ((cost << bits) / over) as i64 } else { scaled(cost, over) };
    let shares: Vec<Share> = tasks
        .iter()
        .map(|task| {
            let (period, deadline) = (task.period as i64, task.deadline as i64);
            let utilization = quick(task.cost, task.period);
            let early = if EARLY { utilization.wrapping_mul(period.wrapping_sub(deadline)) } else { 0 };
            Share { utilization, early, cost: (task.cost << bits) as i64, period }
        })
        .collect();
    for (k, task) in tasks.iter().enumerate() {
        let lambda = if task.deadline >= task.period { shares[k].utilization } else { quick(task.cost, task.deadline) };
        let deadline = task.deadline as i64;
        let whole = deadline << bits;
        let mut sum = 0_i64;
        for share in &shares {
            let carried = share.cost.wrapping_sub(lambda.wrapping_mul(share.period)).max(0);
            let beyond = share.early.wrapping_add(carried).max(0);
            sum = sum.wrapping_add(share.utilization.wrapping_mul(deadline).wrapping_add(beyond).min(whole));
        }
        // Multiplied by D_k. Each term has an error of less than D_k + |T_i − D_i| + T_i, and the bound one of less
        // than (m − 1) D_k.
        let bound =
            (m as i64).wrapping_mul(whole).wrapping_sub((m as i64 - 1).wrapping_mul(lambda).wrapping_mul(deadline));
        let margin = (3 * n + m) as i64 * greatest as i64;
        let holds = if sum.saturating_add(margin) <= bound {
            true
        } else if sum > bound.saturating_add(margin) {
            false
        } else {
            exactly::<EARLY>(tasks, processors, k)
        };
        debug_assert_eq!(holds, exactly::<EARLY>(tasks, processors, k));
        if !holds {
            return Err(Failure::Task { task: k });
        }
    }
    Ok(())
}

/// Evaluates the condition as in the formula, with exact fractions.
#[cold]
fn exactly<const EARLY: bool>(tasks: &[Sporadic], processors: u32, k: usize) -> bool {
    let whole = |number: u64| BigRational::from_integer(number.into());
    let (zero, one) = (whole(0), whole(1));
    let deadline = whole(tasks[k].deadline);
    let lambda = whole(tasks[k].cost) / whole(tasks[k].deadline.min(tasks[k].period));
    let sum: BigRational = tasks
        .iter()
        .map(|task| {
            let (cost, period) = (whole(task.cost), whole(task.period));
            let utilization = &cost / &period;
            let carried = (cost - &lambda * &period).max(zero.clone());
            let early = if EARLY { &utilization * (period - whole(task.deadline)) } else { zero.clone() };
            (utilization + (early + carried).max(zero.clone()) / &deadline).min(one.clone())
        })
        .sum();
    sum <= whole(u64::from(processors)) - whole(u64::from(processors) - 1) * lambda
}
