//! The execution times that tests under EDF and under global schedulers count: with waits and failed attempts.
//!
//! *Global schedulers.* A job counts as delayed while it is among the m jobs with the earliest deadlines (or highest
//! priorities), waiting ones included, and neither executes nor spins. If jobs are delayed for at most B_i, then every
//! test of independent jobs holds for C'_i = C_i + B_i: let the m first jobs execute at each instant, a delayed one in
//! name only. That is a schedule of independent jobs of at most C'_i. What others execute meanwhile only shortens
//! theirs.
//!
//! ```text
//!   fmlp_short   B_i = sum over q of the longest requests of others for q: at most N(i,q) of each task, and
//!                      N(i,q) (m - 1) in all
//!                    + the longest span of another task whose deadline is not shorter (priority not higher)
//!   fmlp_long    B_i = sum over q of the longest requests of others for q: at most N(i,q) of each task
//! ```
//! A span is the wait of one request and its section. No other task makes more requests than its jobs do while the job
//! is pending, `ceil((D_i + D_k) / T_k)` jobs if no deadline is missed. Bounds on tardiness do without that, and count
//! the spans of all other tasks.
//!
//! - *Short.* Jobs that spin or own are not preempted, so at most m - 1 requests precede one, each of another task. A
//!   job waits for a job that is not preempted when it arrives, and only then: it is linked to one processor, and when
//!   it loses that and gets another, then one on which the linked job ended (the rule is in
//!   `sim/src/simulation/global.rs`). That job began before, so its deadline is later and its relative deadline longer.
//!   If releases are noticed late, that job can have arrived later, and the spans of all tasks count: with a release
//!   latency, and with overheads.
//! - *Long.* Requests are served first come, first served, so each other task precedes one at most once. While the job
//!   waits and is among the m first, so is the owner with the priority that it inherits: each ready job with a higher
//!   priority has it from itself, or from another waiting job, and these are different jobs. For the same reason a job
//!   that does not wait is not delayed.
//!
//! Both kinds in one system are not covered: a job that resumes, or an owner that inherits a priority, can wait for a
//! job that is not preempted, and how often is not argued here.
//!
//! The protocol and its rules are those of Block, Leontyev, Brandenburg, Anderson, *A flexible real-time locking
//! protocol for multiprocessors*, RTCSA 2007; the argument is that of suspension-oblivious analysis (Brandenburg,
//! dissertation, 2011). `retries.rs` has non-blocking objects.

use super::retries::{self, Preempting};
use super::untested::Untested;
use crate::blocking::delay::Platform;
use crate::blocking::{fmlp, spin};
use crate::rows::failure::Failure;
use crate::rows::mutant::{Mutant, Omission};
use crate::rows::sharing::{Sharer, Sharing};
use crate::rows::sporadic::Sporadic;
use lockwright_model::{Protocol, ResourceId, Scheduler, System, TaskId};

/// A cause of delays of the jobs of a system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Nothing: no resources, or wait-free objects.
    Nothing,
    /// Locks: under partitioned EDF those of SRP and MSRP, under global schedulers those of `fmlp_short`.
    Spin,
    /// The locks of `fmlp_long`.
    Suspend,
    /// Lock-free objects, under partitioned EDF beside SRP.
    LockFree,
}

/// Returns what delays the jobs, or why no test covers it.
pub(super) fn kind(system: &System) -> Result<Kind, Untested> {
    let mut found: Option<(Kind, ResourceId)> = None;
    for id in system.resource_ids().filter(|&id| !system.users(id).is_empty()) {
        let named = system.resource(id).protocol.unwrap_or_else(|| system.protocol_or_default());
        let one = match system.protocol_of(id, named) {
            _ if named.has_readers() => return Err(Untested::Protocol(id)),
            Protocol::WaitFree => continue,
            Protocol::LockFree => Kind::LockFree,
            // These delay each job at most once, before it starts. They exist under partitioned EDF only.
            Protocol::Srp if system.scheduler() == Scheduler::PEdf => continue,
            Protocol::Msrp if system.scheduler() == Scheduler::PEdf => Kind::Spin,
            Protocol::FmlpShort => Kind::Spin,
            Protocol::FmlpLong => Kind::Suspend,
            _ => return Err(Untested::Protocol(id)),
        };
        match found {
            Some((known, other)) if known != one => return Err(Untested::Mixed(other, id)),
            _ => found = Some((one, id)),
        }
    }
    Ok(found.map_or(Kind::Nothing, |(kind, _)| kind))
}

/// Returns the tasks with the time of failed attempts in their costs, and without requests for objects.
///
/// # Errors
/// Returns [`Failure::Overflow`] if a number does not fit.
pub(crate) fn with_retries(system: &System, sharing: Sharing, omission: Omission<Mutant>) -> Result<Sharing, Failure> {
    let is_object = |resource: u16| {
        let id = ResourceId(resource);
        system.protocol_of(id, system.protocol_or_default()).is_object()
    };
    if !system.resource_ids().any(|id| is_object(id.0)) {
        return Ok(sharing);
    }
    let (attempts, preempting) = attempts(system, &sharing);
    let costs = retries::costs(&attempts, preempting, omission)?;
    let mut tasks = sharing.tasks;
    for (task, cost) in tasks.iter_mut().zip(costs) {
        task.cost = cost;
        task.requests.retain(|request| !is_object(request.resource));
    }
    Ok(Sharing { tasks })
}

/// Returns the tasks with their requests for lock-free objects only, as [`retries`] takes them.
pub(super) fn attempts(system: &System, sharing: &Sharing) -> (Sharing, Preempting) {
    let is_lock_free =
        |resource: u16| system.protocol_of(ResourceId(resource), system.protocol_or_default()) == Protocol::LockFree;
    let mut attempts = sharing.clone();
    for (id, task) in system.task_ids().zip(&mut attempts.tasks) {
        task.requests.retain(|request| is_lock_free(request.resource));
        // See `arranged`.
        if system.scheduler().is_by_deadline() {
            task.response = system.task(id).deadline.as_ns();
        }
    }
    let preempting = match system.scheduler() {
        Scheduler::GFp => Preempting::Urgent(processors(system)),
        Scheduler::GEdf => Preempting::Any(processors(system)),
        _ => Preempting::Local,
    };
    (attempts, preempting)
}

/// The tasks that tests under global schedulers count.
pub(super) struct Inflated {
    /// For tests that show that no deadline is missed.
    pub(super) hard: Vec<Sporadic>,
    /// For bounds on responses if deadlines may be missed; `None` if there are none.
    pub(super) soft: Option<Vec<Sporadic>>,
    /// Whether nothing was added.
    pub(super) is_plain: bool,
}

/// Returns the tasks of a system under a global scheduler with their delays.
///
/// # Errors
/// Returns [`Failure::Overflow`] if a number does not fit.
pub(super) fn inflated(
    system: &System,
    sharing: &Sharing,
    kind: Kind,
    omission: Omission<Mutant>,
) -> Result<Inflated, Failure> {
    let plain: Vec<Sporadic> = sharing.tasks.iter().map(sporadic).collect();
    let (hard, soft) = match kind {
        Kind::Nothing => (plain.clone(), Some(plain)),
        Kind::LockFree => (plain, None),
        Kind::Spin | Kind::Suspend => {
            let by_count = with_waits(system, sharing, kind, None, omission)?;
            // With these responses, jobs of others are no limit: only requests are.
            let most =
                sharing.tasks.iter().flat_map(|task| &task.requests).map(|request| u64::from(request.count)).max();
            let longest = sharing.tasks.iter().map(|task| task.period).max();
            let unlimited = most.unwrap_or(0).checked_mul(longest.unwrap_or(0));
            let by_request = unlimited.map(|most| with_waits(system, sharing, kind, Some(most), omission));
            (by_count, by_request.and_then(Result::ok))
        }
    };
    Ok(Inflated { hard, soft, is_plain: kind == Kind::Nothing })
}

fn sporadic(task: &Sharer) -> Sporadic {
    Sporadic { cost: task.cost, period: task.period, deadline: task.deadline }
}

/// Returns the number of processors.
pub(super) fn processors(system: &System) -> u32 {
    u32::try_from(system.cpus()).unwrap_or(u32::MAX)
}

/// Returns the tasks as the bounds on delays take them, if each job is pending for at most `pending`, or if no deadline
/// is missed.
pub(super) fn arranged(
    system: &System,
    sharing: &Sharing,
    pending: Option<u64>,
    omission: Omission<Mutant>,
) -> Sharing {
    let by_deadline = system.scheduler().is_by_deadline();
    // Those with the longest deadlines come first. Tasks with equal ones are equal.
    let mut deadlines: Vec<u64> = sharing.tasks.iter().map(|task| task.deadline).collect();
    deadlines.sort_unstable_by(|one, other| other.cmp(one));
    deadlines.dedup();
    // With overheads, an interrupt can also keep a processor from noticing a release.
    let mut costs = system.task_ids().zip(&sharing.tasks);
    let is_charged = costs.any(|(id, task)| task.cost != system.task(id).wcet.as_ns());
    let one = |(id, task): (TaskId, &Sharer)| {
        let from_arrival = system.task(id).deadline.as_ns();
        let is_late = from_arrival > task.deadline || is_charged;
        let longer = deadlines.partition_point(|&other| other > task.deadline);
        let priority = match pending {
            // A job that begins late, or whose release is noticed late, can wait for one that arrived after it.
            Some(_) => 0,
            None if by_deadline && is_late => 0,
            None if by_deadline => longer as u32,
            None => system.task(id).priority.level(),
        };
        // A job that is noticed at once and in time is pending up to its deadline, which counts from the arrival. Under
        // fixed priorities, the tests prove the shorter deadline from the time at which a release is noticed.
        let response = match by_deadline && !omission.is(Mutant::ReleaseJitter) {
            true => from_arrival,
            false => task.deadline,
        };
        Sharer { response: pending.unwrap_or(response), priority, cluster: 0, ..task.clone() }
    };
    Sharing { tasks: system.task_ids().zip(&sharing.tasks).map(one).collect() }
}

/// Returns the tasks with their delays, if each job is pending for at most `pending`, or if no deadline is missed.
fn with_waits(
    system: &System,
    sharing: &Sharing,
    kind: Kind,
    pending: Option<u64>,
    omission: Omission<Mutant>,
) -> Result<Vec<Sporadic>, Failure> {
    let sharing = arranged(system, sharing, pending, omission);
    let delays = |sharing: &Sharing| match kind {
        Kind::Suspend => fmlp::fmlp_long(sharing),
        _ => {
            let processors = u16::try_from(system.cpus()).unwrap_or(u16::MAX);
            spin::fifo(sharing, Platform { clusters: 1, processors, interrupts: None })
        }
    };
    let delays = match omission.is(Mutant::RemoteCarryIn) {
        // Each task with the others as if none of their jobs had arrived before.
        true => {
            (0..sharing.tasks.len()).map(|own| Ok(delays(&arriving(&sharing, own))?[own])).collect::<Result<_, _>>()
        }
        false => delays(&sharing),
    }?;
    let one = |(task, delay): (&Sharer, &crate::blocking::Delay)| {
        let waits = if omission.is(Mutant::Waiting) { 0 } else { delay.remote.ok_or(Failure::Overflow)? };
        let arrival = if omission.is(Mutant::Boosted) { 0 } else { delay.arrival };
        let cost = task.cost.checked_add(waits).and_then(|cost| cost.checked_add(arrival)).ok_or(Failure::Overflow)?;
        Ok(Sporadic { cost, period: task.period, deadline: task.deadline })
    };
    sharing.tasks.iter().zip(&delays).map(one).collect()
}

/// The tasks, all except `own` without responses, so that only jobs that arrive in its window count.
fn arriving(sharing: &Sharing, own: usize) -> Sharing {
    let mut sharing = sharing.clone();
    let others = sharing.tasks.iter_mut().enumerate().filter(|&(task, _)| task != own);
    others.for_each(|(_, task)| task.response = 0);
    sharing
}
