//! Mutants of the machine, which the walk must find.

use super::*;
use crate::Action;
use core::hash::Hash;

/// A mutant of the machine, which the walk must find.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Mutant<const MUTATION: u8>(Fulock<TASKS, LOCKS, 2>);

/// Every request is granted, also if another task owns the lock.
const GRANTS_ALL: u8 = 0;
/// A release does not happen.
const KEEPS: u8 = 1;
/// A second waiter becomes the heir as well.
const TWO_HEIRS: u8 = 2;
/// A waiter other than the first one is woken, or granted the lock.
const WRONG_ORDER: u8 = 3;
/// A waiter whose priority changes stays in its place.
const STAYS_IN_PLACE: u8 = 4;
/// A serial unlock is parallel.
const LETS_STEAL: u8 = 5;
/// An automatic unlock is serial, also for waiters that are not real-time tasks.
const ALWAYS_SERIAL: u8 = 6;
/// A release wakes no task.
const NO_WAKE: u8 = 7;
/// The first waiter gives up after it was woken, and no other waiter is woken.
const WAKE_UP_DIES: u8 = 8;
/// The death of an owner wakes no task.
const SILENT_DEATH: u8 = 9;
/// A task that has died stays in the queue.
const DEAD_WAITS: u8 = 10;
/// The heir reads a dead lock as healthy.
const HEIR_NOT_TOLD: u8 = 11;
/// A lock that was made consistent stays dead.
const NEVER_HEALS: u8 = 12;
/// A dead lock is healthy after its release.
const FORGIVES: u8 = 13;
/// A lock that becomes not recoverable wakes one waiter instead of all.
const WAKES_ONE: u8 = 14;
/// Owners do not inherit.
const NO_INHERITANCE: u8 = 15;
/// Owners do not rise to the ceiling.
const NO_CEILING: u8 = 16;
/// Inheritance does not pass along chains.
const ONE_LINK: u8 = 17;
/// The owner keeps the inherited priority when the waiter gives up.
const NO_DEBOOST: u8 = 18;
/// The caller keeps its raised priority after a release.
const STAYS_UP: u8 = 19;
/// The caller lowers its priority before it wakes the next owner.
const FALLS_FIRST: u8 = 20;
/// The next owner rises after it is woken.
const LATE_RISE: u8 = 21;
/// A deadlock is not detected.
const BLIND: u8 = 22;
/// The last wait on a cycle is not reported.
const SHORT_CYCLE: u8 = 23;
/// Chains may have one wait more than their limit.
const LONG_CHAIN: u8 = 24;
/// A refused request changes the state.
const MARKS: u8 = 25;
/// A request that must not wait is queued.
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
