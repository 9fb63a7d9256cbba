//! Every order of events, for 3 tasks and 2 resources, under `none`, `pip`, `icpp` and `mpcp`.
//!
//! A shadow is computed from the actions alone. After every event it is compared with the machine:
//! - *exclusion*: a resource is granted only while it has no owner;
//! - *order*: a hand-off or a wake-up goes to the most urgent waiter, the earliest among equals;
//! - *progress*: a resource with waiters has an owner, or one of the waiters is awake; and from every state every task
//!   can finish;
//! - *priorities*: the last value told to each task is that of a computation from scratch, told once, with rising
//!   epochs;
//! - *order of actions*: other tasks come first, the caller comes last; a task rises before it waits;
//! - *totality*: every event without meaning is refused, and changes nothing.

extern crate std;

use super::harness::{Actions, Answer, Mutation, Walk, answer, check_states, run, unchanged, walk};
use crate::{Action, Icpp, Machine, Mpcp, Pip, PlainMutex, Refusal};
use core::hash::Hash;
use lockwright_model::{CpuId, MpcpCeiling, Priority, ResourceId, TaskId};
use std::vec::Vec;

const TASKS: usize = 3;
const RESOURCES: usize = 2;

/// The two base priorities that each task alternates between; rows may tie.
const BASES: [[u32; 2]; TASKS] = [[1, 4], [2, 2], [3, 1]];

/// A machine that is walked.
trait Walked: Machine + Clone + Eq + Hash {
    /// Whether a release hands the resource over, and `woken` never comes.
    const HANDS_OFF: bool;
    /// Whether a request that would deadlock is refused.
    const SEES_DEADLOCK: bool;
    /// Whether a change of priority moves a waiting task.
    const REORDERS: bool;
    fn initial() -> Self;
    fn owner_of(&self, resource: usize) -> Option<usize>;
    fn forget(&mut self);
    /// The effective priority of every task, from scratch.
    fn expected(shadow: &Shadow) -> [Priority; TASKS];
    /// The ceiling that a request of `task` must not exceed.
    fn limit(_resource: usize) -> Option<Priority> {
        None
    }
}

/// The state according to the actions.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Shadow {
    owners: [Option<usize>; RESOURCES],
    /// Waiting tasks: for what, by which priority, in order of arrival.
    waiting: Vec<Waiting>,
    /// The tasks that were woken and have not called since.
    awake: [bool; TASKS],
    bases: [usize; TASKS],
    told: [Priority; TASKS],
    epochs: [u32; TASKS],
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Waiting {
    task: usize,
    resource: usize,
    /// The priority it is queued by.
    key: Priority,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Event {
    Request(usize, usize),
    Release(usize, usize),
    Woken(usize),
    Cancel(usize),
    Rebase(usize),
}

fn base(shadow: &Shadow, task: usize) -> Priority {
    Priority::base(BASES[task][shadow.bases[task]])
}

impl Shadow {
    fn initial() -> Self {
        let told = core::array::from_fn(|task| Priority::base(BASES[task][0]));
        Self {
            owners: [None; RESOURCES],
            waiting: Vec::new(),
            awake: [false; TASKS],
            bases: [0; TASKS],
            told,
            epochs: [0; TASKS],
        }
    }

    fn waits_for(&self, task: usize) -> Option<usize> {
        self.waiting.iter().find(|waiting| waiting.task == task).map(|waiting| waiting.resource)
    }

    fn holds(&self, task: usize, resource: usize) -> bool {
        self.owners[resource] == Some(task)
    }

    /// The most urgent waiter, the earliest among equals; of those still asleep if `asleep`.
    fn first(&self, resource: usize, asleep: bool) -> Option<usize> {
        let mut first: Option<&Waiting> = None;
        for waiting in self.waiting.iter().filter(|w| w.resource == resource && !(asleep && self.awake[w.task])) {
            if first.is_none_or(|first| waiting.key > first.key) {
                first = Some(waiting);
            }
        }
        first.map(|waiting| waiting.task)
    }

    fn deadlocks(&self, task: usize, resource: usize) -> bool {
        let mut at = Some(resource);
        while let Some(owner) = at.and_then(|resource| self.owners[resource]) {
            if owner == task {
                return true;
            }
            at = self.waits_for(owner);
        }
        false
    }

    /// Queues a task by a new key: behind its equals.
    fn requeue(&mut self, task: usize, key: Priority) {
        let place = self.waiting.iter().position(|waiting| waiting.task == task).unwrap();
        if self.waiting[place].key != key {
            let waiting = self.waiting.remove(place);
            self.waiting.push(Waiting { key, ..waiting });
        }
    }
}

/// Whether the event means something in this state; what is not, must be refused.
fn refusal<M: Walked>(shadow: &Shadow, event: Event) -> Option<Refusal> {
    match event {
        Event::Request(task, resource) => {
            if M::limit(resource).is_some_and(|limit| base(shadow, task) > limit) {
                Some(Refusal::AboveCeiling)
            } else if shadow.waits_for(task).is_some() {
                Some(Refusal::Waiting)
            } else if shadow.holds(task, resource) {
                Some(Refusal::AlreadyHeld)
            } else if M::SEES_DEADLOCK && shadow.deadlocks(task, resource) {
                Some(Refusal::Deadlock)
            } else {
                None
            }
        }
        Event::Release(task, resource) if !shadow.holds(task, resource) => Some(Refusal::NotHeld),
        Event::Release(task, _) => shadow.waits_for(task).map(|_| Refusal::Waiting),
        // Where waiters stay queued, one that wakes by itself just waits on.
        Event::Woken(task) => {
            let asleep = shadow.waits_for(task).is_none() || !(M::REORDERS || shadow.awake[task]);
            (M::HANDS_OFF || asleep).then_some(Refusal::NotWaiting)
        }
        Event::Cancel(task) => shadow.waits_for(task).is_none().then_some(Refusal::NotWaiting),
        Event::Rebase(_) => None,
    }
}

/// Carries the event and its actions out on the shadow, checking each.
fn follow<M: Walked>(machine: &M, shadow: &mut Shadow, event: Event, actions: &Actions) {
    let caller = match event {
        Event::Request(task, _) | Event::Release(task, _) => task,
        Event::Woken(task) | Event::Cancel(task) | Event::Rebase(task) => task,
    };
    let key = |shadow: &Shadow, task: usize| if M::HANDS_OFF { base(shadow, task) } else { shadow.told[task] };
    match event {
        Event::Release(_, resource) => shadow.owners[resource] = None,
        Event::Rebase(task) => {
            shadow.bases[task] = 1 - shadow.bases[task];
            if M::REORDERS && M::HANDS_OFF && shadow.waits_for(task).is_some() {
                shadow.requeue(task, base(shadow, task));
            }
        }
        Event::Cancel(task) => {
            shadow.waiting.retain(|waiting| waiting.task != task);
            shadow.awake[task] = false;
        }
        Event::Woken(task) => shadow.awake[task] = false,
        Event::Request(..) => {}
    }
    let mut fell = false;
    for (place, action) in actions.iter().enumerate() {
        match *action {
            Action::Grant { task, resource } => {
                let (task, resource) = (task.index(), resource.index());
                assert_eq!(shadow.owners[resource], None, "granted while owned");
                if M::HANDS_OFF && task != caller {
                    assert_eq!(shadow.first(resource, false), Some(task), "handed over out of order");
                }
                shadow.owners[resource] = Some(task);
                shadow.waiting.retain(|waiting| waiting.task != task);
                let woken = actions[place..].contains(&Action::Wake { task: TaskId::new(task) });
                assert!(task == caller || woken, "owns the resource, and sleeps");
            }
            Action::Block { task, resource } => {
                let (task, resource) = (task.index(), resource.index());
                assert_eq!((task, place), (caller, actions.len() - 1), "only the caller waits, and does it last");
                if shadow.waits_for(task).is_none() {
                    shadow.waiting.push(Waiting { task, resource, key: key(shadow, task) });
                } else if !M::REORDERS {
                    // A plain mutex queues a task anew whose attempt failed.
                    shadow.waiting.retain(|waiting| waiting.task != task);
                    shadow.waiting.push(Waiting { task, resource, key: key(shadow, task) });
                }
            }
            Action::Wake { task } => {
                let task = task.index();
                assert!(!fell || task == caller, "woken after the caller fell");
                if let Some(resource) = shadow.waits_for(task) {
                    assert_eq!(shadow.first(resource, !M::REORDERS), Some(task), "woken out of order");
                    shadow.awake[task] = true;
                } else {
                    let granted = actions[..place]
                        .iter()
                        .any(|action| matches!(action, Action::Grant { task: granted, .. } if granted.index() == task));
                    assert!(granted || matches!(event, Event::Cancel(_)), "woken for nothing");
                }
            }
            Action::Spin { .. } | Action::Hold { .. } | Action::Migrate { .. } | Action::Restart { .. } => {
                panic!("no task of these does that")
            }
            Action::SetPriority { task, priority, epoch } => {
                let task = task.index();
                let repeated = shadow.told[task] == priority && !matches!(event, Event::Rebase(_));
                assert!(!repeated, "told the same twice");
                assert_eq!(epoch, shadow.epochs[task].wrapping_add(1), "an epoch was skipped");
                fell |= matches!(event, Event::Release(..)) && task == caller && priority < shadow.told[task];
                shadow.told[task] = priority;
                shadow.epochs[task] = epoch;
                if M::REORDERS && !M::HANDS_OFF && shadow.waits_for(task).is_some() {
                    shadow.requeue(task, priority);
                }
            }
        }
    }
    for resource in 0..RESOURCES {
        assert_eq!(machine.owner_of(resource), shadow.owners[resource]);
        if shadow.owners[resource].is_none() {
            let mut waiting = shadow.waiting.iter().filter(|waiting| waiting.resource == resource).peekable();
            let lost = waiting.peek().is_some() && !waiting.any(|waiting| shadow.awake[waiting.task]);
            assert!(!lost, "resource {resource} is free, and all who wait for it sleep");
        }
    }
    assert_eq!(shadow.told, M::expected(shadow), "priorities after {event:?}");
}

struct Locks;

impl<M: Walked> Walk<M> for Locks {
    type Shadow = Shadow;
    type Event = Event;

    fn events(&self) -> Vec<Event> {
        let mut events = Vec::new();
        for task in 0..TASKS {
            for resource in 0..RESOURCES {
                events.push(Event::Request(task, resource));
                events.push(Event::Release(task, resource));
            }
            events.extend([Event::Woken(task), Event::Cancel(task), Event::Rebase(task)]);
        }
        events
    }

    fn apply(&self, machine: &mut M, shadow: &Shadow, event: Event) -> Answer {
        answer(|act| match event {
            Event::Request(task, resource) => machine.request(TaskId::new(task), ResourceId::new(resource), act),
            Event::Release(task, resource) => machine.release(TaskId::new(task), ResourceId::new(resource), act),
            Event::Woken(task) => machine.woken(TaskId::new(task), act),
            Event::Cancel(task) => machine.cancel(TaskId::new(task), act),
            Event::Rebase(task) => {
                machine.set_base(TaskId::new(task), Priority::base(BASES[task][1 - shadow.bases[task]]), act)
            }
        })
    }

    fn refusals(&self, shadow: &Shadow, event: Event) -> Vec<Refusal> {
        refusal::<M>(shadow, event).into_iter().collect()
    }

    /// A machine that cannot see deadlocks is asked in one order of resources only.
    fn admits(&self, shadow: &Shadow, event: Event) -> bool {
        M::SEES_DEADLOCK || !matches!(event, Event::Request(task, 0) if shadow.holds(task, 1))
    }

    fn follow(&self, machine: &M, shadow: &mut Shadow, event: Event, actions: &Actions) {
        follow(machine, shadow, event, actions);
    }

    /// Tasks that are awake try again, and tasks that run release what they hold.
    fn finish(&self, machine: &M, shadow: &Shadow) {
        let (mut machine, mut shadow) = (machine.clone(), shadow.clone());
        run(self, (&mut machine, &mut shadow), 100, |shadow| {
            let awake = (0..TASKS).find(|&task| shadow.waits_for(task).is_some() && shadow.awake[task]);
            let release = (0..RESOURCES).find_map(|resource| {
                let owner = shadow.owners[resource]?;
                shadow.waits_for(owner).is_none().then_some(Event::Release(owner, resource))
            });
            release.or(awake.map(Event::Woken))
        });
        assert!(shadow.waiting.is_empty() && shadow.owners == [None; RESOURCES], "somebody never finishes");
    }

    fn forget(&self, machine: &mut M, shadow: &mut Shadow) {
        machine.forget();
        shadow.epochs = [0; TASKS];
    }
}

macro_rules! known {
    () => {
        fn owner_of(&self, resource: usize) -> Option<usize> {
            self.owner(ResourceId::new(resource)).map(TaskId::index)
        }

        fn forget(&mut self) {
            self.forget_epochs();
        }
    };
}

fn initial_bases() -> [Priority; TASKS] {
    BASES.map(|bases| Priority::base(bases[0]))
}

impl Walked for PlainMutex<TASKS, RESOURCES> {
    const HANDS_OFF: bool = false;
    const SEES_DEADLOCK: bool = false;
    const REORDERS: bool = false;
    known!();

    fn initial() -> Self {
        Self::new(&initial_bases())
    }

    fn expected(shadow: &Shadow) -> [Priority; TASKS] {
        core::array::from_fn(|task| base(shadow, task))
    }
}

impl Walked for Pip<TASKS, RESOURCES> {
    const HANDS_OFF: bool = false;
    const SEES_DEADLOCK: bool = true;
    const REORDERS: bool = true;
    known!();

    fn initial() -> Self {
        Self::new(&initial_bases())
    }

    /// Each task takes the priorities of all who wait for what it holds, until nothing changes.
    fn expected(shadow: &Shadow) -> [Priority; TASKS] {
        let mut priorities: [Priority; TASKS] = core::array::from_fn(|task| base(shadow, task));
        for _ in 0..TASKS {
            for waiting in &shadow.waiting {
                if let Some(owner) = shadow.owners[waiting.resource] {
                    priorities[owner] = priorities[owner].max(priorities[waiting.task]);
                }
            }
        }
        priorities
    }
}

/// Above every base, so that every task may ask; the second resource has the higher ceiling.
fn ceilings() -> [Priority; RESOURCES] {
    [Priority::base(3), Priority::base(5)]
}

fn with_ceilings(shadow: &Shadow, ceiling: impl Fn(usize, usize) -> Priority) -> [Priority; TASKS] {
    core::array::from_fn(|task| {
        let held = (0..RESOURCES).filter(|&resource| shadow.holds(task, resource));
        let claims = held.chain(shadow.waits_for(task));
        claims.map(|resource| ceiling(task, resource)).fold(base(shadow, task), Priority::max)
    })
}

impl Walked for Icpp<TASKS, RESOURCES> {
    const HANDS_OFF: bool = true;
    const SEES_DEADLOCK: bool = true;
    const REORDERS: bool = true;
    known!();

    fn initial() -> Self {
        Self::new(&initial_bases(), &ceilings())
    }

    fn expected(shadow: &Shadow) -> [Priority; TASKS] {
        with_ceilings(shadow, |_, resource| ceilings()[resource])
    }

    fn limit(resource: usize) -> Option<Priority> {
        Some(ceilings()[resource])
    }
}

/// Tasks 0 and 1 share a processor.
fn cpu(task: usize) -> CpuId {
    CpuId::new(task / 2)
}

fn mpcp_ceilings() -> [MpcpCeiling; RESOURCES] {
    [(1, 2, 3), (0, 3, 3)].map(|(home, on_home, elsewhere)| MpcpCeiling {
        home: CpuId(home),
        on_home: Priority::base(on_home).boosted(),
        elsewhere: Priority::base(elsewhere).boosted(),
    })
}

impl Walked for Mpcp<TASKS, RESOURCES> {
    const HANDS_OFF: bool = true;
    const SEES_DEADLOCK: bool = true;
    const REORDERS: bool = true;
    known!();

    fn initial() -> Self {
        let tasks: Vec<_> = initial_bases().into_iter().enumerate().map(|(task, base)| (base, cpu(task))).collect();
        Self::new(&tasks, &mpcp_ceilings())
    }

    fn expected(shadow: &Shadow) -> [Priority; TASKS] {
        with_ceilings(shadow, |task, resource| mpcp_ceilings()[resource].on(cpu(task)))
    }
}

/// Walks all reachable states, and returns their number.
fn walk_all<M: Walked>(mutation: Mutation<Locks, M>) -> usize {
    walk(&Locks, (M::initial(), Shadow::initial()), mutation)
}

/// A release wakes no task.
fn no_wake<M: Walked>(event: Event, _: &M, _: &mut M, answer: &mut Answer) {
    if let (Event::Release(..), Ok(actions)) = (event, answer) {
        actions.retain(|action| !matches!(action, Action::Wake { .. }));
    }
}

/// The caller falls before it wakes the next.
fn falls_first<M: Walked>(event: Event, _: &M, _: &mut M, answer: &mut Answer) {
    if let (Event::Release(..), Ok(actions)) = (event, answer) {
        actions.reverse();
    }
}

/// The caller does not fall.
fn stays_up<M: Walked>(event: Event, _: &M, _: &mut M, answer: &mut Answer) {
    if let (Event::Release(caller, _), Ok(actions)) = (event, answer) {
        actions.retain(|action| !matches!(action, Action::SetPriority { task, .. } if task.index() == caller));
    }
}

/// A release does not happen.
fn keeps<M: Walked>(event: Event, before: &M, after: &mut M, _: &mut Answer) {
    if let Event::Release(..) = event {
        *after = before.clone();
    }
}

/// Every request is granted, also if another task owns the resource.
fn grants_all<M: Walked>(event: Event, _: &M, _: &mut M, answer: &mut Answer) {
    if let (Event::Request(..), Ok(actions)) = (event, answer) {
        for action in actions {
            if let Action::Block { task, resource } = *action {
                *action = Action::Grant { task, resource };
            }
        }
    }
}

/// A refused request changes the machine.
fn marks<M: Walked>(event: Event, _: &M, after: &mut M, answer: &mut Answer) {
    if let (Event::Request(task, _), Err(_)) = (event, answer) {
        let _ = after.set_base(TaskId::new(task), Priority::base(9), &mut |_| ());
    }
}

/// Another waiter than the most urgent is woken.
fn wrong_order<M: Walked>(event: Event, _: &M, _: &mut M, answer: &mut Answer) {
    if let (Event::Release(..), Ok(actions)) = (event, answer) {
        for action in actions {
            if let Action::Wake { task: woken } | Action::Grant { task: woken, .. } = action {
                *woken = TaskId((woken.0 + 1) % TASKS as u16);
            }
        }
    }
}

macro_rules! mutants {
    ($($name:ident: $machine:ty, $mutation:ident, $expected:literal;)*) => {$(
        #[test]
        #[should_panic(expected = $expected)]
        #[cfg_attr(miri, ignore = "walks all states")]
        fn $name() {
            walk_all::<$machine>($mutation);
        }
    )*};
}

mutants! {
    none_without_wake: PlainMutex<TASKS, RESOURCES>, no_wake, "all who wait for it sleep";
    pip_without_wake: Pip<TASKS, RESOURCES>, no_wake, "all who wait for it sleep";
    icpp_without_wake: Icpp<TASKS, RESOURCES>, no_wake, "owns the resource, and sleeps";
    pip_falls_first: Pip<TASKS, RESOURCES>, falls_first, "woken after the caller fell";
    mpcp_falls_first: Mpcp<TASKS, RESOURCES>, falls_first, "woken after the caller fell";
    pip_stays_up: Pip<TASKS, RESOURCES>, stays_up, "priorities after";
    mpcp_stays_up: Mpcp<TASKS, RESOURCES>, stays_up, "priorities after";
    none_keeps: PlainMutex<TASKS, RESOURCES>, keeps, "left == right";
    none_grants_all: PlainMutex<TASKS, RESOURCES>, grants_all, "granted while owned";
    mpcp_grants_all: Mpcp<TASKS, RESOURCES>, grants_all, "granted while owned";
    pip_marks: Pip<TASKS, RESOURCES>, marks, "a refused event changed something";
    icpp_marks: Icpp<TASKS, RESOURCES>, marks, "a refused event changed something";
    pip_wrong_order: Pip<TASKS, RESOURCES>, wrong_order, "woken";
    mpcp_wrong_order: Mpcp<TASKS, RESOURCES>, wrong_order, "left == right";
}

/// Every machine has at least this many states; fewer would mean that the walk did not leave the start.
const STATES_LEAST: usize = 1_000;

#[test]
fn none() {
    let states = walk_all::<PlainMutex<TASKS, RESOURCES>>(unchanged);
    check_states("none", states, STATES_LEAST);
}

#[test]
fn pip() {
    let states = walk_all::<Pip<TASKS, RESOURCES>>(unchanged);
    check_states("pip", states, STATES_LEAST);
}

#[test]
fn icpp() {
    let states = walk_all::<Icpp<TASKS, RESOURCES>>(unchanged);
    check_states("icpp", states, STATES_LEAST);
}

#[test]
fn mpcp() {
    let states = walk_all::<Mpcp<TASKS, RESOURCES>>(unchanged);
    check_states("mpcp", states, STATES_LEAST);
}
