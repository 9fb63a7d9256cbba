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
use lockwright_model::{Overheads, STEPS_MAX, Scheduler, System, TaskId};
use std::cell::RefCell;

/// The most terms to decide whether a system with scaled execution times is schedulable under partitioned EDF. If
/// almost all of a processor is used, the greatest factor may need more; a smaller factor is then found.
pub(super) const FORM_TERMS_MAX: u64 = TERMS_MAX / 16;

/// One unchanged processor.
struct Processor {
    /// Its tasks, and those that share a resource with them.
    sharing: Sharing,
    cpu: u16,
    tasks: Vec<Sporadic>,
    blocking: Vec<Step>,
    demand: Demand,
    /// Intervals, and the time left in each.
    seen: RefCell<Vec<(u64, u64)>>,
}

/// All processors.
pub(super) struct Processors<'a> {
    system: &'a System,
    /// The system, which changes while a form is built.
    scratch: RefCell<System>,
    processors: Vec<Processor>,
    /// By task: its processor, its place there, and its place in the sharing of the processor.
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
        let fits = |extra| self.longer(place, extra).is_some_and(|tasks| Demand::new(&tasks).is_ok());
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
            match self.verdict(place, most, below, go_on) {
                Ok(()) => return Some(most),
                Err(Failure::Interrupted) => return None,
                Err(Failure::Demand { interval, .. }) if self.see(interval) => {
                    (breaking, below) = (most, interval.saturating_add(1));
                }
                // This verdict needs too much effort. Smaller amounts need less.
                Err(_) => {
                    return halve((0, most), |extra| match self.verdict(place, extra, below, go_on) {
                        Err(Failure::Interrupted) => None,
                        verdict => Some(verdict.is_ok()),
                    });
                }
            }
        }
    }

    /// Keeps the time left in an interval, if it is known.
    fn see(&self, interval: u64) -> bool {
        let left = self.demand.room(&self.blocking, interval);
        self.seen.borrow_mut().extend(left.map(|left| (interval, left)));
        left.is_some()
    }

    /// Tests the intervals shorter than `below`.
    fn verdict(&self, place: usize, extra: u64, below: u64, go_on: &dyn Fn() -> bool) -> Result<(), Failure> {
        let tasks = self.longer(place, extra).ok_or(Failure::Overflow)?;
        edf::schedulable_within(&tasks, &self.blocking, below, Effort { terms: FORM_TERMS_MAX, go_on })
    }
}

impl<'a> Processors<'a> {
    /// Returns the processors of a system that meets all deadlines, or `None` if this search does not cover it.
    pub(super) fn new(system: &'a System, overheads: &Overheads) -> Option<Self> {
        if system.scheduler() != Scheduler::PEdf || !overheads.charges_nothing() {
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

    /// Returns how much longer a job of the task can execute outside of its sections. The outer `None` means that the
    /// search was interrupted.
    pub(super) fn room(&self, task: TaskId, go_on: &dyn Fn() -> bool) -> Option<u64> {
        let (processor, place, _) = self.places[task.index()];
        self.processors[processor].room(place, go_on)
    }

    /// Returns the greatest factor of the execution times of a task with this room that has no sections for which other
    /// processors wait. Returns `None` if the search was interrupted.
    pub(super) fn growth(&self, task: TaskId, room: u64, go_on: &dyn Fn() -> bool) -> Option<Growth> {
        let most = factor_within(self.system, task, Part::Task(task), room);
        let found = match self.system.sections(task).is_empty() {
            true => most,
            false => self.with_sections(task, most, go_on)?,
        };
        Some(if found == FACTOR_MAX { Growth::Unlimited } else { Growth::Permille(found) })
    }

    /// Returns the greatest factor, up to `most`, if the blocking grows as well.
    fn with_sections(&self, task: TaskId, most: u64, go_on: &dyn Fn() -> bool) -> Option<u64> {
        let (processor, _, shared) = self.places[task.index()];
        let processor = &self.processors[processor];
        // Longer intervals were tested with a greater factor.
        let mut below = u64::MAX;
        let mut holds = |permille| {
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
            // The original body is valid.
            system.set_body(task, self.system.task(task).body.clone()).ok()?;
            let Ok((tasks, blocking)) = edf::msrp(&sharing, processor.cpu) else { return Some(false) };
            if edf::is_refuted_at(&tasks, &blocking, processor.seen.borrow().iter().rev().map(|&(at, _)| at)) {
                return Some(false);
            }
            match edf::schedulable_within(&tasks, &blocking, below, Effort { terms: FORM_TERMS_MAX, go_on }) {
                Err(Failure::Interrupted) => None,
                Err(Failure::Demand { interval, .. }) => {
                    below = interval.saturating_add(1);
                    processor.see(interval);
                    Some(false)
                }
                verdict => Some(verdict.is_ok()),
            }
        };
        if holds(most)? { Some(most) } else { halve((1000, most), holds) }
    }

    /// Returns whether this search covers the room of the task: its body must be short enough to be lengthened.
    pub(super) fn covers(&self, task: TaskId) -> bool {
        self.system.task(task).body.len() < STEPS_MAX
    }

    /// Returns whether other processors wait for no section of the task.
    pub(super) fn is_alone(&self, task: TaskId) -> bool {
        self.system.requests(task).iter().all(|request| !self.system.is_global(request.resource))
    }
}
