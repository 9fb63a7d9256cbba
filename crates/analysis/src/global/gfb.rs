//! GFB, the density test.
//!
//! ```text
//! Σ δ_i ≤ m − (m − 1) · max δ_i
//! ```
//! Goossens, Funk, Baruah, *Priority-driven scheduling of periodic task systems on multiprocessors*, Real-Time Systems 25, 2003, for implicit
//! deadlines; with densities, for constrained ones.

use super::set::{Deadlines, check};
use crate::exact::compare_sum;
use crate::{Failure, Sporadic};
use std::cmp::Ordering;

/// Digits behind the point, in bits.
const BITS: u32 = 32;

/// Whether no deadline is missed under global EDF. D ≤ T.
///
/// # Errors
/// [`Failure::Task`] names the densest task where the condition does not hold.
pub fn gfb(tasks: &[Sporadic], processors: u32) -> Result<(), Failure> {
    test::<true>(tasks, processors)
}

/// Σ δ ≤ m alone.
///
/// # Errors
/// As the test's.
#[cfg(feature = "twins")]
pub fn twin(tasks: &[Sporadic], processors: u32) -> Result<(), Failure> {
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

/// The index of the greatest C/D.
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
    // (m − 1) C fits: the set was checked for such products.
    let with_densest = all.chain([(others * most.cost, most.deadline)]);
    compare_sum(with_densest, u64::from(processors)) != Ordering::Greater
}
