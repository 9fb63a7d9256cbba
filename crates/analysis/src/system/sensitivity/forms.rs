//! The search in systems that [`joint`](super::joint) covers.
//!
//! The room of each task for execution outside of its sections is found first. No factor of its execution times, or of
//! a part of them, exceeds that room. If sections grow as well, the search begins there.

use super::bisection;
use super::growth::{FACTOR_MAX, Growth, Progress, Sensitivity};
use super::joint::{Changed, Form, Point};
use super::locals::Locals;
use super::rooms::Rooms;
use super::scale::{Part, Scale, users};
use super::shape::Shape;
use crate::rows::tables::Tables;
use lockwright_model::{Duration, System, TaskId};
use std::cell::RefCell;
use std::ops::Range;

/// The step of a search that halves from the beginning.
const FAR: u64 = u64::MAX;

/// The search and its known values.
struct Search<'a, F> {
    shape: &'a Shape<'a>,
    progress: &'a Progress<F>,
    scale: &'a Scale<'a>,
    /// The system with overheads.
    system: &'a System,
    /// The system, which changes while a form is built.
    scratch: RefCell<System>,
    form: &'a Form,
    /// The local and boosted blocking of the unchanged system.
    locals: Locals,
    /// The known values if the unchanged system meets all deadlines.
    unchanged: Option<Unchanged<'a>>,
}

/// The known values of an unchanged system that meets all deadlines.
struct Unchanged<'a> {
    /// The fixed point.
    point: &'a Point,
    alone: RefCell<Rooms<'a, 'a>>,
    /// How much longer each task can execute outside of its sections, by id.
    rooms: Vec<u64>,
}

/// Like [`sensitivity`](super::sensitivity()).
pub(super) fn find<F: FnMut(usize, usize) -> bool>(
    tables: &Tables<'_>,
    scale: &Scale<'_>,
    progress: &Progress<F>,
) -> Option<Sensitivity> {
    let (system, judged) = (tables.system, scale.system);
    let shape = Shape::new(tables);
    let Some(form) = shape.form(system) else {
        // A number does not fit. It may fit in a form with shorter times.
        return bisection::find(scale.system, scale.overheads, scale.protocol, progress);
    };
    let holds = shape.settle(&form, &shape.bottom(), Changed::Anything);
    let scratch = RefCell::new(system.clone());
    let mut search = Search {
        shape: &shape,
        progress,
        scale,
        system,
        scratch,
        form: &form,
        locals: shape.locals(),
        unchanged: None,
    };
    if let Some(point) = &holds {
        let mut alone = Rooms::new(&shape, &form, point);
        let room = |task| {
            let most = search.room(&mut alone, point, task)?;
            progress.add();
            Some(most)
        };
        let rooms = judged.task_ids().map(room).collect::<Option<Vec<u64>>>()?;
        search.unchanged = Some(Unchanged { point, alone: RefCell::new(alone), rooms });
    } else {
        judged.tasks().iter().for_each(|_| progress.add());
    }
    let growth = |part| {
        let growth = search.growth(part)?;
        progress.add();
        Some(growth)
    };
    let all = growth(Part::All)?;
    let tasks = if search.unchanged.is_some() {
        judged.task_ids().map(|task| growth(Part::Task(task))).collect::<Option<Vec<Growth>>>()?
    } else {
        let mut found = Vec::with_capacity(judged.tasks().len());
        search.shrink(0..judged.tasks().len(), &shape.bottom(), &mut found)?;
        found
    };
    let tasks = judged.task_ids().zip(tasks).collect();
    let resources = judged.resource_ids().map(|resource| Some((resource, growth(Part::Sections(resource))?)));
    let resources = resources.collect::<Option<_>>()?;
    let room = |task: TaskId| search.unchanged.as_ref().map(|known| Duration::from_ns(known.rooms[task.index()]));
    let tolerated = judged.task_ids().map(|task| (task, room(task))).collect();
    Some(Sensitivity { all, tasks, resources, tolerated })
}

impl<F: FnMut(usize, usize) -> bool> Search<'_, F> {
    fn asked(&self) -> Option<()> {
        self.progress.asked().then_some(())
    }

    /// Returns how much longer the task can execute outside of its sections, or `None` if the search was interrupted.
    fn room(&self, alone: &mut Rooms<'_, '_>, point: &Point, task: TaskId) -> Option<u64> {
        self.asked()?;
        let place = self.shape.place(task);
        let most = alone.of(place, &|| self.progress.asked())?;
        if most == 0 || !self.shape.is_coupled() {
            return Some(most);
        }
        self.coupled(place, most, point)
    }

    /// Returns how much longer the task at `place` can execute, up to `most`, if response times depend on each other.
    /// Returns `None` if the search was interrupted.
    ///
    /// The deadline that was missed last limits the amount: an upper limit follows from the other response times with
    /// an amount that holds, and an estimate from those with the amount that failed.
    fn coupled(&self, place: usize, most: u64, point: &Point) -> Option<u64> {
        let (mut holding, mut breaking, mut tried) = (0, most.saturating_add(1), most);
        let (mut from, mut turn, mut beyond) = (point.clone(), 0_u32, 1_u64);
        // BOUND: one of four rounds halves the distance.
        while breaking - holding > 1 {
            self.asked()?;
            let form = self.shape.lengthened(self.form, place, tried);
            let settled =
                form.ok_or(None).and_then(|form| self.shape.settle_or_break(&form, &from, Changed::Cost(place)));
            let last = breaking;
            let next = match settled {
                Ok(point) => {
                    (holding, from, beyond) = (tried, point, 1);
                    let most = Rooms::at(self.shape, self.form, &from).of_critical(place, (holding, breaking - 1));
                    breaking = most.saturating_add(1);
                    (breaking < last).then_some(most)
                }
                Err(broken) => {
                    breaking = tried;
                    let near = broken.map(|point| {
                        Rooms::at(self.shape, self.form, &point).of_critical(place, (holding, breaking - 1))
                    });
                    // An estimate that was too great more than once is far too great.
                    let far = near.map(|near| (breaking - near).saturating_mul(beyond));
                    beyond = beyond.saturating_mul(4);
                    far.and_then(|far| breaking.checked_sub(far)).filter(|&next| next > holding)
                }
            };
            turn += 1;
            let middle = holding + (breaking - holding) / 2;
            tried = if turn.is_multiple_of(4) { middle } else { next.unwrap_or(middle) };
        }
        Some(holding)
    }

    /// Returns the greatest amount whose form holds, up to the second one given. The form of the first amount has its
    /// fixed point at or above `from`. Returns `None` if the search was interrupted.
    fn greatest(
        &self,
        amounts: (u64, u64),
        mut from: Point,
        form: impl Fn(u64) -> Option<Form>,
        changed: Changed,
        step: u64,
    ) -> Option<u64> {
        self.greatest_of(amounts, step, |tried| {
            let found = form(tried).and_then(|form| self.shape.settle(&form, &from, changed));
            found.map(|point| from = point).is_some()
        })
    }

    /// Returns the greatest amount that `holds`, between the two given. The first amount holds. Returns `None` if the
    /// search was interrupted.
    ///
    /// The first trial is one step below the second amount. The step then grows eightfold, until halving is cheaper.
    fn greatest_of(
        &self,
        (mut holding, most): (u64, u64),
        mut step: u64,
        mut holds: impl FnMut(u64) -> bool,
    ) -> Option<u64> {
        let (mut tried, mut breaking) = (most, most.saturating_add(1));
        // BOUND: each round except the first and thirty-two more halves the distance.
        while breaking - holding > 1 {
            self.asked()?;
            if holds(tried) {
                (holding, step) = (tried, FAR);
            } else {
                breaking = tried;
            }
            let half = (breaking - holding) / 2;
            tried = if step < half { breaking - step } else { holding + half };
            step = step.saturating_mul(8);
        }
        Some(holding)
    }

    /// Returns the result of `of` for the system with the execution times of a part multiplied by `permille` / 1000, or
    /// `None` if that is not valid.
    fn with_part<R>(&self, part: Part, permille: u64, of: impl FnOnce(&System) -> R) -> Option<R> {
        let users = users(self.scale.system, part);
        let mut system = self.scratch.borrow_mut();
        let mut scale = |&user: &TaskId| {
            let body = self.scale.body(user, part, permille);
            body.is_some_and(|body| system.set_body(user, body).is_ok())
        };
        let is_valid = users.iter().all(&mut scale);
        let found = is_valid.then(|| of(&system));
        for user in users {
            // The original body is valid.
            system.set_body(user, self.system.task(user).body.clone()).ok()?;
        }
        found
    }

    /// Returns the greatest factor of a task's execution times, up to `most`, if no task suspends. Returns `None` if
    /// the search was interrupted.
    ///
    /// Deadlines are examined one after another. A factor that was found for the previous ones is seldom too great for
    /// the next.
    fn beside(&self, task: TaskId, most: u64, alone: &mut Rooms<'_, '_>) -> Option<u64> {
        let place = self.shape.place(task);
        let mut most = self
            .greatest_of((1000, most), FAR, |permille| self.with_part(Part::Task(task), permille, |_| ()).is_some())?;
        let mut others = alone.resting(place);
        // BOUND: each round except the last finds a task that misses its deadline, and continues after it.
        loop {
            let mut hold = |system: &System| others.find(|&other| !alone.holds(place, system, &self.locals, other));
            let Some(other) = self.with_part(Part::Task(task), most, &mut hold)? else { return Some(most) };
            most = self.greatest_of((1000, most - 1), FAR, |permille| {
                let holds = |system: &System| alone.holds(place, system, &self.locals, other);
                self.with_part(Part::Task(task), permille, holds) == Some(true)
            })?;
        }
    }

    fn form_of(&self, part: Part, permille: u64) -> Option<Form> {
        self.with_part(part, permille, |system| match part {
            Part::Task(task) => self.shape.form_beside(self.form, &self.locals, system, self.shape.place(task)),
            _ => self.shape.form(system),
        })?
    }

    /// Adds the factors of the given tasks, by id, if the unchanged system misses a deadline. Returns `None` if the
    /// search was interrupted.
    ///
    /// If the system misses a deadline with all of these tasks shrunk to almost nothing, it does so with none of them
    /// shrunk. If it meets all deadlines, the search for the fixed points of subsets begins there.
    fn shrink(&self, tasks: Range<usize>, from: &Point, found: &mut Vec<Growth>) -> Option<()> {
        self.asked()?;
        let Some(point) = self
            .scale
            .shrunk(&tasks)
            .and_then(|system| self.shape.form(&system))
            .and_then(|form| self.shape.settle(&form, from, Changed::Anything))
        else {
            for _ in tasks {
                found.push(Growth::Broken);
                self.progress.add();
            }
            return Some(());
        };
        if tasks.len() > 1 {
            let middle = tasks.start + tasks.len() / 2;
            self.shrink(tasks.start..middle, &point, found)?;
            return self.shrink(middle..tasks.end, &point, found);
        }
        for task in tasks.map(TaskId::new) {
            let form = |permille| self.form_of(Part::Task(task), permille);
            let most = self.greatest((1, 999), point.clone(), form, Changed::Sections(self.shape.place(task)), FAR)?;
            found.push(Growth::Permille(most));
            self.progress.add();
        }
        Some(())
    }

    fn growth(&self, part: Part) -> Option<Growth> {
        self.asked()?;
        let users = users(self.scale.system, part);
        if users.is_empty() {
            return Some(Growth::Unlimited);
        }
        let form = |permille| self.form_of(part, permille);
        let Some(Unchanged { point, alone, rooms }) = &self.unchanged else {
            let least = form(1).and_then(|form| self.shape.settle(&form, &self.shape.bottom(), Changed::Anything));
            let Some(least) = least else { return Some(Growth::Broken) };
            return self.greatest((1, 999), least, form, Changed::Anything, FAR).map(Growth::Permille);
        };
        let most = users.iter().map(|&user| self.scale.factor_within(user, part, rooms[user.index()])).min();
        let most = most.unwrap_or(FACTOR_MAX);
        let has_sections = users.iter().any(|&user| !self.system.sections(user).is_empty());
        let found = match part {
            // If only execution outside of sections grows, the room is the limit.
            Part::Task(_) if !has_sections => most,
            Part::Task(task) if self.shape.is_coupled() => {
                // Sections are seldom a large part of the execution time.
                let changed = Changed::Sections(self.shape.place(task));
                self.greatest((1000, most), Point::clone(point), form, changed, 1)?
            }
            Part::Task(task) => self.beside(task, most, &mut alone.borrow_mut())?,
            _ => self.greatest((1000, most), Point::clone(point), form, Changed::Anything, FAR)?,
        };
        Some(Growth::found(found))
    }
}
