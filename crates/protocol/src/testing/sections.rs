//! Every order of events of `ics` and `ics_lock`, for 4 tasks and 2 resources.
//!
//! A shadow keeps a log of each resource: the beginning of each section, and each commit, in order. A section is
//! invalidated if a commit follows its beginning. The whole list of actions of each event is derived from that log, the
//! queue and the priorities, and compared with the answer. The tasks inside and the owners are compared as well. From
//! every state every task can finish, each after at most one restart while the others do nothing.

extern crate std;

use super::harness::{Actions, Answer, Mutation, Walk, answer, check_states, run, unchanged, walk};
use crate::{Action, Ics, IcsLock, Machine, Refusal};
use core::hash::Hash;
use lockwright_model::{Priority, ResourceId, TaskId};
use std::vec::Vec;

const TASKS: usize = 4;
const RESOURCES: usize = 2;

/// The two base priorities that each task alternates between; rows tie, and are above a ceiling.
const BASES: [[u32; 2]; TASKS] = [[1, 4], [2, 2], [2, 1], [4, 3]];
/// Cutoff and ceiling of each resource.
const NO_LOCKS: [(u32, u32); RESOURCES] = [(0, 0); RESOURCES];
const LOCKS: [(u32, u32); RESOURCES] = [(4, 2), (3, 2)];
/// Every state there is must be seen; far fewer would mean that the walk did not leave the start.
const STATES_LEAST: usize = 1_000;

trait Walked: Machine + Clone + Eq + Hash {
    /// Whether a change to the same priority is told.
    const TELLS_ALWAYS: bool;
    fn levels() -> [(u32, u32); RESOURCES];
    fn initial(levels: &[(Priority, Priority)]) -> Self;
    fn inside_of(&self, task: usize) -> Option<usize>;
    fn owner_of(&self, resource: usize) -> Option<usize>;
    fn forget(&mut self);
}

fn bases() -> [Priority; TASKS] {
    BASES.map(|[first, _]| Priority::base(first))
}

impl Walked for Ics<TASKS, RESOURCES> {
    const TELLS_ALWAYS: bool = true;

    fn levels() -> [(u32, u32); RESOURCES] {
        NO_LOCKS
    }

    fn initial(levels: &[(Priority, Priority)]) -> Self {
        Self::new(TASKS, levels.len())
    }

    fn inside_of(&self, task: usize) -> Option<usize> {
        self.inside(TaskId::new(task)).map(ResourceId::index)
    }

    fn owner_of(&self, _: usize) -> Option<usize> {
        None
    }

    fn forget(&mut self) {
        self.forget_epochs();
    }
}

impl Walked for IcsLock<TASKS, RESOURCES> {
    const TELLS_ALWAYS: bool = false;

    fn levels() -> [(u32, u32); RESOURCES] {
        LOCKS
    }

    fn initial(levels: &[(Priority, Priority)]) -> Self {
        Self::new(&bases(), levels)
    }

    fn inside_of(&self, task: usize) -> Option<usize> {
        self.inside(TaskId::new(task)).map(ResourceId::index)
    }

    fn owner_of(&self, resource: usize) -> Option<usize> {
        self.owner(ResourceId::new(resource)).map(TaskId::index)
    }

    fn forget(&mut self) {
        self.forget_epochs();
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Event {
    Request(usize, usize),
    Release(usize, usize),
    Woken(usize),
    Cancel(usize),
    /// To the other base, or to the same again.
    Rebase(usize, bool),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Mark {
    Began(usize),
    Committed,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Mode {
    Outside,
    Waits(usize),
    Inside(usize),
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Shadow {
    logs: [Vec<Mark>; RESOURCES],
    owners: [Option<usize>; RESOURCES],
    mode: [Mode; TASKS],
    /// The waiting tasks with their priorities, in order of arrival or of the last change.
    waiting: Vec<(usize, u32)>,
    /// The index of its base priority.
    base: [usize; TASKS],
    told: [Priority; TASKS],
    epochs: [u32; TASKS],
}

impl Shadow {
    fn initial() -> Self {
        Self {
            logs: [Vec::new(), Vec::new()],
            owners: [None; RESOURCES],
            mode: [Mode::Outside; TASKS],
            waiting: Vec::new(),
            base: [0; TASKS],
            told: bases(),
            epochs: [0; TASKS],
        }
    }

    fn base(&self, task: usize) -> u32 {
        BASES[task][self.base[task]]
    }

    fn is_invalidated(&self, task: usize, resource: usize) -> bool {
        let began = self.logs[resource].iter().position(|&mark| mark == Mark::Began(task));
        began.is_some_and(|began| self.logs[resource][began..].contains(&Mark::Committed))
    }

    fn begin(&mut self, task: usize, resource: usize) {
        self.logs[resource].retain(|&mark| mark != Mark::Began(task));
        self.logs[resource].push(Mark::Began(task));
        self.mode[task] = Mode::Inside(resource);
    }

    /// Gives equal states one form: consecutive commits count once, and commits before the first beginning have no
    /// effect.
    fn forget(&mut self) {
        self.epochs = [0; TASKS];
        for log in &mut self.logs {
            log.dedup();
            while log.first() == Some(&Mark::Committed) {
                log.remove(0);
            }
        }
    }

    fn refusals(&self, levels: [(u32, u32); RESOURCES], event: Event) -> Vec<Refusal> {
        let mut reasons = Vec::new();
        let mut refuse = |applies: bool, why| {
            if applies {
                reasons.push(why);
            }
        };
        let (Event::Request(task, _) | Event::Release(task, _) | Event::Woken(task) | Event::Cancel(task)) = event
        else {
            let Event::Rebase(task, _) = event else { unreachable!("all others are above") };
            refuse(task >= TASKS, Refusal::UnknownTask);
            return reasons;
        };
        refuse(task >= TASKS && !matches!(event, Event::Woken(_)), Refusal::UnknownTask);
        refuse(matches!(event, Event::Woken(_)), Refusal::NotWaiting);
        if task >= TASKS {
            return reasons;
        }
        match event {
            Event::Request(_, resource) | Event::Release(_, resource) if resource >= RESOURCES => {
                refuse(true, Refusal::UnknownResource);
            }
            Event::Request(_, resource) => {
                let (cutoff, ceiling) = levels[resource];
                refuse(matches!(self.mode[task], Mode::Waits(_)), Refusal::Waiting);
                refuse(self.mode[task] == Mode::Inside(resource), Refusal::AlreadyHeld);
                refuse(self.mode[task] == Mode::Inside(1 - resource), Refusal::Nested);
                refuse((ceiling + 1..cutoff).contains(&self.base(task)), Refusal::AboveCeiling);
            }
            Event::Release(_, resource) => refuse(self.mode[task] != Mode::Inside(resource), Refusal::NotHeld),
            Event::Cancel(_) => refuse(!matches!(self.mode[task], Mode::Waits(_)), Refusal::NotWaiting),
            Event::Woken(_) | Event::Rebase(..) => {}
        }
        reasons
    }

    /// Carries the event out by the rules, and says which actions must come of it.
    fn foretell(&mut self, levels: [(u32, u32); RESOURCES], event: Event, tells_always: bool) -> Actions {
        let mut actions = Vec::new();
        match event {
            Event::Request(task, resource) => {
                let grant = Action::Grant { task: TaskId::new(task), resource: ResourceId::new(resource) };
                if self.base(task) >= levels[resource].0 {
                    self.begin(task, resource);
                    actions.push(grant);
                } else {
                    self.mode[task] = Mode::Waits(resource);
                    self.tell(levels, task, false, &mut actions);
                    if self.owners[resource].is_none() {
                        self.owners[resource] = Some(task);
                        self.begin(task, resource);
                        actions.push(grant);
                    } else {
                        self.waiting.push((task, self.base(task)));
                        actions.push(Action::Block { task: TaskId::new(task), resource: ResourceId::new(resource) });
                    }
                }
            }
            Event::Release(task, resource) if self.is_invalidated(task, resource) => {
                self.begin(task, resource);
                actions.push(Action::Restart { task: TaskId::new(task), resource: ResourceId::new(resource) });
            }
            Event::Release(task, resource) => {
                self.logs[resource].retain(|&mark| mark != Mark::Began(task));
                self.logs[resource].push(Mark::Committed);
                self.mode[task] = Mode::Outside;
                if self.owners[resource] == Some(task) {
                    let waits = |&&(waiter, _): &&(usize, u32)| self.mode[waiter] == Mode::Waits(resource);
                    let next =
                        self.waiting.iter().filter(waits).rev().max_by_key(|(_, key)| *key).map(|&(next, _)| next);
                    self.owners[resource] = next;
                    if let Some(next) = next {
                        self.waiting.retain(|&(waiter, _)| waiter != next);
                        self.begin(next, resource);
                        let task = TaskId::new(next);
                        actions.extend([
                            Action::Grant { task, resource: ResourceId::new(resource) },
                            Action::Wake { task },
                        ]);
                    }
                    self.tell(levels, task, false, &mut actions);
                }
            }
            Event::Cancel(task) => {
                self.mode[task] = Mode::Outside;
                self.waiting.retain(|&(waiter, _)| waiter != task);
                actions.push(Action::Wake { task: TaskId::new(task) });
                self.tell(levels, task, false, &mut actions);
            }
            Event::Rebase(task, changes) => {
                if changes {
                    self.base[task] = 1 - self.base[task];
                }
                if let Some(place) =
                    self.waiting.iter().position(|&(waiter, key)| waiter == task && key != self.base(task))
                {
                    self.waiting.remove(place);
                    self.waiting.push((task, self.base(task)));
                }
                self.tell(levels, task, tells_always, &mut actions);
            }
            Event::Woken(_) => {}
        }
        actions
    }

    /// The priority of the task, from scratch, where it is another than it was told.
    fn tell(&mut self, levels: [(u32, u32); RESOURCES], task: usize, always: bool, actions: &mut Actions) {
        let claimed = match self.mode[task] {
            Mode::Waits(resource) => Some(resource),
            Mode::Inside(resource) if self.owners[resource] == Some(task) => Some(resource),
            _ => None,
        };
        let level = claimed.map_or(0, |resource| levels[resource].1).max(self.base(task));
        let priority = Priority::base(level);
        if always || self.told[task] != priority {
            self.told[task] = priority;
            self.epochs[task] += 1;
            actions.push(Action::SetPriority { task: TaskId::new(task), priority, epoch: self.epochs[task] });
        }
    }
}

fn follow<M: Walked>(machine: &M, shadow: &mut Shadow, event: Event, actions: &Actions) {
    let expected = shadow.foretell(M::levels(), event, M::TELLS_ALWAYS);
    assert_eq!(*actions, expected, "actions of {event:?}");
    for task in 0..TASKS {
        let inside = if let Mode::Inside(resource) = shadow.mode[task] { Some(resource) } else { None };
        assert_eq!(machine.inside_of(task), inside, "who is inside after {event:?}");
    }
    for resource in 0..RESOURCES {
        assert_eq!(machine.owner_of(resource), shadow.owners[resource], "owners after {event:?}");
    }
}

struct Sections;

impl<M: Walked> Walk<M> for Sections {
    type Shadow = Shadow;
    type Event = Event;

    fn events(&self) -> Vec<Event> {
        let mut events = Vec::new();
        // One task and one resource more than there are.
        for task in 0..=TASKS {
            for resource in 0..=RESOURCES {
                events.extend([Event::Request(task, resource), Event::Release(task, resource)]);
            }
            events.extend([Event::Woken(task), Event::Cancel(task)]);
            events.extend([Event::Rebase(task, true), Event::Rebase(task, false)]);
        }
        events
    }

    fn apply(&self, machine: &mut M, shadow: &Shadow, event: Event) -> Answer {
        answer(|act| match event {
            Event::Request(task, resource) => machine.request(TaskId::new(task), ResourceId::new(resource), act),
            Event::Release(task, resource) => machine.release(TaskId::new(task), ResourceId::new(resource), act),
            Event::Woken(task) => machine.woken(TaskId::new(task), act),
            Event::Cancel(task) => machine.cancel(TaskId::new(task), act),
            Event::Rebase(task, changes) => {
                let base = BASES.get(task).map_or(0, |bases| bases[(shadow.base[task] + usize::from(changes)) % 2]);
                machine.set_base(TaskId::new(task), Priority::base(base), act)
            }
        })
    }

    fn refusals(&self, shadow: &Shadow, event: Event) -> Vec<Refusal> {
        shadow.refusals(M::levels(), event)
    }

    fn follow(&self, machine: &M, shadow: &mut Shadow, event: Event, actions: &Actions) {
        follow(machine, shadow, event, actions);
    }

    /// Each task finishes after at most one restart.
    fn finish(&self, machine: &M, shadow: &Shadow) {
        let (mut machine, mut shadow) = (machine.clone(), shadow.clone());
        // BOUND: each turn takes one task's section to its end.
        for _ in 0..TASKS {
            let inside = (0..TASKS).find_map(|task| match shadow.mode[task] {
                Mode::Inside(resource) => Some((task, resource)),
                _ => None,
            });
            let Some((task, resource)) = inside else { break };
            run(self, (&mut machine, &mut shadow), 2, |shadow| {
                (shadow.mode[task] == Mode::Inside(resource)).then_some(Event::Release(task, resource))
            });
            assert!(shadow.mode[task] == Mode::Outside, "invalidated twice, without another section beside it");
        }
        assert!(shadow.mode == [Mode::Outside; TASKS], "somebody never finishes");
    }

    fn forget(&self, machine: &mut M, shadow: &mut Shadow) {
        machine.forget();
        shadow.forget();
    }
}

/// Walks all reachable states from a machine with these levels, and returns their number.
fn walk_all<M: Walked>(levels: [(u32, u32); RESOURCES], mutation: Mutation<Sections, M>) -> usize {
    let first = M::initial(&levels.map(|(cutoff, ceiling)| (Priority::base(cutoff), Priority::base(ceiling))));
    walk(&Sections, (first, Shadow::initial()), mutation)
}

type Free = Ics<TASKS, RESOURCES>;
type Locked = IcsLock<TASKS, RESOURCES>;

#[test]
fn ics_walks() {
    let states = walk_all::<Free>(NO_LOCKS, unchanged);
    check_states("ics", states, STATES_LEAST);
}

#[test]
fn ics_lock_walks() {
    let states = walk_all::<Locked>(LOCKS, unchanged);
    check_states("ics_lock", states, STATES_LEAST);
}

/// Mutants of the machines, which the walk must find.
mod mutants {
    use super::*;

    /// An invalidated section commits.
    fn commits_all<M: Walked>(_: Event, _: &M, _: &mut M, answer: &mut Answer) {
        if let Ok(actions) = answer {
            actions.retain(|action| !matches!(action, Action::Restart { .. }));
        }
    }

    /// Each section restarts.
    fn restarts_all<M: Walked>(event: Event, before: &M, after: &mut M, answer: &mut Answer) {
        if let (Event::Release(task, resource), Ok(actions)) = (event, answer) {
            *after = before.clone();
            *actions = std::vec![Action::Restart { task: TaskId::new(task), resource: ResourceId::new(resource) }];
        }
    }

    /// A restarted section is invalidated for ever: the conflict is not forgotten.
    fn never_forgets<M: Walked>(event: Event, before: &M, after: &mut M, answer: &mut Answer) {
        let again = |actions: &Actions| actions.iter().any(|action| matches!(action, Action::Restart { .. }));
        if matches!(event, Event::Release(..)) && answer.as_ref().is_ok_and(again) {
            *after = before.clone();
        }
    }

    /// The lock is not handed over.
    fn no_wake<M: Walked>(event: Event, _: &M, _: &mut M, answer: &mut Answer) {
        if let (Event::Release(..), Ok(actions)) = (event, answer) {
            actions.retain(|action| !matches!(action, Action::Wake { .. }));
        }
    }

    fn grants_all<M: Walked>(_: Event, _: &M, _: &mut M, answer: &mut Answer) {
        for action in answer.iter_mut().flatten() {
            if let Action::Block { task, resource } = *action {
                *action = Action::Grant { task, resource };
            }
        }
    }

    fn does_not_rise<M: Walked>(event: Event, _: &M, _: &mut M, answer: &mut Answer) {
        if let (Event::Request(..), Ok(actions)) = (event, answer) {
            actions.retain(|action| !matches!(action, Action::SetPriority { .. }));
        }
    }

    fn falls_first<M: Walked>(event: Event, _: &M, _: &mut M, answer: &mut Answer) {
        if let (Event::Release(..), Ok(actions)) = (event, answer) {
            actions.sort_by_key(|action| !matches!(action, Action::SetPriority { .. }));
        }
    }

    fn takes_all<M: Walked>(_: Event, _: &M, _: &mut M, answer: &mut Answer) {
        if answer.is_err() {
            *answer = Ok(Vec::new());
        }
    }

    macro_rules! mutants {
        ($($name:ident: $machine:ident, $levels:expr, $mutation:ident, $expected:literal;)*) => {$(
            #[test]
            #[should_panic(expected = $expected)]
            #[cfg_attr(miri, ignore = "walks all states")]
            fn $name() {
                walk_all::<$machine>($levels, $mutation);
            }
        )*};
    }

    mutants! {
        ics_commits_all: Free, NO_LOCKS, commits_all, "actions of Release";
        ics_restarts_all: Free, NO_LOCKS, restarts_all, "actions of Release";
        ics_never_forgets: Free, NO_LOCKS, never_forgets, "actions of Release";
        ics_takes_all: Free, NO_LOCKS, takes_all, "an event without meaning was accepted";
        ics_lock_commits_all: Locked, LOCKS, commits_all, "actions of Release";
        ics_lock_never_forgets: Locked, LOCKS, never_forgets, "actions of Release";
        ics_lock_without_wake: Locked, LOCKS, no_wake, "actions of Release";
        ics_lock_grants_all: Locked, LOCKS, grants_all, "actions of Request";
        ics_lock_does_not_rise: Locked, LOCKS, does_not_rise, "actions of Request";
        ics_lock_falls_first: Locked, LOCKS, falls_first, "actions of Release";
        ics_lock_with_other_cutoffs: Locked, [(3, 2), (3, 2)], unchanged, "an event without meaning was accepted";
        ics_lock_without_locks: Locked, NO_LOCKS, unchanged, "actions of Request";
    }
}
