//! Every order of events, for 3 tasks and 2 locks of every pair of protections.
//!
//! A shadow knows only what the actions say. After every event it is compared with the machine:
//! - *exclusion*: a lock is granted only while it has no owner;
//! - *order*: waiters are queued by effective priority, the earliest first among equals, also after a change; a
//!   hand-off or a wake-up goes to the first one;
//! - *unlock modes*: serial leaves no gap; parallel hands nothing over; automatic is one or the other, by the class of
//!   the first waiter;
//! - *progress*: the first waiter of a free lock is awake; and from every state every task can finish, with and without
//!   healing;
//! - *one heir*: each death of an owner is told to exactly one next owner; a dead lock that is released is not
//!   recoverable for all tasks, and all its waiters are awake;
//! - *priorities*: the last value told to each task is that of a computation from scratch, told once, with rising
//!   epochs;
//! - *order of actions*: other tasks come first, the caller comes last; a task that is handed a lock rises before it
//!   wakes; no action concerns a dead task;
//! - *bounds*: no chain of waiting is longer than the limit; a deadlock is refused, and its whole cycle is reported;
//! - *totality*: every event without meaning is refused, and changes nothing.

extern crate std;

use super::harness::{Actions, Answer, Walk, answer, check_states, run, unchanged, walk};
use crate::fulock::{Class, Fulock, Health, Protection, Unlock};
use crate::{Action, Refusal};
use core::hash::Hash;
use lockwright_model::{Priority, ResourceId, TaskId};
use std::vec::Vec;

const TASKS: usize = 3;
const LOCKS: usize = 2;

/// The two base priorities that each task alternates between; rows may tie, and may be above a ceiling.
const BASES: [[u32; 2]; TASKS] = [[1, 4], [2, 2], [3, 1]];
const CLASSES: [Class; TASKS] = [Class::RealTime, Class::Ordinary, Class::RealTime];
const MODES: [Unlock; 3] = [Unlock::Serial, Unlock::Parallel, Unlock::Auto];

type Protections = [Protection; LOCKS];

/// A machine that is walked.
trait Walked: Clone + Eq + Hash {
    /// The longest chain of waiting.
    const LIMIT: usize;
    fn initial(protections: Protections) -> Self;
    fn apply(&mut self, shadow: &Shadow, event: Event) -> Answer;
    fn owner_of(&self, lock: usize) -> Option<usize>;
    fn health_of(&self, lock: usize) -> Health;
    fn queue_of(&self, lock: usize) -> Vec<usize>;
    fn cycle_of(&self, task: usize, lock: usize) -> Option<Vec<(usize, usize)>>;
    fn forget(&mut self);
}

/// What the actions said.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Shadow {
    protections: Protections,
    owners: [Option<usize>; LOCKS],
    health: [Health; LOCKS],
    /// An owner died, and nobody was told yet.
    no_heir: [bool; LOCKS],
    /// Waiting tasks, in order of arrival or of their last change.
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
    lock: usize,
    /// The priority it is queued by.
    key: Priority,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Event {
    Request(usize, usize),
    Try(usize, usize),
    Release(usize, usize, Unlock),
    Heal(usize, usize),
    Woken(usize),
    Cancel(usize),
    Rebase(usize),
    Die(usize),
}

impl Event {
    fn caller(self) -> usize {
        match self {
            Self::Request(task, _) | Self::Try(task, _) | Self::Release(task, ..) | Self::Heal(task, _) => task,
            Self::Woken(task) | Self::Cancel(task) | Self::Rebase(task) | Self::Die(task) => task,
        }
    }
}

impl Shadow {
    fn initial(protections: Protections) -> Self {
        Self {
            protections,
            owners: [None; LOCKS],
            health: [Health::Healthy; LOCKS],
            no_heir: [false; LOCKS],
            waiting: Vec::new(),
            awake: [false; TASKS],
            bases: [0; TASKS],
            told: core::array::from_fn(|task| Priority::base(BASES[task][0])),
            epochs: [0; TASKS],
        }
    }

    fn base(&self, task: usize) -> Priority {
        Priority::base(BASES[task][self.bases[task]])
    }

    fn waits_for(&self, task: usize) -> Option<usize> {
        self.waiting.iter().find(|waiting| waiting.task == task).map(|waiting| waiting.lock)
    }

    /// The waiters of a lock: the most urgent first, the earliest among equals.
    fn queue(&self, lock: usize) -> Vec<usize> {
        let mut queue: Vec<&Waiting> = self.waiting.iter().filter(|waiting| waiting.lock == lock).collect();
        queue.sort_by_key(|waiting| core::cmp::Reverse(waiting.key));
        queue.iter().map(|waiting| waiting.task).collect()
    }

    fn first(&self, lock: usize) -> Option<usize> {
        self.queue(lock).first().copied()
    }

    /// Who would wait for what, if `task` waited for `lock`, from `task` to the end of the chain; whether that closes a
    /// cycle.
    fn chain(&self, task: usize, lock: usize) -> (Vec<(usize, usize)>, bool) {
        let mut chain = std::vec![(task, lock)];
        while let Some(owner) = self.owners[chain[chain.len() - 1].1] {
            if owner == task {
                return (chain, true);
            }
            let Some(next) = self.waits_for(owner) else { break };
            chain.push((owner, next));
        }
        (chain, false)
    }

    /// The longest chain through a wait of `task` for `lock`.
    fn longest(&self, task: usize, lock: usize) -> usize {
        let through = |waiting: &Waiting| {
            let (chain, _) = self.chain(waiting.task, waiting.lock);
            chain.iter().position(|wait| self.owners[wait.1] == Some(task)).map_or(0, |place| place + 1)
        };
        self.waiting.iter().map(through).max().unwrap_or(0) + self.chain(task, lock).0.len()
    }

    /// The effective priority of every task, from scratch: each takes what it holds asks for, until nothing changes.
    fn expected(&self) -> [Priority; TASKS] {
        let mut priorities: [Priority; TASKS] = core::array::from_fn(|task| self.base(task));
        for (&owner, &protection) in self.owners.iter().zip(&self.protections) {
            if let (Some(owner), Protection::Protect(ceiling)) = (owner, protection) {
                priorities[owner] = priorities[owner].max(ceiling);
            }
        }
        for _ in 0..TASKS {
            for waiting in self.waiting.iter().filter(|waiting| self.protections[waiting.lock] == Protection::Inherit) {
                if let Some(owner) = self.owners[waiting.lock] {
                    priorities[owner] = priorities[owner].max(priorities[waiting.task]);
                }
            }
        }
        priorities
    }

    /// What the event is refused with in this state, if it has no meaning.
    fn refusal(&self, event: Event, limit: usize) -> Option<Refusal> {
        let owned = |task: usize, lock: usize| match self.owners[lock] {
            Some(owner) if owner == task => self.waits_for(task).map(|_| Refusal::Waiting),
            _ => Some(Refusal::NotHeld),
        };
        match event {
            Event::Request(task, lock) | Event::Try(task, lock) => {
                let taken = self.owners[lock].is_some();
                let above = matches!(self.protections[lock], Protection::Protect(top) if self.base(task) > top);
                let refused = [
                    (self.waits_for(task).is_some(), Refusal::Waiting),
                    (self.owners[lock] == Some(task), Refusal::AlreadyHeld),
                    (above, Refusal::AboveCeiling),
                    (self.health[lock] == Health::NotRecoverable, Refusal::NotRecoverable),
                    (taken && matches!(event, Event::Try(..)), Refusal::Taken),
                    (taken && self.chain(task, lock).1, Refusal::Deadlock),
                    (taken && self.longest(task, lock) > limit, Refusal::ChainTooLong),
                ];
                refused.into_iter().find(|refused| refused.0).map(|refused| refused.1)
            }
            Event::Release(task, lock, _) => owned(task, lock),
            Event::Heal(task, lock) => {
                owned(task, lock).or((self.health[lock] == Health::Healthy).then_some(Refusal::Healthy))
            }
            Event::Woken(task) | Event::Cancel(task) => self.waits_for(task).is_none().then_some(Refusal::NotWaiting),
            Event::Rebase(_) | Event::Die(_) => None,
        }
    }

    fn granted(&mut self, event: Event, task: usize, lock: usize, health: Health, rest: &[Action]) {
        assert_eq!(self.owners[lock], None, "granted while owned");
        assert_ne!(self.health[lock], Health::NotRecoverable, "granted, and not recoverable");
        let told = health == Health::Dead;
        assert_eq!(told, self.no_heir[lock], "OwnerDied to the wrong owner");
        self.no_heir[lock] = false;
        if task != event.caller() {
            assert_eq!(self.first(lock), Some(task), "handed over out of order");
            let wake = rest.iter().position(|&action| action == Action::Wake { task: TaskId::new(task) });
            let wake = wake.expect("owns the lock, and sleeps");
            let rises = |action: &Action| matches!(action, Action::SetPriority { task: it, .. } if it.index() == task);
            assert!(!rest[wake..].iter().any(rises), "woken before it rose");
        }
        self.owners[lock] = Some(task);
        self.waiting.retain(|waiting| waiting.task != task);
    }

    fn woken(&mut self, event: Event, task: usize, before: &[Action]) {
        let Some(lock) = self.waits_for(task) else {
            let grants = |action: &Action| matches!(action, Action::Grant { task: it, .. } if it.index() == task);
            assert!(before.iter().any(grants) || event == Event::Cancel(task), "woken for nothing");
            return;
        };
        assert_eq!(self.first(lock), Some(task), "woken out of order");
        assert_eq!(self.owners[lock], None, "woken for a lock that is owned");
        if self.health[lock] == Health::NotRecoverable {
            self.waiting.retain(|waiting| waiting.task != task);
        } else {
            self.awake[task] = true;
        }
    }

    fn told(&mut self, task: usize, priority: Priority, epoch: u32) {
        assert_ne!(self.told[task], priority, "told the same twice");
        assert_eq!(epoch, self.epochs[task].wrapping_add(1), "an epoch was skipped");
        (self.told[task], self.epochs[task]) = (priority, epoch);
        if let Some(place) = self.waiting.iter().position(|waiting| waiting.task == task) {
            let waiting = self.waiting.remove(place);
            self.waiting.push(Waiting { key: priority, ..waiting });
        }
    }

    /// What the event itself does, before any action.
    fn begin(&mut self, event: Event) {
        match event {
            Event::Release(_, lock, _) => {
                self.owners[lock] = None;
                if self.health[lock] == Health::Dead {
                    self.health[lock] = Health::NotRecoverable;
                }
            }
            Event::Heal(_, lock) => self.health[lock] = Health::Healthy,
            Event::Rebase(task) => self.bases[task] = 1 - self.bases[task],
            Event::Woken(task) => self.awake[task] = false,
            Event::Cancel(task) | Event::Die(task) => {
                self.waiting.retain(|waiting| waiting.task != task);
                self.awake[task] = false;
            }
            Event::Request(..) | Event::Try(..) => {}
        }
        if let Event::Die(task) = event {
            self.told[task] = self.base(task);
            for lock in 0..LOCKS {
                if self.owners[lock] == Some(task) {
                    (self.owners[lock], self.health[lock], self.no_heir[lock]) = (None, Health::Dead, true);
                }
            }
        }
    }

    /// To whom a release must hand the lock, and whom it must wake.
    fn successor(&self, event: Event) -> Option<(usize, Option<usize>, bool)> {
        let Event::Release(_, lock, mode) = event else { return None };
        let first = self.first(lock);
        let serial = match mode {
            Unlock::Serial => true,
            Unlock::Parallel => false,
            Unlock::Auto => first.is_some_and(|first| CLASSES[first] == Class::RealTime),
        };
        Some((lock, first, serial && self.health[lock] == Health::Healthy))
    }

    /// Carries the event and its actions out, checking each.
    fn follow<M: Walked>(&mut self, machine: &M, event: Event, actions: &[Action]) {
        let caller = event.caller();
        let successor = self.successor(event);
        self.begin(event);
        let mut fell = false;
        for (place, action) in actions.iter().enumerate() {
            match *action {
                Action::Grant { task, resource } => {
                    let health = machine.health_of(resource.index());
                    self.granted(event, task.index(), resource.index(), health, &actions[place..]);
                    assert_ne!(event, Event::Die(task.index()), "granted to the dead");
                }
                Action::Block { task, resource } => {
                    let (task, lock) = (task.index(), resource.index());
                    assert_eq!((task, place), (caller, actions.len() - 1), "only the caller waits, and does it last");
                    assert_ne!(self.owners[lock], None, "waits for a free lock");
                }
                Action::Wake { task } => {
                    assert!(!fell || task.index() == caller, "woken after the caller fell");
                    self.woken(event, task.index(), &actions[..place]);
                }
                Action::Spin { .. } | Action::Hold { .. } | Action::Migrate { .. } | Action::Restart { .. } => {
                    panic!("a fulock does none of these")
                }
                Action::SetPriority { task, priority, epoch } => {
                    let task = task.index();
                    assert_ne!(event, Event::Die(task), "told of the dead");
                    fell |= matches!(event, Event::Release(..)) && task == caller && priority < self.told[task];
                    self.told(task, priority, epoch);
                }
            }
            // A task waits from the moment it is said to, and its priority counts for others before they are told.
            if let (Event::Request(task, lock), Some(Action::Block { .. })) = (event, actions.last())
                && self.waits_for(task).is_none()
            {
                self.waiting.push(Waiting { task, lock, key: self.told[task] });
            }
        }
        if let Some((lock, first, serial)) = successor {
            assert_eq!(self.owners[lock], first.filter(|_| serial), "released by {event:?}");
        }
        self.check(machine, event);
    }

    fn check<M: Walked>(&self, machine: &M, event: Event) {
        for lock in 0..LOCKS {
            let queue = self.queue(lock);
            assert_eq!(machine.owner_of(lock), self.owners[lock], "owner after {event:?}");
            assert_eq!(machine.health_of(lock), self.health[lock], "health after {event:?}");
            assert_eq!(machine.queue_of(lock), queue, "queued after {event:?}");
            if let (None, Some(&first)) = (self.owners[lock], queue.first()) {
                assert!(self.awake[first], "lock {lock} is free, and its first waiter sleeps");
                assert_ne!(self.health[lock], Health::NotRecoverable, "waits for what is not recoverable");
            }
        }
        assert_eq!(self.told, self.expected(), "priorities after {event:?}");
        for waiting in &self.waiting {
            assert!(self.chain(waiting.task, waiting.lock).0.len() <= M::LIMIT, "a chain is too long");
        }
    }
}

struct Fulocks;

impl<M: Walked> Walk<M> for Fulocks {
    type Shadow = Shadow;
    type Event = Event;

    fn events(&self) -> Vec<Event> {
        let mut events = Vec::new();
        for task in 0..TASKS {
            for lock in 0..LOCKS {
                events.extend([Event::Request(task, lock), Event::Try(task, lock), Event::Heal(task, lock)]);
                events.extend(MODES.map(|mode| Event::Release(task, lock, mode)));
            }
            events.extend([Event::Woken(task), Event::Cancel(task), Event::Rebase(task), Event::Die(task)]);
        }
        events
    }

    fn apply(&self, machine: &mut M, shadow: &Shadow, event: Event) -> Answer {
        machine.apply(shadow, event)
    }

    fn refusals(&self, shadow: &Shadow, event: Event) -> Vec<Refusal> {
        shadow.refusal(event, M::LIMIT).into_iter().collect()
    }

    /// A deadlock is reported as a cycle, and nothing else is.
    fn compare(&self, machine: &M, shadow: &Shadow, event: Event, refused: Option<Refusal>) {
        match (event, refused) {
            (Event::Request(task, lock), Some(Refusal::Deadlock)) => {
                let cycle = shadow.chain(task, lock).0;
                assert_eq!(machine.cycle_of(task, lock), Some(cycle), "the cycle of {event:?}");
            }
            (Event::Request(task, lock), None) => {
                assert_eq!(machine.cycle_of(task, lock), None, "a cycle where there is none");
            }
            _ => {}
        }
    }

    fn follow(&self, machine: &M, shadow: &mut Shadow, event: Event, actions: &Actions) {
        shadow.follow(machine, event, actions);
    }

    /// Tasks that are awake try again, and tasks that run release what they hold: with and without healing it first.
    fn finish(&self, machine: &M, shadow: &Shadow) {
        for (heals, mode) in [(true, Unlock::Serial), (false, Unlock::Parallel)] {
            let (mut machine, mut shadow) = (machine.clone(), shadow.clone());
            // BOUND: far more events than three tasks need.
            run(self, (&mut machine, &mut shadow), 50, |shadow| {
                let awake = (0..TASKS).find(|&task| shadow.waits_for(task).is_some() && shadow.awake[task]);
                let release = (0..LOCKS).find_map(|lock| {
                    let owner = shadow.owners[lock].filter(|&owner| shadow.waits_for(owner).is_none())?;
                    let heal = heals && shadow.health[lock] == Health::Dead;
                    Some(if heal { Event::Heal(owner, lock) } else { Event::Release(owner, lock, mode) })
                });
                release.or(awake.map(Event::Woken))
            });
            assert!(shadow.waiting.is_empty() && shadow.owners == [None; LOCKS], "somebody never finishes");
        }
    }

    fn forget(&self, machine: &mut M, shadow: &mut Shadow) {
        machine.forget();
        shadow.epochs = [0; TASKS];
    }
}

/// Walks all reachable states, and returns their number.
fn walk_all<M: Walked>(protections: Protections) -> usize {
    walk(&Fulocks, (M::initial(protections), Shadow::initial(protections)), unchanged)
}

impl<const CHAIN: usize> Walked for Fulock<TASKS, LOCKS, CHAIN> {
    const LIMIT: usize = CHAIN;

    fn initial(protections: Protections) -> Self {
        let tasks: [_; TASKS] = core::array::from_fn(|task| (Priority::base(BASES[task][0]), CLASSES[task]));
        Self::new(&tasks, &protections)
    }

    fn apply(&mut self, shadow: &Shadow, event: Event) -> Answer {
        let caller = TaskId::new(event.caller());
        answer(|mut act| match event {
            Event::Request(_, lock) => self.request(caller, ResourceId::new(lock), &mut act),
            Event::Try(_, lock) => self.try_request(caller, ResourceId::new(lock), &mut act),
            Event::Release(_, lock, mode) => self.release(caller, ResourceId::new(lock), mode, &mut act),
            Event::Heal(_, lock) => self.make_consistent(caller, ResourceId::new(lock)),
            Event::Woken(_) => self.woken(caller, &mut act),
            Event::Cancel(_) => self.cancel(caller, &mut act),
            Event::Rebase(task) => self.set_base(caller, Priority::base(BASES[task][1 - shadow.bases[task]]), &mut act),
            Event::Die(_) => self.die(caller, &mut act),
        })
    }

    fn owner_of(&self, lock: usize) -> Option<usize> {
        self.owner(ResourceId::new(lock)).map(TaskId::index)
    }

    fn health_of(&self, lock: usize) -> Health {
        self.health(ResourceId::new(lock))
    }

    fn queue_of(&self, lock: usize) -> Vec<usize> {
        self.waiters(ResourceId::new(lock)).map(TaskId::index).collect()
    }

    fn cycle_of(&self, task: usize, lock: usize) -> Option<Vec<(usize, usize)>> {
        let cycle = self.cycle(TaskId::new(task), ResourceId::new(lock))?;
        Some(cycle.waits().map(|(task, resource)| (task.index(), resource.index())).collect())
    }

    fn forget(&mut self) {
        self.forget_epochs();
    }
}

/// Below some base priorities, and above all of them.
const CEILINGS: [Protection; LOCKS] = [Protection::Protect(Priority::base(3)), Protection::Protect(Priority::base(5))];

macro_rules! walks {
    ($($name:ident: $chain:literal, $protections:expr;)*) => {$(
        #[test]
        fn $name() {
            let states = walk_all::<Fulock<TASKS, LOCKS, $chain>>($protections);
            check_states(stringify!($name), states, 1_000);
        }
    )*};
}

walks! {
    none_none: 2, [Protection::None, Protection::None];
    none_inherit: 2, [Protection::None, Protection::Inherit];
    none_protect: 2, [Protection::None, CEILINGS[1]];
    inherit_inherit: 2, [Protection::Inherit, Protection::Inherit];
    protect_inherit: 2, [CEILINGS[0], Protection::Inherit];
    inherit_protect: 2, [Protection::Inherit, CEILINGS[1]];
    protect_protect: 2, CEILINGS;
    short_chains: 1, [Protection::Inherit, Protection::Inherit];
}

/// A mutant of the machine, which the walk must find.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Mutant<const MUTATION: u8>(Fulock<TASKS, LOCKS, 2>);

/// What is asked for is granted, whoever owns it.
const GRANTS_ALL: u8 = 0;
/// A release does not happen.
const KEEPS: u8 = 1;
/// A second waiter is granted what the first one inherits from the dead.
const TWO_HEIRS: u8 = 2;
/// Somebody else than the first waiter is woken, or granted the lock.
const WRONG_ORDER: u8 = 3;
/// A waiter whose priority changes stays in its place.
const STAYS_IN_PLACE: u8 = 4;
/// Serial is parallel.
const LETS_STEAL: u8 = 5;
/// Automatic is serial, whoever waits.
const ALWAYS_SERIAL: u8 = 6;
/// Nobody is woken on a release.
const NO_WAKE: u8 = 7;
/// The first waiter gives up what it was woken for, and nobody is woken instead.
const WAKE_UP_DIES: u8 = 8;
/// Nobody is woken when the owner dies.
const SILENT_DEATH: u8 = 9;
/// The dead go on waiting.
const DEAD_WAITS: u8 = 10;
/// To its heir a lock looks healthy.
const HEIR_NOT_TOLD: u8 = 11;
/// A lock that was made consistent still looks dead.
const NEVER_HEALS: u8 = 12;
/// A dead lock is healthy once it is released.
const FORGIVES: u8 = 13;
/// Of those who wait for what is not recoverable, one is woken.
const WAKES_ONE: u8 = 14;
/// No inheritance.
const NO_INHERITANCE: u8 = 15;
/// No ceilings.
const NO_CEILING: u8 = 16;
/// Inheritance does not pass along chains.
const ONE_LINK: u8 = 17;
/// The owner keeps what it inherited when the waiter gives up.
const NO_DEBOOST: u8 = 18;
/// The caller does not fall.
const STAYS_UP: u8 = 19;
/// The caller falls before it wakes the next.
const FALLS_FIRST: u8 = 20;
/// Who is handed a lock rises after it is awake.
const LATE_RISE: u8 = 21;
/// A deadlock is not seen.
const BLIND: u8 = 22;
/// The last wait on a cycle is not reported.
const SHORT_CYCLE: u8 = 23;
/// Chains have one wait more than announced.
const LONG_CHAIN: u8 = 24;
/// A refused request leaves its mark.
const MARKS: u8 = 25;
/// A try waits.
const TRY_WAITS: u8 = 26;

impl<const MUTATION: u8> Mutant<MUTATION> {
    /// The fault is in what the machine does.
    fn act(&mut self, shadow: &Shadow, event: Event) -> Answer {
        let caller = TaskId::new(event.caller());
        match (MUTATION, event) {
            (KEEPS, Event::Release(..)) => self.0.clone().apply(shadow, event),
            (LETS_STEAL, Event::Release(task, lock, Unlock::Serial)) => {
                self.0.apply(shadow, Event::Release(task, lock, Unlock::Parallel))
            }
            (ALWAYS_SERIAL, Event::Release(task, lock, Unlock::Auto)) => {
                self.0.apply(shadow, Event::Release(task, lock, Unlock::Serial))
            }
            (FORGIVES, Event::Release(_, lock, _)) => {
                let _ = self.0.make_consistent(caller, ResourceId::new(lock));
                self.0.apply(shadow, event)
            }
            (NEVER_HEALS, Event::Heal(..)) => self.0.clone().apply(shadow, event),
            (DEAD_WAITS, Event::Die(_)) if self.0.waits_for(caller).is_some() => Ok(Actions::new()),
            (STAYS_IN_PLACE, Event::Rebase(_)) => {
                let mut right = self.0.clone();
                let actions = right.apply(shadow, event)?;
                // Where the order changes, all is said and nothing done.
                if (0..LOCKS).all(|lock| right.queue_of(lock) == self.queue_of(lock)) {
                    self.0 = right;
                }
                Ok(actions)
            }
            (TRY_WAITS, Event::Try(task, lock)) => self.0.apply(shadow, Event::Request(task, lock)),
            (MARKS, Event::Request(..)) => {
                let answer = self.0.apply(shadow, event);
                if answer.is_err() {
                    self.0.set_base(caller, Priority::base(9), &mut |_| ())?;
                }
                answer
            }
            (BLIND, Event::Request(_, lock)) => match self.0.apply(shadow, event) {
                Err(Refusal::Deadlock) => {
                    Ok(std::vec![Action::Block { task: caller, resource: ResourceId::new(lock) }])
                }
                answer => answer,
            },
            _ => self.0.apply(shadow, event),
        }
    }

    /// The fault is in what it says.
    fn say(event: Event, actions: &mut Actions) {
        let caller = TaskId::new(event.caller());
        let wakes = |action: &Action| matches!(action, Action::Wake { .. });
        let sets = |action: &Action| matches!(action, Action::SetPriority { .. });
        let own = |action: &Action| matches!(action, Action::SetPriority { task, .. } if *task == caller);
        let another = |task: &mut TaskId| *task = TaskId((task.0 + 1) % TASKS as u16);
        match (MUTATION, event) {
            (GRANTS_ALL, _) => {
                for action in actions {
                    if let Action::Block { task, resource } = *action {
                        *action = Action::Grant { task, resource };
                    }
                }
            }
            (TWO_HEIRS, Event::Die(_)) => {
                let second = actions.iter().find_map(|action| match *action {
                    Action::Grant { mut task, resource } => {
                        another(&mut task);
                        Some([Action::Grant { task, resource }, Action::Wake { task }])
                    }
                    _ => None,
                });
                actions.extend(second.into_iter().flatten());
            }
            (WRONG_ORDER, Event::Release(..)) => {
                for action in actions {
                    if let Action::Wake { task } | Action::Grant { task, .. } = action {
                        another(task);
                    }
                }
            }
            (NO_WAKE, Event::Release(..)) | (SILENT_DEATH, Event::Die(_)) => actions.retain(|action| !wakes(action)),
            (WAKE_UP_DIES, Event::Cancel(_)) => {
                actions.retain(|action| !wakes(action) || *action == Action::Wake { task: caller });
            }
            (WAKES_ONE, Event::Release(..)) => {
                let first = actions.iter().position(wakes);
                let mut place = 0..;
                actions.retain(|action| place.next() == first || !wakes(action));
            }
            (ONE_LINK, Event::Rebase(_)) => {
                let mut sets_left = 2;
                actions.retain(|action| {
                    sets_left -= i32::from(sets(action));
                    !sets(action) || sets_left >= 0
                });
            }
            (NO_DEBOOST, Event::Cancel(_)) => actions.retain(|action| !sets(action)),
            (STAYS_UP, Event::Release(..)) => actions.retain(|action| !own(action)),
            (FALLS_FIRST, Event::Release(..)) => actions.sort_by_key(|action| !own(action)),
            (LATE_RISE, Event::Release(..)) => {
                actions.sort_by_key(|action| (own(action), sets(action)));
            }
            _ => {}
        }
    }
}

impl<const MUTATION: u8> Walked for Mutant<MUTATION> {
    const LIMIT: usize = if MUTATION == LONG_CHAIN { 1 } else { 2 };

    fn initial(protections: Protections) -> Self {
        Self(Fulock::initial(protections.map(|protection| match (MUTATION, protection) {
            (NO_INHERITANCE, Protection::Inherit) | (NO_CEILING, Protection::Protect(_)) => Protection::None,
            _ => protection,
        })))
    }

    fn apply(&mut self, shadow: &Shadow, event: Event) -> Answer {
        let mut actions = self.act(shadow, event)?;
        Self::say(event, &mut actions);
        Ok(actions)
    }

    fn owner_of(&self, lock: usize) -> Option<usize> {
        self.0.owner_of(lock)
    }

    fn health_of(&self, lock: usize) -> Health {
        match self.0.health_of(lock) {
            Health::Dead if MUTATION == HEIR_NOT_TOLD && self.owner_of(lock).is_some() => Health::Healthy,
            health => health,
        }
    }

    fn queue_of(&self, lock: usize) -> Vec<usize> {
        self.0.queue_of(lock)
    }

    fn cycle_of(&self, task: usize, lock: usize) -> Option<Vec<(usize, usize)>> {
        let mut cycle = self.0.cycle_of(task, lock)?;
        if MUTATION == SHORT_CYCLE {
            cycle.pop();
        }
        Some(cycle)
    }

    fn forget(&mut self) {
        self.0.forget();
    }
}

macro_rules! mutants {
    ($($name:ident: $mutation:ident, $protections:expr, $expected:literal;)*) => {$(
        #[test]
        #[should_panic(expected = $expected)]
        #[cfg_attr(miri, ignore = "walks all states")]
        fn $name() {
            walk_all::<Mutant<$mutation>>($protections);
        }
    )*};
}

const NONE: Protections = [Protection::None; LOCKS];
const INHERIT: Protections = [Protection::Inherit; LOCKS];

mutants! {
    grants_all: GRANTS_ALL, NONE, "granted while owned";
    keeps: KEEPS, NONE, "owner after";
    two_heirs: TWO_HEIRS, NONE, "granted while owned";
    wrong_order: WRONG_ORDER, NONE, "out of order";
    stays_in_place: STAYS_IN_PLACE, NONE, "queued after";
    lets_steal: LETS_STEAL, NONE, "released by";
    always_serial: ALWAYS_SERIAL, NONE, "released by";
    no_wake: NO_WAKE, NONE, "sleeps";
    wake_up_dies: WAKE_UP_DIES, NONE, "is free, and its first waiter sleeps";
    silent_death: SILENT_DEATH, NONE, "owns the lock, and sleeps";
    dead_waits: DEAD_WAITS, NONE, "after Die";
    heir_not_told: HEIR_NOT_TOLD, NONE, "OwnerDied to the wrong owner";
    never_heals: NEVER_HEALS, NONE, "health after Heal";
    forgives: FORGIVES, NONE, "health after Release";
    wakes_one: WAKES_ONE, NONE, "queued after";
    no_inheritance: NO_INHERITANCE, INHERIT, "priorities after";
    no_ceiling: NO_CEILING, CEILINGS, "priorities after";
    one_link: ONE_LINK, INHERIT, "priorities after";
    no_deboost: NO_DEBOOST, INHERIT, "priorities after";
    stays_up: STAYS_UP, INHERIT, "priorities after";
    falls_first: FALLS_FIRST, INHERIT, "woken after the caller fell";
    late_rise: LATE_RISE, CEILINGS, "woken before it rose";
    blind: BLIND, NONE, "an event without meaning was accepted";
    short_cycle: SHORT_CYCLE, NONE, "the cycle of";
    long_chain: LONG_CHAIN, NONE, "an event without meaning was accepted";
    marks: MARKS, NONE, "a refused event changed something";
    try_waits: TRY_WAITS, NONE, "an event without meaning was accepted";
}
