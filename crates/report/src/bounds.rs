//! Draws response-time bounds as SVG: each bound is a bar of its terms.
//!
//! The length of a bar is the share of the deadline, so that tasks with very different deadlines fit on one axis. The
//! numbers are in the text beside the bars and in the attributes `data-…-ns`. As in [`svg`](crate::svg), the picture
//! follows the reader's theme, and every colour also has a letter.

use crate::canvas::{Canvas, Place, legend};
use crate::label::{Px, escaped, short};
use lockwright_model::Duration;
use std::collections::HashSet;
use std::fmt::Write;

/// The width of the picture in its own units. It is narrow, so that the text is readable on a phone.
const WIDTH: f64 = 440.0;
const MARGIN: f64 = 10.0;
const BAR: f64 = 14.0;
const LINE: f64 = 18.0;
/// The width of the protocol names, if there are several.
const NAMES: f64 = 84.0;
/// The width of the response times to the right of the bars.
const TIMES: f64 = 104.0;
/// The greatest share of the deadline that is drawn. Longer bars are cut, and an arrow marks the cut.
const SHARE_MAX: f64 = 1.5;
/// The most characters of a line of text in the picture. Longer lines are cut; the descriptions have the whole text.
const TEXT_MAX: usize = 64;
/// The most characters of a protocol's name and of a response time.
const NAME_MAX: usize = 12;

/// The cause of a delay. The letters and colours of the picture distinguish these.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// The execution of the job itself.
    Execution,
    /// The delay from arrival to release.
    Jitter,
    /// Jobs of tasks at least as urgent.
    Interference,
    /// Sections of less urgent tasks of the same processor.
    Local,
    /// Boosted sections of less urgent tasks of the same processor.
    Boosted,
    /// Waiting for tasks of other processors.
    Remote,
    /// Interruptible sections that are executed again.
    Again,
}

impl Cause {
    const ALL: [Self; 7] =
        [Self::Execution, Self::Jitter, Self::Interference, Self::Local, Self::Boosted, Self::Remote, Self::Again];

    /// The class in the style, the letter, and the meaning in the legend.
    fn look(self) -> (&'static str, char, &'static str) {
        match self {
            Self::Execution => ("c0", 'E', "own execution"),
            Self::Jitter => ("c1", 'J', "release jitter"),
            Self::Interference => ("c2", 'I', "interference"),
            Self::Local => ("c3", 'L', "local blocking"),
            Self::Boosted => ("c4", 'B', "boosted blocking"),
            Self::Remote => ("c5", 'R', "remote blocking"),
            Self::Again => ("c6", 'A', "executed again"),
        }
    }

    /// The cause in words.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        self.look().2
    }

    fn is_blocking(self) -> bool {
        matches!(self, Self::Local | Self::Boosted | Self::Remote)
    }
}

/// One term of a bound.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Term {
    /// The cause.
    pub cause: Cause,
    /// The name of the task that causes the delay, if it is one.
    pub by: Option<String>,
    /// The name of the resource involved, if there is one.
    pub resource: Option<String>,
    /// The length.
    pub total: Duration,
}

impl Term {
    /// The cause, the task and the resource in words.
    fn told(&self) -> String {
        let mut text = self.cause.look().2.to_owned();
        for (word, name) in [("by", &self.by), ("on", &self.resource)] {
            if let Some(name) = name {
                let _ = write!(text, " {word} {name}");
            }
        }
        let _ = write!(text, " {}", self.total);
        text
    }
}

/// The bound of one task under one protocol.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bar {
    /// The protocol.
    pub protocol: String,
    /// The bound; `None` if there is none. The terms are then those that are known without one.
    pub response: Option<Duration>,
    /// Whether the deadline is proved to hold.
    pub proved: bool,
    /// The terms, in the order in which they are drawn.
    pub terms: Vec<Term>,
}

/// The bounds of one task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    /// The name of the task.
    pub task: String,
    /// Its deadline.
    pub deadline: Duration,
    /// One bar for each protocol.
    pub bars: Vec<Bar>,
}

/// Draws the bounds under a title, one row for each task.
///
/// If protocols are compared, those under which no task has a bound are only named.
#[must_use]
pub fn draw(rows: &[Row], title: &str, place: Place<'_>) -> String {
    let (rows, unbounded) = without_unbounded(rows);
    Picture::new(&rows, &unbounded, title, place).draw(title)
}

/// The rows without the protocols under which no task has a bound, and the names of these. Without any bound, all
/// protocols stay.
fn without_unbounded(rows: &[Row]) -> (Vec<Row>, Vec<String>) {
    let bars = || rows.iter().flat_map(|row| &row.bars);
    let bounded: HashSet<&str> = bars().filter(|bar| bar.response.is_some()).map(|bar| &*bar.protocol).collect();
    if bounded.is_empty() {
        return (rows.to_vec(), Vec::new());
    }
    let mut unbounded: Vec<String> = Vec::new();
    for bar in bars() {
        if !bounded.contains(&*bar.protocol) && !unbounded.contains(&bar.protocol) {
            unbounded.push(bar.protocol.clone());
        }
    }
    let mut rows = rows.to_vec();
    for row in &mut rows {
        row.bars.retain(|bar| !unbounded.contains(&bar.protocol));
    }
    (rows, unbounded)
}

/// The same bounds with one term for each cause, in the order in which the causes occur. It is smaller, and without
/// names.
#[must_use]
pub fn by_cause(rows: &[Row]) -> Vec<Row> {
    let merged = |bar: &Bar| {
        let mut terms: Vec<Term> = Vec::new();
        for term in &bar.terms {
            match terms.iter_mut().find(|known| known.cause == term.cause) {
                Some(known) => known.total = Duration::from_ns(known.total.as_ns().saturating_add(term.total.as_ns())),
                None => terms.push(Term { by: None, resource: None, ..term.clone() }),
            }
        }
        Bar { terms, ..bar.clone() }
    };
    rows.iter().map(|row| Row { bars: row.bars.iter().map(merged).collect(), ..row.clone() }).collect()
}

struct Picture<'a> {
    rows: &'a [Row],
    /// Whether the bars have different protocols, so that each is named.
    is_comparison: bool,
    left: f64,
    right: f64,
    /// The share of the deadline at the right end.
    most: f64,
    /// The lines of the legend.
    legend: Vec<String>,
    /// The height of the picture.
    bottom: f64,
    canvas: Canvas,
}

impl<'a> Picture<'a> {
    fn new(rows: &'a [Row], unbounded: &[String], title: &str, place: Place<'_>) -> Self {
        let bars = || rows.iter().flat_map(|row| row.bars.iter().map(move |bar| (row, bar)));
        let is_comparison = rows.iter().any(|row| row.bars.len() > 1) || !unbounded.is_empty();
        let shares = bars().filter_map(|(row, bar)| Some(share(bar.response?, row.deadline)));
        let mut legend = legend(&samples(rows), 24.0, WIDTH - 2.0 * MARGIN);
        let named = lines(unbounded).into_iter();
        legend.extend(named.map(|line| format!("<text>{}</text>", escaped(&line))));
        let bottom = axis(&legend) + 14.0 + rows.iter().map(|row| height(row, is_comparison)).sum::<f64>();
        Self {
            rows,
            is_comparison,
            left: if is_comparison { MARGIN + NAMES } else { MARGIN },
            right: WIDTH - MARGIN - TIMES,
            most: shares.fold(1.0, f64::max).min(SHARE_MAX),
            legend,
            bottom,
            canvas: Canvas::new(place, "bounds", (WIDTH, bottom), title, &description(rows, unbounded)),
        }
    }

    /// The position of a share of the deadline.
    fn x(&self, share: f64) -> f64 {
        self.left + share.min(self.most) / self.most * (self.right - self.left)
    }

    fn draw(mut self, title: &str) -> String {
        let shown = short(title, 52);
        self.canvas.put(format_args!("<text class=\"title\" x=\"{MARGIN}\" y=\"22\">{}</text>", escaped(&shown)));
        for (index, line) in self.legend.iter().enumerate() {
            let y = 46.0 + LINE * index as f64;
            self.canvas.put(format_args!("<g class=\"legend\" transform=\"translate({MARGIN} {y})\">{line}</g>"));
        }
        let axis = axis(&self.legend);
        let rows = self.rows;
        self.grid(axis, self.bottom);
        let mut top = axis + 8.0;
        for row in rows {
            self.row(row, top);
            top += height(row, self.is_comparison);
        }
        self.canvas.finish()
    }

    fn grid(&mut self, top: f64, bottom: f64) {
        let (left, most) = (self.left, self.most * 100.0);
        let mut lines = String::new();
        for percent in (0..=150_u32).step_by(25).filter(|&percent| f64::from(percent) <= most) {
            let x = Px(self.x(f64::from(percent) / 100.0));
            // Writing to a string cannot fail.
            let _ = write!(lines, "M{x} {}V{}", Px(top), Px(bottom - 6.0));
            let label = if percent == 0 { "0".to_owned() } else { format!("{percent} %") };
            let anchor = if percent == 0 { "start" } else { "middle" };
            self.canvas.put(format_args!(
                "<text class=\"small faint\" text-anchor=\"{anchor}\" x=\"{x}\" y=\"{}\">{label}</text>",
                Px(top - 4.0)
            ));
        }
        self.canvas.put(format_args!("<path class=\"grid\" d=\"{lines}\"/>"));
        self.canvas.put(format_args!(
            "<text class=\"small faint\" x=\"{}\" y=\"{}\">bound as a share of the deadline</text>",
            Px(left),
            Px(top - 22.0)
        ));
    }

    /// The bars of a task. Positions in a row and in a bar are relative to its top.
    fn row(&mut self, row: &Row, top: f64) {
        let (task, deadline, top) = (escaped(&row.task), row.deadline.as_ns(), Px(top));
        self.canvas.put(format_args!(
            "<g data-task=\"{task}\" data-deadline-ns=\"{deadline}\" transform=\"translate(0 {top})\"><title>{task}</title>"
        ));
        let name = short(&row.task, 36);
        self.canvas.put(format_args!(
            "<text class=\"task\" x=\"{MARGIN}\" y=\"13\">{} <tspan class=\"small faint\">deadline {}</tspan></text>",
            escaped(&name),
            row.deadline
        ));
        for (index, bar) in row.bars.iter().enumerate() {
            self.bar(row, bar, LINE * (index + 1) as f64);
        }
        let (x, end) = (Px(self.x(1.0)), Px(LINE * (row.bars.len() + 1) as f64));
        self.canvas.put(format_args!(
            "<line class=\"deadline\" x1=\"{x}\" y1=\"{}\" x2=\"{x}\" y2=\"{end}\"><title>deadline</title></line>",
            Px(LINE - 2.0)
        ));
        if !self.is_comparison {
            for (index, line) in blockers(row).iter().enumerate() {
                let y = Px(LINE * (row.bars.len() + index + 2) as f64 - 5.0);
                self.canvas
                    .put(format_args!("<text class=\"small\" x=\"{MARGIN}\" y=\"{y}\">{}</text>", escaped(line)));
            }
        }
        self.canvas.put(format_args!("</g>"));
    }

    /// The terms of a bar that are drawn as one: neighbours with the same cause of which each is narrower than a pixel.
    fn pieces<'b>(&self, row: &Row, bar: &'b Bar) -> Vec<Vec<&'b Term>> {
        let is_narrow = |term: &Term| self.x(share(term.total, row.deadline)) - self.left < 1.0;
        let mut pieces: Vec<Vec<&Term>> = Vec::new();
        for term in bar.terms.iter().filter(|term| term.total > Duration::ZERO) {
            match pieces.last_mut() {
                Some(piece) if piece[0].cause == term.cause && is_narrow(piece[0]) && is_narrow(term) => {
                    piece.push(term);
                }
                _ => pieces.push(vec![term]),
            }
        }
        pieces
    }

    fn bar(&mut self, row: &Row, bar: &Bar, top: f64) {
        let (protocol, top) = (escaped(&bar.protocol), Px(top));
        let response = bar.response.map_or_else(String::new, |time| format!(" data-response-ns=\"{}\"", time.as_ns()));
        self.canvas.put(format_args!(
            "<g data-protocol=\"{protocol}\"{response} data-proved=\"{}\" transform=\"translate(0 {top})\">",
            bar.proved
        ));
        let base = Px(BAR - 3.0);
        if self.is_comparison {
            let name = short(&bar.protocol, NAME_MAX);
            self.canvas
                .put(format_args!("<text class=\"small\" x=\"{MARGIN}\" y=\"{base}\">{}</text>", escaped(&name)));
        }
        let mut sum = 0.0;
        for terms in self.pieces(row, bar) {
            let total: Duration = terms.iter().map(|term| term.total).sum();
            let from = self.x(sum);
            sum += share(total, row.deadline);
            let width = self.x(sum) - from;
            let (class, letter, meaning) = terms[0].cause.look();
            let told = match terms.as_slice() {
                [term] => term.told(),
                several => format!("{meaning}, {} terms of together {total}", several.len()),
            };
            self.canvas.put(format_args!(
                "<rect class=\"{class}\" x=\"{}\" width=\"{}\" height=\"{BAR}\" data-ns=\"{}\"><title>{}</title></rect>",
                Px(from),
                Px(width),
                total.as_ns(),
                escaped(&told)
            ));
            if width > 11.0 {
                let x = Px(from + width / 2.0);
                self.canvas.put(format_args!("<text class=\"letter\" x=\"{x}\" y=\"{base}\">{letter}</text>"));
            }
        }
        if sum > self.most {
            // The cut bar ends in an arrow.
            let half = Px(BAR / 2.0 - 2.0);
            self.canvas.put(format_args!("<path class=\"cut\" d=\"M{} 2l5 {half}l-5 {half}\"/>", Px(self.right + 1.0)));
        }
        let x = Px(self.right + 10.0);
        match bar.response {
            Some(response) => {
                let (class, mark) = if bar.proved { ("small", "") } else { ("small late", "✗ ") };
                self.canvas.put(format_args!("<text class=\"{class}\" x=\"{x}\" y=\"{base}\">{mark}{response}</text>"));
            }
            None => {
                let from = self.x(sum);
                self.canvas.put(format_args!(
                    "<rect class=\"open\" x=\"{}\" y=\".5\" width=\"{}\" height=\"{}\"><title>no bound</title></rect>",
                    Px(from),
                    Px((self.right - from).max(0.0)),
                    BAR - 1.0
                ));
                self.canvas.put(format_args!("<text class=\"small late\" x=\"{x}\" y=\"{base}\">✗ no bound</text>"));
            }
        }
        self.canvas.put(format_args!("</g>"));
    }
}

/// The top of the bars, below the title and the legend.
fn axis(legend: &[String]) -> f64 {
    42.0 + LINE * legend.len() as f64 + 34.0
}

fn height(row: &Row, is_comparison: bool) -> f64 {
    let lines = if is_comparison { row.bars.len() } else { row.bars.len() + blockers(row).len() };
    LINE * (1 + lines) as f64 + 8.0
}

/// The terms of blocking of one bar in words, as lines that fit.
fn blockers(row: &Row) -> Vec<String> {
    let terms = row.bars.iter().flat_map(|bar| &bar.terms);
    let told = terms.filter(|term| term.cause.is_blocking() && term.total > Duration::ZERO).map(Term::told);
    told.map(|line| short(&line, TEXT_MAX)).collect()
}

/// The samples of the legend: the causes that occur, and the marks.
fn samples(rows: &[Row]) -> Vec<(String, String)> {
    let bars = || rows.iter().flat_map(|row| &row.bars);
    let has = |cause: &Cause| bars().flat_map(|bar| &bar.terms).any(|term| term.cause == *cause);
    let sample = |cause: Cause| {
        let (class, letter, meaning) = cause.look();
        let sample = format!(
            "<rect class=\"{class}\" y=\"-11\" width=\"18\" height=\"{BAR}\"/>\
             <text class=\"letter\" x=\"9\">{letter}</text>"
        );
        (sample, meaning.to_owned())
    };
    let mut samples: Vec<_> = Cause::ALL.into_iter().filter(has).map(sample).collect();
    samples.push(("<path class=\"deadline\" d=\"M9 -12V4\"/>".into(), "deadline".into()));
    if bars().any(|bar| !bar.proved) {
        samples.push(("<text class=\"late\" x=\"4\">✗</text>".into(), "deadline not proved".into()));
    }
    if bars().any(|bar| bar.response.is_none()) {
        samples.push(("<path class=\"open\" d=\"M0 -10H18V2H0Z\"/>".into(), "no bound".into()));
    }
    samples
}

/// Names the protocols under which no task has a bound, in lines for the picture.
fn lines(unbounded: &[String]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for (index, protocol) in unbounded.iter().enumerate() {
        let word = if index + 1 < unbounded.len() { format!("{protocol},") } else { protocol.clone() };
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= TEXT_MAX => {
                line.push(' ');
                line.push_str(&word);
            }
            Some(_) => lines.push(word),
            None => lines.push(format!("no task has a bound under {word}")),
        }
    }
    lines
}

/// The picture in words.
fn description(rows: &[Row], unbounded: &[String]) -> String {
    let mut text = "Response-time bounds as shares of the deadlines.".to_owned();
    for row in rows {
        let _ = write!(text, " {}, deadline {}: ", row.task, row.deadline);
        for (index, bar) in row.bars.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            let _ = match bar.response {
                Some(response) => write!(text, "{separator}{} {response}", bar.protocol),
                None => write!(text, "{separator}{} no bound", bar.protocol),
            };
            if bar.response.is_some() && !bar.proved {
                text.push_str(" (not proved in time)");
            }
        }
        text.push('.');
    }
    if !unbounded.is_empty() {
        let _ = write!(text, " No task has a bound under {}.", unbounded.join(", "));
    }
    text
}

fn share(time: Duration, deadline: Duration) -> f64 {
    time.as_ns() as f64 / deadline.as_ns().max(1) as f64
}
