//! Every order of events, for 3 tasks and 2 resources: an exhaustive walk over all reachable states of each machine.
//!
//! Beside the machine walks a shadow that knows only what the actions said. After every event it is held against the
//! machine's own view:
//! - *exclusion*: a resource is granted only while nobody owns it;
//! - *order*: a hand-off or a wake-up goes to the most urgent waiter, the earliest among equals;
//! - *nobody lost*: a resource with waiters has an owner, or one of them is awake; and from every state everybody
//!   can finish;
//! - *priorities*: the last value told of every task is what a computation from scratch gives, told once, with rising epochs;
//! - *order of actions*: others first, the caller last; a task rises before it waits;
//! - *totality*: every event without meaning is refused, and changes nothing.

extern crate std;

use crate::reach::reach;
use crate::{Action, Icpp, Mpcp, Pip, Plain, Refusal};
use core::hash::Hash;
use lockwright_model::{CpuId, MpcpCeiling, Priority, ResourceId, TaskId};
use std::vec::Vec;

const TASKS: usize = 3;
const RESOURCES: usize = 2;

/// The two base priorities that each task alternates between; rows may tie.
const BASES: [[u32; 2]; TASKS] = [[1, 4], [2, 2], [3, 1]];

type Actions = Vec<Action>;

trait Machine: Clone + Eq + Hash {
    /// Whether a release hands the resource over, and `woken` never comes.
    const HANDS_OFF: bool;
    /// Whether a request that would deadlock is refused.
    const SEES_DEADLOCK: bool;
    /// Whether a change of priority moves a waiting task.
    const REORDERS: bool;
    fn initial() -> Self;
    fn ask(&mut self, task: TaskId, resource: ResourceId) -> Result<Actions, Refusal>;
    fn give(&mut self, task: TaskId, resource: ResourceId) -> Result<Actions, Refusal>;
    fn wake(&mut self, task: TaskId) -> Result<Actions, Refusal>;
    fn give_up(&mut self, task: TaskId) -> Result<Actions, Refusal>;
    fn rebase(&mut self, task: TaskId, base: Priority) -> Result<Actions, Refusal>;
    fn owner_of(&self, resource: ResourceId) -> Option<TaskId>;
    fn without_epochs(&self) -> Self;
    /// The effective priority of every task, from scratch.
    fn expected(shadow: &Shadow) -> [Priority; TASKS];
    /// The ceiling that a request of `task` must not exceed.
    fn limit(resource: usize) -> Option<Priority>;
}

/// What the actions said.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Shadow {
    owners: [Option<usize>; RESOURCES],
    /// Waiting tasks: for what, by which priority, in order of arrival.
    waiting: Vec<Waiting>,
    /// Woken, and not heard of since.
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
fn refusal<M: Machine>(shadow: &Shadow, event: Event) -> Option<Refusal> {
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

fn apply<M: Machine>(machine: &mut M, shadow: &Shadow, event: Event) -> Result<Actions, Refusal> {
    match event {
        Event::Request(task, resource) => machine.ask(TaskId::new(task), ResourceId::new(resource)),
        Event::Release(task, resource) => machine.give(TaskId::new(task), ResourceId::new(resource)),
        Event::Woken(task) => machine.wake(TaskId::new(task)),
        Event::Cancel(task) => machine.give_up(TaskId::new(task)),
        Event::Rebase(task) => machine.rebase(TaskId::new(task), Priority::base(BASES[task][1 - shadow.bases[task]])),
    }
}

/// Carries the event and its actions out on the shadow, checking each.
fn follow<M: Machine>(machine: &M, shadow: &mut Shadow, event: Event, actions: &[Action]) {
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
                    // A plain mutex queues anew a task that tried in vain.
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
        assert_eq!(machine.owner_of(ResourceId::new(resource)).map(TaskId::index), shadow.owners[resource]);
        if shadow.owners[resource].is_none() {
            let mut waiting = shadow.waiting.iter().filter(|waiting| waiting.resource == resource).peekable();
            let lost = waiting.peek().is_some() && !waiting.any(|waiting| shadow.awake[waiting.task]);
            assert!(!lost, "resource {resource} is free, and all who wait for it sleep");
        }
    }
    assert_eq!(shadow.told, M::expected(shadow), "priorities after {event:?}");
}

fn events() -> Vec<Event> {
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

/// From any state everybody finishes: those that are awake try again, those that run release what they hold.
fn drain<M: Machine>(mut machine: M, mut shadow: Shadow) {
    for _ in 0..100 {
        let awake = (0..TASKS).find(|&task| shadow.waits_for(task).is_some() && shadow.awake[task]);
        let release = (0..RESOURCES).find_map(|resource| {
            let owner = shadow.owners[resource]?;
            shadow.waits_for(owner).is_none().then_some(Event::Release(owner, resource))
        });
        let Some(event) = release.or(awake.map(Event::Woken)) else { break };
        let actions = apply(&mut machine, &shadow, event).unwrap();
        follow(&machine, &mut shadow, event, &actions);
    }
    assert!(shadow.waiting.is_empty() && shadow.owners == [None; RESOURCES], "somebody never finishes");
}

/// Walks all reachable states; returns how many there are.
fn walk<M: Machine>() -> usize {
    reach((M::initial(), Shadow::initial()), |(machine, shadow), next_states| {
        drain(machine.clone(), shadow.clone());
        for event in events() {
            let mut next = machine.clone();
            let answer = apply(&mut next, shadow, event);
            if let Some(expected) = refusal::<M>(shadow, event) {
                // A machine that cannot see deadlocks is only asked in one order of resources.
                let refused = answer.expect_err("an event without meaning was taken");
                assert_eq!(refused, expected, "{event:?}");
                assert!(next == *machine, "a refused event changed something");
                continue;
            }
            let misordered = matches!(event, Event::Request(task, 0) if shadow.holds(task, 1));
            if misordered && !M::SEES_DEADLOCK {
                continue;
            }
            let actions = answer.unwrap();
            let mut told = shadow.clone();
            follow(&next, &mut told, event, &actions);
            next_states.push((next.without_epochs(), Shadow { epochs: [0; TASKS], ..told }));
        }
    })
}

macro_rules! machine {
    ($machine:ty, $woken:expr) => {
        fn ask(&mut self, task: TaskId, resource: ResourceId) -> Result<Actions, Refusal> {
            let mut actions = Vec::new();
            self.request(task, resource, &mut |action| actions.push(action)).map(|()| actions)
        }
        fn give(&mut self, task: TaskId, resource: ResourceId) -> Result<Actions, Refusal> {
            let mut actions = Vec::new();
            self.release(task, resource, &mut |action| actions.push(action)).map(|()| actions)
        }
        fn wake(&mut self, task: TaskId) -> Result<Actions, Refusal> {
            let mut actions = Vec::new();
            let woken: fn(&mut Self, TaskId, &mut Actions) -> Result<(), Refusal> = $woken;
            woken(self, task, &mut actions).map(|()| actions)
        }
        fn give_up(&mut self, task: TaskId) -> Result<Actions, Refusal> {
            let mut actions = Vec::new();
            self.cancel(task, &mut |action| actions.push(action)).map(|()| actions)
        }
        fn rebase(&mut self, task: TaskId, base: Priority) -> Result<Actions, Refusal> {
            let mut actions = Vec::new();
            self.set_base(task, base, &mut |action| actions.push(action)).map(|()| actions)
        }
        fn owner_of(&self, resource: ResourceId) -> Option<TaskId> {
            self.owner(resource)
        }
        fn without_epochs(&self) -> Self {
            let mut copy = self.clone();
            copy.forget_epochs();
            copy
        }
    };
}

fn initial_bases() -> [Priority; TASKS] {
    BASES.map(|bases| Priority::base(bases[0]))
}

impl Machine for Plain<TASKS, RESOURCES> {
    const HANDS_OFF: bool = false;
    const SEES_DEADLOCK: bool = false;
    const REORDERS: bool = false;
    machine!(Self, |machine, task, actions| machine.woken(task, &mut |action| actions.push(action)));

    fn initial() -> Self {
        Self::new(&initial_bases())
    }

    fn expected(shadow: &Shadow) -> [Priority; TASKS] {
        core::array::from_fn(|task| base(shadow, task))
    }

    fn limit(_: usize) -> Option<Priority> {
        None
    }
}

impl Machine for Pip<TASKS, RESOURCES> {
    const HANDS_OFF: bool = false;
    const SEES_DEADLOCK: bool = true;
    const REORDERS: bool = true;
    machine!(Self, |machine, task, actions| machine.woken(task, &mut |action| actions.push(action)));

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

    fn limit(_: usize) -> Option<Priority> {
        None
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

impl Machine for Icpp<TASKS, RESOURCES> {
    const HANDS_OFF: bool = true;
    const SEES_DEADLOCK: bool = true;
    const REORDERS: bool = true;
    machine!(Self, |_, _, _| Err(Refusal::NotWaiting));

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

impl Machine for Mpcp<TASKS, RESOURCES> {
    const HANDS_OFF: bool = true;
    const SEES_DEADLOCK: bool = true;
    const REORDERS: bool = true;
    machine!(Self, |_, _, _| Err(Refusal::NotWaiting));

    fn initial() -> Self {
        let tasks: Vec<_> = initial_bases().into_iter().enumerate().map(|(task, base)| (base, cpu(task))).collect();
        Self::new(&tasks, &mpcp_ceilings())
    }

    fn expected(shadow: &Shadow) -> [Priority; TASKS] {
        with_ceilings(shadow, |task, resource| mpcp_ceilings()[resource].on(cpu(task)))
    }

    fn limit(_: usize) -> Option<Priority> {
        None
    }
}

/// A machine with a fault of ours, which the walk must find.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Twin<M, const FAULT: u8>(M);

/// Nobody is woken on a release.
const NO_WAKE: u8 = 0;
/// The caller falls before it wakes the next.
const FALLS_FIRST: u8 = 1;
/// The caller does not fall.
const STAYS_UP: u8 = 2;
/// A release does not happen.
const KEEPS: u8 = 3;
/// What is asked for is granted, whoever owns it.
const GRANTS_ALL: u8 = 4;
/// A refused request leaves its mark.
const MARKS: u8 = 5;
/// The most urgent waiter is not the one that is woken.
const WRONG_ORDER: u8 = 6;

impl<M: Machine, const FAULT: u8> Machine for Twin<M, FAULT> {
    const HANDS_OFF: bool = M::HANDS_OFF;
    const SEES_DEADLOCK: bool = M::SEES_DEADLOCK;
    const REORDERS: bool = M::REORDERS;

    fn initial() -> Self {
        Self(M::initial())
    }

    fn ask(&mut self, task: TaskId, resource: ResourceId) -> Result<Actions, Refusal> {
        let answer = self.0.ask(task, resource);
        match FAULT {
            GRANTS_ALL => answer.map(|actions| {
                let grant = |action| match action {
                    Action::Block { task, resource } => Action::Grant { task, resource },
                    other => other,
                };
                actions.into_iter().map(grant).collect()
            }),
            MARKS if answer.is_err() => {
                let _ = self.0.rebase(task, Priority::base(9));
                answer
            }
            _ => answer,
        }
    }

    fn give(&mut self, task: TaskId, resource: ResourceId) -> Result<Actions, Refusal> {
        if FAULT == KEEPS {
            return self.0.clone().give(task, resource);
        }
        let mut actions = self.0.give(task, resource)?;
        let own = |action: &Action| matches!(action, Action::SetPriority { task: own, .. } if *own == task);
        match FAULT {
            NO_WAKE => actions.retain(|action| !matches!(action, Action::Wake { .. })),
            STAYS_UP => actions.retain(|action| !own(action)),
            FALLS_FIRST => actions.reverse(),
            WRONG_ORDER => {
                for action in &mut actions {
                    if let Action::Wake { task: woken } | Action::Grant { task: woken, .. } = action {
                        *woken = TaskId((woken.0 + 1) % TASKS as u16);
                    }
                }
            }
            _ => {}
        }
        Ok(actions)
    }

    fn wake(&mut self, task: TaskId) -> Result<Actions, Refusal> {
        self.0.wake(task)
    }

    fn give_up(&mut self, task: TaskId) -> Result<Actions, Refusal> {
        self.0.give_up(task)
    }

    fn rebase(&mut self, task: TaskId, base: Priority) -> Result<Actions, Refusal> {
        self.0.rebase(task, base)
    }

    fn owner_of(&self, resource: ResourceId) -> Option<TaskId> {
        self.0.owner_of(resource)
    }

    fn without_epochs(&self) -> Self {
        Self(self.0.without_epochs())
    }

    fn expected(shadow: &Shadow) -> [Priority; TASKS] {
        M::expected(shadow)
    }

    fn limit(resource: usize) -> Option<Priority> {
        M::limit(resource)
    }
}

macro_rules! twins {
    ($($name:ident: $machine:ty, $fault:ident, $expected:literal;)*) => {$(
        #[test]
        #[should_panic(expected = $expected)]
        fn $name() {
            walk::<Twin<$machine, $fault>>();
        }
    )*};
}

twins! {
    none_without_wake: Plain<TASKS, RESOURCES>, NO_WAKE, "all who wait for it sleep";
    pip_without_wake: Pip<TASKS, RESOURCES>, NO_WAKE, "all who wait for it sleep";
    icpp_without_wake: Icpp<TASKS, RESOURCES>, NO_WAKE, "owns the resource, and sleeps";
    pip_falls_first: Pip<TASKS, RESOURCES>, FALLS_FIRST, "woken after the caller fell";
    mpcp_falls_first: Mpcp<TASKS, RESOURCES>, FALLS_FIRST, "woken after the caller fell";
    pip_stays_up: Pip<TASKS, RESOURCES>, STAYS_UP, "priorities after";
    mpcp_stays_up: Mpcp<TASKS, RESOURCES>, STAYS_UP, "priorities after";
    none_keeps: Plain<TASKS, RESOURCES>, KEEPS, "left == right";
    none_grants_all: Plain<TASKS, RESOURCES>, GRANTS_ALL, "granted while owned";
    mpcp_grants_all: Mpcp<TASKS, RESOURCES>, GRANTS_ALL, "granted while owned";
    pip_marks: Pip<TASKS, RESOURCES>, MARKS, "a refused event changed something";
    icpp_marks: Icpp<TASKS, RESOURCES>, MARKS, "a refused event changed something";
    pip_wrong_order: Pip<TASKS, RESOURCES>, WRONG_ORDER, "woken";
    mpcp_wrong_order: Mpcp<TASKS, RESOURCES>, WRONG_ORDER, "left == right";
}

/// Every machine has at least this many states; fewer would mean that the walk did not leave the start.
const STATES_LEAST: usize = 1_000;

#[test]
fn none() {
    let states = walk::<Plain<TASKS, RESOURCES>>();
    std::println!("none: {states} states");
    assert!(states > STATES_LEAST);
}

#[test]
fn pip() {
    let states = walk::<Pip<TASKS, RESOURCES>>();
    std::println!("pip: {states} states");
    assert!(states > STATES_LEAST);
}

#[test]
fn icpp() {
    let states = walk::<Icpp<TASKS, RESOURCES>>();
    std::println!("icpp: {states} states");
    assert!(states > STATES_LEAST);
}

#[test]
fn mpcp() {
    let states = walk::<Mpcp<TASKS, RESOURCES>>();
    std::println!("mpcp: {states} states");
    assert!(states > STATES_LEAST);
}
