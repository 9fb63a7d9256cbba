//! BCL for global EDF, iterated over slacks.
//!
//! ```text
//! s_k = D_k − C_k − ⌊Σ_{i≠k} min(W_i, D_k − C_k + 1) / m⌋
//! W_i = ⌊D_k / T_i⌋ C_i + min(C_i, max(0, D_k mod T_i − s_i))
//! ```
//! s_k is the slack of task k, and W_i the work of task i. The iteration starts with s = 0 and ends when all slacks are
//! at least 0 in one round, or when none grows. The source is Bertogna, Cirinei, Lipari, *Schedulability analysis of
//! global scheduling algorithms on multiprocessor platforms*, IEEE TPDS 20(4), 2009.

use super::set::{Deadlines, check, laid_out};
use crate::{Failure, Limit, Sporadic};

/// The most rounds over all tasks.
pub const ROUNDS_MAX: u64 = 1 << 16;

/// Tests whether all deadlines are met under global EDF on `processors` processors, by iterating over slacks (Bertogna,
/// Cirinei, Lipari, 2009). Deadlines must not exceed periods.
///
/// # Errors
/// Returns [`Failure::Task`] with the first task without slack in the last round, [`Failure::Diverged`] after
/// [`ROUNDS_MAX`] rounds, and the errors of invalid sets (see the [module](super)).
pub fn bcl_iterative(tasks: &[Sporadic], processors: u32) -> Result<(), Failure> {
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
    let mut slack = vec![0_u64; set.len()];
    let mut failed = 0;
    // BOUND: ROUNDS_MAX; in each round except the last some slack grows.
    for _ in 0..ROUNDS_MAX {
        let (mut holds, mut grown) = (true, false);
        for (k, own) in set.iter().enumerate() {
            let most = own.deadline - own.cost + 1;
            let mut work = 0_u64;
            for (i, other) in set.iter().enumerate() {
                let (jobs, rest) = other.divide(own.deadline);
                let carried = if CARRY_IN { other.cost.min(rest.saturating_sub(slack[i])) } else { 0 };
                let all = jobs.wrapping_mul(other.cost).wrapping_add(carried).min(most);
                work = work.wrapping_add(if i == k { 0 } else { all });
            }
            match (own.deadline - own.cost).checked_sub(work / u64::from(processors)) {
                Some(found) => {
                    grown |= found > slack[k];
                    slack[k] = slack[k].max(found);
                }
                None => {
                    if holds {
                        failed = k;
                    }
                    holds = false;
                }
            }
        }
        if holds {
            return Ok(());
        }
        if !grown {
            return Err(Failure::Task { task: failed });
        }
    }
    Err(Failure::Diverged { task: failed, limit: Limit { name: "rounds", most: ROUNDS_MAX } })
}
