//! Scheduling overheads for schedulers with fixed job priorities. The cost of a preemption is charged to the job that
//! preempts.
//!
//! ```text
//!   u_tick = tick / Q,   u_rel = sum of release / T_i,   s = 1 - u_tick - u_rel
//!   c_pre = (tick + latency u_tick + n release + latency u_rel) / s
//!   C' = (C + 2 (schedule + context switch) + cache) / s + 2 c_pre + ipi + release
//!   T' = T - latency,   D' = D - latency
//! ```
//! s is the share of the time that interrupts leave. If a dedicated processor handles the release interrupts, u_rel is
//! 0 and c_pre lacks its terms; only then is release added to C'. ipi is added if there are several processors. The
//! cache delay is that of the largest working set among the other tasks.
//!
//! # Examples
//! ```
//! use lockwright_analysis::overheads::jlfp::{self, Interrupts};
//! use lockwright_analysis::overheads::{Costs, Curve, Task};
//! let mut costs = Costs::default();
//! (costs.schedule, costs.context_switch) = (Curve::constant(1), Curve::constant(2));
//! let task = Task { cost: 20, period: 100, deadline: 100, ..Task::default() };
//! let tasks = [task];
//! let charged = jlfp::charge(&costs, Interrupts { processors: 1, dedicated: false }, &tasks)?;
//! assert_eq!(jlfp::quantise(&charged, &tasks)?[0].cost, 26);
//! # Ok::<(), lockwright_analysis::Failure>(())
//! ```

use super::{Costs, Fraction, Rising, Task, cache_of_others};
use crate::Failure;

/// The processors that handle interrupts.
///
/// This is a plain value: users write it as a literal, and it gets no further fields.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Interrupts {
    /// The number of processors that execute jobs.
    pub processors: u16,
    /// Whether an additional processor handles the release interrupts and executes no jobs.
    pub dedicated: bool,
}

/// A charged task before rounding.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Charged {
    /// The execution time, C'.
    pub cost: Fraction,
    /// The period, T'.
    pub period: Fraction,
    /// The deadline, D'.
    pub deadline: Fraction,
}

/// Charges scheduling overheads to `tasks` under a scheduler with fixed job priorities, such as EDF.
///
/// Times are in the unit of the input. [`quantise`] rounds the result. The source is in the [module](super).
///
/// # Errors
/// Returns [`Failure::Overload`] if interrupts leave no time or a tick has a cost but no quantum, [`Failure::Task`] if
/// a charged task does not meet its deadline alone, and [`Failure::Unsupported`] for a task without a period.
pub fn charge(overheads: &Costs, interrupts: Interrupts, tasks: &[Task]) -> Result<Vec<Charged>, Failure> {
    let charged = lengthened(overheads, interrupts, tasks)?;
    let is_late = |task: &Charged| task.cost > *(&task.period).min(&task.deadline);
    match charged.iter().position(is_late) {
        Some(task) => Err(Failure::Task { task }),
        None => Ok(charged),
    }
}

/// Like [`charge`], also if a charged task does not meet its deadline alone.
pub(super) fn lengthened(overheads: &Costs, interrupts: Interrupts, tasks: &[Task]) -> Result<Vec<Charged>, Failure> {
    let charges = Charges::new(overheads, interrupts, tasks)?;
    let charged = |(its, more): (&Task, &Fraction)| Charged {
        cost: (Fraction::from(its.cost) + more.clone()) / charges.share.clone() + charges.besides.clone(),
        period: Fraction::from(its.period) - charges.latency.clone(),
        deadline: Fraction::from(its.deadline) - charges.latency.clone(),
    };
    Ok(tasks.iter().zip(&charges.more).map(charged).collect())
}

/// The charges to tasks, whatever their execution times are.
struct Charges {
    /// s.
    share: Fraction,
    latency: Fraction,
    /// c_pre.
    preemption: Fraction,
    /// What a job causes besides its own execution: 2 c_pre + ipi + release.
    besides: Fraction,
    /// By task: the switches, and the cache delay.
    more: Vec<Fraction>,
}

/// Returns C' of each task, rounded up, as a function of C, and c_pre, rounded up.
pub(super) fn costs(overheads: &Costs, interrupts: Interrupts, tasks: &[Task]) -> Result<(Rising, u64), Failure> {
    let Charges { share, preemption, besides, more, .. } = Charges::new(overheads, interrupts, tasks)?;
    Ok((Rising::new(&(&Fraction::from(1) / &share), &besides, more), preemption.ceil()?))
}

impl Charges {
    fn new(overheads: &Costs, interrupts: Interrupts, tasks: &[Task]) -> Result<Self, Failure> {
        let n = tasks.len() as u64;
        let dedicated = interrupts.dedicated;
        let at = |curve: &super::Curve| curve.at(n);
        let (release, latency) = (at(&overheads.release), at(&overheads.release_latency));
        if let Some(task) = tasks.iter().position(|task| task.period == 0) {
            return Err(Failure::Unsupported { task, what: "its period is 0" });
        }
        let tick = overheads.tick(n)?;
        let u_tick = &tick / &Fraction::from(overheads.quantum.max(1));
        let (mut u_release, mut releases) = (Fraction::default(), Fraction::default());
        if !dedicated {
            let each = tasks.iter().map(|task| &release / &Fraction::from(task.period));
            u_release = Fraction::sum(&each.collect::<Vec<_>>());
            releases = &release * &Fraction::from(n);
        }
        let taken = &u_tick + &u_release;
        let s = Fraction::from(1) - taken.clone();
        if !s.is_positive() {
            return Err(Failure::Overload);
        }
        let preemption = (tick + releases + &latency * &taken) / s.clone();
        let mut besides = &preemption * &Fraction::from(2);
        if dedicated || interrupts.processors > 1 {
            besides = besides + at(&overheads.ipi_latency);
        }
        if dedicated {
            besides = besides + release;
        }
        let switches = overheads.switch(n) * Fraction::from(2);
        let more = cache_of_others(overheads, tasks).into_iter().map(|cache| switches.clone() + cache).collect();
        Ok(Self { share: s, latency, preemption, besides, more })
    }
}

/// Rounds charged tasks to integers: execution times up, periods and deadlines down. Everything else is taken from
/// `tasks`.
///
/// # Errors
/// Returns [`Failure::Task`] if a rounded task does not meet its deadline alone, and [`Failure::Overflow`] if a number
/// does not fit.
pub fn quantise(charged: &[Charged], tasks: &[Task]) -> Result<Vec<Task>, Failure> {
    let whole = |(charged, task): (&Charged, &Task)| {
        let (cost, period, deadline) = (charged.cost.ceil()?, charged.period.floor()?, charged.deadline.floor()?);
        Ok(Task { cost, period, deadline, ..task.clone() })
    };
    let tasks: Vec<Task> = charged.iter().zip(tasks).map(whole).collect::<Result<_, Failure>>()?;
    if let Some(task) = tasks.iter().position(|task| task.period.min(task.deadline) == 0) {
        return Err(Failure::Task { task });
    }
    super::fitting(tasks)
}

#[cfg(test)]
mod tests {
    use super::super::{CacheDelay, Curve};
    use super::*;

    fn tasks() -> Vec<Task> {
        let task = |cost, period, working_set| Task { cost, period, deadline: period, working_set, ..Task::default() };
        vec![task(10, 100, 1), task(20, 200, 50), task(30, 300, 9)]
    }

    #[test]
    fn without_overheads_nothing_changes() {
        let interrupts = Interrupts { processors: 1, dedicated: false };
        let charged = charge(&Costs::default(), interrupts, &tasks()).unwrap();
        assert_eq!(quantise(&charged, &tasks()), Ok(tasks()));
        assert_eq!(charge(&Costs::default(), interrupts, &[]), Ok(vec![]));
    }

    #[test]
    fn the_largest_working_set_of_the_others_counts() {
        let cache = CacheDelay { levels: vec![Curve::through(&[(0, 0), (10, 10)]).unwrap()] };
        let overheads = Costs { cache, ..Costs::default() };
        let charged = charge(&overheads, Interrupts { processors: 1, dedicated: false }, &tasks()).unwrap();
        let costs: Vec<u64> = quantise(&charged, &tasks()).unwrap().iter().map(|task| task.cost).collect();
        assert_eq!(costs, [60, 29, 80]);
    }

    #[test]
    fn too_many_interrupts_are_an_overload() {
        let interrupts = Interrupts { processors: 1, dedicated: false };
        let tick = |cost, quantum| Costs { tick: Curve::constant(cost), quantum, ..Costs::default() };
        assert_eq!(charge(&tick(10, 10), interrupts, &tasks()), Err(Failure::Overload));
        assert_eq!(charge(&tick(1, 0), interrupts, &tasks()), Err(Failure::Overload));
        assert_eq!(charge(&tick(90, 100), interrupts, &tasks()), Err(Failure::Task { task: 0 }));
        let late = Costs { release_latency: Curve::constant(1_000), ..Costs::default() };
        assert_eq!(charge(&late, interrupts, &tasks()), Err(Failure::Task { task: 0 }));
    }
}
