//! Tardiness under global EDF, after Devi and Anderson. D = T, U ≤ m.
//!
//! ```text
//! x = (the Λ greatest C + the m − Λ greatest b − least C) / (m − the Λ − 1 greatest u),  Λ = ⌈U⌉ − 1, b the longest non-preemptive section of a task
//! ```
//! rounded up and at least 0. A job of i completes within T_i + C_i + x: its tardiness is at most C_i + x. Jobs that are late delay their successors' starts,
//! not their releases. Preemptive, x is 0 on one processor.
//!
//! Devi, Anderson, *Tardiness bounds under global EDF scheduling on a multiprocessor*, Real-Time Systems 38, 2008; corollary 4.11 of Devi's thesis, 2006.
//! With sections the sum has m − Λ of them: as many processors may have begun less urgent work when a job arrives. SchedCAT has m − Λ − 1, which is
//! exceeded: see docs/errata.md.

use super::set::{Deadlines, Greatest, check};
use crate::exact::compare_sum;
use crate::{Failure, Sporadic};
use num_rational::BigRational;
use std::cmp::Ordering;

/// Digits behind the point, in bits.
const BITS: u32 = 32;

/// So many greatest numbers are kept without an allocation.
const FEW: usize = 7;

/// The tardiness beyond its own cost that any job may have under preemptive global EDF, x.
///
/// # Errors
/// [`Failure::Overload`] where U > m.
pub fn devi_anderson(tasks: &[Sporadic], processors: u32) -> Result<u64, Failure> {
    tardiness(tasks, |_| 0, 0, processors)
}

/// The same where tasks have non-preemptive sections, `sections` the longest of each; C for those that are not preemptive at all.
///
/// # Errors
/// [`Failure::Overload`] where U > m; [`Failure::Unsupported`] where `sections` is of another length, or a section longer than its task.
pub fn devi_anderson_sections(tasks: &[Sporadic], sections: &[u64], processors: u32) -> Result<u64, Failure> {
    if let Some(task) = (0..tasks.len().max(sections.len()))
        .find(|&task| tasks.get(task).zip(sections.get(task)).is_none_or(|(task, &section)| section > task.cost))
    {
        return Err(Failure::Unsupported { task, what: "its section is not one of its own" });
    }
    tardiness(tasks, |task| sections[task], processors, processors)
}

/// x as SchedCAT computes it where no task is preemptive. Not a bound: for comparison alone.
///
/// It has m − Λ − 1 sections; where Λ = 0 it subtracts all u but the least from m, and on one processor it has none.
///
/// # Errors
/// [`Failure::Overload`] where U > m.
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

/// `blocking` less Λ is how many sections count.
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
    // U is at least `sum`, and less than `sum` + `count`.
    let whole = (sum + count) >> BITS;
    let ceiling =
        if sum > whole << BITS { whole + 1 } else { whole + u64::from(compare(tasks, whole) == Ordering::Greater) };
    if ceiling > u64::from(processors) {
        return Err(Failure::Overload);
    }
    // No more than m − 1, which is what was kept.
    let late = ceiling.saturating_sub(1) as usize;
    let demand = (costs.first(late) + blocked(tasks, &section, blocking, late)).saturating_sub(least);
    let reduced = late.saturating_sub(1);
    let room = (u64::from(processors) << BITS) - shares.first(reduced);
    if demand >> (BITS - 1) != 0 {
        return exactly(tasks, section, blocking, processors);
    }
    // Rounded up: the greatest x that the room's upper bound admits. The lower bound must admit the same.
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

/// The bound as it is written.
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
    fn the_quick_way_answers_what_is_written() {
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
        // U = 2 of thirds, which no binary fraction holds: Λ = 1.
        let third = Sporadic { cost: 1, period: 3, deadline: 3 };
        assert_eq!(devi_anderson(&[third; 6], 2), Ok(0));
        assert_eq!(devi_anderson(&[third; 7], 2), Err(Failure::Overload));
        assert_eq!(devi_anderson(&[], 0), Ok(0));
        assert_eq!(devi_anderson(&[third; 3], 1), Ok(0));
        assert_eq!(devi_anderson(&[third; 4], 1), Err(Failure::Overload));
    }
}
