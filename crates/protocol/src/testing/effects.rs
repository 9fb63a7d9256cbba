//! Every order of effects: a few threads carry out the decisions of a machine one action at a time, and interleave.
//!
//! The other walks carry out a decision at once. Here each thread executes steps. On each processor, the runnable
//! thread with the highest priority takes the next step:
//!
//! ```text
//!   idle      where jobs are counted: [decides the arrival] -> carries out -> goes on, or is held;  else: goes on
//!   goes on   rises -> asks;  or, where jobs are counted: [decides the end] -> carries out -> idle
//!   asks      [decides] -> carries out, an action a step:   a priority, a move, a wake-up, a wait
//!   sleeps    woken, and granted -> holds;  else -> rises, asks again;  or, where waiters give up, gives up
//!   spins     granted -> holds;  or gives up
//!   on way    executes at home -> rises, asks again;  or gives up
//!   gives up  [granted meanwhile] -> holds;  else: [decides that] -> carries out -> goes on
//!   holds     [decides the release] -> carries out -> goes on
//! ```
//!
//! As on Linux, a thread is above all tasks while it carries out actions that concern others. No thread decides while
//! another one tells priorities that must be in effect first ([`Machine::settles_others_at_once`]). Jobs arrive and end
//! above all tasks, at priorities without a meaning to the machine. In every state:
//! - *owners*: a resource is granted only while it has no owner; where requests are served in their order, it goes to
//!   the earliest request for the resource, wherever its thread is; where they are served by priority, it goes to the
//!   most urgent waiter;
//! - *order*: where priorities express the order of requests, of two requests on their processor the earlier one has
//!   the higher priority, between any two effects (a thread in the middle of its own decision does not count, because
//!   it is above both);
//! - *ceilings*: an owner that executes is never below the least priority of owners;
//! - *progress*: a thread that sleeps has not been granted anything, unless its wake-up is still to come; and some
//!   thread can take a step;
//! - *last words*: a thread that no pending action concerns has the priority and the place that the machine told last;
//! - *help*: under `mrsp`, while no thread is in the middle of a decision, no waiter executes instead of the owner that
//!   it waits for.

extern crate std;

use super::harness::{check_states, reach};
use crate::{Action, Dflp, Dpcp, FmlpLong, FmlpPlus, FmlpShort, Machine, Mrsp, Omlp, Refusal};
use core::hash::Hash;
use lockwright_model::{CpuId, Priority, ResourceId, TaskId};
use std::vec::Vec;

/// Capacities; a setting may have fewer tasks.
const TASKS: usize = 4;
const RESOURCES: usize = 2;

/// A machine whose effects are walked.
trait Stepped: Machine + Clone + Eq + Hash {
    /// Epochs begin anew.
    fn zero_epochs(&mut self);
}

macro_rules! stepped {
    ($($machine:ident: $zero:ident),*) => {$(
        impl Stepped for $machine<TASKS, RESOURCES> {
            fn zero_epochs(&mut self) {
                self.$zero();
            }
        }
    )*};
}

stepped!(
    Dflp: zero_epochs, Dpcp: zero_epochs, FmlpLong: zero_epochs, FmlpPlus: zero_epochs, FmlpShort: forget_epochs,
    Mrsp: forget_epochs, Omlp: forget_epochs
);

/// Who is served next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Served {
    /// The earliest request.
    Earliest,
    /// The earliest of those that were let into the queue, which are boosted from then on.
    Admitted,
    /// The most urgent waiter.
    MostUrgent,
}

/// What a task rises to before it asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Rise {
    /// Owners have no priority of their own.
    Nothing,
    /// Above every base priority.
    Boosted,
    /// Above all tasks.
    NonPreemptive,
    /// Just above the highest user on its processor.
    Local,
}

/// Who there is. Task `t` has base priority `t + 1`.
struct Setting {
    served: Served,
    /// By task.
    cpus: &'static [usize],
    /// How many of the tasks use resources; the others are more urgent.
    users: usize,
    /// How many of the resources are used.
    resources: usize,
    /// By resource: where its sections execute, if not where the task is.
    homes: Option<[usize; RESOURCES]>,
    /// Whether priorities tell the order of requests.
    is_ordered: bool,
    rise: Rise,
    /// Whether waiters may give up.
    gives_up: bool,
}

impl Setting {
    /// The highest base priority of the users on a processor.
    fn ceiling(&self, cpu: usize) -> Priority {
        let highest = self.cpus[..self.users].iter().rposition(|&other| other == cpu);
        highest.map_or(Priority::MIN, |task| Priority::base(task as u32 + 1))
    }

    fn risen(&self, task: usize) -> Priority {
        match self.rise {
            Rise::Nothing => Priority::MIN,
            Rise::Boosted => Priority::BASE_MAX.boosted(),
            Rise::NonPreemptive => Priority::NON_PREEMPTIVE,
            Rise::Local => self.ceiling(self.cpus[task]).raised(),
        }
    }

    /// What owners have at least, wherever they are.
    fn floor(&self) -> Priority {
        match self.rise {
            Rise::Nothing => Priority::MIN,
            Rise::Boosted => Priority::MIN.boosted(),
            Rise::NonPreemptive => Priority::NON_PREEMPTIVE,
            Rise::Local => self.cpus[..self.users].iter().map(|&cpu| self.ceiling(cpu)).min().unwrap_or(Priority::MIN),
        }
    }
}

/// What is wrong with those that carry out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    None,
    /// Others are told in the order of their ids.
    ToldById,
    /// Others decide before all are told.
    DecidesMeanwhile,
    /// Nobody is told of the new order.
    NotTold,
    /// A priority is taken, however old it is.
    TakesStale,
    /// The last wake-up of each decision is lost.
    NoWake,
    /// The same, only of a waiter's that gives up.
    NoWakeOnGivingUp,
    /// A task asks without rising.
    NotRaised,
    /// The machine moves nobody but the caller.
    NotMoved,
    /// Who gives up does not look whether it was granted meanwhile.
    GivesUpBlindly,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Phase {
    Idle,
    /// Its job is released.
    Arrives,
    /// It carries out what came of that.
    Arrived,
    /// Its job must not start.
    Held,
    /// Its job executes, outside of sections.
    GoesOn,
    /// Its job ends.
    Ends,
    /// It carries out what came of that.
    Ended,
    /// It has risen, and asks for this; again or for the first time.
    Asks(usize, bool),
    /// It carries out what came of that; `true` where it owns what it asked for.
    Asked(usize, bool),
    /// It has fallen to what counts, and sleeps until it is told something.
    Sleeps(usize),
    /// The same, but it executes.
    Spins(usize),
    /// It does not want any more what it waited for.
    GivesUp(usize),
    Holds(usize),
    /// It carries out what came of its release, or of its giving up.
    Released,
}

impl Phase {
    /// Whether its next step is a decision of its own.
    fn decides(self) -> bool {
        matches!(self, Self::Arrives | Self::Ends | Self::Asks(..) | Self::GivesUp(_) | Self::Holds(_))
    }
}

/// What a sleeper was told.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Flag {
    Nothing,
    Woken,
    Granted,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Thread {
    phase: Phase,
    /// What it has yet to carry out.
    todo: Vec<Action>,
    /// What it tells others before anybody else decides.
    first: Vec<Action>,
    flag: Flag,
    /// It has gone to sleep in the kernel.
    is_asleep: bool,
    /// What it has risen to to ask.
    asking: Priority,
    is_excluded: bool,
    /// As in effect, and as old as this.
    priority: Priority,
    cpu: usize,
    priority_epoch: u32,
    place_epoch: u32,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct State<M> {
    machine: M,
    threads: Vec<Thread>,
    /// Who has the guard between two steps.
    guard: Option<usize>,
    /// Requests that were decided and are not over: of whom, for what.
    requests: Vec<(usize, usize)>,
    /// Of those, by the machine's actions.
    owners: [Option<usize>; RESOURCES],
    /// By task: the priority and the place that the machine told last.
    told: Vec<(Priority, usize)>,
}

fn subject(action: &Action) -> usize {
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

fn epoch(action: &mut Action) -> Option<&mut u32> {
    match action {
        Action::SetPriority { epoch, .. } | Action::Migrate { epoch, .. } => Some(epoch),
        _ => None,
    }
}

fn is_later(epoch: u32, than: u32) -> bool {
    epoch.wrapping_sub(than) as i32 > 0
}

impl Thread {
    fn effective(&self) -> Priority {
        if self.is_excluded { Priority::NON_PREEMPTIVE } else { self.priority.max(self.asking) }
    }
}

impl<M: Stepped> State<M> {
    fn first(machine: M, setting: &Setting) -> Self {
        let thread = |(task, &cpu): (usize, &usize)| Thread {
            phase: Phase::Idle,
            todo: Vec::new(),
            first: Vec::new(),
            flag: Flag::Nothing,
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
        Self { machine, threads, guard: None, requests: Vec::new(), owners: [None; RESOURCES], told }
    }

    /// Whether the thread executes: nobody runnable on its processor is above it.
    fn executes(&self, me: usize) -> bool {
        let mine = &self.threads[me];
        // The idle ones need not be there.
        let is_runnable = |other: &Thread| !other.is_asleep && other.phase != Phase::Idle;
        let is_above =
            |other: &Thread| is_runnable(other) && other.cpu == mine.cpu && other.effective() > mine.effective();
        !mine.is_asleep && !self.threads.iter().any(is_above)
    }

    /// All states to which one step of `me`, which executes, leads.
    fn steps(&self, me: usize, setting: &Setting, fault: Fault, next: &mut Vec<Self>) {
        let thread = &self.threads[me];
        let mut after = self.clone();
        if !thread.first.is_empty() {
            let action = after.threads[me].first.remove(0);
            after.carry_out(me, action, fault);
            if after.threads[me].first.is_empty() {
                (after.guard, after.threads[me].is_excluded) = (None, false);
                after.begin_to_carry_out(me);
            }
            return next.push(after);
        }
        if !thread.todo.is_empty() {
            let action = after.threads[me].todo.remove(0);
            if subject(&action) == me && thread.is_excluded {
                // A step of its own.
                after.threads[me].is_excluded = false;
                after.threads[me].todo.insert(0, action);
            } else {
                after.carry_out(me, action, fault);
            }
            return next.push(after);
        }
        if thread.is_excluded && !thread.phase.decides() {
            after.threads[me].is_excluded = false;
            return next.push(after);
        }
        let counts_jobs = self.machine.counts_jobs();
        let task = TaskId::new(me);
        match thread.phase {
            Phase::Idle if counts_jobs => {
                (after.threads[me].phase, after.threads[me].is_excluded) = (Phase::Arrives, true);
                next.push(after);
            }
            Phase::Idle | Phase::GoesOn => {
                for resource in (0..setting.resources).filter(|_| me < setting.users) {
                    let mut asks = self.clone();
                    asks.rise(me, setting, fault);
                    asks.threads[me].phase = Phase::Asks(resource, true);
                    next.push(asks);
                }
                if counts_jobs {
                    (after.threads[me].phase, after.threads[me].is_excluded) = (Phase::Ends, true);
                    next.push(after);
                }
            }
            // Nobody else decides now: it waits for the guard.
            phase if phase.decides() && self.guard.is_some() => {}
            Phase::Arrives => {
                after.threads[me].phase = Phase::Arrived;
                after.decide(me, setting, fault, |machine, act| machine.arrive(task, act));
                next.push(after);
            }
            Phase::Ends => {
                after.threads[me].phase = Phase::Ended;
                after.decide(me, setting, fault, |machine, act| machine.finish(task, act));
                next.push(after);
            }
            Phase::Asks(resource, is_first) => {
                if !is_first && setting.gives_up {
                    let mut gives_up = self.clone();
                    (gives_up.threads[me].phase, gives_up.threads[me].asking) =
                        (Phase::GivesUp(resource), Priority::MIN);
                    next.push(gives_up);
                }
                if is_first {
                    after.requests.push((me, resource));
                }
                after.threads[me].phase = Phase::Asked(resource, false);
                after.decide(me, setting, fault, |machine, act| match is_first {
                    true => machine.request(task, ResourceId::new(resource), act),
                    false => machine.woken(task, act),
                });
                next.push(after);
            }
            Phase::Asked(resource, is_granted) => {
                // It falls; and where it owns nothing, it executes at home now, and asks again.
                after.threads[me].phase =
                    if is_granted { Phase::Holds(resource) } else { Phase::Asks(resource, false) };
                after.threads[me].asking = Priority::MIN;
                if !is_granted {
                    after.rise(me, setting, fault);
                }
                next.push(after);
            }
            Phase::Sleeps(resource) => {
                let mine = &mut after.threads[me];
                match core::mem::replace(&mut mine.flag, Flag::Nothing) {
                    Flag::Nothing => mine.is_asleep = true,
                    Flag::Granted => mine.phase = Phase::Holds(resource),
                    Flag::Woken => {
                        mine.phase = Phase::Asks(resource, false);
                        after.rise(me, setting, fault);
                    }
                }
                next.push(after);
            }
            Phase::Spins(resource) => {
                if thread.flag == Flag::Granted {
                    (after.threads[me].flag, after.threads[me].phase) = (Flag::Nothing, Phase::Holds(resource));
                    next.push(after);
                } else if setting.gives_up {
                    after.threads[me].phase = Phase::GivesUp(resource);
                    next.push(after);
                }
            }
            Phase::Held => {
                let mine = &mut after.threads[me];
                match core::mem::replace(&mut mine.flag, Flag::Nothing) {
                    Flag::Nothing => mine.is_asleep = true,
                    _ => mine.phase = Phase::GoesOn,
                }
                next.push(after);
            }
            Phase::GivesUp(resource) => {
                let told = core::mem::replace(&mut after.threads[me].flag, Flag::Nothing);
                if told == Flag::Granted && fault != Fault::GivesUpBlindly {
                    after.threads[me].phase = Phase::Holds(resource);
                } else {
                    after.requests.retain(|request| *request != (me, resource));
                    after.threads[me].phase = Phase::Released;
                    let fault = if fault == Fault::NoWakeOnGivingUp { Fault::NoWake } else { fault };
                    after.decide(me, setting, fault, |machine, act| machine.cancel(task, act));
                }
                next.push(after);
            }
            Phase::Holds(resource) => {
                after.requests.retain(|request| *request != (me, resource));
                after.owners[resource] = None;
                after.threads[me].phase = Phase::Released;
                after.decide(me, setting, fault, |machine, act| machine.release(task, ResourceId::new(resource), act));
                next.push(after);
            }
            Phase::Arrived => {
                after.threads[me].phase = Phase::GoesOn;
                next.push(after);
            }
            Phase::Released => {
                after.threads[me].phase = if counts_jobs { Phase::GoesOn } else { Phase::Idle };
                next.push(after);
            }
            Phase::Ended => {
                after.threads[me].phase = Phase::Idle;
                next.push(after);
            }
        }
    }

    /// The state after the kernel has ended a wait whose time is over, where waiters give up.
    fn timed_out(&self, me: usize, setting: &Setting) -> Option<Self> {
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
        // It is awake.
        actions.retain(|action| *action != Action::Wake { task: TaskId::new(me) });
        let moves_other = |action: &Action| subject(action) != me && matches!(action, Action::Migrate { .. });
        if fault == Fault::NotMoved {
            actions.retain(|action| !moves_other(action));
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
            self.begin_to_carry_out(me);
        }
    }

    fn begin_to_carry_out(&mut self, me: usize) {
        let mut others = self.threads[me].todo.iter().filter(|action| subject(action) != me);
        let tells = |action: &Action| matches!(action, Action::SetPriority { .. } | Action::Migrate { .. });
        let is_about_others = others.next().is_some_and(|first| {
            tells(first) || others.any(|action| tells(action) || subject(action) != subject(first))
        });
        let is_of_a_job = matches!(self.threads[me].phase, Phase::Arrived | Phase::Ended);
        self.threads[me].is_excluded = is_about_others || is_of_a_job;
    }

    fn grant(&mut self, me: usize, task: usize, resource: usize, setting: &Setting) {
        assert_eq!(self.owners[resource], None, "granted while owned");
        let mut waiting = self.requests.iter().filter(|request| request.1 == resource).map(|request| request.0);
        match setting.served {
            Served::Earliest => {
                assert_eq!(waiting.next(), Some(task), "granted out of order: {:?}", self.requests);
            }
            Served::Admitted => {
                let first = waiting.find(|&other| self.told[other].0.is_boosted());
                assert_eq!(first, Some(task), "granted out of order: {:?}", self.requests);
            }
            Served::MostUrgent => {
                let waits = |&other: &usize| {
                    let thread = &self.threads[other];
                    let is_told_to = matches!(thread.todo.last(), Some(Action::Block { .. }));
                    other != task && (matches!(thread.phase, Phase::Sleeps(_)) || is_told_to)
                };
                assert!(waiting.filter(waits).all(|other| other < task), "granted to a less urgent one");
            }
        }
        self.owners[resource] = Some(task);
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
            other => panic!("no thread of these carries out {other:?}"),
        }
    }

    fn check(&self, setting: &Setting) {
        for (task, thread) in self.threads.iter().enumerate() {
            let is_told = thread.flag != Flag::Nothing;
            let wake = Action::Wake { task: TaskId::new(task) };
            let is_to_come = self.threads.iter().any(|other| other.todo.contains(&wake));
            assert!(!thread.is_asleep || !is_told || is_to_come, "task {task} was told something, and sleeps");
            if let Phase::Holds(resource) = thread.phase {
                assert_eq!(self.owners[resource], Some(task), "holds what it does not own");
            }
            if self.owners.contains(&Some(task)) && self.executes(task) {
                assert!(thread.effective() >= setting.floor(), "owner {task} executes below its ceiling");
            }
        }
        assert!((0..self.threads.len()).any(|me| self.can_go_on(me)), "nobody can go on");
        let slot = |&(task, resource): &(usize, usize)| {
            let cpu = setting.homes.map_or(setting.cpus[task], |homes| homes[resource]);
            let thread = &self.threads[task];
            let is_between = thread.asking == Priority::MIN && !thread.is_excluded;
            Some((cpu, thread.priority)).filter(|_| thread.cpu == cpu && is_between)
        };
        for (place, later) in self.requests.iter().enumerate().filter(|_| setting.is_ordered) {
            let Some((cpu, priority)) = slot(later) else { continue };
            for earlier in &self.requests[..place] {
                let Some((_, above)) = slot(earlier).filter(|slot| slot.0 == cpu) else { continue };
                assert!(above > priority, "a later request is above an earlier one: {earlier:?}, {later:?}");
            }
        }
        self.check_last_words();
        if setting.rise == Rise::Local {
            self.check_help();
        }
    }

    fn check_last_words(&self) {
        for (task, (thread, &told)) in self.threads.iter().zip(&self.told).enumerate() {
            let tells = |action: &Action| matches!(action, Action::SetPriority { .. } | Action::Migrate { .. });
            let mut left = self.threads.iter().flat_map(|other| other.first.iter().chain(&other.todo));
            if !left.any(|action| tells(action) && subject(action) == task) {
                assert_eq!((thread.priority, thread.cpu), told, "task {task} was told otherwise last");
            }
        }
    }

    /// While nobody is in the middle of anything.
    fn check_help(&self) {
        let is_between = |thread: &Thread| {
            let is_done = thread.first.is_empty() && thread.todo.is_empty() && !thread.is_excluded;
            is_done && matches!(thread.phase, Phase::Idle | Phase::GoesOn | Phase::Spins(_) | Phase::Holds(_))
        };
        if !self.threads.iter().all(is_between) {
            return;
        }
        for (task, thread) in self.threads.iter().enumerate() {
            if let Phase::Spins(resource) = thread.phase
                && let Some(owner) = self.owners[resource]
                && self.executes(task)
            {
                assert!(self.executes(owner), "task {task} spins for {owner}, which does not execute");
            }
        }
    }

    fn can_go_on(&self, me: usize) -> bool {
        let thread = &self.threads[me];
        let decides = thread.todo.is_empty() && thread.phase.decides();
        let spins = matches!(thread.phase, Phase::Spins(_)) && thread.flag != Flag::Granted;
        self.executes(me) && !spins && (self.guard.is_none_or(|other| other == me) || !decides)
    }

    /// States that differ only in epochs are one, where these have the same order.
    fn forget(&mut self) {
        for task in 0..self.threads.len() {
            // Of what is to be told, how far it lies behind the latest.
            let mut told: Vec<(bool, u32)> = Vec::new();
            for thread in &mut self.threads {
                for action in thread.first.iter_mut().chain(&mut thread.todo).filter(|action| subject(action) == task) {
                    let moves = matches!(action, Action::Migrate { .. });
                    told.extend(epoch(action).map(|epoch| (moves, *epoch)));
                }
            }
            let Thread { priority_epoch, place_epoch, .. } = self.threads[task];
            let mut epochs: Vec<u32> = told.iter().map(|&(_, epoch)| epoch).collect();
            epochs.extend([(false, priority_epoch), (true, place_epoch)].iter().filter_map(|&(moves, epoch)| {
                // Where nothing of the kind is to be told, no epoch is compared with it but later ones.
                told.iter().any(|other| other.0 == moves).then_some(epoch)
            }));
            epochs.sort_unstable_by(|&a, &b| (b.wrapping_sub(a) as i32).cmp(&0));
            epochs.dedup();
            // The latest has 0, from where the machine counts on.
            let ranked = |old: u32| {
                let place = epochs.iter().position(|&epoch| epoch == old).unwrap_or(0) as u32;
                0_u32.wrapping_sub(place)
            };
            let thread = &mut self.threads[task];
            (thread.priority_epoch, thread.place_epoch) = (ranked(priority_epoch), ranked(place_epoch));
            for thread in &mut self.threads {
                let actions = thread.first.iter_mut().chain(&mut thread.todo);
                let own = actions.filter(|action| subject(action) == task);
                own.filter_map(epoch).for_each(|epoch| *epoch = ranked(*epoch));
            }
        }
        self.machine.zero_epochs();
    }
}

/// Walks all reachable states; returns how many there are.
fn walk<M: Stepped>(machine: M, setting: &Setting, fault: Fault) -> usize {
    reach(State::first(machine, setting), |state, next_states| {
        state.check(setting);
        let before = next_states.len();
        for me in (0..state.threads.len()).filter(|&me| state.executes(me)) {
            state.steps(me, setting, fault, next_states);
        }
        next_states.extend((0..state.threads.len()).filter_map(|me| state.timed_out(me, setting)));
        next_states[before..].iter_mut().for_each(State::forget);
    })
}

fn tasks(setting: &Setting) -> Vec<(Priority, CpuId)> {
    let task = |(task, &cpu): (usize, &usize)| (Priority::base(task as u32 + 1), CpuId::new(cpu));
    setting.cpus.iter().enumerate().map(task).collect()
}

fn dflp(setting: &Setting) -> Dflp<TASKS, RESOURCES> {
    Dflp::new(&tasks(setting), &setting.homes.unwrap_or_default().map(CpuId::new))
}

fn dpcp(setting: &Setting) -> Dpcp<TASKS, RESOURCES> {
    let highest = Priority::base(setting.cpus.len() as u32);
    Dpcp::new(&tasks(setting), &setting.homes.unwrap_or_default().map(|home| (CpuId::new(home), highest)))
}

fn fmlp_long(setting: &Setting) -> FmlpLong<TASKS, RESOURCES> {
    FmlpLong::new(&tasks(setting), RESOURCES)
}

fn fmlp_plus(setting: &Setting) -> FmlpPlus<TASKS, RESOURCES> {
    FmlpPlus::new(&tasks(setting), RESOURCES)
}

fn fmlp_short(setting: &Setting) -> FmlpShort<TASKS, RESOURCES> {
    FmlpShort::new(&tasks(setting), RESOURCES)
}

fn mrsp(setting: &Setting) -> Mrsp<TASKS, RESOURCES> {
    let users: Vec<TaskId> = (0..setting.users).map(TaskId::new).collect();
    Mrsp::new(&tasks(setting), [users.as_slice(); RESOURCES].into_iter())
}

fn omlp(setting: &Setting) -> Omlp<TASKS, RESOURCES> {
    Omlp::new(&tasks(setting), RESOURCES)
}

/// In the order in which requests arrive at home, whatever the order in which they were decided: a request is taken
/// back on arrival, and made again.
#[derive(Clone, PartialEq, Eq, Hash)]
struct ByArrival(Dflp<TASKS, RESOURCES>, [Option<ResourceId>; TASKS]);

impl Machine for ByArrival {
    fn request(&mut self, task: TaskId, resource: ResourceId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.1[task.index()] = Some(resource);
        self.0.request(task, resource, act)
    }

    fn release(&mut self, task: TaskId, resource: ResourceId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.0.release(task, resource, act)
    }

    fn woken(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        let resource = self.1[task.index()].ok_or(Refusal::NotWaiting)?;
        let mut grants = |action| {
            if let Action::Grant { .. } | Action::Wake { .. } = action {
                act(action);
            }
        };
        self.0.cancel(task, &mut grants)?;
        self.0.request(task, resource, &mut |_| ())?;
        self.0.woken(task, act)
    }

    fn cancel(&mut self, task: TaskId, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.0.cancel(task, act)
    }

    fn set_base(&mut self, task: TaskId, base: Priority, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
        self.0.set_base(task, base, act)
    }
}

impl Stepped for ByArrival {
    fn zero_epochs(&mut self) {
        self.0.zero_epochs();
    }
}

fn by_arrival(setting: &Setting) -> ByArrival {
    ByArrival(dflp(setting), [None; TASKS])
}

const fn served(served: Served) -> Setting {
    let rise = Rise::Boosted;
    let cpus = &[0, 0, 0];
    Setting { served, cpus, users: 3, resources: 1, homes: None, is_ordered: false, rise, gives_up: false }
}

/// All tasks on one processor, the home on the other.
const DFLP: Setting = Setting { homes: Some([1, 1]), is_ordered: true, ..served(Served::Earliest) };
/// One task is at home.
const AT_HOME: Setting = Setting { cpus: &[0, 1, 0], ..DFLP };
/// Each on a processor of its own; on none of them is the home.
const APART: Setting = Setting { cpus: &[0, 1, 2], homes: Some([3, 3]), ..DFLP };
const DPCP: Setting = Setting { is_ordered: false, served: Served::MostUrgent, ..AT_HOME };
const PLUS: Setting = Setting { cpus: &[0, 0, 1], is_ordered: true, ..served(Served::Earliest) };
const LONG: Setting = Setting { is_ordered: false, rise: Rise::Nothing, ..PLUS };
const SHORT: Setting = Setting { cpus: &[0, 0, 1, 2], users: 4, rise: Rise::NonPreemptive, is_ordered: false, ..PLUS };
const MRSP: Setting = Setting { rise: Rise::Local, is_ordered: false, ..PLUS };
/// One that does not ask preempts owners, whom one of another processor helps.
const HELPED: Setting = Setting { cpus: &[0, 1, 0], users: 2, ..MRSP };
/// Two can help.
const HELPED_BY_TWO: Setting = Setting { cpus: &[0, 1, 2, 0], users: 3, ..MRSP };
const OMLP: Setting = Setting { served: Served::Admitted, is_ordered: false, ..PLUS };
const OMLP_OF_TWO: Setting = Setting { resources: 2, ..OMLP };

const fn giving_up(setting: Setting) -> Setting {
    Setting { gives_up: true, ..setting }
}

/// Fewer states would mean that the walk did not leave the start.
const STATES_LEAST: usize = 1_000;

macro_rules! walks {
    ($($name:ident: $machine:ident, $setting:expr;)*) => {$(
        #[test]
        fn $name() {
            let states = walk($machine(&$setting), &$setting, Fault::None);
            check_states(stringify!($name), states, STATES_LEAST);
        }
    )*};
}

walks! {
    dflp_effects: dflp, DFLP;
    dflp_effects_with_a_task_at_home: dflp, AT_HOME;
    dflp_effects_from_all_processors: dflp, APART;
    dpcp_effects: dpcp, DPCP;
    fmlp_plus_effects: fmlp_plus, PLUS;
    fmlp_long_effects: fmlp_long, LONG;
    fmlp_short_effects: fmlp_short, SHORT;
    mrsp_effects: mrsp, MRSP;
    mrsp_effects_with_help: mrsp, HELPED;
    mrsp_effects_with_help_of_two: mrsp, HELPED_BY_TWO;
    omlp_effects: omlp, OMLP;
    omlp_effects_of_two_resources: omlp, OMLP_OF_TWO;
    dflp_effects_of_giving_up: dflp, giving_up(AT_HOME);
    dpcp_effects_of_giving_up: dpcp, giving_up(DPCP);
    fmlp_long_effects_of_giving_up: fmlp_long, giving_up(LONG);
    fmlp_plus_effects_of_giving_up: fmlp_plus, giving_up(PLUS);
    fmlp_short_effects_of_giving_up: fmlp_short, giving_up(SHORT);
    mrsp_effects_of_giving_up: mrsp, giving_up(HELPED);
    omlp_effects_of_giving_up: omlp, giving_up(OMLP_OF_TWO);
}

macro_rules! mutants {
    ($($name:ident: $machine:ident, $setting:expr, $fault:ident, $expected:literal;)*) => {$(
        #[test]
        #[should_panic(expected = $expected)]
        #[cfg_attr(miri, ignore = "walks all states")]
        fn $name() {
            walk($machine(&$setting), &$setting, Fault::$fault);
        }
    )*};
}

mutants! {
    dflp_told_by_id: dflp, DFLP, ToldById, "a later request is above an earlier one";
    dflp_told_while_others_decide: dflp, APART, DecidesMeanwhile, "a later request is above an earlier one";
    dflp_not_told: dflp, DFLP, NotTold, "was told otherwise last";
    dflp_served_by_arrival: by_arrival, AT_HOME, None, "granted out of order";
    dflp_takes_stale: dflp, AT_HOME, TakesStale, "was told otherwise last";
    dflp_without_wake: dflp, AT_HOME, NoWake, "was told something, and sleeps";
    fmlp_plus_not_told: fmlp_plus, PLUS, NotTold, "was told otherwise last";
    fmlp_plus_without_wake: fmlp_plus, PLUS, NoWake, "was told something, and sleeps";
    fmlp_long_without_wake: fmlp_long, LONG, NoWake, "was told something, and sleeps";
    dpcp_without_wake: dpcp, DPCP, NoWake, "was told something, and sleeps";
    fmlp_long_takes_stale: fmlp_long, LONG, TakesStale, "was told otherwise last";
    fmlp_short_not_raised: fmlp_short, SHORT, NotRaised, "executes below its ceiling";
    mrsp_not_raised: mrsp, MRSP, NotRaised, "executes below its ceiling";
    mrsp_not_moved: mrsp, HELPED, NotMoved, "spins for";
    mrsp_takes_stale: mrsp, HELPED, TakesStale, "was told otherwise last";
    omlp_not_raised: omlp, OMLP, NotRaised, "executes below its ceiling";
    omlp_without_wake: omlp, OMLP, NoWake, "was told something, and sleeps";
    dflp_gives_up_without_wake: dflp, giving_up(AT_HOME), NoWakeOnGivingUp, "was told something, and sleeps";
    omlp_gives_up_without_wake: omlp, giving_up(OMLP_OF_TWO), NoWakeOnGivingUp, "was told something, and sleeps";
    fmlp_short_gives_up_blindly: fmlp_short, giving_up(SHORT), GivesUpBlindly, "an event with a meaning";
    mrsp_gives_up_blindly: mrsp, giving_up(MRSP), GivesUpBlindly, "an event with a meaning";
    fmlp_plus_gives_up_blindly: fmlp_plus, giving_up(PLUS), GivesUpBlindly, "an event with a meaning";
}
