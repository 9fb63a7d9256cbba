//! Overheads of locks: their operations, system calls, wake-ups, and the caches that a wait leaves cold. Interrupts are
//! not included: charge scheduling afterwards.
//!
//! For each request, with `sched' = schedule + context switch`, and in and out for entering and leaving the kernel:
//! ```text
//! spinlock:   L += lock + unlock, C += lock + unlock + in + out
//! semaphore:  L += ipi + sched' + in + out + unlock, and sched' if sections are preemptive
//!             C += 3 sched' + 2 in + 2 out + lock + unlock + 2 cache
//!             S += ipi, or C += ipi if suspension counts as execution
//! DPCP:       L += l, l = 3 sched' + in + out + lock + unlock;  C += in + out + 2 sched' + 2 cache;  S += 2 ipi + l
//! ```
//! The cache delay is that of the largest working set of all tasks.
//!
//! # Examples
//! ```
//! use lockwright_analysis::Demand;
//! use lockwright_analysis::overheads::{Costs, Curve, Task, locking};
//! let mut costs = Costs::default();
//! (costs.lock, costs.unlock) = (Curve::constant(1), Curve::constant(2));
//! let requests = vec![Demand { resource: 0, count: 2, length: 5 }];
//! let task = Task { cost: 20, period: 100, deadline: 100, requests, ..Task::default() };
//! let charged = locking::spin(&costs, &[task])?;
//! assert_eq!((charged[0].cost, charged[0].requests[0].length), (26, 8));
//! # Ok::<(), lockwright_analysis::Failure>(())
//! ```

use super::{Costs, Fraction, Task};
use crate::{Demand, Failure};

/// The properties of a semaphore's protocol and analysis.
///
/// This is a plain value: users write it as a literal, and it gets no further fields.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Semaphore {
    /// Whether sections can be preempted.
    pub preemptive: bool,
    /// Whether the analysis is suspension-aware. If not, suspension counts as execution.
    pub suspension_aware: bool,
}

/// Tasks with the overheads of semaphores.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub struct WithSemaphores {
    /// The charged tasks.
    pub tasks: Vec<Task>,
    /// How much longer a section is for the tasks of its own processor, if sections are non-preemptive; otherwise 0.
    pub longer_locally: u64,
}

/// The charges for one request.
struct PerRequest {
    length: Fraction,
    cost: Fraction,
    suspended: Fraction,
}

/// Charges the overheads of spinlocks, with readers and writers.
///
/// Times are in the unit of the input. The source is in the [module](super).
///
/// # Errors
/// Returns [`Failure::Task`] if a charged task does not meet its deadline alone, and [`Failure::Overflow`] if a number
/// does not fit.
pub fn spin(overheads: &Costs, tasks: &[Task]) -> Result<Vec<Task>, Failure> {
    let n = tasks.len() as u64;
    let calls = overheads.system_call(n);
    let per = |length: Fraction| PerRequest { cost: &length + &calls, length, suspended: Fraction::default() };
    let write = per(overheads.lock.at(n) + overheads.unlock.at(n));
    let read = per(overheads.read_lock.at(n) + overheads.read_unlock.at(n));
    tasks_with(tasks, &write, &read)
}

/// Charges the overheads of semaphores that all processors share: MPCP, FMLP and OMLP.
///
/// Times are in the unit of the input. The source is in the [module](super).
///
/// # Errors
/// Returns the errors of [`spin`], and [`Failure::Unsupported`] for tasks with requests for reading.
pub fn semaphore(overheads: &Costs, semaphore: Semaphore, tasks: &[Task]) -> Result<WithSemaphores, Failure> {
    nobody_reads(tasks)?;
    let LockingCosts { lock, unlock, calls, sched, cache, ipi } = LockingCosts::new(overheads, tasks);
    let two = || Fraction::from(2);
    let mut per = PerRequest {
        length: &ipi + &sched + calls.clone() + unlock.clone(),
        cost: &sched * &Fraction::from(3) + calls * two() + lock + unlock + cache * two(),
        suspended: Fraction::default(),
    };
    let mut longer_locally = 0;
    if semaphore.preemptive {
        per.length = per.length + sched;
    } else {
        longer_locally = sched.ceil()?;
    }
    if semaphore.suspension_aware {
        per.suspended = ipi;
    } else {
        per.cost = per.cost + ipi;
    }
    Ok(WithSemaphores { tasks: tasks_with(tasks, &per, &per)?, longer_locally })
}

/// Charges the overheads of the DPCP, whose sections execute on other processors.
///
/// # Errors
/// Returns the errors of [`semaphore`].
pub fn dpcp(overheads: &Costs, tasks: &[Task]) -> Result<Vec<Task>, Failure> {
    nobody_reads(tasks)?;
    let LockingCosts { lock, unlock, calls, sched, cache, ipi } = LockingCosts::new(overheads, tasks);
    let length = &sched * &Fraction::from(3) + calls.clone() + lock + unlock;
    let cost = calls + (sched + cache) * 2.into();
    let suspended = ipi * 2.into() + length.clone();
    let per = PerRequest { length, cost, suspended };
    tasks_with(tasks, &per, &per)
}

struct LockingCosts {
    lock: Fraction,
    unlock: Fraction,
    calls: Fraction,
    sched: Fraction,
    cache: Fraction,
    ipi: Fraction,
}

impl LockingCosts {
    fn new(overheads: &Costs, tasks: &[Task]) -> Self {
        let n = tasks.len() as u64;
        let working_set = tasks.iter().map(|task| task.working_set).max().unwrap_or(0);
        Self {
            lock: overheads.lock.at(n),
            unlock: overheads.unlock.at(n),
            calls: overheads.system_call(n),
            sched: overheads.switch(n),
            cache: overheads.cache.at(working_set),
            ipi: overheads.ipi_latency.at(n),
        }
    }
}

fn nobody_reads(tasks: &[Task]) -> Result<(), Failure> {
    match tasks.iter().position(|task| !task.reads.is_empty()) {
        Some(task) => Err(Failure::Unsupported { task, what: "it reads; only spinlocks support readers" }),
        None => Ok(()),
    }
}

fn tasks_with(tasks: &[Task], write: &PerRequest, read: &PerRequest) -> Result<Vec<Task>, Failure> {
    let charged = tasks.iter().map(|task| {
        let (mut cost, mut suspended) = (Fraction::default(), Fraction::default());
        let mut longer = |demands: &[Demand], per: &PerRequest| {
            let demands = demands.iter().map(|demand| {
                let count = Fraction::from(u64::from(demand.count));
                cost = &cost + &(&per.cost * &count);
                suspended = &suspended + &(&per.suspended * &count);
                let mut length = demand.length;
                if demand.count > 0 {
                    length = (Fraction::from(length) + per.length.clone()).ceil()?;
                }
                Ok(Demand { length, ..*demand })
            });
            demands.collect::<Result<Vec<Demand>, Failure>>()
        };
        let (requests, reads) = (longer(&task.requests, write)?, longer(&task.reads, read)?);
        let cost = cost.ceil()?.checked_add(task.cost).ok_or(Failure::Overflow)?;
        let suspended = suspended.ceil()?.checked_add(task.suspended).ok_or(Failure::Overflow)?;
        Ok(Task { cost, suspended, requests, reads, ..task.clone() })
    });
    super::fitting(charged.collect::<Result<_, Failure>>()?)
}

#[cfg(test)]
mod tests {
    use super::super::{CacheDelay, Curve};
    use super::*;

    #[test]
    fn readers_pay_for_their_own_operations() {
        let overheads = Costs {
            lock: Curve::constant(1),
            unlock: Curve::constant(2),
            read_lock: Curve::constant(10),
            read_unlock: Curve::constant(20),
            syscall_in: Curve::constant(100),
            ..Costs::default()
        };
        let demand = |count| vec![Demand { resource: 0, count, length: 5 }];
        let task = Task { cost: 50, period: 5_000, deadline: 5_000, requests: demand(2), ..Task::default() };
        let reader = Task { reads: demand(3), requests: Vec::new(), ..task.clone() };
        let charged = spin(&overheads, &[task, reader.clone()]).unwrap();
        assert_eq!((charged[0].cost, charged[0].requests[0].length), (50 + 2 * 103, 8));
        assert_eq!((charged[1].cost, charged[1].reads[0].length), (50 + 3 * 130, 35));
        assert!(matches!(dpcp(&overheads, &[reader]), Err(Failure::Unsupported { task: 0, .. })));
    }

    #[test]
    fn a_wait_costs_the_largest_working_set() {
        let cache = CacheDelay { levels: vec![Curve::through(&[(0, 0), (10, 10)]).unwrap()] };
        let overheads = Costs { cache, ..Costs::default() };
        let requests = vec![Demand { resource: 0, count: 3, length: 5 }];
        let task = Task { cost: 50, period: 900, deadline: 900, requests, working_set: 40, ..Task::default() };
        let small = Task { working_set: 1, ..task.clone() };
        let kind = Semaphore { preemptive: false, suspension_aware: true };
        for charged in semaphore(&overheads, kind, &[task, small]).unwrap().tasks {
            assert_eq!(charged.cost, 50 + 3 * 2 * 40);
        }
    }

    #[test]
    fn numbers_that_do_not_fit_are_errors() {
        let overheads = Costs { lock: Curve::constant(u64::MAX), ..Costs::default() };
        let requests = vec![Demand { resource: 0, count: 2, length: 5 }];
        let task = Task { cost: 5, period: 10, deadline: 10, requests, ..Task::default() };
        assert_eq!(spin(&overheads, &[task]), Err(Failure::Overflow));
    }
}
