//! The parts of a row: the intervals, marks and steps that are drawn. Short neighbours are one part, so a picture has a
//! limited number of parts however often a real machine interrupts a job.

use crate::{Mark, Raised, Span, State};
use lockwright_model::{Duration, Instant, Priority, TaskId};

/// The parts of a row.
pub(super) struct Parts {
    pub(super) bars: Vec<Bar>,
    pub(super) steps: Vec<Step>,
    pub(super) marks: Vec<Marks>,
}

/// An interval, or several that are drawn as one.
pub(super) struct Bar {
    pub(super) task: TaskId,
    /// The whole time, and the state that is drawn.
    pub(super) span: Span,
    /// The states in it.
    pub(super) states: Vec<Total>,
    /// Whether it has more than one interval, and interruptions shorter than a pixel.
    pub(super) is_merged: bool,
    /// The end of the last interval in it that is not short; `None` if all are.
    core: Option<Instant>,
}

/// The time in a state.
pub(super) struct Total {
    pub(super) task: TaskId,
    pub(super) state: State,
    pub(super) time: Duration,
    pub(super) count: u64,
}

/// A priority other than the own one, or several within a short time.
pub(super) struct Step {
    pub(super) from: Instant,
    pub(super) until: Instant,
    /// The greatest priority.
    pub(super) to: Priority,
    pub(super) count: u64,
    pub(super) total: Duration,
}

/// The events of one instant, or of a short time. Missed deadlines are apart, because they look different.
pub(super) struct Marks {
    pub(super) from: Instant,
    pub(super) until: Instant,
    /// The events and their numbers, in the order of the first times.
    pub(super) events: Vec<(Mark, u64)>,
}

impl Parts {
    /// The parts of a row at a scale. An interruption shorter than a pixel is a part of the interval around it. Marks
    /// and steps are one only within a pixel, on every level: each stands where it happened.
    pub(super) fn new(spans: &[(TaskId, &Span)], raised: &[Raised], marks: &[(Instant, Mark)], scale: Scale) -> Self {
        Self {
            bars: merged(joined(spans, scale.pixel), scale),
            steps: steps(raised, scale.pixel),
            marks: grouped(marks, scale.pixel),
        }
    }

    /// Whether marks or steps of several instants are drawn as one.
    pub(super) fn has_merged_marks(&self) -> bool {
        self.steps.iter().any(|step| step.count > 1) || self.marks.iter().any(|marks| marks.until > marks.from)
    }

    /// The number of parts.
    pub(super) fn count(&self) -> usize {
        self.bars.len() + self.steps.len() + self.marks.len()
    }
}

/// How much of what is short a picture merges: 0 is the least. Beyond [`Level::FINE`], long bars may show a state that
/// hides others for most of their length.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Level(u32);

impl Level {
    /// Only neighbours that are together not longer than a pixel are one part.
    pub const FINEST: Self = Self(0);
    /// The last level on which parts longer than eight pixels are kept apart.
    pub const FINE: Self = Self(6);
    /// The intervals of each row are one part.
    pub(super) const COARSEST: Self = Self(24);

    /// All levels, the finest first.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        (0..=Self::COARSEST.0).map(Self)
    }
}

/// The times that a picture does not distinguish.
#[derive(Clone, Copy)]
pub(super) struct Scale {
    /// The time of a pixel.
    pub(super) pixel: Duration,
    /// Neighbours that are together not longer than this are one part.
    pub(super) short: Duration,
    /// Whether what is short belongs to what is not short beside it.
    is_coarse: bool,
}

impl Scale {
    /// The scale of a picture whose window takes this many pixels.
    pub(super) fn of(window: Duration, pixels: f64, level: Level) -> Self {
        let pixel = window.as_ns() as f64 / pixels;
        // Each level is coarser by half.
        let short = match level {
            Level::FINEST => pixel,
            Level::COARSEST => window.as_ns() as f64,
            Level(level) => pixel * 1.5_f64.powi(level as i32 - 1),
        };
        let [pixel, short] = [pixel, short].map(|ns| Duration::from_ns(ns as u64));
        Self { pixel, short: short.min(window), is_coarse: level > Level::FINEST }
    }
}

/// The intervals, where one that is interrupted for less than a pixel is one of them, because no task executes. On a
/// real machine, interrupts cut each job, and the waits of others for it, into very many.
fn joined(spans: &[(TaskId, &Span)], pixel: Duration) -> Vec<Bar> {
    let mut all: Vec<Bar> = Vec::new();
    let mut left = spans;
    while let [(task, span), rest @ ..] = left {
        left = rest;
        match (all.last_mut(), rest) {
            (Some(last), [(next_task, next), after @ ..])
                if span.state == State::Ready(None)
                    && span.until.since(span.from) < pixel
                    && (last.task, *next_task) == (*task, *task)
                    && (&last.span.state, last.span.cpu, last.span.until) == (&next.state, next.cpu, span.from) =>
            {
                last.absorb(Bar::new(*task, span));
                last.absorb(Bar::new(*next_task, next));
                left = after;
            }
            _ => all.push(Bar::new(*task, span)),
        }
    }
    all
}

/// The bars, where short neighbours are one.
fn merged(bars: Vec<Bar>, scale: Scale) -> Vec<Bar> {
    let mut all: Vec<Bar> = Vec::new();
    for mut bar in bars {
        bar.core = (bar.length() > scale.short).then_some(bar.span.until);
        match all.last_mut().filter(|last| last.takes(&bar, scale)) {
            Some(last) => {
                last.is_merged = true;
                if bar.core.is_some() {
                    (last.core, last.task, last.span.state) = (bar.core, bar.task, bar.span.state.clone());
                }
                last.absorb(bar);
            }
            None => all.push(bar),
        }
    }
    for bar in all.iter_mut().filter(|bar| bar.is_merged && bar.core.is_none()) {
        if let Some(longest) = bar.states.iter().max_by_key(|total| total.time) {
            (bar.task, bar.span.state) = (longest.task, longest.state.clone());
        }
    }
    all
}

impl Bar {
    fn new(task: TaskId, span: &Span) -> Self {
        let time = span.until.since(span.from);
        let states = vec![Total { task, state: span.state.clone(), time, count: 1 }];
        Self { task, span: span.clone(), states, is_merged: false, core: None }
    }

    fn length(&self) -> Duration {
        self.span.until.since(self.span.from)
    }

    /// Whether the next bar is a part of this one.
    fn takes(&self, next: &Self, scale: Scale) -> bool {
        let (short, span) = (scale.short, &next.span);
        match (self.core, next.core) {
            (None, None) => span.until.since(self.span.from) <= short,
            _ if !scale.is_coarse => false,
            (None, Some(_)) => span.from.since(self.span.from) <= short,
            (Some(core), None) => span.until.since(core) <= short,
            (Some(core), Some(_)) => {
                let is_same = (self.task, &self.span.state, self.span.cpu) == (next.task, &span.state, span.cpu);
                is_same && span.from.since(core) <= short
            }
        }
    }

    fn absorb(&mut self, other: Self) {
        self.span.until = other.span.until;
        for total in other.states {
            match self.states.iter_mut().find(|known| (known.task, &known.state) == (total.task, &total.state)) {
                Some(known) => {
                    known.time += total.time;
                    known.count += total.count;
                }
                None => self.states.push(total),
            }
        }
    }

    /// The time in the state that is drawn.
    pub(super) fn own(&self) -> Duration {
        let own = self.states.iter().find(|total| (total.task, &total.state) == (self.task, &self.span.state));
        own.map_or(Duration::ZERO, |total| total.time)
    }

    /// The other states.
    pub(super) fn others(&self) -> impl Iterator<Item = &Total> {
        self.states.iter().filter(|total| (total.task, &total.state) != (self.task, &self.span.state))
    }
}

fn steps(raised: &[Raised], pixel: Duration) -> Vec<Step> {
    let mut all: Vec<Step> = Vec::new();
    for &Raised { from, until, to } in raised {
        match all.last_mut().filter(|last| until.since(last.from) <= pixel) {
            Some(last) => {
                last.until = until;
                last.to = last.to.max(to);
                last.count += 1;
                last.total += until.since(from);
            }
            None => all.push(Step { from, until, to, count: 1, total: until.since(from) }),
        }
    }
    all
}

fn grouped(marks: &[(Instant, Mark)], pixel: Duration) -> Vec<Marks> {
    let mut all: Vec<Marks> = Vec::new();
    for &(at, mark) in marks.iter().filter(|(_, mark)| *mark != Mark::Finish) {
        let is_missed = mark == Mark::Missed;
        let alike = |group: &&mut Marks| is_missed == (group.events[0].0 == Mark::Missed);
        // Only the last of each look can be near.
        match all.iter_mut().rev().find(alike).filter(|group| at.since(group.from) <= pixel) {
            Some(group) => {
                group.until = at;
                match group.events.iter_mut().find(|(known, _)| *known == mark) {
                    Some((_, count)) => *count += 1,
                    None => group.events.push((mark, 1)),
                }
            }
            None => all.push(Marks { from: at, until: at, events: vec![(mark, 1)] }),
        }
    }
    all
}
