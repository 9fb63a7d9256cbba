//! The result of a verb for a system under one protocol: bounds, observations and verdicts. The table and the JSON are
//! two views of it.

use lockwright_analysis::{Analysis, Blocker, Blocking, Proof, TaskBound, Unbounded};
use lockwright_model::{Duration, Observation, Protocol, Scheduler, System, TaskId};
use lockwright_report::table_order;
use std::cmp::Reverse;

/// The bounds of one task.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Bound {
    /// Blocking; `None` without a bound.
    pub blocking: Option<Blocking>,
    /// Under EDF, the critical section that can delay it the longest.
    pub blocker: Option<Blocker>,
    /// Longest response; `None` without a bound.
    pub response: Option<Duration>,
    /// Whether the response is proved to be within the deadline.
    pub proved: bool,
    /// The method that proves the response, or under partitioned EDF the deadline; `None` without a bound, and under
    /// global schedulers.
    pub proof: Option<Proof>,
    /// Whether the deadline is neither proved to hold nor shown to be missed, because the analysis is not exact.
    pub open: bool,
    /// Why there is no bound.
    pub reason: Option<String>,
    /// There is no bound because the response grows beyond the period, and so beyond the deadline.
    pub beyond_period: bool,
    /// There is no bound because the protocol has none for such a system, whatever the times are.
    pub uncovered: bool,
}

/// The observations of one task.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Seen {
    /// The observations of the simulator or the runtime.
    pub observation: Observation,
    /// The response time that 99.9 % of the jobs did not exceed; `run` and `verify` only.
    pub p999: Option<Duration>,
}

/// The requirements of a verdict on observations. Each value includes the requirements of those before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Standard {
    /// No deadline was missed.
    #[default]
    InTime,
    /// No response was longer than its bound.
    WithinBound,
    /// Every deadline is proved to hold.
    Proved,
}

/// One task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    /// The task.
    pub task: TaskId,
    /// Its bounds.
    pub bound: Bound,
    /// Its observations; `None` for `check`.
    pub seen: Option<Seen>,
    /// The requirements of the verdict on the observations.
    pub standard: Standard,
}

/// The verdict on a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Its deadlines hold: proved, or observed.
    Ok,
    /// A deadline was missed, or an exact analysis shows that one can be missed.
    Late,
    /// `check` found no bound.
    NoBound,
    /// A response was longer than its bound, although no deadline was missed.
    AboveBound,
    /// The deadline is not proved, and no miss was shown or observed.
    NotProved,
    /// No job finished, and none was due.
    NotSeen,
}

impl Verdict {
    /// As printed.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Late => "late",
            Self::NoBound => "no bound",
            Self::AboveBound => "above bound",
            Self::NotProved => "not proved",
            Self::NotSeen => "not seen",
        }
    }
}

impl Row {
    /// Whether the deadlines of the task hold: proved, for `check`, and otherwise observed as the standard requires.
    #[must_use]
    pub fn holds(&self) -> bool {
        let Some(seen) = self.seen else { return self.bound.proved };
        seen.observation.misses == 0
            && (self.standard < Standard::WithinBound || self.above_bound() != Some(true))
            && (self.standard < Standard::Proved || self.bound.proved)
    }

    /// Whether a response was longer than its bound. `None` without a bound or an observation.
    #[must_use]
    pub fn above_bound(&self) -> Option<bool> {
        Some(self.seen?.observation.response? > self.bound.response?)
    }

    /// Deadline minus bound, in nanoseconds.
    #[must_use]
    pub fn slack(&self, system: &System) -> Option<i64> {
        self.left_by(self.bound.response?, system)
    }

    /// Deadline minus the longest observed response, in nanoseconds.
    #[must_use]
    pub fn slack_seen(&self, system: &System) -> Option<i64> {
        self.left_by(self.seen?.observation.response?, system)
    }

    fn left_by(&self, response: Duration, system: &System) -> Option<i64> {
        let deadline = i64::try_from(system.task(self.task).deadline.as_ns()).ok()?;
        deadline.checked_sub(i64::try_from(response.as_ns()).ok()?)
    }

    /// The verdict.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        match self.seen {
            None if self.bound.proved => Verdict::Ok,
            None if self.bound.response.is_none() && !self.bound.beyond_period => Verdict::NoBound,
            None if self.bound.open => Verdict::NotProved,
            None => Verdict::Late,
            Some(seen) if seen.observation.misses > 0 => Verdict::Late,
            Some(_) if self.above_bound() == Some(true) => Verdict::AboveBound,
            Some(_) if !self.holds() => Verdict::NotProved,
            Some(seen) if seen.observation.jobs == 0 => Verdict::NotSeen,
            Some(_) => Verdict::Ok,
        }
    }
}

/// All tasks under one protocol.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// The protocol of resources that name none.
    pub protocol: String,
    /// Other protocols with the same rules on this system, and so with the same rows.
    pub same: Vec<String>,
    /// In [`table_order`].
    pub rows: Vec<Row>,
    /// The system with overheads, which the bounds are about: its first tasks are those of the file. `None` if no
    /// overheads are charged to tasks.
    pub charged: Option<System>,
}

impl Report {
    /// The bounds alone.
    #[must_use]
    pub fn of_bounds(system: &System, analysis: &Analysis) -> Self {
        Self::of(system, system, analysis)
    }

    /// The bounds of a system with overheads, for the tasks of the file; the interrupts that follow them have no rows.
    #[must_use]
    pub fn of_charged(system: &System, charged: System, analysis: &Analysis) -> Self {
        let report = Self::of(system, &charged, analysis);
        Self { charged: Some(charged), ..report }
    }

    fn of(system: &System, analysed: &System, analysis: &Analysis) -> Self {
        let row = |task: TaskId| Row {
            task,
            bound: bound_of(analysed, &analysis.tasks[task.index()], {
                // Charges are upper bounds.
                std::ptr::eq(system, analysed)
                    && is_exact(system, analysis.protocol, task)
                    && (analysis.tasks[task.index()].response.is_some() || is_overrun(system, task))
            }),
            seen: None,
            standard: Standard::default(),
        };
        let rows = table_order(system).into_iter().map(row).collect();
        Self { protocol: analysis.protocol.to_string(), same: Vec::new(), rows, charged: None }
    }

    /// Sets the requirements of the verdict.
    #[must_use]
    pub fn judged_by(mut self, standard: Standard) -> Self {
        for row in &mut self.rows {
            row.standard = standard;
        }
        self
    }

    /// The system that was analysed, for names of tasks that are not in the file.
    #[must_use]
    pub fn analysed<'a>(&'a self, system: &'a System) -> &'a System {
        self.charged.as_ref().unwrap_or(system)
    }

    /// Adds the observations, which are indexed by task id.
    #[must_use]
    pub fn with_seen(mut self, seen: &[Seen]) -> Self {
        for row in &mut self.rows {
            row.seen = seen.get(row.task.index()).copied();
        }
        self
    }

    /// Whether every task holds its deadlines; see [`Row::holds`].
    #[must_use]
    pub fn holds(&self) -> bool {
        self.rows.iter().all(Row::holds)
    }

    /// A warning about tasks of which no job finished and none was due, if there are any.
    #[must_use]
    pub fn unseen_text(&self, system: &System) -> Option<String> {
        let unseen = self.rows.iter().filter(|row| row.verdict() == Verdict::NotSeen);
        let names: Vec<String> = unseen.map(|row| format!("`{}`", system.task(row.task).name)).collect();
        let job = if names.len() == 1 { "no job of it" } else { "no job of them" };
        let (names, protocol) = (names.join(", "), &self.protocol);
        (!names.is_empty())
            .then(|| format!("under {protocol} nothing was seen of {names}: {job} finished; use a longer --for"))
    }

    /// The least slack and its task; `None` if a task has no bound.
    #[must_use]
    pub fn worst_slack(&self, system: &System) -> Option<(i64, TaskId)> {
        let slacks: Option<Vec<_>> = self.rows.iter().map(|row| Some((row.slack(system)?, row.task))).collect();
        slacks?.into_iter().min_by_key(|(slack, _)| *slack)
    }
}

/// The rank of a protocol on one system: less is better.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Rank {
    /// All deadlines are proved to hold; more slack is better.
    Holds(Reverse<i64>),
    /// All tasks have bounds, and some exceed their deadlines; a smaller excess is better.
    Late(Reverse<i64>),
    /// A response grows beyond its period; fewer unproved deadlines are better.
    Beyond(usize),
    /// The protocol has no bounds for such a system; fewer unproved deadlines are better.
    Uncovered(usize),
}

impl Rank {
    /// The rank of the bounds.
    #[must_use]
    pub fn of(system: &System, report: &Report) -> Self {
        let lost = report.rows.iter().filter(|row| !row.bound.proved).count();
        match report.worst_slack(system) {
            Some((slack, _)) if lost == 0 => Self::Holds(Reverse(slack)),
            Some((slack, _)) => Self::Late(Reverse(slack)),
            None if report.rows.iter().any(|row| row.bound.uncovered) => Self::Uncovered(lost),
            None => Self::Beyond(lost),
        }
    }
}

/// The warning after an interruption, with the protocols that were not reached.
#[must_use]
pub fn interrupt_text(missing: &[Protocol]) -> String {
    let names: Vec<String> = missing.iter().map(ToString::to_string).collect();
    let missing = if names.is_empty() { String::new() } else { format!("; not reached: {}", names.join(", ")) };
    format!("interrupted: the results are incomplete{missing}")
}

/// Whether the bound of a task under fixed priorities is exact: some arrivals lead to it. That is so on a processor
/// without sections, whose arrivals are not fixed by offsets. Tasks of equal priority take turns, which the bound does
/// not count on.
fn is_exact(system: &System, protocol: Protocol, task: TaskId) -> bool {
    let it = system.task(task);
    let has_home = |id| system.protocol_of(id, protocol).has_homes() && !system.users(id).is_empty();
    let is_plain = |id: TaskId| system.requests(id).is_empty() && system.task(id).offset == Duration::ZERO;
    let is_equal = |id: TaskId| id != task && system.task(id).priority == it.priority;
    system.scheduler() == Scheduler::PFp
        && !system.has_clusters()
        && !system.resource_ids().any(has_home)
        && system.task_ids().filter(|&id| system.task(id).cpu == it.cpu).all(|id| is_plain(id) && !is_equal(id))
}

/// The most terms for one task in [`is_overrun`].
const TERMS_MAX: usize = 1_000_000;

/// Whether the tasks of a CPU without sections, with at least the priority of this one, surely make it late: its first
/// job after they all arrive together, each as late as its jitter allows, ends after the deadline. An analysis also
/// gives up where a number of another CPU does not fit.
///
/// BOUND: [`TERMS_MAX`] terms; then the answer is no.
fn is_overrun(system: &System, id: TaskId) -> bool {
    let task = system.task(id);
    let is_urgent = |other: TaskId| {
        let it = system.task(other);
        other != id && it.cpu == task.cpu && it.priority >= task.priority
    };
    let urgent: Vec<_> = system.task_ids().filter(|&other| is_urgent(other)).map(|id| system.task(id)).collect();
    let room = task.deadline.as_ns().saturating_sub(task.jitter.as_ns());
    let mut window = task.wcet.as_ns();
    for _ in 0..TERMS_MAX / (urgent.len() + 1) {
        let demand = urgent.iter().fold(task.wcet.as_ns(), |demand: u64, other| {
            let jobs = window.saturating_add(other.jitter.as_ns()).div_ceil(other.period.as_ns());
            demand.saturating_add(jobs.saturating_mul(other.wcet.as_ns()))
        });
        if demand > room || demand == window {
            return demand > room;
        }
        window = demand;
    }
    false
}

fn bound_of(system: &System, bound: &TaskBound, is_exact: bool) -> Bound {
    Bound {
        blocker: None,
        blocking: bound.blocking,
        response: bound.response,
        proved: bound.schedulable,
        proof: bound.response.map(|_| bound.proof),
        open: !bound.schedulable && !is_exact,
        reason: bound.describe_unbounded(system),
        beyond_period: matches!(bound.unbounded, Some(Unbounded::BeyondPeriod)),
        uncovered: bound.unbounded.as_ref().is_some_and(Unbounded::is_uncovered),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(response: Option<u64>, proved: bool, seen: Option<(u64, u64, u64)>) -> Row {
        let seen = seen.map(|(jobs, misses, response)| {
            let mut observation = Observation::default();
            (observation.jobs, observation.misses) = (jobs, misses);
            observation.response = (jobs > 0).then(|| Duration::from_ns(response));
            Seen { observation, p999: None }
        });
        let bound = Bound { response: response.map(Duration::from_ns), proved, ..Bound::default() };
        Row { task: TaskId(0), bound, seen, standard: Standard::InTime }
    }

    #[test]
    fn each_standard_requires_more() {
        use Standard::{InTime, Proved, WithinBound};
        let holds = [(row(Some(5), true, Some((3, 0, 5))), Verdict::Ok, [true; 3])];
        let above = [(row(Some(5), true, Some((3, 0, 6))), Verdict::AboveBound, [true, false, false])];
        let open = [(row(None, false, Some((3, 0, 7))), Verdict::NotProved, [true, true, false])];
        let late = [(row(Some(50), false, Some((3, 0, 7))), Verdict::NotProved, [true, true, false])];
        let missed = [(row(Some(5), true, Some((3, 1, 6))), Verdict::Late, [false; 3])];
        for (mut row, verdict, holds) in [holds, above, open, late, missed].concat() {
            let held = [InTime, WithinBound, Proved].map(|standard| {
                row.standard = standard;
                row.holds()
            });
            assert_eq!((held, row.verdict()), (holds, verdict), "{row:?}");
        }
    }

    #[test]
    fn every_row_has_one_verdict() {
        let cases = [
            (row(Some(5), true, None), Verdict::Ok, true),
            (row(Some(50), false, None), Verdict::Late, false),
            (row(None, false, None), Verdict::NoBound, false),
            (row(None, false, Some((3, 0, 7))), Verdict::Ok, true),
            (row(Some(5), true, Some((3, 0, 5))), Verdict::Ok, true),
            (row(Some(5), true, Some((3, 0, 6))), Verdict::AboveBound, true),
            (row(Some(5), true, Some((3, 1, 6))), Verdict::Late, false),
            (row(Some(5), true, Some((0, 0, 0))), Verdict::NotSeen, true),
        ];
        for (row, verdict, holds) in cases {
            assert_eq!((row.verdict(), row.holds()), (verdict, holds), "{row:?}");
        }
    }
}
