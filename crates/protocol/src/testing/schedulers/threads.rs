//! The threads of a scheduler, and the steps in which they decide and carry actions out.

extern crate std;

use super::setting::{Fault, Setting};
use crate::testing::effects::{Flag, Stepped, epoch, is_later, subject};
use crate::{Action, GlobalEdf, Refusal};
use lockwright_model::{Instant, Priority, ResourceId, TaskId};
use std::vec::Vec;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Phase {
    /// It sleeps until the next release.
    Idle,
    /// Its job is released.
    Arrives,
    /// Its job must not start yet.
    Held,
    /// Its job was woken to start.
    Begins,
    /// Its job executes, outside of sections.
    Executes,
    /// It requests this resource; `true` for the first time.
    Asks(usize, bool),
    /// It waits for this resource, or for a processor on which to request it.
    Waits(usize),
    Spins(usize),
    Holds(usize),
    Releases(usize),
    /// Its job ends.
    Ends,
}

impl Phase {
    /// Whether its next step is a decision of its own.
    fn decides(self) -> bool {
        matches!(self, Self::Arrives | Self::Begins | Self::Asks(..) | Self::Releases(_) | Self::Ends)
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Thread {
    pub(super) phase: Phase,
    /// The deadline of its job.
    pub(super) due: u64,
    /// The actions that it has not carried out yet.
    pub(super) todo: Vec<Action>,
    pub(super) flag: Flag,
    /// It has gone to sleep in the kernel, until a wake-up.
    pub(super) is_asleep: bool,
    /// The same, until it gets the guard.
    pub(super) waits_for_guard: bool,
    /// It has risen for its decision.
    is_risen: bool,
    /// No task may preempt it while it carries actions out.
    is_excluded: bool,
    /// The priority that the machine gave it, with the epoch of the action below.
    pub(super) priority: Priority,
    epoch: u32,
}

impl Thread {
    pub(super) fn is_settled(&self) -> bool {
        self.todo.is_empty() && !self.is_risen && !self.is_excluded && !self.phase.decides()
    }

    pub(super) fn acts_on_others(&self, me: usize) -> bool {
        self.todo.iter().any(|action| subject(action) != me)
    }
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct State<M> {
    pub(super) machine: M,
    pub(super) threads: Vec<Thread>,
    /// The thread that holds the guard of the machine.
    pub(super) guard: Option<usize>,
    /// The requests for each resource in order; that of the owner is the first.
    pub(super) queues: Vec<Vec<usize>>,
    /// By task: the priority that the machine has set last.
    pub(super) told: Vec<Priority>,
}

impl<M: Stepped> State<M> {
    pub(super) fn first(machine: M, setting: &Setting) -> Self {
        let thread = Thread {
            phase: Phase::Idle,
            due: 0,
            todo: Vec::new(),
            flag: Flag::Nothing,
            is_asleep: false,
            waits_for_guard: false,
            is_risen: false,
            is_excluded: false,
            priority: setting.arriving,
            epoch: 0,
        };
        Self {
            machine,
            threads: std::vec![thread; setting.tasks()],
            guard: None,
            queues: std::vec![Vec::new(); setting.ceilings.len()],
            told: std::vec![setting.arriving; setting.tasks()],
        }
    }

    /// The level of a thread. The holder of the guard inherits those of the threads that wait for it.
    pub(super) fn level(&self, me: usize, setting: &Setting) -> Priority {
        let own = |thread: &Thread| match thread.is_excluded || thread.is_risen {
            true => thread.priority.max(setting.arriving),
            false => thread.priority,
        };
        let waiting = self.threads.iter().filter(|thread| self.guard == Some(me) && thread.waits_for_guard);
        waiting.map(own).fold(own(&self.threads[me]), Priority::max)
    }

    fn is_runnable(&self, me: usize) -> bool {
        let thread = &self.threads[me];
        let is_idle = thread.phase == Phase::Idle && thread.is_settled();
        !thread.is_asleep && !thread.waits_for_guard && !is_idle
    }

    /// Whether the thread executes: fewer runnable threads are above it than there are processors.
    pub(super) fn executes(&self, me: usize, setting: &Setting) -> bool {
        let level = self.level(me, setting);
        let is_above = |&other: &usize| self.is_runnable(other) && self.level(other, setting) > level;
        self.is_runnable(me) && (0..self.threads.len()).filter(is_above).count() < setting.processors
    }

    /// All states to which one step leads: of a thread that executes, or the release of a job.
    pub(super) fn successors(&self, setting: &Setting, fault: Fault, next: &mut Vec<Self>) {
        let before = next.len();
        for me in 0..self.threads.len() {
            if self.threads[me].phase == Phase::Idle && self.threads[me].is_settled() {
                next.push(self.after(me, |mine| {
                    (mine.phase, mine.is_excluded) = (Phase::Arrives, setting.is_global);
                }));
            } else if self.executes(me, setting) {
                self.steps(me, setting, fault, next);
            }
        }
        next[before..].iter_mut().for_each(Self::forget);
    }

    fn after(&self, me: usize, change: impl FnOnce(&mut Thread)) -> Self {
        let mut after = self.clone();
        change(&mut after.threads[me]);
        after
    }

    /// All states to which one step of `me`, which executes, leads. Those in which its job ends soonest come first.
    pub(super) fn steps(&self, me: usize, setting: &Setting, fault: Fault, next: &mut Vec<Self>) {
        let thread = &self.threads[me];
        if self.guard == Some(me) {
            return self.decisions(me, setting, fault, next);
        }
        if let Some(&action) = thread.todo.first() {
            let mut after = self.clone();
            if subject(&action) == me && thread.is_excluded {
                // A step of its own.
                after.threads[me].is_excluded = false;
            } else {
                after.threads[me].todo.remove(0);
                after.carry_out(me, action, fault);
            }
            next.push(after);
        } else if thread.phase.decides() {
            let mut after = self.clone();
            match self.guard {
                None => after.guard = Some(me),
                Some(_) => after.threads[me].waits_for_guard = true,
            }
            next.push(after);
        } else if thread.is_excluded {
            next.push(self.after(me, |mine| mine.is_excluded = false));
        } else if thread.is_risen {
            next.push(self.after(me, |mine| mine.is_risen = false));
        } else {
            self.steps_of_job(me, setting, fault, next);
        }
    }

    fn steps_of_job(&self, me: usize, setting: &Setting, fault: Fault, next: &mut Vec<Self>) {
        let thread = &self.threads[me];
        let goes_to = |phase: Phase, rises: bool| {
            self.after(me, |mine| {
                (mine.phase, mine.flag) = (phase, Flag::Nothing);
                mine.is_risen = rises && fault != Fault::NotRaised;
            })
        };
        match (thread.phase, thread.flag) {
            (Phase::Executes, _) => {
                next.push(goes_to(Phase::Ends, true));
                let asks = |resource| goes_to(Phase::Asks(resource, true), setting.is_global);
                next.extend(setting.resources_of(me).map(asks));
            }
            (Phase::Holds(resource), _) => next.push(goes_to(Phase::Releases(resource), setting.is_global)),
            (Phase::Held, Flag::Woken) => next.push(goes_to(Phase::Begins, false)),
            (Phase::Waits(resource) | Phase::Spins(resource), Flag::Granted) => {
                next.push(goes_to(Phase::Holds(resource), false));
            }
            (Phase::Waits(resource), Flag::Woken) => {
                next.push(goes_to(Phase::Asks(resource, false), setting.is_global));
            }
            (Phase::Spins(_), _) => {}
            _ => next.push(self.after(me, |mine| mine.is_asleep = true)),
        }
    }

    /// Whether a job with this deadline may arrive: where levels count, the relative deadline of a task is shorter than
    /// that of tasks of lower levels.
    fn may_arrive(&self, me: usize, due: u64, setting: &Setting) -> bool {
        let is_later = |&other: &usize| self.has_job(other) && (due, me) < (self.threads[other].due, other);
        let mut later = (0..self.threads.len()).filter(is_later);
        setting.is_global || later.all(|other| setting.levels[me] > setting.levels[other])
    }

    pub(super) fn has_job(&self, task: usize) -> bool {
        !matches!(self.threads[task].phase, Phase::Idle | Phase::Arrives)
    }

    /// All states after the decision of `me`, which holds the guard and leaves it.
    fn decisions(&self, me: usize, setting: &Setting, fault: Fault, next: &mut Vec<Self>) {
        let task = TaskId::new(me);
        let mut decided = Vec::new();
        match self.threads[me].phase {
            Phase::Arrives => {
                for due in (0..setting.dues).filter(|&due| self.may_arrive(me, due, setting)) {
                    let mut after = self.after(me, |mine| (mine.phase, mine.due) = (Phase::Executes, due));
                    let due = Instant::from_ns(if fault == Fault::ByLatest { setting.dues - due } else { due });
                    after.decide(me, fault, |machine, act| machine.arrive_due(task, due, act));
                    decided.push(after);
                }
            }
            phase => {
                let mut after = self.clone();
                after.decide(me, fault, |machine, act| match phase {
                    Phase::Begins => machine.woken(task, act),
                    Phase::Asks(resource, true) => machine.request(task, ResourceId::new(resource), act),
                    Phase::Asks(_, false) => machine.woken(task, act),
                    Phase::Releases(resource) => machine.release(task, ResourceId::new(resource), act),
                    _ => machine.finish(task, act),
                });
                decided.push(after);
            }
        }
        for after in decided {
            after.leave_guard(setting, fault, next);
        }
    }

    /// The kernel gives the guard to the most urgent waiter.
    fn leave_guard(mut self, setting: &Setting, fault: Fault, next: &mut Vec<Self>) {
        self.guard = None;
        if fault == Fault::GuardKept {
            return next.push(self);
        }
        let waiting: Vec<usize> = (0..self.threads.len()).filter(|&at| self.threads[at].waits_for_guard).collect();
        let Some(highest) = waiting.iter().map(|&at| self.level(at, setting)).max() else { return next.push(self) };
        for heir in waiting.into_iter().filter(|&at| self.level(at, setting) == highest) {
            let mut after = self.after(heir, |heir| heir.waits_for_guard = false);
            after.guard = Some(heir);
            next.push(after);
        }
    }

    fn decide(
        &mut self,
        me: usize,
        fault: Fault,
        event: impl FnOnce(&mut M, &mut dyn FnMut(Action)) -> Result<(), Refusal>,
    ) {
        let mut actions = Vec::new();
        event(&mut self.machine, &mut |action| actions.push(action)).expect("an event with a meaning");
        for action in &mut actions {
            match *action {
                Action::Block { resource, .. } | Action::Spin { resource, .. } if fault == Fault::GrantsOwned => {
                    *action = Action::Grant { task: TaskId::new(me), resource };
                }
                Action::Grant { resource, .. } if fault == Fault::GrantsLatest => {
                    let latest = self.queues[resource.index()].last().copied().unwrap_or(me);
                    *action = Action::Grant { task: TaskId::new(latest), resource };
                }
                _ => {}
            }
        }
        let before = self.threads[me].phase;
        self.threads[me].phase = match (before, actions.last()) {
            (Phase::Asks(..), Some(Action::Block { resource, .. })) => Phase::Waits(resource.index()),
            (Phase::Asks(..), Some(Action::Spin { resource, .. })) => Phase::Spins(resource.index()),
            (Phase::Asks(..), Some(Action::Grant { resource, .. })) => Phase::Holds(resource.index()),
            (Phase::Ends, _) => Phase::Idle,
            (_, Some(Action::Hold { .. })) => Phase::Held,
            _ => Phase::Executes,
        };
        self.note_queues(me, before, &actions);
        for action in &actions {
            match *action {
                Action::Grant { task, .. } if task.index() != me => self.threads[task.index()].flag = Flag::Granted,
                Action::SetPriority { task, priority, .. } => self.told[task.index()] = priority,
                Action::Wake { task } if self.threads[task.index()].flag == Flag::Nothing => {
                    self.threads[task.index()].flag = Flag::Woken;
                }
                _ => {}
            }
        }
        actions.retain(|action| !matches!(action, Action::Grant { .. }));
        match fault {
            Fault::NoWake => actions.retain(|action| !matches!(action, Action::Wake { .. })),
            Fault::NotTold => {
                actions.retain(|action| subject(action) == me || !matches!(action, Action::SetPriority { .. }));
            }
            Fault::OwnFirst => actions.sort_by_key(|action| subject(action) != me),
            _ => {}
        }
        let tells_other = |action: &Action| subject(action) != me && matches!(action, Action::SetPriority { .. });
        let others = actions.iter().filter(|action| subject(action) != me).count();
        self.threads[me].is_excluded |= others > 1 || actions.iter().any(tells_other);
        self.threads[me].todo = actions;
    }

    /// Follows the requests that are in a queue, and checks that each grant is for the earliest of them.
    fn note_queues(&mut self, me: usize, before: Phase, actions: &[Action]) {
        for action in actions {
            let Action::Grant { task, resource } = *action else { continue };
            let queue = &mut self.queues[resource.index()];
            if before == Phase::Releases(resource.index()) {
                assert_eq!(queue.get(1), Some(&task.index()), "granted out of order");
            } else {
                assert!(queue.is_empty() && task.index() == me, "granted while owned");
                queue.push(me);
            }
        }
        match (before, self.threads[me].phase) {
            (Phase::Releases(resource), _) => {
                assert_eq!(self.queues[resource].remove(0), me, "released while not owned");
            }
            // The request of a job that does not execute is not in the queue.
            (_, Phase::Waits(on) | Phase::Spins(on)) if self.told[me] == GlobalEdf::<1, 1>::RUNNING => {
                self.queues[on].push(me);
            }
            _ => {}
        }
    }

    fn carry_out(&mut self, me: usize, action: Action, fault: Fault) {
        match action {
            Action::SetPriority { task, priority, epoch } => {
                let thread = &mut self.threads[task.index()];
                if is_later(epoch, thread.epoch) || fault == Fault::TakesStale {
                    (thread.priority, thread.epoch) = (priority, epoch);
                }
            }
            Action::Wake { task } => self.threads[task.index()].is_asleep = false,
            // It falls, and waits in its next steps.
            Action::Block { .. } | Action::Hold { .. } | Action::Spin { .. } => self.threads[me].is_risen = false,
            Action::Grant { .. } | Action::Migrate { .. } | Action::Restart { .. } => {
                panic!("schedulers have no such effect: {action:?}")
            }
        }
    }

    /// Makes states equal that differ only in epochs, if the epochs have the same order.
    fn forget(&mut self) {
        for task in 0..self.threads.len() {
            let mut epochs = std::vec![self.threads[task].epoch];
            let own = |action: &&mut Action| subject(action) == task;
            for thread in &mut self.threads {
                epochs.extend(thread.todo.iter_mut().filter(own).filter_map(epoch).map(|epoch| *epoch));
            }
            epochs.sort_unstable_by(|&a, &b| (b.wrapping_sub(a) as i32).cmp(&0));
            epochs.dedup();
            // The latest gets 0, from which the machine continues.
            let ranked = |old: u32| {
                let place = epochs.iter().position(|&epoch| epoch == old).unwrap_or(0) as u32;
                0_u32.wrapping_sub(place)
            };
            self.threads[task].epoch = ranked(self.threads[task].epoch);
            for thread in &mut self.threads {
                thread.todo.iter_mut().filter(own).filter_map(epoch).for_each(|epoch| *epoch = ranked(*epoch));
            }
        }
        self.machine.zero_epochs();
    }
}
