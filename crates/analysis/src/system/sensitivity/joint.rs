//! Verdicts of many forms of one system under partitioned fixed priorities, from one fixed point to the next.
//!
//! The equations are those of `response.rs`. Written in X = R - C, which is what the response time has beside the job's own execution,
//! ```text
//!   X_i + C_i = J_i + w,   w = C_i + S_i(X + C) + B_i + sum over h of ceil((w + J_h) / T_h) * C_h,   J_h = X_h where h suspends
//! ```
//! the right side falls nowhere as C, B, the lengths of sections or X grow. So the least fixed point of a form with longer executions is nowhere below that of one with
//! shorter ones, and the search for it may begin there: it still ends at the least one. (In R it may not: with R as it was, and C greater, `R_h - C_h` would be too small.)
//! What is above its deadline on the way stays so, and the form does not hold.
//!
//! Where a form differs from one whose fixed point is known in the execution times of one task alone, only equations that rest on it are looked at: those of tasks no more
//! urgent on its processor, and, from there on, whatever rests on a response time that has changed.

use super::locals::Locals;
use super::shape::{SHORT_MAX, Shape};
use crate::blocking::mpcp::system::Remote;
use crate::rows::fixed_point::Budget;
use fearless_simd::dispatch;
use lockwright_model::{System, TaskId};
use std::ops::Range;
use std::rc::Rc;

/// Execution times, and what rests on the lengths of sections alone. By place.
#[derive(Clone)]
pub(super) struct Form {
    pub(super) costs: Vec<u64>,
    /// Whether all times are short, and none of these is above its period.
    pub(super) is_short: bool,
    /// B.
    pub(super) blocking: Vec<u64>,
    /// What delays it once more on each occasion of each more urgent job; nothing for those behind.
    pub(super) kept: Vec<u64>,
    /// Where the sections are.
    pub(super) remote: Rc<Remote>,
}

/// A fixed point, or what is below one. By place.
#[derive(Clone)]
pub(super) struct Point {
    /// X.
    pub(super) beside: Vec<u64>,
    /// S.
    pub(super) suspended: Vec<u64>,
    /// For one request each. By slot.
    pub(super) waits: Vec<u64>,
}

/// Which equations are to be looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Changed {
    Anything,
    /// The execution time of the task at that place.
    Cost(usize),
    /// That, and the lengths of its sections.
    Sections(usize),
}

const WINDOW: u8 = 1;
const WAITS: u8 = 2;

impl Shape<'_> {
    /// A form without waits, of what others meet of each job, what else delays it, and what does so once more on each occasion of each more urgent job. By place.
    pub(super) fn form_of(&self, costs: Vec<u64>, blocking: Vec<u64>, kept: Vec<u64>) -> Form {
        Form { is_short: self.are_short(&costs), costs, blocking, kept, remote: Rc::new(Remote::none()) }
    }

    /// Raises the response times, by task, to what `form` has, which has no waits, and grew since the `last` one was raised. Whether it changed any; `None` where a deadline
    /// breaks.
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
        let mut state = State {
            jitters: self.jitters.clone(),
            responses: vec![None; count],
            point: Point { beside: vec![0; count], suspended: vec![0; count], waits: Vec::new() },
            budget: Budget::new(),
        };
        for place in 0..count {
            // No response time is below that.
            let least = form.costs[place].saturating_add(self.jitters[place]);
            state.set(self, place, responses[self.ids[place].index()].max(least), form.costs[place]);
        }
        let risen = self.rise(form, &mut state, &mut dirty);
        let mut changed = false;
        for (response, found) in responses.iter_mut().zip(state.responses) {
            let found = found.unwrap_or(*response);
            changed |= found != *response;
            *response = found;
        }
        (state.point, risen.map(|()| changed))
    }

    /// The greatest amount for which the deadline that broke last holds, with all numbers between the two forms that hold and break with these amounts.
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

    /// What blocks each task of the system of the tables.
    pub(super) fn locals(&self) -> Locals {
        Locals::new(self, self.tables, self.tables.system)
    }

    /// The form that `system` is, which differs from the one of the tables in execution times alone; `None` where a number does not fit.
    pub(super) fn form(&self, system: &System) -> Option<Form> {
        let costs: Vec<u64> = self.ids.iter().map(|&id| system.task(id).wcet.as_ns()).collect();
        Some(Form {
            is_short: self.are_short(&costs),
            costs,
            blocking: Locals::new(self, self.tables, system).blocking()?,
            kept: Vec::new(),
            remote: Rc::new(Remote::new(&self.tables.of_form(system))?),
        })
    }

    /// As [`Shape::form`], where `system` differs from the one of the tables, whose form `base` is, in the task at `place` alone.
    pub(super) fn form_beside(&self, base: &Form, locals: &Locals, system: &System, place: usize) -> Option<Form> {
        let task = self.ids[place];
        let mut form = base.clone();
        form.costs[place] = system.task(task).wcet.as_ns();
        form.is_short = self.are_short(&form.costs);
        // Its sections block more urgent tasks of its processor, and stretch those of all.
        for above in self.more_urgent(place) {
            form.blocking[above] = locals.beside(self, self.tables, system, place, above)?;
        }
        if self.is_coupled() {
            form.remote = Rc::new(base.remote.beside(self.tables, system, task)?);
        }
        Some(form)
    }

    /// Nothing but execution.
    pub(super) fn bottom(&self) -> Point {
        let slots = self.requests.iter().map(Vec::len).sum();
        Point { beside: self.jitters.clone(), suspended: vec![0; self.ids.len()], waits: vec![0; slots] }
    }

    /// The least fixed point of `form`, where every deadline holds there. `from` must not be above it; it is the one of a form that differs in what has `changed`, or, where
    /// that is anything, any point below.
    pub(super) fn settle(&self, form: &Form, from: &Point, changed: Changed) -> Option<Point> {
        self.settle_or_break(form, from, changed).ok()
    }

    /// The same; where a deadline breaks, a point below the fixed point at which it does, if there is one.
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
                // Its response time has grown by as much already: who waits for it meets more of its jobs.
                self.mark_windows(&mut dirty, place);
                self.delays[place].iter().for_each(|&delayed| dirty.mark_wait(delayed));
                dirty.places[place] |= WINDOW;
            }
            Changed::Sections(place) => {
                // It blocks more urgent tasks, and stretches the sections of all on its processor: who waits for one of these waits longer.
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

    /// Raises response times to the fixed point; `None` where a deadline does not hold.
    fn rise(&self, form: &Form, state: &mut State, dirty: &mut Dirty) -> Option<()> {
        let critical = self.critical.get();
        if dirty.places[critical] != 0 {
            self.look(form, state, dirty, critical)?;
        }
        // BOUND: the budget; each round but the last changes a response time, which only rise.
        loop {
            let mut looked = false;
            for place in 0..dirty.places.len() {
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

    /// Looks at one equation anew; `None` where its deadline does not hold.
    fn look(&self, form: &Form, state: &mut State, dirty: &mut Dirty, place: usize) -> Option<()> {
        let waits = std::mem::take(&mut dirty.places[place]) & WAITS != 0;
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

    /// The windows in which jobs of the task at `place` are met rest on its response time, or on its execution time.
    fn mark_windows(&self, dirty: &mut Dirty, place: usize) {
        let itself = dirty.places[place];
        dirty.places[self.equals[place]..self.ends[place]].iter_mut().for_each(|dirty| *dirty |= WINDOW);
        dirty.places[place] = itself;
    }

    /// Waits for sections of the task at `place` rest on its response time, where that is met with one more job than before.
    fn mark_waits(&self, dirty: &mut Dirty, point: &Point, place: usize, (before, response): (u64, u64)) {
        let period = self.periods[place];
        for &delayed in &self.delays[place] {
            let jobs = |response: u64| point.waits[delayed.1].checked_add(response).map(|end| period.ceil(end));
            if jobs(before) != jobs(response) || jobs(response).is_none() {
                dirty.mark_wait(delayed);
            }
        }
    }

    /// The least w at or above `start`, within the deadline.
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

    /// What is due in a window of the task at `place`: its own, and that of tasks at least as urgent on its processor.
    pub(super) fn work(&self, form: &Form, jitters: &[u64], place: usize, own: u64, window: u64) -> Option<u64> {
        let (first, end) = self.urgent[place];
        let own = own.checked_add(self.repeated(form, jitters, place, window)?)?;
        if self.is_short && form.is_short && (1..SHORT_MAX).contains(&window) {
            // What it would take from itself is among the sum.
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

    /// What delays the task at `place` on occasions of more urgent jobs in that window.
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

    /// The form in which the task at `place` executes longer outside of its sections.
    pub(super) fn lengthened(&self, form: &Form, place: usize, extra: u64) -> Option<Form> {
        let mut longer = form.clone();
        longer.costs[place] = form.costs[place].checked_add(extra)?;
        longer.is_short = self.are_short(&longer.costs);
        Some(longer)
    }
}

/// The sum of `ceil((window + jitter) / period) * cost`, of a window above 0 and times that are all short, with no cost above its period.
#[inline(always)]
fn short_work(window: u64, jitters: &[u64], halves: &[[u32; 2]], costs: &[u64]) -> u64 {
    let tasks = jitters.iter().zip(halves).zip(costs);
    tasks.fold(0, |sum: u64, ((&jitter, &[high, low]), &cost)| {
        // The sum of the two has 32 bits, and so have the jobs. Each task is due for less than 2^33.
        let before = (window as u32).wrapping_add(jitter as u32).wrapping_sub(1);
        let (before, high, low) = (u64::from(before), u64::from(high), u64::from(low));
        let jobs = ((before * high).wrapping_add((before * low) >> 32) >> 32).wrapping_add(1);
        sum.wrapping_add(u64::from(jobs as u32).wrapping_mul(u64::from(cost as u32)))
    })
}

/// The equations to be looked at.
struct Dirty {
    /// By place.
    places: Vec<u8>,
    /// By slot.
    waits: Vec<bool>,
}

impl Dirty {
    /// The wait of that task, by place, in that slot.
    fn mark_wait(&mut self, (place, slot): (usize, usize)) {
        self.places[place] |= WAITS | WINDOW;
        self.waits[slot] = true;
    }
}

/// On the way to a fixed point. By place, but for `responses`.
struct State {
    /// J_h, as others see it.
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
    use crate::rows::tables::Tables;
    use lockwright_model::{CpuId, Duration, Priority, Protocol, Step, Task};

    /// A time at an edge, or any, above 0 and below `end`.
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
            // As often as not where the last job begins, or just behind.
            let edge = (jitter / period + random.u64(1..4)) * period - jitter + u64::from(random.bool());
            let window = if random.bool() { drawn(&mut random, SHORT_MAX) } else { edge.clamp(1, SHORT_MAX - 1) };
            let inverse = Divisor::new(period).map_or(0, Divisor::inverse).wrapping_add(1);
            let halves = [(inverse >> 32) as u32, inverse as u32];
            let known = (window + jitter).div_ceil(period) * cost;
            let found = short_work(window, &[jitter], &[halves], &[cost]);
            assert_eq!(found, known, "{round}: {cost} each {period}, {jitter} late, in {window}");
        }
    }

    /// Whether times count as short or not, the work is the same.
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
            let tables = Tables::new(&system, Protocol::None, None);
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
