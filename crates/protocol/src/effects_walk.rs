//! Every order of effects: a few threads carry out what a machine decides one action at a time, and others come between.
//!
//! The other walks carry out a decision at once. Here each thread executes steps, and on each processor the runnable thread with the highest priority takes the next:
//!
//! ```text
//!   idle      rises -> asks
//!   asks      [decides] -> carries out, an action a step:   a priority, a move, a wake-up, a wait
//!   sleeps    woken, and granted -> holds;  else -> rises, asks again
//!   on way    executes at home -> rises, asks again
//!   holds     [decides the release] -> carries out -> idle
//! ```
//!
//! As on Linux a thread is above all tasks while it carries out what concerns others, and no thread decides while another tells priorities that must be in effect
//! first ([`Machine::settles_others_at_once`]). In every state:
//! - *owners*: a resource is granted while nobody owns it; where requests are served in their order, to the earliest of the resource's requests, however far their
//!   threads have come; where they are served by priority, to the most urgent of those that wait;
//! - *order*: where priorities tell the order of requests, of two that are on their processor the earlier has the higher priority, between any two effects. (A thread in the
//!   middle of a decision of its own does not count: it is above both.)
//! - *nobody lost*: who sleeps has not been granted anything, unless its wake-up is still to come; and somebody can go on.

extern crate std;

use crate::reach::reach;
use crate::{Action, Dflp, Dpcp, FmlpLong, FmlpPlus, Machine, Refusal};
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
    ($($machine:ident),*) => {$(
        impl Stepped for $machine<TASKS, RESOURCES> {
            fn zero_epochs(&mut self) {
                self.zero_epochs();
            }
        }
    )*};
}

stepped!(Dflp, Dpcp, FmlpLong, FmlpPlus);

/// Who is served next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Served {
    /// The earliest request.
    Earliest,
    /// The most urgent waiter.
    MostUrgent,
}

/// Who there is. Task `t` has base priority `t + 1`.
struct Setting {
    served: Served,
    /// By task.
    cpus: &'static [usize],
    /// How many of the resources are used.
    resources: usize,
    /// By resource: where its sections execute, if not where the task is.
    homes: Option<[usize; RESOURCES]>,
    /// Whether priorities tell the order of requests.
    is_ordered: bool,
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
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Phase {
    Idle,
    /// It has risen, and asks for this; again or for the first time.
    Asks(usize, bool),
    /// It carries out what came of that; `true` where it owns what it asked for.
    Asked(usize, bool),
    /// It has fallen to what counts, and sleeps until it is told something.
    Sleeps(usize),
    Holds(usize),
    /// It carries out what came of its release.
    Released,
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
    is_asking: bool,
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
        let asking = if self.is_asking { Priority::BASE_MAX.boosted() } else { Priority::MIN };
        if self.is_excluded { Priority::NON_PREEMPTIVE } else { self.priority.max(asking) }
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
            is_asking: false,
            is_excluded: false,
            priority: Priority::base(task as u32 + 1),
            cpu,
            priority_epoch: 0,
            place_epoch: 0,
        };
        let threads = setting.cpus.iter().enumerate().map(thread).collect();
        Self { machine, threads, guard: None, requests: Vec::new(), owners: [None; RESOURCES] }
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
        if thread.is_excluded {
            after.threads[me].is_excluded = false;
            return next.push(after);
        }
        match thread.phase {
            Phase::Idle => {
                for resource in 0..setting.resources {
                    let mut asks = self.clone();
                    asks.threads[me].is_asking = true;
                    asks.threads[me].phase = Phase::Asks(resource, true);
                    next.push(asks);
                }
            }
            // Nobody else decides now: it waits for the guard.
            Phase::Asks(..) | Phase::Holds(_) if self.guard.is_some() => {}
            Phase::Asks(resource, is_first) => {
                if is_first {
                    after.requests.push((me, resource));
                }
                after.threads[me].phase = Phase::Asked(resource, false);
                let task = TaskId::new(me);
                after.decide(me, setting, fault, |machine, act| match is_first {
                    true => machine.request(task, ResourceId::new(resource), act),
                    false => machine.woken(task, act),
                });
                next.push(after);
            }
            Phase::Asked(resource, is_granted) => {
                let mine = &mut after.threads[me];
                // It falls; and where it owns nothing, it executes at home now, and asks again.
                mine.phase = if is_granted { Phase::Holds(resource) } else { Phase::Asks(resource, false) };
                mine.is_asking = !is_granted;
                next.push(after);
            }
            Phase::Sleeps(resource) => {
                let mine = &mut after.threads[me];
                match core::mem::replace(&mut mine.flag, Flag::Nothing) {
                    Flag::Nothing => mine.is_asleep = true,
                    Flag::Granted => mine.phase = Phase::Holds(resource),
                    Flag::Woken => (mine.phase, mine.is_asking) = (Phase::Asks(resource, false), true),
                }
                next.push(after);
            }
            Phase::Holds(resource) => {
                after.requests.retain(|request| *request != (me, resource));
                after.owners[resource] = None;
                after.threads[me].phase = Phase::Released;
                let task = TaskId::new(me);
                after.decide(me, setting, fault, |machine, act| machine.release(task, ResourceId::new(resource), act));
                next.push(after);
            }
            Phase::Released => {
                after.threads[me].phase = Phase::Idle;
                next.push(after);
            }
        }
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
        for action in &actions {
            match *action {
                Action::Grant { task, resource } => self.grant(me, task.index(), resource.index(), setting),
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
        self.threads[me].is_excluded = is_about_others;
    }

    fn grant(&mut self, me: usize, task: usize, resource: usize, setting: &Setting) {
        assert_eq!(self.owners[resource], None, "granted while owned");
        let mut waiting = self.requests.iter().filter(|request| request.1 == resource).map(|request| request.0);
        match setting.served {
            Served::Earliest => {
                assert_eq!(waiting.next(), Some(task), "granted out of order: {:?}", self.requests);
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
                (mine.phase, mine.is_asking) = (Phase::Sleeps(resource.index()), false);
            }
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
        }
        assert!((0..self.threads.len()).any(|me| self.can_go_on(me)), "nobody can go on");
        let slot = |&(task, resource): &(usize, usize)| {
            let cpu = setting.homes.map_or(setting.cpus[task], |homes| homes[resource]);
            let thread = &self.threads[task];
            Some((cpu, thread.priority)).filter(|_| thread.cpu == cpu && !thread.is_asking && !thread.is_excluded)
        };
        for (place, later) in self.requests.iter().enumerate().filter(|_| setting.is_ordered) {
            let Some((cpu, priority)) = slot(later) else { continue };
            for earlier in &self.requests[..place] {
                let Some((_, above)) = slot(earlier).filter(|slot| slot.0 == cpu) else { continue };
                assert!(above > priority, "a later request is above an earlier one: {earlier:?}, {later:?}");
            }
        }
    }

    fn can_go_on(&self, me: usize) -> bool {
        let thread = &self.threads[me];
        let decides = thread.todo.is_empty() && matches!(thread.phase, Phase::Asks(..) | Phase::Holds(_));
        self.executes(me) && (self.guard.is_none_or(|other| other == me) || !decides)
    }

    /// States that differ only in epochs are one.
    fn forget(&mut self) {
        for task in 0..self.threads.len() {
            let mut latest = self.threads[task].priority_epoch;
            if is_later(self.threads[task].place_epoch, latest) {
                latest = self.threads[task].place_epoch;
            }
            let (mut ranks, mut moves) = (false, false);
            for thread in &mut self.threads {
                for action in thread.first.iter_mut().chain(&mut thread.todo).filter(|action| subject(action) == task) {
                    ranks |= matches!(action, Action::SetPriority { .. });
                    moves |= matches!(action, Action::Migrate { .. });
                    if let Some(epoch) = epoch(action).filter(|epoch| is_later(**epoch, latest)) {
                        latest = *epoch;
                    }
                }
            }
            // The machine counts on from 0.
            let thread = &mut self.threads[task];
            thread.priority_epoch = if ranks { thread.priority_epoch.wrapping_sub(latest) } else { 0 };
            thread.place_epoch = if moves { thread.place_epoch.wrapping_sub(latest) } else { 0 };
            for thread in &mut self.threads {
                let actions = thread.first.iter_mut().chain(&mut thread.todo);
                let own = actions.filter(|action| subject(action) == task);
                own.filter_map(epoch).for_each(|epoch| *epoch = epoch.wrapping_sub(latest));
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

/// In the order in which requests arrive at home, whatever the order in which they were decided: a request is taken back on arrival, and made again.
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
    Setting { served, cpus: &[0, 0, 0], resources: 1, homes: None, is_ordered: false }
}

/// All tasks on one processor, the home on the other.
const DFLP: Setting = Setting { homes: Some([1, 1]), is_ordered: true, ..served(Served::Earliest) };
/// One task is at home.
const AT_HOME: Setting = Setting { cpus: &[0, 1, 0], ..DFLP };
/// Each on a processor of its own; on none of them is the home.
const APART: Setting = Setting { cpus: &[0, 1, 2], homes: Some([3, 3]), ..DFLP };
const DPCP: Setting = Setting { is_ordered: false, served: Served::MostUrgent, ..AT_HOME };
const LONG: Setting = Setting { cpus: &[0, 0, 1], ..served(Served::Earliest) };
const PLUS: Setting = Setting { is_ordered: true, ..LONG };

/// Fewer states would mean that the walk did not leave the start.
const STATES_LEAST: usize = 1_000;

macro_rules! walks {
    ($($name:ident: $machine:ident, $setting:expr;)*) => {$(
        #[test]
        fn $name() {
            let states = walk($machine(&$setting), &$setting, Fault::None);
            std::println!("{}: {states} states", stringify!($name));
            assert!(states >= STATES_LEAST);
        }
    )*};
}

walks! {
    dflp_effects: dflp, DFLP;
    dflp_effects_with_a_task_at_home: dflp, AT_HOME;
    dflp_effects_from_all_processors: dflp, APART;
    dpcp_effects: dpcp, DPCP;
    fmlp_plus_effects: fmlp_plus, PLUS;
}

macro_rules! mutants {
    ($($name:ident: $machine:ident, $setting:expr, $fault:ident, $expected:literal;)*) => {$(
        #[test]
        #[should_panic(expected = $expected)]
        fn $name() {
            walk($machine(&$setting), &$setting, Fault::$fault);
        }
    )*};
}

mutants! {
    dflp_told_by_id: dflp, DFLP, ToldById, "a later request is above an earlier one";
    dflp_told_while_others_decide: dflp, APART, DecidesMeanwhile, "a later request is above an earlier one";
    dflp_not_told: dflp, DFLP, NotTold, "a later request is above an earlier one";
    dflp_served_by_arrival: by_arrival, AT_HOME, None, "granted out of order";
    dflp_takes_stale: dflp, AT_HOME, TakesStale, "a later request is above an earlier one";
    dflp_without_wake: dflp, AT_HOME, NoWake, "was told something, and sleeps";
    fmlp_plus_not_told: fmlp_plus, PLUS, NotTold, "a later request is above an earlier one";
    fmlp_plus_without_wake: fmlp_plus, PLUS, NoWake, "was told something, and sleeps";
    fmlp_long_without_wake: fmlp_long, LONG, NoWake, "was told something, and sleeps";
    dpcp_without_wake: dpcp, DPCP, NoWake, "was told something, and sleeps";
}
