//! How far execution times and blocking can grow before a deadline breaks.

mod demands;
mod forms;
mod joint;
mod locals;
mod wide;

use crate::bound::Unbounded;
use crate::fixed_point::TERMS_MAX;
use crate::response::is_schedulable;
use crate::scheduled::{self, Refutation};
use crate::tables::Tables;
use crate::uniprocessor::Effort;
use crate::{across, analyse, charge};
use lockwright_model::{
    DURATION_MAX, Duration, Overheads, Protocol, ResourceId, Scheduler, Step, System, Task, TaskId,
};
use std::cell::{Cell, RefCell};
use std::ops::Range;

/// The largest factor a set of execution times can take with every deadline met.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Growth {
    /// In thousandths; 1000 is as it is now, less says how far they must shrink.
    Permille(u64),
    /// No factor helps: a deadline breaks, or a bound is missing, even with next to nothing.
    Broken,
    /// No factor up to [`FACTOR_MAX`] breaks a deadline.
    Unlimited,
}

/// The largest factor tried, in thousandths: a million times.
pub const FACTOR_MAX: u64 = 1_000_000_000;

/// What [`sensitivity`] found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sensitivity {
    /// All execution times together, sections included.
    pub all: Growth,
    /// All of one task's execution times, by task id.
    pub tasks: Vec<(TaskId, Growth)>,
    /// The sections on one resource, by resource id.
    pub resources: Vec<(ResourceId, Growth)>,
    /// The most time that something outside the system may block each job of one task, beside what blocks it now, with
    /// every deadline still met; `None` where one breaks without it. It counts as execution of the job: less urgent
    /// tasks wait for it, too. By task id.
    pub tolerated: Vec<(TaskId, Option<Duration>)>,
}

/// Most terms to tell whether a form of a system with other execution times holds under partitioned EDF. Where the
/// processor is in use but for the millionth part or so, the largest factor may need more: then what is found is less.
const FORM_TERMS_MAX: u64 = TERMS_MAX / 16;

/// Whose growth is looked for.
struct Subject<'a> {
    system: &'a System,
    overheads: &'a Overheads,
    protocol: Protocol,
    /// What refuted forms of it, under partitioned EDF.
    refutations: RefCell<Vec<Refutation>>,
    /// Whether it holds as it is, once that is known.
    unchanged: Cell<Option<bool>>,
}

impl Subject<'_> {
    /// Whether every deadline holds, as it is. With full effort: the verdict is that of the test itself.
    fn holds_unchanged(&self, go_on: &dyn Fn() -> bool) -> Option<bool> {
        if self.unchanged.get().is_none() {
            self.unchanged.set(Some(self.holds_within(self.system, Effort { go_on, ..Effort::FULL })?));
        }
        self.unchanged.get()
    }

    /// Whether every deadline holds, of this form of it; `None` where `go_on` did not wait for that.
    fn holds(&self, system: &System, go_on: &dyn Fn() -> bool) -> Option<bool> {
        self.holds_within(system, Effort { terms: FORM_TERMS_MAX, go_on })
    }

    fn holds_within(&self, system: &System, effort: Effort<'_>) -> Option<bool> {
        let go_on = effort.go_on;
        if !go_on() {
            return None;
        }
        if matches!(system.scheduler(), Scheduler::PFp | Scheduler::CFp) {
            // Of the system's tasks: interrupts stand behind them.
            let charged = charge(system, self.overheads, self.protocol);
            return Some(charged.is_ok_and(|charged| is_schedulable(&charged, self.protocol, system.tasks().len())));
        }
        let verdict = scheduled::verdict(system, self.overheads, effort).ok()?;
        if let Err(Some(refutation)) = verdict {
            let mut known = self.refutations.borrow_mut();
            if !known.contains(&refutation) {
                known.push(refutation);
            }
        }
        Some(verdict.is_ok())
    }

    /// Whether a form of it is refuted at once, by what refuted others.
    fn is_refuted(&self, system: &System) -> bool {
        scheduled::is_refuted(system, self.overheads, &self.refutations.borrow())
    }

    /// The greatest amount for which the system's form holds; it holds for `holding`, and not for `breaking`. `None`
    /// where it was interrupted.
    ///
    /// Under partitioned EDF the verdict is expensive near full use of a processor, and what refutes one form is cheap
    /// to look at in another. So the greatest amount that nothing known refutes is tried first: where it holds, it is
    /// the one.
    fn bisect(
        &self,
        (mut holding, mut breaking): (u64, u64),
        form: impl Fn(u64) -> Option<System>,
        go_on: &dyn Fn() -> bool,
    ) -> Option<u64> {
        let mut knows = self.system.scheduler() == Scheduler::PEdf;
        // BOUND: each turn but the last halves the distance, or knows one more interval of those in which the work that
        // is due grows.
        while breaking - holding > 1 {
            let mut tried = holding + (breaking - holding) / 2;
            if knows {
                let unrefuted = halve((holding, breaking), |amount| {
                    go_on().then(|| form(amount).is_some_and(|system| !self.is_refuted(&system)))
                })?;
                if unrefuted == holding {
                    break;
                }
                let known = self.refutations.borrow().len();
                if form(unrefuted).map_or(Some(false), |system| self.holds(&system, go_on))? {
                    return Some(unrefuted);
                }
                breaking = unrefuted;
                if self.refutations.borrow().len() > known {
                    continue;
                }
                // Too much effort: what is less takes less.
                knows = false;
                tried = holding + (breaking - holding) / 2;
                if tried == holding {
                    break;
                }
            }
            if form(tried).map_or(Some(false), |system| self.holds(&system, go_on))? {
                holding = tried;
            } else {
                breaking = tried;
            }
        }
        Some(holding)
    }
}

/// The greatest amount for which `holds`, by bisection: it does for the first, and not for the second.
///
/// BOUND: sixty-four halvings.
fn halve((mut holding, mut breaking): (u64, u64), mut holds: impl FnMut(u64) -> Option<bool>) -> Option<u64> {
    while breaking - holding > 1 {
        let middle = holding + (breaking - holding) / 2;
        if holds(middle)? {
            holding = middle;
        } else {
            breaking = middle;
        }
    }
    Some(holding)
}

/// What is scaled.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    All,
    Task(TaskId),
    Sections(ResourceId),
}

/// Finds the factors by bisection over the verdict of [`analyse`], which only worsens as execution times grow; under
/// other schedulers over that of [`scheduled()`](scheduled::scheduled()). Scaled times are rounded up, so a factor is
/// never too large.
///
/// Overheads are charged anew to each scaled system: they stay as they are. So do the homes of resources.
///
/// `go_on` is told, again and again, how many of how many factors are found; `None` where it says no.
pub fn sensitivity(
    system: &System,
    overheads: &Overheads,
    protocol: Protocol,
    go_on: impl FnMut(usize, usize) -> bool,
) -> Option<Sensitivity> {
    // What executes where does not rest on execution times.
    let has_homes = |resource| system.protocol_of(resource, protocol).has_homes();
    let at_home = system.resource_ids().any(has_homes).then(|| system.clone().with_homes());
    let system = at_home.as_ref().unwrap_or(system);
    let whole = 1 + 2 * system.tasks().len() + system.resources().len();
    let progress = Progress { found: Cell::new(0), whole, go_on: RefCell::new(go_on) };
    if has_hazard(system, protocol) {
        return progress.asked().then(|| Sensitivity::broken(system));
    }
    if let Some(tables) = joint_tables(system, overheads, protocol) {
        match across::ruling(&tables) {
            None => return forms::find(&tables, protocol, &progress),
            Some(ruling) => {
                if let Some(found) = wide::find(&tables, ruling, &progress)? {
                    return Some(found);
                }
            }
        }
    }
    plain(system, overheads, protocol, &progress)
}

/// How far a search is.
struct Progress<F> {
    found: Cell<usize>,
    whole: usize,
    go_on: RefCell<F>,
}

impl<F: FnMut(usize, usize) -> bool> Progress<F> {
    fn asked(&self) -> bool {
        (self.go_on.borrow_mut())(self.found.get(), self.whole)
    }

    /// One more is found.
    fn add(&self) {
        self.found.set(self.found.get() + 1);
    }
}

impl Sensitivity {
    /// Of a system in which a task has no bound, whatever the times are.
    fn broken(system: &System) -> Self {
        Self {
            all: Growth::Broken,
            tasks: system.task_ids().map(|task| (task, Growth::Broken)).collect(),
            resources: system.resource_ids().map(|resource| (resource, Growth::Broken)).collect(),
            tolerated: system.task_ids().map(|task| (task, None)).collect(),
        }
    }
}

/// Whether a task has no bound, whatever the times are.
fn has_hazard(system: &System, protocol: Protocol) -> bool {
    match system.scheduler() {
        Scheduler::PFp | Scheduler::CFp => {
            analyse(system, protocol).tasks.iter().any(|task| task.unbounded.as_ref().is_some_and(is_hazard))
        }
        _ => scheduled::uncovered(system).is_some(),
    }
}

/// The tables of a system that [`forms`] or [`wide`] covers.
fn joint_tables<'s>(system: &'s System, overheads: &Overheads, protocol: Protocol) -> Option<Tables<'s>> {
    let is_partitioned = matches!(system.scheduler(), Scheduler::PFp | Scheduler::CFp) && !system.has_clusters();
    if !is_partitioned || *overheads != Overheads::default() {
        return None;
    }
    let tables = Tables::new(system, protocol, None);
    let is_covered = across::ruling(&tables).is_some() || tables.cutoffs.iter().all(Option::is_none);
    is_covered.then_some(tables)
}

/// Each form of the system by itself, from the beginning.
fn plain(
    system: &System,
    overheads: &Overheads,
    protocol: Protocol,
    progress: &Progress<impl FnMut(usize, usize) -> bool>,
) -> Option<Sensitivity> {
    let subject =
        Subject { system, overheads, protocol, refutations: RefCell::new(Vec::new()), unchanged: Cell::new(None) };
    let asked = || progress.asked();
    let find = |part| {
        let growth = growth(&subject, part, &asked)?;
        progress.add();
        Some(growth)
    };
    let all = find(Part::All)?;
    let holds = subject.holds_unchanged(&asked)?;
    let processors = if holds { demands::Processors::new(system, overheads) } else { None };
    let room = |task| {
        let most = match &processors {
            Some(processors) if processors.covers(task) => Some(processors.room(task, &asked)?),
            _ => tolerance(&subject, task, &asked)?,
        };
        progress.add();
        Some(most)
    };
    let rooms = system.task_ids().map(room).collect::<Option<Vec<_>>>()?;
    let tasks = system.task_ids().map(|task| {
        let growth = match (&processors, rooms[task.index()]) {
            (Some(processors), Some(room)) if processors.covers(task) && processors.is_alone(task) => {
                let growth = processors.growth(task, room, &asked)?;
                progress.add();
                growth
            }
            _ => find(Part::Task(task))?,
        };
        Some((task, growth))
    });
    let tasks = tasks.collect::<Option<_>>()?;
    let resources = system.resource_ids().map(|resource| Some((resource, find(Part::Sections(resource))?)));
    let resources = resources.collect::<Option<_>>()?;
    let tolerated = system.task_ids().zip(rooms).map(|(task, most)| (task, most.map(Duration::from_ns))).collect();
    Some(Sensitivity { all, tasks, resources, tolerated })
}

/// The most time a job of `task` can be blocked beside what blocks it now. The outer `None` where it was interrupted.
fn tolerance(subject: &Subject<'_>, task: TaskId, go_on: &dyn Fn() -> bool) -> Option<Option<u64>> {
    if !subject.holds_unchanged(go_on)? {
        return Some(None);
    }
    // No response within the deadline has room for more than that.
    let breaking = subject.system.task(task).deadline.as_ns().min(DURATION_MAX.as_ns()) + 1;
    let most = subject.bisect((0, breaking), |extra| lengthened(subject.system, task, extra), go_on)?;
    Some(Some(most))
}

/// Whether the reason has nothing to do with execution times.
fn is_hazard(reason: &Unbounded) -> bool {
    !matches!(reason, Unbounded::BeyondPeriod | Unbounded::DependsOn { .. } | Unbounded::Unsettled)
}

fn growth(subject: &Subject<'_>, part: Part, go_on: &dyn Fn() -> bool) -> Option<Growth> {
    let system = subject.system;
    if matches!(part, Part::Sections(resource) if system.users(resource).is_empty()) {
        return Some(Growth::Unlimited);
    }
    let form = |permille| scaled(system, part, permille);
    let holds = |permille| form(permille).map_or(Some(false), |scaled| subject.holds(&scaled, go_on));
    // Every task of the last system that held, and the first that did not.
    let between = if subject.holds_unchanged(go_on)? {
        let mut factor = 1000;
        loop {
            if factor == FACTOR_MAX {
                return Some(Growth::Unlimited);
            }
            let next = (factor * 2).min(FACTOR_MAX);
            if !holds(next)? {
                break (factor, next);
            }
            factor = next;
        }
    } else if holds(1)? {
        (1, 1000)
    } else {
        return Some(Growth::Broken);
    };
    subject.bisect(between, form, go_on).map(Growth::Permille)
}

/// The largest factor of that part, from 1000 on, with which the task executes no more than so much longer.
fn factor_within(system: &System, id: TaskId, part: Part, room: u64) -> u64 {
    let task = system.task(id);
    let most = task.wcet.as_ns().saturating_add(room);
    let fits = |permille| scaled_body(task, id, part, permille).is_some_and(|(_, wcet)| wcet.as_ns() <= most);
    if fits(FACTOR_MAX) {
        return FACTOR_MAX;
    }
    halve((1000, FACTOR_MAX), |permille| Some(fits(permille))).unwrap_or(1000)
}

/// The system with jobs of one task that execute so many nanoseconds longer.
fn lengthened(system: &System, task: TaskId, extra: u64) -> Option<System> {
    let mut tasks = system.tasks().to_vec();
    if extra > 0 {
        let longer = &mut tasks[task.index()];
        longer.wcet = longer.wcet.checked_add(Duration::from_ns(extra))?;
        longer.body.push(Step::Run(Duration::from_ns(extra)));
    }
    system.with_tasks(tasks).ok()
}

/// The system with the runs of that part taken `permille` thousandths of; `None` where that is no valid system any
/// more.
fn scaled(system: &System, part: Part, permille: u64) -> Option<System> {
    let mut tasks = system.tasks().to_vec();
    for (index, task) in tasks.iter_mut().enumerate() {
        (task.body, task.wcet) = scaled_body(task, TaskId::new(index), part, permille)?;
    }
    system.with_tasks(tasks).ok()
}

/// The system with each of those tasks, by id, a thousandth as long.
fn shrunk(system: &System, shrunk: &Range<usize>) -> Option<System> {
    let mut tasks = system.tasks().to_vec();
    for index in shrunk.clone() {
        let (task, id) = (&mut tasks[index], TaskId::new(index));
        (task.body, task.wcet) = scaled_body(task, id, Part::Task(id), 1)?;
    }
    system.with_tasks(tasks).ok()
}

/// The tasks that execute the part.
fn users(system: &System, part: Part) -> Vec<TaskId> {
    match part {
        Part::All => system.task_ids().collect(),
        Part::Task(task) => vec![task],
        Part::Sections(resource) => system.users(resource).to_vec(),
    }
}

/// What becomes of one task, and its execution time.
fn scaled_body(task: &Task, id: TaskId, part: Part, permille: u64) -> Option<(Vec<Step>, Duration)> {
    let mut body = task.body.clone();
    let mut wcet = Duration::ZERO;
    let mut inside = part == Part::All || part == Part::Task(id);
    for step in &mut body {
        match step {
            Step::Run(time) => {
                if inside {
                    let ns = u128::from(time.as_ns()) * u128::from(permille);
                    *time = Duration::from_ns(u64::try_from(ns.div_ceil(1000)).ok()?);
                }
                wcet = wcet.checked_add(*time)?;
            }
            Step::Lock(locked) if part == Part::Sections(*locked) => inside = true,
            Step::Unlock(locked) if part == Part::Sections(*locked) => inside = false,
            Step::Lock(_) | Step::Unlock(_) => {}
        }
    }
    Some((body, wcet))
}

#[cfg(test)]
mod tests;
