//! How much longer single tasks can execute while all deadlines hold.

use super::joint::{Form, Point};
use super::locals::Locals;
use super::shape::Shape;
use crate::rows::fixed_point::Budget;
use lockwright_model::System;

/// How much longer each task can execute outside of its sections, for fixed jitters.
///
/// Let w be a window in which at most w of work is due. It is long enough for an additional amount e in each job of the
/// task at k if
/// ```text
///   work(w) + ceil((w + J_k) / T_k) * e <= w
/// ```
/// One evaluation therefore yields a safe amount for every k. A fixed point is searched for only if the least of these
/// amounts is too small.
pub(super) struct Rooms<'a, 't> {
    shape: &'a Shape<'t>,
    form: &'a Form,
    point: &'a Point,
    /// J_h, as other tasks count it, by place.
    jitters: Vec<u64>,
    /// The windows seen for each place, at most [`SEEN_MAX`].
    seen: Vec<Vec<Seen>>,
}

/// A window of one task in which all due work fits, and that work.
#[derive(Clone, Copy)]
struct Seen {
    window: u64,
    work: u64,
}

/// The most windows that are kept for one task.
const SEEN_MAX: usize = 32;

impl<'a, 't> Rooms<'a, 't> {
    /// Returns the rooms of a form, with the suspensions of other tasks at `point`.
    pub(super) fn at(shape: &'a Shape<'t>, form: &'a Form, point: &'a Point) -> Self {
        let count = shape.ids.len();
        let jitter = |h: usize| if shape.suspends[h] { point.beside[h] } else { shape.jitters[h] };
        Self { shape, form, point, jitters: (0..count).map(jitter).collect(), seen: vec![Vec::new(); count] }
    }

    /// Returns the rooms of a form whose deadlines are met at `point`, its fixed point.
    pub(super) fn new(shape: &'a Shape<'t>, form: &'a Form, point: &'a Point) -> Self {
        let mut rooms = Self::at(shape, form, point);
        for place in 0..shape.ids.len() {
            // The longest window that meets the deadline.
            let limit = shape.deadlines[place] - shape.jitters[place];
            let work = rooms.own(place).and_then(|own| shape.work(form, &rooms.jitters, place, own, limit));
            rooms.seen[place].extend(work.filter(|&work| work <= limit).map(|work| Seen { window: limit, work }));
        }
        rooms
    }

    /// Returns the time for which the task at `place` executes, waits and is blocked.
    fn own(&self, place: usize) -> Option<u64> {
        self.form.costs[place].checked_add(self.form.blocking[place])?.checked_add(self.point.suspended[place])
    }

    /// Returns the number of jobs of the task at `place` in a window of the one at `other`.
    fn jobs(&self, place: usize, other: usize, window: u64) -> Option<u64> {
        if place == other {
            return Some(1);
        }
        Some(self.shape.periods[place].ceil(window.checked_add(self.jitters[place])?))
    }

    /// Returns an amount by which the task at `place` can execute longer while the deadline of `other` is met.
    fn certain(&self, place: usize, other: usize) -> u64 {
        let fits =
            |seen: &Seen| Some(seen.window.saturating_sub(seen.work) / self.jobs(place, other, seen.window)?.max(1));
        self.seen[other].iter().filter_map(fits).max().unwrap_or(0)
    }

    /// Returns the greatest amount by which the task at `place` can execute longer while all deadlines are met, with
    /// the suspensions of other tasks at the point. Returns `None` if the search was interrupted.
    pub(super) fn of(&mut self, place: usize, go_on: &dyn Fn() -> bool) -> Option<u64> {
        let shape = self.shape;
        let rests = |&other: &usize| other == place || shape.urgent[other].1 > place;
        let resting = (shape.urgent[place].0..shape.ends[place]).filter(rests);
        let (mut most, mut order) = (u64::MAX, Vec::new());
        for other in resting {
            // Its own window grows by at least this amount.
            let response = self.point.beside[other].saturating_add(self.form.costs[other]);
            most = most.min(shape.deadlines[other].saturating_sub(response));
            order.push((self.certain(place, other), other));
        }
        // The tightest task comes first. Its room is seldom too much for the others.
        order.sort_unstable();
        for (certain, other) in order {
            if certain >= most {
                break;
            }
            go_on().then_some(())?;
            most = self.greatest(place, other, (certain, most), 0);
        }
        Some(most)
    }

    /// Returns the greatest amount, within the two given, by which the task at `place` can execute longer while the
    /// deadline that was missed last is met. The point is not above the fixed point with the first amount.
    pub(super) fn of_critical(&mut self, place: usize, (holding, most): (u64, u64)) -> u64 {
        let critical = self.shape.critical.get();
        let rests = critical == place || (self.shape.equals[place]..self.shape.ends[place]).contains(&critical);
        if rests { self.greatest(place, critical, (holding, most), holding) } else { most }
    }

    /// Returns the greatest amount, within the two given, by which the task at `place` can execute longer while the
    /// deadline of `other` is met. The point is not above the fixed point with the amount `reached`.
    fn greatest(&mut self, place: usize, other: usize, (mut holding, most): (u64, u64), reached: u64) -> u64 {
        let own = if other == place { reached } else { 0 };
        let response = self.form.costs[other] + own + self.point.beside[other];
        // The least fixed point of a smaller amount, or a value below it, and that amount.
        let mut below = (response - self.shape.jitters[other], reached);
        let (mut tried, mut breaking, mut is_next) = (most, most.saturating_add(1), false);
        // BOUND: one of two rounds halves the distance, or is the last.
        while breaking - holding > 1 {
            let start = below.0.saturating_add(tried - below.1);
            if let Some(window) = self.longer(place, other, (tried, 0), start) {
                below = (window, tried);
                // The window may be long enough for more. It is often the best one, and the next amount then has none.
                holding = self.keep(place, other, window).unwrap_or(tried).clamp(tried, breaking - 1);
                is_next = !is_next;
            } else {
                breaking = tried;
                is_next = false;
            }
            tried = if is_next { holding + 1 } else { holding + (breaking - holding) / 2 };
        }
        holding
    }

    /// Returns the least window of the task at `other` if each job of the one at `place` executes longer by `extra`,
    /// and the task is blocked for `blocked` more.
    fn longer(&self, place: usize, other: usize, (extra, blocked): (u64, u64), start: u64) -> Option<u64> {
        let shape = self.shape;
        let own = self.own(other)?.checked_add(blocked)?;
        let limit = shape.deadlines[other] - shape.jitters[other];
        let (first, end) = shape.urgent[other];
        let found = Budget::new().least(start, limit, (end - first) as u64, |window| {
            let more = self.jobs(place, other, window)?.checked_mul(extra)?;
            shape.work(self.form, &self.jitters, other, own, window)?.checked_add(more)
        });
        found.ok()
    }

    /// Returns the tasks whose deadlines depend on the task at `place`. The one that was missed last comes first.
    pub(super) fn resting(&self, place: usize) -> impl Iterator<Item = usize> + use<'a> {
        let critical = self.shape.critical.get();
        let all = self.shape.urgent[place].0..self.shape.ends[place];
        let first = all.contains(&critical).then_some(critical);
        first.into_iter().chain(all).filter(|&other| !self.shape.is_free[other])
    }

    /// Returns whether the deadline of the task at `other` is met in `system`, which differs in the task at `place`
    /// alone. That task executes no less, and no task suspends.
    pub(super) fn holds(&mut self, place: usize, system: &System, locals: &Locals, other: usize) -> bool {
        let holds = self.longer_sections(place, system, locals, other).is_some();
        if !holds {
            self.shape.critical.set(other);
        }
        holds
    }

    fn longer_sections(&mut self, place: usize, system: &System, locals: &Locals, other: usize) -> Option<()> {
        let shape = self.shape;
        let rests = other == place || shape.urgent[other].1 > place;
        let longer = system.task(shape.ids[place]).wcet.as_ns() - self.form.costs[place];
        let extra = if rests { longer } else { 0 };
        let blocked = match shape.urgent[other].1 <= place {
            true => locals.beside(shape, shape.tables, system, place, other)?.checked_sub(self.form.blocking[other])?,
            false => 0,
        };
        if (extra, blocked) == (0, 0) {
            return Some(());
        }
        let fits = |seen: &Seen| {
            let more = self.jobs(place, other, seen.window)?.checked_mul(extra)?;
            Some(seen.work.checked_add(blocked)?.checked_add(more)? <= seen.window)
        };
        if !self.seen[other].iter().any(|seen| fits(seen) == Some(true)) {
            let response = self.form.costs[other] + self.point.beside[other];
            let start = (response - shape.jitters[other]).checked_add(extra)?.checked_add(blocked)?;
            let window = self.longer(place, other, (extra, blocked), start)?;
            self.keep(place, other, window)?;
        }
        Some(())
    }

    /// Keeps a window of the task at `other`. Returns by how much the task at `place` can execute longer with it.
    fn keep(&mut self, place: usize, other: usize, window: u64) -> Option<u64> {
        let jobs = self.jobs(place, other, window)?;
        let work = self.shape.work(self.form, &self.jitters, other, self.own(other)?, window)?;
        let seen = &mut self.seen[other];
        if seen.len() == SEEN_MAX {
            seen.remove(0);
        }
        seen.push(Seen { window, work });
        Some(window.saturating_sub(work) / jobs.max(1))
    }
}
