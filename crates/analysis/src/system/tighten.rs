//! Response-time bounds from linear programs, for the systems that these cover.
//!
//! A program bounds the blocking of one job on resources shared across processors. The response times are found as in
//! `across.rs`, so the terms outside the program are charged there as for the classic bounds:
//! - *Resources of one processor* are under `icpp`, with ceilings below every boosted or non-preemptive section. Their
//!   sections therefore delay no holder of a shared resource, nor a task that waits for one. What remains is one
//!   section of a less urgent task at the job's arrival, and one at each resumption. A job resumes at most as often as
//!   it has requests, and never if it spins.
//! - *Release jitter* is part of R, which is measured from arrival to finish. The jobs of x that execute in a window of
//!   length t arrived at most R_x before it, so `ceil((t + R_x) / T_x)` counts them whatever their jitter. More urgent
//!   jobs of the same processor that arrive in the busy window may be released up to J_h after their arrival:
//!   `ceil((t + J_h) / T_h)`, both in the interference and in the requests that a program counts on that processor.
//! - *Deadlines* are not used. A response time may grow up to the period, as for the classic bounds.
//! - *A task without a bound by the program*, or with a greater one than the classic one, has the classic bound. Each
//!   task's bound is then the lesser of two functions of all responses, one of them constant. Both hold if all earlier
//!   responses hold: the first response above such a bound could exceed neither. The least responses that satisfy all
//!   equations at once are therefore bounds. If a task has no classic bound either, the tasks that it can delay have
//!   their classic ones.
//!
//! The programs may examine [`PROGRAM_WORK_MAX`] requests in all rounds. Responses that still rise then are not bounds,
//! and the classic bounds stand.

use crate::blocking::bounds::Bounds;
use crate::linear::{Counted, Program};
use crate::rows::bound::{Analysis, Proof, TaskBound, Unbounded};
use crate::rows::mutant::{Mutant, Omission};
use crate::rows::tables::Tables;
use crate::system::across;
use crate::system::response::analyse;
use lockwright_model::{Duration, Protocol, ResourceId, Scheduler, System, TaskId};
use std::fmt;

/// The most requests that the programs of one system examine in all rounds. This takes about a tenth of a second.
pub const PROGRAM_WORK_MAX: u64 = 50_000_000;

/// Why linear programs do not cover a system.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Uncovered {
    /// There are clusters of several processors.
    Clusters,
    /// The scheduler is neither partitioned fixed priorities nor partitioned EDF; the bounds of [`tighten`] cover fixed
    /// priorities alone.
    Scheduler(Scheduler),
    /// No resource is shared across processors.
    Alone,
    /// A resource is under a protocol without a program, or under another protocol than the rest.
    Resource(ResourceId, Protocol),
    /// The ceiling of a resource is set explicitly.
    Ceiling(ResourceId),
    /// The classic analysis does not cover the task either.
    Classic(TaskId),
    /// The programs would examine more than [`PROGRAM_WORK_MAX`] requests.
    Work,
}

impl Uncovered {
    /// Describes the reason in one sentence, with the names of the system.
    #[must_use]
    pub fn describe(&self, system: &System) -> String {
        let resource = |id: ResourceId| format!("`{}`", system.resource(id).name);
        self.told(|id| format!("`{}`", system.task(id).name), resource)
    }

    /// Returns the reason, with tasks and resources as these functions name them.
    fn told(&self, task: impl Fn(TaskId) -> String, name: impl Fn(ResourceId) -> String) -> String {
        match *self {
            Self::Clusters => "there are clusters of several CPUs".into(),
            Self::Scheduler(Scheduler::PEdf) => "they prove deadlines under `p-edf`, and bound no responses".into(),
            Self::Scheduler(scheduler) => format!("they cover `p-fp` and `p-edf`, not `{scheduler}`"),
            Self::Alone => "no resource is shared across CPUs".into(),
            Self::Resource(id, protocol) => format!(
                "{} is under {protocol}; programs cover systems whose shared resources are all under one of mpcp, dpcp, dflp, fmlp_plus, fmlp_short, msrp and mrsp, \
                 and the others under icpp",
                name(id)
            ),
            Self::Ceiling(id) => format!("the ceiling of {} is set explicitly", name(id)),
            Self::Classic(id) => format!("like the classic analysis, they do not cover {}", task(id)),
            Self::Work => format!("they would examine more than {PROGRAM_WORK_MAX} requests"),
        }
    }
}

impl fmt::Display for Uncovered {
    /// Writes the reason with the ids of the tasks and resources. [`Uncovered::describe`] has their names.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("linear programs do not cover the system: ")?;
        f.write_str(&self.told(|id| format!("task {}", id.0), |id| format!("resource {}", id.0)))
    }
}

impl std::error::Error for Uncovered {}

/// Lowers the bounds of `analysis` to those of linear programs, for each task where these are less.
///
/// `analysis` must be the classic analysis of `system`, as [`analyse`] returns it. Partitioned fixed priorities are
/// covered if all shared resources are under one of `mpcp`, `dpcp`, `dflp`, `fmlp_plus`, `fmlp_short`, `msrp` and
/// `mrsp`, and all others under `icpp`. Both values are bounds, so the lesser one is. All times are in nanoseconds. The
/// sources are in the files of `crate::linear`.
///
/// # Errors
/// Returns an error if the programs do not cover the system. The analysis is then unchanged.
///
/// # Examples
/// ```
/// use lockwright_analysis::{analyse, tighten};
/// use lockwright_model::format::parse_system;
/// use lockwright_model::Protocol;
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
/// let mut analysis = analyse(&system, Protocol::FmlpPlus);
/// let classic = analysis.tasks[0].response;
/// tighten(&system, &mut analysis).expect("the programs cover the system");
/// assert!(analysis.tasks[0].response <= classic);
/// ```
pub fn tighten(system: &System, analysis: &mut Analysis) -> Result<(), Uncovered> {
    tighten_by(&Tables::new(system, analysis.protocol, Omission::NOTHING), analysis)
}

/// Like [`tighten`], with one term omitted: a mutant, for tests of the tests.
///
/// # Errors
/// Returns the errors of [`tighten`].
#[cfg(feature = "mutants")]
pub fn tighten_mutant(system: &System, analysis: &mut Analysis, mutant: Mutant) -> Result<(), Uncovered> {
    tighten_by(&Tables::new(system, analysis.protocol, Omission::of(mutant)), analysis)
}

/// Returns the least of the classic bounds and those of linear programs, for each task.
///
/// `protocol` governs the resources for which the system names no protocol. The second value is the reason why linear
/// programs do not cover the system, or `None` if they do; without them, the bounds are those of [`analyse`].
///
/// # Examples
/// ```
/// use lockwright_analysis::best;
/// use lockwright_model::format::parse_system;
/// use lockwright_model::Protocol;
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
/// let (analysis, uncovered) = best(&system, Protocol::Mpcp);
/// assert!(analysis.schedulable() && uncovered.is_none());
/// ```
#[must_use]
pub fn best(system: &System, protocol: Protocol) -> (Analysis, Option<Uncovered>) {
    let mut analysis = analyse(system, protocol);
    let uncovered = tighten(system, &mut analysis).err();
    (analysis, uncovered)
}

fn tighten_by(tables: &Tables<'_>, analysis: &mut Analysis) -> Result<(), Uncovered> {
    let ruling = covered(tables, analysis)?;
    let known: Vec<Option<u64>> = analysis.tasks.iter().map(|bound| bound.response.map(Duration::as_ns)).collect();
    let bounds = |program| Bounds::of(tables, program);
    let make = || program(tables, ruling).map(bounds).ok_or(Unbounded::BeyondPeriod);
    let (found, rows) = across::solve_by(tables, analysis.protocol, ruling, None, &known, make);
    let is_unsettled = |bound: &TaskBound| bound.unbounded == Some(Unbounded::Unsettled);
    if found.tasks.iter().any(is_unsettled) || rows.iter().any(across::Row::is_unsettled) {
        return Err(Uncovered::Work);
    }
    for (bound, found) in analysis.tasks.iter_mut().zip(found.tasks) {
        if found.response.is_some_and(|found| bound.response.is_none_or(|before| found < before)) {
            *bound = found;
            bound.proof = Proof::Program;
        }
    }
    Ok(())
}

/// Returns the protocol whose programs cover the system.
fn covered(tables: &Tables<'_>, analysis: &Analysis) -> Result<Protocol, Uncovered> {
    let system = tables.system;
    if !matches!(system.scheduler(), Scheduler::PFp | Scheduler::CFp) {
        return Err(Uncovered::Scheduler(system.scheduler()));
    }
    if system.has_clusters() {
        return Err(Uncovered::Clusters);
    }
    let protocol = |id: ResourceId| tables.protocol(id);
    let is_local = |id: ResourceId| protocol(id) == Protocol::Icpp && !system.is_global(id);
    let ruled = || system.resource_ids().filter(|&id| !is_local(id));
    let ruling = protocol(ruled().next().ok_or(Uncovered::Alone)?);
    let has_program = matches!(
        ruling,
        Protocol::Mpcp
            | Protocol::Dpcp
            | Protocol::Dflp
            | Protocol::FmlpPlus
            | Protocol::FmlpShort
            | Protocol::Msrp
            | Protocol::Mrsp
    );
    if let Some(id) = ruled().find(|&id| protocol(id) != ruling || !has_program) {
        return Err(Uncovered::Resource(id, protocol(id)));
    }
    // The resources of one processor have the ceilings of `icpp`. The bounds of MSRP assume the ceilings of the users.
    let by_hand =
        |&id: &ResourceId| system.resource(id).ceiling.is_some() && (!is_local(id) || ruling == Protocol::Msrp);
    if let Some(id) = system.resource_ids().find(by_hand) {
        return Err(Uncovered::Ceiling(id));
    }
    let uncovered = |id: &TaskId| analysis.task(*id).unbounded.as_ref().is_some_and(Unbounded::is_uncovered);
    if let Some(id) = system.task_ids().find(uncovered) {
        return Err(Uncovered::Classic(id));
    }
    Ok(ruling)
}

/// Returns the programs of a system that they cover, or `None` if a number does not fit.
fn program(tables: &Tables<'_>, ruling: Protocol) -> Option<Program> {
    let jitter =
        |id: TaskId| if tables.is_mutant(Mutant::ReleaseJitter) { 0 } else { tables.system.task(id).jitter.as_ns() };
    let jitters: Vec<u64> = tables.system.task_ids().map(jitter).collect();
    let sharing = across::sharing(tables, ruling);
    Program::new(&sharing, ruling, &tables.homes(), &jitters, tables.omission, PROGRAM_WORK_MAX).ok().flatten()
}

/// The parts of a response time that a program bounds. `counted` contains the sections that the program counts if the
/// bound is their sum.
pub(crate) struct Parts {
    pub(crate) ruling: Protocol,
    pub(crate) parts: across::Parts,
    pub(crate) counted: Option<Vec<Counted>>,
}

/// Returns the parts of the bound of `task` in `analysis`, which a program proves.
pub(crate) fn parts(tables: &Tables<'_>, analysis: &Analysis, task: TaskId) -> Option<Parts> {
    let ruling = covered(tables, analysis).ok()?;
    let mut program = program(tables, ruling)?;
    let parts = across::parts_by(tables, analysis, ruling, task, &mut program)?;
    let counted = program.counted(task.index()).ok()?;
    Some(Parts { ruling, parts, counted: counted.map(|(_, counted)| counted) })
}
