//! Bounds as strong as linear programs give them, where these cover the system.
//!
//! A program bounds the blocking of one job on resources shared across processors; the response times are found as those of `across.rs`, so that what
//! a program says nothing of is charged there as for the classic bounds:
//! - *Resources of one processor* are under `icpp`, below every boosted or non-preemptive section: their sections delay no holder of a shared resource,
//!   and so none that waits for one. What remains is one section of a less urgent task at the job's arrival, and one at each resumption. A job resumes at
//!   most as often as it has requests, and does not resume where it spins.
//! - *Release jitter* is part of R, which is from arrival to finish: the jobs of x that execute in a window of length t arrived at most R_x before it, so
//!   `ceil((t + R_x) / T_x)` counts them whatever their jitter. More urgent jobs of the same processor that arrive in the busy window may be released up to J_h later
//!   than they arrive: `ceil((t + J_h) / T_h)`, in the interference and in the requests that a program counts among those of its processor.
//! - *Deadlines* play no part. A response time counts up to the period, as for the classic bounds.
//! - *Tasks without a bound of their own by the program*, or with one above the classic one, take the classic one. The bound on each task's response then is
//!   the lesser of two functions of all responses, one of them constant. Both hold if the responses before do: of the first response above such a bound, neither
//!   could be exceeded. So the least responses that fit all bounds at once are bounds. Where there is no classic bound either, tasks that this one can delay
//!   take the classic one.
//!
//! A program may look at [`PROGRAM_WORK_MAX`] requests in all its rounds. Responses that are still rising are no bounds: then the classic ones stand.

use crate::across;
use crate::blocking::across::Bounds;
use crate::blocking::dpcp::homes;
use crate::bound::{Analysis, Proof, TaskBound, Unbounded};
use crate::linear::{Counted, Program};
use crate::omit::Omit;
use crate::response::analyse;
use crate::tables::Tables;
use lockwright_model::{Duration, Protocol, ResourceId, Scheduler, System, TaskId};

/// Most requests that the programs of one system look at in all rounds. A tenth of a second or so.
pub const PROGRAM_WORK_MAX: u64 = 50_000_000;

/// Why linear programs say nothing of a system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Uncovered {
    /// There are clusters of several processors.
    Clusters,
    /// Priorities are not fixed, or tasks have no processor.
    Scheduler(Scheduler),
    /// No resource is shared across processors.
    Alone,
    /// A resource is under a protocol that has no program, or under another one than the rest.
    Resource(ResourceId, Protocol),
    /// The ceiling of a resource is fixed by hand.
    Ceiling(ResourceId),
    /// The classic analysis, too, does not cover such a system.
    Classic(TaskId),
    /// It would take more than [`PROGRAM_WORK_MAX`].
    Work,
}

impl Uncovered {
    /// One sentence for a person.
    #[must_use]
    pub fn describe(&self, system: &System) -> String {
        let name = |id: ResourceId| &system.resource(id).name;
        match *self {
            Self::Clusters => "there are clusters of several CPUs".into(),
            Self::Scheduler(scheduler) => format!("they cover fixed priorities on partitioned CPUs, not `{scheduler}`"),
            Self::Alone => "no resource is shared across CPUs".into(),
            Self::Resource(id, protocol) => format!(
                "`{}` is under {protocol}; programs cover systems whose shared resources are all under one of mpcp, dpcp, dflp, fmlp_plus, fmlp_short, msrp and mrsp, \
                 and the others under icpp",
                name(id)
            ),
            Self::Ceiling(id) => format!("the ceiling of `{}` is fixed by hand", name(id)),
            Self::Classic(task) => {
                format!("like the classic analysis, they do not cover `{}`", system.task(task).name)
            }
            Self::Work => format!("they would look at more than {PROGRAM_WORK_MAX} requests"),
        }
    }
}

/// Lowers the bounds of `analysis`, which is the classic one of this system, to those of linear programs where these are less. Both are bounds, so the
/// lesser of the two is.
///
/// # Errors
/// Where programs do not cover the system: then nothing has changed.
pub fn tighten(system: &System, analysis: &mut Analysis) -> Result<(), Uncovered> {
    tighten_by(&Tables::new(system, analysis.protocol, None), analysis)
}

/// The same with one term left out: a broken twin, for tests of tests.
///
/// # Errors
/// As [`tighten`].
#[cfg(feature = "twins")]
pub fn tighten_omitting(system: &System, analysis: &mut Analysis, omit: Omit) -> Result<(), Uncovered> {
    tighten_by(&Tables::new(system, analysis.protocol, Some(omit)), analysis)
}

/// The least bounds of a system whose resources are under `protocol` where they name none of their own: the classic ones, lowered to those of linear
/// programs where these are less; and why programs say nothing of it, where they do not.
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
    let (found, rows) = across::solve_by(tables, analysis.protocol, ruling, &known, make);
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

/// The protocol whose programs cover the system.
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
    // Those of one processor are where `icpp` has them; MSRP's bounds know no other ceilings than those of users.
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

/// The programs of a system that they cover; `None` where a number does not fit.
fn program(tables: &Tables<'_>, ruling: Protocol) -> Option<Program> {
    let jitter = |id: TaskId| if tables.omits(Omit::ReleaseJitter) { 0 } else { tables.system.task(id).jitter.as_ns() };
    let jitters: Vec<u64> = tables.system.task_ids().map(jitter).collect();
    let sharing = across::sharing(tables, ruling);
    Program::new(&sharing, ruling, &homes(tables), &jitters, PROGRAM_WORK_MAX).ok().flatten()
}

/// What the response time of a task that a program bounds is made of, and the sections that the program counts, where its bound is their sum.
pub(crate) struct Parts {
    pub(crate) ruling: Protocol,
    pub(crate) parts: across::Parts,
    pub(crate) counted: Option<Vec<Counted>>,
}

/// The parts of the bound of `task` in `analysis`, which a program proves.
pub(crate) fn parts(tables: &Tables<'_>, analysis: &Analysis, task: TaskId) -> Option<Parts> {
    let ruling = covered(tables, analysis).ok()?;
    let mut program = program(tables, ruling)?;
    let parts = across::parts_by(tables, analysis, ruling, task, &mut program)?;
    let counted = program.counted(task.index()).ok()?;
    Some(Parts { ruling, parts, counted: counted.map(|(_, counted)| counted) })
}
