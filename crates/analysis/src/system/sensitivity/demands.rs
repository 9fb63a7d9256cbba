//! How much longer one task can execute under partitioned EDF where all deadlines hold as they are.
//!
//! Time outside of sections changes neither what blocks nor what other processors do. So an amount e more of each job of one task holds where no interval t of its processor
//! is refuted:
//! ```text
//!   h(t) + jobs(t) * e + B(t) <= t
//! ```
//! What is left in an interval as the system is, divided by the task's jobs in it, is the most that it has room for there. The greatest amount that no interval seen so far
//! refutes is tried: it holds, or one more interval is seen.

use super::growth::{FACTOR_MAX, Growth};
use super::scale::{Part, factor_within, halve, scaled_body};
use crate::overheads::edf::charged;
use crate::rows::failure::Failure;
use crate::rows::fixed_point::TERMS_MAX;
use crate::rows::sharing::{Sharing, demands};
use crate::rows::sporadic::Sporadic;
use crate::system::scheduled::processors_with_tasks;
use crate::uniprocessor::Effort;
use crate::uniprocessor::edf::{self, Demand, Step};
use lockwright_model::{MAX_STEPS, Overheads, Scheduler, System, TaskId};
use std::cell::RefCell;

/// The most terms to decide whether a system with scaled execution times is schedulable under partitioned EDF. If almost
/// all of a processor is used, the greatest factor may need more; a smaller factor is then found.
pub(super) const FORM_TERMS_MAX: u64 = TERMS_MAX / 16;

/// One processor as it is.
struct Processor {
    /// Its tasks, and whatever shares a resource with them.
    sharing: Sharing,
    cpu: u16,
    tasks: Vec<Sporadic>,
    blocking: Vec<Step>,
    demand: Demand,
    /// Intervals, and what is left in them.
    seen: RefCell<Vec<(u64, u64)>>,
}

/// All of them.
pub(super) struct Processors<'a> {
    system: &'a System,
    /// The same, but while a form is made of it.
    scratch: RefCell<System>,
    processors: Vec<Processor>,
    /// By task: its processor, its place there, and that in the sharing of the processor.
    places: Vec<(usize, usize, usize)>,
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
        sharing.tasks.retain(|task| task.cluster == cpu || !task.requests.is_empty());
        let (tasks, blocking) = edf::msrp(&sharing, cpu).ok()?;
        let demand = Demand::new(&tasks).ok()?;
        let left = |interval| Some((interval, demand.room(&blocking, interval)?));
        let seen = edf::early(&tasks).map(left).collect::<Option<_>>()?;
        Some(Self { sharing, cpu, tasks, blocking, demand, seen: RefCell::new(seen) })
    }

    /// The most that no interval seen so far refutes for the task at `place`.
    fn unrefuted(&self, place: usize) -> u64 {
        let room = |&(interval, left): &(u64, u64)| left.checked_div(self.demand.jobs(place, interval));
        self.seen.borrow().iter().filter_map(room).min().unwrap_or(0)
    }

    fn longer(&self, place: usize, extra: u64) -> Option<Vec<Sporadic>> {
        let mut tasks = self.tasks.clone();
        tasks[place].cost = tasks[place].cost.checked_add(extra)?;
        Some(tasks)
    }

    /// The most that the task at `place` can execute longer. The outer `None` where it was interrupted.
    fn room(&self, place: usize, go_on: &dyn Fn() -> bool) -> Option<u64> {
        let fits = |extra| self.longer(place, extra).is_some_and(|tasks| Demand::new(&tasks).is_ok());
        // BOUND: each turn but the last sees one more interval of those in which work is due.
        let mut breaking = u64::MAX;
        loop {
            go_on().then_some(())?;
            let mut most = self.unrefuted(place).min(breaking - 1);
            if !fits(most) {
                most = halve((0, most), |extra| Some(fits(extra)))?;
            }
            if most == 0 {
                return Some(0);
            }
            match self.verdict(place, most, go_on) {
                Ok(()) => return Some(most),
                Err(Failure::Interrupted) => return None,
                Err(Failure::Demand { interval, .. }) if self.see(interval) => breaking = most,
                // Too much effort: what is less takes less.
                Err(_) => {
                    return halve((0, most), |extra| match self.verdict(place, extra, go_on) {
                        Err(Failure::Interrupted) => None,
                        verdict => Some(verdict.is_ok()),
                    });
                }
            }
        }
    }

    /// Keeps what is left in that interval, if it is known.
    fn see(&self, interval: u64) -> bool {
        let left = self.demand.room(&self.blocking, interval);
        self.seen.borrow_mut().extend(left.map(|left| (interval, left)));
        left.is_some()
    }

    fn verdict(&self, place: usize, extra: u64, go_on: &dyn Fn() -> bool) -> Result<(), Failure> {
        let tasks = self.longer(place, extra).ok_or(Failure::Overflow)?;
        edf::schedulable_within(&tasks, &self.blocking, Effort { terms: FORM_TERMS_MAX, go_on })
    }
}

impl<'a> Processors<'a> {
    /// Of a system whose deadlines hold. `None` where this does not cover it.
    pub(super) fn new(system: &'a System, overheads: &Overheads) -> Option<Self> {
        if system.scheduler() != Scheduler::PEdf || *overheads != Overheads::default() {
            return None;
        }
        let all = charged(system, overheads).ok()?;
        let cpus: Vec<u16> = processors_with_tasks(system).collect();
        let processors = cpus.iter().map(|&cpu| Processor::new(system, &all, cpu)).collect::<Option<Vec<_>>>()?;
        let mut places = vec![(0, 0, 0); system.tasks().len()];
        for (index, (processor, &cpu)) in processors.iter().zip(&cpus).enumerate() {
            let local = system.task_ids().filter(|&id| system.task(id).cpu.0 == cpu);
            let shared = processor.sharing.tasks.iter().enumerate().filter(|(_, task)| task.cluster == cpu);
            for (place, (id, (shared, _))) in local.zip(shared).enumerate() {
                places[id.index()] = (index, place, shared);
            }
        }
        Some(Self { system, scratch: RefCell::new(system.clone()), processors, places })
    }

    /// The most that a job of the task can execute longer outside of its sections. `None` where it was interrupted.
    pub(super) fn room(&self, task: TaskId, go_on: &dyn Fn() -> bool) -> Option<u64> {
        let (processor, place, _) = self.places[task.index()];
        self.processors[processor].room(place, go_on)
    }

    /// The largest factor of the execution times of a task that has room for so much, and no sections that other processors wait for. `None` where it was interrupted.
    pub(super) fn growth(&self, task: TaskId, room: u64, go_on: &dyn Fn() -> bool) -> Option<Growth> {
        let most = factor_within(self.system, task, Part::Task(task), room);
        let found = match self.system.sections(task).is_empty() {
            true => most,
            false => self.with_sections(task, most, go_on)?,
        };
        Some(if found == FACTOR_MAX { Growth::Unlimited } else { Growth::Permille(found) })
    }

    /// The same where what blocks grows, too: at most `most`.
    fn with_sections(&self, task: TaskId, most: u64, go_on: &dyn Fn() -> bool) -> Option<u64> {
        let (processor, _, shared) = self.places[task.index()];
        let processor = &self.processors[processor];
        let holds = |permille| {
            let Some((body, wcet)) = scaled_body(self.system.task(task), task, Part::Task(task), permille) else {
                return Some(false);
            };
            let mut system = self.scratch.borrow_mut();
            if system.set_body(task, body).is_err() {
                return Some(false);
            }
            let mut sharing = processor.sharing.clone();
            sharing.tasks[shared].cost = wcet.as_ns();
            sharing.tasks[shared].requests = demands(&system, task);
            // What was valid is so again.
            system.set_body(task, self.system.task(task).body.clone()).ok()?;
            let Ok((tasks, blocking)) = edf::msrp(&sharing, processor.cpu) else { return Some(false) };
            if edf::is_refuted_at(&tasks, &blocking, processor.seen.borrow().iter().rev().map(|&(at, _)| at)) {
                return Some(false);
            }
            match edf::schedulable_within(&tasks, &blocking, Effort { terms: FORM_TERMS_MAX, go_on }) {
                Err(Failure::Interrupted) => None,
                Err(Failure::Demand { interval, .. }) => {
                    processor.see(interval);
                    Some(false)
                }
                verdict => Some(verdict.is_ok()),
            }
        };
        if holds(most)? { Some(most) } else { halve((1000, most), holds) }
    }

    /// Whether the room that the task has is told here: its body may be as long as bodies can be.
    pub(super) fn covers(&self, task: TaskId) -> bool {
        self.system.task(task).body.len() < MAX_STEPS
    }

    /// Whether other processors wait for no section of the task.
    pub(super) fn is_alone(&self, task: TaskId) -> bool {
        self.system.requests(task).iter().all(|request| !self.system.is_global(request.resource))
    }
}
