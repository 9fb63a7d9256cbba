//! Overheads charged to tasks, so that analyses without overheads hold for the charged tasks.
//!
//! Each function takes the costs of a platform ([`Costs`]) and tasks, and returns tasks with adjusted parameters.
//! The charges are those of Brandenburg, *Scheduling and locking in multiprocessor real-time operating systems*,
//! dissertation, 2011, chapters 3 and 7, in the form that SchedCAT computes, in exact fractions.
//!
//! | file | charges | scheduler or protocol |
//! |---|---|---|
//! | [`jlfp`] | scheduling and interrupts, to the job that preempts | EDF, FIFO and others with fixed job priorities |
//! | [`fp`] | the same, with interrupts as tasks above all others | fixed priorities |
//! | [`locking`] | lock operations, system calls and wake-ups | spinlocks, semaphores, DPCP |
//!
//! Charge locking before scheduling: it lengthens sections and execution, and assumes no interrupts.
//!
//! Two private files charge overheads to a whole system. `charge.rs` is [`charge()`](crate::charge()), for partitioned
//! and clustered fixed priorities. `edf.rs` is for the schedulers of [`scheduled()`](crate::scheduled()). Both take
//! costs, interrupts and the time that execution takes with interrupts from `machine.rs`, and the lengths of operations
//! on objects from `objects.rs`.
//!
//! The charges to systems and those to rows stay apart, although both follow the dissertation:
//! - Rows have one section length per resource. The body of a task has an order of sections and nesting, and each
//!   resource has a protocol with costs of its own.
//! - The functions for rows reproduce the published numbers, with fractions and with costs that are linear in the
//!   number of tasks. In systems, all times are integers.
//! - [`charge()`](crate::charge()) charges interrupts in sections, clusters, homes and leaving a section, which the
//!   published forms do not.
//!
//! # Examples
//! ```
//! use lockwright_analysis::overheads::{Costs, Curve, Task, fp};
//! let mut costs = Costs::default();
//! (costs.schedule, costs.context_switch) = (Curve::constant(1), Curve::constant(2));
//! let task = Task { cost: 20, period: 100, deadline: 100, ..Task::default() };
//! // A job causes two switches.
//! assert_eq!(fp::charge(&costs, false, &[task])?.tasks[0].cost, 26);
//! # Ok::<(), lockwright_analysis::Failure>(())
//! ```

pub(crate) mod body;
pub(crate) mod charge;
mod curve;
pub(crate) mod edf;
pub mod fp;
mod fraction;
pub mod jlfp;
pub mod locking;
pub(crate) mod machine;
mod objects;

use crate::{Demand, Failure};
pub use curve::Curve;
pub use fraction::Fraction;
use fraction::Rising;

/// The costs of a platform's mechanisms, in the tasks' unit of time. Each is a [`Curve`] over the number of tasks.
///
/// # Examples
/// ```
/// use lockwright_analysis::overheads::{Costs, Curve};
/// let mut costs = Costs::default();
/// (costs.quantum, costs.tick) = (1_000_000, Curve::constant(800));
/// assert_eq!(costs.lock, Curve::default());
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub struct Costs {
    /// The time between two ticks, Q; above 0 if a tick has a cost.
    pub quantum: u64,
    /// The cost of a tick interrupt.
    pub tick: Curve,
    /// The cost of a release interrupt.
    pub release: Curve,
    /// The delay from an event to its interrupt.
    pub release_latency: Curve,
    /// The cost of a scheduling decision.
    pub schedule: Curve,
    /// The cost of a context switch.
    pub context_switch: Curve,
    /// The delay until another processor receives an interprocessor interrupt.
    pub ipi_latency: Curve,
    /// The cost of a lock operation.
    pub lock: Curve,
    /// The cost of an unlock operation.
    pub unlock: Curve,
    /// The cost of a lock operation of a reader.
    pub read_lock: Curve,
    /// The cost of an unlock operation of a reader.
    pub read_unlock: Curve,
    /// The cost of entering the kernel.
    pub syscall_in: Curve,
    /// The cost of leaving the kernel.
    pub syscall_out: Curve,
    /// The cache delay after a preemption or migration.
    pub cache: CacheDelay,
    /// The cache delay of a job that starts with empty caches.
    pub initial_cache: CacheDelay,
}

/// The delay of refilling caches, by the size of the working set.
///
/// This is a plain value: users write it as a literal, and it gets no further fields.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct CacheDelay {
    /// One curve over the working set for each measured level of memory. The greatest value counts.
    pub levels: Vec<Curve>,
}

impl CacheDelay {
    /// Returns the delay for a working set of this size.
    #[must_use]
    pub fn at(&self, working_set: u64) -> Fraction {
        self.levels.iter().map(|level| level.at(working_set)).max().unwrap_or_default()
    }
}

/// A task to which overheads are charged. Times are in the unit of [`Costs`].
///
/// This is a plain value: users write it as a literal, and it gets no further fields.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Task {
    /// The execution time with sections, C.
    pub cost: u64,
    /// The period, T; above 0.
    pub period: u64,
    /// The deadline, D.
    pub deadline: u64,
    /// The longest time from arrival to release, J.
    pub jitter: u64,
    /// The self-suspension, besides that of waits.
    pub suspended: u64,
    /// The size of the working set, in the unit of [`CacheDelay`].
    pub working_set: u64,
    /// The requests of a job for writing, or for locking if there are no readers.
    pub requests: Vec<Demand>,
    /// The requests of a job for reading.
    pub reads: Vec<Demand>,
}

impl Costs {
    /// Returns the cost of a switch to another job with `n` tasks: a scheduling decision and a context switch.
    fn switch(&self, n: u64) -> Fraction {
        self.schedule.at(n) + self.context_switch.at(n)
    }

    /// Returns the cost of a system call with `n` tasks: entering the kernel and leaving it.
    fn system_call(&self, n: u64) -> Fraction {
        self.syscall_in.at(n) + self.syscall_out.at(n)
    }

    /// Returns the cost of a tick with `n` tasks.
    ///
    /// # Errors
    /// Returns [`Failure::Overload`] for a tick with a cost but no quantum.
    fn tick(&self, n: u64) -> Result<Fraction, Failure> {
        let tick = self.tick.at(n);
        if tick.is_positive() && self.quantum == 0 { Err(Failure::Overload) } else { Ok(tick) }
    }
}

impl Task {
    /// Returns whether the task meets its deadline and period without other tasks.
    fn fits(&self) -> bool {
        self.cost <= self.deadline.min(self.period)
    }
}

/// Returns all tasks, if each meets its deadline alone.
fn fitting(tasks: Vec<Task>) -> Result<Vec<Task>, Failure> {
    match tasks.iter().position(|task| !task.fits()) {
        Some(task) => Err(Failure::Task { task }),
        None => Ok(tasks),
    }
}

/// Returns for each task the cache delay that it can cause: that of the largest working set among the other tasks.
fn cache_of_others(overheads: &Costs, tasks: &[Task]) -> Vec<Fraction> {
    // The largest, and the second largest.
    let largest = tasks.iter().enumerate().max_by_key(|(_, task)| task.working_set).map(|(place, _)| place);
    let second = tasks.iter().enumerate().filter(|(place, _)| Some(*place) != largest);
    let second = second.map(|(_, task)| overheads.cache.at(task.working_set)).max();
    let first = largest.map(|place| overheads.cache.at(tasks[place].working_set));
    let of = |place: usize| if Some(place) == largest { second.clone() } else { first.clone() };
    (0..tasks.len()).map(|place| of(place).unwrap_or_default()).collect()
}

/// Charges each task with the delay of starting with empty caches, under any scheduler.
///
/// # Errors
/// Returns [`Failure::Task`] if a charged task does not meet its deadline alone, and [`Failure::Overflow`] if a number
/// does not fit.
pub fn initial_load(overheads: &Costs, tasks: &[Task]) -> Result<Vec<Task>, Failure> {
    let charged = tasks.iter().map(|task| {
        let cost = (overheads.initial_cache.at(task.working_set) + Fraction::from(task.cost)).ceil()?;
        Ok(Task { cost, ..task.clone() })
    });
    fitting(charged.collect::<Result<_, Failure>>()?)
}
