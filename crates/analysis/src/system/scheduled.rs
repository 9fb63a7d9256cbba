//! Tests and response times of whole systems under schedulers other than partitioned fixed priorities.
//!
//! - `p-edf`: the processor demand of each processor. Resources are under SRP, and those shared across processors under
//!   non-preemptive spinning (MSRP) or all under `fmlp_long` (`suspending.rs`), or they are non-blocking objects.
//!   Response times are computed without locks and jitter only; without resources they are exact. `best_scheduled` adds
//!   the linear program of MSRP.
//! - `g-edf`: all tests of [`global`], without jitter. Response times are those of the test that bounds them, or follow
//!   from the tardiness with deadlines equal to periods.
//! - `g-fp`: Guan's test, without jitter and equal priorities. Response times are those of the test.
//!
//! Under global schedulers, resources are under `fmlp_short` or `fmlp_long`, or they are non-blocking objects.
//! `inflated.rs` has what their users wait, and `retries.rs` the attempts that fail.

mod delayed;
pub(crate) mod explained;
mod inflated;
#[cfg(feature = "lp")]
pub(crate) mod program;
mod results;
mod retries;
mod suspending;
mod untested;

use crate::global;
use crate::overheads::edf::charged;
use crate::rows::bound::Proof;
use crate::rows::failure::Failure;
use crate::rows::mutant::{ChargeMutant, Mutant, Omission};
use crate::rows::sharing::Sharing;
use crate::rows::sporadic::Sporadic;
use crate::system::partition::{Fit, together_first};
use crate::uniprocessor::{self, Effort, edf};
use inflated::{Inflated, Kind, inflated, kind, processors, with_retries};
use lockwright_model::{CpuId, Duration, Overheads, Protocol, ResourceId, Scheduler, System, TaskId};
pub use results::{Blocker, Point, Scheduled, Test};
pub(crate) use suspending::{Locks, long_resource};
pub use untested::Untested;

/// Tests a system under partitioned EDF, global EDF or global fixed priorities, with overheads charged to it.
///
/// Under partitioned EDF, local resources are under SRP, and shared ones under `fmlp_long` if they name it, and
/// otherwise under MSRP, whatever locks the system names. The module [`uniprocessor::edf`] has the processor demand,
/// and [`global`] the global tests; each names its source. All times are in nanoseconds. If the overheads alone leave
/// no time, the result contains a single test named "overheads" that does not accept. If no bound on the time of failed
/// attempts, or of waits, is found, that test is named "failed attempts" or "waits".
///
/// # Errors
/// Returns an error if no test covers the system: it is under partitioned or clustered fixed priorities
/// ([`analyse`](crate::analyse) covers these), shares resources or has release jitter where no test covers that, has
/// equal priorities under global fixed priorities, or its overheads cannot be charged.
///
/// # Examples
/// ```
/// use lockwright_analysis::scheduled;
/// use lockwright_model::format::parse_system;
/// use lockwright_model::{Overheads, Scheduler};
/// let system = parse_system(
///     r#"
///     [[resource]]
///     name = "bus"
///
///     [[task]]
///     name = "control"
///     period = "10 ms"
///     body = [{ run = "1 ms" }, { lock = "bus" }, { run = "1 ms" }, { unlock = "bus" }]
///
///     [[task]]
///     name = "log"
///     period = "50 ms"
///     body = [{ lock = "bus" }, { run = "4 ms" }, { unlock = "bus" }, { run = "10 ms" }]
///     "#,
/// )
/// .expect("a valid task set");
/// let found = scheduled(&system.under(Scheduler::PEdf), &Overheads::default()).expect("a test covers it");
/// assert!(found.schedulable);
/// ```
pub fn scheduled(system: &System, overheads: &Overheads) -> Result<Scheduled, Untested> {
    Ok(tested(system, overheads, Omission::NOTHING, Omission::NOTHING)?.0)
}

/// Like [`scheduled()`], with a term omitted: a mutant, for tests of the tests.
///
/// # Errors
/// Returns the errors of [`scheduled()`].
#[cfg(feature = "mutants")]
pub fn scheduled_mutant(system: &System, overheads: &Overheads, mutant: Mutant) -> Result<Scheduled, Untested> {
    Ok(tested(system, overheads, Omission::of(mutant), Omission::NOTHING)?.0)
}

/// Like [`scheduled()`], without one charge of overheads: a mutant, for tests of the tests.
///
/// # Errors
/// Returns the errors of [`scheduled()`].
#[cfg(feature = "mutants")]
pub fn scheduled_without(system: &System, overheads: &Overheads, charge: ChargeMutant) -> Result<Scheduled, Untested> {
    Ok(tested(system, overheads, Omission::NOTHING, Omission::of(charge))?.0)
}

/// Like [`scheduled()`], with the charged tasks; these are `None` if the overheads alone leave no time, or if the time
/// that jobs lose to each other is not found.
fn tested(
    system: &System,
    overheads: &Overheads,
    omission: Omission<Mutant>,
    uncharged: Omission<ChargeMutant>,
) -> Result<(Scheduled, Option<Sharing>), Untested> {
    if let Some(resource) = suspending::uncharged(system, overheads) {
        return Err(Untested::Uncharged(resource));
    }
    if let Some(why) = uncovered(system) {
        return Err(why);
    }
    let kind = kind(system)?;
    let charged = match charged(system, overheads, uncharged) {
        Ok(charged) => charged,
        Err(failure @ (Failure::Overload | Failure::Task { .. })) => {
            return Ok((undecided(system, OVERHEADS, failure), None));
        }
        Err(other) => return Err(Untested::Overheads(other)),
    };
    let sharing = match with_retries(system, charged, omission) {
        Ok(sharing) => sharing,
        Err(failure) => return Ok((undecided(system, ATTEMPTS, failure), None)),
    };
    let mut result = match system.scheduler() {
        Scheduler::GEdf | Scheduler::GFp => match inflated(system, &sharing, kind, omission) {
            Err(failure) => return Ok((undecided(system, WAITS, failure), None)),
            Ok(inflated) if system.scheduler() == Scheduler::GEdf => global_edf(system, &inflated),
            Ok(inflated) => global_fp(system, &inflated)?,
        },
        _ => partitioned_edf(system, &sharing, kind, omission),
    };
    // Charges are upper bounds, and offsets may keep the worst arrivals from happening.
    result.exact &= overheads.charges_nothing() && system.tasks().iter().all(|task| task.offset == Duration::ZERO);
    for (id, response) in system.task_ids().zip(&mut result.responses) {
        // Overheads shorten deadlines by the delay with which a release is noticed.
        let deadline = system.task(id).deadline;
        let late = deadline.as_ns().saturating_sub(sharing.tasks[id.index()].deadline);
        *response = response.and_then(|response| response.checked_add(Duration::from_ns(late)));
        // Another test may accept although the one that bounds responses does not.
        if result.schedulable {
            *response = response.map(|response| response.min(deadline));
        }
    }
    Ok((result, Some(sharing)))
}

/// An interval that proves that a system under partitioned EDF misses a deadline, and would miss one with greater
/// execution times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Refutation {
    cpu: u16,
    interval: u64,
}

/// Like [`scheduled()`], but returns the verdict alone and limits the effort. The inner error holds a refutation of the
/// system, if one is known.
///
/// # Errors
/// Returns an error if the caller interrupted the test.
pub(crate) fn verdict(
    system: &System,
    overheads: &Overheads,
    effort: Effort<'_>,
) -> Result<Result<(), Option<Refutation>>, Interrupted> {
    let go_on = effort.go_on;
    if uncovered(system).is_some() || suspending::uncharged(system, overheads).is_some() {
        return Ok(Err(None));
    }
    let Ok(sharing) = rows(system, overheads) else { return Ok(Err(None)) };
    let inflated = || inflated(system, &sharing, kind(system).ok()?, Omission::NOTHING).ok();
    let holds = match system.scheduler() {
        Scheduler::GEdf => {
            let Some(Inflated { hard: tasks, .. }) = inflated() else { return Ok(Err(None)) };
            let m = processors(system);
            EDF_TESTS.iter().any(|(_, test)| go_on() && test(&tasks, m).is_ok())
                || go_on() && global::rta(&tasks, m).is_ok()
                || m == 1 && edf::schedulable_within(&tasks, &[], u64::MAX, effort).is_ok()
        }
        Scheduler::GFp => {
            let Some(inflated) = inflated() else { return Ok(Err(None)) };
            global_fp(system, &inflated).is_ok_and(|result| result.schedulable)
        }
        _ => {
            let locks = Locks::new(system, &sharing, Omission::NOTHING);
            for cpu in processors_with_tasks(system) {
                let Ok((tasks, blocking)) = locks.on_processor(cpu) else { return Ok(Err(None)) };
                // The search starts from the longest interval, and would reach a short one late.
                if let Some(interval) = edf::refuted_early(&tasks, &blocking) {
                    return Ok(Err(Some(Refutation { cpu, interval })));
                }
                match edf::schedulable_within(&tasks, &blocking, u64::MAX, effort) {
                    Ok(()) => {}
                    Err(Failure::Interrupted) => return Err(Interrupted),
                    Err(Failure::Demand { interval, .. }) => return Ok(Err(Some(Refutation { cpu, interval }))),
                    Err(_) => return Ok(Err(None)),
                }
            }
            true
        }
    };
    // A test that was skipped did not reject.
    if holds {
        Ok(Ok(()))
    } else if go_on() {
        Ok(Err(None))
    } else {
        Err(Interrupted)
    }
}

/// The caller interrupted the test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Interrupted;

/// Returns whether one of these refutations, or a number that does not fit, refutes the system under partitioned EDF.
/// That also holds for greater execution times.
pub(crate) fn is_refuted(system: &System, overheads: &Overheads, by: &[Refutation]) -> bool {
    let Ok(sharing) = rows(system, overheads) else { return true };
    let locks = Locks::new(system, &sharing, Omission::NOTHING);
    processors_with_tasks(system).any(|cpu| match locks.on_processor(cpu) {
        Ok((tasks, blocking)) => {
            // An interval of length 0 adds the check for overload, and refutes nothing else.
            let known = by.iter().filter(|known| known.cpu == cpu).map(|known| known.interval);
            edf::is_refuted_at(&tasks, &blocking, known.chain([0]))
        }
        Err(_) => true,
    })
}

/// Returns the tasks that the tests count: with overheads and failed attempts.
pub(crate) fn rows(system: &System, overheads: &Overheads) -> Result<Sharing, Failure> {
    charged(system, overheads, Omission::NOTHING).and_then(|sharing| with_retries(system, sharing, Omission::NOTHING))
}

pub(crate) fn processors_with_tasks(system: &System) -> impl Iterator<Item = u16> {
    let has_tasks = |&cpu: &u16| system.tasks().iter().any(|task| task.cpu == CpuId(cpu));
    (0..system.cpus()).filter_map(|cpu| u16::try_from(cpu).ok()).filter(has_tasks)
}

/// Returns why [`scheduled()`] does not cover the system, or `None` if it does.
pub(crate) fn uncovered(system: &System) -> Option<Untested> {
    let jitter = || system.task_ids().find(|&id| system.task(id).jitter != Duration::ZERO);
    let shares = system.task_ids().any(|id| !system.requests(id).is_empty());
    match system.scheduler() {
        Scheduler::PFp | Scheduler::CFp => Some(Untested::FixedPriorities),
        Scheduler::PEdf if !shares => None,
        // With resources, preemption levels follow deadlines relative to the release, so jitter is not covered.
        _ => {
            let resource = kind(system).err();
            resource.or_else(|| jitter().map(Untested::Jitter)).or_else(|| nested(system).map(Untested::Nested))
        }
    }
}

/// Returns a task that holds two resources at a time, one of them shared across processors or an object.
fn nested(system: &System) -> Option<TaskId> {
    let is_alone = |resource| {
        let is_object = system.protocol_of(resource, system.protocol_or_default()).is_object();
        is_object || system.is_global(resource) || system.scheduler().is_global()
    };
    system.task_ids().find(|&id| {
        let sections = system.sections(id);
        sections.iter().any(|section| section.parent.is_some())
            && sections.iter().any(|section| is_alone(section.resource))
    })
}

/// What is computed before any test, as the name of a [`Test`] that does not accept: the charged overheads.
const OVERHEADS: &str = "overheads";
/// The time of failed attempts.
const ATTEMPTS: &str = "failed attempts";
/// The time of waits.
const WAITS: &str = "waits";

/// Returns the result of a system that no test can judge, because what is named is too great or was not found.
fn undecided(system: &System, name: &'static str, failure: Failure) -> Scheduled {
    let count = system.tasks().len();
    let test = Test { name, cpu: None, failure: Some(failure), tasks: system.task_ids().collect(), point: None };
    Scheduled {
        tests: vec![test],
        responses: vec![None; count],
        unbounded: vec![None; count],
        proved: vec![false; count],
        proof: vec![Proof::Classic; count],
        blocked: vec![None; count],
        schedulable: false,
        exact: false,
    }
}

/// Returns the system with its tasks on processors chosen by `fit`, in order of decreasing utilization.
///
/// Tasks that share a resource are placed on one processor if that succeeds for all; otherwise every task is placed
/// individually. A processor accepts tasks if the system's scheduler, partitioned EDF or fixed priorities, meets their
/// deadlines there without blocking.
///
/// # Errors
/// Returns [`Failure::Task`] with a task that fits on no processor.
///
/// # Examples
/// ```
/// use lockwright_analysis::{Fit, partitioned};
/// use lockwright_model::format::parse_system;
/// let system = parse_system(
///     r#"
///     [platform]
///     cpus = 2
///
///     [[resource]]
///     name = "bus"
///
///     [[task]]
///     name = "control"
///     cpu = 0
///     period = "10 ms"
///     body = [{ run = "1 ms" }, { lock = "bus" }, { run = "1 ms" }, { unlock = "bus" }]
///
///     [[task]]
///     name = "log"
///     cpu = 1
///     period = "50 ms"
///     body = [{ lock = "bus" }, { run = "4 ms" }, { unlock = "bus" }, { run = "10 ms" }]
///     "#,
/// )
/// .expect("a valid task set");
/// // Both tasks share the bus, and fit on one processor.
/// let placed = partitioned(&system, Fit::First).expect("the tasks fit");
/// assert_eq!(placed.tasks()[0].cpu, placed.tasks()[1].cpu);
/// ```
pub fn partitioned(system: &System, fit: Fit) -> Result<System, Failure> {
    let tasks: Vec<uniprocessor::Task> = system
        .tasks()
        .iter()
        .map(|task| uniprocessor::Task {
            cost: task.wcet.as_ns(),
            period: task.period.as_ns(),
            deadline: task.deadline.as_ns().saturating_sub(task.jitter.as_ns()),
            jitter: task.jitter.as_ns(),
            priority: task.priority.level(),
            ..uniprocessor::Task::default()
        })
        .collect();
    let plain: Vec<Sporadic> =
        tasks.iter().map(|task| Sporadic { cost: task.cost, period: task.period, deadline: task.deadline }).collect();
    let groups: Vec<Vec<usize>> = system
        .resource_ids()
        .map(|resource| system.users(resource).iter().map(|task| task.index()).collect())
        .filter(|group: &Vec<usize>| group.len() > 1)
        .collect();
    let is_edf = system.scheduler() == Scheduler::PEdf;
    let fits = |members: &[usize]| {
        if is_edf {
            let members: Vec<Sporadic> = members.iter().map(|&index| plain[index]).collect();
            edf::schedulable(&members, &[]).is_ok()
        } else {
            let mut members: Vec<uniprocessor::Task> = members.iter().map(|&index| tasks[index]).collect();
            members.sort_by_key(|task| std::cmp::Reverse(task.priority));
            uniprocessor::fp::response_times(&members).is_ok()
        }
    };
    let homes = together_first(&plain, system.cpus(), fit, &groups, fits)?;
    let mut moved = system.tasks().to_vec();
    for (task, home) in moved.iter_mut().zip(homes) {
        task.cpu = CpuId(u16::try_from(home).map_err(|_| Failure::Overflow)?);
    }
    system.with_tasks(moved).map_err(|_| Failure::Overflow)
}

/// Tests one processor after the other.
fn partitioned_edf(system: &System, sharing: &Sharing, kind: Kind, omission: Omission<Mutant>) -> Scheduled {
    let count = sharing.tasks.len();
    let mut result = Scheduled {
        tests: Vec::new(),
        responses: vec![None; count],
        unbounded: vec![None; count],
        proved: vec![false; count],
        proof: vec![Proof::Classic; count],
        blocked: vec![None; count],
        schedulable: true,
        exact: system.task_ids().all(|id| system.requests(id).is_empty()),
    };
    let locks = Locks::new(system, sharing, omission);
    for cpu in (0..system.cpus()).filter_map(|cpu| u16::try_from(cpu).ok()).map(CpuId) {
        let tasks: Vec<TaskId> = system.task_ids().filter(|&id| system.task(id).cpu == cpu).collect();
        if tasks.is_empty() {
            continue;
        }
        let tested = locks.on_processor(cpu.0);
        let failure =
            tested.as_ref().map_or_else(|&why| Some(why), |(tasks, blocking)| edf::schedulable(tasks, blocking).err());
        result.schedulable &= failure.is_none();
        result.exact &= matches!(failure, None | Some(Failure::Overload | Failure::Demand { .. }));
        tasks.iter().for_each(|id| result.proved[id.index()] = failure.is_none());
        let is_alone = |id: TaskId| sharing.tasks[id.index()].requests.is_empty();
        let alone = tasks.iter().all(|&id| is_alone(id) && system.task(id).jitter == Duration::ZERO);
        if let (true, Ok((inflated, _))) = (alone, &tested) {
            let on_cpu: Vec<uniprocessor::Task> = inflated.iter().map(|&task| task.into()).collect();
            match edf::response_bounds(&on_cpu, u64::MAX) {
                Ok(responses) => tasks
                    .iter()
                    .zip(responses)
                    .for_each(|(id, response)| result.responses[id.index()] = Some(Duration::from_ns(response))),
                Err(why) => tasks.iter().for_each(|id| result.unbounded[id.index()] = Some(why)),
            }
        }
        // Beside long resources, several sections block an interval.
        let held = if kind == Kind::Suspend { Vec::new() } else { edf::held(sharing, cpu.0).unwrap_or_default() };
        for id in &tasks {
            let deadline = sharing.tasks[id.index()].deadline;
            result.blocked[id.index()] = edf::blocker(&held, deadline).map(Blocker::of);
        }
        let blocking = tested.as_ref().map_or(&[][..], |(_, blocking)| blocking);
        let point = failure.and_then(|failure| point(failure, &held, blocking));
        result.tests.push(Test { name: "processor demand", cpu: Some(cpu), failure, tasks, point });
    }
    let assumes = matches!(kind, Kind::LockFree | Kind::Suspend) && !omission.is(Mutant::Partners);
    if assumes && !result.schedulable {
        assume(system, &mut result);
    }
    result
}

/// Withdraws what is proved of processors whose tasks share lock-free objects, or long resources, with tasks that are
/// not proved: commits and requests of others are counted as if those were in time.
fn assume(system: &System, result: &mut Scheduled) {
    let counts = |&id: &ResourceId| {
        let ruling = system.protocol_of(id, system.protocol_or_default());
        system.is_global(id) && matches!(ruling, Protocol::LockFree | Protocol::FmlpLong)
    };
    // BOUND: each round except the last withdraws a proof.
    loop {
        let late = system.resource_ids().filter(counts).find_map(|id| {
            let users = system.users(id);
            let late = users.iter().find(|user| !result.proved[user.index()])?;
            users.iter().find(|user| result.proved[user.index()]).map(|user| (system.task(*user).cpu, *late))
        });
        let Some((cpu, late)) = late else { break };
        for id in system.task_ids().filter(|&id| system.task(id).cpu == cpu) {
            result.proved[id.index()] = false;
        }
        if let Some(test) = result.tests.iter_mut().find(|test| test.cpu == Some(cpu)) {
            (test.failure, test.tasks) = (Some(Failure::Assumes { task: late.index() }), system.task_ids().collect());
        }
    }
    for (response, proved) in result.responses.iter_mut().zip(&result.proved) {
        *response = response.filter(|_| *proved);
    }
}

/// Returns the interval in which the demand of a processor with this blocking, and these sections if each blocks alone,
/// was found too great.
fn point(failure: Failure, held: &[edf::Held], blocking: &[edf::Step]) -> Option<Point> {
    let Failure::Demand { interval, demand } = failure else { return None };
    let blocking = edf::blocking_at(blocking, interval);
    let due = Duration::from_ns(demand.saturating_sub(blocking));
    let blocker = edf::blocker(held, interval).map(Blocker::of);
    Some(Point { interval: Duration::from_ns(interval), due, blocking: Duration::from_ns(blocking), blocker })
}

type Verdict = fn(&[Sporadic], u32) -> Result<(), Failure>;

/// The tests of global EDF except the one that returns response times, in order of increasing effort.
const EDF_TESTS: [(&str, Verdict); 6] = [
    ("GFB", global::gfb),
    ("BAK", global::bak),
    ("BCL", global::bcl),
    ("iterative BCL", global::bcl_iterative),
    ("FF-DBF", global::ff_dbf),
    ("BAR", global::bar),
];

fn global_edf(system: &System, inflated: &Inflated) -> Scheduled {
    let (processors, tasks) = (processors(system), inflated.hard.as_slice());
    let rta = global::rta(tasks, processors);
    let ids: Vec<TaskId> = system.task_ids().collect();
    let test = |name, failure| Test { name, cpu: None, failure, tasks: ids.clone(), point: None };
    let mut tests: Vec<Test> =
        EDF_TESTS.iter().map(|(name, verdict)| test(*name, verdict(tasks, processors).err())).collect();
    tests.push(test("RTA", rta.as_ref().err().copied()));
    // On one processor, the processor demand is exact.
    if processors == 1 {
        tests.push(test("processor demand", edf::schedulable(tasks, &[]).err()));
    }
    let schedulable = tests.iter().any(|test| test.failure.is_none());
    // If no deadline is missed, a bound from tardiness adds nothing.
    let soft = inflated.soft.as_ref().filter(|_| !schedulable);
    let responses = rta.or_else(|why| soft.map_or(Err(why), |tasks| global::g_edf(tasks, processors)));
    let responses = responses.map_or_else(
        |_| vec![None; tasks.len()],
        |responses| responses.into_iter().map(|response| Some(Duration::from_ns(response))).collect(),
    );
    let (proved, blocked) = (vec![schedulable; tasks.len()], vec![None; tasks.len()]);
    let (unbounded, proof) = (vec![None; tasks.len()], vec![Proof::Classic; tasks.len()]);
    let exact = processors == 1 && inflated.is_plain;
    Scheduled { tests, responses, unbounded, proved, proof, blocked, schedulable, exact }
}

fn global_fp(system: &System, inflated: &Inflated) -> Result<Scheduled, Untested> {
    let tasks = &inflated.hard;
    let mut order: Vec<TaskId> = system.task_ids().collect();
    order.sort_by_key(|&id| std::cmp::Reverse(system.task(id).priority));
    if let Some(pair) = order.windows(2).find(|pair| system.task(pair[0]).priority == system.task(pair[1]).priority) {
        return Err(Untested::EqualPriorities(pair[0], pair[1]));
    }
    let sorted: Vec<Sporadic> = order.iter().map(|id| tasks[id.index()]).collect();
    let tested = global::guan(&sorted, processors(system));
    let mut responses = vec![None; tasks.len()];
    for (id, &response) in order.iter().zip(tested.iter().flatten()) {
        responses[id.index()] = Some(Duration::from_ns(response));
    }
    let failure = tested.err();
    let tests = vec![Test { name: "Guan", cpu: None, failure, tasks: order, point: None }];
    let schedulable = failure.is_none();
    let (proved, blocked) = (vec![schedulable; tasks.len()], vec![None; tasks.len()]);
    let (unbounded, proof) = (vec![None; tasks.len()], vec![Proof::Classic; tasks.len()]);
    Ok(Scheduled { tests, responses, unbounded, proved, proof, blocked, schedulable, exact: false })
}
