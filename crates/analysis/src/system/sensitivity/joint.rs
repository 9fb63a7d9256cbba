//! Verdicts on many systems under partitioned fixed priorities that differ in execution times (*forms*), each found
//! from the fixed point of another.
//!
//! The equations are those of `response.rs`, written in X = R - C, the response time without the job's own execution:
//! ```text
//!   X_i + C_i = J_i + w
//!           w = C_i + S_i(X + C) + B_i + sum over h of ceil((w + J_h) / T_h) * C_h,   J_h = X_h where h suspends
//! ```
//! The right side never decreases as C, B, the lengths of sections or X grow. The least fixed point of a form with
//! longer executions is therefore not below that of a form with shorter ones, and the search for it may begin there. It
//! still ends at the least fixed point. (This does not hold in R: with the former R and a greater C, `R_h - C_h` would
//! be too small.) A response time that exceeds its deadline on the way still does at the end, so the form does not
//! hold.
//!
//! If a form differs from one with a known fixed point in the execution times of one task alone, only the equations
//! that depend on it are evaluated: those of the tasks of its processor that are no more urgent, and then those that
//! depend on a response time that changed.

use super::locals::Locals;
use super::shape::Shape;
use crate::blocking::mpcp::system::Remote;
use crate::rows::fixed_point::Budget;
use crate::rows::simd::{SHORT_MAX, short_work};
use fearless_simd::dispatch;
use lockwright_model::{System, TaskId};
use std::ops::Range;
use std::sync::Arc;

/// The execution times of a form, and the values that depend on the lengths of its sections, by place.
#[derive(Clone)]
pub(super) struct Form {
    pub(super) costs: Vec<u64>,
    /// Whether all times are short, and no execution time exceeds its period.
    pub(super) is_short: bool,
    /// The local and boosted blocking, B.
    pub(super) blocking: Vec<u64>,
    /// The section that delays a job once more at each occasion of each more urgent job. Tasks beyond the end have
    /// none.
    pub(super) kept: Vec<u64>,
    /// The users of the resources under `mpcp`.
    pub(super) remote: Arc<Remote>,
}

/// A fixed point, or values below one, by place.
#[derive(Clone)]
pub(super) struct Point {
    /// X.
    pub(super) beside: Vec<u64>,
    /// S.
    pub(super) suspended: Vec<u64>,
    /// The wait of one request, by slot.
    pub(super) waits: Vec<u64>,
}

/// The equations to evaluate first.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Changed {
    Anything,
    /// Those that depend on the execution time of the task at this place.
    Cost(usize),
    /// Those, and the ones that depend on the lengths of its sections.
    Sections(usize),
}

const WINDOW: u8 = 1;
const WAITS: u8 = 2;

impl Shape<'_> {
    /// Returns a form without waits. By place: the execution of a job that others count, its blocking, and the section
    /// that delays it once more at each occasion of each more urgent job.
    pub(super) fn form_of(&self, costs: Vec<u64>, blocking: Vec<u64>, kept: Vec<u64>) -> Form {
        Form { is_short: self.are_short(&costs), costs, blocking, kept, remote: Arc::new(Remote::none()) }
    }

    /// Raises the response times, by task, to those of `form`. The form has no waits, and is not below `last`, whose
    /// response times were raised before. Returns whether a response time changed, or `None` if a deadline is missed.
    pub(super) fn raise(&self, form: &Form, last: Option<&Form>, responses: &mut [u64]) -> (Point, Option<bool>) {
        let count = self.ids.len();
        let mut dirty = Dirty { places: vec![WINDOW; count], waits: Vec::new() };
        if let Some(last) = last {
            dirty.places.fill(0);
            for place in 0..count {
                if form.blocking[place] != last.blocking[place] || form.kept.get(place) != last.kept.get(place) {
                    dirty.places[place] = WINDOW;
                }
                if form.costs[place] != last.costs[place] {
                    self.mark_windows(&mut dirty, place);
                    dirty.places[place] = WINDOW;
                }
            }
        }
        let mut state = self.state(form, responses);
        let risen = self.rise(form, &mut state, &mut dirty);
        let mut changed = false;
        for (response, found) in responses.iter_mut().zip(state.responses) {
            let found = found.unwrap_or(*response);
            changed |= found != *response;
            *response = found;
        }
        (state.point, risen.map(|()| changed))
    }

    /// Returns the state with these response times, by task, of a form without waits.
    fn state(&self, form: &Form, responses: &[u64]) -> State {
        let count = self.ids.len();
        let mut state = State {
            jitters: self.jitters.clone(),
            responses: vec![None; count],
            point: Point { beside: vec![0; count], suspended: vec![0; count], waits: Vec::new() },
            budget: Budget::new(),
        };
        for place in 0..count {
            // No response time is below this value.
            let least = form.costs[place].saturating_add(self.jitters[place]);
            state.set(self, place, responses[self.ids[place].index()].max(least), form.costs[place]);
        }
        state
    }

    /// Returns the greatest amount with which the deadline that was missed last is met, if all values are interpolated
    /// between those of two forms: one that holds with the first amount, and one that does not hold with the second.
    pub(super) fn between(&self, from: (u64, &Form, &Point), to: (u64, &Form, &Point)) -> Option<u64> {
        let place = self.critical.get();
        let (first, end) = self.urgent[place];
        let whole = u128::from(to.0.checked_sub(from.0).filter(|&whole| whole > 0)?);
        let part = |from: u64, to: u64, amount: u64| {
            let more = u128::from(to.saturating_sub(from)) * u128::from(amount) / whole;
            from.saturating_add(more as u64)
        };
        let limit = self.deadlines[place] - self.jitters[place];
        let (mut costs, mut jitters) = (vec![0; end - first], vec![0; end - first]);
        let mut holds = |amount: u64| {
            let again = |form: &Form| form.kept.get(place).copied().unwrap_or(0);
            let kept = part(again(from.1), again(to.1), amount);
            let itself = part(from.1.costs[place], to.1.costs[place], amount);
            for h in first..end {
                let repeated = kept.saturating_mul(self.occasions[h]);
                costs[h - first] = part(from.1.costs[h], to.1.costs[h], amount).saturating_add(repeated);
                let late = |point: &Point| if self.suspends[h] { point.beside[h] } else { self.jitters[h] };
                jitters[h - first] = part(late(from.2), late(to.2), amount);
            }
            let own = part(from.1.blocking[place], to.1.blocking[place], amount).checked_add(itself);
            let (Some(own), costs, jitters) = (own, &costs, &jitters) else { return Some(false) };
            let term = |h: usize, window: u64| {
                self.periods[h].ceil(window.checked_add(jitters[h - first])?).checked_mul(costs[h - first])
            };
            let found = Budget::new().least(own, limit, (end - first) as u64, |window| {
                (first..end).filter(|&h| h != place).try_fold(own, |sum, h| sum.checked_add(term(h, window)?))
            });
            Some(found.is_ok())
        };
        Some(from.0 + super::scale::halve((0, to.0 - from.0), &mut holds)?)
    }

    /// Returns the local and boosted blocking of the tasks of the system.
    pub(super) fn locals(&self) -> Locals {
        Locals::new(self, self.tables, self.tables.system)
    }

    /// Returns the form of `system`, which differs from the system of the tables in execution times alone, or `None` if
    /// a number does not fit.
    pub(super) fn form(&self, system: &System) -> Option<Form> {
        let costs: Vec<u64> = self.ids.iter().map(|&id| system.task(id).wcet.as_ns()).collect();
        Some(Form {
            is_short: self.are_short(&costs),
            costs,
            blocking: Locals::new(self, self.tables, system).blocking()?,
            kept: Vec::new(),
            remote: Arc::new(Remote::new(&self.tables.of_form(system))?),
        })
    }

    /// Like [`Shape::form`], for a system that differs from that of the tables, whose form is `base`, in the task at
    /// `place` alone.
    pub(super) fn form_beside(&self, base: &Form, locals: &Locals, system: &System, place: usize) -> Option<Form> {
        let task = self.ids[place];
        let mut form = base.clone();
        form.costs[place] = system.task(task).wcet.as_ns();
        form.is_short = self.are_short(&form.costs);
        // Its sections block more urgent tasks of its processor, and stretch the sections of all tasks there.
        for above in self.more_urgent(place) {
            form.blocking[above] = locals.beside(self, self.tables, system, place, above)?;
        }
        if self.is_coupled() {
            form.remote = Arc::new(base.remote.beside(self.tables, system, task)?);
        }
        Some(form)
    }

    /// Returns the point at which jobs only execute.
    pub(super) fn bottom(&self) -> Point {
        let slots = self.requests.iter().map(Vec::len).sum();
        Point { beside: self.jitters.clone(), suspended: vec![0; self.ids.len()], waits: vec![0; slots] }
    }

    /// Returns the least fixed point of `form` if all deadlines are met there. `from` must not be above it. It is the
    /// fixed point of a form that differs in what has `changed`, or any lower point for [`Changed::Anything`].
    pub(super) fn settle(&self, form: &Form, from: &Point, changed: Changed) -> Option<Point> {
        self.settle_or_break(form, from, changed).ok()
    }

    /// Like [`settle`](Self::settle). If a deadline is missed, the error is a point below the fixed point at which it
    /// is missed, if there is one.
    pub(super) fn settle_or_break(&self, form: &Form, from: &Point, changed: Changed) -> Result<Point, Option<Point>> {
        let count = self.ids.len();
        let mut dirty = Dirty { places: vec![0; count], waits: vec![false; from.waits.len()] };
        match changed {
            Changed::Anything => {
                let all = |&suspends: &bool| if suspends { WINDOW | WAITS } else { WINDOW };
                dirty.places = self.suspends.iter().map(all).collect();
                dirty.waits.fill(true);
            }
            Changed::Cost(place) => {
                // Its response time has grown by at least as much, so its waiters count more of its jobs.
                self.mark_windows(&mut dirty, place);
                self.delays[place].iter().for_each(|&delayed| dirty.mark_wait(delayed));
                dirty.places[place] |= WINDOW;
            }
            Changed::Sections(place) => {
                // It blocks more urgent tasks and stretches the sections of all tasks of its processor, so the waits
                // for these grow.
                let own = self.urgent[place].0..self.ends[place];
                dirty.places[own.clone()].fill(WINDOW);
                let mut held = vec![false; self.tables.system.resources().len()];
                self.requests[own].iter().flatten().for_each(|request| held[request.resource.index()] = true);
                for (place, requests) in self.requests.iter().enumerate() {
                    let stretched = requests.iter().filter(|request| held[request.resource.index()]);
                    stretched.for_each(|request| dirty.mark_wait((place, request.slot)));
                }
            }
        }
        let mut state = State {
            jitters: self.jitters.clone(),
            responses: vec![None; count],
            point: from.clone(),
            budget: Budget::new(),
        };
        for place in 0..count {
            let response = form.costs[place].checked_add(from.beside[place]).ok_or(None)?;
            state.set(self, place, response, form.costs[place]);
        }
        match self.rise(form, &mut state, &mut dirty) {
            Some(()) => Ok(state.point),
            None => Err(Some(state.point)),
        }
    }

    /// Raises response times to the fixed point. Returns `None` if a deadline is missed.
    fn rise(&self, form: &Form, state: &mut State, dirty: &mut Dirty) -> Option<()> {
        self.rise_in(0..self.ids.len(), form, state, dirty)
    }

    /// Like [`rise`](Self::rise), if only equations at these places are to be evaluated.
    fn rise_in(&self, places: Range<usize>, form: &Form, state: &mut State, dirty: &mut Dirty) -> Option<()> {
        let critical = self.critical.get();
        if dirty.places[critical] != 0 {
            self.look(form, state, dirty, critical)?;
        }
        // BOUND: the budget. Each round except the last raises a response time.
        loop {
            let mut looked = false;
            for place in places.clone() {
                if dirty.places[place] != 0 {
                    looked = true;
                    let seen = self.look(form, state, dirty, place);
                    if seen.is_none() {
                        self.critical.set(place);
                        return None;
                    }
                }
            }
            if !looked {
                return Some(());
            }
        }
    }

    /// Evaluates one equation. Returns `None` if its deadline is missed.
    fn look(&self, form: &Form, state: &mut State, dirty: &mut Dirty, place: usize) -> Option<()> {
        let waits = std::mem::take(&mut dirty.places[place]) & WAITS != 0;
        if self.is_free[place] {
            return Some(());
        }
        let cost = form.costs[place];
        if waits {
            let period = self.periods[place].get();
            let mut suspended = 0_u64;
            for request in &self.requests[place] {
                if std::mem::take(&mut dirty.waits[request.slot]) {
                    let wait = form.remote.wait_within(
                        self.tables,
                        &state.budget,
                        (self.ids[place], request.resource),
                        |id: TaskId| state.responses[id.index()],
                        (state.point.waits[request.slot], period),
                    );
                    state.point.waits[request.slot] = wait.ok()?.total;
                }
                suspended = suspended.checked_add(state.point.waits[request.slot].checked_mul(request.count)?)?;
            }
            state.point.suspended[place] = suspended;
        }
        let own = cost.checked_add(form.blocking[place])?.checked_add(state.point.suspended[place])?;
        let before = cost.checked_add(state.point.beside[place])?;
        let window = self.window(form, &state.jitters, place, own, before - self.jitters[place], &state.budget)?;
        let response = window + self.jitters[place];
        if response > before {
            state.set(self, place, response, cost);
            if self.suspends[place] {
                self.mark_windows(dirty, place);
                self.mark_waits(dirty, &state.point, place, (before, response));
            }
        }
        Some(())
    }

    /// Marks the windows that contain jobs of the task at `place`. They depend on its response time and its execution
    /// time.
    fn mark_windows(&self, dirty: &mut Dirty, place: usize) {
        let itself = dirty.places[place];
        dirty.places[self.equals[place]..self.ends[place]].iter_mut().for_each(|dirty| *dirty |= WINDOW);
        dirty.places[place] = itself;
    }

    /// Marks the waits for sections of the task at `place` that now count one more of its jobs.
    fn mark_waits(&self, dirty: &mut Dirty, point: &Point, place: usize, (before, response): (u64, u64)) {
        let period = self.periods[place];
        for &delayed in &self.delays[place] {
            let jobs = |response: u64| point.waits[delayed.1].checked_add(response).map(|end| period.ceil(end));
            if jobs(before) != jobs(response) || jobs(response).is_none() {
                dirty.mark_wait(delayed);
            }
        }
    }

    /// Returns the least window w from `start` on, or `None` if it is beyond the deadline.
    pub(super) fn window(
        &self,
        form: &Form,
        jitters: &[u64],
        place: usize,
        own: u64,
        start: u64,
        budget: &Budget,
    ) -> Option<u64> {
        let (first, end) = self.urgent[place];
        let limit = self.deadlines[place].checked_sub(self.jitters[place])?;
        let work = |window| self.work(form, jitters, place, own, window);
        budget.least(own.max(start), limit, (end - first) as u64, work).ok()
    }

    /// Returns the work due in a window of the task at `place`: its own, and that of tasks at least as urgent on its
    /// processor.
    pub(super) fn work(&self, form: &Form, jitters: &[u64], place: usize, own: u64, window: u64) -> Option<u64> {
        let (first, end) = self.urgent[place];
        let own = own.checked_add(self.repeated(form, jitters, place, window)?)?;
        if self.is_short && form.is_short && (1..SHORT_MAX).contains(&window) {
            // The sum includes the work that it would take from itself.
            let itself = self.periods[place].ceil(window + jitters[place]) * form.costs[place];
            let halves = &self.halves[first..end];
            let sum =
                dispatch!(self.level, _ => short_work(window, &jitters[first..end], halves, &form.costs[first..end]));
            return own.checked_add(sum - itself);
        }
        let term = |h: usize| self.periods[h].ceil(window.checked_add(jitters[h])?).checked_mul(form.costs[h]);
        let sum = |mut range: Range<usize>, sum: u64| range.try_fold(sum, |sum, h| sum.checked_add(term(h)?));
        sum(place + 1..end, sum(first..place, own)?)
    }

    /// Returns the delay of the task at `place` in a window by sections at the occasions of more urgent jobs.
    pub(super) fn repeated(&self, form: &Form, jitters: &[u64], place: usize, window: u64) -> Option<u64> {
        let kept = form.kept.get(place).copied().unwrap_or(0);
        if kept == 0 {
            return Some(0);
        }
        let (first, end) = self.urgent[place];
        let jobs = |h: usize| self.periods[h].ceil(window.checked_add(jitters[h])?).checked_mul(self.occasions[h]);
        let mut others = (first..end).filter(|&h| h != place);
        others.try_fold(0_u64, |sum, h| sum.checked_add(jobs(h)?))?.checked_mul(kept)
    }

    /// Returns the form in which the task at `place` executes `extra` longer outside of its sections.
    pub(super) fn lengthened(&self, form: &Form, place: usize, extra: u64) -> Option<Form> {
        let mut longer = form.clone();
        longer.costs[place] = form.costs[place].checked_add(extra)?;
        longer.is_short = self.are_short(&longer.costs);
        Some(longer)
    }
}

/// Response times that rise with the execution and the blocking of a form. The form has no waits.
pub(super) struct Climb<'a, 't> {
    shape: &'a Shape<'t>,
    form: Form,
    state: State,
    dirty: Dirty,
    places: Range<usize>,
}

impl<'a, 't> Climb<'a, 't> {
    /// Begins at the fixed point of `form` with these response times, by task. Only those at `places` rise.
    pub(super) fn new(shape: &'a Shape<'t>, form: Form, responses: &[u64], places: Range<usize>) -> Self {
        let state = shape.state(&form, responses);
        let dirty = Dirty { places: vec![0; shape.ids.len()], waits: Vec::new() };
        Self { shape, form, state, dirty, places }
    }

    /// Like [`new`](Self::new), at response times below the fixed point. All of them rise.
    pub(super) fn below(shape: &'a Shape<'t>, form: Form, responses: &[u64]) -> Self {
        let mut climb = Self::new(shape, form, responses, 0..shape.ids.len());
        climb.dirty.places.fill(WINDOW);
        climb
    }

    pub(super) fn places(&self) -> Range<usize> {
        self.places.clone()
    }

    /// Sets the execution that others count, and the blocking, of the task at `place`. Neither may fall.
    pub(super) fn set(&mut self, place: usize, cost: u64, blocking: u64) {
        let Self { shape, form, state, dirty, .. } = self;
        if form.costs[place] != cost {
            form.costs[place] = cost;
            form.is_short &= cost <= shape.periods[place].get();
            let response = state.responses[shape.ids[place].index()].unwrap_or(0);
            state.set(shape, place, response.max(cost.saturating_add(shape.jitters[place])), cost);
            shape.mark_windows(dirty, place);
            dirty.places[place] = WINDOW;
        }
        if form.blocking[place] != blocking {
            form.blocking[place] = blocking;
            dirty.places[place] = WINDOW;
        }
    }

    /// Raises the response times to the fixed point. Returns whether one has changed, or `None` if a deadline is
    /// missed.
    pub(super) fn rise(&mut self, responses: &mut [u64]) -> Option<bool> {
        let Self { shape, form, state, dirty, places } = self;
        shape.rise_in(places.clone(), form, state, dirty)?;
        let mut changed = false;
        for id in &shape.ids[places.clone()] {
            let found = state.responses[id.index()].unwrap_or(responses[id.index()]);
            changed |= found != responses[id.index()];
            responses[id.index()] = found;
        }
        Some(changed)
    }

    pub(super) fn into_parts(self) -> (Form, Point) {
        (self.form, self.state.point)
    }
}

/// The equations to evaluate.
struct Dirty {
    /// By place.
    places: Vec<u8>,
    /// By slot.
    waits: Vec<bool>,
}

impl Dirty {
    /// Marks the wait of a task, given by place, in a slot.
    fn mark_wait(&mut self, (place, slot): (usize, usize)) {
        self.places[place] |= WAITS | WINDOW;
        self.waits[slot] = true;
    }
}

/// The state of the search for a fixed point. By place, except for `responses`.
struct State {
    /// J_h, as other tasks count it.
    jitters: Vec<u64>,
    /// R, by task.
    responses: Vec<Option<u64>>,
    point: Point,
    budget: Budget,
}

impl State {
    fn set(&mut self, shape: &Shape<'_>, place: usize, response: u64, cost: u64) {
        self.point.beside[place] = response - cost;
        self.responses[shape.ids[place].index()] = Some(response);
        if shape.suspends[place] {
            self.jitters[place] = response - cost;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::divisor::Divisor;
    use crate::rows::mutant::Omission;
    use crate::rows::tables::Tables;
    use lockwright_model::{CpuId, Duration, Priority, Protocol, Step, Task};

    /// Returns an edge case, or any time above 0 and below `end`.
    fn drawn(random: &mut fastrand::Rng, end: u64) -> u64 {
        let edge = [1, 2, 1 << 16, 1 << 31, 1 << 32][random.usize(..5)];
        let time = match random.u8(0..3) {
            0 => edge + random.u64(0..3) - 1,
            1 => random.u64(..) >> random.u32(30..64),
            _ => random.u64(1..100),
        };
        time.clamp(1, end - 1)
    }

    #[test]
    fn short_work_is_work() {
        let mut random = fastrand::Rng::with_seed(1);
        for round in 0..100_000 {
            let (jitter, period) = (drawn(&mut random, SHORT_MAX), drawn(&mut random, SHORT_MAX).max(2));
            let cost = drawn(&mut random, period + 1);
            // Often, the window ends where the last job begins, or just after.
            let edge = (jitter / period + random.u64(1..4)) * period - jitter + u64::from(random.bool());
            let window = if random.bool() { drawn(&mut random, SHORT_MAX) } else { edge.clamp(1, SHORT_MAX - 1) };
            let inverse = Divisor::new(period).map_or(0, Divisor::inverse).wrapping_add(1);
            let halves = [(inverse >> 32) as u32, inverse as u32];
            let known = (window + jitter).div_ceil(period) * cost;
            let found = short_work(window, &[jitter], &[halves], &[cost]);
            assert_eq!(found, known, "{round}: {cost} each {period}, {jitter} late, in {window}");
        }
    }

    /// The work is the same whether or not times count as short.
    #[test]
    fn work_of_long_times_is_work() {
        let mut random = fastrand::Rng::with_seed(2);
        let (mut short, mut long) = (0, 0);
        for round in 0..20_000 {
            let times: Vec<(u64, u64, u64)> = (0..3)
                .map(|_| {
                    let period = drawn(&mut random, 1 << 34).max(3);
                    (drawn(&mut random, period), period, drawn(&mut random, period) - 1)
                })
                .collect();
            let task = |(index, &(cost, period, jitter)): (usize, &(u64, u64, u64))| Task {
                name: format!("t{index}"),
                cpu: CpuId::new(0),
                priority: Priority::base(1),
                period: Duration::from_ns(period),
                deadline: Duration::from_ns(period),
                jitter: Duration::from_ns(jitter),
                offset: Duration::ZERO,
                wcet: Duration::from_ns(cost),
                body: vec![Step::Run(Duration::from_ns(cost))],
            };
            let tasks = times.iter().enumerate().map(task).collect();
            let system = System::new("drawn".into(), 1, None, vec![], tasks).expect("a valid system");
            let tables = Tables::new(&system, Protocol::None, Omission::NOTHING);
            let shape = Shape::new(&tables);
            let form = shape.form(&system).expect("it fits");
            let window = drawn(&mut random, 1 << 34);
            let others = times[1..].iter().map(|&(cost, period, jitter)| (window + jitter).div_ceil(period) * cost);
            let known = times[0].0 + others.sum::<u64>();
            let found = shape.work(&form, &shape.jitters, 0, times[0].0, window);
            assert_eq!(found, Some(known), "{round}: {times:?} in {window}");
            *(if shape.is_short && window < SHORT_MAX { &mut short } else { &mut long }) += 1;
        }
        assert!(short > 1_000 && long > 1_000, "{short}, {long}");
    }
}
