//! The factors of a system that [`joint`](super::joint) covers.
//!
//! The time that a task has room for outside of its sections is found first. Beyond it no factor helps its execution times, nor any part of them; so where sections grow,
//! too, the search begins there.

use super::joint::{Changed, Form, Point, Rooms, Shape};
use super::{FACTOR_MAX, Growth, Part, Progress, Sensitivity, scaled, scaled_body};
use crate::tables::Tables;
use lockwright_model::{Duration, Overheads, Protocol, System, TaskId};
use std::cell::RefCell;

/// What is looked for, and what is known.
struct Search<'a, F> {
    shape: Shape<'a>,
    progress: &'a Progress<F>,
    system: &'a System,
    /// The same, but while a form is made of it.
    scratch: RefCell<System>,
    form: Form,
    /// Where all deadlines hold as it is: the fixed point, and how much longer each task can execute, by id.
    unchanged: Option<(Point, Vec<u64>)>,
}

/// As [`sensitivity`](super::sensitivity()).
pub(super) fn find<F: FnMut(usize, usize) -> bool>(
    tables: &Tables<'_>,
    protocol: Protocol,
    progress: &Progress<F>,
) -> Option<Sensitivity> {
    let system = tables.system;
    let shape = Shape::new(tables);
    let Some(form) = shape.form(system) else {
        // A number does not fit; in a form with shorter times it may.
        return super::plain(system, &Overheads::default(), protocol, progress);
    };
    let holds = shape.settle(&form, &shape.bottom(), Changed::Anything);
    let scratch = RefCell::new(system.clone());
    let mut search = Search { shape, progress, system, scratch, form, unchanged: None };
    if let Some(point) = holds {
        let mut alone = Rooms::new(&search.shape, &search.form, &point);
        let room = |task| {
            let most = search.room(&mut alone, &point, task)?;
            progress.add();
            Some(most)
        };
        let rooms = system.task_ids().map(room).collect::<Option<Vec<u64>>>()?;
        search.unchanged = Some((point, rooms));
    } else {
        system.tasks().iter().for_each(|_| progress.add());
    }
    let growth = |part| {
        let growth = search.growth(part)?;
        progress.add();
        Some(growth)
    };
    let all = growth(Part::All)?;
    let tasks = system.task_ids().map(|task| Some((task, growth(Part::Task(task))?))).collect::<Option<_>>()?;
    let resources = system.resource_ids().map(|resource| Some((resource, growth(Part::Sections(resource))?)));
    let resources = resources.collect::<Option<_>>()?;
    let room = |task: TaskId| search.unchanged.as_ref().map(|(_, rooms)| Duration::from_ns(rooms[task.index()]));
    let tolerated = system.task_ids().map(|task| (task, room(task))).collect();
    Some(Sensitivity { all, tasks, resources, tolerated })
}

impl<F: FnMut(usize, usize) -> bool> Search<'_, F> {
    fn asked(&self) -> Option<()> {
        self.progress.asked().then_some(())
    }

    /// How much longer the task can execute outside of its sections. `None` where it was interrupted.
    fn room(&self, alone: &mut Rooms<'_, '_>, point: &Point, task: TaskId) -> Option<u64> {
        self.asked()?;
        let place = self.shape.place(task);
        let most = alone.of(place, &|| self.progress.asked())?;
        if most == 0 || !self.shape.is_coupled() {
            return Some(most);
        }
        let form = |extra| self.shape.lengthened(&self.form, place, extra);
        self.greatest((0, most), point.clone(), form, Changed::Cost(place))
    }

    /// The greatest amount whose form holds: at most the second. That of the first has its fixed point at or above `from`. `None` where it was interrupted.
    fn greatest(
        &self,
        (mut holding, most): (u64, u64),
        mut from: Point,
        form: impl Fn(u64) -> Option<Form>,
        changed: Changed,
    ) -> Option<u64> {
        let (mut tried, mut breaking) = (most, most.saturating_add(1));
        // BOUND: each turn but the first halves the distance.
        while breaking - holding > 1 {
            self.asked()?;
            match form(tried).and_then(|form| self.shape.settle(&form, &from, changed)) {
                Some(point) => (holding, from) = (tried, point),
                None => breaking = tried,
            }
            tried = holding + (breaking - holding) / 2;
        }
        Some(holding)
    }

    fn form_of(&self, part: Part, permille: u64) -> Option<Form> {
        match part {
            Part::Task(task) => {
                let (body, _) = scaled_body(self.system.task(task), task, part, permille)?;
                let mut system = self.scratch.borrow_mut();
                system.set_body(task, body).ok()?;
                let form = self.shape.form_beside(&self.form, &system, self.shape.place(task));
                // What was valid is so again.
                system.set_body(task, self.system.task(task).body.clone()).ok()?;
                form
            }
            _ => self.shape.form(&scaled(self.system, part, permille)?),
        }
    }

    fn growth(&self, part: Part) -> Option<Growth> {
        self.asked()?;
        let users: Vec<TaskId> = match part {
            Part::All => self.system.task_ids().collect(),
            Part::Task(task) => vec![task],
            Part::Sections(resource) => self.system.users(resource).to_vec(),
        };
        if users.is_empty() {
            return Some(Growth::Unlimited);
        }
        let form = |permille| self.form_of(part, permille);
        let Some((point, rooms)) = &self.unchanged else {
            let least = form(1).and_then(|form| self.shape.settle(&form, &self.shape.bottom(), Changed::Anything));
            let Some(least) = least else { return Some(Growth::Broken) };
            return self.greatest((1, 999), least, form, Changed::Anything).map(Growth::Permille);
        };
        let most = users.iter().map(|&user| self.factor_within(user, part, rooms[user.index()])).min();
        let most = most.unwrap_or(FACTOR_MAX);
        let has_sections = users.iter().any(|&user| !self.system.sections(user).is_empty());
        let found = match part {
            // What is outside of sections alone is what it has room for.
            Part::Task(_) if !has_sections => most,
            Part::Task(task) => {
                self.greatest((1000, most), point.clone(), form, Changed::Sections(self.shape.place(task)))?
            }
            _ => self.greatest((1000, most), point.clone(), form, Changed::Anything)?,
        };
        Some(if found == FACTOR_MAX { Growth::Unlimited } else { Growth::Permille(found) })
    }

    /// The largest factor of that part with which the task executes no more than so much longer.
    fn factor_within(&self, id: TaskId, part: Part, room: u64) -> u64 {
        let task = self.system.task(id);
        let most = task.wcet.as_ns().saturating_add(room);
        let fits = |permille| scaled_body(task, id, part, permille).is_some_and(|(_, wcet)| wcet.as_ns() <= most);
        if fits(FACTOR_MAX) {
            return FACTOR_MAX;
        }
        let (mut holding, mut breaking) = (1000, FACTOR_MAX);
        // BOUND: thirty halvings.
        while breaking - holding > 1 {
            let middle = holding + (breaking - holding) / 2;
            if fits(middle) {
                holding = middle;
            } else {
                breaking = middle;
            }
        }
        holding
    }
}
