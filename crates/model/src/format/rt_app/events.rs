//! The events of a thread's loop: the keys that make a job do something.

use super::import::Import;
use super::loose_json::{Member, Value};
use crate::format::diagnostic::shown;
use crate::{Duration, STEPS_MAX};
use core::ops::Range;

/// One action of a job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Event {
    Run(Duration),
    Lock(String),
    Unlock(String),
}

/// The supported kinds of event, by the word with which their key begins.
pub(super) const SUPPORTED: [&str; 5] = ["run", "runtime", "lock", "unlock", "timer"];

/// Events that a task set cannot express, and the reasons.
const REFUSED: [(&str, &str); 13] = [
    ("sleep", "a job cannot sleep: give the thread a timer"),
    ("suspend", "a job does not suspend itself: give the thread a timer"),
    ("resume", "a job does not wake others: give each thread a timer"),
    ("wait", "there are no condition variables in a task set"),
    ("signal", "there are no condition variables in a task set"),
    ("broad", "there are no condition variables in a task set"),
    ("broadcast", "there are no condition variables in a task set"),
    ("sync", "there are no condition variables in a task set"),
    ("barrier", "jobs do not wait for each other except at locks"),
    ("fork", "a task set cannot create tasks: list the thread by itself"),
    ("yield", "under fixed priorities a yield has no effect: remove it"),
    ("iorun", "a task set has no input and output: write the processor time as a run"),
    ("mem", "a task set has no memory traffic: write the processor time as a run"),
];

/// Returns the word with which an event's key begins, without the number that distinguishes keys of one kind.
pub(super) fn kind_of(key: &str) -> &str {
    key.trim_end_matches(|c: char| c.is_ascii_digit() || c == '_' || c == '-')
}

/// Returns the reason why an event of this kind cannot be imported, if it is an event of rt-app.
pub(super) fn refused(kind: &str) -> Option<&'static str> {
    REFUSED.iter().find(|(refused, _)| *refused == kind).map(|(_, why)| *why)
}

/// One loop of a thread or a phase.
#[derive(Default, Debug)]
pub(super) struct Loop {
    pub(super) events: Vec<(Event, Range<usize>)>,
    pub(super) timer: Option<Timer>,
    /// The number of events before the timer.
    before_timer: usize,
}

#[derive(Clone, Debug)]
pub(super) struct Timer {
    pub(super) period: Duration,
    pub(super) name: Option<String>,
    pub(super) span: Range<usize>,
}

impl Loop {
    /// Reads an event of the thread `owner`. Returns whether the key is an event at all.
    pub(super) fn take(&mut self, import: &mut Import, member: &Member, owner: &str) -> bool {
        let kind = kind_of(&member.key);
        if let Some(why) = refused(kind) {
            import.fault(&member.key_span, format!("{owner} has the event {}", shown(&member.key)), why);
            return true;
        }
        if !SUPPORTED.contains(&kind) {
            return false;
        }
        if kind == "timer" {
            self.take_timer(import, member, owner);
            return true;
        }
        if self.events.len() == STEPS_MAX {
            import.fault(
                &member.key_span,
                format!("{owner} has too many events"),
                format!("at most {STEPS_MAX} are supported"),
            );
            return true;
        }
        let event = match kind {
            "lock" | "unlock" => mutex(import, member).map(|name| match kind {
                "lock" => Event::Lock(name),
                _ => Event::Unlock(name),
            }),
            _ => match import.microseconds(member) {
                Some(Duration::ZERO) => {
                    import.note(&member.key_span, "a run of length 0 is ignored");
                    None
                }
                time => time.map(Event::Run),
            },
        };
        if kind == "runtime" && event.is_some() {
            import.note(&member.key_span, "a runtime is wall-clock time: it is imported as execution time");
        }
        self.events.extend(event.map(|event| (event, member.node.span.clone())));
        true
    }

    fn take_timer(&mut self, import: &mut Import, member: &Member, owner: &str) {
        let span = member.key_span.clone();
        if self.timer.is_some() {
            import.fault(&span, format!("{owner} has several timers"), "a task has one rate: keep one timer");
            return;
        }
        let Some(members) = import.object(&member.node, &shown(&member.key)) else { return };
        let (mut period, mut name) = (None, None);
        if !members.iter().any(|member| member.key == "period") {
            import.fault(&span, format!("the timer of {owner} has no period"), "add \"period\" : and microseconds");
        }
        for member in members {
            match (&*member.key, &member.node.value) {
                ("period", _) => period = import.microseconds(member),
                ("ref", Value::Text(text)) => name = Some(text.to_string()),
                ("ref", _) => import.mistyped(member, "a name"),
                ("mode", _) => {
                    import.note(&member.key_span, "the mode of a timer is ignored: a task arrives every period");
                }
                _ => import.unknown_key(member, "a timer", &["ref", "period", "mode"]),
            }
        }
        self.before_timer = self.events.len();
        self.timer = Some(Timer { period: period.unwrap_or(Duration::ZERO), name, span });
    }

    /// Refuses a timer between events. It must be the first or the last in the loop.
    pub(super) fn check_timer_place(&self, import: &mut Import, owner: &str) {
        let amid = 0 < self.before_timer && self.before_timer < self.events.len();
        if let Some(timer) = self.timer.as_ref().filter(|_| amid) {
            import.fault(
                &timer.span,
                format!("the timer of {owner} is between its events"),
                "put it at the end of the loop",
            );
        }
    }

    /// Appends another loop, repeated `times` times.
    pub(super) fn append(&mut self, other: Self, times: u64, import: &mut Import, owner: &str) {
        if let (Some(_), Some(second)) = (&self.timer, &other.timer) {
            let help = "a task has one rate: keep one timer, or make the phases tasks of their own";
            import.fault(&second.span, format!("several phases of {owner} have a timer"), help);
            return;
        }
        if times.saturating_mul(other.events.len() as u64) > (STEPS_MAX - self.events.len()) as u64 {
            let span = other.events.first().map_or(0..0, |(_, span)| span.clone());
            import.fault(&span, format!("{owner} has too many events"), format!("at most {STEPS_MAX} are supported"));
            return;
        }
        if let Some(timer) = other.timer {
            self.before_timer = self.events.len() + other.before_timer;
            self.timer = Some(timer);
        }
        // BOUND: checked above. A loop without events is not repeated at all.
        let times = if other.events.is_empty() { 0 } else { times };
        for _ in 0..times {
            self.events.extend(other.events.iter().cloned());
        }
    }
}

fn mutex(import: &mut Import, member: &Member) -> Option<String> {
    match &member.node.value {
        Value::Text(name) if !name.is_empty() => Some(name.to_string()),
        _ => {
            import.mistyped(member, "the name of a mutex");
            None
        }
    }
}
