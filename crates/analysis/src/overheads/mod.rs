//! Overheads charged to tasks, so that analyses without overheads hold for tasks with them.
//!
//! Each function takes what the platform costs ([`Overheads`]) and tasks, and gives tasks whose parameters bear it. Brandenburg, Scheduling and
//! locking in multiprocessor real-time operating systems, dissertation, 2011, chapters 3 and 7; in the form SchedCAT computes, in exact fractions.
//!
//! | file | what | for |
//! |---|---|---|
//! | [`jlfp`] | scheduling, interrupts, preemptions, centred on the preempted job | EDF, FIFO and others whose jobs keep their priority |
//! | [`fp`] | the same, interrupts as tasks above all others | fixed priorities |
//! | [`locking`] | lock operations, system calls, wake-ups | spinlocks, semaphores, DPCP |
//!
//! Charge locking first: it lengthens sections and execution, and assumes no interrupts; then scheduling.

mod curve;
pub mod fp;
mod fraction;
pub mod jlfp;
pub mod locking;

use crate::{Demand, Failure};
pub use curve::Curve;
pub use fraction::Fraction;

/// What a platform's mechanisms cost, in the tasks' unit of time. Each is a [`Curve`] over the number of tasks.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Overheads {
    /// Between two ticks, Q; above 0 where a tick costs anything.
    pub quantum: u64,
    /// A tick interrupt.
    pub tick: Curve,
    /// A release interrupt.
    pub release: Curve,
    /// From an event to its interrupt.
    pub release_latency: Curve,
    /// A scheduling decision.
    pub schedule: Curve,
    /// A context switch.
    pub context_switch: Curve,
    /// Until another processor notices.
    pub ipi_latency: Curve,
    /// A lock operation.
    pub lock: Curve,
    /// An unlock operation.
    pub unlock: Curve,
    /// A lock operation of a reader.
    pub read_lock: Curve,
    /// An unlock operation of a reader.
    pub read_unlock: Curve,
    /// Into the kernel.
    pub syscall_in: Curve,
    /// And back.
    pub syscall_out: Curve,
    /// What a preemption or migration makes slower.
    pub cache: CacheDelay,
    /// What an empty cache makes slower at first.
    pub initial_cache: CacheDelay,
}

/// Delay through caches that lost what was in them, by the size of the working set.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CacheDelay {
    /// For each level of memory that was measured, over the working set. The worst of them counts.
    pub levels: Vec<Curve>,
}

impl CacheDelay {
    /// The delay with a working set of this size.
    #[must_use]
    pub fn at(&self, working_set: u64) -> Fraction {
        self.levels.iter().map(|level| level.at(working_set)).max().unwrap_or_default()
    }
}

/// A task that overheads are charged to.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Task {
    /// C, its sections included.
    pub cost: u64,
    /// T; above 0.
    pub period: u64,
    /// D.
    pub deadline: u64,
    /// From arrival to release, J.
    pub jitter: u64,
    /// Self-suspension besides that of waits.
    pub suspended: u64,
    /// In the unit of [`CacheDelay`].
    pub working_set: u64,
    /// What a job writes, or locks where there are no readers.
    pub requests: Vec<Demand>,
    /// What it reads.
    pub reads: Vec<Demand>,
}

impl Task {
    /// Whether it can meet its deadline alone.
    fn fits(&self) -> bool {
        self.cost <= self.deadline.min(self.period)
    }
}

/// All tasks, if each can meet its deadline alone.
fn fitting(tasks: Vec<Task>) -> Result<Vec<Task>, Failure> {
    match tasks.iter().position(|task| !task.fits()) {
        Some(task) => Err(Failure::Task { task }),
        None => Ok(tasks),
    }
}

/// The delay that one of the other tasks has through each task: that of the largest working set among them.
fn cache_of_others(overheads: &Overheads, tasks: &[Task]) -> Vec<Fraction> {
    // The largest, and the largest but one.
    let largest = tasks.iter().enumerate().max_by_key(|(_, task)| task.working_set).map(|(place, _)| place);
    let second = tasks.iter().enumerate().filter(|(place, _)| Some(*place) != largest);
    let second = second.map(|(_, task)| overheads.cache.at(task.working_set)).max();
    let first = largest.map(|place| overheads.cache.at(tasks[place].working_set));
    let of = |place: usize| if Some(place) == largest { second.clone() } else { first.clone() };
    (0..tasks.len()).map(|place| of(place).unwrap_or_default()).collect()
}

/// Each task begins with an empty cache.
///
/// # Errors
/// [`Failure::Task`] where a task no longer meets its deadline alone; [`Failure::Overflow`].
pub fn initial_load(overheads: &Overheads, tasks: &[Task]) -> Result<Vec<Task>, Failure> {
    let charged = tasks.iter().map(|task| {
        let cost = (overheads.initial_cache.at(task.working_set) + Fraction::from(task.cost)).ceil()?;
        Ok(Task { cost, ..task.clone() })
    });
    fitting(charged.collect::<Result<_, Failure>>()?)
}
