//! Scheduling overheads under fixed priorities, with interrupts as tasks above all others.
//!
//! ```text
//!   tick: C = tick, T = Q        each release interrupt: C = release, T = T_i        both: J = latency
//!   C' = C + 2 (schedule + context switch) + cache,   J' = J + latency + release + ipi
//! ```
//! The tasks of the release interrupts are omitted if a dedicated processor handles them; only then is ipi added. The
//! cache delay is that of the largest working set among the other tasks.
//!
//! # Examples
//! ```
//! use lockwright_analysis::overheads::{Costs, Curve, Task, fp};
//! let mut costs = Costs::default();
//! (costs.tick, costs.quantum) = (Curve::constant(1), 10);
//! let task = Task { cost: 20, period: 100, deadline: 100, ..Task::default() };
//! let charged = fp::charge(&costs, false, &[task])?;
//! assert_eq!((charged.interrupts[0].cost, charged.interrupts[0].period), (1, 10));
//! # Ok::<(), lockwright_analysis::Failure>(())
//! ```

use super::{Costs, Task, cache_of_others};
use crate::Failure;

/// Charged tasks, with those of the interrupts.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub struct WithInterrupts {
    /// The interrupts, above all tasks: that of the tick, then those of the releases.
    pub interrupts: Vec<Task>,
    /// The charged tasks.
    pub tasks: Vec<Task>,
}

/// Charges scheduling overheads to `tasks` under fixed priorities.
///
/// If `dedicated` is true, a processor that executes no jobs handles the release interrupts. Times are in the unit of
/// the input. The source is in the [module](super).
///
/// # Errors
/// Returns [`Failure::Overload`] for a tick with a cost but no quantum, [`Failure::Task`] if a charged task does not
/// meet its deadline alone, and [`Failure::Overflow`] if a number does not fit.
pub fn charge(overheads: &Costs, dedicated: bool, tasks: &[Task]) -> Result<WithInterrupts, Failure> {
    let n = tasks.len() as u64;
    if n == 0 {
        return Ok(WithInterrupts::default());
    }
    let (tick, release, latency) = (overheads.tick(n)?, overheads.release.at(n), overheads.release_latency.at(n));
    let mut interrupts = Vec::new();
    let jitter = latency.ceil()?;
    let mut add = |cost: u64, period: u64| {
        interrupts.push(Task { cost, period, deadline: period, jitter, ..Task::default() });
    };
    if tick.is_positive() {
        add(tick.ceil()?, overheads.quantum);
    }
    if !dedicated && release.is_positive() {
        let cost = release.ceil()?;
        tasks.iter().for_each(|task| add(cost, task.period));
    }
    let mut delay = latency + release;
    if dedicated {
        delay = delay + overheads.ipi_latency.at(n);
    }
    let delay = delay.ceil()?;
    let switches = overheads.switch(n) * 2.into();
    let mut charged = Vec::with_capacity(tasks.len());
    for (task, cache) in tasks.iter().zip(cache_of_others(overheads, tasks)) {
        let cost = (&switches + &cache).ceil()?.checked_add(task.cost).ok_or(Failure::Overflow)?;
        let jitter = task.jitter.checked_add(delay).ok_or(Failure::Overflow)?;
        charged.push(Task { cost, jitter, ..task.clone() });
    }
    Ok(WithInterrupts { interrupts, tasks: super::fitting(charged)? })
}
