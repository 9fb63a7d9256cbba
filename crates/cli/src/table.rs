//! The table that `check`, `simulate` and `run` share, and the plain tables beside it.

use crate::console::tame;
use crate::report::{Report, Row, Verdict};
use crate::units::{self, Round, Unit};
use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};
use lockwright_model::{CpuId, Duration, Scheduler, System, TaskId};

/// No lines but one under the header.
const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// What stands where a value does not exist.
const ABSENT: &str = "–";

/// Which way a column's cells lean.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lean {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// One column, ready to print.
pub struct Column {
    /// Above the line.
    pub title: String,
    /// Words left, numbers right.
    pub lean: Lean,
    /// One for each row.
    pub cells: Vec<String>,
}

impl Column {
    /// A column of words.
    pub fn words(title: &str, cells: impl IntoIterator<Item = String>) -> Self {
        Self { title: title.into(), lean: Lean::Left, cells: cells.into_iter().collect() }
    }

    /// A column of numbers.
    pub fn numbers(title: &str, cells: impl IntoIterator<Item = String>) -> Self {
        Self { title: title.into(), lean: Lean::Right, cells: cells.into_iter().collect() }
    }
}

/// Columns side by side, each line without trailing blanks.
#[must_use]
pub fn draw(columns: &[Column]) -> String {
    let mut table = Table::new();
    table.load_style(STYLE).set_header(columns.iter().map(|column| column.title.as_str()));
    let rows = columns.iter().map(|column| column.cells.len()).max().unwrap_or(0);
    for row in 0..rows {
        // A cell is one line, whatever a name holds.
        let cell =
            |column: &Column| column.cells.get(row).map_or_else(String::new, |cell| tame(&cell.replace('\n', " ")));
        table.add_row(columns.iter().map(cell));
    }
    for (index, column) in columns.iter().enumerate() {
        if let Some(drawn) = table.column_mut(index) {
            drawn.set_padding((0, 2));
            drawn.set_cell_alignment(match column.lean {
                Lean::Left => CellAlignment::Left,
                Lean::Right => CellAlignment::Right,
            });
        }
    }
    let mut text = String::new();
    for line in table.lines() {
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// One column of times before the decimals are settled.
struct Times {
    title: &'static str,
    cells: Vec<Option<i64>>,
    round: Round,
    /// Left out where no row has anything but zero.
    optional: bool,
}

impl Times {
    fn new(title: &'static str, rows: &[Row], of: impl Fn(&Row) -> Option<Duration>) -> Self {
        let ns = |time: Duration| i64::try_from(time.as_ns()).unwrap_or(i64::MAX);
        let cells = rows.iter().map(|row| of(row).map(ns)).collect();
        Self { title, cells, round: Round::Up, optional: false }
    }

    fn optional(mut self) -> Self {
        self.optional = true;
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
        Some(Column::numbers(self.title, cells))
    }
}

/// The table of one report. Rows in the report's order; the same columns in the same order for every verb, those
/// of what was seen beside those of what was promised.
#[must_use]
pub fn tasks(system: &System, report: &Report, color: bool) -> String {
    let rows = &report.rows;
    let unit = Unit::fitting(system.tasks().iter().map(|task| task.wcet));
    let seen = rows.iter().any(|row| row.seen.is_some());
    let mut columns = vec![
        Column::words("task", rows.iter().map(|row| system.task(row.task).name.clone())),
        Column::numbers("cpu", rows.iter().map(|row| cluster(system, row.task))),
        Column::numbers("prio", rows.iter().map(|row| system.task(row.task).priority.to_string())),
    ];
    if system.scheduler().is_global() {
        columns.retain(|column| column.title != "cpu");
    }
    let bound = if seen { "R bound" } else { "R" };
    let mut times = vec![
        Times::new("C", rows, |row| Some(system.task(row.task).wcet)),
        Times::new("B local", rows, |row| Some(row.bound.blocking?.local)).optional(),
        Times::new("B boosted", rows, |row| Some(row.bound.blocking?.boosted)).optional(),
        Times::new("B remote", rows, |row| Some(row.bound.blocking?.remote)).optional(),
    ];
    if seen {
        times.push(Times::new("B seen", rows, |row| row.seen?.observation.blocking));
    }
    times.push(Times::new(bound, rows, |row| row.bound.response));
    if seen {
        times.push(Times::new("R seen", rows, |row| row.seen?.observation.response));
        times.push(Times::new("p99.9", rows, |row| row.seen?.p999).optional());
    }
    times.push(Times::new("D", rows, |row| Some(system.task(row.task).deadline)));
    let slack = rows.iter().map(|row| row.slack(system)).collect();
    times.push(Times { title: "slack", cells: slack, round: Round::Down, optional: false });
    if seen {
        times.push(Times::new("lock wait", rows, |row| row.seen?.observation.lock_wait).optional());
    }
    columns.extend(times.into_iter().filter_map(|times| times.column(unit)));
    if seen {
        let observed = |of: fn(&lockwright_model::Observation) -> u64| {
            rows.iter().map(move |row| row.seen.map_or(ABSENT.into(), |seen| of(&seen.observation).to_string()))
        };
        columns.push(Column::numbers("jobs", observed(|seen| seen.jobs)));
        // Of interruptible sections.
        if rows.iter().any(|row| row.seen.is_some_and(|seen| seen.observation.restarts > 0)) {
            columns.push(Column::numbers("again", observed(|seen| seen.restarts)));
        }
        columns.push(Column::numbers("misses", observed(|seen| seen.misses)));
    }
    columns.push(Column::words("verdict", rows.iter().map(|row| row.verdict().word().to_owned())));
    let text = draw(&columns);
    let text = if color { paint(&text, rows) } else { text };
    format!("{text}times in {}; C execution, B blocking, R response, D deadline\n", unit.name())
}

/// The CPUs of a task.
fn cluster(system: &System, task: TaskId) -> String {
    system.cpus_of(task).map(|cpu| cpu.0.to_string()).collect::<Vec<_>>().join(",")
}

/// Colours the verdicts, which end the lines below the header.
fn paint(text: &str, rows: &[Row]) -> String {
    const HEADER_LINES: usize = 2;
    let mut painted = String::new();
    for (number, line) in text.lines().enumerate() {
        let verdict = number.checked_sub(HEADER_LINES).and_then(|row| rows.get(row)).map(Row::verdict);
        match verdict.and_then(|verdict| Some((verdict, line.strip_suffix(verdict.word())?))) {
            Some((verdict, line)) => {
                painted.push_str(&format!("{line}\x1b[{}m{}\x1b[0m\n", color(verdict), verdict.word()));
            }
            None => {
                painted.push_str(line);
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
        Verdict::NoBound | Verdict::NotProved | Verdict::AboveBound | Verdict::NotSeen => 33,
    }
}

/// The line above a table: what was looked at.
#[must_use]
pub fn headline(name: &str, system: &System, report: &Report) -> String {
    let scheduler = match system.scheduler() {
        Scheduler::PFp => String::new(),
        other => format!(" and {other}"),
    };
    format!("{name} under {}{scheduler}: {}\n", report.protocol, size(system))
}

/// As [`headline`], of several protocols.
#[must_use]
pub fn system_line(name: &str, system: &System) -> String {
    format!("{name}: {}\n", size(system))
}

fn size(system: &System) -> String {
    let tasks = units::count(system.tasks().len() as u64, "task");
    let cpus = units::count(system.cpus() as u64, "CPU");
    let loads: Vec<String> = utilization(system).into_iter().map(units::percent).collect();
    format!("{tasks} on {cpus}, utilization {}", loads.join(", "))
}

/// Below a table: why tasks have no bound, a sentence each, and what would give one. Tasks with the same reason share it.
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
        text.push_str(&format!("  {}: {reason}\n", names.join(", ")));
    }
    if text.is_empty() { text } else { format!("\nWithout a bound:\n{}", tame(&text)) }
}

/// The share of each CPU, or cluster, that its tasks need at worst.
fn utilization(system: &System) -> Vec<f64> {
    let is_global = system.scheduler().is_global();
    let of = |cpu: usize| {
        let tasks = system.tasks().iter().filter(|task| is_global || task.cpu == CpuId::new(cpu));
        // An empty sum of these is -0.
        tasks.map(|task| task.wcet.as_ns() as f64 / task.period.as_ns() as f64).fold(0.0, |sum, share| sum + share)
    };
    let cpus = if is_global { 1 } else { system.cpus() };
    // A cluster stands at its first CPU.
    let is_first = |&cpu: &usize| system.cluster(CpuId::new(cpu)).trailing_zeros() as usize == cpu;
    (0..cpus).filter(is_first).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_lean_right_and_lines_have_no_tail() {
        let text = draw(&[
            Column::words("task", ["a".to_owned(), "longer".to_owned()]),
            Column::numbers("C", ["10".to_owned(), "7".to_owned()]),
            Column::words("verdict", ["ok".to_owned(), "no bound".to_owned()]),
        ]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        assert_eq!(lines[2].find("10"), lines[3].find(" 7"), "{text}");
        assert!(lines.iter().all(|line| line.trim_end() == *line), "{text}");
    }
}
