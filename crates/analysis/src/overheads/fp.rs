//! Scheduling overheads under fixed priorities: interrupts are tasks above all others.
//!
//! ```text
//! tick: C = tick, T = Q; one task for each release interrupt, unless a processor of its own serves these: C = release, T = T_i;  J = latency
//! C' = C + 2 (schedule + context switch) + cache, J' = J + latency + release + ipi
//! ```
//! ipi only where a processor of its own serves release interrupts. cache is that of the largest working set among the other tasks.

use super::{Overheads, Task, cache_of_others};
use crate::Failure;

/// Tasks, and those of the interrupts.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct WithInterrupts {
    /// Above all others: the tick's, then those of releases.
    pub interrupts: Vec<Task>,
    /// The tasks, charged.
    pub tasks: Vec<Task>,
}

/// Charges scheduling to `tasks`. `dedicated`: a processor that executes no jobs serves release interrupts.
///
/// # Errors
/// [`Failure::Overload`] for a tick without a quantum; [`Failure::Task`] where a task no longer meets its deadline alone; [`Failure::Overflow`].
pub fn charge(overheads: &Overheads, dedicated: bool, tasks: &[Task]) -> Result<WithInterrupts, Failure> {
    let n = tasks.len() as u64;
    if n == 0 {
        return Ok(WithInterrupts::default());
    }
    let (tick, release, latency) = (overheads.tick.at(n), overheads.release.at(n), overheads.release_latency.at(n));
    let mut interrupts = Vec::new();
    let jitter = latency.ceil()?;
    let mut add = |cost: u64, period: u64| {
        interrupts.push(Task { cost, period, deadline: period, jitter, ..Task::default() });
    };
    if tick.is_positive() {
        if overheads.quantum == 0 {
            return Err(Failure::Overload);
        }
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
    let switches = (overheads.schedule.at(n) + overheads.context_switch.at(n)) * 2.into();
    let mut charged = Vec::with_capacity(tasks.len());
    for (task, cache) in tasks.iter().zip(cache_of_others(overheads, tasks)) {
        let cost = (&switches + &cache).ceil()?.checked_add(task.cost).ok_or(Failure::Overflow)?;
        let jitter = task.jitter.checked_add(delay).ok_or(Failure::Overflow)?;
        charged.push(Task { cost, jitter, ..task.clone() });
    }
    Ok(WithInterrupts { interrupts, tasks: super::fitting(charged)? })
}
