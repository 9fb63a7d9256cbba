//! Draws a schedule as SVG.
//!
//! The picture uses no external font, script or style. It follows the reader's light or dark theme. It has a title and
//! a description for screen readers. The colours are those of Okabe and Ito, which colour-blind readers can
//! distinguish. Every state also has a pattern or a letter.

mod legend;
mod look;
mod words;

pub use look::Form;

use crate::axis::Axis;
use crate::canvas::Canvas;
use crate::cpus::by_cpu;
use crate::label::{escaped, letter, short};
use crate::{By, Mark, Raised, Row, Schedule, Span, State};
use lockwright_model::{Duration, Instant, ResourceId, System, TaskId};
use look::{BAR, WIDTH, colour, is_dark, mark_path};
use words::{Joined, since_start};

const RIGHT: f64 = WIDTH - 20.0;
const ROW: f64 = 40.0;
const TOP: f64 = 64.0;
const LEGEND_ROW: f64 = 36.0;
/// The most ticks of the axis.
const TICKS: u64 = 11;
/// The most characters of a task's name in the picture. Longer names are cut; the description has the whole name.
const NAME_MAX: usize = 22;
/// The most characters of the title in the picture.
const TITLE_MAX: usize = 100;

/// Draws the schedule.
#[must_use]
pub fn draw(system: &System, schedule: &Schedule, form: Form<'_>) -> String {
    let rows = match form.by {
        By::Task => schedule.rows.len(),
        By::Cpu => system.cpus(),
    };
    let resources = schedule.resources();
    let legend = legend::lines(system, schedule, &resources, form);
    let bottom = TOP + rows as f64 * ROW;
    let height = bottom + 16.0 + LEGEND_ROW * legend.len() as f64;
    let description = words::description(system, schedule);
    let canvas = Canvas::new(form.place, "schedule", (WIDTH, height), form.title, &description);
    let labels = match form.by {
        By::Task => system.tasks().iter().map(|task| task.name.chars().count().min(NAME_MAX)).max().unwrap_or(0),
        By::Cpu => 0,
    };
    // The unit of time stands above the labels.
    let labels = labels.max("time in ms".len());
    let axis = Axis::new(schedule.window, TICKS);
    let left = 24.0 + 8.0 * labels as f64;
    Picture { system, schedule, resources, left, axis, canvas }.draw(form, bottom, &legend)
}

/// The description of each interval of a task, in words.
#[must_use]
pub fn state(system: &System, state: &State) -> String {
    words::state(system, state)
}

struct Picture<'a> {
    system: &'a System,
    schedule: &'a Schedule,
    resources: Vec<ResourceId>,
    /// The horizontal position at which the time axis begins.
    left: f64,
    axis: Axis,
    canvas: Canvas,
}

impl Picture<'_> {
    fn x(&self, at: Instant) -> f64 {
        let window = self.schedule.window;
        let part = at.since(window.from).as_ns() as f64 / window.length().as_ns() as f64;
        self.left + part * (RIGHT - self.left)
    }

    fn draw(mut self, form: Form<'_>, bottom: f64, legend: &[String]) -> String {
        self.patterns();
        let title = short(form.title, TITLE_MAX);
        self.canvas.put(format_args!("<text class=\"title\" x=\"12\" y=\"26\">{}</text>", escaped(&title)));
        self.grid(bottom);
        let schedule = self.schedule;
        match form.by {
            By::Task => {
                for (index, row) in schedule.rows.iter().enumerate() {
                    self.row(row, TOP + ROW * index as f64);
                }
            }
            By::Cpu => {
                for (cpu, spans) in by_cpu(self.system, schedule).iter().enumerate() {
                    self.cpu(cpu, spans, TOP + ROW * cpu as f64);
                }
            }
        }
        for (index, line) in legend.iter().enumerate() {
            let y = bottom + 26.0 + LEGEND_ROW * index as f64;
            self.canvas.put(format_args!("<g transform=\"translate(12 {y:.0})\">{line}</g>"));
        }
        self.canvas.finish()
    }

    /// The patterns of the states in which a task does not execute.
    fn patterns(&mut self) {
        let hatch = "width=\"7\" height=\"7\" patternUnits=\"userSpaceOnUse\"";
        let line = "<line class=\"hatch\" x1=\"0\" y1=\"0\" x2=\"0\" y2=\"7\"/>";
        let names = ["ready", "waits", "spins", "blocked", "undone"];
        let [ready, waits, spins, blocked, undone] = names.map(|name| self.canvas.id(name));
        self.canvas.put(format_args!(
            "<defs><pattern id=\"{ready}\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\"><circle class=\"dot\" cx=\"3\" cy=\"3\" r=\"1\"/></pattern>\
             <pattern id=\"{waits}\" {hatch} patternTransform=\"rotate(45)\">{line}</pattern>\
             <pattern id=\"{blocked}\" {hatch} patternTransform=\"rotate(-45)\">{line}</pattern>\
             <pattern id=\"{spins}\" {hatch}><path class=\"hatch\" d=\"M0 0L7 7M7 0L0 7\"/></pattern>\
             <pattern id=\"{undone}\" {hatch}><path class=\"undone\" d=\"M0 3.5H7\"/></pattern></defs>"
        ));
    }

    fn grid(&mut self, bottom: f64) {
        for (at, label) in std::mem::take(&mut self.axis.ticks) {
            let x = self.x(Instant::from_ns(at));
            self.canvas.put(format_args!(
                "<line class=\"grid\" x1=\"{x:.1}\" y1=\"{:.1}\" x2=\"{x:.1}\" y2=\"{bottom:.1}\"/>",
                TOP - 8.0
            ));
            self.canvas.put(format_args!(
                "<text class=\"small faint\" text-anchor=\"middle\" x=\"{x:.1}\" y=\"{:.1}\">{label}</text>",
                TOP - 14.0
            ));
        }
        let unit = self.axis.unit;
        let y = TOP - 14.0;
        self.canvas.put(format_args!("<text class=\"small faint\" x=\"12\" y=\"{y:.1}\">time in {unit}</text>"));
    }

    /// The label and the line of a row.
    fn label(&mut self, name: &str, base: f64) {
        let shown = escaped(&short(name, NAME_MAX));
        self.canvas.put(format_args!("<text x=\"12\" y=\"{:.1}\">{shown}</text>", base - 4.0));
        let left = self.left;
        self.canvas.put(format_args!(
            "<line class=\"grid\" x1=\"{left:.1}\" y1=\"{base:.1}\" x2=\"{RIGHT:.1}\" y2=\"{base:.1}\"/>"
        ));
    }

    fn row(&mut self, row: &Row, top: f64) {
        let name = &self.system.task(row.task).name;
        let base = top + ROW - 10.0;
        self.canvas.put(format_args!("<g><title>{}</title>", escaped(name)));
        self.label(name, base);
        for joined in self.joined(&row.spans) {
            self.span(&joined, row.task, base);
        }
        for raised in &row.raised {
            self.step(raised, row.task, base);
        }
        for &(at, mark) in &row.marks {
            self.mark(at, mark, base);
        }
        self.canvas.put(format_args!("</g>"));
    }

    /// A processor: the tasks that it executes, and the deadlines that tasks of it miss.
    fn cpu(&mut self, cpu: usize, spans: &[(TaskId, &Span)], top: f64) {
        let base = top + ROW - 10.0;
        let name = format!("CPU {cpu}");
        self.canvas.put(format_args!("<g><title>{name}</title>"));
        self.label(&name, base);
        for &(task, span) in spans {
            self.bar(span, &words::span(self.system, task, span), base);
            let (name, most) = (&self.system.task(task).name, self.room(span, 7.5));
            let text = match self.sign(&span.state) {
                Some(sign) => format!("{sign} {name}"),
                None => name.clone(),
            };
            if most >= 3 {
                self.inside(span, &short(&text, most), base);
            }
        }
        let (system, schedule) = (self.system, self.schedule);
        for row in schedule.rows.iter().filter(|row| system.task(row.task).cpu.index() == cpu) {
            for &(at, _) in row.marks.iter().filter(|(_, mark)| *mark == Mark::Missed) {
                self.mark(at, Mark::Missed, base);
            }
        }
        self.canvas.put(format_args!("</g>"));
    }

    /// The spans, where one that is interrupted for less than a pixel is one of them, because no task executes. On a
    /// real machine, interrupts cut each job, and the waits of others for it, into very many.
    fn joined(&self, spans: &[Span]) -> Vec<Joined> {
        let mut all: Vec<Joined> = Vec::new();
        let mut left = spans;
        while let [span, rest @ ..] = left {
            left = rest;
            match (all.last_mut(), rest) {
                (Some(last), [next, after @ ..])
                    if span.state == State::Ready(None)
                        && self.x(span.until) - self.x(span.from) < 1.0
                        && (&last.span.state, last.span.cpu, last.span.until) == (&next.state, next.cpu, span.from) =>
                {
                    last.span.until = next.until;
                    last.interruptions += 1;
                    last.interrupted += span.until.since(span.from);
                    left = after;
                }
                _ => all.push(Joined { span: span.clone(), interruptions: 0, interrupted: Duration::ZERO }),
            }
        }
        all
    }

    /// A state of a task, and the resource that it holds or the task for which it waits.
    fn span(&mut self, joined: &Joined, task: TaskId, base: f64) {
        let span = &joined.span;
        self.bar(span, &words::joined(self.system, task, joined), base);
        if let Some(sign) = self.sign(&span.state).filter(|_| self.room(span, 7.5) >= 1) {
            self.inside(span, &sign.to_string(), base);
        }
        let (State::Waits(_, Some(by)) | State::Spins(_, Some(by)) | State::Blocked(by)) = &span.state else { return };
        let name = &self.system.task(*by).name;
        if name.chars().count() <= self.room(span, 6.0) {
            let (x, y) = (self.x(span.from), base - BAR / 2.0 - 2.0);
            self.canvas
                .put(format_args!("<text class=\"tiny faint\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>", escaped(name)));
        }
    }

    /// The bar of a state. Waiting is drawn lower than execution.
    fn bar(&mut self, span: &Span, told: &str, base: f64) {
        let (from, until) = (self.x(span.from), self.x(span.until));
        // A very short span is drawn wide enough to be visible.
        let width = (until - from).max(0.6);
        let told = escaped(told);
        let hatched = |name| format!("class=\"frame\" fill=\"url(#{})\"", self.canvas.id(name));
        let look = match &span.state {
            State::Executes(held) | State::Undone(held) => match held.last() {
                Some(&resource) => format!("class=\"frame\" fill=\"{}\"", colour(resource, &self.resources)),
                None => "class=\"frame run\"".to_owned(),
            },
            State::Spins(..) => hatched("spins"),
            State::Waits(..) => hatched("waits"),
            State::Blocked(_) => hatched("blocked"),
            State::Ready(_) => format!("fill=\"url(#{})\"", self.canvas.id("ready")),
        };
        let height = if span.state.held().is_some() { BAR } else { BAR / 2.0 };
        let top = base - height;
        self.canvas.put(format_args!(
            "<rect {look} x=\"{from:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{height:.0}\"><title>{told}</title></rect>",
            top
        ));
        if matches!(span.state, State::Undone(_)) {
            let undone = self.canvas.id("undone");
            self.canvas.put(format_args!(
                "<rect class=\"over\" fill=\"url(#{undone})\" x=\"{from:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.0}\"/>"
            ));
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
    fn inside(&mut self, span: &Span, text: &str, base: f64) {
        let x = f64::midpoint(self.x(span.from), self.x(span.until));
        let held = span.state.held().and_then(<[ResourceId]>::last);
        let class = if held.is_some_and(|&resource| is_dark(colour(resource, &self.resources))) {
            "letter light"
        } else {
            "letter"
        };
        let y = base - 5.0;
        self.canvas.put(format_args!("<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>", escaped(text)));
    }

    /// A line above the bar for the time at which the task has another priority than its own.
    fn step(&mut self, raised: &Raised, task: TaskId, base: f64) {
        let (from, until, y) = (self.x(raised.from), self.x(raised.until), base - BAR - 3.0);
        let own = self.system.task(task).priority;
        self.canvas.put(format_args!(
            "<path class=\"step\" d=\"M{from:.1} {:.1}V{y:.1}H{until:.1}v4\"><title>priority {} instead of {own}, from {} for {}</title></path>",
            y + 4.0,
            raised.to,
            since_start(raised.from),
            raised.until.since(raised.from)
        ));
        let label = raised.to.to_string();
        if until - from > 6.0 * label.len() as f64 + 12.0 {
            self.canvas.put(format_args!(
                "<text class=\"tiny faint\" x=\"{:.1}\" y=\"{:.1}\">{label}</text>",
                from + 6.0,
                y - 2.0
            ));
        }
    }

    fn mark(&mut self, at: Instant, mark: Mark, base: f64) {
        let (class, meaning) = match mark {
            Mark::Arrival => ("mark", "arrival at"),
            Mark::Deadline => ("mark", "deadline at"),
            Mark::Missed => ("late", "deadline missed at"),
            Mark::Restart => ("mark", "section restarts at"),
            Mark::Finish => return,
        };
        let path = mark_path(mark, self.x(at), base);
        let at = since_start(at);
        self.canvas.put(format_args!("<path class=\"{class}\" d=\"{path}\"><title>{meaning} {at}</title></path>"));
    }
}
