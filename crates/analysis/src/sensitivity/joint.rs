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
use crate::across;
use crate::blocking::mpcp::Remote;
use crate::divisor::Divisor;
use crate::fixed_point::Budget;
use crate::tables::Tables;
use fearless_simd::{Level, dispatch};
use lockwright_model::{Priority, Protocol, ResourceId, System, TaskId};
use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;

/// What does not depend on execution times. Tasks have their places: processor by processor, the most urgent first.
pub(super) struct Shape<'t> {
    tables: &'t Tables<'t>,
    /// By place.
    ids: Vec<TaskId>,
    /// By task.
    places: Vec<usize>,
    periods: Vec<Divisor>,
    /// The first place of its processor, and the place behind the last task at least as urgent.
    urgent: Vec<(usize, usize)>,
    /// The first place of its priority on its processor.
    equals: Vec<usize>,
    /// The place behind the last task of its processor.
    ends: Vec<usize>,
    jitters: Vec<u64>,
    deadlines: Vec<u64>,
    suspends: Vec<bool>,
    /// How often sections under `icpp` can delay a job of it, and whatever that keeps waiting.
    occasions: Vec<u64>,
    /// What it asks for under `mpcp`, and where its wait for that is in a [`Point`].
    requests: Vec<Vec<Request>>,
    /// Whose waits its response time lengthens, and which.
    delays: Vec<Vec<(usize, usize)>>,
    /// Whether all periods, deadlines and jitters are short.
    is_short: bool,
    /// Of the inverse of each period, rounded up: 2^64 divided by it. The high 32 bits and the low ones.
    halves: Vec<[u32; 2]>,
    level: Level,
    /// The place that refuted the last form.
    critical: Cell<usize>,
}

/// What jobs of a task ask for under `mpcp`.
#[derive(Clone, Copy)]
struct Request {
    resource: ResourceId,
    count: u64,
    /// Where the wait is among those of all tasks.
    slot: usize,
}

/// Execution times, and what rests on the lengths of sections alone. By place.
#[derive(Clone)]
pub(super) struct Form {
    costs: Vec<u64>,
    /// Whether all times are short, and none of these is above its period.
    is_short: bool,
    /// B.
    blocking: Vec<u64>,
    /// What delays it once more on each occasion of each more urgent job; nothing for those behind.
    kept: Vec<u64>,
    /// Where the sections are.
    remote: Rc<Remote>,
}

/// A fixed point, or what is below one. By place.
#[derive(Clone)]
pub(super) struct Point {
    /// X.
    beside: Vec<u64>,
    /// S.
    suspended: Vec<u64>,
    /// For one request each. By slot.
    waits: Vec<u64>,
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

/// Times below it are short: the sum of two has 32 bits.
const SHORT_MAX: u64 = 1 << 31;

const WINDOW: u8 = 1;
const WAITS: u8 = 2;

impl<'t> Shape<'t> {
    /// Of tables whose resources are ruled by what `response.rs` covers, without interruptible sections.
    pub(super) fn new(tables: &'t Tables<'t>) -> Self {
        let system = tables.system;
        let ids: Vec<TaskId> = tables.cpus.iter().flatten().copied().collect();
        let mut places = vec![0; ids.len()];
        for (place, id) in ids.iter().enumerate() {
            places[id.index()] = place;
        }
        let (mut urgent, mut equals, mut ends, mut first) = (Vec::new(), Vec::new(), Vec::new(), 0);
        for tasks in &tables.cpus {
            for &id in tasks {
                let at_least = |&other: &TaskId| system.task(other).priority >= system.task(id).priority;
                let above = |&other: &TaskId| system.task(other).priority > system.task(id).priority;
                urgent.push((first, first + tasks.partition_point(at_least)));
                equals.push(first + tasks.partition_point(above));
                ends.push(first + tasks.len());
            }
            first += tasks.len();
        }
        let mpcp = |id: TaskId| {
            let requests = system.requests(id).iter();
            requests.filter(|request| tables.protocol(request.resource) == Protocol::Mpcp)
        };
        let priority = |id: TaskId| -> Priority { system.task(id).priority };
        let mut slot = 0;
        let mut next = |request: &lockwright_model::Request| {
            slot += 1;
            Request { resource: request.resource, count: u64::from(request.count), slot: slot - 1 }
        };
        let requests: Vec<Vec<Request>> = ids.iter().map(|&id| mpcp(id).map(&mut next).collect()).collect();
        let delays = |&id: &TaskId| -> Vec<(usize, usize)> {
            let users = mpcp(id).flat_map(|r| system.users(r.resource).iter().map(move |user| (r.resource, user)));
            let delayed = users.filter(|&(_, &user)| priority(user) < priority(id)).filter_map(|(resource, user)| {
                let place = places[user.index()];
                let request = requests[place].iter().find(|request| request.resource == resource)?;
                Some((place, request.slot))
            });
            delayed.collect()
        };
        let of = |get: &dyn Fn(TaskId) -> u64| ids.iter().map(|&id| get(id)).collect::<Vec<u64>>();
        let periods: Vec<Divisor> = ids.iter().filter_map(|&id| Divisor::new(system.task(id).period.as_ns())).collect();
        let is_short = system.tasks().iter().all(|task| {
            let others = task.deadline.max(task.jitter).as_ns();
            (2..SHORT_MAX).contains(&task.period.as_ns()) && others < SHORT_MAX
        });
        let halves = |period: &Divisor| {
            let inverse = period.inverse().wrapping_add(1);
            [(inverse >> 32) as u32, inverse as u32]
        };
        let ruling = across::ruling(tables);
        let suspends = |id| ruling.map_or_else(|| tables.suspends(id), |ruling| across::defers(tables, ruling, id));
        Self {
            tables,
            is_short,
            halves: periods.iter().map(halves).collect(),
            level: Level::new(),
            periods,
            urgent,
            equals,
            ends,
            jitters: of(&|id| system.task(id).jitter.as_ns()),
            deadlines: of(&|id| system.task(id).deadline.as_ns()),
            suspends: ids.iter().map(|&id| suspends(id)).collect(),
            occasions: of(&|id| 1 + ruling.map_or(0, |ruling| across::requests(tables, ruling, id))),
            delays: ids.iter().map(delays).collect(),
            requests,
            critical: Cell::new(0),
            places,
            ids,
        }
    }

    pub(super) fn place(&self, task: TaskId) -> usize {
        self.places[task.index()]
    }

    /// Whether response times rest on one another.
    pub(super) fn is_coupled(&self) -> bool {
        self.suspends.contains(&true)
    }

    pub(super) fn id(&self, place: usize) -> TaskId {
        self.ids[place]
    }

    /// The first place of its processor, and the place behind the last task at least as urgent.
    pub(super) fn urgent(&self, place: usize) -> (usize, usize) {
        self.urgent[place]
    }

    /// Its release jitter.
    pub(super) fn jitter(&self, place: usize) -> u64 {
        self.jitters[place]
    }

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
        Some(from.0 + super::halve((0, to.0 - from.0), &mut holds)?)
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

    /// Whether work of executions of that length may be counted as that of short ones.
    fn are_short(&self, costs: &[u64]) -> bool {
        self.is_short && costs.iter().zip(&self.periods).all(|(&cost, period)| cost <= period.get())
    }

    /// The places of more urgent tasks of the processor.
    pub(super) fn more_urgent(&self, place: usize) -> Range<usize> {
        self.urgent[place].0..self.equals[place]
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
                        &state.responses,
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
    fn window(&self, form: &Form, jitters: &[u64], place: usize, own: u64, start: u64, budget: &Budget) -> Option<u64> {
        let (first, end) = self.urgent[place];
        let limit = self.deadlines[place].checked_sub(self.jitters[place])?;
        let work = |window| self.work(form, jitters, place, own, window);
        budget.least(own.max(start), limit, (end - first) as u64, work).ok()
    }

    /// What is due in a window of the task at `place`: its own, and that of tasks at least as urgent on its processor.
    fn work(&self, form: &Form, jitters: &[u64], place: usize, own: u64, window: u64) -> Option<u64> {
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
    fn repeated(&self, form: &Form, jitters: &[u64], place: usize, window: u64) -> Option<u64> {
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

/// How much longer each task can execute outside of its sections, as far as response times do not rest on one another.
///
/// A window w in which so much work is due as the form is, is long enough for an amount e more of each job of the task at k where
/// ```text
///   work(w) + ceil((w + J_k) / T_k) * e <= w
/// ```
/// So what was computed once says for every k how much surely fits, and only where the least of these amounts is not enough is a fixed point looked for.
pub(super) struct Rooms<'a, 't> {
    shape: &'a Shape<'t>,
    form: &'a Form,
    point: &'a Point,
    /// J_h, as others see it. By place.
    jitters: Vec<u64>,
    /// By place, at most [`SEEN_MAX`] each.
    seen: Vec<Vec<Seen>>,
}

/// A window of one task, and the work in it that is due, which is no more.
#[derive(Clone, Copy)]
struct Seen {
    window: u64,
    work: u64,
}

/// Most windows kept for one task.
const SEEN_MAX: usize = 32;

impl<'a, 't> Rooms<'a, 't> {
    /// Of a form, with what others suspend as it is at `point`.
    pub(super) fn at(shape: &'a Shape<'t>, form: &'a Form, point: &'a Point) -> Self {
        let count = shape.ids.len();
        let jitter = |h: usize| if shape.suspends[h] { point.beside[h] } else { shape.jitters[h] };
        Self { shape, form, point, jitters: (0..count).map(jitter).collect(), seen: vec![Vec::new(); count] }
    }

    /// Of a form whose deadlines hold at `point`, its fixed point.
    pub(super) fn new(shape: &'a Shape<'t>, form: &'a Form, point: &'a Point) -> Self {
        let mut rooms = Self::at(shape, form, point);
        for place in 0..shape.ids.len() {
            // The longest window that is short enough.
            let limit = shape.deadlines[place] - shape.jitters[place];
            let work = rooms.own(place).and_then(|own| shape.work(form, &rooms.jitters, place, own, limit));
            rooms.seen[place].extend(work.filter(|&work| work <= limit).map(|work| Seen { window: limit, work }));
        }
        rooms
    }

    /// What the task at `place` executes and waits for by itself.
    fn own(&self, place: usize) -> Option<u64> {
        self.form.costs[place].checked_add(self.form.blocking[place])?.checked_add(self.point.suspended[place])
    }

    /// Jobs of the task at `place` in a window of the one at `other`.
    fn jobs(&self, place: usize, other: usize, window: u64) -> Option<u64> {
        if place == other {
            return Some(1);
        }
        Some(self.shape.periods[place].ceil(window.checked_add(self.jitters[place])?))
    }

    /// An amount that the task at `place` can execute longer with the deadline of `other` met.
    fn certain(&self, place: usize, other: usize) -> u64 {
        let fits =
            |seen: &Seen| Some(seen.window.saturating_sub(seen.work) / self.jobs(place, other, seen.window)?.max(1));
        self.seen[other].iter().filter_map(fits).max().unwrap_or(0)
    }

    /// The most that the task at `place` can execute longer with every deadline met, with what others suspend as it is at the point. `None` where it was interrupted.
    pub(super) fn of(&mut self, place: usize, go_on: &dyn Fn() -> bool) -> Option<u64> {
        let shape = self.shape;
        let rests = |&other: &usize| other == place || shape.urgent[other].1 > place;
        let resting = (shape.urgent[place].0..shape.ends[place]).filter(rests);
        let (mut most, mut order) = (u64::MAX, Vec::new());
        for other in resting {
            // Its window grows by as much, and more.
            let response = self.point.beside[other].saturating_add(self.form.costs[other]);
            most = most.min(shape.deadlines[other].saturating_sub(response));
            order.push((self.certain(place, other), other));
        }
        // The tightest first: what it has room for is seldom too much for the others.
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

    /// The most that the task at `place` can execute longer with the deadline of the one that broke last met, at least the first amount, and at most the second. The point
    /// is not above the fixed point with the first amount.
    pub(super) fn of_critical(&mut self, place: usize, (holding, most): (u64, u64)) -> u64 {
        let critical = self.shape.critical.get();
        let rests = critical == place || (self.shape.equals[place]..self.shape.ends[place]).contains(&critical);
        if rests { self.greatest(place, critical, (holding, most), holding) } else { most }
    }

    /// The most that the task at `place` can execute longer with the deadline of `other` met: at least the first amount, and at most the second. The point is not above
    /// the fixed point with the amount `reached`.
    fn greatest(&mut self, place: usize, other: usize, (mut holding, most): (u64, u64), reached: u64) -> u64 {
        let own = if other == place { reached } else { 0 };
        let response = self.form.costs[other] + own + self.point.beside[other];
        // The least fixed point of a lesser amount, or what is below it, and that amount.
        let mut below = (response - self.shape.jitters[other], reached);
        let (mut tried, mut breaking, mut is_next) = (most, most.saturating_add(1), false);
        // BOUND: of two turns one halves the distance, or is the last.
        while breaking - holding > 1 {
            let start = below.0.saturating_add(tried - below.1);
            if let Some(window) = self.longer(place, other, (tried, 0), start) {
                below = (window, tried);
                // The window may be long enough for more. Often it is the best one: the next amount has none then.
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

    /// The least window of the task at `other` with so much more of each job of the one at `place`, and so much more blocking.
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

    /// Those whose deadlines rest on the task at `place`, the one that broke last first.
    pub(super) fn resting(&self, place: usize) -> impl Iterator<Item = usize> + use<> {
        let critical = self.shape.critical.get();
        let all = self.shape.urgent[place].0..self.shape.ends[place];
        let first = all.contains(&critical).then_some(critical);
        first.into_iter().chain(all)
    }

    /// Whether the deadline of the task at `other` holds in `system`, which differs in the task at `place` alone, where that executes no less, and no task suspends.
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

    /// Keeps a window of the task at `other`; how much longer that at `place` can execute with it.
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
    use lockwright_model::{CpuId, Duration, Step, Task};

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
