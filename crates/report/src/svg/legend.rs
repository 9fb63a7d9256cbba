//! The legend of a schedule: what occurs in it.

use super::look::{BAR, Form, class, is_dark, marks_path};
use crate::canvas;
use crate::label::letter;
use crate::{By, Mark, Schedule, State};
use lockwright_model::{Duration, ResourceId, System};

/// What is merged in a picture.
pub struct Merged {
    /// The time up to which intervals are merged, if any are.
    pub bars: Option<Duration>,
    /// The time up to which marks and steps are merged, if any are.
    pub marks: Option<Duration>,
}

/// The lines of the legend, as wide as the picture.
pub fn lines(
    system: &System,
    schedule: &Schedule,
    resources: &[ResourceId],
    form: Form<'_>,
    merged: Merged,
) -> Vec<String> {
    let has =
        |wanted: fn(&State) -> bool| schedule.rows.iter().flat_map(|row| &row.spans).any(|span| wanted(&span.state));
    let marked = |wanted: Mark| schedule.rows.iter().flat_map(|row| &row.marks).any(|&(_, mark)| mark == wanted);
    let bar = |class: &str, height: u32| {
        format!("<rect class=\"{class}\" y=\"{}\" width=\"26\" height=\"{height}\"/>", 2 - i64::from(height))
    };
    let mut samples = vec![(bar("run", 14), "executes".to_owned())];
    for &resource in resources {
        let light = if is_dark(resource, resources) { "letter light" } else { "letter" };
        let sign = letter(resource, resources).to_ascii_uppercase();
        let sample = bar(&class(&State::Executes(vec![resource]), resources), 14);
        samples.push((
            format!("{sample}<text class=\"{light}\" x=\"13\" y=\"-1\">{sign}</text>"),
            format!("executes and holds {}", system.resource(resource).name),
        ));
    }
    let by_task = form.by == By::Task;
    let states = [
        ("waits", has(|state| matches!(state, State::Waits(..))), "waits for a resource"),
        ("spins", has(|state| matches!(state, State::Spins(..))), "spins for a resource"),
        ("ready", has(|state| matches!(state, State::Ready(_))), "is ready, another task executes"),
        ("blocked", has(|state| matches!(state, State::Blocked(_))), "is ready, a less urgent task executes"),
    ];
    for (name, occurs, meaning) in states {
        if occurs && (by_task || name == "spins") {
            samples.push((bar(name, 9), meaning.to_owned()));
        }
    }
    if has(|state| matches!(state, State::Undone(_))) {
        let sample = bar("run", 14) + &bar("undone", 14);
        samples.push((sample, "executes a section that restarts".into()));
    }
    if let Some(time) = merged.bars {
        samples.push((bar("run several", 14), format!("merged with intervals up to {}", rounded(time))));
    }
    let mark = |mark: Mark, class: &str| {
        format!("<path class=\"{class}\" d=\"{}\"/>", marks_path(std::iter::once(mark), 13.0, BAR - 12.0))
    };
    if by_task {
        samples.push((mark(Mark::Arrival, "mark"), "arrival".into()));
        samples.push((mark(Mark::Deadline, "mark"), "deadline".into()));
    }
    if marked(Mark::Missed) {
        samples.push((mark(Mark::Missed, "late"), "missed deadline".into()));
    }
    if by_task && marked(Mark::Restart) {
        samples.push((mark(Mark::Restart, "mark"), "section restarts".into()));
    }
    if by_task && schedule.rows.iter().any(|row| !row.raised.is_empty()) {
        samples.push(("<path class=\"step\" d=\"M2-2V-7H24v5\"/>".into(), "has another priority than its own".into()));
    }
    if let Some(time) = merged.marks {
        let sample = if by_task { mark(Mark::Arrival, "mark") } else { mark(Mark::Missed, "late") };
        samples.push((sample, format!("marks merged up to {}", rounded(time))));
    }
    canvas::legend(&samples, 34.0, f64::from(form.width) - 24.0)
}

/// The time, rounded up to two digits.
fn rounded(time: Duration) -> Duration {
    let mut unit = 1_u64;
    while time.as_ns() / unit >= 100 {
        unit *= 10;
    }
    Duration::from_ns(time.as_ns().div_ceil(unit).saturating_mul(unit))
}
