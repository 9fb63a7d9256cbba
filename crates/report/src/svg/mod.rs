//! Draws a schedule as SVG.
//!
//! The picture uses no external font, script or style. It follows the reader's light or dark theme. It has a title and
//! a description for screen readers. The colours are those of Okabe and Ito, which colour-blind readers can
//! distinguish. Every state also has a pattern or a letter.

mod legend;
mod look;
mod parts;
mod words;

pub use look::{Form, WIDTH, WIDTHS};
pub use parts::Level;

use crate::axis::Axis;
use crate::canvas::{Canvas, PATTERNS, Place};
use crate::cpus::by_cpu;
use crate::label::{Px, escaped, letter, short};
use crate::{By, Mark, Schedule, Span, State};
use legend::Merged;
use lockwright_model::{Instant, ResourceId, System, TaskId};
use look::{BAR, Layout, class, is_dark, marks_path};
use parts::{Bar, Marks, Parts, Scale, Step};
use std::fmt::Write;
use words::Digits;

const LEGEND_ROW: f64 = 36.0;

/// Draws the schedule.
#[must_use]
pub fn draw(system: &System, schedule: &Schedule, form: Form<'_>) -> String {
    let layout = Layout::new(system, form.by, form.width);
    let rows = rows(system, schedule, form.by);
    let scale = Scale::of(schedule.window.length(), layout.right - layout.left, form.level);
    let parts: Vec<Parts> = rows.iter().map(|row| row.parts(scale)).collect();
    let merged = Merged {
        bars: parts.iter().flat_map(|row| &row.bars).any(|bar| bar.is_merged).then_some(scale.short),
        marks: parts.iter().any(Parts::has_merged_marks).then_some(scale.pixel),
    };
    let resources = schedule.resources();
    let legend = legend::lines(system, schedule, &resources, form, merged);
    let bottom = layout.top + rows.len() as f64 * layout.row;
    let height = bottom + 16.0 + LEGEND_ROW * legend.len() as f64;
    let description = words::description(system, schedule);
    let canvas = Canvas::new(form.place, "schedule", (layout.width, height), form.title, &description);
    let digits = Digits::of(schedule.window.length());
    let picture = Picture { system, schedule, resources, layout, digits, canvas };
    picture.draw(form, bottom, &legend, rows.iter().zip(&parts))
}

/// The number of parts of a picture of this width: its intervals, its marks, and its steps of priorities.
#[must_use]
pub fn parts(system: &System, schedule: &Schedule, by: By, width: u32, level: Level) -> usize {
    let layout = Layout::new(system, by, width);
    let scale = Scale::of(schedule.window.length(), layout.right - layout.left, level);
    rows(system, schedule, by).iter().map(|row| row.parts(scale).count()).sum()
}

/// The finest level on which pictures of these schedules have together at most `most` parts. If there is none: the
/// coarsest, on which the intervals of each row are one part. Marks and steps are never further merged than a pixel.
#[must_use]
pub fn level(system: &System, schedules: &[&Schedule], by: By, width: u32, most: usize) -> Level {
    let fits = |level: &Level| {
        let mut left = Some(most);
        schedules.iter().all(|schedule| {
            left = left.and_then(|left| left.checked_sub(parts(system, schedule, by, width, *level)));
            left.is_some()
        })
    };
    Level::all().find(fits).unwrap_or(Level::COARSEST)
}

/// The description of each interval of a task, in words.
#[must_use]
pub fn state(system: &System, state: &State) -> String {
    words::state(system, state)
}

/// A row before it is drawn: its name, and what happens in it.
struct Row<'a> {
    name: String,
    /// The task of the row; `None` for a processor.
    task: Option<TaskId>,
    spans: Vec<(TaskId, &'a Span)>,
    raised: &'a [crate::Raised],
    marks: Vec<(Instant, Mark)>,
}

impl Row<'_> {
    fn parts(&self, scale: Scale) -> Parts {
        Parts::new(&self.spans, self.raised, &self.marks, scale)
    }
}

/// A row for each task; or for each processor, with the tasks that it executes and the deadlines that these miss.
fn rows<'a>(system: &System, schedule: &'a Schedule, by: By) -> Vec<Row<'a>> {
    match by {
        By::Task => {
            let row = |row: &'a crate::Row| Row {
                name: system.task(row.task).name.clone(),
                task: Some(row.task),
                spans: row.spans.iter().map(|span| (row.task, span)).collect(),
                raised: &row.raised,
                marks: row.marks.clone(),
            };
            schedule.rows.iter().map(row).collect()
        }
        By::Cpu => {
            let missed = |cpu: usize| {
                let own = schedule.rows.iter().filter(move |row| system.task(row.task).cpu.index() == cpu);
                own.flat_map(|row| &row.marks).filter(|(_, mark)| *mark == Mark::Missed).copied()
            };
            let row = |(cpu, spans)| {
                let mut marks: Vec<_> = missed(cpu).collect();
                marks.sort_by_key(|&(at, _)| at);
                Row { name: format!("CPU {cpu}"), task: None, spans, raised: &[], marks }
            };
            by_cpu(system, schedule).into_iter().enumerate().map(row).collect()
        }
    }
}

struct Picture<'a> {
    system: &'a System,
    schedule: &'a Schedule,
    resources: Vec<ResourceId>,
    layout: Layout,
    digits: Digits,
    canvas: Canvas,
}

impl Picture<'_> {
    fn x(&self, at: Instant) -> f64 {
        let Layout { left, right, .. } = self.layout;
        let window = self.schedule.window;
        let part = at.since(window.from).as_ns() as f64 / window.length().as_ns() as f64;
        left + part * (right - left)
    }

    fn draw<'a>(
        mut self,
        form: Form<'_>,
        bottom: f64,
        legend: &[String],
        rows: impl Iterator<Item = (&'a Row<'a>, &'a Parts)>,
    ) -> String {
        if form.place == Place::File {
            self.canvas.put(format_args!("{PATTERNS}"));
        }
        let title = short(form.title, self.layout.title_max());
        self.canvas.put(format_args!("<text class=\"title\" x=\"12\" y=\"26\">{}</text>", escaped(&title)));
        self.grid(bottom);
        for (index, (row, parts)) in rows.enumerate() {
            self.row(row, parts, form.by, self.layout.top + self.layout.row * (index + 1) as f64 - 10.0);
        }
        for (index, line) in legend.iter().enumerate() {
            let y = bottom + 26.0 + LEGEND_ROW * index as f64;
            self.canvas.put(format_args!("<g class=\"legend\" transform=\"translate(12 {y:.0})\">{line}</g>"));
        }
        self.canvas.finish()
    }

    fn grid(&mut self, bottom: f64) {
        let Layout { left, right, top, .. } = self.layout;
        let axis = Axis::new(self.schedule.window, self.layout.ticks());
        let (mut lines, mut labels) = (String::new(), String::new());
        for (at, label) in &axis.ticks {
            let x = Px(self.x(Instant::from_ns(*at)));
            // Writing to a string cannot fail.
            let _ = write!(lines, "M{x} {}V{}", Px(top - 8.0), Px(bottom));
            let _ = write!(labels, "<text x=\"{x}\">{label}</text>");
        }
        for base in (1..).map(|row| top + self.layout.row * f64::from(row) - 10.0).take_while(|&base| base < bottom) {
            let _ = write!(lines, "M{} {}H{}", Px(left), Px(base), Px(right));
        }
        self.canvas.put(format_args!("<path class=\"grid\" d=\"{lines}\"/>"));
        self.canvas.put(format_args!("<g class=\"ticks\" transform=\"translate(0 {})\">{labels}</g>", Px(top - 14.0)));
        let y = Px(self.layout.unit);
        self.canvas.put(format_args!("<text class=\"small faint\" x=\"12\" y=\"{y}\">time in {}</text>", axis.unit));
    }

    /// A row, whose line is at `base`. Positions in it are relative to the line.
    fn row(&mut self, row: &Row<'_>, parts: &Parts, by: By, base: f64) {
        let shown = short(&row.name, self.layout.name_max());
        self.canvas.put(format_args!(
            "<g class=\"row\" transform=\"translate(0 {})\"><title>{}</title><text x=\"12\" y=\"{}\">{}</text>",
            Px(base),
            escaped(&row.name),
            Px(self.layout.name),
            escaped(&shown)
        ));
        for bar in &parts.bars {
            self.bar(bar, by);
            match by {
                By::Task => self.signs(&bar.span),
                By::Cpu => self.task(bar),
            }
        }
        for (step, task) in parts.steps.iter().filter_map(|step| Some((step, row.task?))) {
            self.step(step, task);
        }
        for marks in &parts.marks {
            let class = if marks.events[0].0 == Mark::Missed { "late" } else { "mark" };
            self.marks(marks, class);
        }
        self.canvas.put(format_args!("</g>"));
    }

    /// The bar of a state. Waiting is drawn lower than execution.
    fn bar(&mut self, bar: &Bar, by: By) {
        let span = &bar.span;
        let (from, until) = (self.x(span.from), self.x(span.until));
        // A very short span is drawn wide enough to be visible.
        let (x, width) = (Px(from), Px((until - from).max(0.6)));
        let told = escaped(&words::bar(self.system, bar, by, self.digits));
        let look = class(&span.state, &self.resources);
        let several = if bar.is_merged { " several" } else { "" };
        let height = if span.state.held().is_some() { BAR } else { BAR / 2.0 };
        self.canvas.put(format_args!(
            "<rect class=\"{look}{several}\" x=\"{x}\" y=\"-{height}\" width=\"{width}\" height=\"{height}\"><title>{told}</title></rect>"
        ));
        if matches!(span.state, State::Undone(_)) {
            self.canvas.put(format_args!(
                "<rect class=\"undone\" x=\"{x}\" y=\"-{height}\" width=\"{width}\" height=\"{height}\"/>"
            ));
        }
    }

    /// The resource that a bar holds, or the task for which it waits.
    fn signs(&mut self, span: &Span) {
        if let Some(sign) = self.sign(&span.state).filter(|_| self.room(span, 7.5) >= 1) {
            self.inside(span, &sign.to_string());
        }
        let (State::Waits(_, Some(by)) | State::Spins(_, Some(by)) | State::Blocked(by)) = &span.state else { return };
        let name = &self.system.task(*by).name;
        if name.chars().count() <= self.room(span, 6.0) {
            let (x, y) = (Px(self.x(span.from)), Px(-BAR / 2.0 - 2.0));
            self.canvas.put(format_args!("<text class=\"tiny faint\" x=\"{x}\" y=\"{y}\">{}</text>", escaped(name)));
        }
    }

    /// The task that a processor executes, and the resource that it holds.
    fn task(&mut self, bar: &Bar) {
        let (name, most) = (&self.system.task(bar.task).name, self.room(&bar.span, 7.5));
        let text = match self.sign(&bar.span.state) {
            Some(sign) => format!("{sign} {name}"),
            None => name.clone(),
        };
        if most >= 3 {
            self.inside(&bar.span, &short(&text, most));
        }
    }

    /// The letter of the resource that was acquired last.
    fn sign(&self, state: &State) -> Option<char> {
        state.held()?.last().map(|&resource| letter(resource, &self.resources).to_ascii_uppercase())
    }

    /// How many characters of this width fit into a bar.
    fn room(&self, span: &Span, width: f64) -> usize {
        ((self.x(span.until) - self.x(span.from) - 4.0) / width) as usize
    }

    /// Text in the middle of a bar.
    fn inside(&mut self, span: &Span, text: &str) {
        let x = Px(f64::midpoint(self.x(span.from), self.x(span.until)));
        let held = span.state.held().and_then(<[ResourceId]>::last);
        let class =
            if held.is_some_and(|&resource| is_dark(resource, &self.resources)) { "letter light" } else { "letter" };
        self.canvas.put(format_args!("<text class=\"{class}\" x=\"{x}\" y=\"-5\">{}</text>", escaped(text)));
    }

    /// A line above the bar for the time at which the task has another priority than its own.
    fn step(&mut self, step: &Step, task: TaskId) {
        let (from, until, y) = (self.x(step.from), self.x(step.until), -BAR - 3.0);
        let told = words::step(step, self.system.task(task).priority, self.digits);
        self.canvas.put(format_args!(
            "<path class=\"step\" d=\"M{} {}V{y}H{}v4\"><title>{told}</title></path>",
            Px(from),
            Px(y + 4.0),
            Px(until)
        ));
        let label = step.to.to_string();
        if until - from > 6.0 * label.len() as f64 + 12.0 {
            let (x, y) = (Px(from + 6.0), Px(y - 2.0));
            self.canvas.put(format_args!("<text class=\"tiny faint\" x=\"{x}\" y=\"{y}\">{label}</text>"));
        }
    }

    fn marks(&mut self, marks: &Marks, class: &str) {
        let path = marks_path(marks.events.iter().map(|&(mark, _)| mark), self.x(marks.from), 0.0);
        let told = words::marks(marks, self.digits);
        self.canvas.put(format_args!("<path class=\"{class}\" d=\"{path}\"><title>{told}</title></path>"));
    }
}
