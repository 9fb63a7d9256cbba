//! FF-DBF, the forced-forward demand test for global EDF.
//!
//! ```text
//! some speed σ ≥ max δ has, at all t:  Σ_i f_i(t, σ) ≤ (m − (m − 1) σ) t
//! f_i(t, σ) = q C_i + (C_i if r ≥ D_i, else max(0, C_i − (D_i − r) σ)),   q = ⌊t/T_i⌋, r = t mod T_i
//! ```
//! The source is Baruah, Bonifaci, Marchetti-Spaccamela, Stiller, *Improved multiprocessor global schedulability
//! analysis*, Real-Time Systems 46, 2010.
//!
//! The test tries max δ itself and all multiples of 1/50 above it, up to min(1, (m − U)/(m − 1) − 1/10), as
//! SchedCAT does. In this range it is fast, for two reasons:
//! - f_i is at most u_i t + u_i (T_i − D_i), so the condition always holds from t = Σ u_i (T_i − D_i) / (m − (m
//!   − 1) σ − U) on; with D = T it holds at all t.
//! - f_i is continuous and its slope decreases only at t = q T_i + D_i, so the worst case is at one of these points.

use super::set::{Deadlines, Task, check, laid_out};
use crate::rows::exact::compare_sum;
use crate::{Failure, Limit, Sporadic};
use std::cmp::Ordering;

/// The most points t that are examined, for all speeds together.
pub const POINTS_MAX: u64 = 1 << 20;

/// The speeds are multiples of the inverse of this number.
const SPEEDS: u64 = 50;

/// The inverse of the least distance of the speed from (m − U)/(m − 1).
const MARGIN: u64 = 10;

/// The number of fractional bits.
const BITS: u32 = 32;

/// Tests whether all deadlines are met under global EDF on two or more processors, by forced-forward demand. Deadlines
/// must not exceed periods.
///
/// The source is Baruah, Bonifaci, Marchetti-Spaccamela, Stiller, 2010.
///
/// # Errors
/// Returns [`Failure::Task`] with the densest task if no speed is left to try, [`Failure::Demand`] with the last
/// interval that refuted a speed, [`Failure::Unsupported`] for fewer than two processors, [`Failure::Diverged`] after
/// [`POINTS_MAX`] points, and the errors of invalid sets (see the [module](super)).
pub fn ff_dbf(tasks: &[Sporadic], processors: u32) -> Result<(), Failure> {
    test::<true>(tasks, processors)
}

/// The mutant with f_i(t, σ) = q C_i if r < D_i.
///
/// # Errors
/// Returns the errors of the test.
#[cfg(feature = "mutants")]
pub fn mutant(tasks: &[Sporadic], processors: u32) -> Result<(), Failure> {
    test::<false>(tasks, processors)
}

/// A speed, σ = over / under.
#[derive(Clone, Copy)]
struct Speed {
    over: u64,
    under: u64,
}

fn test<const FORCED: bool>(tasks: &[Sporadic], processors: u32) -> Result<(), Failure> {
    check(tasks, processors, Deadlines::Constrained)?;
    let Some(mut densest) = tasks.first() else { return Ok(()) };
    if processors < 2 {
        return Err(Failure::Unsupported { task: 0, what: "forced-forward demand needs two processors" });
    }
    let mut task = 0;
    for (index, other) in tasks.iter().enumerate() {
        if u128::from(other.cost) * u128::from(densest.deadline) > u128::from(densest.cost) * u128::from(other.deadline)
        {
            (task, densest) = (index, other);
        }
    }
    let set = laid_out(tasks);
    let mut left = POINTS_MAX;
    // The point that refuted the last speed is tried first for the next one.
    let mut refuted: Option<(u64, Failure)> = None;
    let least = Speed { over: densest.cost, under: densest.deadline };
    // ⌊max δ · 50⌋ fits, as max δ is at most 1.
    let above = (u128::from(densest.cost) * u128::from(SPEEDS) / u128::from(densest.deadline)) as u64 + 1;
    let grid = (above..=SPEEDS).map(|over| Speed { over, under: SPEEDS });
    for speed in std::iter::once(least).chain(grid) {
        if !in_range(tasks, processors, speed) {
            break;
        }
        if let Some((end, _)) = refuted
            && demand::<FORCED>(&set, processors, speed, end).is_err()
        {
            continue;
        }
        match refutation::<FORCED>(&set, processors, speed, &mut left)? {
            None => return Ok(()),
            some => refuted = some,
        }
    }
    Err(refuted.map_or(Failure::Task { task }, |(_, why)| why))
}

/// Returns whether σ ≤ 1 and σ ≤ (m − U)/(m − 1) − 1/MARGIN.
fn in_range(tasks: &[Sporadic], processors: u32, speed: Speed) -> bool {
    let (over, under) = (u128::from(speed.over), u128::from(speed.under));
    let times = u128::from(processors) - 1;
    let (n, d) = (times * (over * u128::from(MARGIN) + under), under * u128::from(MARGIN));
    // The check of the set leaves room for the factors MARGIN and m − 1, except for the greatest times. Those count
    // as out of range.
    let (Ok(n), Ok(d)) = (u64::try_from(n), u64::try_from(d)) else { return false };
    let all = tasks.iter().map(|task| (task.cost, task.period)).chain([(n, d)]);
    compare_sum(all, u64::from(processors)) != Ordering::Greater
}

/// Returns a point at which the condition does not hold, with the failure, or `None`.
fn refutation<const FORCED: bool>(
    set: &[Task],
    processors: u32,
    speed: Speed,
    left: &mut u64,
) -> Result<Option<(u64, Failure)>, Failure> {
    let last = last_point(set, processors, speed)?;
    for (k, task) in set.iter().enumerate() {
        let mut end = task.deadline;
        // BOUND: `POINTS_MAX` for all speeds together.
        while end <= last {
            if *left == 0 {
                return Err(Failure::Diverged { task: k, limit: Limit { name: "points", most: POINTS_MAX } });
            }
            *left -= 1;
            if let Err(why) = demand::<FORCED>(set, processors, speed, end) {
                return Ok(Some((end, why)));
            }
            let Some(next) = end.checked_add(task.period) else { break };
            end = next;
        }
    }
    Ok(None)
}

/// Returns at least Σ u_i (T_i − D_i) / (m − (m − 1) σ − U).
fn last_point(set: &[Task], processors: u32, speed: Speed) -> Result<u64, Failure> {
    let (mut early, mut utilization) = (0_u128, 0_u128);
    for task in set {
        // Rounded up.
        early += (u128::from(task.cost) * u128::from(task.period - task.deadline)).div_ceil(u128::from(task.period));
        utilization += (u128::from(task.cost) << BITS) / u128::from(task.period) + 1;
    }
    if early == 0 {
        return Ok(0);
    }
    let used = ((u128::from(processors - 1) * u128::from(speed.over)) << BITS) / u128::from(speed.under) + 1;
    let room = (u128::from(processors) << BITS).saturating_sub(used + utilization);
    if room == 0 {
        return Err(Failure::Overflow);
    }
    u64::try_from((early << BITS).div_ceil(room)).map_err(|_| Failure::Overflow)
}

/// Evaluates the condition at t, multiplied by the denominator of the speed.
fn demand<const FORCED: bool>(set: &[Task], processors: u32, speed: Speed, end: u64) -> Result<(), Failure> {
    let (over, under) = (u128::from(speed.over), u128::from(speed.under));
    let mut sum = 0_u128;
    for task in set {
        let (jobs, rest) = task.divide(end);
        let missing = u128::from(task.deadline.saturating_sub(rest)) * over;
        let whole = u128::from(task.cost) * under;
        let forced = if FORCED || missing == 0 { whole.saturating_sub(missing) } else { 0 };
        sum += u128::from(jobs) * whole + forced;
    }
    let times = u128::from(processors);
    if sum <= (times * under - (times - 1) * over).saturating_mul(u128::from(end)) {
        Ok(())
    } else {
        Err(Failure::Demand {
            interval: end,
            demand: u64::try_from(sum.div_ceil(under)).map_err(|_| Failure::Overflow)?,
        })
    }
}
