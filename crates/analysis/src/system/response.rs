//! Response times of all tasks, as the least joint fixed point of blocking and interference.
//!
//! ```text
//!   w = C_i + S_i + B_i + sum over h at least as urgent on the processor of ceil((w + J_h) / T_h) * (C_h + A_h)
//!   R_i = w + J_i
//! ```
//! B_i is the local and boosted blocking, and S_i the time suspended for resources under `mpcp`. A_h is the execution
//! that a job of h makes others repeat under `ics` and `ics_lock` (`blocking/ics.rs`). J_h is the release jitter of a
//! task that never suspends, and `R_h - C_h` for a task that may suspend: its work can be deferred by that much, and no
//! smaller jitter is safe (Chen et al., "Many suspensions, many problems", Real-Time Systems 55(1), 2019).
//!
//! S_i and J_h depend on the response times of tasks on any processor. The response times are the least joint fixed
//! point (`solve.rs`). A response time above the period would let jobs of one task overlap; that task then has no
//! bound.

use crate::blocking::ics::{Again, Length};
use crate::blocking::mpcp::system::Remote;
use crate::blocking::{icpp, pip};
use crate::rows::bound::{Analysis, Blocking, Unbounded};
use crate::rows::fixed_point::Budget;
use crate::rows::mutant::{Mutant, Omission};
use crate::rows::tables::Tables;
use crate::system::across;
use crate::system::clustered;
use crate::system::hazard::hazards;
use crate::system::solve::{Equations, Rising, Start, raise};
use lockwright_model::{Duration, Protocol, System, TaskId};

/// Bounds the blocking and the response time of every task under partitioned or clustered fixed priorities.
///
/// `protocol` governs the resources for which the system names no protocol. All protocols are covered, each for the
/// systems that its page in `docs/` describes. All times are in nanoseconds. A task without a bound has `response:
/// None`, and [`TaskBound::unbounded`](crate::TaskBound::unbounded) holds the reason. The sources of the bounds are in
/// `REFERENCES.md`.
///
/// The system's scheduler is not examined: see [`scheduled()`](crate::scheduled()) for EDF and for global scheduling.
/// Overheads count if [`charge()`](crate::charge()) has added them to the system.
///
/// # Examples
/// ```
/// use lockwright_analysis::analyse;
/// use lockwright_model::{CpuId, Duration, Priority, Protocol, Step, System, Task};
/// let task = |name: &str, priority, period, run| Task {
///     name: name.into(),
///     cpu: CpuId(0),
///     priority: Priority::base(priority),
///     period: Duration::from_ms(period),
///     deadline: Duration::from_ms(period),
///     jitter: Duration::ZERO,
///     offset: Duration::ZERO,
///     wcet: Duration::from_ms(run),
///     body: vec![Step::Run(Duration::from_ms(run))],
/// };
/// let tasks = vec![task("control", 2, 10, 3), task("log", 1, 50, 20)];
/// let system = System::new("pair".into(), 1, None, vec![], tasks)?;
/// let analysis = analyse(&system, Protocol::Icpp);
/// assert_eq!(analysis.tasks[1].response, Some(Duration::from_ms(29)));
/// # Ok::<(), lockwright_model::Invalid>(())
/// ```
#[must_use]
pub fn analyse(system: &System, protocol: Protocol) -> Analysis {
    solve(&Tables::new(system, protocol, Omission::NOTHING), protocol, None)
}

/// Returns whether every task meets its deadlines, by the bounds of [`analyse`]. Tasks that stand for
/// [interrupts](System::is_interrupt) are not judged. The analysis stops at the first task that may be late, or as soon
/// as it is known that none is, so it takes less time than [`analyse`].
///
/// # Examples
/// ```
/// use lockwright_analysis::schedulable;
/// use lockwright_model::format::parse_system;
/// use lockwright_model::Protocol;
/// let source = "[[task]]\nname = \"camera\"\nperiod = \"10 ms\"\nwcet = \"2 ms\"\n";
/// let system = parse_system(source).expect("a valid task set");
/// assert!(schedulable(&system, Protocol::Pip));
/// ```
#[must_use]
pub fn schedulable(system: &System, protocol: Protocol) -> bool {
    let judged = system.task_ids().filter(|&id| !system.is_interrupt(id)).count();
    is_schedulable(system, protocol, judged)
}

/// Returns whether the first `judged` tasks meet their deadlines. The analysis stops at the first task that does not.
pub(crate) fn is_schedulable(system: &System, protocol: Protocol, judged: usize) -> bool {
    let analysis = solve(&Tables::new(system, protocol, Omission::NOTHING), protocol, Some(judged));
    analysis.tasks[..judged].iter().all(|task| task.schedulable)
}

/// Like [`analyse`], with one term omitted: a mutant, for tests of the tests.
#[cfg(feature = "mutants")]
#[must_use]
pub fn analyse_mutant(system: &System, protocol: Protocol, mutant: Mutant) -> Analysis {
    solve(&Tables::new(system, protocol, Omission::of(mutant)), protocol, None)
}

/// The parameters of one task's equation, in nanoseconds.
struct Equation {
    cost: u64,
    period: u64,
    jitter: u64,
    /// The local and boosted blocking.
    blocking: u64,
    /// The task's processor, its own place there, and the place after the last task at least as urgent.
    cpu: usize,
    place: usize,
    end: usize,
    /// The interruptible sections that one job makes others execute again, by the place of its task. Later places have
    /// none.
    again: Vec<Length>,
    /// Whether the equation depends on any response time except its own.
    coupled: bool,
}

impl Equation {
    /// Returns the other tasks at least as urgent, and the lengths of the sections that one job of each restarts.
    fn urgent<'a>(&'a self, rows: &'a [Vec<Interferer>]) -> impl Iterator<Item = (&'a Interferer, Length)> {
        let others = rows[self.cpu][..self.end].iter().enumerate().filter(|&(place, _)| place != self.place);
        others.map(|(place, h)| (h, self.again.get(place).copied().unwrap_or_default()))
    }
}

/// A task as it interferes with the others of its processor. Each processor has its tasks in a row, most urgent first.
struct Interferer {
    task: TaskId,
    cost: u64,
    period: u64,
    /// The jitter of its interference; `None` stands for its response time minus its execution time.
    jitter: Option<u64>,
}

/// The blocking of a task without the remote part, in nanoseconds.
struct Static {
    local: u64,
    boosted: u64,
}

/// Returns how often sections on its own processor delay a job: at its arrival and at each of its resumptions.
pub(crate) fn occasions(tables: &Tables<'_>, task: TaskId) -> u64 {
    if tables.is_mutant(Mutant::Repeats) { 1 } else { 1 + tables.suspensions[task.index()] }
}

fn static_blocking(tables: &Tables<'_>, task: TaskId) -> Option<Static> {
    let longest = icpp::longest(tables, task).filter(|_| !tables.is_mutant(Mutant::LocalIcpp));
    let mut local = longest.map_or(0, |section| section.length);
    let mut inherited = pip::blockers(tables, task);
    if tables.is_mutant(Mutant::LocalPip) {
        inherited.clear();
    }
    if tables.is_mutant(Mutant::LocalPipRest) {
        inherited.sort_by_key(|blocker| core::cmp::Reverse(blocker.length));
        inherited.truncate(1);
    }
    for section in inherited {
        local = local.checked_add(section.length)?;
    }
    let mut boosted: u64 = 0;
    if !tables.is_mutant(Mutant::Boosted) {
        for section in crate::blocking::mpcp::system::boosted(tables, task) {
            boosted = boosted.checked_add(section.length)?;
        }
    }
    let occasions = occasions(tables, task);
    Some(Static { local: local.checked_mul(occasions)?, boosted: boosted.checked_mul(occasions)? })
}

/// Solves the equations of all tasks. If `judged` is given, only the verdict on the first `judged` tasks is meaningful.
fn solve(tables: &Tables<'_>, protocol: Protocol, judged: Option<usize>) -> Analysis {
    if tables.system.has_clusters() {
        return clustered::solve(tables, protocol, judged);
    }
    if let Some(ruling) = across::ruling(tables) {
        return across::solve(tables, protocol, ruling, judged);
    }
    let system = tables.system;
    let mut rising = Rising::new(system, hazards(tables));
    let statics: Vec<Option<Static>> = system.task_ids().map(|id| static_blocking(tables, id)).collect();
    let remote = Remote::new(tables).unwrap_or_else(|| {
        rising.overflow_all();
        Remote::none()
    });
    for (task, _) in statics.iter().enumerate().filter(|(_, known)| known.is_none()) {
        rising.give_up(task, &Unbounded::BeyondPeriod);
    }
    let mut partitioned = Partitioned::new(tables, remote, &statics, &mut rising);
    raise(tables, &mut partitioned, &mut rising, judged);
    let Partitioned { equations, rows, suspended, .. } = partitioned;
    rising.into_analysis(tables, protocol, |task, responses| {
        if judged.is_some() {
            return Blocking::default();
        }
        let (local, boosted) = statics[task].as_ref().map_or((0, 0), |known| (known.local, known.boosted));
        let again = blocked_again(&equations[task], &rows, responses[task]);
        Blocking {
            local: Duration::from_ns(local.saturating_add(again)),
            boosted: Duration::from_ns(boosted),
            remote: Duration::from_ns(suspended[task]),
        }
    })
}

/// Returns the time for which the section of a less urgent task that blocks the job is executed again.
fn blocked_again(equation: &Equation, rows: &[Vec<Interferer>], response: u64) -> u64 {
    let window = response.saturating_sub(equation.jitter);
    equation.urgent(rows).filter(|(_, again)| again.blocker > 0).fold(0, |sum, (h, again)| {
        let jobs = window.saturating_add(h.jitter.unwrap_or_default()).div_ceil(h.period);
        sum.saturating_add(jobs.saturating_mul(again.blocker))
    })
}

fn interferer(tables: &Tables<'_>, id: TaskId) -> Interferer {
    let task = tables.system.task(id);
    let jitter = if tables.is_mutant(Mutant::ReleaseJitter) { 0 } else { task.jitter.as_ns() };
    Interferer {
        task: id,
        cost: task.wcet.as_ns(),
        period: task.period.as_ns(),
        jitter: (!tables.suspends(id) || tables.is_mutant(Mutant::SuspensionJitter)).then_some(jitter),
    }
}

fn equation(tables: &Tables<'_>, rows: &[Vec<Interferer>], id: TaskId, known: Option<&Static>) -> Equation {
    let task = tables.system.task(id);
    let blocking = known.and_then(|known| known.local.checked_add(known.boosted)).unwrap_or(u64::MAX);
    let mut equation = Equation {
        cost: task.wcet.as_ns(),
        period: task.period.as_ns(),
        jitter: task.jitter.as_ns(),
        blocking,
        cpu: task.cpu.index(),
        place: tables.places[id.index()],
        end: tables.interfering_end(id),
        again: Vec::new(),
        coupled: false,
    };
    equation.coupled = tables.suspends(id) || equation.urgent(rows).any(|(h, _)| h.jitter.is_none());
    equation
}

/// The equations of all tasks. A task depends on tasks without a bound only where its equation contains their response
/// times, so it is given up when it is evaluated.
struct Partitioned<'a> {
    tables: &'a Tables<'a>,
    remote: Remote,
    /// By task.
    equations: Vec<Equation>,
    /// By processor.
    rows: Vec<Vec<Interferer>>,
    /// The time suspended in the last round, S, by task.
    suspended: Vec<u64>,
}

impl Equations for Partitioned<'_> {
    fn start(&mut self, start: Start) {
        // From the deadlines, no response time rises by additional waiting.
        self.suspended.fill(if start == Start::Deadlines { u64::MAX } else { 0 });
    }

    fn is_coupled(&self, task: usize) -> bool {
        self.equations[task].coupled
    }

    fn respond(&mut self, task: usize, rising: &Rising) -> Result<u64, Unbounded> {
        let (tables, equation, rows) = (self.tables, &self.equations[task], &self.rows);
        let Equation { cost, period, jitter, blocking, .. } = *equation;
        let beyond = || Unbounded::BeyondPeriod;
        let suspended = self.suspension(TaskId::new(task), period, rising)?;
        let mut urgent = equation.urgent(rows);
        if let Some((h, _)) = urgent.find(|(h, _)| h.jitter.is_none() && rising.get(h.task).is_none()) {
            return Err(Unbounded::DependsOn { task: h.task });
        }
        let own = cost.checked_add(blocking).and_then(|own| own.checked_add(suspended)).ok_or_else(beyond)?;
        // The result of the last round is a lower bound, and so is its sum with the additional waiting of this round.
        let before = rising.responses[task] - jitter;
        let start = own.max(before.saturating_add(suspended.saturating_sub(self.suspended[task])));
        // The task's own place is not before the end if the mutant omits tasks of equal priority.
        let terms = 1 + (equation.end - usize::from(equation.place < equation.end)) as u64;
        let window = tables.budget.least(start, period - jitter, terms, |window| {
            equation.urgent(rows).try_fold(own, |sum, (h, again)| {
                let jitter = match h.jitter {
                    Some(jitter) => jitter,
                    None => rising.responses[h.task.index()].saturating_sub(h.cost),
                };
                let jobs = window.checked_add(jitter)?.div_ceil(h.period);
                sum.checked_add(jobs.checked_mul(h.cost.checked_add(again.all)?)?)
            })
        })?;
        self.suspended[task] = suspended;
        Ok(window + jitter)
    }
}

impl<'a> Partitioned<'a> {
    /// Creates the equations. Gives up the tasks of a processor whose restarts are too many to count.
    fn new(tables: &'a Tables<'a>, remote: Remote, statics: &[Option<Static>], rising: &mut Rising) -> Self {
        let rows: Vec<Vec<Interferer>> =
            tables.cpus.iter().map(|tasks| tasks.iter().map(|&id| interferer(tables, id)).collect()).collect();
        let equation = |id: TaskId| equation(tables, &rows, id, statics[id.index()].as_ref());
        let mut equations: Vec<Equation> = tables.system.task_ids().map(equation).collect();
        for tasks in &tables.cpus {
            let counted = Again::new(tables, tasks).each(|h, id, length| {
                let again = &mut equations[id.index()].again;
                again.resize(h, Length::default());
                again.push(length);
            });
            if let Err(reason) = counted {
                tasks.iter().for_each(|id| rising.give_up(id.index(), &reason));
            }
        }
        let suspended = vec![0; equations.len()];
        Self { tables, remote, equations, rows, suspended }
    }

    /// Returns S of a task for the current response times, which never exceed the final ones.
    fn suspension(&self, id: TaskId, period: u64, rising: &Rising) -> Result<u64, Unbounded> {
        let tables = self.tables;
        let requests = if tables.suspends(id) { tables.system.requests(id) } else { &[] };
        let mut suspended: u64 = 0;
        for request in requests.iter().filter(|request| tables.protocol(request.resource) == Protocol::Mpcp) {
            let wait = self.remote.wait(tables, id, request.resource, |user| rising.get(user), period)?;
            let all = wait.total.checked_mul(u64::from(request.count)).ok_or(Unbounded::BeyondPeriod)?;
            suspended = suspended.checked_add(all).ok_or(Unbounded::BeyondPeriod)?;
        }
        Ok(suspended)
    }
}

/// The response times of a system in which none depends on another, and which meets all deadlines.
pub(crate) struct Uncoupled<'a> {
    partitioned: Partitioned<'a>,
    /// By task.
    responses: Vec<u64>,
}

impl<'a> Uncoupled<'a> {
    /// Returns `None` for any other system.
    pub(crate) fn new(tables: &'a Tables<'a>) -> Option<Self> {
        let system = tables.system;
        if system.has_clusters() || across::ruling(tables).is_some() {
            return None;
        }
        let mut rising = Rising::new(system, hazards(tables));
        let statics: Vec<Option<Static>> = system.task_ids().map(|id| static_blocking(tables, id)).collect();
        let mut partitioned = Partitioned::new(tables, Remote::new(tables)?, &statics, &mut rising);
        if statics.iter().any(Option::is_none) || partitioned.equations.iter().any(|equation| equation.coupled) {
            return None;
        }
        raise(tables, &mut partitioned, &mut rising, None);
        let meets = |id: TaskId| rising.get(id).is_some_and(|response| response <= system.task(id).deadline.as_ns());
        system.task_ids().all(meets).then_some(())?;
        Some(Self { partitioned, responses: rising.responses })
    }

    /// Returns the tasks whose equations contain the execution time of `task`, in order of decreasing priority.
    pub(crate) fn resting(&self, task: TaskId) -> impl Iterator<Item = TaskId> {
        let Partitioned { tables, equations, .. } = &self.partitioned;
        let Equation { cpu, place, .. } = equations[task.index()];
        let counts = move |&other: &TaskId| other == task || place < equations[other.index()].end;
        tables.cpus[cpu].iter().copied().filter(counts)
    }

    /// Returns whether `other` meets its deadline if each job of `task` executes longer by `extra` outside of sections.
    ///
    /// Neither blocking nor restarts change then. The window of `other` grows by at least `extra`: with the window w
    /// that suffices now, at least one job of `task` counts in w, so that without the extra execution, the window
    /// w - extra would suffice. The search begins there.
    pub(crate) fn meets(&self, other: TaskId, task: TaskId, extra: u64) -> bool {
        let Partitioned { tables, equations, rows, .. } = &self.partitioned;
        let equation = &equations[other.index()];
        let more = |of: TaskId| if of == task { extra } else { 0 };
        let own = [equation.blocking, more(other)].iter().try_fold(equation.cost, |sum, &time| sum.checked_add(time));
        let start = (self.responses[other.index()] - equation.jitter).checked_add(extra);
        let (Some(own), Some(start)) = (own, start) else { return false };
        let limit = tables.system.task(other).deadline.as_ns() - equation.jitter;
        let found = Budget::new().least(start, limit, 1 + equation.end as u64, |window| {
            equation.urgent(rows).try_fold(own, |sum, (h, again)| {
                let jobs = window.checked_add(h.jitter?)?.div_ceil(h.period);
                let each = h.cost.checked_add(again.all)?.checked_add(more(h.task))?;
                sum.checked_add(jobs.checked_mul(each)?)
            })
        });
        found.is_ok()
    }
}
