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

use crate::blocking::mpcp::Remote;
use crate::divisor::Divisor;
use crate::fixed_point::Budget;
use crate::response::static_blocking;
use crate::tables::Tables;
use lockwright_model::{Priority, Protocol, ResourceId, System, TaskId};
use std::cell::Cell;
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
    /// The place behind the last task of its processor.
    ends: Vec<usize>,
    jitters: Vec<u64>,
    deadlines: Vec<u64>,
    suspends: Vec<bool>,
    /// What it asks for under `mpcp`.
    requests: Vec<Vec<(ResourceId, u64)>>,
    /// Whose waits its response time lengthens.
    delays: Vec<Vec<usize>>,
    /// The place that refuted the last form.
    critical: Cell<usize>,
}

/// Execution times, and what rests on the lengths of sections alone. By place.
#[derive(Clone)]
pub(super) struct Form {
    costs: Vec<u64>,
    /// B.
    blocking: Vec<u64>,
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

impl<'t> Shape<'t> {
    /// Of tables whose resources are ruled by what `response.rs` covers, without interruptible sections.
    pub(super) fn new(tables: &'t Tables<'t>) -> Self {
        let system = tables.system;
        let ids: Vec<TaskId> = tables.cpus.iter().flatten().copied().collect();
        let mut places = vec![0; ids.len()];
        for (place, id) in ids.iter().enumerate() {
            places[id.index()] = place;
        }
        let (mut urgent, mut ends, mut first) = (Vec::with_capacity(ids.len()), Vec::with_capacity(ids.len()), 0);
        for tasks in &tables.cpus {
            for &id in tasks {
                let at_least = |&other: &TaskId| system.task(other).priority >= system.task(id).priority;
                urgent.push((first, first + tasks.partition_point(at_least)));
                ends.push(first + tasks.len());
            }
            first += tasks.len();
        }
        let mpcp = |id: TaskId| {
            let requests = system.requests(id).iter();
            requests.filter(|request| tables.protocol(request.resource) == Protocol::Mpcp)
        };
        let priority = |id: TaskId| -> Priority { system.task(id).priority };
        let delays = |&id: &TaskId| {
            let users = mpcp(id).flat_map(|request| system.users(request.resource));
            let mut delayed: Vec<usize> =
                users.filter(|&&user| priority(user) < priority(id)).map(|user| places[user.index()]).collect();
            delayed.sort_unstable();
            delayed.dedup();
            delayed
        };
        let of = |get: &dyn Fn(TaskId) -> u64| ids.iter().map(|&id| get(id)).collect::<Vec<u64>>();
        Self {
            tables,
            periods: ids.iter().filter_map(|&id| Divisor::new(system.task(id).period.as_ns())).collect(),
            urgent,
            ends,
            jitters: of(&|id| system.task(id).jitter.as_ns()),
            deadlines: of(&|id| system.task(id).deadline.as_ns()),
            suspends: ids.iter().map(|&id| tables.suspends(id)).collect(),
            requests: ids.iter().map(|&id| mpcp(id).map(|r| (r.resource, u64::from(r.count))).collect()).collect(),
            delays: ids.iter().map(delays).collect(),
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

    /// The form that `system` is, which differs from the one of the tables in execution times alone; `None` where a number does not fit.
    pub(super) fn form(&self, system: &System) -> Option<Form> {
        let tables = self.tables.of_form(system);
        let blocking = self.ids.iter().map(|&id| {
            let known = static_blocking(&tables, id)?;
            known.local.checked_add(known.boosted)
        });
        Some(Form {
            costs: self.ids.iter().map(|&id| system.task(id).wcet.as_ns()).collect(),
            blocking: blocking.collect::<Option<_>>()?,
            remote: Rc::new(Remote::new(&tables)?),
        })
    }

    /// As [`Shape::form`], where `system` differs from what `base` is the form of in the task at `place` alone.
    pub(super) fn form_beside(&self, base: &Form, system: &System, place: usize) -> Option<Form> {
        let tables = self.tables.of_form(system);
        let mut form = base.clone();
        form.costs[place] = system.task(self.ids[place]).wcet.as_ns();
        // Its sections block more urgent tasks of its processor, and stretch those of all.
        for above in self.urgent[place].0..place {
            let known = static_blocking(&tables, self.ids[above])?;
            form.blocking[above] = known.local.checked_add(known.boosted)?;
        }
        if self.is_coupled() {
            form.remote = Rc::new(Remote::new(&tables)?);
        }
        Some(form)
    }

    /// Nothing but execution.
    pub(super) fn bottom(&self) -> Point {
        Point { beside: self.jitters.clone(), suspended: vec![0; self.ids.len()] }
    }

    /// The least fixed point of `form`, where every deadline holds there. `from` must not be above it; it is the one of a form that differs in what has `changed`, or, where
    /// that is anything, any point below.
    pub(super) fn settle(&self, form: &Form, from: &Point, changed: Changed) -> Option<Point> {
        let count = self.ids.len();
        let mut dirty = match changed {
            Changed::Anything => {
                self.suspends.iter().map(|&suspends| if suspends { WINDOW | WAITS } else { WINDOW }).collect()
            }
            Changed::Cost(place) => {
                let mut dirty = vec![0; count];
                // Its response time has grown by as much already: who waits for it meets more of its jobs.
                self.mark_resting(&mut dirty, place);
                dirty[place] |= WINDOW;
                dirty
            }
            Changed::Sections(place) => {
                let mut dirty = vec![0; count];
                // It blocks more urgent tasks, and stretches the sections of all on its processor: who waits for one of these waits longer.
                let own = self.urgent[place].0..self.ends[place];
                dirty[own.clone()].fill(WINDOW);
                let mut held = vec![false; self.tables.system.resources().len()];
                self.requests[own].iter().flatten().for_each(|(resource, _)| held[resource.index()] = true);
                for (dirty, requests) in dirty.iter_mut().zip(&self.requests) {
                    if requests.iter().any(|(resource, _)| held[resource.index()]) {
                        *dirty |= WINDOW | WAITS;
                    }
                }
                dirty
            }
        };
        let mut state = State {
            jitters: self.jitters.clone(),
            responses: vec![None; count],
            point: from.clone(),
            budget: Budget::new(),
        };
        for place in 0..count {
            state.set(self, place, form.costs[place].checked_add(from.beside[place])?, form.costs[place]);
        }
        let critical = self.critical.get();
        if dirty[critical] != 0 {
            self.look(form, &mut state, &mut dirty, critical)?;
        }
        // BOUND: the budget; each round but the last changes a response time, which only rise.
        loop {
            let mut looked = false;
            for place in 0..count {
                if dirty[place] != 0 {
                    looked = true;
                    let seen = self.look(form, &mut state, &mut dirty, place);
                    if seen.is_none() {
                        self.critical.set(place);
                        return None;
                    }
                }
            }
            if !looked {
                return Some(state.point);
            }
        }
    }

    /// Looks at one equation anew; `None` where its deadline does not hold.
    fn look(&self, form: &Form, state: &mut State, dirty: &mut [u8], place: usize) -> Option<()> {
        let waits = std::mem::take(&mut dirty[place]) & WAITS != 0;
        let cost = form.costs[place];
        if waits {
            let period = self.periods[place].get();
            let mut suspended = 0_u64;
            for &(resource, count) in &self.requests[place] {
                let wait = form.remote.wait_within(
                    self.tables,
                    &state.budget,
                    self.ids[place],
                    resource,
                    &state.responses,
                    period,
                );
                suspended = suspended.checked_add(wait.ok()?.total.checked_mul(count)?)?;
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
                self.mark_resting(dirty, place);
            }
        }
        Some(())
    }

    /// What rests on the response time of the task at `place`, or on its execution time: the windows in which its jobs are met, and waits for its sections.
    fn mark_resting(&self, dirty: &mut [u8], place: usize) {
        for (other, dirty) in dirty.iter_mut().enumerate().take(self.ends[place]).skip(self.urgent[place].0) {
            if other != place && self.urgent[other].1 > place {
                *dirty |= WINDOW;
            }
        }
        for &delayed in &self.delays[place] {
            dirty[delayed] |= WAITS | WINDOW;
        }
    }

    /// The least w at or above `start`, within the deadline.
    fn window(&self, form: &Form, jitters: &[u64], place: usize, own: u64, start: u64, budget: &Budget) -> Option<u64> {
        let (first, end) = self.urgent[place];
        let limit = self.deadlines[place].checked_sub(self.jitters[place])?;
        let term =
            |h: usize, window: u64| self.periods[h].ceil(window.checked_add(jitters[h])?).checked_mul(form.costs[h]);
        let sum = |range: std::ops::Range<usize>, sum: u64, window: u64| {
            range.into_iter().try_fold(sum, |sum, h| sum.checked_add(term(h, window)?))
        };
        let found = budget.least(own.max(start), limit, (end - first) as u64, |window| {
            sum(place + 1..end, sum(first..place, own, window)?, window)
        });
        found.ok()
    }

    /// More than the task at `place` can execute longer with every deadline met: what each task no more urgent on its processor has room for, with all others as they are at
    /// `point`, where the deadlines of `form` hold. `None` where it was interrupted.
    pub(super) fn room(&self, form: &Form, point: &Point, place: usize, go_on: &dyn Fn() -> bool) -> Option<u64> {
        let jitters: Vec<u64> =
            (0..self.ids.len()).map(|h| if self.suspends[h] { point.beside[h] } else { self.jitters[h] }).collect();
        let mut longer = form.clone();
        let rests = |&other: &usize| other == place || self.urgent[other].1 > place;
        let resting = || (self.urgent[place].0..self.ends[place]).filter(rests);
        let slack =
            |other: usize| self.deadlines[other].saturating_sub(point.beside[other].saturating_add(form.costs[other]));
        let mut most = resting().map(slack).min().unwrap_or(0);
        let mut fits = |other: usize, extra: u64| {
            let budget = Budget::new();
            longer.costs[place] = form.costs[place].saturating_add(extra);
            let own = longer.costs[other]
                .checked_add(form.blocking[other])
                .and_then(|own| own.checked_add(point.suspended[other]));
            let start = form.costs[other] + point.beside[other] - self.jitters[other] + extra;
            own.is_some_and(|own| self.window(&longer, &jitters, other, own, start, &budget).is_some())
        };
        for other in resting() {
            if most == 0 {
                break;
            }
            if !fits(other, most) {
                go_on().then_some(())?;
                let (mut holding, mut breaking) = (0, most);
                // BOUND: sixty-four halvings.
                while breaking - holding > 1 {
                    let middle = holding + (breaking - holding) / 2;
                    if fits(other, middle) {
                        holding = middle;
                    } else {
                        breaking = middle;
                    }
                }
                most = holding;
            }
        }
        Some(most)
    }

    /// The form in which the task at `place` executes longer outside of its sections.
    pub(super) fn lengthened(&self, form: &Form, place: usize, extra: u64) -> Option<Form> {
        let mut longer = form.clone();
        longer.costs[place] = form.costs[place].checked_add(extra)?;
        Some(longer)
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
