//! Deadlines under partitioned EDF that the linear program of MSRP proves.
//!
//! The program is tried for each processor whose processor demand is too great in some interval. Without overheads, in
//! no interval does it count more than the processor demand with the spinning of
//! [`uniprocessor::edf`](crate::uniprocessor::edf), so where that accepts, the program has nothing to add. (With
//! overheads, a section of a late release can count at the start of an interval in which its job counts as well. Both
//! tests are safe.) Its terms are those of the classic test:
//! - *Resources of one processor* are under SRP. They delay as there: by one section of a later deadline, at the start
//!   of an interval.
//! - *Release jitter* is covered by neither test with resources. Overheads make a release late by up to J = D - D',
//!   where D' is the charged deadline, which counts from the latest release. The jobs of a remote task x that execute
//!   in an interval of length t are released after its start minus D_x, and at least T' apart, so `ceil((t + D'_x +
//!   J_x) / T'_x)` counts them.
//! - *Remote deadlines* are assumed: that count holds while the jobs of x are in time. Where some set of processors is
//!   accepted, each by the processor demand or by the program, and no job of it spins under the program for a task
//!   outside the set, no first deadline can be missed in the set. A processor that is accepted by the program, and
//!   shares a resource with a task that is not proved, is therefore not proved.
//!
//! The programs of one system examine at most [`PROGRAM_WORK_MAX`] requests, in equal shares for the processors that
//! are tried; where a share is not enough, the classic verdict stands.

use super::{Blocker, Point, Scheduled, Test, Untested, long_resource, tested};
use crate::linear::MsrpDemand;
use crate::rows::bound::Proof;
use crate::rows::failure::Failure;
use crate::rows::mutant::{Mutant, Omission};
use crate::rows::sharing::Sharing;
use crate::system::tighten::{PROGRAM_WORK_MAX, Uncovered};
use lockwright_model::{CpuId, Duration, Overheads, Protocol, ResourceId, Scheduler, System, TaskId};

/// Returns the result of [`scheduled`](super::scheduled()), improved by linear programs where these cover the system.
///
/// Partitioned EDF is covered if a resource is shared across processors. Each processor whose processor demand is too
/// great has a further test, "linear program". The second value is the reason why linear programs do not cover the
/// system, or why they are incomplete; `None` if they are complete.
///
/// # Errors
/// Returns the errors of [`scheduled`](super::scheduled()).
///
/// # Examples
/// ```
/// use lockwright_analysis::{Proof, best_scheduled, scheduled};
/// use lockwright_model::format::parse_system;
/// use lockwright_model::Overheads;
/// let system = parse_system(
///     r#"
///     [platform]
///     cpus = 2
///     scheduler = "p-edf"
///
///     [[resource]]
///     name = "bus"
///
///     [[task]]
///     name = "control"
///     cpu = 0
///     period = "10 ms"
///     wcet = "4 ms"
///     requests = [{ resource = "bus", count = 4, length = "1 ms" }]
///
///     [[task]]
///     name = "log"
///     cpu = 1
///     period = "50 ms"
///     wcet = "10 ms"
///     requests = [{ resource = "bus", length = "2 ms" }]
///     "#,
/// )
/// .expect("a valid task set");
/// let overheads = Overheads::default();
/// // The classic test lets `control` wait for the section of `log` four times.
/// assert!(!scheduled(&system, &overheads).expect("a test covers it").schedulable);
/// let (found, uncovered) = best_scheduled(&system, &overheads).expect("a test covers it");
/// assert!(found.schedulable && uncovered.is_none());
/// assert_eq!(found.proof, [Proof::Program, Proof::Classic]);
/// ```
pub fn best_scheduled(system: &System, overheads: &Overheads) -> Result<(Scheduled, Option<Uncovered>), Untested> {
    best_by(system, overheads, Omission::NOTHING)
}

/// Like [`best_scheduled`], with a part of the programs omitted: a mutant, for tests of the tests.
///
/// # Errors
/// Returns the errors of [`best_scheduled`].
#[cfg(feature = "mutants")]
pub fn best_scheduled_mutant(system: &System, overheads: &Overheads, mutant: Mutant) -> Result<Scheduled, Untested> {
    Ok(best_by(system, overheads, Omission::of(mutant))?.0)
}

fn best_by(
    system: &System,
    overheads: &Overheads,
    omission: Omission<Mutant>,
) -> Result<(Scheduled, Option<Uncovered>), Untested> {
    let (mut found, sharing) = tested(system, overheads, omission, Omission::NOTHING)?;
    let uncovered = match sharing {
        _ if system.scheduler() != Scheduler::PEdf => Some(Uncovered::Scheduler(system.scheduler())),
        _ if !system.resource_ids().any(|id| system.is_global(id)) => Some(Uncovered::Alone),
        _ if long_resource(system).is_some() => {
            long_resource(system).map(|id| Uncovered::Resource(id, Protocol::FmlpLong))
        }
        Some(sharing) if !found.schedulable => improve(system, &sharing, &mut found, omission),
        _ => None,
    };
    Ok((found, uncovered))
}

/// The programs, each of which looks at `most` requests.
pub(super) fn demand(
    system: &System,
    sharing: &Sharing,
    most: u64,
    omission: Omission<Mutant>,
) -> Result<MsrpDemand, Failure> {
    let late = |id: TaskId| system.task(id).deadline.as_ns().saturating_sub(sharing.tasks[id.index()].deadline);
    let late = |id| if omission.is(Mutant::ReleaseJitter) { 0 } else { late(id) };
    let lateness: Vec<u64> = system.task_ids().map(late).collect();
    MsrpDemand::new(sharing, &lateness, most, omission)
}

/// Adds the program of each processor that `found` does not prove. Returns why the programs are incomplete.
fn improve(system: &System, sharing: &Sharing, found: &mut Scheduled, omission: Omission<Mutant>) -> Option<Uncovered> {
    let failed = || found.tests.iter().filter(|test| test.failure.is_some()).filter_map(|test| test.cpu);
    let share = PROGRAM_WORK_MAX / (failed().count() as u64).max(1);
    // The only reason for a failure is a period of 0, which no system has.
    let demand = demand(system, sharing, share, omission).ok()?;
    // Without a partner, the program is the processor demand.
    let with_partner = failed().filter(|cpu| demand.partner(cpu.0, |_| true).is_some());
    let mut tried: Vec<(CpuId, Option<Failure>)> = with_partner.map(|cpu| (cpu, demand.test(cpu.0).err())).collect();
    let is_limited = tried.iter().any(|(_, failure)| matches!(failure, Some(Failure::Diverged { .. })));
    let set = |proved: &mut [bool], cpu: CpuId, to: bool| {
        system.task_ids().filter(|&id| system.task(id).cpu == cpu).for_each(|id| proved[id.index()] = to);
    };
    for &(cpu, failure) in &tried {
        set(&mut found.proved, cpu, failure.is_none());
    }
    // BOUND: each round rejects one processor.
    loop {
        let proved = &found.proved;
        let rejected = tried.iter_mut().filter(|(_, failure)| failure.is_none()).find_map(|(cpu, failure)| {
            *failure = demand.partner(cpu.0, |task| !proved[task]).map(|task| Failure::Assumes { task });
            failure.map(|_| *cpu)
        });
        match rejected {
            Some(cpu) if !omission.is(Mutant::Partners) => set(&mut found.proved, cpu, false),
            _ => break,
        }
    }
    for (cpu, failure) in tried {
        let point = failure.and_then(|failure| point(&demand, cpu, failure));
        let tasks = system.task_ids().collect();
        let test = Test { name: "linear program", cpu: Some(cpu), failure, tasks, point };
        let place = found.tests.iter().position(|test| test.cpu == Some(cpu)).map_or(0, |place| place + 1);
        found.tests.insert(place, test);
        for id in system.task_ids().filter(|&id| system.task(id).cpu == cpu && found.proved[id.index()]) {
            found.proof[id.index()] = Proof::Program;
        }
    }
    found.schedulable = found.proved.iter().all(|&proved| proved);
    is_limited.then_some(Uncovered::Work)
}

/// Returns the interval in which the demand was found too great.
fn point(demand: &MsrpDemand, cpu: CpuId, failure: Failure) -> Option<Point> {
    let Failure::Demand { interval, demand: most } = failure else { return None };
    let start = demand.delayed(cpu.0, interval).ok()?.start;
    let time = Duration::from_ns;
    let blocker = start.map(|start| Blocker {
        task: TaskId::new(start.task),
        resource: ResourceId(start.resource),
        length: time(start.length),
        spin: time(start.spin),
    });
    let blocking = blocker.map_or(0, |blocker| blocker.total().as_ns());
    let due = time(most.saturating_sub(blocking));
    Some(Point { interval: time(interval), due, blocking: time(blocking), blocker })
}
