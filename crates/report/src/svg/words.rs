//! A schedule in words: the descriptions of its intervals, and of the whole picture.

use super::parts::{Bar, Marks, Step};
use crate::{By, Mark, Schedule, State};
use lockwright_model::{Duration, Instant, Priority, ResourceId, System, TaskId};
use std::fmt::Write;

/// The time since the start.
pub fn since_start(at: Instant) -> Duration {
    at.since(Instant::ZERO)
}

/// Times as descriptions give them: times that are long beside the window have no more digits than can be of use.
#[derive(Clone, Copy)]
pub(super) struct Digits {
    /// The unit to which long times are rounded: at most a hundred-thousandth of the window.
    unit: u64,
}

impl Digits {
    pub(super) fn of(window: Duration) -> Self {
        let parts = (window.as_ns() / 100_000).max(1);
        Self { unit: 10_u64.pow(parts.ilog10()) }
    }

    fn time(self, time: Duration) -> Duration {
        let (ns, unit) = (time.as_ns(), self.unit);
        if ns / unit < 10 { time } else { Duration::from_ns((ns + unit / 2) / unit * unit) }
    }

    fn at(self, at: Instant) -> Duration {
        self.time(since_start(at))
    }
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
            format!("executes an invalidated section and holds {held}: the section restarts")
        }
        State::Spins(id, by) => format!("spins for {}{}", resource(*id), holder(by)),
        State::Waits(id, by) => format!("waits for {}{}", resource(*id), holder(by)),
        State::Ready(Some(by)) => format!("is ready, while {} executes", name(*by)),
        State::Ready(None) => "is ready, while its CPU executes no task".to_owned(),
        State::Blocked(by) => format!("is ready, while the less urgent {} executes", name(*by)),
    }
}

/// A bar: the state that is drawn, and the others in it. In the row of a task, the task is not named again.
pub(super) fn bar(system: &System, bar: &Bar, by: By, digits: Digits) -> String {
    let span = &bar.span;
    let name = match by {
        By::Task => String::new(),
        By::Cpu => format!("`{}` ", system.task(bar.task).name),
    };
    let place = if by == By::Task && system.cpus() > 1 { format!(" on CPU {}", span.cpu.0) } else { String::new() };
    let mut text = format!(
        "{name}{}{place} for {}, from {}",
        state(system, &span.state),
        digits.time(bar.own()),
        digits.at(span.from)
    );
    let (count, time) =
        bar.others().fold((0, Duration::ZERO), |(count, time), other| (count + other.count, time + other.time));
    let is_idle = bar.others().all(|other| other.state == State::Ready(None));
    let (what, time) = (if is_idle { "no task executes" } else { "something else" }, digits.time(time));
    let _ = match count {
        0 => Ok(()),
        1 => write!(text, "; {what} once, for {time}"),
        several => write!(text, "; {what} {several} times, for {time}"),
    };
    text
}

/// Steps of the priority of a task.
pub(super) fn step(step: &Step, own: Priority, digits: Digits) -> String {
    let (to, from, total) = (step.to, digits.at(step.from), digits.time(step.total));
    match step.count {
        1 => format!("priority {to} instead of {own}, from {from} for {total}"),
        several => format!("priority up to {to} instead of {own}, {several} times from {from}, for {total}"),
    }
}

/// Events of one instant, or of a short time.
pub(super) fn marks(marks: &Marks, digits: Digits) -> String {
    let event = |&(mark, count): &(Mark, u64)| {
        let word = match mark {
            Mark::Arrival => "arrival",
            Mark::Deadline => "deadline",
            Mark::Missed => "missed deadline",
            Mark::Restart => "restart",
            Mark::Finish => "finish",
        };
        if count == 1 { word.to_owned() } else { format!("{count} {word}s") }
    };
    let events = marks.events.iter().map(event).collect::<Vec<_>>().join(" and ");
    let from = digits.at(marks.from);
    match marks.until == marks.from {
        true => format!("{events} at {from}"),
        false => format!("{events} from {from} to {}", digits.at(marks.until)),
    }
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
