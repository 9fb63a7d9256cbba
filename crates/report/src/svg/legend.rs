//! The legend of a schedule: what occurs in it.

use super::look::{BAR, Form, WIDTH, colour, is_dark, mark_path};
use crate::canvas::{self, Place};
use crate::label::letter;
use crate::{By, Mark, Schedule, State};
use lockwright_model::{ResourceId, System};

/// The lines of the legend, as wide as the picture.
pub fn lines(system: &System, schedule: &Schedule, resources: &[ResourceId], form: Form<'_>) -> Vec<String> {
    let has =
        |wanted: fn(&State) -> bool| schedule.rows.iter().flat_map(|row| &row.spans).any(|span| wanted(&span.state));
    let marked = |wanted: Mark| schedule.rows.iter().flat_map(|row| &row.marks).any(|&(_, mark)| mark == wanted);
    let bar = |look: &str, height: f64| {
        format!("<rect {look} x=\"0\" y=\"{:.0}\" width=\"26\" height=\"{height:.0}\"/>", 2.0 - height)
    };
    let patterned = |name: &str, class: &str, height: f64| match form.place {
        Place::File => bar(&format!("{class} fill=\"url(#{name})\""), height),
        Place::Page(word) => bar(&format!("{class} fill=\"url(#{word}-{name})\""), height),
    };
    let hatched = |name: &str| patterned(name, "class=\"frame\"", 9.0);
    let mut samples = vec![(bar("class=\"frame run\"", 14.0), "executes".to_owned())];
    for &resource in resources {
        let colour = colour(resource, resources);
        let class = if is_dark(colour) { "letter light" } else { "letter" };
        let sign = letter(resource, resources).to_ascii_uppercase();
        let sample = bar(&format!("class=\"frame\" fill=\"{colour}\""), 14.0);
        samples.push((
            format!("{sample}<text class=\"{class}\" x=\"13\" y=\"-1\">{sign}</text>"),
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
            samples.push((hatched(name), meaning.to_owned()));
        }
    }
    if has(|state| matches!(state, State::Undone(_))) {
        let run = bar("class=\"frame run\"", 14.0);
        samples.push((
            format!("{run}{}", patterned("undone", "class=\"over\"", 14.0)),
            "executes a section that restarts".into(),
        ));
    }
    let mark =
        |mark: Mark, class: &str| format!("<path class=\"{class}\" d=\"{}\"/>", mark_path(mark, 13.0, BAR - 12.0));
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
        samples.push(("<path class=\"step\" d=\"M2 -2V-7H24v5\"/>".into(), "has another priority than its own".into()));
    }
    canvas::legend(&samples, 34.0, WIDTH - 24.0)
}
