//! The joint fixed point of response times, which all analyses of systems under fixed priorities share.
//!
//! The response time of a task depends on those of others: on the processors where they interfere, and wherever its
//! requests wait for them. All response times start at `C + J` and rise together. In each round, every equation is
//! evaluated once for the current response times. No equation ever falls as these rise, so the rounds end at the least
//! joint fixed point, unless a task has none within its period. That task then has no bound, nor has any task whose
//! equation depends on it. Deadlines matter for the verdict only.
//!
//! The equations are [`Equations`]: those of `response.rs` for protocols of one processor and `mpcp`, of `across.rs`
//! for the other protocols for several processors, and of `clustered.rs` for clusters.
//!
//! Three iterations of this kind stay apart:
//! - `blocking::joint` works on rows without names or reasons. It ends at the first task beyond its deadline, and is
//!   the iteration of the publications that the bounds are compared with.
//! - `linear::responses` evaluates a program for each task in each round, within a limit of its own.
//! - `sensitivity/` evaluates only the equations that a change concerns, and starts from the fixed point of another
//!   system. Its tests compare it with this one.

use crate::rows::bound::{Analysis, Blocking, Proof, TaskBound, Unbounded};
use crate::rows::tables::Tables;
use lockwright_model::{Duration, Protocol, System, TaskId};

/// The most rounds over all tasks. An iteration that takes more counts as divergent, which is safe: the tasks then have
/// no bound.
pub(crate) const ROUNDS_MAX: u32 = 10_000;

/// Response times on their way to the least joint fixed point. None of them is above it.
#[derive(Clone, Debug)]
pub(crate) struct Rising {
    /// By task, in nanoseconds. The response time of a task without a bound keeps its last value.
    pub(crate) responses: Vec<u64>,
    /// By task: why it has no bound, or `None` as long as it may have one.
    pub(crate) reasons: Vec<Option<Unbounded>>,
    /// By task: whether the reason is a number that does not fit, of any task.
    overflows: Vec<bool>,
}

impl Rising {
    /// Returns the first response times, `C + J`, of the tasks without a reason.
    pub(crate) fn new(system: &System, reasons: Vec<Option<Unbounded>>) -> Self {
        let first = |task: &lockwright_model::Task| task.wcet.as_ns().saturating_add(task.jitter.as_ns());
        let overflows = vec![false; reasons.len()];
        Self { responses: system.tasks().iter().map(first).collect(), reasons, overflows }
    }

    /// Returns the response time of a task, or `None` if it has no bound.
    pub(crate) fn get(&self, task: TaskId) -> Option<u64> {
        self.reasons[task.index()].is_none().then(|| self.responses[task.index()])
    }

    /// Records that a task has no bound. The first reason stands.
    pub(crate) fn give_up(&mut self, task: usize, reason: &Unbounded) {
        self.reasons[task].get_or_insert_with(|| reason.clone());
    }

    /// Records that no task has a bound, for this reason unless there is another.
    pub(crate) fn give_up_all(&mut self, reason: &Unbounded) {
        (0..self.reasons.len()).for_each(|task| self.give_up(task, reason));
    }

    /// Records that the task has no bound because a number of the analysis does not fit, maybe that of another task.
    pub(crate) fn overflow(&mut self, task: usize) {
        self.overflows[task] |= self.reasons[task].is_none();
        self.give_up(task, &Unbounded::BeyondPeriod);
    }

    /// Records the same of all tasks.
    pub(crate) fn overflow_all(&mut self) {
        (0..self.reasons.len()).for_each(|task| self.overflow(task));
    }

    /// Returns the bounds. `blocking` returns the parts of the response time of a task with a bound.
    pub(crate) fn into_analysis(
        mut self,
        tables: &Tables<'_>,
        protocol: Protocol,
        blocking: impl Fn(usize, &[u64]) -> Blocking,
    ) -> Analysis {
        let bounds = tables.system.task_ids().map(|id| {
            let response = self.get(id).map(Duration::from_ns);
            TaskBound {
                blocking: response.map(|_| blocking(id.index(), &self.responses)),
                response,
                schedulable: response.is_some_and(|response| response <= tables.system.task(id).deadline),
                unbounded: self.reasons[id.index()].take(),
                overflows: self.overflows[id.index()],
                proof: Proof::Classic,
            }
        });
        Analysis { protocol, tasks: bounds.collect() }
    }
}

/// Where an evaluation of all equations starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Start {
    /// At response times that are not above the least joint fixed point, from which they rise.
    Below,
    /// At the deadlines.
    Deadlines,
}

/// The equations of all tasks of a system. Tasks are given by index.
pub(crate) trait Equations {
    /// Forgets what was computed for other response times. The next ones are these.
    fn start(&mut self, _start: Start) {}

    /// Prepares a round: computes what the equations need for the current response times, and gives up the tasks that
    /// have no bound for these.
    fn prepare(&mut self, _rising: &mut Rising) {}

    /// Returns the response time of a task for the current ones. It is never less than the current one.
    ///
    /// # Errors
    /// Returns why the task has no bound.
    fn respond(&mut self, task: usize, rising: &Rising) -> Result<u64, Unbounded>;

    /// Returns whether the equation of a task contains any other response time than its own. If not, the result of the
    /// first round stands.
    fn is_coupled(&self, _task: usize) -> bool {
        true
    }

    /// Returns whether the requests of a task may delay other tasks, wherever they execute.
    fn asks(&self, _task: usize) -> bool {
        false
    }

    /// Returns the task without a bound on which a task depends, or `None` if there is none. `asking` is the first task
    /// without a bound that [`asks`](Self::asks).
    fn depends_on(&self, _task: usize, _asking: Option<usize>, _rising: &Rising) -> Option<usize> {
        None
    }

    /// Gives up a task.
    fn give_up(&mut self, rising: &mut Rising, task: usize, reason: &Unbounded) {
        rising.give_up(task, reason);
    }
}

/// Raises all response times to their least joint fixed point.
///
/// If `judged` is given, only the verdict on the first `judged` tasks is meaningful: the iteration ends as soon as one
/// of them cannot meet its deadline, or if one evaluation shows that all tasks meet theirs.
///
/// BOUND: [`ROUNDS_MAX`] rounds, and the budget of all fixed points together.
pub(crate) fn raise(tables: &Tables<'_>, equations: &mut impl Equations, rising: &mut Rising, judged: Option<usize>) {
    if judged.is_some() && holds_at_deadlines(tables, equations, rising) {
        return;
    }
    // The most urgent tasks of each processor come first, as the jitter of others depends on their response times.
    let order: Vec<usize> = tables.cpus.iter().flatten().map(|id| id.index()).collect();
    for round in 0..ROUNDS_MAX {
        equations.prepare(rising);
        give_up_dependents(equations, rising);
        let mut changed = false;
        for &task in &order {
            if rising.reasons[task].is_some() || (round > 0 && !equations.is_coupled(task)) {
                continue;
            }
            let is_late = match equations.respond(task, rising) {
                Ok(response) => {
                    changed |= response != rising.responses[task];
                    rising.responses[task] = response;
                    response > tables.system.task(TaskId::new(task)).deadline.as_ns()
                }
                Err(reason) => {
                    changed = true;
                    rising.reasons[task] = Some(reason);
                    true
                }
            };
            // From here on, the response time only rises.
            if is_late && judged.is_some_and(|judged| task < judged) {
                return;
            }
        }
        if !changed {
            return;
        }
    }
    for task in order {
        if equations.is_coupled(task) {
            equations.give_up(rising, task, &Unbounded::Unsettled);
        }
    }
}

/// Returns whether no equation exceeds the deadline of its task if every response time is as long as the deadline. As
/// no equation falls when response times rise, the least joint fixed point is not above the deadlines then. The
/// deadlines take the place of the response times.
fn holds_at_deadlines(tables: &Tables<'_>, equations: &mut impl Equations, rising: &mut Rising) -> bool {
    let deadlines: Vec<u64> = tables.system.tasks().iter().map(|task| task.deadline.as_ns()).collect();
    if rising.reasons.iter().any(Option::is_some) || rising.responses.iter().zip(&deadlines).any(|(r, d)| r > d) {
        return false;
    }
    let none = vec![None; deadlines.len()];
    let mut late = Rising { overflows: vec![false; deadlines.len()], responses: deadlines, reasons: none };
    equations.start(Start::Deadlines);
    equations.prepare(&mut late);
    let holds = late.reasons.iter().all(Option::is_none)
        && (0..late.responses.len()).all(|task| equations.respond(task, &late) == Ok(late.responses[task]));
    if holds {
        *rising = late;
    } else {
        equations.start(Start::Below);
    }
    holds
}

/// Gives up all tasks that depend on a task without a bound.
fn give_up_dependents(equations: &mut impl Equations, rising: &mut Rising) {
    let count = rising.reasons.len();
    if rising.reasons.iter().all(Option::is_none) {
        return;
    }
    // BOUND: each round except the last removes one bound.
    loop {
        let asking = (0..count).find(|&task| rising.reasons[task].is_some() && equations.asks(task));
        let mut bounded = (0..count).filter(|&task| rising.reasons[task].is_none());
        let next = bounded.find_map(|task| Some((task, equations.depends_on(task, asking, rising)?)));
        let Some((task, on)) = next else { return };
        equations.give_up(rising, task, &Unbounded::DependsOn { task: TaskId::new(on) });
    }
}
