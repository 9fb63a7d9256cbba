//! Draws a schedule as text, for a terminal.
//!
//! ```text
//!            0 ms      10        20        30
//! urgent                ####bb               #
//!                       ^                 x
//! logging    bbbbbbbbbb------bbb
//!            ^
//! ```
//! All columns stand for the same length of time. Each shows what the task did for most of it.

use crate::axis::Axis;
use crate::label::{letter, short};
use crate::{By, Mark, Row, Schedule, Span, State, by_cpu};
use lockwright_model::{Instant, ResourceId, System, TaskId};

/// The layout of the text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    /// The most columns of a line. At least 40 are used.
    pub width: usize,
    /// The subject of a line.
    pub by: By,
}

/// The most characters of a name. Longer names are cut.
const NAME_MAX: usize = 24;

/// Draws the schedule: an axis, a line for each task or processor, and a legend.
#[must_use]
pub fn draw(system: &System, schedule: &Schedule, layout: Layout) -> String {
    let names: Vec<String> = match layout.by {
        By::Task => schedule.rows.iter().map(|row| short(&plain(&system.task(row.task).name), NAME_MAX)).collect(),
        By::Cpu => (0..system.cpus()).map(|cpu| format!("CPU {cpu}")).collect(),
    };
    let label = names.iter().map(|name| name.chars().count()).max().unwrap_or(0) + 2;
    let columns = layout.width.max(40).saturating_sub(label + 1).max(10);
    let scale = Scale { from: schedule.window.from.as_ns(), length: schedule.window.length().as_ns(), columns };
    let resources = schedule.resources();
    let mut text = String::new();
    axis(&mut text, schedule, scale, label);
    match layout.by {
        By::Task => {
            for (row, name) in schedule.rows.iter().zip(&names) {
                let spans: Vec<_> = row.spans.iter().map(|span| (span, sign(&span.state, &resources))).collect();
                line(&mut text, &format!("{name:label$}{}", states(&spans, &row.marks, scale)));
                line(&mut text, &format!("{:label$}{}", "", arrows(row, scale)));
            }
        }
        By::Cpu => {
            for (spans, name) in by_cpu(system, schedule).iter().zip(&names) {
                let spans: Vec<_> = spans.iter().map(|&(task, span)| (span, sign_of_task(task, &span.state))).collect();
                line(&mut text, &format!("{name:label$}{}", states(&spans, &[], scale)));
            }
        }
    }
    let parts = match layout.by {
        By::Task => by_task_legend(system, schedule, &resources),
        By::Cpu => by_cpu_legend(system, schedule),
    };
    legend(&mut text, &parts, layout.width.max(40));
    text
}

/// The line of states, with the marks that stand in it.
fn states(spans: &[(&Span, char)], marks: &[(Instant, Mark)], scale: Scale) -> String {
    let mut cells: Vec<char> = (0..scale.columns).map(|column| cell(spans, scale.cell(column))).collect();
    for &(at, mark) in marks {
        let sign = match mark {
            Mark::Missed => '!',
            Mark::Restart => '<',
            _ => continue,
        };
        cells[scale.column(at.as_ns())] = sign;
    }
    cells.into_iter().collect()
}

/// Appends a line without trailing blanks, unless it is empty.
fn line(text: &mut String, content: &str) {
    if !content.trim_end().is_empty() {
        text.push_str(content.trim_end());
        text.push('\n');
    }
}

/// The mapping from instants to columns.
#[derive(Clone, Copy)]
struct Scale {
    from: u64,
    length: u64,
    columns: usize,
}

impl Scale {
    /// The column of an instant inside the window.
    fn column(self, at: u64) -> usize {
        let column = u128::from(at - self.from) * self.columns as u128 / u128::from(self.length);
        (column as usize).min(self.columns - 1)
    }

    /// The start and end of the time that a column stands for.
    fn cell(self, column: usize) -> (u64, u64) {
        let at = |column: usize| {
            let offset = u128::from(self.length) * column as u128 / self.columns as u128;
            self.from + offset as u64
        };
        (at(column), at(column + 1))
    }
}

fn axis(text: &mut String, schedule: &Schedule, scale: Scale, label: usize) {
    let axis = Axis::new(schedule.window, (scale.columns as u64 / 10).max(2));
    let mut cells = vec![' '; scale.columns];
    for (index, (at, name)) in axis.ticks.iter().enumerate() {
        let name = if index == 0 { format!("{name} {}", axis.unit) } else { name.clone() };
        let column = scale.column(*at);
        // A label that would touch the previous one, or not fit into the line, is omitted.
        let fits = column + name.len() <= cells.len();
        if fits && cells[column.saturating_sub(1)..].iter().take(name.len() + 1).all(|&cell| cell == ' ') {
            cells[column..].iter_mut().zip(name.chars()).for_each(|(cell, sign)| *cell = sign);
        }
    }
    line(text, &format!("{:label$}{}", "", cells.into_iter().collect::<String>()));
}

/// The sign of the state that takes most of a cell.
fn cell(spans: &[(&Span, char)], (from, until): (u64, u64)) -> char {
    let mut times: Vec<(char, u64)> = Vec::new();
    let mut idle = until - from;
    // The spans are in order of time, and do not overlap.
    let first = spans.partition_point(|(span, _)| span.until.as_ns() <= from);
    for &(span, sign) in &spans[first..] {
        let (start, end) = (span.from.as_ns().max(from), span.until.as_ns().min(until));
        if start >= end {
            break;
        }
        idle -= end - start;
        match times.iter_mut().find(|(known, _)| *known == sign) {
            Some((_, time)) => *time += end - start,
            None => times.push((sign, end - start)),
        }
    }
    let most = times.into_iter().max_by_key(|&(_, time)| time);
    most.filter(|&(_, time)| time >= idle).map_or(' ', |(sign, _)| sign)
}

fn sign(state: &State, resources: &[ResourceId]) -> char {
    match state {
        State::Executes(held) | State::Undone(held) => held.last().map_or('#', |&resource| letter(resource, resources)),
        State::Spins(..) => '~',
        State::Waits(..) => '.',
        State::Ready(_) => '-',
        State::Blocked(_) => '=',
    }
}

/// The letter of a task on its processor, a capital one while it holds a resource. From the twenty-seventh on, all have
/// `*`.
fn sign_of_task(task: TaskId, state: &State) -> char {
    let letter = task_letter(task);
    match state {
        State::Executes(held) | State::Undone(held) if !held.is_empty() => letter.to_ascii_uppercase(),
        State::Spins(..) => '~',
        _ => letter,
    }
}

fn task_letter(task: TaskId) -> char {
    u8::try_from(task.index()).ok().filter(|&index| index < 26).map_or('*', |index| char::from(b'a' + index))
}

/// The arrivals and deadlines of a task, for the line below its states.
fn arrows(row: &Row, scale: Scale) -> String {
    let mut cells = vec![' '; scale.columns];
    for &(at, mark) in &row.marks {
        let cell = &mut cells[scale.column(at.as_ns())];
        *cell = match (mark, *cell) {
            (Mark::Arrival, 'v' | 'x') | (Mark::Deadline | Mark::Missed, '^') => 'x',
            (Mark::Arrival, _) => '^',
            (Mark::Deadline | Mark::Missed, _) => 'v',
            _ => continue,
        };
    }
    cells.into_iter().collect()
}

fn by_task_legend(system: &System, schedule: &Schedule, resources: &[ResourceId]) -> Vec<String> {
    let has = |is_meant: fn(&State) -> bool| {
        schedule.rows.iter().flat_map(|row| &row.spans).any(|span| is_meant(&span.state))
    };
    let marked = |wanted: Mark| schedule.rows.iter().flat_map(|row| &row.marks).any(|(_, mark)| *mark == wanted);
    let mut parts = vec!["# executes".to_owned()];
    for &resource in resources.iter().take(26) {
        parts.push(format!("{} holds {}", letter(resource, resources), plain(&system.resource(resource).name)));
    }
    let others = [
        (has(|state| matches!(state, State::Ready(_))), "- ready, another task executes"),
        (has(|state| matches!(state, State::Blocked(_))), "= ready, a less urgent task executes"),
        (has(|state| matches!(state, State::Waits(..))), ". waits for a resource"),
        (has(|state| matches!(state, State::Spins(..))), "~ spins for a resource"),
        (marked(Mark::Restart), "< section restarts"),
        (true, "^ arrival, v deadline, x both"),
        (marked(Mark::Missed), "! deadline missed"),
    ];
    parts.extend(others.into_iter().filter(|(occurs, _)| *occurs).map(|(_, meaning)| meaning.to_owned()));
    parts
}

fn by_cpu_legend(system: &System, schedule: &Schedule) -> Vec<String> {
    let spans = || schedule.rows.iter().flat_map(|row| &row.spans);
    let tasks =
        system.task_ids().take(26).map(|task| format!("{} {}", task_letter(task), plain(&system.task(task).name)));
    let mut parts: Vec<String> = tasks.collect();
    if spans().any(|span| span.state.held().is_some_and(|held| !held.is_empty())) {
        parts.push("a capital letter: it holds a resource".into());
    }
    if spans().any(|span| matches!(span.state, State::Spins(..))) {
        parts.push("~ spins for a resource".into());
    }
    parts
}

/// A name without line feeds: it has no lines of its own.
fn plain(name: &str) -> String {
    name.replace('\n', " ")
}

/// Appends the parts of the legend, in lines of this width.
fn legend(text: &mut String, parts: &[String], width: usize) {
    let mut column = 0;
    for (index, part) in parts.iter().enumerate() {
        let length = part.chars().count();
        if index > 0 {
            let fits = column + 2 + length < width;
            text.push_str(if fits { "; " } else { ";\n" });
            column = if fits { column + 2 } else { 0 };
        }
        text.push_str(part);
        column += length;
    }
    text.push('\n');
}
