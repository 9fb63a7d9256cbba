//! Tardiness under global EDF, by Devi and Anderson, for D = T and U ≤ m.
//!
//! ```text
//! x = (the Λ greatest C + the m − Λ greatest b − the least C) / (m − the Λ − 1 greatest u)
//! Λ = ⌈U⌉ − 1
//! ```
//! b is the longest non-preemptive section of a task. x is rounded up and at least 0. A job of i completes within T_i +
//! C_i + x of its release, so its tardiness is at most C_i + x. Late jobs delay the starts of their successors, not
//! their releases. For preemptive tasks on one processor, x is 0.
//!
//! The sources are Devi, Anderson, *Tardiness bounds under global EDF scheduling on a multiprocessor*, Real-Time
//! Systems 38, 2008, and corollary 4.11 of Devi's thesis, 2006. With sections the sum contains m − Λ of them, as
//! that many processors may have begun less urgent work when a job arrives. SchedCAT uses m − Λ − 1, which is not
//! a bound: see docs/errata.md.

use super::set::{Deadlines, Greatest, check};
use crate::rows::exact::compare_sum;
use crate::{Failure, Sporadic};
use num_rational::BigRational;
use std::cmp::Ordering;

/// The number of fractional bits.
const BITS: u32 = 32;

/// The number of greatest values that are kept without allocation.
const FEW: usize = 7;

/// Returns x: under preemptive global EDF on `processors` processors, the tardiness of a job of task i is at most C_i +
/// x.
///
/// Deadlines must equal periods. x is in the unit of the input. The source is Devi, Anderson, 2008.
///
/// # Errors
/// Returns [`Failure::Overload`] if U > m, and the errors of invalid sets (see the [module](super)).
pub fn devi_anderson(tasks: &[Sporadic], processors: u32) -> Result<u64, Failure> {
    tardiness(tasks, |_| 0, 0, processors)
}

/// Like [`devi_anderson`], for tasks with non-preemptive sections.
///
/// `sections` contains the length of the longest section of each task, which is C for a non-preemptive task.
///
/// # Errors
/// Returns the errors of [`devi_anderson`], and [`Failure::Unsupported`] if `sections` has another length, or a section
/// is longer than its task.
pub fn devi_anderson_sections(tasks: &[Sporadic], sections: &[u64], processors: u32) -> Result<u64, Failure> {
    if let Some(task) = (0..tasks.len().max(sections.len()))
        .find(|&task| tasks.get(task).zip(sections.get(task)).is_none_or(|(task, &section)| section > task.cost))
    {
        return Err(Failure::Unsupported { task, what: "its section is missing or longer than the task" });
    }
    tardiness(tasks, |task| sections[task], processors, processors)
}

/// Returns x as SchedCAT computes it for non-preemptive tasks. It is not a bound, and serves for comparison only.
///
/// It contains m − Λ − 1 sections. If Λ = 0, it subtracts all u except the least from m. On one processor, it
/// contains no section.
///
/// # Errors
/// Returns the errors of [`devi_anderson`].
pub fn devi_anderson_non_preemptive_as_published(tasks: &[Sporadic], processors: u32) -> Result<u64, Failure> {
    let x = tardiness(tasks, |task| tasks[task].cost, processors.saturating_sub(1), processors)?;
    if x == 0 || compare(tasks, 1) == Ordering::Greater {
        return Ok(x);
    }
    let shares = || tasks.iter().map(|task| whole(task.cost) / whole(task.period));
    let least = tasks.iter().map(|task| task.cost).min().unwrap_or(0);
    let demand = blocked(tasks, |task| tasks[task].cost, processors - 1, 0).saturating_sub(least);
    let room = whole(u64::from(processors)) - shares().sum::<BigRational>() + shares().min().unwrap_or(whole(0));
    u64::try_from((whole(demand) / room).ceil().to_integer()).map_err(|_| Failure::Overflow)
}

fn whole(number: u64) -> BigRational {
    BigRational::from_integer(number.into())
}

/// The number of sections that count is `blocking` minus Λ.
#[inline(always)]
fn tardiness(
    tasks: &[Sporadic],
    section: impl Fn(usize) -> u64,
    blocking: u32,
    processors: u32,
) -> Result<u64, Failure> {
    check(tasks, processors, Deadlines::Implicit)?;
    if tasks.is_empty() || (processors == 1 && blocking == 0) {
        return match compare_sum(tasks.iter().map(|task| (task.cost, task.period)), u64::from(processors)) {
            Ordering::Greater => Err(Failure::Overload),
            _ => Ok(0),
        };
    }
    let kept = (processors as usize - 1).min(tasks.len());
    if kept <= FEW {
        let (mut costs, mut shares) = ([0; FEW], [0; FEW]);
        let kept = (Greatest::new(&mut costs[..kept]), Greatest::new(&mut shares[..kept]));
        quickly(tasks, section, blocking, processors, kept)
    } else {
        let (mut costs, mut shares) = (vec![0; kept], vec![0; kept]);
        let kept = (Greatest::new(&mut costs), Greatest::new(&mut shares));
        quickly(tasks, section, blocking, processors, kept)
    }
}

#[inline(always)]
fn quickly(
    tasks: &[Sporadic],
    section: impl Fn(usize) -> u64,
    blocking: u32,
    processors: u32,
    (mut costs, mut shares): (Greatest<'_>, Greatest<'_>),
) -> Result<u64, Failure> {
    let (mut sum, mut least, mut wide) = (0_u64, u64::MAX, 0_u64);
    for task in tasks {
        wide |= task.cost >> BITS;
        // Rounded down by less than one.
        let utilization = (task.cost << BITS) / task.period;
        sum = sum.wrapping_add(utilization);
        least = least.min(task.cost);
        costs.add(task.cost);
        shares.add(utilization);
    }
    let count = tasks.len() as u64;
    if (wide | (count + u64::from(processors)) >> 24) != 0 {
        return exactly(tasks, section, blocking, processors);
    }
    // U is at least `sum` and less than `sum` + `count`.
    let whole = (sum + count) >> BITS;
    let ceiling =
        if sum > whole << BITS { whole + 1 } else { whole + u64::from(compare(tasks, whole) == Ordering::Greater) };
    if ceiling > u64::from(processors) {
        return Err(Failure::Overload);
    }
    // At most m − 1, which is the number of values that were kept.
    let late = ceiling.saturating_sub(1) as usize;
    let demand = (costs.first(late) + blocked(tasks, &section, blocking, late)).saturating_sub(least);
    let reduced = late.saturating_sub(1);
    let room = (u64::from(processors) << BITS) - shares.first(reduced);
    if demand >> (BITS - 1) != 0 {
        return exactly(tasks, section, blocking, processors);
    }
    // Rounded up: the least x for the upper bound of the room. It must be sufficient for the lower bound as well.
    let demand = demand << BITS;
    let x = demand.div_ceil(room);
    if x == 0 || u128::from(x) * u128::from(room - reduced as u64) >= u128::from(demand) {
        Ok(x)
    } else {
        exactly(tasks, section, blocking, processors)
    }
}

fn blocked(tasks: &[Sporadic], section: impl Fn(usize) -> u64, blocking: u32, late: usize) -> u64 {
    let count = (blocking as usize).saturating_sub(late).min(tasks.len());
    if count == 0 {
        return 0;
    }
    let mut room = vec![0; count];
    let mut sections = Greatest::new(&mut room);
    for task in 0..tasks.len() {
        sections.add(section(task));
    }
    sections.sum()
}

#[cold]
fn compare(tasks: &[Sporadic], whole: u64) -> Ordering {
    compare_sum(tasks.iter().map(|task| (task.cost, task.period)), whole)
}

/// Evaluates the bound as in the formula, with exact fractions.
#[cold]
fn exactly(tasks: &[Sporadic], section: impl Fn(usize) -> u64, blocking: u32, processors: u32) -> Result<u64, Failure> {
    let mut shares: Vec<BigRational> = tasks.iter().map(|task| whole(task.cost) / whole(task.period)).collect();
    let ceiling = shares.iter().sum::<BigRational>().ceil().to_integer();
    let ceiling = u64::try_from(ceiling).map_err(|_| Failure::Overflow)?;
    if ceiling > u64::from(processors) {
        return Err(Failure::Overload);
    }
    shares.sort_by(|a, b| b.cmp(a));
    let late = ceiling.saturating_sub(1) as usize;
    let mut costs: Vec<u64> = tasks.iter().map(|task| task.cost).collect();
    costs.sort_by(|a, b| b.cmp(a));
    let demand = costs.iter().take(late).sum::<u64>() + blocked(tasks, section, blocking, late);
    let demand = demand.saturating_sub(costs.last().copied().unwrap_or(0));
    let room = whole(u64::from(processors)) - shares.iter().take(late.saturating_sub(1)).sum::<BigRational>();
    u64::try_from((whole(demand) / room).ceil().to_integer()).map_err(|_| Failure::Overflow)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;

    #[test]
    fn the_fast_bound_equals_the_exact_one() {
        let mut random = Rng::with_seed(1);
        let (mut bounded, mut overloaded) = (0, 0);
        for round in 0..20_000 {
            let m = random.u32(2..=5);
            let scale = [10, 1000, 1 << 29, 1 << 40][round % 4];
            let tasks: Vec<Sporadic> = (0..random.usize(1..=9))
                .map(|_| {
                    let period = random.u64(1..=scale);
                    Sporadic { cost: random.u64(0..=period), period, deadline: period }
                })
                .collect();
            for blocking in [0, m - 1, m] {
                let quick = tardiness(&tasks, |task| tasks[task].cost, blocking, m);
                assert_eq!(quick, exactly(&tasks, |task| tasks[task].cost, blocking, m), "{tasks:?} {m} {blocking}");
                *if quick.is_ok() { &mut bounded } else { &mut overloaded } += 1;
            }
        }
        assert!(bounded > 10_000 && overloaded > 10_000, "{bounded} {overloaded}");
    }

    #[test]
    fn whole_utilizations_have_an_exact_ceiling() {
        // U = 2 as a sum of thirds, which no binary fraction represents: Λ = 1.
        let third = Sporadic { cost: 1, period: 3, deadline: 3 };
        assert_eq!(devi_anderson(&[third; 6], 2), Ok(0));
        assert_eq!(devi_anderson(&[third; 7], 2), Err(Failure::Overload));
        assert_eq!(devi_anderson(&[], 0), Ok(0));
        assert_eq!(devi_anderson(&[third; 3], 1), Ok(0));
        assert_eq!(devi_anderson(&[third; 4], 1), Err(Failure::Overload));
    }
}
