//! A schedule in words: the descriptions of its intervals, and of the whole picture.

use crate::{Mark, Schedule, Span, State};
use lockwright_model::{Duration, Instant, ResourceId, System, TaskId};
use std::fmt::Write;

/// A span, and the interruptions within it that are too short to be seen.
pub(super) struct Joined {
    pub(super) span: Span,
    pub(super) interruptions: u64,
    pub(super) interrupted: Duration,
}

/// The time since the start.
pub fn since_start(at: Instant) -> Duration {
    at.since(Instant::ZERO)
}

/// The state of a task, without the task.
pub fn state(system: &System, state: &State) -> String {
    let name = |task: TaskId| format!("`{}`", system.task(task).name);
    let resource = |id: ResourceId| format!("`{}`", system.resource(id).name);
    let holder = |holder: &Option<TaskId>| match holder {
        Some(task) => format!(", which {} holds", name(*task)),
        None => String::new(),
    };
    match state {
        State::Executes(held) if held.is_empty() => "executes".to_owned(),
        State::Executes(held) => {
            format!("executes and holds {}", held.iter().map(|&id| resource(id)).collect::<Vec<_>>().join(", "))
        }
        State::Undone(held) => {
            let held = held.iter().map(|&id| resource(id)).collect::<Vec<_>>().join(", ");
            format!("executes in vain and holds {held}: the section restarts")
        }
        State::Spins(id, by) => format!("spins for {}{}", resource(*id), holder(by)),
        State::Waits(id, by) => format!("waits for {}{}", resource(*id), holder(by)),
        State::Ready(Some(by)) => format!("is ready, while {} executes", name(*by)),
        State::Ready(None) => "is ready, while its CPU executes no task".to_owned(),
        State::Blocked(by) => format!("is ready, while the less urgent {} executes", name(*by)),
    }
}

/// One interval of a task.
pub fn span(system: &System, task: TaskId, span: &Span) -> String {
    told(system, task, span, Duration::ZERO)
}

/// One interval of a task, without the interruptions within it.
pub(super) fn joined(system: &System, task: TaskId, joined: &Joined) -> String {
    let text = told(system, task, &joined.span, joined.interrupted);
    match joined.interruptions {
        0 => text,
        1 => format!("{text}; meanwhile its CPU executes no task once, for {}", joined.interrupted),
        several => format!("{text}; meanwhile its CPU executes no task {several} times, for {}", joined.interrupted),
    }
}

fn told(system: &System, task: TaskId, span: &Span, without: Duration) -> String {
    let place = if system.cpus() > 1 { format!(" on CPU {}", span.cpu.0) } else { String::new() };
    format!(
        "`{}` {}{place} for {}, from {}",
        system.task(task).name,
        state(system, &span.state),
        span.until.since(span.from).saturating_sub(without),
        since_start(span.from)
    )
}

/// The whole picture: how long each task executed and waited, and its deadline misses.
pub fn description(system: &System, schedule: &Schedule) -> String {
    let window = schedule.window;
    let tasks = match schedule.rows.len() {
        1 => "1 task".to_owned(),
        several => format!("{several} tasks"),
    };
    let mut text = format!("A schedule of {tasks} from {} to {}.", since_start(window.from), since_start(window.until));
    for row in &schedule.rows {
        let total = |wanted: fn(&State) -> bool| {
            let spans = row.spans.iter().filter(|span| wanted(&span.state));
            spans.map(|span| span.until.since(span.from)).sum::<Duration>()
        };
        let executed = total(|state| matches!(state, State::Executes(_) | State::Undone(_)));
        let waited = total(|state| matches!(state, State::Waits(..) | State::Spins(..)));
        let blocked = total(|state| matches!(state, State::Blocked(_)));
        let _ = write!(text, " {} executes for {executed}", system.task(row.task).name);
        if waited > Duration::ZERO {
            let _ = write!(text, " and waits for resources for {waited}");
        }
        if blocked > Duration::ZERO {
            let _ = write!(text, " and is ready while less urgent tasks execute for {blocked}");
        }
        let missed = row.marks.iter().filter(|(_, mark)| *mark == Mark::Missed).count();
        if missed > 0 {
            let _ = write!(text, "; it misses {missed} {}", if missed == 1 { "deadline" } else { "deadlines" });
        }
        text.push('.');
    }
    text
}
