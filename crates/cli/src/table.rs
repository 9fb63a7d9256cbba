//! The table that `check`, `simulate` and `run` share, and the plain tables beside it.

use crate::console::Console;
use crate::layout::Column;
use crate::report::{Report, Row, Verdict};
use crate::tame::line;
use crate::units::{self, Round, Unit};
use lockwright_analysis::Proof;
use lockwright_model::{CpuId, Duration, Scheduler, System, TaskId};

/// Shown in place of an absent value.
const ABSENT: &str = "–";

/// One column of times, before the number of decimals is known.
struct Times {
    title: &'static str,
    cells: Vec<Option<i64>>,
    round: Round,
    /// Left out if all its values are 0 or absent.
    optional: bool,
    /// See [`Column::gives_way`].
    rank: Option<u8>,
}

impl Times {
    fn new(title: &'static str, rows: &[Row], of: impl Fn(&Row) -> Option<Duration>) -> Self {
        let ns = |time: Duration| i64::try_from(time.as_ns()).unwrap_or(i64::MAX);
        let cells = rows.iter().map(|row| of(row).map(ns)).collect();
        Self { title, cells, round: Round::Up, optional: false, rank: None }
    }

    fn optional(mut self) -> Self {
        self.optional = true;
        self
    }

    fn gives_way(mut self, rank: u8) -> Self {
        self.rank = Some(rank);
        self
    }

    fn column(self, unit: Unit) -> Option<Column> {
        if self.optional && self.cells.iter().all(|cell| cell.unwrap_or(0) == 0) {
            return None;
        }
        let decimals = self.cells.iter().flatten().map(|&ns| unit.decimals(ns)).max().unwrap_or(0);
        let cells = self.cells.iter().map(|cell| match cell {
            Some(ns) => unit.format(*ns, decimals, self.round),
            None => ABSENT.into(),
        });
        let column = Column::numbers(self.title, cells);
        Some(match self.rank {
            Some(rank) => column.gives_way(rank),
            None => column,
        })
    }
}

/// The table of one report. Rows are in the report's order. All verbs have the same columns in the same order, with
/// observations next to bounds.
///
/// If the screen is too narrow, columns are left out in the order that the help of `--wide` gives.
#[must_use]
pub fn tasks(system: &System, report: &Report, console: &Console) -> String {
    let rows = &report.rows;
    let unit = Unit::fitting(system.tasks().iter().map(|task| task.wcet));
    let seen = rows.iter().any(|row| row.seen.is_some());
    let name = |row: &Row| system.task(row.task).name.clone();
    let mut columns = vec![
        Column::words("task", rows.iter().map(name)),
        Column::words("verdict", rows.iter().map(|row| row.verdict().word().to_owned())),
        Column::numbers("cpu", rows.iter().map(|row| cluster(system, row.task))).gives_way(3),
        Column::numbers("prio", rows.iter().map(|row| system.task(row.task).priority.to_string())).gives_way(9),
    ];
    if system.scheduler().is_global() {
        columns.retain(|column| column.title != "cpu");
    }
    let bound = if seen { "R bound" } else { "R" };
    let mut times = vec![
        Times::new("C", rows, |row| Some(system.task(row.task).wcet)).gives_way(2),
        Times::new("C charged", rows, |row| Some(report.charged.as_ref()?.task(row.task).wcet)).optional().gives_way(6),
        Times::new("B local", rows, |row| Some(row.bound.blocking?.local)).optional().gives_way(8),
        Times::new("B boosted", rows, |row| Some(row.bound.blocking?.boosted)).optional().gives_way(8),
        Times::new("B remote", rows, |row| Some(row.bound.blocking?.remote)).optional().gives_way(8),
    ];
    if seen {
        times.push(Times::new("B seen", rows, |row| row.seen?.observation.blocking).gives_way(5));
    }
    times.push(Times::new(bound, rows, |row| row.bound.response));
    if seen {
        times.push(Times::new("R seen", rows, |row| row.seen?.observation.response));
        times.push(Times::new("p99.9", rows, |row| row.seen?.p999).optional().gives_way(4));
    }
    times.push(Times::new("D", rows, |row| Some(system.task(row.task).deadline)));
    let slack = rows.iter().map(|row| row.slack(system)).collect();
    times.push(Times { title: "slack", cells: slack, round: Round::Down, optional: false, rank: Some(1) });
    if seen {
        times.push(Times::new("lock wait", rows, |row| row.seen?.observation.lock_wait).optional().gives_way(10));
    }
    columns.extend(times.into_iter().filter_map(|times| times.column(unit)));
    if seen {
        let observed = |of: fn(&lockwright_model::Observation) -> u64| {
            rows.iter().map(move |row| row.seen.map_or(ABSENT.into(), |seen| of(&seen.observation).to_string()))
        };
        columns.push(Column::numbers("jobs", observed(|seen| seen.jobs)).gives_way(7));
        // Of interruptible sections.
        if rows.iter().any(|row| row.seen.is_some_and(|seen| seen.observation.restarts > 0)) {
            columns.push(Column::numbers("again", observed(|seen| seen.restarts)).gives_way(6));
        }
        columns.push(Column::numbers("misses", observed(|seen| seen.misses)));
    }
    let is_lowered = |row: &Row| row.bound.proof.is_some_and(|proof| proof != Proof::Classic);
    let is_lowered = !seen && rows.iter().any(is_lowered);
    if is_lowered {
        let proof = |row: &Row| row.bound.proof.map_or_else(|| ABSENT.into(), |proof| proof.to_string());
        columns.push(Column::words("proof", rows.iter().map(proof)).gives_way(6));
    }
    let text = console.layout.draw(&columns);
    let text = if console.color_out { paint(&text, system, rows) } else { text };
    let charged = if report.charged.is_some() { ", C charged with overheads" } else { "" };
    let proof = if is_lowered { "; proof lp: by a linear program (docs/analysis.md)" } else { "" };
    format!("{text}times in {}; C execution{charged}, B blocking, R response, D deadline{proof}\n", unit.name())
}

/// The CPUs of a task.
fn cluster(system: &System, task: TaskId) -> String {
    system.cpus_of(task).map(|cpu| cpu.0.to_string()).collect::<Vec<_>>().join(",")
}

/// Colours the verdicts, which follow the names of the tasks.
fn paint(text: &str, system: &System, rows: &[Row]) -> String {
    let mut painted = String::new();
    let mut rows = rows.iter().peekable();
    for shown in text.lines() {
        let verdict = rows.peek().and_then(|row| {
            let behind = shown.strip_prefix(line(&system.task(row.task).name).as_str())?;
            let word = row.verdict().word();
            let rest = behind.trim_start().strip_prefix(word)?;
            Some((row.verdict(), shown.len() - rest.len() - word.len(), rest))
        });
        match verdict {
            Some((verdict, place, rest)) => {
                let (before, word) = (&shown[..place], verdict.word());
                painted.push_str(&format!("{before}\x1b[{}m{word}\x1b[0m{rest}\n", color(verdict)));
                rows.next();
            }
            None => {
                painted.push_str(shown);
                painted.push('\n');
            }
        }
    }
    painted
}

fn color(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Ok => 32,
        Verdict::Late => 31,
        Verdict::NoBound | Verdict::AboveBound | Verdict::NotProved | Verdict::NotSeen => 33,
    }
}

/// The line above a table.
#[must_use]
pub fn headline(name: &str, system: &System, report: &Report) -> String {
    let scheduler = match system.scheduler() {
        Scheduler::PFp => String::new(),
        other => format!(" and {other}"),
    };
    let charged =
        report.charged.as_ref().map_or_else(String::new, |charged| format!("; with overheads {}", loads(charged)));
    format!("{name} under {}{scheduler}: {}{charged}\n", report.protocol, size(system))
}

/// As [`headline`], for several protocols.
#[must_use]
pub fn system_line(name: &str, system: &System) -> String {
    format!("{name}: {}\n", size(system))
}

fn size(system: &System) -> String {
    let tasks = units::count(system.tasks().len() as u64, "task");
    let cpus = units::count(system.cpus() as u64, "CPU");
    format!("{tasks} on {cpus}, utilization {}", loads(system))
}

/// The utilization of each CPU, or cluster.
fn loads(system: &System) -> String {
    utilization(system).into_iter().map(units::percent).collect::<Vec<_>>().join(", ")
}

/// The lines below a table: why tasks have no bound, and how to get one. Tasks with the same reason share a line.
#[must_use]
pub fn reasons(system: &System, report: &Report) -> String {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for row in &report.rows {
        let Some(reason) = &row.bound.reason else { continue };
        let name = system.task(row.task).name.as_str();
        match groups.iter_mut().find(|(known, _)| known == reason) {
            Some((_, names)) => names.push(name),
            None => groups.push((reason, vec![name])),
        }
    }
    let mut text = String::new();
    for (reason, names) in groups {
        text.push_str(&(line(&format!("  {}: {reason}", names.join(", "))) + "\n"));
    }
    if text.is_empty() { text } else { format!("\nWithout a bound:\n{text}") }
}

/// The utilization of each CPU or cluster.
fn utilization(system: &System) -> Vec<f64> {
    let is_global = system.scheduler().is_global();
    let of = |cpu: usize| {
        let tasks = system.tasks().iter().filter(|task| is_global || task.cpu == CpuId::new(cpu));
        // An empty sum of floats is -0.
        tasks.map(|task| task.wcet.as_ns() as f64 / task.period.as_ns() as f64).fold(0.0, |sum, share| sum + share)
    };
    let cpus = if is_global { 1 } else { system.cpus() };
    // A cluster is counted at its first CPU.
    let is_first = |&cpu: &usize| system.cluster(CpuId::new(cpu)).trailing_zeros() as usize == cpu;
    (0..cpus).filter(is_first).map(of).collect()
}
