//! BCL, the test of Bertogna, Cirinei and Lipari for global EDF.
//!
//! ```text
//! for all k:  Σ_{i≠k} min(β_i, 1 − λ_k) < m (1 − λ_k),  or they are equal and some 0 < β_i ≤ 1 − λ_k
//! β_i = (n C_i + min(C_i, max(0, D_k − n T_i))) / D_k
//! n = 1 + ⌊(D_k − D_i) / T_i⌋, 0 if D_i > D_k;   λ_k = C_k / D_k
//! ```
//! The source is Bertogna, Cirinei, Lipari, *Improved schedulability analysis of EDF on multiprocessor platforms*,
//! ECRTS 2005. Multiplied by D_k, all terms are integers.

use super::set::{Deadlines, check, laid_out};
use crate::{Failure, Sporadic};

/// Tests whether all deadlines are met under global EDF on `processors` processors, by the test of Bertogna, Cirinei
/// and Lipari (ECRTS 2005). Deadlines must not exceed periods.
///
/// # Errors
/// Returns [`Failure::Task`] with the first task for which the condition does not hold, and the errors of invalid sets
/// (see the [module](super)).
pub fn bcl(tasks: &[Sporadic], processors: u32) -> Result<(), Failure> {
    test::<true>(tasks, processors)
}

/// The mutant without the job that was released before the window.
///
/// # Errors
/// Returns the errors of the test.
#[cfg(feature = "mutants")]
pub fn mutant(tasks: &[Sporadic], processors: u32) -> Result<(), Failure> {
    test::<false>(tasks, processors)
}

fn test<const CARRY_IN: bool>(tasks: &[Sporadic], processors: u32) -> Result<(), Failure> {
    check(tasks, processors, Deadlines::Constrained)?;
    let set = laid_out(tasks);
    for (k, own) in set.iter().enumerate() {
        let room = own.deadline - own.cost;
        let (mut sum, mut some_fits) = (0_u64, false);
        for (i, other) in set.iter().enumerate() {
            // 1 + ⌊(D_k − D_i)/T_i⌋ = ⌊(D_k + (T_i − D_i))/T_i⌋, which is 0 if D_i > D_k.
            let (jobs, rest) = other.divide(own.deadline.wrapping_add(other.period).wrapping_sub(other.deadline));
            // D_k − n T_i = rest − (T_i − D_i).
            let before = rest.saturating_sub(other.period.wrapping_sub(other.deadline));
            let carried = if CARRY_IN { other.cost.min(before) } else { 0 };
            let work = jobs.wrapping_mul(other.cost).wrapping_add(carried);
            let counts = i != k;
            sum = sum.wrapping_add(if counts { work.min(room) } else { 0 });
            some_fits |= counts & (work > 0) & (work <= room);
        }
        let whole = u64::from(processors).wrapping_mul(room);
        if !(sum < whole || (sum == whole && some_fits)) {
            return Err(Failure::Task { task: k });
        }
    }
    Ok(())
}
