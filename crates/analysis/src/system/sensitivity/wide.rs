//! The search in systems under the protocols of `across.rs`.
//!
//! For given response times, the protocol's bounds are numbers, and the equations are those of [`joint`](super::joint).
//! Other tasks count the execution of a job on its processor with its waiting, and everything else that delays the job
//! counts as its blocking. A [`Settled`] system has such a form at its fixed point. The room of a task there is the
//! most that it can have, as bounds only grow. The bounds for response times equal to the deadlines yield an amount
//! that holds in any case.
//!
//! Between the two, the search follows the deadline that was missed last. It assumes that its equation changes linearly
//! between a form that holds and one that does not.
//!
//! The searches of different tasks and resources do not depend on each other, so threads share them; see
//! [`crew`](super::crew).

mod near;

use super::crew::Crew;
use super::greatest::{self, Delays, Requests, Trials};
use super::growth::{Progress, Sensitivity};
use super::joint::{Climb, Form, Point};
use super::rooms::Rooms;
use super::scale::{Part, Scale, users};
use super::shape::Shape;
use crate::blocking::bounds::{Bounds, Known};
use crate::blocking::{Delay, DelayBounds as _};
use crate::rows::mutant::Omission;
use crate::rows::sharing::{Sharing, demands};
use crate::rows::tables::Tables;
use crate::system::across;
use crate::system::solve::ROUNDS_MAX;
use lockwright_model::{Duration, Protocol, Step, System, TaskId};
use std::cell::{Cell, RefCell};
use std::ops::Range;

/// The number of tasks with adjacent places whose rooms one thread finds one after the other.
const BLOCK: usize = 8;

/// The values that do not depend on response times, by place.
#[derive(Clone)]
struct Load {
    costs: Vec<u64>,
    /// The execution times on other processors.
    away: Vec<u64>,
    /// The delays by sections under `icpp`.
    local: Vec<u64>,
    /// The section that delays a job once more at each occasion of each more urgent job.
    kept: Vec<u64>,
}

/// A load at its fixed point, or below it.
struct Settled {
    load: Load,
    /// The form with the protocol's bounds at this point.
    form: Form,
    point: Point,
    /// Values from which later evaluations of the bounds start, at a fixed point.
    known: Option<Known>,
    /// The delays at a fixed point, by task. Empty at any other point.
    delays: Vec<Delay>,
}

type Outcome = greatest::Outcome<Settled>;

/// The search and its known values. Each thread has its own.
struct Search<'a> {
    shape: Shape<'a>,
    scale: &'a Scale<'a>,
    tables: &'a Tables<'a>,
    ruling: Protocol,
    crew: &'a Crew,
    go_on: &'a dyn Fn() -> bool,
    /// The system with overheads.
    system: &'a System,
    sharing: Sharing,
    /// The system and its requests, which change while a form is built.
    scratch: RefCell<(System, Sharing)>,
    load: Load,
    bounds: RefCell<Bounds>,
    /// The processor of the task whose room was found last, its room, and the most that it could have been.
    last: Cell<(u16, u64, u64)>,
}

/// Like [`sensitivity`](super::sensitivity()). The inner `None` means that a number does not fit.
pub(super) fn find<F: FnMut(usize, usize) -> bool>(
    tables: &Tables<'_>,
    scale: &Scale<'_>,
    ruling: Protocol,
    progress: &Progress<F>,
) -> Option<Option<Sensitivity>> {
    let crew = Crew::default();
    let go_on = || crew.report(progress);
    let Some(search) = Search::new(tables, scale, ruling, (&crew, &go_on)) else { return Some(None) };
    search.all().map(Some)
}

fn load(tables: &Tables<'_>, ruling: Protocol, shape: &Shape<'_>) -> Option<Load> {
    let count = tables.system.tasks().len();
    let ids = || (0..count).map(|place| shape.id(place));
    let mut load = Load {
        costs: ids().map(|id| tables.system.task(id).wcet.as_ns()).collect(),
        away: ids().map(|id| across::away(tables, ruling, id)).collect(),
        local: vec![0; count],
        kept: vec![0; count],
    };
    load.set_local(tables, ruling, shape, 0..count)?;
    Some(load)
}

impl Load {
    /// Computes which sections under `icpp` delay the tasks at `places`. Returns `None` if a number does not fit.
    fn set_local(
        &mut self,
        tables: &Tables<'_>,
        ruling: Protocol,
        shape: &Shape<'_>,
        places: impl IntoIterator<Item = usize>,
    ) -> Option<()> {
        for place in places {
            if let Some((section, occasions)) = across::local(tables, ruling, shape.id(place)) {
                self.local[place] = section.length.checked_mul(occasions)?;
                let repeats = across::repeats_local(tables, ruling, shape.id(place));
                self.kept[place] = if repeats { section.length } else { 0 };
            }
        }
        Some(())
    }
}

impl Trials for Search<'_> {
    type Settled = Settled;

    fn asked(&self) -> Option<()> {
        (self.go_on)().then_some(())
    }

    fn is_steep(&self) -> bool {
        self.depends_on_execution()
    }

    fn between(&self, from: (u64, &Settled), to: (u64, &Settled)) -> Option<u64> {
        self.shape.between((from.0, &from.1.form, &from.1.point), (to.0, &to.1.form, &to.1.point))
    }

    fn left(&self, settled: &Settled) -> Option<(u64, u64)> {
        let place = self.shape.critical.get();
        let response = settled.form.costs[place] + settled.point.beside[place];
        Some((self.shape.deadlines[place].checked_sub(response)?, response))
    }

    fn scale(&self) -> &Scale<'_> {
        self.scale
    }

    fn crew(&self) -> &Crew {
        self.crew
    }

    fn room_at(&self, settled: &Settled, task: TaskId, room: u64) -> u64 {
        let place = self.shape.place(task);
        if self.load.away[place] == 0 {
            return room;
        }
        // Its execution on other processors delays no task of its own.
        let response = settled.form.costs[place] + settled.point.beside[place];
        self.system.task(task).deadline.as_ns().saturating_sub(response)
    }

    fn settle_scaled(&self, part: Part, permille: u64, from: Option<&Settled>, delays: Delays) -> Outcome {
        let users = users(self.scale.system, part);
        let body = |task| self.scale.body(task, part, permille);
        let settle = |tables: &Tables<'_>, sharing: &Sharing| {
            let load = self.load_with(tables, &users).ok_or(None)?;
            match (from, delays) {
                (Some(from), Delays::Known) => self.settle_beside(load, from),
                _ => self.with_bounds((tables, sharing, &users), |bounds| {
                    self.settle(load, bounds, from.map(|from| (from, self.others())))
                }),
            }
        };
        self.with_bodies(&users, body, settle).ok_or(None)?
    }

    fn settle_shrunk(&self, tasks: &Range<usize>, from: Option<&Settled>) -> Option<Settled> {
        self.scale.shrunk(tasks).and_then(|system| self.settle_system(&system, from).ok())
    }
}

impl<'a> Search<'a> {
    /// Returns the search of one thread, or `None` if a number does not fit.
    fn new(
        tables: &'a Tables<'a>,
        scale: &'a Scale<'a>,
        ruling: Protocol,
        (crew, go_on): (&'a Crew, &'a dyn Fn() -> bool),
    ) -> Option<Self> {
        let (system, shape) = (tables.system, Shape::new(tables));
        let sharing = across::sharing(tables, ruling);
        let bounds = RefCell::new(Bounds::new(tables, ruling, &sharing).ok()?);
        let load = load(tables, ruling, &shape)?;
        let scratch = RefCell::new((system.clone(), sharing.clone()));
        let last = Cell::new((0, 0, 0));
        Some(Self { shape, scale, tables, ruling, crew, go_on, system, sharing, scratch, load, bounds, last })
    }

    /// Returns what `share` finds for each index below `count`, on all CPUs, or `None` if the search was interrupted.
    /// Each index stands for some of the `searches`. Each thread calls `share` once, with its own search and the
    /// indices that no other thread has.
    fn shared<R: Send>(
        &self,
        (count, searches): (usize, usize),
        share: impl Fn(&Search<'_>, &mut dyn Iterator<Item = usize>) -> Option<Vec<(usize, R)>> + Sync,
    ) -> Option<Vec<R>> {
        let (system, scale, ruling, crew) = (self.system, self.scale, self.ruling, self.crew);
        crew.each(
            (count, searches),
            self.go_on,
            |indices| share(self, indices),
            |indices| {
                let (tables, go_on) = (Tables::new(system, scale.protocol, Omission::NOTHING), || crew.goes_on());
                // The bounds of this system exist.
                let search = Search::new(&tables, scale, ruling, (crew, &go_on));
                search.map_or_else(|| Some(Vec::new()), |search| share(&search, indices))
            },
        )
    }

    fn all(&self) -> Option<Sensitivity> {
        let unchanged = self.settle(self.load.clone(), &mut self.bounds.borrow_mut(), None).ok();
        self.whole(
            unchanged,
            |count, settled| self.all_rooms(count, settled),
            |parts, unchanged, rooms| {
                let count = parts.len();
                self.shared((count, count), |search, indices| search.growths(parts, unchanged, rooms, indices))
            },
        )
    }

    /// Returns the rooms of the first `count` tasks, or `None` if the search was interrupted. The order is that of
    /// their places, because adjacent tasks often have similar rooms.
    fn all_rooms(&self, count: usize, settled: &Settled) -> Option<Vec<u64>> {
        let order: Vec<TaskId> = self.shape.ids.iter().copied().filter(|id| id.index() < count).collect();
        let blocks: Vec<&[TaskId]> = order.chunks(BLOCK).collect();
        let found = self.shared((blocks.len(), count), |search, indices| search.rooms(settled, &blocks, indices))?;
        let mut rooms = vec![0; count];
        for (id, room) in order.iter().zip(found.into_iter().flatten()) {
            rooms[id.index()] = room;
        }
        Some(rooms)
    }

    /// Returns the rooms of the tasks in the blocks with these indices, or `None` if the search was interrupted.
    fn rooms(
        &self,
        settled: &Settled,
        blocks: &[&[TaskId]],
        indices: &mut dyn Iterator<Item = usize>,
    ) -> Option<Vec<(usize, Vec<u64>)>> {
        let mut most = Rooms::new(&self.shape, &settled.form, &settled.point);
        let sure = self.sure();
        let mut sure = sure.as_ref().map(|sure| Rooms::new(&self.shape, &sure.form, &sure.point));
        let mut room = |&task: &TaskId| {
            let room = self.room(settled, &mut most, sure.as_mut(), task)?;
            self.crew.add(1);
            Some(room)
        };
        indices.map(|index| Some((index, blocks[index].iter().map(&mut room).collect::<Option<_>>()?))).collect()
    }

    /// Returns the form of `load` for these response times, by task, or `None` if there is no bound.
    fn form(&self, load: &Load, bounds: &mut Bounds, responses: &[u64], delays: &mut [Delay]) -> Option<Form> {
        bounds.set_responses(responses).and_then(|()| bounds.delays(delays)).ok()?;
        let count = load.costs.len();
        let (mut costs, mut blocking) = (vec![0; count], vec![0; count]);
        for place in 0..count {
            (costs[place], blocking[place]) = self.charged(load, bounds, delays, place)?;
        }
        Some(self.shape.form_of(costs, blocking, load.kept.clone()))
    }

    /// Returns the execution that others count, and the blocking of the task at `place`, with these delays, by task.
    fn charged(&self, load: &Load, bounds: &Bounds, delays: &[Delay], place: usize) -> Option<(u64, u64)> {
        let charge = bounds.charge(&delays[self.shape.id(place).index()])?;
        let cost = (load.costs[place] - load.away[place]).checked_add(charge.executed)?;
        let blocked = load.away[place].checked_add(load.local[place])?.checked_add(charge.suspended)?;
        Some((cost, blocked.checked_add(charge.blocked)?))
    }

    /// Returns the form of `load` with the delays of a settled load.
    fn form_beside(&self, load: &Load, known: &Settled) -> Option<Form> {
        let count = load.costs.len();
        let (mut costs, mut blocking) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for place in 0..count {
            let executed = known.form.costs[place] - (known.load.costs[place] - known.load.away[place]);
            costs.push((load.costs[place] - load.away[place]).checked_add(executed)?);
            let delayed = known.form.blocking[place] - known.load.away[place] - known.load.local[place];
            blocking.push(load.away[place].checked_add(load.local[place])?.checked_add(delayed)?);
        }
        Some(self.shape.form_of(costs, blocking, load.kept.clone()))
    }

    /// Raises response times to the fixed point of a form of `load`. The error is a point at which a deadline is
    /// missed. See [`Shape::raise`] for `last`.
    fn raise(&self, load: Load, form: Form, last: Option<&Form>, responses: &mut [u64]) -> Outcome {
        let (point, raised) = self.shape.raise(&form, last, responses);
        let settled = Settled { load, form, point, known: None, delays: Vec::new() };
        if raised.is_some() { Ok(settled) } else { Err(Some(Box::new(settled))) }
    }

    /// Returns the response times, by task, of these execution times and what is beside them, by place.
    fn responses(&self, costs: &[u64], beside: impl Fn(usize) -> u64) -> Option<Vec<u64>> {
        let mut responses = vec![0; costs.len()];
        for (place, cost) in costs.iter().enumerate() {
            responses[self.shape.id(place).index()] = cost.checked_add(beside(place))?;
        }
        Some(responses)
    }

    /// Like [`settle`](Self::settle), with the delays of `from`. The fixed point is then not above that of `settle`.
    fn settle_beside(&self, load: Load, from: &Settled) -> Outcome {
        let form = self.form_beside(&load, from).ok_or(None)?;
        // No jitter differs from that at `from`, so the equations that differ are those whose form does.
        let mut responses = self.responses(&form.costs, |place| from.point.beside[place]).ok_or(None)?;
        self.raise(load, form, Some(&from.form), &mut responses)
    }

    /// Returns the least fixed point of `load` if all deadlines are met there. Otherwise, the error is a point below it
    /// at which a deadline is missed, if there is one. `from` is the fixed point of a load that is not above.
    ///
    /// In each round, only those delays are computed that can differ from the last ones.
    fn settle(&self, load: Load, bounds: &mut Bounds, from: Option<(&Settled, Requests)>) -> Outcome {
        let mut delays = vec![Delay::default(); load.costs.len()];
        // The response times for which the delays are known.
        let mut known = None;
        let (mut responses, mut climb) = match from {
            Some((from, requests)) => {
                if let Some(known) = &from.known {
                    bounds.recall(known);
                }
                if requests == Requests::Same && !from.delays.is_empty() {
                    delays.copy_from_slice(&from.delays);
                    known = Some(self.responses(&from.form.costs, |place| from.point.beside[place]).ok_or(None)?);
                }
                let near = match self.is_near() {
                    true => self.settle_near(load.clone(), bounds, from, &mut delays)?,
                    false => self.settle_beside(load.clone(), from)?,
                };
                let responses = self.responses(&near.form.costs, |place| near.point.beside[place]).ok_or(None)?;
                let climb = Climb::new(&self.shape, near.form, &responses, 0..load.costs.len());
                (responses, climb)
            }
            None => {
                let responses = self.responses(&load.costs, |place| self.shape.jitter(place)).ok_or(None)?;
                let form = self.form(&load, bounds, &responses, &mut delays).ok_or(None)?;
                known = Some(responses.clone());
                let climb = Climb::below(&self.shape, form, &responses);
                (responses, climb)
            }
        };
        let mut marked = vec![false; delays.len()];
        for _ in 0..ROUNDS_MAX {
            bounds.set_responses(&responses).map_err(|_| None)?;
            marked.fill(known.is_none());
            if let Some(known) = &known {
                bounds.mark_changed(known, &mut marked);
            }
            bounds.delays_again(&mut marked, &mut delays).map_err(|_| None)?;
            for place in (0..marked.len()).filter(|&place| marked[self.shape.id(place).index()]) {
                let (cost, blocking) = self.charged(&load, bounds, &delays, place).ok_or(None)?;
                climb.set(place, cost, blocking);
            }
            match &mut known {
                Some(known) => known.copy_from_slice(&responses),
                None => known = Some(responses.clone()),
            }
            let risen = climb.rise(&mut responses);
            if risen != Some(true) {
                let (form, point) = climb.into_parts();
                if risen.is_none() {
                    return Err(Some(Box::new(Settled { load, form, point, known: None, delays: Vec::new() })));
                }
                return Ok(Settled { load, form, point, known: bounds.known(), delays });
            }
        }
        Err(None)
    }

    /// Returns the system with the bounds for response times equal to the deadlines, if all deadlines are met then.
    fn sure(&self) -> Option<Settled> {
        if self.shape.is_coupled() || self.depends_on_execution() {
            return None;
        }
        let mut delays = vec![Delay::default(); self.load.costs.len()];
        let deadlines: Vec<u64> = self.system.tasks().iter().map(|task| task.deadline.as_ns()).collect();
        let form = self.form(&self.load, &mut self.bounds.borrow_mut(), &deadlines, &mut delays)?;
        let mut responses: Vec<u64> =
            self.system.tasks().iter().map(|task| task.wcet.as_ns() + task.jitter.as_ns()).collect();
        let (point, raised) = self.shape.raise(&form, None, &mut responses);
        raised.map(|_| Settled { load: self.load.clone(), form, point, known: None, delays: Vec::new() })
    }

    /// Returns whether the protocol's bounds depend on execution outside of sections.
    fn depends_on_execution(&self) -> bool {
        matches!(self.ruling, Protocol::FmlpLong | Protocol::LockFree)
    }

    /// Returns how the requests of a load with other execution times count. Bounds that continue from what is known of
    /// the fixed point mark what differs themselves.
    fn others(&self) -> Requests {
        if self.depends_on_execution() { Requests::Same } else { Requests::Other }
    }

    /// Returns how much longer the task can execute outside of its sections, or `None` if the search was interrupted.
    fn room(
        &self,
        settled: &Settled,
        most: &mut Rooms<'_, '_>,
        sure: Option<&mut Rooms<'_, '_>>,
        task: TaskId,
    ) -> Option<u64> {
        self.asked()?;
        let place = self.shape.place(task);
        let most = most.of(place, self.go_on)?;
        let sure = match sure {
            Some(sure) if most > 0 => sure.of(place, self.go_on)?,
            _ => 0,
        };
        let (cpu, limit) = (self.system.task(task).cpu.0, Cell::new(most));
        let guess = |most: u64| {
            limit.set(most);
            let (of, room, limit) = self.last.get();
            // A room is often that of the last task, or the most that it can be.
            if of == cpu && room < limit / 4 * 3 { room } else { most }
        };
        let found = self.greatest((sure.min(most), most), settled, guess, |extra, from, delays| {
            let mut load = self.load.clone();
            load.costs[place] = load.costs[place].checked_add(extra).ok_or(None)?;
            if delays == Delays::Known {
                return self.settle_beside(load, from);
            }
            if !self.depends_on_execution() {
                return self.settle(load, &mut self.bounds.borrow_mut(), Some((from, Requests::Same)));
            }
            let longer = |task| {
                let mut body = self.system.task(task).body.clone();
                body.push(Step::Run(Duration::from_ns(extra)));
                Some(body)
            };
            let settle = |tables: &Tables<'_>, sharing: &Sharing| {
                self.with_bounds((tables, sharing, &[task]), |bounds| {
                    self.settle(load, bounds, Some((from, self.others())))
                })
            };
            self.with_bodies(&[task], longer, settle).ok_or(None)?
        })?;
        self.last.set((cpu, found, limit.get()));
        Some(found)
    }

    /// Returns the result of `of` for the system with other bodies of these tasks, or `None` if a body is not valid.
    fn with_bodies<R>(
        &self,
        tasks: &[TaskId],
        body: impl Fn(TaskId) -> Option<Vec<Step>>,
        of: impl FnOnce(&Tables<'_>, &Sharing) -> R,
    ) -> Option<R> {
        let (system, sharing) = &mut *self.scratch.borrow_mut();
        let is_valid = tasks.iter().all(|&task| body(task).is_some_and(|body| system.set_body(task, body).is_ok()));
        let found = is_valid.then(|| {
            for &task in tasks {
                let sharer = &mut sharing.tasks[task.index()];
                sharer.cost = system.task(task).wcet.as_ns();
                sharer.requests = across::counted(self.tables, self.ruling, demands(system, task));
            }
            of(&self.tables.of_form(system), sharing)
        });
        for &task in tasks {
            sharing.tasks[task.index()].clone_from(&self.sharing.tasks[task.index()]);
            // The original body is valid.
            system.set_body(task, self.system.task(task).body.clone()).ok()?;
        }
        found
    }

    /// Returns the result of `settle` for the bounds of a system that differs from this one in these tasks.
    fn with_bounds(
        &self,
        (tables, sharing, tasks): (&Tables<'_>, &Sharing, &[TaskId]),
        settle: impl FnOnce(&mut Bounds) -> Outcome,
    ) -> Outcome {
        let mut bounds = self.bounds.borrow_mut();
        if !bounds.set_tasks(tables.system, sharing, tasks) {
            return settle(&mut Bounds::new(tables, self.ruling, sharing).map_err(|_| None)?);
        }
        let found = settle(&mut bounds);
        bounds.set_tasks(self.system, &self.sharing, tasks);
        found
    }

    /// Returns the load of a system that differs from this one in the execution times of these tasks.
    fn load_with(&self, tables: &Tables<'_>, tasks: &[TaskId]) -> Option<Load> {
        let mut load = self.load.clone();
        let places = || tasks.iter().map(|&task| self.shape.place(task));
        for (&task, place) in tasks.iter().zip(places()) {
            load.costs[place] = tables.system.task(task).wcet.as_ns();
            load.away[place] = across::away(tables, self.ruling, task);
        }
        let mut blocked: Vec<usize> = places().flat_map(|place| self.shape.more_urgent(place)).collect();
        blocked.sort_unstable();
        blocked.dedup();
        load.set_local(tables, self.ruling, &self.shape, blocked)?;
        Some(load)
    }

    fn settle_system(&self, system: &System, from: Option<&Settled>) -> Outcome {
        let tables = self.tables.of_form(system);
        let mut bounds = Bounds::new(&tables, self.ruling, &across::sharing(&tables, self.ruling)).map_err(|_| None)?;
        let load = load(&tables, self.ruling, &self.shape).ok_or(None)?;
        self.settle(load, &mut bounds, from.map(|from| (from, Requests::Other)))
    }
}
