//! The state that follows from the rules of fulocks and from what the actions say, and the checks after each event.

extern crate std;

use crate::fulock::{Class, Health, Protection, Unlock};
use crate::testing::harness::Answer;
use crate::{Action, Refusal};
use core::hash::Hash;
use lockwright_model::{Priority, TaskId};
use std::vec::Vec;

pub(super) const TASKS: usize = 3;
pub(super) const LOCKS: usize = 2;

/// The two base priorities that each task alternates between; rows may tie, and may be above a ceiling.
pub(super) const BASES: [[u32; 2]; TASKS] = [[1, 4], [2, 2], [3, 1]];
pub(super) const CLASSES: [Class; TASKS] = [Class::RealTime, Class::Ordinary, Class::RealTime];
pub(super) const MODES: [Unlock; 3] = [Unlock::Serial, Unlock::Parallel, Unlock::Auto];

pub(super) type Protections = [Protection; LOCKS];

/// A machine that is walked.
pub(super) trait Walked: Clone + Eq + Hash {
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

/// The state that follows from the actions.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Shadow {
    protections: Protections,
    pub(super) owners: [Option<usize>; LOCKS],
    pub(super) health: [Health; LOCKS],
    /// An owner died, and nobody was told yet.
    no_heir: [bool; LOCKS],
    /// Waiting tasks, in order of arrival or of their last change.
    pub(super) waiting: Vec<Waiting>,
    /// Woken, and not heard of since.
    pub(super) awake: [bool; TASKS],
    pub(super) bases: [usize; TASKS],
    told: [Priority; TASKS],
    pub(super) epochs: [u32; TASKS],
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Waiting {
    task: usize,
    lock: usize,
    /// The priority it is queued by.
    key: Priority,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Event {
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
    pub(super) fn caller(self) -> usize {
        match self {
            Self::Request(task, _) | Self::Try(task, _) | Self::Release(task, ..) | Self::Heal(task, _) => task,
            Self::Woken(task) | Self::Cancel(task) | Self::Rebase(task) | Self::Die(task) => task,
        }
    }
}

impl Shadow {
    pub(super) fn initial(protections: Protections) -> Self {
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

    pub(super) fn waits_for(&self, task: usize) -> Option<usize> {
        self.waiting.iter().find(|waiting| waiting.task == task).map(|waiting| waiting.lock)
    }

    /// The waiters of a lock: the most urgent first, the earliest among equals.
    pub(super) fn queue(&self, lock: usize) -> Vec<usize> {
        let mut queue: Vec<&Waiting> = self.waiting.iter().filter(|waiting| waiting.lock == lock).collect();
        queue.sort_by_key(|waiting| core::cmp::Reverse(waiting.key));
        queue.iter().map(|waiting| waiting.task).collect()
    }

    fn first(&self, lock: usize) -> Option<usize> {
        self.queue(lock).first().copied()
    }

    /// Returns the chain of waits from `task` if it waited for `lock`: the tasks with their locks, and whether the
    /// chain is a cycle.
    pub(super) fn chain(&self, task: usize, lock: usize) -> (Vec<(usize, usize)>, bool) {
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

    /// Returns the refusal of the event in this state, if it has no meaning.
    pub(super) fn refusal(&self, event: Event, limit: usize) -> Option<Refusal> {
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

    /// Carries out the effect of the event itself, before any action.
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

    /// Returns the task to which a release must hand the lock, and the task that it must wake.
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
    pub(super) fn follow<M: Walked>(&mut self, machine: &M, event: Event, actions: &[Action]) {
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
