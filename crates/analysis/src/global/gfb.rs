//! GFB, the density test for global EDF.
//!
//! ```text
//! Σ δ_i ≤ m − (m − 1) · max δ_i
//! ```
//! The source is Goossens, Funk, Baruah, *Priority-driven scheduling of periodic task systems on multiprocessors*,
//! Real-Time Systems 25, 2003, for implicit deadlines. With densities the test holds for constrained deadlines.

use super::set::{Deadlines, check};
use crate::rows::exact::compare_sum;
use crate::{Failure, Sporadic};
use std::cmp::Ordering;

/// The number of fractional bits.
const BITS: u32 = 32;

/// Tests whether all deadlines are met under global EDF on `processors` processors, by densities (Goossens, Funk,
/// Baruah, 2003). Deadlines must not exceed periods.
///
/// # Errors
/// Returns [`Failure::Task`] with the densest task if the condition does not hold, and the errors of invalid sets (see
/// the [module](super)).
pub fn gfb(tasks: &[Sporadic], processors: u32) -> Result<(), Failure> {
    test::<true>(tasks, processors)
}

/// The mutant that tests Σ δ ≤ m alone.
///
/// # Errors
/// Returns the errors of the test.
#[cfg(feature = "mutants")]
pub fn mutant(tasks: &[Sporadic], processors: u32) -> Result<(), Failure> {
    test::<false>(tasks, processors)
}

#[inline(always)]
fn test<const DENSEST: bool>(tasks: &[Sporadic], processors: u32) -> Result<(), Failure> {
    check(tasks, processors, Deadlines::Constrained)?;
    let (mut sum, mut greatest, mut wide) = (0_u64, 0_u64, 0_u64);
    for task in tasks {
        wide |= task.cost >> BITS;
        // Rounded down by less than one.
        let density = (task.cost << BITS) / task.deadline;
        sum = sum.wrapping_add(density);
        greatest = greatest.max(density);
    }
    let others = if DENSEST { u64::from(processors).saturating_sub(1) } else { 0 };
    let (count, bound) = (tasks.len() as u64, u64::from(processors) << BITS);
    if wide == 0 && (count + others) >> 24 == 0 && others >> 24 == 0 {
        let least = sum.wrapping_add(others.wrapping_mul(greatest));
        if least > bound {
            return Err(Failure::Task { task: densest(tasks) });
        }
        if least + count + others <= bound {
            debug_assert!(exactly(tasks, processors, others));
            return Ok(());
        }
    }
    if exactly(tasks, processors, others) { Ok(()) } else { Err(Failure::Task { task: densest(tasks) }) }
}

/// Returns the index of the greatest C/D.
#[cold]
fn densest(tasks: &[Sporadic]) -> usize {
    let mut found = 0;
    for (index, task) in tasks.iter().enumerate() {
        let (a, b) = (task, &tasks[found]);
        if u128::from(a.cost) * u128::from(b.deadline) > u128::from(b.cost) * u128::from(a.deadline) {
            found = index;
        }
    }
    found
}

#[cold]
fn exactly(tasks: &[Sporadic], processors: u32, others: u64) -> bool {
    let Some(most) = tasks.get(densest(tasks)) else { return true };
    let all = tasks.iter().map(|task| (task.cost, task.deadline));
    // (m − 1) C fits, as the check of the set includes such products.
    let with_densest = all.chain([(others * most.cost, most.deadline)]);
    compare_sum(with_densest, u64::from(processors)) != Ordering::Greater
}
