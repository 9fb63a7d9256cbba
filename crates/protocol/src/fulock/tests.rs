//! Cases for which the walk is too small: long chains, unknown ids, a class that changes.

extern crate std;

use super::*;
use std::vec::Vec;

const TASKS: usize = 20;
const LIMIT: usize = 16;

type Machine = Fulock<TASKS, TASKS, LIMIT>;

/// Returns the actions of an event.
fn told(event: impl FnOnce(&mut dyn FnMut(Action)) -> Result<(), Refusal>) -> Result<Vec<Action>, Refusal> {
    let mut actions = Vec::new();
    event(&mut |action| actions.push(action)).map(|()| actions)
}

fn request(machine: &mut Machine, task: usize, lock: usize) -> Result<Vec<Action>, Refusal> {
    told(|mut act| machine.request(TaskId::new(task), ResourceId::new(lock), &mut act))
}

/// Task `t` has priority `t`, owns lock `t`, and waits for lock `t` − 1, as long as `waits` says.
fn chain(waits: usize, protection: impl Fn(usize) -> Protection) -> Machine {
    let tasks: [_; TASKS] = core::array::from_fn(|task| (Priority::base(task as u32), Class::RealTime));
    let mut machine = Machine::new(&tasks, &core::array::from_fn::<_, TASKS, _>(protection));
    for task in 0..TASKS {
        request(&mut machine, task, task).unwrap();
    }
    for task in 1..=waits {
        request(&mut machine, task, task - 1).unwrap();
    }
    machine
}

fn effective(machine: &Machine, task: usize) -> u32 {
    machine.effective(TaskId::new(task)).level()
}

#[test]
fn priorities_pass_along_chains_of_1_to_16_locks_up_and_down() {
    for waits in (1..=LIMIT).step_by(if cfg!(miri) { LIMIT } else { 1 }) {
        let mut machine = chain(waits, |_| Protection::Inherit);
        assert!((0..=waits).all(|task| effective(&machine, task) == waits as u32));
        let last = TaskId::new(waits);
        told(|mut act| machine.set_base(last, Priority::base(99), &mut act)).unwrap();
        assert!((0..=waits).all(|task| effective(&machine, task) == 99));
        told(|mut act| machine.set_base(last, Priority::base(0), &mut act)).unwrap();
        let highest = waits as u32 - 1;
        assert!((0..waits).all(|task| effective(&machine, task) == highest), "deboosted at once");
        told(|mut act| machine.cancel(last, &mut act)).unwrap();
        assert!((0..waits).all(|task| effective(&machine, task) == highest));
        assert_eq!(effective(&machine, waits), 0);
    }
}

/// A ceiling that a waiter has passes on through locks that inherit, and a lock that does not ends the chain.
#[test]
fn ceilings_pass_along_chains_of_inheritance() {
    let mut machine = chain(8, |lock| match lock {
        8 => Protection::Protect(Priority::base(50)),
        3 => Protection::None,
        _ => Protection::Inherit,
    });
    assert!((4..=8).all(|task| effective(&machine, task) == 50));
    assert!((0..4).all(|task| effective(&machine, task) == 3));
    told(|mut act| machine.die(TaskId(8), &mut act)).unwrap();
    assert!((4..8).all(|task| effective(&machine, task) == 7));
}

#[test]
fn no_chain_is_longer_than_the_limit_wherever_it_grows() {
    // At its end.
    let mut machine = chain(LIMIT, |_| Protection::Inherit);
    let before = machine.clone();
    assert_eq!(request(&mut machine, LIMIT + 1, LIMIT), Err(Refusal::ChainTooLong));
    // At its start, by a task that others wait for already.
    assert_eq!(request(&mut machine, 0, LIMIT + 2), Err(Refusal::ChainTooLong));
    // In its middle: two chains of half the length, and one wait more.
    assert!(machine == before);
    told(|mut act| machine.cancel(TaskId(9), &mut act)).unwrap();
    assert_eq!(request(&mut machine, 9, LIMIT + 2).map(|_| ()), Ok(()));
    told(|mut act| machine.cancel(TaskId(9), &mut act)).unwrap();
    assert_eq!(request(&mut machine, 0, LIMIT + 2).map(|_| ()), Ok(()));
    assert_eq!(request(&mut machine, 9, 8), Err(Refusal::ChainTooLong));
}

/// Each task on the longest cycle there can be, and one task with itself.
#[test]
fn a_deadlock_is_reported_whole() {
    let mut machine = chain(LIMIT, |_| Protection::Inherit);
    assert_eq!(request(&mut machine, 0, LIMIT), Err(Refusal::Deadlock));
    let cycle = machine.cycle(TaskId(0), ResourceId::new(LIMIT)).unwrap();
    let expected = core::iter::once((0, LIMIT)).chain((1..=LIMIT).rev().map(|task| (task, task - 1)));
    assert!(cycle.waits().map(|(task, lock)| (task.index(), lock.index())).eq(expected));
    assert_eq!(request(&mut machine, 0, 0), Err(Refusal::AlreadyHeld));
    let own = machine.cycle(TaskId(0), ResourceId(0)).unwrap();
    assert!(own.waits().eq([(TaskId(0), ResourceId(0))]));
    assert_eq!(machine.cycle(TaskId(19), ResourceId(0)), None);
}

/// A lock can be taken while its owner dies, again and again: each has one heir, in the order of waiting.
#[test]
fn every_death_has_one_heir() {
    let mut machine = chain(0, |_| Protection::Inherit);
    for task in 1..TASKS {
        request(&mut machine, task, 0).unwrap();
    }
    for (dead, heir) in core::iter::once(0).chain((2..TASKS).rev()).zip((1..TASKS).rev()) {
        let actions = told(|mut act| machine.die(TaskId::new(dead), &mut act)).unwrap();
        let heir = TaskId::new(heir);
        let granted = |action: &&Action| matches!(action, Action::Grant { .. });
        assert!(actions.iter().filter(granted).eq([&Action::Grant { task: heir, resource: ResourceId(0) }]));
        assert!(actions.contains(&Action::Wake { task: heir }));
        assert_eq!((machine.owner(ResourceId(0)), machine.health(ResourceId(0))), (Some(heir), Health::Dead));
    }
    machine.make_consistent(TaskId(1), ResourceId(0)).unwrap();
    assert_eq!(machine.make_consistent(TaskId(1), ResourceId(0)), Err(Refusal::Healthy));
}

#[test]
fn automatic_unlock_goes_by_the_class_of_the_first_waiter() {
    for (class, owner) in [(Class::RealTime, Some(TaskId(1))), (Class::Ordinary, None)] {
        let mut machine = chain(1, |_| Protection::None);
        machine.set_class(TaskId(1), class).unwrap();
        told(|mut act| machine.release(TaskId(0), ResourceId(0), Unlock::Auto, &mut act)).unwrap();
        assert_eq!(machine.owner(ResourceId(0)), owner);
    }
}

#[test]
fn what_is_unknown_is_refused() {
    let mut machine = chain(0, |_| Protection::None);
    let (task, lock) = (TaskId::new(TASKS), ResourceId::new(TASKS));
    let act = &mut |action| panic!("{action:?}");
    let (unknown_task, unknown_lock) = (Err(Refusal::UnknownTask), Err(Refusal::UnknownResource));
    assert_eq!(machine.request(task, ResourceId(0), act), unknown_task);
    assert_eq!(machine.request(TaskId(0), lock, act), unknown_lock);
    assert_eq!(machine.try_request(task, lock, act), unknown_task);
    assert_eq!(machine.release(task, ResourceId(0), Unlock::Serial, act), unknown_task);
    assert_eq!(machine.release(TaskId(0), lock, Unlock::Serial, act), unknown_lock);
    assert_eq!(machine.make_consistent(TaskId(0), lock), unknown_lock);
    assert_eq!(machine.woken(task, act), unknown_task);
    assert_eq!(machine.cancel(task, act), unknown_task);
    assert_eq!(machine.die(task, act), unknown_task);
    assert_eq!(machine.set_base(task, Priority::MIN, act), unknown_task);
    assert_eq!(machine.set_class(task, Class::RealTime), unknown_task);
    assert_eq!((machine.owner(lock), machine.health(lock)), (None, Health::NotRecoverable));
    assert_eq!((machine.waits_for(task), machine.effective(task)), (None, Priority::MIN));
    assert_eq!((machine.owned(task).count(), machine.cycle(task, lock)), (0, None));
}
