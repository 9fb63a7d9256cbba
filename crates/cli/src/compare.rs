//! `lockwright report`: results that `--json` printed, compared.

use crate::args::Compare;
use crate::console::Console;
use crate::exit::Exit;
use crate::export::ResultFile;
use crate::html;
use crate::html::tables::{self, TIMES, verdict_cell, verdicts};
use crate::json::{self, FORMAT, Output, ProtocolResult, TaskResult};
use crate::layout::Column;
use crate::tame::line;
use crate::units;
use lockwright_model::Duration;
use lockwright_report::page::{self, Cell, Page, Part, Section, Table, Tone, Verdict};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Greatest length of a file with a result.
const BYTES_MAX: u64 = 256 * 1024 * 1024;

/// A result and the name of its file.
struct Saved {
    name: String,
    output: Output,
}

/// The keys that tell whether a file has results.
#[derive(Deserialize)]
struct Head {
    verb: Option<String>,
    format: Option<u32>,
    error: Option<serde::de::IgnoredAny>,
}

/// Executes `report`.
///
/// # Errors
/// The console has the message.
pub fn report(arguments: &Compare, console: &Console) -> Result<Exit, Exit> {
    let mut saved = arguments.files.iter().map(|path| read(path, console)).collect::<Result<Vec<_>, Exit>>()?;
    shorten(&mut saved);
    let html = arguments.html.as_deref().map(|path| ResultFile::open(path, "--html", console)).transpose()?;
    let groups = groups(&saved);
    if let Some(file) = html {
        html::write_file(file, &page(&saved, &groups), console)?;
    }
    console.print_text(&as_text(&saved, &groups, console))?;
    Ok(Exit::Holds)
}

/// Reads a result.
fn read(path: &Path, console: &Console) -> Result<Saved, Exit> {
    let name = path.display().to_string();
    let refuse = |message: String, help: &str| {
        console.error(message, help);
        Exit::BadInput
    };
    let mut text = String::new();
    let length = File::open(path).and_then(|file| file.take(BYTES_MAX + 1).read_to_string(&mut text));
    let length = length.map_err(|error| {
        refuse(format!("cannot read {name}: {error}"), "give the files into which --json was redirected")
    })?;
    if length as u64 > BYTES_MAX {
        return Err(refuse(format!("{name} is longer than {BYTES_MAX} bytes"), "compare fewer protocols"));
    }
    let wrong = |error: &serde_json::Error| {
        let message = match error.is_eof() {
            true => format!("{name} ends early, at line {}", error.line()),
            false => format!("{name} is not a result of lockwright: {error}"),
        };
        refuse(message, "write it again: lockwright check FILE --json > RESULT")
    };
    let head: Head = serde_json::from_str(&text).map_err(|error| wrong(&error))?;
    if head.error.is_some() {
        return Err(refuse(format!("{name} reports an error instead of a result"), "repeat the command that wrote it"));
    }
    if let Some(format) = head.format.filter(|&format| format != FORMAT) {
        let help = "use the version of lockwright that wrote it, or write it again";
        return Err(refuse(format!("{name} has format {format}; this version reads format {FORMAT}"), help));
    }
    if let Some(verb) = head.verb.filter(|verb| !["check", "simulate", "run", "verify"].contains(&verb.as_str())) {
        let help = "give results of `check`, `simulate`, `run` or `verify`";
        return Err(refuse(format!("{name} is a result of `{}`, which has no tasks", line(&verb)), help));
    }
    let output = serde_json::from_str(&text).map_err(|error| wrong(&error))?;
    Ok(Saved { name: line(&name), output })
}

/// Leaves out the folders where the files have different names without them.
fn shorten(saved: &mut [Saved]) {
    let short: Vec<String> =
        saved.iter().map(|saved| saved.name.rsplit('/').next().unwrap_or_default().into()).collect();
    if short.iter().collect::<BTreeSet<_>>().len() == saved.len() {
        saved.iter_mut().zip(short).for_each(|(saved, short)| saved.name = short);
    }
}

/// Results that are compared: one of each file, if it has one.
struct Group<'a> {
    /// The protocol, if the files have several.
    protocol: Option<&'a str>,
    results: Vec<Option<&'a ProtocolResult>>,
}

/// Files with one result each are compared whatever their protocols are, others protocol by protocol.
fn groups(saved: &[Saved]) -> Vec<Group<'_>> {
    if saved.iter().all(|saved| saved.output.results.len() == 1) {
        return vec![Group {
            protocol: None,
            results: saved.iter().map(|saved| saved.output.results.first()).collect(),
        }];
    }
    let mut protocols: Vec<&str> = Vec::new();
    for result in saved.iter().flat_map(|saved| &saved.output.results) {
        if !protocols.contains(&result.protocol.as_str()) {
            protocols.push(&result.protocol);
        }
    }
    let of = |protocol: &str| {
        saved.iter().map(|saved| saved.output.results.iter().find(|result| result.protocol == protocol)).collect()
    };
    protocols.into_iter().map(|protocol| Group { protocol: Some(protocol), results: of(protocol) }).collect()
}

/// A value of a task that is compared: its title, its key in JSON, its value, and whether it is a time.
type Value = (&'static str, &'static str, fn(&TaskResult) -> Option<i128>, bool);

fn values() -> Vec<Value> {
    let times = TIMES.iter().map(|times| (times.title, times.key, times.of, true));
    let counts: [Value; 3] = [
        ("jobs", "jobs", |task| task.jobs.map(Into::into), false),
        ("restarts", "restarts", |task| task.restarts.map(Into::into), false),
        ("misses", "misses", |task| task.misses.map(Into::into), false),
    ];
    times.chain(counts).collect()
}

/// A word about a task that is compared: its title, its key in JSON, and the word.
type Word = (&'static str, &'static str, fn(&TaskResult) -> Option<String>);

/// Rows have them only where they differ.
const WORDS: [Word; 3] = [
    ("cpu", "cpu", |task| tables::cpus(task)),
    ("prio", "priority", |task| Some(task.priority.to_string())),
    ("proof", "proof", |task| task.proof.clone()),
];

impl Group<'_> {
    /// The names of all tasks, in the order of the files.
    fn tasks(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for task in self.results.iter().flatten().flat_map(|result| &result.tasks) {
            if !names.contains(&task.name.as_str()) {
                names.push(&task.name);
            }
        }
        names
    }

    /// The task of this name in each file.
    fn of(&self, name: &str) -> Vec<Option<&TaskResult>> {
        self.results.iter().map(|result| result.as_ref()?.tasks.iter().find(|task| task.name == name)).collect()
    }

    /// The verdicts and the values of a task: the title, the key and a cell for each file.
    fn rows(&self, name: &str) -> Vec<(&'static str, &'static str, Vec<Cell>)> {
        let tasks = self.of(name);
        let verdicts = tasks.iter().map(|task| task.map_or_else(Cell::absent, verdict_cell)).collect();
        let mut rows = vec![("verdict", "verdict", marked(verdicts))];
        for (title, key, of, is_time) in values() {
            let cell = |task: &Option<&TaskResult>| match task.and_then(of) {
                Some(value) if is_time => Cell::number(time(value, key), value),
                Some(value) => Cell::number(value.to_string(), value),
                None => Cell::absent(),
            };
            let cells: Vec<Cell> = tasks.iter().map(cell).collect();
            if cells.iter().any(|cell| cell.value.is_some_and(|value| value != 0)) {
                rows.push((title, key, marked(with_changes(cells, is_time))));
            }
        }
        for (title, key, of) in WORDS {
            let cell = |task: &Option<&TaskResult>| task.and_then(of).map_or_else(Cell::absent, Cell::text);
            let cells = marked(tasks.iter().map(cell).collect());
            if cells.iter().any(|cell| cell.tone == Tone::Changed) {
                rows.push((title, key, cells));
            }
        }
        rows
    }

    /// The rows in which the files differ, or all rows.
    fn table(&self, saved: &[Saved], only_changed: bool) -> Table {
        let mut columns = vec![page::Column::words("task", "name"), page::Column::words("value", "key")];
        columns.extend(saved.iter().map(|saved| page::Column::numbers(&saved.name, "value")));
        let mut rows = Vec::new();
        for name in self.tasks() {
            for (title, _, cells) in self.rows(name) {
                if !only_changed || cells.iter().any(|cell| cell.tone == Tone::Changed) {
                    rows.push([vec![Cell::text(name), Cell::text(title)], cells].concat());
                }
            }
        }
        let under = self.protocol.map_or_else(String::new, |protocol| format!(" under {protocol}"));
        let what = if only_changed { "What changed" } else { "All values" };
        Table { caption: format!("{what}{under}, compared with {}", saved[0].name), columns, rows }
    }
}

/// A time, rounded to the pessimistic side.
fn time(ns: i128, key: &str) -> String {
    let short = i64::try_from(ns).unwrap_or(i64::MAX);
    match key {
        "slack_ns" => units::slack(short),
        _ => units::text(Duration::from_ns(short.unsigned_abs())),
    }
}

/// Adds to each number its difference from the first one.
fn with_changes(cells: Vec<Cell>, is_time: bool) -> Vec<Cell> {
    let first = cells.first().and_then(|cell| cell.value);
    let changed = |cell: Cell| match (first, cell.value) {
        (Some(first), Some(value)) if first != value => {
            let difference = value - first;
            let sign = if difference > 0 { '+' } else { '−' };
            let size = difference.unsigned_abs();
            let size = match is_time {
                true => units::slack(i64::try_from(size).unwrap_or(i64::MAX)),
                false => size.to_string(),
            };
            Cell { text: format!("{} ({sign}{size})", cell.text), ..cell }
        }
        _ => cell,
    };
    cells.into_iter().map(changed).collect()
}

/// Marks the cells that differ from the first one.
fn marked(cells: Vec<Cell>) -> Vec<Cell> {
    let Some(first) = cells.first().cloned() else { return cells };
    let is_same = |cell: &Cell| (&cell.text, cell.value) == (&first.text, first.value);
    cells.into_iter().map(|cell| if is_same(&cell) { cell } else { cell.with(Tone::Changed) }).collect()
}

/// The verdicts of a file.
fn named_verdicts(saved: &Saved) -> Vec<Verdict> {
    let named = |verdict: Verdict| Verdict {
        text: format!("{} ({}): {}", saved.name, saved.output.system, verdict.text),
        ..verdict
    };
    verdicts(&saved.output).into_iter().map(named).collect()
}

/// The sentence in place of a table, if no row of it changed.
fn unchanged(saved: &[Saved]) -> &'static str {
    let mut texts = saved.iter().map(|saved| json::to_text(&saved.output));
    let first = texts.next();
    match texts.all(|text| Some(text) == first) {
        true => "Nothing changed.",
        false => "No value of a task changed; other keys of the files differ.",
    }
}

fn page<'a>(saved: &[Saved], groups: &[Group<'_>]) -> Page<'a> {
    let changed: Vec<Table> = groups.iter().map(|group| group.table(saved, true)).collect();
    let changed = match changed.iter().all(|table| table.rows.is_empty()) {
        true => vec![Part::Text(unchanged(saved).into())],
        false => changed.into_iter().filter(|table| !table.rows.is_empty()).map(Part::Table).collect(),
    };
    let all = groups.iter().map(|group| Part::Table(group.table(saved, false))).collect();
    let each = |saved: &Saved| {
        let tables = saved.output.results.iter().map(|result| Part::Table(tables::tasks(result))).collect();
        Part::Folded(saved.name.clone(), false, tables)
    };
    let names: Vec<&str> = saved.iter().map(|saved| saved.name.as_str()).collect();
    Page {
        title: format!("{} compared", names.join(", ")),
        verdicts: saved.iter().flat_map(named_verdicts).collect(),
        sections: vec![
            Section { title: "What changed", parts: changed },
            Section { title: "All values", parts: all },
            Section { title: "The results", parts: saved.iter().map(each).collect() },
        ],
    }
}

fn as_text(saved: &[Saved], groups: &[Group<'_>], console: &Console) -> String {
    let mut text = String::new();
    for verdict in saved.iter().flat_map(named_verdicts) {
        text.push_str(&format!("{}\n", line(&verdict.text)));
    }
    let mut is_same = true;
    for table in groups.iter().map(|group| group.table(saved, true)).filter(|table| !table.rows.is_empty()) {
        is_same = false;
        let column = |(place, column): (usize, &page::Column)| {
            let cells = table.rows.iter().map(|row| row[place].text.clone());
            if column.is_number { Column::numbers(&column.title, cells) } else { Column::words(&column.title, cells) }
        };
        let columns: Vec<Column> = table.columns.iter().enumerate().map(column).collect();
        text.push_str(&format!("\n{}\n", line(&table.caption)));
        // The task, the value and the first file are in each part.
        let parts = console.layout.parts(&columns, 3).into_iter().map(|part| console.layout.draw(&part));
        text.push_str(&parts.collect::<Vec<_>>().join("\n"));
    }
    if is_same && saved.len() > 1 {
        text.push_str(&format!("\n{}\n", unchanged(saved)));
    }
    text
}
