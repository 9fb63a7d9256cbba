//! Draws the observed response times of one task beside its bound and its deadline.

use crate::Window;
use crate::axis::Axis;
use crate::canvas::{Canvas, Place};
use crate::label::{Px, escaped, short};
use lockwright_model::{Duration, Instant};

const WIDTH: f64 = 440.0;
const HEIGHT: f64 = 132.0;
const LEFT: f64 = 10.0;
const RIGHT: f64 = WIDTH - 16.0;
/// The bottom and the height of the histogram.
const BASE: f64 = 88.0;
const TALL: f64 = 48.0;
/// The most ticks of the axis.
const TICKS: u64 = 7;
const NAME_MAX: usize = 44;

/// The response times of one task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Strip {
    /// The name of the task.
    pub task: String,
    /// Its deadline.
    pub deadline: Duration,
    /// The bound, if there is one.
    pub bound: Option<Duration>,
    /// The longest observed response time; `None` if no job finished.
    pub seen: Option<Duration>,
    /// The histogram, in order of time. It may be empty.
    pub bins: Vec<Bin>,
}

/// The number of jobs with a response time in an interval.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bin {
    /// The least response time.
    pub from: Duration,
    /// The end of the interval.
    pub until: Duration,
    /// The number of jobs.
    pub jobs: u64,
}

impl Strip {
    /// The end of the time axis: all values are before it.
    #[must_use]
    pub fn end(&self) -> Duration {
        let most = [Some(self.deadline), self.bound, self.seen].into_iter().flatten().max().unwrap_or_default();
        most.max(Duration::from_ns(1))
    }
}

/// Draws the strip.
#[must_use]
pub fn draw(strip: &Strip, place: Place<'_>) -> String {
    let title = format!("{}: response times", strip.task);
    let mut canvas = Canvas::new(place, "strip", (WIDTH, HEIGHT), &title, &description(strip));
    let end = strip.end();
    let x = |time: Duration| LEFT + time.as_ns() as f64 / end.as_ns() as f64 * (RIGHT - LEFT);
    let shown = escaped(&short(&strip.task, NAME_MAX));
    canvas.put(format_args!("<text class=\"task\" x=\"{LEFT}\" y=\"18\">{shown}</text>"));
    let window = Window { from: Instant::ZERO, until: Instant::ZERO + end };
    let axis = Axis::new(window, TICKS);
    let label = |(at, label): &(u64, String)| {
        let at = Px(x(Duration::from_ns(*at)));
        match label.as_str() {
            "0" => format!("<text text-anchor=\"start\" x=\"{at}\">0 {}</text>", axis.unit),
            _ => format!("<text x=\"{at}\">{label}</text>"),
        }
    };
    let labels: String = axis.ticks.iter().map(label).collect();
    canvas.put(format_args!(
        "<g class=\"tiny faint\" text-anchor=\"middle\" transform=\"translate(0 {})\">{labels}</g>",
        BASE + 14.0
    ));
    canvas.put(format_args!("<path class=\"grid\" d=\"M{LEFT} {BASE}H{RIGHT}\"/>"));
    let most = strip.bins.iter().map(|bin| bin.jobs).max().unwrap_or(0).max(1);
    for bin in strip.bins.iter().filter(|bin| bin.jobs > 0) {
        // One job among very many stays visible.
        let tall = (bin.jobs as f64 / most as f64 * TALL).max(2.0);
        let (from, width) = (x(bin.from), (x(bin.until) - x(bin.from)).max(1.0));
        let jobs = if bin.jobs == 1 { "1 job".to_owned() } else { format!("{} jobs", bin.jobs) };
        canvas.put(format_args!(
            "<rect class=\"bin\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"><title>{jobs} from {} to {}</title></rect>",
            Px(from),
            Px(BASE - tall),
            Px(width),
            Px(tall),
            bin.from,
            bin.until
        ));
    }
    let lines = [("seen", strip.seen), ("bound", strip.bound), ("deadline", Some(strip.deadline))];
    let lines: Vec<(&str, Duration)> = lines.into_iter().filter_map(|(word, time)| Some((word, time?))).collect();
    let letters: usize = lines.iter().map(|(word, time)| format!("{word} {time}").chars().count()).sum();
    let is_long = 6.6 * letters as f64 + 40.0 * lines.len() as f64 > RIGHT - LEFT;
    let (size, letter, gap) = if is_long { ("tiny", 6.0, 10.0) } else { ("small", 6.6, 20.0) };
    let mut left = LEFT;
    for (word, time) in lines {
        let (at, top) = (Px(x(time)), Px(BASE - TALL - 6.0));
        canvas.put(format_args!(
            "<path class=\"{word}\" d=\"M{at} {top}V{}\" data-{word}-ns=\"{}\"><title>{word} {time}</title></path>",
            Px(BASE + 4.0),
            time.as_ns()
        ));
        let text = format!("{word} {time}");
        canvas.put(format_args!(
            "<path class=\"{word}\" d=\"M{left:.0} 122h16\"/><text class=\"{size}\" x=\"{:.0}\" y=\"126\">{text}</text>",
            left + 20.0
        ));
        left += 20.0 + letter * text.chars().count() as f64 + gap;
    }
    canvas.finish()
}

fn description(strip: &Strip) -> String {
    let jobs: u64 = strip.bins.iter().map(|bin| bin.jobs).fold(0, u64::saturating_add);
    let seen = strip.seen.map_or("no job finished".to_owned(), |seen| format!("the longest observed one is {seen}"));
    let bound = strip.bound.map_or("there is no bound".to_owned(), |bound| format!("the bound is {bound}"));
    let histogram = if jobs > 0 { format!("A histogram of {jobs} response times. ") } else { String::new() };
    format!("{histogram}Of the response times, {seen}; {bound}, and the deadline {}.", strip.deadline)
}
