//! Draws a schedule as SVG.
//!
//! The picture is self-contained: it uses no external font, script or style. It follows the reader's light or dark
//! theme. It has a title and a description for screen readers. The colours are those of Okabe and Ito, which
//! colour-blind readers can distinguish. Every state also has a pattern or a letter.

use crate::axis::Axis;
use crate::label::{escaped, letter, short};
use crate::{Mark, Row, Schedule, Span, State};
use lockwright_model::{Duration, Instant, ResourceId, System, TaskId};
use std::fmt::Write;

/// The width of the picture in its own units, which suits an A4 page and a phone in landscape orientation.
const WIDTH: f64 = 1000.0;
const ROW: f64 = 40.0;
const BAR: f64 = 18.0;
const TOP: f64 = 64.0;
const LEGEND_ROW: f64 = 22.0;
/// The most ticks of the axis.
const TICKS: u64 = 11;
/// The most characters of a task's name in the picture. Longer names are cut; the description has the whole name.
const NAME_MAX: usize = 22;

/// Colours of resources, by their order in the picture: Okabe and Ito, without black and yellow.
const COLOURS: [&str; 6] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00"];

/// The light style, and the differences of the dark one. It uses no variables, because some renderers do not support
/// them.
const STYLE: &str = "\
svg{background:#ffffff}text{font:14px system-ui,sans-serif;fill:#1a1a1a}.small{font-size:12px}.title{font-size:17px;font-weight:600}\
.faint{fill:#6a6a6a}.letter{font-size:12px;font-weight:600;fill:#ffffff;text-anchor:middle}.grid{stroke:#d8d8d8}.run{fill:#b9c4cf}\
.frame{stroke:#1a1a1a;stroke-width:.7}.mark{stroke:#1a1a1a;stroke-width:1.6;fill:none}.late{stroke:#c00000;stroke-width:2.4;fill:none}\
.hatch{stroke:#6a6a6a;stroke-width:1.4;fill:none}\
@media(prefers-color-scheme:dark){svg{background:#16181a}text{fill:#ececec}.faint{fill:#a0a0a0}.letter{fill:#ffffff}.grid{stroke:#3c3c3c}\
.run{fill:#5b6773}.frame{stroke:#ececec}.mark{stroke:#ececec}.late{stroke:#ff6b6b}.hatch{stroke:#a0a0a0}}";

/// Draws the schedule under a title.
#[must_use]
pub fn draw(system: &System, schedule: &Schedule, title: &str) -> String {
    Picture::new(system, schedule).draw(title)
}

struct Picture<'a> {
    system: &'a System,
    schedule: &'a Schedule,
    resources: Vec<ResourceId>,
    /// The horizontal position at which the time axis begins.
    left: f64,
    axis: Axis,
    out: String,
}

impl<'a> Picture<'a> {
    fn new(system: &'a System, schedule: &'a Schedule) -> Self {
        let longest = system.tasks().iter().map(|task| task.name.chars().count().min(NAME_MAX)).max().unwrap_or(0);
        Self {
            system,
            schedule,
            resources: schedule.resources(),
            left: 24.0 + 8.0 * longest as f64,
            axis: Axis::new(schedule.window, TICKS),
            out: String::new(),
        }
    }

    fn x(&self, at: Instant) -> f64 {
        let window = self.schedule.window;
        let part = at.since(window.from).as_ns() as f64 / window.length().as_ns() as f64;
        self.left + part * (WIDTH - 20.0 - self.left)
    }

    fn put(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.out.write_fmt(line);
        self.out.push('\n');
    }

    fn draw(mut self, title: &str) -> String {
        let rows = self.schedule.rows.len() as f64;
        let bottom = TOP + rows * ROW;
        let legend = self.legend();
        let height = bottom + 16.0 + LEGEND_ROW * legend.len() as f64;
        self.put(format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-labelledby=\"title\" aria-describedby=\"what\">"
        ));
        self.put(format_args!("<title id=\"title\">{}</title>", escaped(title)));
        let what = self.description();
        self.put(format_args!("<desc id=\"what\">{}</desc>", escaped(&what)));
        self.put(format_args!("<style>{STYLE}</style>"));
        self.put(format_args!(
            "<defs><pattern id=\"ready\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\"><circle class=\"faint\" cx=\"3\" cy=\"3\" r=\"1\"/></pattern>\
             <pattern id=\"waits\" width=\"7\" height=\"7\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\"><line class=\"hatch\" x1=\"0\" y1=\"0\" x2=\"0\" y2=\"7\"/></pattern>\
             <pattern id=\"spins\" width=\"7\" height=\"7\" patternUnits=\"userSpaceOnUse\"><path class=\"hatch\" fill=\"none\" d=\"M0 0L7 7M7 0L0 7\"/></pattern></defs>"
        ));
        self.put(format_args!("<text class=\"title\" x=\"12\" y=\"26\">{}</text>", escaped(title)));
        self.grid(bottom);
        let schedule = self.schedule;
        for (index, row) in schedule.rows.iter().enumerate() {
            self.row(row, TOP + ROW * index as f64);
        }
        for (index, line) in legend.iter().enumerate() {
            let y = bottom + 26.0 + LEGEND_ROW * index as f64;
            self.put(format_args!("<g transform=\"translate(12 {y:.0})\">{line}</g>"));
        }
        self.out.push_str("</svg>\n");
        self.out
    }

    fn grid(&mut self, bottom: f64) {
        let ticks = std::mem::take(&mut self.axis.ticks);
        for (at, label) in &ticks {
            let x = self.x(Instant::from_ns(*at));
            self.put(format_args!(
                "<line class=\"grid\" x1=\"{x:.1}\" y1=\"{:.1}\" x2=\"{x:.1}\" y2=\"{bottom:.1}\"/>",
                TOP - 8.0
            ));
            self.put(format_args!(
                "<text class=\"small faint\" text-anchor=\"middle\" x=\"{x:.1}\" y=\"{:.1}\">{label}</text>",
                TOP - 14.0
            ));
        }
        let unit = self.axis.unit;
        self.put(format_args!("<text class=\"small faint\" x=\"12\" y=\"{:.1}\">time in {unit}</text>", TOP - 14.0));
    }

    fn row(&mut self, row: &Row, top: f64) {
        let name = &self.system.task(row.task).name;
        let shown = short(name, NAME_MAX);
        let base = top + ROW - 10.0;
        self.put(format_args!("<g><title>{}</title>", escaped(name)));
        self.put(format_args!("<text x=\"12\" y=\"{:.1}\">{}</text>", base - 4.0, escaped(&shown)));
        let (left, right) = (self.left, WIDTH - 20.0);
        self.put(format_args!(
            "<line class=\"grid\" x1=\"{left:.1}\" y1=\"{base:.1}\" x2=\"{right:.1}\" y2=\"{base:.1}\"/>"
        ));
        for span in &row.spans {
            self.span(span, row.task, base);
        }
        for &(at, mark) in &row.marks {
            self.mark(at, mark, base);
        }
        self.out.push_str("</g>\n");
    }

    fn span(&mut self, span: &Span, task: TaskId, base: f64) {
        let (from, until) = (self.x(span.from), self.x(span.until));
        // A very short span is drawn wide enough to be visible.
        let width = (until - from).max(0.6);
        let top = base - BAR;
        let told = escaped(&self.told(span, task));
        let look = match &span.state {
            State::Executes(held) => match held.last() {
                Some(&resource) => filled(self.colour(resource)),
                None => RUN.to_owned(),
            },
            State::Spins(..) => filled("url(#spins)"),
            State::Waits(..) => filled("url(#waits)"),
            State::Ready(_) => "fill=\"url(#ready)\"".to_owned(),
        };
        // Waiting is drawn lower than execution.
        let (top, height) =
            if matches!(span.state, State::Executes(_)) { (top, BAR) } else { (base - BAR / 2.0, BAR / 2.0) };
        self.put(format_args!(
            "<rect {look} x=\"{from:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"><title>{told}</title></rect>"
        ));
        if let State::Executes(held) = &span.state
            && let Some(&resource) = held.last()
            && width > 12.0
        {
            let letter = self.letter(resource);
            self.put(format_args!(
                "<text class=\"letter\" x=\"{:.1}\" y=\"{:.1}\">{letter}</text>",
                from + width / 2.0,
                base - 5.0
            ));
        }
    }

    fn mark(&mut self, at: Instant, mark: Mark, base: f64) {
        let x = self.x(at);
        let top = base - BAR - 8.0;
        match mark {
            Mark::Arrival => self.put(format_args!(
                "<path class=\"mark\" d=\"M{x:.1} {base:.1}V{top:.1}m-3.5 5l3.5 -5l3.5 5\"><title>arrival at {}</title></path>",
                since_start(at)
            )),
            Mark::Deadline => self.put(format_args!(
                "<path class=\"mark\" d=\"M{x:.1} {top:.1}V{base:.1}m-3.5 -5l3.5 5l3.5 -5\"><title>deadline at {}</title></path>",
                since_start(at)
            )),
            Mark::Missed => self.put(format_args!(
                "<path class=\"late\" d=\"M{x:.1} {top:.1}V{base:.1}m-3.5 -5l3.5 5l3.5 -5M{:.1} {:.1}l9 9m0 -9l-9 9\"><title>deadline at {}, missed</title></path>",
                x - 4.5,
                top - 8.0,
                since_start(at)
            )),
            Mark::Restart => self.put(format_args!(
                "<path class=\"mark\" d=\"M{:.1} {:.1}l-5 -5l5 -5m-5 5h9\"><title>section restarts at {}</title></path>",
                x - 1.0,
                base - BAR - 1.0,
                since_start(at)
            )),
            Mark::Finish => {}
        }
    }

    /// The description of a span in words.
    fn told(&self, span: &Span, task: TaskId) -> String {
        let name = |task: TaskId| format!("`{}`", self.system.task(task).name);
        let resource = |id: ResourceId| format!("`{}`", self.system.resource(id).name);
        let holder = |holder: &Option<TaskId>| match holder {
            Some(task) => format!(", which {} holds", name(*task)),
            None => String::new(),
        };
        let what = match &span.state {
            State::Executes(held) if held.is_empty() => "executes".to_owned(),
            State::Executes(held) => {
                format!("executes and holds {}", held.iter().map(|&id| resource(id)).collect::<Vec<_>>().join(", "))
            }
            State::Spins(id, by) => format!("spins for {}{}", resource(*id), holder(by)),
            State::Waits(id, by) => format!("waits for {}{}", resource(*id), holder(by)),
            State::Ready(Some(by)) => format!("is ready, while {} executes", name(*by)),
            State::Ready(None) => "is ready, while its CPU executes no task".to_owned(),
        };
        let place = if self.system.cpus() > 1 { format!(" on CPU {}", span.cpu.0) } else { String::new() };
        format!("{} {what}{place} for {}, from {}", name(task), span.until.since(span.from), since_start(span.from))
    }

    /// The picture in words: how long each task executed and waited, and its deadline misses.
    fn description(&self) -> String {
        let window = self.schedule.window;
        let mut text = format!(
            "A schedule of {} tasks from {} to {}.",
            self.schedule.rows.len(),
            since_start(window.from),
            since_start(window.until)
        );
        for row in &self.schedule.rows {
            let total = |wanted: fn(&State) -> bool| {
                row.spans
                    .iter()
                    .filter(|span| wanted(&span.state))
                    .map(|span| span.until.since(span.from))
                    .sum::<Duration>()
            };
            let executed = total(|state| matches!(state, State::Executes(_)));
            let waited = total(|state| matches!(state, State::Waits(..) | State::Spins(..)));
            let _ = write!(text, " {} executes for {executed}", self.system.task(row.task).name);
            if waited > Duration::ZERO {
                let _ = write!(text, " and waits for resources for {waited}");
            }
            let missed = row.marks.iter().filter(|(_, mark)| *mark == Mark::Missed).count();
            if missed > 0 {
                let _ = write!(text, "; it misses {missed} {}", if missed == 1 { "deadline" } else { "deadlines" });
            }
            text.push('.');
        }
        text
    }

    fn colour(&self, resource: ResourceId) -> &'static str {
        let place = self.resources.iter().position(|&other| other == resource).unwrap_or(0);
        COLOURS[place % COLOURS.len()]
    }

    /// The letter of the resource, for readers who cannot distinguish the colours.
    fn letter(&self, resource: ResourceId) -> char {
        letter(resource, &self.resources).to_ascii_uppercase()
    }

    /// The lines of the legend, as wide as the picture.
    fn legend(&self) -> Vec<String> {
        let has = |wanted: fn(&State) -> bool| {
            self.schedule.rows.iter().flat_map(|row| &row.spans).any(|span| wanted(&span.state))
        };
        let marked =
            |wanted: Mark| self.schedule.rows.iter().flat_map(|row| &row.marks).any(|&(_, mark)| mark == wanted);
        let bar = |look: &str, height: f64| {
            format!("<rect {look} x=\"0\" y=\"{:.0}\" width=\"26\" height=\"{height:.0}\"/>", 2.0 - height)
        };
        let mut samples = vec![(bar(RUN, 14.0), "executes".to_owned())];
        for &resource in &self.resources {
            let sample = format!(
                "{}<text class=\"letter\" x=\"13\" y=\"-1\">{}</text>",
                bar(&filled(self.colour(resource)), 14.0),
                self.letter(resource)
            );
            samples.push((sample, format!("executes and holds {}", self.system.resource(resource).name)));
        }
        if has(|state| matches!(state, State::Waits(..))) {
            samples.push((bar(&filled("url(#waits)"), 9.0), "waits for a resource".into()));
        }
        if has(|state| matches!(state, State::Spins(..))) {
            samples.push((bar(&filled("url(#spins)"), 9.0), "spins for a resource".into()));
        }
        if has(|state| matches!(state, State::Ready(_))) {
            samples.push((bar(&filled("url(#ready)"), 9.0), "is ready, another task executes".into()));
        }
        samples.push(("<path class=\"mark\" d=\"M13 3V-15m-3.5 5l3.5 -5l3.5 5\"/>".into(), "arrival".into()));
        samples.push(("<path class=\"mark\" d=\"M13 -15V3m-3.5 -5l3.5 5l3.5 -5\"/>".into(), "deadline".into()));
        if marked(Mark::Missed) {
            samples.push((
                "<path class=\"late\" d=\"M13 -13V3m-3.5 -5l3.5 5l3.5 -5M8.5 -16l9 9m0 -9l-9 9\"/>".into(),
                "missed deadline".into(),
            ));
        }
        if marked(Mark::Restart) {
            samples.push(("<path class=\"mark\" d=\"M12 0l-5 -5l5 -5m-5 5h9\"/>".into(), "section restarts".into()));
        }
        let mut lines = Vec::new();
        let (mut line, mut x) = (String::new(), 0.0);
        for (sample, meaning) in samples {
            let width = 34.0 + 7.2 * meaning.chars().count() as f64 + 22.0;
            if x > 0.0 && x + width > WIDTH - 24.0 {
                lines.push(std::mem::take(&mut line));
                x = 0.0;
            }
            let _ = write!(
                line,
                "<g transform=\"translate({x:.0} 0)\">{sample}<text class=\"small\" x=\"34\" y=\"0\">{}</text></g>",
                escaped(&meaning)
            );
            x += width;
        }
        lines.push(line);
        lines
    }
}

/// The attributes of execution without a resource.
const RUN: &str = "class=\"frame run\"";

/// The attributes of a framed area.
fn filled(fill: &str) -> String {
    format!("class=\"frame\" fill=\"{fill}\"")
}

fn since_start(at: Instant) -> Duration {
    at.since(Instant::ZERO)
}
