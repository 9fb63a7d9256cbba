//! The threads, and the steps in which they carry actions out.

extern crate std;

use super::setting::{Fault, RESOURCES, Served, Setting};
use crate::{Action, Machine, Refusal};
use core::hash::Hash;
use lockwright_model::{Priority, ResourceId, TaskId};
use std::vec::Vec;

/// A machine whose effects are walked.
pub(in crate::testing) trait Stepped: Machine + Clone + Eq + Hash {
    /// Sets all epochs to zero.
    fn zero_epochs(&mut self);
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Phase {
    Idle,
    /// Its job is released.
    Arrives,
    /// It carries out the actions of its arrival.
    Arrived,
    /// Its job must not start.
    Held,
    /// Its job executes, outside of sections.
    GoesOn,
    /// Its job ends.
    Ends,
    /// It carries out the actions of its end.
    Ended,
    /// It has risen, and requests this resource; `true` for the first time.
    Asks(usize, bool),
    /// It carries out the actions of its request; `true` if it owns the resource.
    Asked(usize, bool),
    /// It is at the priority that the machine has set, and sleeps until it is woken or granted the resource.
    Sleeps(usize),
    /// The same, but it executes.
    Spins(usize),
    /// It cancels its request.
    GivesUp(usize),
    Holds(usize),
    /// It carries out the actions of its release or cancellation.
    Released,
}

impl Phase {
    /// Whether its next step is a decision of its own.
    pub(super) fn decides(self) -> bool {
        matches!(self, Self::Arrives | Self::Ends | Self::Asks(..) | Self::GivesUp(_) | Self::Holds(_))
    }
}

/// The flag on which a thread sleeps.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(in crate::testing) enum Flag {
    Nothing,
    Woken,
    Granted,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Thread {
    pub(super) phase: Phase,
    /// The actions that it has not carried out yet.
    pub(super) todo: Vec<Action>,
    /// The priorities of others that it sets before any other thread decides.
    pub(super) first: Vec<Action>,
    pub(super) flag: Flag,
    /// Its request or section reads.
    pub(super) reads: bool,
    /// It has gone to sleep in the kernel.
    pub(super) is_asleep: bool,
    /// The priority to which it has risen for a request.
    pub(super) asking: Priority,
    pub(super) is_excluded: bool,
    /// The priority in effect, with the epoch of the action that set it below.
    pub(super) priority: Priority,
    pub(super) cpu: usize,
    pub(super) priority_epoch: u32,
    pub(super) place_epoch: u32,
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct State<M> {
    pub(super) machine: M,
    pub(super) threads: Vec<Thread>,
    /// The thread that holds the guard between two steps.
    pub(super) guard: Option<usize>,
    /// Requests that were decided and have not ended: their tasks and resources, in order.
    pub(super) requests: Vec<(usize, usize)>,
    /// The owners of each resource, according to the actions of the machine, in order.
    pub(super) owners: [Vec<usize>; RESOURCES],
    /// For each task, the priority and the processor that the machine has set last.
    pub(super) told: Vec<(Priority, usize)>,
}

pub(in crate::testing) fn subject(action: &Action) -> usize {
    let (Action::Grant { task, .. }
    | Action::Block { task, .. }
    | Action::Spin { task, .. }
    | Action::Hold { task }
    | Action::Restart { task, .. }
    | Action::Wake { task }
    | Action::SetPriority { task, .. }
    | Action::Migrate { task, .. }) = *action;
    task.index()
}

pub(in crate::testing) fn epoch(action: &mut Action) -> Option<&mut u32> {
    match action {
        Action::SetPriority { epoch, .. } | Action::Migrate { epoch, .. } => Some(epoch),
        _ => None,
    }
}

pub(in crate::testing) fn is_later(epoch: u32, than: u32) -> bool {
    epoch.wrapping_sub(than) as i32 > 0
}

impl Thread {
    pub(super) fn effective(&self) -> Priority {
        if self.is_excluded { Priority::NON_PREEMPTIVE } else { self.priority.max(self.asking) }
    }
}

impl<M: Stepped> State<M> {
    pub(super) fn first(machine: M, setting: &Setting) -> Self {
        let thread = |(task, &cpu): (usize, &usize)| Thread {
            phase: Phase::Idle,
            todo: Vec::new(),
            first: Vec::new(),
            flag: Flag::Nothing,
            reads: false,
            is_asleep: false,
            asking: Priority::MIN,
            is_excluded: false,
            priority: Priority::base(task as u32 + 1),
            cpu,
            priority_epoch: 0,
            place_epoch: 0,
        };
        let threads: Vec<Thread> = setting.cpus.iter().enumerate().map(thread).collect();
        let told = threads.iter().map(|thread| (thread.priority, thread.cpu)).collect();
        Self { machine, threads, guard: None, requests: Vec::new(), owners: Default::default(), told }
    }

    /// Whether the thread executes: no runnable thread on its processor is above it.
    pub(super) fn executes(&self, me: usize) -> bool {
        let mine = &self.threads[me];
        // An idle thread may have no job.
        let is_runnable = |other: &Thread| !other.is_asleep && other.phase != Phase::Idle;
        let is_above =
            |other: &Thread| is_runnable(other) && other.cpu == mine.cpu && other.effective() > mine.effective();
        !mine.is_asleep && !self.threads.iter().any(is_above)
    }

    /// All states to which one step of `me`, which executes, leads.
    pub(super) fn steps(&self, me: usize, setting: &Setting, fault: Fault, next: &mut Vec<Self>) {
        match self.pending_step(me, setting, fault) {
            Some(after) => next.push(after),
            None => self.steps_of_phase(me, setting, fault, next),
        }
    }

    /// The state after `me` has carried out its next action, or goes back below the others.
    fn pending_step(&self, me: usize, setting: &Setting, fault: Fault) -> Option<Self> {
        let thread = &self.threads[me];
        let mut after = self.clone();
        if !thread.first.is_empty() {
            let action = after.threads[me].first.remove(0);
            after.carry_out(me, action, fault);
            if after.threads[me].first.is_empty() {
                (after.guard, after.threads[me].is_excluded) = (None, false);
                after.begin_to_carry_out(me, setting);
            }
        } else if !thread.todo.is_empty() {
            let action = after.threads[me].todo.remove(0);
            if subject(&action) == me && thread.is_excluded {
                // A step of its own.
                after.threads[me].is_excluded = false;
                after.threads[me].todo.insert(0, action);
            } else {
                after.carry_out(me, action, fault);
            }
        } else if thread.is_excluded && !thread.phase.decides() {
            after.threads[me].is_excluded = false;
        } else {
            return None;
        }
        Some(after)
    }

    fn steps_of_phase(&self, me: usize, setting: &Setting, fault: Fault, next: &mut Vec<Self>) {
        let thread = &self.threads[me];
        let mut after = self.clone();
        let task = TaskId::new(me);
        match thread.phase {
            Phase::Idle | Phase::GoesOn => return self.steps_of_job(me, setting, fault, next),
            // Another thread holds the guard.
            phase if phase.decides() && self.guard.is_some() => return,
            Phase::Spins(_) if thread.flag != Flag::Granted && !setting.gives_up => return,
            Phase::Arrives => {
                after.threads[me].phase = Phase::Arrived;
                after.decide(me, setting, fault, |machine, act| machine.arrive(task, act));
            }
            Phase::Ends => {
                after.threads[me].phase = Phase::Ended;
                after.decide(me, setting, fault, |machine, act| machine.finish(task, act));
            }
            Phase::Asks(resource, is_first) => {
                if is_first {
                    after.requests.push((me, resource));
                } else if setting.gives_up {
                    let mut gives_up = self.clone();
                    (gives_up.threads[me].phase, gives_up.threads[me].asking) =
                        (Phase::GivesUp(resource), Priority::MIN);
                    next.push(gives_up);
                }
                after.threads[me].phase = Phase::Asked(resource, false);
                after.decide(me, setting, fault, |machine, act| match (is_first, thread.reads) {
                    (true, false) => machine.request(task, ResourceId::new(resource), act),
                    (true, true) => machine.request_read(task, ResourceId::new(resource), act),
                    (false, _) => machine.woken(task, act),
                });
            }
            Phase::Asked(resource, is_granted) => {
                // It falls. If it does not own the resource, it executes on the home now, and requests again.
                after.threads[me].phase =
                    if is_granted { Phase::Holds(resource) } else { Phase::Asks(resource, false) };
                after.threads[me].asking = Priority::MIN;
                if !is_granted {
                    after.rise(me, setting, fault);
                }
            }
            Phase::Sleeps(resource) => match after.read_flag(me) {
                Flag::Nothing => after.threads[me].is_asleep = true,
                Flag::Granted => after.threads[me].phase = Phase::Holds(resource),
                Flag::Woken => {
                    after.threads[me].phase = Phase::Asks(resource, false);
                    after.rise(me, setting, fault);
                }
            },
            Phase::Spins(resource) => {
                let is_granted = thread.flag == Flag::Granted && after.read_flag(me) == Flag::Granted;
                after.threads[me].phase = if is_granted { Phase::Holds(resource) } else { Phase::GivesUp(resource) };
            }
            Phase::Held => match after.read_flag(me) {
                Flag::Nothing => after.threads[me].is_asleep = true,
                _ => after.threads[me].phase = Phase::GoesOn,
            },
            Phase::GivesUp(resource) => {
                if after.read_flag(me) == Flag::Granted && fault != Fault::GivesUpBlindly {
                    after.threads[me].phase = Phase::Holds(resource);
                } else {
                    after.requests.retain(|request| *request != (me, resource));
                    let fault = if fault == Fault::NoWakeOnGivingUp { Fault::NoWake } else { fault };
                    after.decide(me, setting, fault, |machine, act| machine.cancel(task, act));
                    after.check_phase(me, resource, setting);
                    (after.threads[me].phase, after.threads[me].reads) = (Phase::Released, false);
                }
            }
            Phase::Holds(resource) => {
                after.requests.retain(|request| *request != (me, resource));
                after.owners[resource].retain(|&owner| owner != me);
                after.decide(me, setting, fault, |machine, act| machine.release(task, ResourceId::new(resource), act));
                after.check_phase(me, resource, setting);
                after.threads[me].phase = Phase::Released;
            }
            Phase::Arrived => after.threads[me].phase = Phase::GoesOn,
            Phase::Released if thread.reads => after.threads[me].reads = false,
            Phase::Released if self.machine.counts_jobs() => after.threads[me].phase = Phase::GoesOn,
            Phase::Released | Phase::Ended => after.threads[me].phase = Phase::Idle,
        }
        next.push(after);
    }

    /// The steps of a thread without a job, or outside of sections: a request for each resource, the beginning or the
    /// end of a job.
    fn steps_of_job(&self, me: usize, setting: &Setting, fault: Fault, next: &mut Vec<Self>) {
        let (counts_jobs, is_idle) = (self.machine.counts_jobs(), self.threads[me].phase == Phase::Idle);
        if !(counts_jobs && is_idle) {
            let modes = match setting.reads {
                true if me < setting.only_read => &[true][..],
                true => &[false, true],
                false => &[false],
            };
            for resource in (0..setting.resources).filter(|_| me < setting.users) {
                for &reads in modes {
                    let mut asks = self.clone();
                    asks.rise(me, setting, fault);
                    (asks.threads[me].phase, asks.threads[me].reads) = (Phase::Asks(resource, true), reads);
                    next.push(asks);
                }
            }
        }
        if counts_jobs {
            let mut after = self.clone();
            let phase = if is_idle { Phase::Arrives } else { Phase::Ends };
            (after.threads[me].phase, after.threads[me].is_excluded) = (phase, setting.has_jobs_above);
            next.push(after);
        }
    }

    fn read_flag(&mut self, me: usize) -> Flag {
        core::mem::replace(&mut self.threads[me].flag, Flag::Nothing)
    }

    /// The state after a wait of `me` has timed out, if waiters give up.
    pub(super) fn timed_out(&self, me: usize, setting: &Setting) -> Option<Self> {
        let Phase::Sleeps(resource) = self.threads[me].phase else { return None };
        if !setting.gives_up || !self.threads[me].is_asleep {
            return None;
        }
        let mut after = self.clone();
        (after.threads[me].phase, after.threads[me].is_asleep) = (Phase::GivesUp(resource), false);
        Some(after)
    }

    fn rise(&mut self, me: usize, setting: &Setting, fault: Fault) {
        let risen = setting.risen(me);
        self.threads[me].asking = if fault == Fault::NotRaised { Priority::MIN } else { risen };
    }

    fn decide(
        &mut self,
        me: usize,
        setting: &Setting,
        fault: Fault,
        event: impl FnOnce(&mut M, &mut dyn FnMut(Action)) -> Result<(), Refusal>,
    ) {
        let mut actions = Vec::new();
        event(&mut self.machine, &mut |action| actions.push(action)).expect("an event with a meaning");
        // The caller is awake.
        actions.retain(|action| *action != Action::Wake { task: TaskId::new(me) });
        let moves_other = |action: &Action| subject(action) != me && matches!(action, Action::Migrate { .. });
        if fault == Fault::NotMoved {
            actions.retain(|action| !moves_other(action));
        }
        if fault == Fault::NotInherited {
            actions.retain(|action| subject(action) == me || !matches!(action, Action::SetPriority { .. }));
        }
        if fault == Fault::NoRestart {
            actions.retain(|action| !matches!(action, Action::Restart { .. }));
        }
        for action in &actions {
            match *action {
                Action::Grant { task, resource } => self.grant(me, task.index(), resource.index(), setting),
                Action::SetPriority { task, priority, .. } => {
                    let is_admitted = setting.served == Served::Admitted && priority.is_boosted();
                    if let Some(place) = self.requests.iter().position(|other| is_admitted && other.0 == task.index()) {
                        let request = self.requests.remove(place);
                        self.requests.push(request);
                    }
                    self.told[task.index()].0 = priority;
                }
                Action::Migrate { task, cpu, .. } => self.told[task.index()].1 = cpu.index(),
                // It has not released the resource.
                Action::Restart { resource, .. } => {
                    self.requests.push((me, resource.index()));
                    self.owners[resource.index()].push(me);
                }
                Action::Wake { task } if self.threads[task.index()].flag == Flag::Nothing => {
                    self.threads[task.index()].flag = Flag::Woken;
                }
                _ => {}
            }
        }
        actions.retain(|action| !matches!(action, Action::Grant { .. }));
        if fault == Fault::NoWake
            && let Some(place) = actions.iter().rposition(|action| matches!(action, Action::Wake { .. }))
        {
            actions.remove(place);
        }
        let tells_other = |action: &Action| subject(action) != me && matches!(action, Action::SetPriority { .. });
        if self.machine.settles_others_at_once() {
            let mut first: Vec<_> = actions.iter().copied().filter(tells_other).collect();
            actions.retain(|action| !tells_other(action));
            match fault {
                Fault::ToldById => first.sort_by_key(subject),
                Fault::NotTold => first.clear(),
                _ => {}
            }
            if !first.is_empty() {
                self.guard = Some(me).filter(|_| fault != Fault::DecidesMeanwhile);
                self.threads[me].is_excluded = true;
            }
            self.threads[me].first = first;
        }
        self.threads[me].todo = actions;
        if self.threads[me].first.is_empty() {
            self.begin_to_carry_out(me, setting);
        }
    }

    fn begin_to_carry_out(&mut self, me: usize, setting: &Setting) {
        let mut others = self.threads[me].todo.iter().filter(|action| subject(action) != me);
        let tells = |action: &Action| matches!(action, Action::SetPriority { .. } | Action::Migrate { .. });
        let is_about_others = others.next().is_some_and(|first| {
            tells(first) || others.any(|action| tells(action) || subject(action) != subject(first))
        });
        let is_of_a_job = matches!(self.threads[me].phase, Phase::Arrived | Phase::Ended);
        self.threads[me].is_excluded = is_about_others || is_of_a_job && setting.has_jobs_above;
    }

    /// Whether the decision of `me` is to release a resource that it wrote.
    fn ends_writing(&self, me: usize) -> bool {
        matches!(self.threads[me].phase, Phase::Holds(_)) && !self.threads[me].reads
    }

    /// Checks, after `me` has released the resource or given up, that a phase of readers leaves no reader out: none
    /// waits after a writer, or where no task writes or waits to write.
    fn check_phase(&self, me: usize, resource: usize, setting: &Setting) {
        if setting.served != Served::Phases {
            return;
        }
        let requests = || self.requests.iter().filter(|request| request.1 == resource).map(|request| request.0);
        let is_left_out = |task: usize| self.threads[task].reads && !self.owners[resource].contains(&task);
        if self.ends_writing(me) || requests().all(|task| self.threads[task].reads) {
            assert!(!requests().any(is_left_out), "a reader is left out of its phase: {:?}", self.requests);
        }
    }

    fn grant(&mut self, me: usize, task: usize, resource: usize, setting: &Setting) {
        let (threads, owners) = (&self.threads, &self.owners[resource]);
        let excludes =
            |other: usize| task.max(other) < setting.excluding && !(threads[task].reads && threads[other].reads);
        assert!(!owners.iter().any(|&owner| excludes(owner)), "granted while owned");
        let is_open = |request: &&(usize, usize)| request.1 == resource && !owners.contains(&request.0);
        let mut waiting = self.requests.iter().filter(is_open).map(|request| request.0);
        match setting.served {
            Served::Earliest => {
                assert_eq!(waiting.next(), Some(task), "granted out of order: {:?}", self.requests);
            }
            Served::Phases => {
                let waiting: Vec<usize> = waiting.collect();
                let writer = waiting.iter().find(|&&other| !threads[other].reads);
                let follows_writer = self.ends_writing(me);
                let is_next = match threads[task].reads {
                    true => writer.is_none() || follows_writer,
                    false => {
                        writer == Some(&task) && !(follows_writer && waiting.iter().any(|&other| threads[other].reads))
                    }
                };
                assert!(is_next, "granted out of order: {:?}", self.requests);
            }
            Served::Any => {}
            Served::Admitted => {
                let first = waiting.find(|&other| self.told[other].0.is_boosted());
                assert_eq!(first, Some(task), "granted out of order: {:?}", self.requests);
            }
            Served::MostUrgent | Served::MostUrgentAdmitted => {
                let waits = |&other: &usize| {
                    let thread = &self.threads[other];
                    let is_told_to = matches!(thread.todo.last(), Some(Action::Block { .. }));
                    let is_admitted = setting.served == Served::MostUrgent || self.told[other].0.is_boosted();
                    other != task && is_admitted && (matches!(thread.phase, Phase::Sleeps(_)) || is_told_to)
                };
                assert!(waiting.filter(waits).all(|other| other < task), "granted to a less urgent one");
            }
        }
        self.owners[resource].push(task);
        if task == me {
            self.threads[me].phase = Phase::Asked(resource, true);
        } else {
            self.threads[task].flag = Flag::Granted;
        }
    }

    fn carry_out(&mut self, me: usize, action: Action, fault: Fault) {
        match action {
            Action::SetPriority { task, priority, epoch } => {
                let thread = &mut self.threads[task.index()];
                if is_later(epoch, thread.priority_epoch) || fault == Fault::TakesStale {
                    (thread.priority, thread.priority_epoch) = (priority, epoch);
                }
            }
            Action::Migrate { task, cpu, epoch } => {
                let thread = &mut self.threads[task.index()];
                if is_later(epoch, thread.place_epoch) {
                    (thread.cpu, thread.place_epoch) = (cpu.index(), epoch);
                }
            }
            Action::Wake { task } => self.threads[task.index()].is_asleep = false,
            Action::Block { resource, .. } => {
                let mine = &mut self.threads[me];
                (mine.phase, mine.asking) = (Phase::Sleeps(resource.index()), Priority::MIN);
            }
            Action::Spin { resource, .. } => {
                let mine = &mut self.threads[me];
                (mine.phase, mine.asking) = (Phase::Spins(resource.index()), Priority::MIN);
            }
            Action::Hold { .. } => self.threads[me].phase = Phase::Held,
            Action::Restart { resource, .. } => self.threads[me].phase = Phase::Holds(resource.index()),
            Action::Grant { .. } => panic!("a grant takes effect when it is decided"),
        }
    }
}
