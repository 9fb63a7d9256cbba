//! How much longer one task can execute under partitioned EDF if the unchanged system meets all deadlines.
//!
//! Execution outside of sections changes neither the blocking nor the spinning on other processors. An additional
//! amount e in each job of one task is therefore possible if, for every interval t of its processor,
//! ```text
//!   h(t) + jobs(t) * e + B(t) <= t
//! ```
//! The time left in an interval of the unchanged system, divided by the number of the task's jobs in it, limits the
//! amount. The search tries the greatest amount that no known interval refutes. It holds, or yields one more interval.
//! Intervals are tested from the longest down, so those beyond that one have room for the amount, and for any smaller
//! one. The next test leaves them out.

use super::crew::Crew;
use super::growth::{FACTOR_MAX, Growth, Progress, Sensitivity};
use super::scale::{Part, greatest_factor, halve, scaled_body, users};
use crate::overheads::edf::Charges;
use crate::rows::failure::Failure;
use crate::rows::fixed_point::TERMS_MAX;
use crate::rows::mutant::Omission;
use crate::rows::sharing::{Demand, Sharer, Sharing, demands};
use crate::rows::sporadic::Sporadic;
use crate::system::scheduled::{long_resource, processors_with_tasks, rows};
use crate::uniprocessor::Effort;
use crate::uniprocessor::edf::{self, Demand as Load, Step};
use lockwright_model::{Duration, Overheads, STEPS_MAX, Scheduler, System, TaskId};
use std::cell::RefCell;

/// The most terms to decide whether a system with scaled execution times is schedulable under partitioned EDF. If
/// almost all of a processor is used, the greatest factor may need more; a smaller factor is then found.
pub(super) const FORM_TERMS_MAX: u64 = TERMS_MAX / 16;

/// The most terms of a test that is to be quick.
const QUICK_TERMS_MAX: u64 = TERMS_MAX / 1024;

/// Where tests are not quick, the search ends once the amount is known to this part.
const SHARE: u64 = 1024;

/// The number of intervals that are looked at before a test.
const LATEST: usize = 64;

/// One unchanged processor.
struct Processor {
    /// Its tasks, and those that share a resource with them.
    sharing: Sharing,
    /// The same, which changes while a form is judged.
    scratch: RefCell<Sharing>,
    /// By task id: its place in the sharing.
    places: Vec<Option<u32>>,
    cpu: u16,
    tasks: Vec<Sporadic>,
    blocking: Vec<Step>,
    demand: Load,
    /// Intervals, and the time left in each.
    seen: RefCell<Vec<(u64, u64)>>,
    /// The number of those that the search for any factor begins with.
    first: usize,
}

/// All processors.
pub(super) struct Processors<'a> {
    system: &'a System,
    /// Nothing is charged without these.
    charges: Option<Charges<'a>>,
    /// The system with the cost of all operations, which changes while a form is built.
    scratch: RefCell<System>,
    processors: Vec<Processor>,
    /// By task: its processor, and its place there.
    places: Vec<(usize, usize)>,
}

/// The result of one thread for a processor: the rooms of its tasks, by id, and the intervals seen.
type Found = (Vec<(TaskId, u64)>, Vec<(u64, u64)>);

/// Returns the result for a system that meets all deadlines. The inner `None` means that this search does not cover it.
/// Threads share the search; see [`crew`](super::crew).
pub(super) fn find<F: FnMut(usize, usize) -> bool>(
    system: &System,
    overheads: &Overheads,
    progress: &Progress<F>,
) -> Option<Option<Sensitivity>> {
    let crew = Crew::default();
    let go_on = || crew.report(progress);
    let Some(own) = Processors::new(system, overheads) else { return Some(None) };
    // The other threads cover what this one covers.
    let others = || (Processors::new(system, overheads), || crew.goes_on());
    let rooms_of = |processors: &Processors<'_>, go_on: &dyn Fn() -> bool, indices: &mut dyn Iterator<Item = usize>| {
        indices.map(|index| Some((index, processors.rooms(index, &crew, go_on)?))).collect::<Option<Vec<_>>>()
    };
    let found: Vec<Found> = crew.each(
        (own.processors.len(), system.tasks().len()),
        &go_on,
        |indices| rooms_of(&own, &go_on, indices),
        |indices| match others() {
            (Some(processors), go_on) => rooms_of(&processors, &go_on, indices),
            (None, _) => Some(Vec::new()),
        },
    )?;
    let mut rooms = vec![0; system.tasks().len()];
    found.iter().flat_map(|(its, _)| its).for_each(|&(task, room)| rooms[task.index()] = room);
    let mut parts = vec![Part::All];
    parts.extend(system.task_ids().map(Part::Task));
    parts.extend(system.resource_ids().map(Part::Sections));
    let growths =
        |mut processors: Processors<'_>, go_on: &dyn Fn() -> bool, indices: &mut dyn Iterator<Item = usize>| {
            for (processor, (_, seen)) in processors.processors.iter_mut().zip(&found) {
                (processor.first, processor.seen) = (seen.len(), RefCell::new(seen.clone()));
            }
            let growth = |index: usize| {
                let growth = processors.growth(parts[index], &rooms, go_on)?;
                crew.add(1);
                Some((index, growth))
            };
            indices.map(growth).collect::<Option<Vec<_>>>()
        };
    let mut growths = crew.each(
        (parts.len(), parts.len()),
        &go_on,
        |indices| growths(own, &go_on, indices),
        |indices| match others() {
            (Some(processors), go_on) => growths(processors, &go_on, indices),
            (None, _) => Some(Vec::new()),
        },
    )?;
    let resources = growths.split_off(1 + system.tasks().len());
    let all = growths.remove(0);
    let tolerated = system.task_ids().zip(rooms).map(|(task, most)| (task, Some(Duration::from_ns(most)))).collect();
    Some(Some(Sensitivity {
        all,
        tasks: system.task_ids().zip(growths).collect(),
        resources: system.resource_ids().zip(resources).collect(),
        tolerated,
    }))
}

/// A processor that feels the search for a factor.
struct Felt<'p> {
    processor: &'p Processor,
    /// The length from which on intervals were tested with a greater factor.
    below: u64,
    /// The greatest factor with which the processor is known to meet its deadlines.
    held: u64,
}

/// The verdict on a form.
enum Verdict {
    Holds,
    Broken,
    /// More is due in an interval than fits.
    Exceeds {
        /// The time left in it in the unchanged system.
        left: u64,
        /// The work that does not fit; above 0.
        over: u64,
    },
}

impl Verdict {
    /// Returns the verdict if more is due in an interval, given with the time left in the unchanged system, than fits.
    fn at((interval, left): (u64, u64), demand: &Load, blocking: &[Step]) -> Option<Self> {
        match demand.due(blocking, interval) {
            None => Some(Self::Broken),
            Some(due) => {
                Some(due.checked_sub(interval)?).filter(|&over| over > 0).map(|over| Self::Exceeds { left, over })
            }
        }
    }
}

impl Processor {
    fn new(system: &System, all: &Sharing, cpu: u16) -> Option<Self> {
        let is_used = |resource: u16| {
            let mut local = all.tasks.iter().filter(|task| task.cluster == cpu);
            local.any(|task| task.requests.iter().any(|request| request.resource == resource))
        };
        let used: Vec<bool> = system.resource_ids().map(|resource| is_used(resource.0)).collect();
        let mut sharing = all.clone();
        for task in sharing.tasks.iter_mut().filter(|task| task.cluster != cpu) {
            task.requests.retain(|request| used[usize::from(request.resource)]);
        }
        let is_kept = |task: &Sharer| task.cluster == cpu || !task.requests.is_empty();
        let mut kept = 0;
        let place = |task: &Sharer| {
            let place = is_kept(task).then_some(kept);
            kept += u32::from(place.is_some());
            place
        };
        let places = sharing.tasks.iter().map(place).collect();
        sharing.tasks.retain(is_kept);
        let (tasks, blocking) = edf::msrp(&sharing, cpu).ok()?;
        let demand = Load::new(&tasks).ok()?;
        let left = |interval| Some((interval, demand.room(&blocking, interval)?));
        let seen: Vec<(u64, u64)> = edf::early(&tasks).map(left).collect::<Option<_>>()?;
        let scratch = RefCell::new(sharing.clone());
        let first = seen.len();
        Some(Self { sharing, scratch, places, cpu, tasks, blocking, demand, seen: RefCell::new(seen), first })
    }

    /// Returns the place of the task in the sharing, if it is there.
    fn place(&self, task: TaskId) -> Option<usize> {
        self.places[task.index()].map(|place| place as usize)
    }

    /// Returns the tasks and the blocking with these execution times and requests, or `None` if a number does not fit.
    fn with_bodies(&self, bodies: &[(TaskId, u64, Vec<Demand>)]) -> Option<(Vec<Sporadic>, Vec<Step>)> {
        let mut scratch = self.scratch.borrow_mut();
        for (task, cost, demands) in bodies {
            if let Some(place) = self.place(*task) {
                let its = &mut scratch.tasks[place];
                its.cost = *cost;
                for request in &mut its.requests {
                    let demand = demands.iter().find(|demand| demand.resource == request.resource);
                    *request = demand.copied().unwrap_or(*request);
                }
            }
        }
        let found = edf::msrp(&scratch, self.cpu).ok();
        for place in bodies.iter().filter_map(|(task, ..)| self.place(*task)) {
            scratch.tasks[place].clone_from(&self.sharing.tasks[place]);
        }
        found
    }

    /// Returns the greatest amount for the task at `place` that no known interval refutes.
    fn unrefuted(&self, place: usize) -> u64 {
        let room = |&(interval, left): &(u64, u64)| left.checked_div(self.demand.jobs(place, interval));
        self.seen.borrow().iter().filter_map(room).min().unwrap_or(0)
    }

    fn longer(&self, place: usize, extra: u64) -> Option<Vec<Sporadic>> {
        let mut tasks = self.tasks.clone();
        tasks[place].cost = tasks[place].cost.checked_add(extra)?;
        Some(tasks)
    }

    /// Returns how much longer the task at `place` can execute. The outer `None` means that the search was interrupted.
    fn room(&self, place: usize, go_on: &dyn Fn() -> bool) -> Option<u64> {
        let fits = |extra| self.longer(place, extra).is_some_and(|tasks| Load::new(&tasks).is_ok());
        // BOUND: each round except the last adds one interval to the finite number of those with demand.
        let (mut breaking, mut below) = (u64::MAX, u64::MAX);
        loop {
            go_on().then_some(())?;
            let mut most = self.unrefuted(place).min(breaking - 1);
            if !fits(most) {
                most = halve((0, most), |extra| Some(fits(extra)))?;
            }
            if most == 0 {
                return Some(0);
            }
            match self.verdict(place, most, below, Effort { terms: QUICK_TERMS_MAX, go_on }) {
                Ok(()) => return Some(most),
                Err(Failure::Interrupted) => return None,
                Err(Failure::Demand { interval, .. }) if self.see(interval) => {
                    (breaking, below) = (most, interval.saturating_add(1));
                }
                Err(_) => return self.room_below(place, most, below, go_on),
            }
        }
    }

    /// Returns how much longer the task at `place` can execute, if a quick test of `most` has no result. Smaller
    /// amounts need less effort. The greatest one with a quick test is found first.
    fn room_below(&self, place: usize, most: u64, below: u64, go_on: &dyn Fn() -> bool) -> Option<u64> {
        let holds = |extra, terms| match self.verdict(place, extra, below, Effort { terms, go_on }) {
            Err(Failure::Interrupted) => None,
            verdict => Some(verdict.is_ok()),
        };
        let (mut holding, mut breaking) =
            (halve((0, most), |extra| holds(extra, QUICK_TERMS_MAX))?, most.saturating_add(1));
        // BOUND: each round halves the distance.
        while breaking - holding > 1 + holding / SHARE {
            let middle = holding + (breaking - holding) / 2;
            if holds(middle, FORM_TERMS_MAX)? {
                holding = middle;
            } else {
                breaking = middle;
            }
        }
        Some(holding)
    }

    /// Keeps the time left in an interval, if it is known.
    fn see(&self, interval: u64) -> bool {
        let left = self.demand.room(&self.blocking, interval);
        self.seen.borrow_mut().extend(left.map(|left| (interval, left)));
        left.is_some()
    }

    /// Tests the intervals shorter than `below`.
    fn verdict(&self, place: usize, extra: u64, below: u64, effort: Effort<'_>) -> Result<(), Failure> {
        let tasks = self.longer(place, extra).ok_or(Failure::Overflow)?;
        edf::schedulable_within(&tasks, &self.blocking, below, effort)
    }
}

impl<'a> Processors<'a> {
    /// Returns the processors of a system that meets all deadlines, or `None` if this search does not cover it.
    pub(super) fn new(system: &'a System, overheads: &'a Overheads) -> Option<Self> {
        if system.scheduler() != Scheduler::PEdf {
            return None;
        }
        let is_object = |id| system.protocol_of(id, system.protocol_or_default()).is_object();
        if system.resource_ids().any(is_object) || long_resource(system).is_some() {
            // Attempts and sections of one task lengthen others.
            return None;
        }
        let charges = match overheads.charges_nothing() {
            true => None,
            false => Some(Charges::new(system, overheads, Omission::NOTHING).ok()?),
        };
        let all = rows(system, overheads).ok()?;
        let cpus: Vec<u16> = processors_with_tasks(system).collect();
        let processors = cpus.iter().map(|&cpu| Processor::new(system, &all, cpu)).collect::<Option<Vec<_>>>()?;
        let mut places = vec![(0, 0); system.tasks().len()];
        for (index, &cpu) in cpus.iter().enumerate() {
            let local = system.task_ids().filter(|&id| system.task(id).cpu.0 == cpu);
            local.enumerate().for_each(|(place, id)| places[id.index()] = (index, place));
        }
        let scratch = RefCell::new(charges.as_ref().map_or(system, |charges| &charges.system).clone());
        Some(Self { system, charges, scratch, processors, places })
    }

    /// Returns how much longer a job of the task can execute outside of its sections. The outer `None` means that the
    /// search was interrupted.
    pub(super) fn room(&self, task: TaskId, go_on: &dyn Fn() -> bool) -> Option<u64> {
        if self.system.task(task).body.len() >= STEPS_MAX {
            // Its body cannot be lengthened.
            return Some(0);
        }
        let (processor, place) = self.places[task.index()];
        let room = self.processors[processor].room(place, go_on)?;
        let Some(charges) = &self.charges else { return Some(room) };
        // The interrupts during the additional execution take a part of it.
        let time = charges.system.task(task).wcet.as_ns();
        let most = charges.cost(task, time).and_then(|cost| cost.checked_add(room)).unwrap_or(u64::MAX);
        let fits = |extra| charges.cost(task, time.checked_add(extra)?).filter(|&cost| cost <= most);
        if fits(room).is_some() { Some(room) } else { halve((0, room), |extra| Some(fits(extra).is_some())) }
    }

    /// Returns the rooms of the tasks of the processor at `index`, and the intervals seen. Returns `None` if the search
    /// was interrupted.
    fn rooms(&self, index: usize, crew: &Crew, go_on: &dyn Fn() -> bool) -> Option<Found> {
        let its = self.system.task_ids().filter(|id| self.places[id.index()].0 == index);
        let rooms = its.map(|task| {
            let room = self.room(task, go_on)?;
            crew.add(1);
            Some((task, room))
        });
        let rooms = rooms.collect::<Option<_>>()?;
        Some((rooms, self.processors[index].seen.borrow().clone()))
    }

    /// Returns the greatest factor of the execution times of a part. `rooms` contains the room of each task, by id.
    /// Returns `None` if the search was interrupted.
    pub(super) fn growth(&self, part: Part, rooms: &[u64], go_on: &dyn Fn() -> bool) -> Option<Growth> {
        let users = users(self.system, part);
        // Nothing but its own execution uses the room of a task.
        let within = |&user: &TaskId| {
            let task = self.system.task(user);
            let most = task.wcet.as_ns().saturating_add(rooms[user.index()]);
            let scaled = |permille| scaled_body(task, user, part, permille);
            greatest_factor(|permille| scaled(permille).is_some_and(|(_, wcet)| wcet.as_ns() <= most))
        };
        let most = users.iter().map(within).min().unwrap_or(FACTOR_MAX);
        let has_sections = users.iter().any(|&user| !self.system.sections(user).is_empty());
        let found = match part {
            Part::Task(_) if !has_sections => most,
            _ => self.with_sections(part, &users, most, go_on)?,
        };
        Some(Growth::found(found))
    }

    /// Returns the greatest factor, up to `most`, if spinning and blocking grow as well.
    fn with_sections(&self, part: Part, users: &[TaskId], most: u64, go_on: &dyn Fn() -> bool) -> Option<u64> {
        let is_felt = |processor: &&Processor| users.iter().any(|&user| processor.place(user).is_some());
        let begin = |processor| Felt { processor, below: u64::MAX, held: 1000 };
        let mut felt: Vec<Felt<'_>> = self.processors.iter().filter(is_felt).map(begin).collect();
        // No factor depends on the intervals that others were refuted in.
        felt.iter().for_each(|felt| felt.processor.seen.borrow_mut().truncate(felt.processor.first));
        let (mut holding, mut breaking, mut tried, mut turn) = (1000, most.saturating_add(1), most, 0_u32);
        // BOUND: one of four rounds halves the distance.
        while breaking - holding > 1 {
            let verdict = match self.with_bodies(part, users, tried) {
                Some(bodies) => Self::judge(&mut felt, tried, &bodies, go_on)?,
                None => Verdict::Broken,
            };
            let next = match verdict {
                Verdict::Holds => {
                    holding = tried;
                    // The estimate is often the greatest.
                    Some(tried + 1)
                }
                Verdict::Broken => {
                    breaking = tried;
                    None
                }
                Verdict::Exceeds { left, over } => {
                    // The demand of an interval grows almost linearly from the unchanged system on.
                    let (whole, left) = (u128::from(tried - 1000), u128::from(left));
                    breaking = tried;
                    Some(1000 + (whole * left / (left + u128::from(over))) as u64)
                }
            };
            turn += 1;
            let middle = holding + (breaking - holding) / 2;
            let next = next.filter(|&next| next > holding && next < breaking && !turn.is_multiple_of(4));
            tried = next.unwrap_or(middle);
        }
        Some(holding)
    }

    /// Returns the execution time and the requests of these tasks with the execution times of a part multiplied by
    /// `permille` / 1000, or `None` if a body is not valid.
    fn with_bodies(&self, part: Part, users: &[TaskId], permille: u64) -> Option<Vec<(TaskId, u64, Vec<Demand>)>> {
        let mut system = self.scratch.borrow_mut();
        let bodies = users.iter().map(|&user| {
            let (body, wcet) = scaled_body(self.system.task(user), user, part, permille)?;
            let Some(charges) = &self.charges else {
                system.set_body(user, body).ok()?;
                let found = (user, wcet.as_ns(), demands(&system, user));
                // The original body is valid.
                system.set_body(user, self.system.task(user).body.clone()).ok()?;
                return Some(found);
            };
            system.set_body(user, charges.body(&body)?).ok()?;
            let (time, requests) = (system.task(user).wcet.as_ns(), demands(&system, user));
            system.set_body(user, charges.system.task(user).body.clone()).ok()?;
            Some((user, charges.cost(user, time)?, charges.requests(user, requests)?))
        });
        bodies.collect()
    }

    /// Judges all processors that feel these tasks, with their bodies for a factor. Returns `None` if the test was
    /// interrupted.
    fn judge(
        felt: &mut [Felt<'_>],
        permille: u64,
        bodies: &[(TaskId, u64, Vec<Demand>)],
        go_on: &dyn Fn() -> bool,
    ) -> Option<Verdict> {
        for place in 0..felt.len() {
            let one = &mut felt[place];
            if permille <= one.held {
                continue;
            }
            match one.judge(bodies, go_on)? {
                Verdict::Holds => one.held = permille,
                verdict => {
                    // It comes first with the next factor.
                    felt[..=place].rotate_right(1);
                    return Some(verdict);
                }
            }
        }
        Some(Verdict::Holds)
    }
}

impl Felt<'_> {
    fn judge(&mut self, bodies: &[(TaskId, u64, Vec<Demand>)], go_on: &dyn Fn() -> bool) -> Option<Verdict> {
        let processor = self.processor;
        let Some((tasks, blocking)) = processor.with_bodies(bodies) else { return Some(Verdict::Broken) };
        let Ok(demand) = Load::new(&tasks) else { return Some(Verdict::Broken) };
        // The intervals that refuted other factors come first.
        let latest =
            processor.seen.borrow().iter().rev().take(LATEST).find_map(|&seen| Verdict::at(seen, &demand, &blocking));
        if latest.is_some() {
            return latest;
        }
        let verdict = edf::schedulable_within(&tasks, &blocking, self.below, Effort { terms: FORM_TERMS_MAX, go_on });
        match verdict {
            Ok(()) => Some(Verdict::Holds),
            Err(Failure::Interrupted) => None,
            Err(Failure::Demand { interval, .. }) => {
                self.below = interval.saturating_add(1);
                let seen = processor.see(interval).then(|| processor.seen.borrow().last().copied()).flatten();
                let exceeds = seen.and_then(|seen| Verdict::at(seen, &demand, &blocking));
                Some(exceeds.unwrap_or(Verdict::Broken))
            }
            Err(_) => Some(Verdict::Broken),
        }
    }
}
