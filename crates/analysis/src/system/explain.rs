//! The terms of a bound, which sum to the response time.

mod counted;

use crate::blocking::accounting::{Accounting, accounting};
use crate::blocking::delay::BlockingSection;
use crate::blocking::ics::Again;
use crate::blocking::mpcp::system::{self as mpcp, Remote};
use crate::blocking::{icpp, pip};
#[cfg(feature = "lp")]
use crate::rows::bound::Proof;
use crate::rows::bound::{Analysis, Unbounded};
use crate::rows::mutant::Omission;
use crate::rows::tables::Tables;
use crate::system::across;
use crate::system::clustered;
#[cfg(feature = "lp")]
use crate::system::response::analyse;
use crate::system::response::occasions;
#[cfg(feature = "lp")]
use crate::system::tighten;
use core::fmt;
use counted::Counted;
use lockwright_model::{Duration, Priority, Protocol, ResourceId, System, TaskId};

/// The cause of a term.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Cause {
    /// The execution of the job itself.
    Execution,
    /// The delay from arrival to release.
    Jitter,
    /// Sections of less urgent tasks on resources of this processor.
    Local,
    /// Boosted sections of less urgent tasks of this processor.
    Boosted,
    /// Waiting at the requests of the job, whichever requests precede them.
    Waiting,
    /// Waiting for a less urgent holder.
    Holder,
    /// Waiting for requests at least as urgent that are granted first.
    Urgent,
    /// Jobs of tasks at least as urgent, on this processor.
    Interference,
    /// Interruptible sections that are executed again because of these jobs.
    Again,
    /// A delay without bound. Such a term has a count of 0, as there is no number for it.
    Unbounded,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Execution => "execution",
            Self::Jitter => "release jitter",
            Self::Local => "local blocking",
            Self::Boosted => "boosted blocking",
            Self::Waiting | Self::Holder | Self::Urgent => "remote blocking",
            Self::Interference => "interference",
            Self::Again => "executed again",
            Self::Unbounded => "without bound",
        })
    }
}

/// One part of a bound: `count` times `each`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Term {
    /// The cause of the delay.
    pub cause: Cause,
    /// The task that causes the delay; `None` for the job itself, and for a sum over several tasks.
    pub by: Option<TaskId>,
    /// The resource involved, if there is one.
    pub resource: Option<ResourceId>,
    /// The number of occurrences.
    pub count: u64,
    /// The length of one occurrence.
    pub each: Duration,
    /// The product of both.
    pub total: Duration,
    /// The reason for the term, in words.
    pub why: String,
}

/// Returns every term of the response-time bound of `task` under partitioned or clustered fixed priorities.
///
/// The terms sum to the bound; all times are in nanoseconds. If the task has no bound, the result contains the terms
/// that are known without one: its own execution, the sections that can block it on its own processor, and the tasks
/// that can delay it without bound.
///
/// # Panics
/// Panics if `analysis` has another number of tasks than `system`.
///
/// # Examples
/// ```
/// use lockwright_analysis::{Cause, analyse, explain};
/// use lockwright_model::format::parse_system;
/// use lockwright_model::{Duration, Protocol, TaskId};
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
/// let analysis = analyse(&system, Protocol::Icpp);
/// let terms = explain(&system, &analysis, TaskId(0));
/// assert_eq!((terms[0].cause, terms[0].total), (Cause::Execution, Duration::from_ms(2)));
/// assert_eq!((terms[1].cause, terms[1].total), (Cause::Local, Duration::from_ms(4)));
/// ```
#[must_use]
pub fn explain(system: &System, analysis: &Analysis, task: TaskId) -> Vec<Term> {
    assert_eq!(analysis.tasks.len(), system.tasks().len(), "the analysis must belong to this system");
    // A classic bound counts the classic bounds of the other tasks, although some have a lower one by a program.
    #[cfg(feature = "lp")]
    let classic;
    #[cfg(feature = "lp")]
    let analysis = if analysis.task(task).proof == Proof::Classic
        && analysis.tasks.iter().any(|bound| bound.proof == Proof::Program)
    {
        classic = analyse(system, analysis.protocol);
        &classic
    } else {
        analysis
    };
    let tables = Tables::new(system, analysis.protocol, Omission::NOTHING);
    let mut terms = Terms { system, list: Vec::new() };
    let own = system.task(task);
    terms.add(Cause::Execution, None, None, 1, own.wcet.as_ns(), "worst-case execution time".into());
    if own.jitter > Duration::ZERO {
        terms.add(Cause::Jitter, None, None, 1, own.jitter.as_ns(), "released at most this long after arrival".into());
    }
    let reason = analysis.task(task).unbounded.as_ref();
    if system.has_clusters() {
        clustered_terms(&tables, analysis, task, &mut terms);
        return terms.list;
    }
    #[cfg(feature = "lp")]
    if analysis.task(task).proof == Proof::Program {
        program_terms(&tables, analysis, task, &mut terms);
        return terms.list;
    }
    if let Some(ruling) = across::ruling(&tables) {
        across_terms(&tables, analysis, ruling, task, &mut terms);
        return terms.list;
    }
    local_terms(&tables, analysis.protocol, task, reason.is_none(), &mut terms);
    if let Some(Unbounded::Inversion { resource, between, .. }) = reason {
        for &id in between {
            let why =
                format!("can delay the holder again and again while `{}` is held", system.resource(*resource).name);
            terms.add(Cause::Unbounded, Some(id), Some(*resource), 0, system.task(id).wcet.as_ns(), why);
        }
    }
    let responses: Vec<Option<u64>> = analysis.tasks.iter().map(|bound| bound.response.map(Duration::as_ns)).collect();
    if let Some(response) = analysis.task(task).response {
        remote_terms(&tables, task, &responses, &mut terms);
        let window = response.as_ns() - own.jitter.as_ns();
        let again = Again::new(&tables, tables.neighbours(task));
        for h in tables.urgent(task) {
            let (other, id) = (system.task(h), h);
            let deferred = tables.suspends(h);
            let jitter = if deferred {
                responses[h.index()].unwrap_or(0).saturating_sub(other.wcet.as_ns())
            } else {
                other.jitter.as_ns()
            };
            let jobs = (window + jitter).div_ceil(other.period.as_ns());
            let why = if deferred {
                format!("jobs in a window of {}, and work deferred into it by suspension", Duration::from_ns(window))
            } else {
                format!("jobs in a window of {}", Duration::from_ns(window))
            };
            terms.add(Cause::Interference, Some(id), None, jobs, other.wcet.as_ns(), why);
            for section in again.sections(h, task) {
                let whose = match section.task {
                    own if own == task => "its section".into(),
                    of => format!("the section of `{}`", system.task(of).name),
                };
                let why =
                    format!("{whose} on `{}` is invalidated when it commits", system.resource(section.resource).name);
                terms.add(Cause::Again, Some(id), Some(section.resource), jobs, section.length, why);
            }
        }
    }
    terms.list
}

struct Terms<'s> {
    system: &'s System,
    list: Vec<Term>,
}

impl Terms<'_> {
    fn add(
        &mut self,
        cause: Cause,
        by: Option<TaskId>,
        resource: Option<ResourceId>,
        count: u64,
        each: u64,
        why: String,
    ) {
        // The terms of a bound fit. Those of a task without a bound may not, and are capped for display.
        let total = Duration::from_ns(each.saturating_mul(count));
        self.list.push(Term { cause, by, resource, count, each: Duration::from_ns(each), total, why });
    }

    fn block(&mut self, cause: Cause, count: u64, blocker: BlockingSection, why: String) {
        self.add(cause, Some(blocker.task), Some(blocker.resource), count, blocker.length, why);
    }
}

fn local_terms(tables: &Tables<'_>, protocol: Protocol, task: TaskId, is_bounded: bool, terms: &mut Terms<'_>) {
    let count = occasions(tables, task);
    let occasions = if count > 1 { ", at its arrival and at each resumption" } else { "" };
    let name = |id: ResourceId| &tables.system.resource(id).name;
    if let Some(longest) = icpp::longest(tables, task) {
        let ceiling = tables.lock_ceiling(longest.task, longest.resource).unwrap_or(Priority::MIN);
        // The tables contain `icpp` in place of `pcp` and `srp`, which delay alike.
        let protocol = terms.system.protocol_of(longest.resource, protocol);
        let why = holds(name(longest.resource), protocol, ceiling) + occasions;
        terms.block(Cause::Local, count, longest, why);
    }
    for blocker in pip::blockers(tables, task) {
        let why = match tables.protocol(blocker.resource) {
            Protocol::None if is_bounded => {
                format!(
                    "holds `{}`, and no task has a priority between those of its users{occasions}",
                    name(blocker.resource)
                )
            }
            Protocol::None => format!("holds `{}` at its own priority: for this long at least", name(blocker.resource)),
            _ => format!("holds `{}` and inherits the priority of its waiters{occasions}", name(blocker.resource)),
        };
        terms.block(Cause::Local, count, blocker, why);
    }
    for blocker in mpcp::boosted(tables, task) {
        let why = format!("executes its section on `{}` above every base priority{occasions}", name(blocker.resource));
        terms.block(Cause::Boosted, count, blocker, why);
    }
}

/// Returns why the section of a less urgent task on a resource with a ceiling delays a job.
fn holds(resource: &str, protocol: Protocol, ceiling: Priority) -> String {
    match protocol {
        Protocol::Pcp => {
            format!(
                "holds `{resource}`, whose ceiling is {ceiling}, and inherits the priority of the job whose request waits"
            )
        }
        Protocol::Srp => {
            format!("holds `{resource}`, whose ceiling is {ceiling}: the job does not start before its end")
        }
        _ => format!("holds `{resource}` at its ceiling {ceiling}"),
    }
}

/// Adds the terms of a bound that a program proves.
#[cfg(feature = "lp")]
fn program_terms(tables: &Tables<'_>, analysis: &Analysis, task: TaskId, terms: &mut Terms<'_>) {
    let Some(tighten::Parts { ruling, parts, counted }) = tighten::parts(tables, analysis, task) else { return };
    icpp_terms(tables, analysis, ruling, task, terms);
    match counted {
        Some(counted) => {
            for section in counted {
                let (cause, why) = if section.remote {
                    (Cause::Waiting, program_waits(ruling))
                } else {
                    (Cause::Boosted, program_blocks(ruling))
                };
                let (of, resource) = (TaskId::new(section.task), ResourceId(section.resource));
                let blocker = BlockingSection { task: of, resource, length: section.length };
                terms.block(cause, section.count, blocker, why.into());
            }
        }
        None => {
            let why = "the longest waits of its requests, added; the sum of the sections that can delay it is greater";
            terms.add(Cause::Waiting, None, None, 1, parts.waits, why.into());
            if parts.blocked > 0 {
                terms.add(Cause::Boosted, None, None, 1, parts.blocked, boosts(ruling).into());
            }
        }
    }
    interference_terms(tables, analysis, ruling, task, parts.urgent, terms);
}

/// Returns why a program counts a section that the job waits for.
#[cfg(feature = "lp")]
fn program_waits(ruling: Protocol) -> &'static str {
    match ruling {
        Protocol::Dpcp | Protocol::Dflp => "can go first on the resource's home CPU: each request counts once",
        Protocol::FmlpShort | Protocol::Msrp | Protocol::Mrsp => {
            "one spin for this section: by this task, a more urgent one, or the task that delays it at its arrival"
        }
        // A section of an owner on the task's own processor may also count as one that is boosted.
        Protocol::Mpcp => "delays a request, or a section for which a request waits",
        _ => "delays a request, or a section for which a request waits; each counts once",
    }
}

/// Returns why a program counts a section on the task's own processor.
#[cfg(feature = "lp")]
fn program_blocks(ruling: Protocol) -> &'static str {
    match ruling {
        Protocol::Dpcp | Protocol::Dflp => "executes its section here, the resource's home, above all jobs",
        Protocol::FmlpShort | Protocol::Msrp | Protocol::Mrsp => "had requested it when the job arrived",
        _ => "executes its section above all jobs, at the job's arrival and as often as it may wait",
    }
}

/// Adds the sections under `icpp`, besides a protocol of `across.rs`.
fn icpp_terms(tables: &Tables<'_>, analysis: &Analysis, ruling: Protocol, task: TaskId, terms: &mut Terms<'_>) {
    if let Some((longest, occasions)) = across::local(tables, ruling, task) {
        let ceiling = terms.system.ceiling(longest.resource);
        let again = if occasions > 1 { ", at its arrival and at each request" } else { "" };
        let name = &terms.system.resource(longest.resource).name;
        let protocol = terms.system.protocol_of(longest.resource, analysis.protocol);
        let why = holds(name, protocol, ceiling) + again;
        terms.block(Cause::Local, occasions, longest, why);
    }
}

/// Adds the terms under a protocol of `across.rs`.
fn across_terms(tables: &Tables<'_>, analysis: &Analysis, ruling: Protocol, task: TaskId, terms: &mut Terms<'_>) {
    icpp_terms(tables, analysis, ruling, task, terms);
    let Some(parts) = across::parts(tables, analysis.protocol, ruling, task) else { return };
    let counted = Counted::new(tables, analysis, ruling, task);
    match counted.waits(parts.waits) {
        Some(sections) => {
            for (count, section) in sections {
                terms.block(Cause::Waiting, count, section, goes_first(ruling).into());
            }
        }
        None if parts.waits > 0 => {
            let requests = across::requests(tables, ruling, task);
            let plural = if requests == 1 { "" } else { "s" };
            let why = format!("{} at its {requests} request{plural}", waits(ruling));
            terms.add(Cause::Waiting, None, None, 1, parts.waits, why);
        }
        None => {}
    }
    match counted.blockers(parts.blocked) {
        Some(sections) => {
            for (count, section) in sections {
                terms.block(Cause::Boosted, count, section, blocks(ruling).into());
            }
        }
        None if parts.blocked > 0 => {
            terms.add(Cause::Boosted, None, None, 1, parts.blocked, boosts(ruling).into());
        }
        None => {}
    }
    interference_terms(tables, analysis, ruling, task, parts.urgent, terms);
}

/// Adds the jobs at least as urgent, under a protocol of `across.rs`.
fn interference_terms(
    tables: &Tables<'_>,
    analysis: &Analysis,
    ruling: Protocol,
    task: TaskId,
    urgent: Vec<across::Urgent>,
    terms: &mut Terms<'_>,
) {
    let system = terms.system;
    let window = analysis.task(task).response.unwrap_or_default().as_ns() - system.task(task).jitter.as_ns();
    for h in urgent {
        let waits = match h.executed {
            0 => String::new(),
            _ => format!(", each with {} of waiting that counts as execution", Duration::from_ns(h.executed)),
        };
        let away = system.task(h.task).wcet.as_ns() - h.here;
        let away = match away {
            0 => String::new(),
            _ => format!(", each without {} on other CPUs", Duration::from_ns(away)),
        };
        if let Some((longest, _)) = across::local(tables, ruling, task).filter(|_| h.delayed > 0) {
            let (name, urgent) = (&system.resource(longest.resource).name, &system.task(h.task).name);
            let why = format!("holds `{name}` when `{urgent}` arrives or resumes, which keeps this one waiting");
            terms.block(Cause::Local, h.delayed, longest, why);
        }
        let why = format!("jobs in a window of {}{away}{waits}", Duration::from_ns(window));
        terms.add(Cause::Interference, Some(h.task), None, h.jobs, h.here.saturating_add(h.executed), why);
    }
}

/// Adds the terms in clusters of processors.
fn clustered_terms(tables: &Tables<'_>, analysis: &Analysis, task: TaskId, terms: &mut Terms<'_>) {
    let Some(parts) = clustered::parts(tables, analysis.protocol, task) else { return };
    match Counted::new(tables, analysis, Protocol::Omlp, task).waits(parts.waits) {
        Some(sections) => {
            for (count, section) in sections {
                let why = "requested it before: at each request one section of each other CPU counts, as execution";
                terms.block(Cause::Waiting, count, section, why.into());
            }
        }
        None => {
            let why = "is suspended at its requests, which counts as execution".into();
            terms.add(Cause::Waiting, None, None, 1, parts.waits, why);
        }
    }
    if parts.lends > 0 {
        let why = "lends its priority, once: to the longest request of a task of its cluster that is no more urgent, from its request to its unlock";
        terms.add(Cause::Boosted, None, None, 1, parts.lends, why.into());
    }
    for (h, work, share) in parts.urgent {
        let (work, window) = (Duration::from_ns(work), Duration::from_ns(parts.window));
        let why =
            format!("of its work and waiting, {work} at most in a window of {window}, on {} CPUs", parts.processors);
        terms.add(Cause::Interference, Some(h), None, 1, share, why);
    }
}

/// Returns why the job waits for the section of another task.
fn goes_first(ruling: Protocol) -> &'static str {
    match ruling {
        Protocol::Dpcp => "goes first on the resource's home CPU",
        Protocol::Dflp => "requested it before, on the resource's home CPU",
        Protocol::FmlpPlus => "requested it before, or executes before a task that did",
        Protocol::PhaseFair | Protocol::TaskFair => {
            "holds it before, as a writer or as the longest of readers that read together"
        }
        _ => "requested it before: one section of its CPU counts at each request",
    }
}

/// Returns what a job does while its request waits.
fn waits(ruling: Protocol) -> &'static str {
    match accounting(ruling) {
        _ if ruling == Protocol::LockFree => "repeats attempts that fail because others commit,",
        Some(Accounting::Spins) => "spins",
        Some(Accounting::Oblivious) => "is suspended, which counts as execution,",
        Some(Accounting::Away) => "waits for others on the resources' home CPUs",
        Some(Accounting::Suspends) | None => "is suspended",
    }
}

/// Returns why the section of another task delays a job on its own processor.
fn blocks(ruling: Protocol) -> &'static str {
    match ruling {
        Protocol::Dpcp | Protocol::Dflp => "executes its section here, the resource's home, above all jobs",
        Protocol::MpcpVs => "executes its section above every base priority",
        Protocol::FmlpLong => "inherits the priority of its waiters, at the job's arrival and at each request",
        Protocol::FmlpPlus => "executes its section above all jobs, at the job's arrival and as often as it may wait",
        _ => "had requested it when the job arrived: its section, and its wait",
    }
}

/// Returns the reason for all delay by such sections together.
fn boosts(ruling: Protocol) -> &'static str {
    match ruling {
        Protocol::Dpcp | Protocol::Dflp => "sections of other tasks on resources whose home is this CPU",
        Protocol::MpcpVs => "one boosted section of each task of this CPU that is no more urgent",
        Protocol::FmlpLong => "sections of less urgent tasks of this CPU that inherit",
        Protocol::FmlpPlus => "boosted sections of tasks of this CPU that are no more urgent",
        _ => "the longest request of a task of this CPU that is no more urgent, from its request to its unlock",
    }
}

fn remote_terms(tables: &Tables<'_>, task: TaskId, responses: &[Option<u64>], terms: &mut Terms<'_>) {
    let system = terms.system;
    let Some(remote) = Remote::new(tables) else { return };
    for request in system.requests(task) {
        if tables.protocol(request.resource) != Protocol::Mpcp {
            continue;
        }
        let limit = system.task(task).period.as_ns();
        let Ok(wait) = remote.wait(tables, task, request.resource, |id: TaskId| responses[id.index()], limit) else {
            continue;
        };
        let (count, name) = (u64::from(request.count), &system.resource(request.resource).name);
        if let Some(holder) = wait.holder {
            let why = format!("holds `{name}` when it is requested, prolonged by boosted sections of its CPU");
            terms.block(Cause::Holder, count, holder, why);
        }
        for user in remote.equal(tables, task, request.resource) {
            let blocker = BlockingSection { task: user.task, resource: request.resource, length: user.kept };
            let why = "has the same priority, and may have requested it before".into();
            terms.block(Cause::Urgent, count, blocker, why);
        }
        for user in remote.urgent(tables, task, request.resource) {
            let Some(jobs) = remote.jobs(tables, user, wait.total, |id: TaskId| responses[id.index()]) else {
                continue;
            };
            let blocker = BlockingSection { task: user.task, resource: request.resource, length: user.kept };
            let requests = jobs * user.count;
            let plural = if requests == 1 { "" } else { "s" };
            let wait = Duration::from_ns(wait.total);
            let why = format!("is served first: {requests} request{plural} in a wait of {wait}");
            terms.block(Cause::Urgent, count * jobs * user.count, blocker, why);
        }
    }
}
