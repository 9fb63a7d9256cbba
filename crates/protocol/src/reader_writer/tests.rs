//! Walks over all states of four tasks and one resource, beside a record of who waits since when.

extern crate std;

use super::*;
use crate::testing::{STATES_MOST, check_states, reach_at_most};
use std::vec::Vec;

type Lock = ReaderWriter<TASKS, 1>;

const TASKS: usize = 4;
const R: ResourceId = ResourceId(0);

#[derive(Clone, Copy, Debug)]
enum Event {
    Ask(Mode),
    Release,
    Cancel,
}

const EVENTS: [Event; 4] = [Event::Ask(Mode::Read), Event::Ask(Mode::Write), Event::Release, Event::Cancel];

/// The record of one lock.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
struct Seen {
    holders: Vec<(TaskId, Mode)>,
    /// The waiters in the order of their requests, each with the number of writers that were admitted meanwhile.
    waiters: Vec<(TaskId, Mode, u8)>,
}

impl Seen {
    /// Records an admission. `by` is the event that leads to it.
    fn admit(&mut self, fairness: Fairness, task: TaskId, by: (Event, Option<Mode>)) {
        let place = self.waiters.iter().position(|waiter| waiter.0 == task).expect("it has asked");
        let (_, mode, _) = self.waiters.remove(place);
        match mode {
            Mode::Write => assert!(self.holders.is_empty(), "not excluded: a writer"),
            Mode::Read => assert!(self.holders.iter().all(|holder| holder.1 == Mode::Read), "not excluded: a reader"),
        }
        let before = &mut self.waiters[..];
        match fairness {
            Fairness::Tasks => assert!(place == 0, "passed in the order of requests"),
            Fairness::Phases if mode == Mode::Write => {
                assert!(before[..place].iter().all(|waiter| waiter.1 == Mode::Read), "a writer passed a writer");
                for waiter in before.iter_mut().filter(|waiter| waiter.1 == Mode::Read) {
                    waiter.2 += 1;
                    assert!(waiter.2 <= 1, "a reader waited for two writers");
                }
            }
            Fairness::Phases => {
                let begins = matches!(by, (Event::Release, Some(Mode::Write)));
                let writer_waits = before.iter().any(|waiter| waiter.1 == Mode::Write);
                assert!(begins || !writer_waits, "a reader passed a writer within a phase of readers");
            }
        }
        self.holders.push((task, mode));
    }

    fn apply(&mut self, fairness: Fairness, task: TaskId, event: Event, admitted: &[TaskId]) {
        let mut left = None;
        match event {
            Event::Ask(mode) => self.waiters.push((task, mode, 0)),
            Event::Release => {
                let place = self.holders.iter().position(|holder| holder.0 == task).expect("it holds");
                left = Some(self.holders.remove(place).1);
            }
            Event::Cancel => self.waiters.retain(|waiter| waiter.0 != task),
        }
        for &task in admitted {
            self.admit(fairness, task, (event, left));
        }
        assert!(self.waiters.is_empty() || !self.holders.is_empty(), "waiters of a free resource");
        let reads = |mode| mode == Mode::Read;
        let all_read = self.waiters.iter().all(|waiter| reads(waiter.1)) && self.holders.iter().all(|it| reads(it.1));
        assert!(!all_read || self.waiters.is_empty(), "readers wait for readers");
    }
}

type Handle = fn(&mut Lock, TaskId, Event, &mut dyn FnMut(Action)) -> Result<(), Refusal>;

fn unchanged(lock: &mut Lock, task: TaskId, event: Event, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
    match event {
        Event::Ask(Mode::Read) => lock.request_read(task, R, act),
        Event::Ask(Mode::Write) => lock.request(task, R, act),
        Event::Release => lock.release(task, R, act),
        Event::Cancel => lock.cancel(task, act),
    }
}

/// Visits all states, and at most `most`. `rules` is the order that the record checks. Returns the number of states.
fn walk(fairness: Fairness, rules: Fairness, most: usize, handle: Handle) -> usize {
    let lock = Lock::new(fairness, &[1, 2, 2, 3].map(Priority::base), 1);
    reach_at_most(most, (lock, Seen::default()), |(lock, seen), successors| {
        for task in (0..TASKS).map(TaskId::new) {
            for event in EVENTS {
                let (mut next, mut next_seen) = (lock.clone(), seen.clone());
                let mut admitted = Vec::new();
                let mut answers = 0;
                let answer = handle(&mut next, task, event, &mut |action| {
                    answers += 1;
                    if let Action::Grant { task, .. } = action {
                        admitted.push(task);
                    }
                });
                if answer.is_err() {
                    assert!(answers == 0 && next == *lock, "a refused event changed something");
                    continue;
                }
                next_seen.apply(rules, task, event, &admitted);
                for id in (0..TASKS).map(TaskId::new) {
                    let holds = next_seen.holders.iter().find(|holder| holder.0 == id).map(|holder| holder.1);
                    assert_eq!(next.holds(id, R), holds, "the answers tell who holds");
                    let state = next.tasks[id.index()];
                    let asked = state.stand != Stand::Idle;
                    let expected = if asked { Priority::NON_PREEMPTIVE } else { state.base };
                    assert_eq!(state.told, expected, "not preempted while it waits or holds");
                }
                next.forget_epochs();
                successors.push((next, next_seen));
            }
        }
    })
}

#[test]
fn every_state_keeps_the_rules() {
    for fairness in [Fairness::Phases, Fairness::Tasks] {
        let states = walk(fairness, fairness, STATES_MOST, unchanged);
        check_states(&std::format!("{fairness:?}"), states, 200);
    }
}

#[test]
fn base_priorities_count_outside_requests_only() {
    let mut lock = Lock::new(Fairness::Phases, &[Priority::base(1)], 1);
    let mut told = Vec::new();
    let mut act = |action| {
        if let Action::SetPriority { priority, .. } = action {
            told.push(priority);
        }
    };
    lock.request_read(TaskId(0), R, &mut act).expect("idle");
    lock.set_base(TaskId(0), Priority::base(7), &mut act).expect("known");
    lock.release(TaskId(0), R, &mut act).expect("held");
    lock.set_base(TaskId(0), Priority::base(2), &mut act).expect("known");
    assert_eq!(told, [Priority::NON_PREEMPTIVE, Priority::base(7), Priority::base(2)]);
    assert_eq!(lock.request(TaskId(1), R, &mut |_| ()), Err(Refusal::UnknownTask));
    assert_eq!(lock.request(TaskId(0), ResourceId(1), &mut |_| ()), Err(Refusal::UnknownResource));
}

/// A reader joins those that read, though a writer waits.
fn joins(lock: &mut Lock, task: TaskId, event: Event, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
    let reads = lock.tasks.iter().any(|state| matches!(state.stand, Stand::Holds(_, Mode::Read)));
    if matches!(event, Event::Ask(Mode::Read)) && reads && lock.tasks[task.index()].stand == Stand::Idle {
        lock.tell(task, Priority::NON_PREEMPTIVE, act);
        lock.admit(task, R, Mode::Read, act);
        return Ok(());
    }
    unchanged(lock, task, event, act)
}

/// A writer does not wait for readers.
fn writes_at_once(lock: &mut Lock, task: TaskId, event: Event, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
    if matches!(event, Event::Ask(Mode::Write)) && lock.tasks[task.index()].stand == Stand::Idle {
        lock.tell(task, Priority::NON_PREEMPTIVE, act);
        lock.admit(task, R, Mode::Write, act);
        return Ok(());
    }
    unchanged(lock, task, event, act)
}

/// The last of a phase forgets those that wait.
fn forgets(lock: &mut Lock, task: TaskId, event: Event, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
    if matches!(event, Event::Release) && lock.holds(task, R).is_some() {
        lock.tasks[task.index()].stand = Stand::Idle;
        lock.inside[0] -= 1;
        lock.tell_base(task, act);
        return Ok(());
    }
    unchanged(lock, task, event, act)
}

/// A writer that gives up leaves the readers behind it waiting.
fn gives_up_silently(lock: &mut Lock, task: TaskId, event: Event, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
    if matches!(event, Event::Cancel) && matches!(lock.tasks[task.index()].stand, Stand::Waits(..)) {
        lock.queues[0].remove(&mut lock.links, task);
        lock.tasks[task.index()].stand = Stand::Idle;
        lock.tell_base(task, act);
        return Ok(());
    }
    unchanged(lock, task, event, act)
}

/// The task can be preempted while it waits.
fn is_preempted(lock: &mut Lock, task: TaskId, event: Event, act: &mut dyn FnMut(Action)) -> Result<(), Refusal> {
    unchanged(lock, task, event, act)?;
    if matches!(lock.tasks[task.index()].stand, Stand::Waits(..)) {
        lock.tell_base(task, act);
    }
    Ok(())
}

macro_rules! caught {
    ($($name:ident: $fairness:ident by $rules:ident, $handle:ident, $message:literal;)*) => {$(
        #[test]
        #[should_panic(expected = $message)]
        fn $name() {
            walk(Fairness::$fairness, Fairness::$rules, usize::MAX, $handle);
        }
    )*};
}

caught! {
    tasks_in_order_are_not_phase_fair: Tasks by Phases, unchanged, "a reader waited for two writers";
    phases_are_not_in_order: Phases by Tasks, unchanged, "passed in the order of requests";
    a_reader_joins: Phases by Phases, joins, "a reader passed a writer within a phase of readers";
    a_reader_joins_in_order: Tasks by Tasks, joins, "passed in the order of requests";
    a_writer_enters: Phases by Phases, writes_at_once, "not excluded: a writer";
    a_phase_does_not_begin: Phases by Phases, forgets, "waiters of a free resource";
    readers_are_left: Phases by Phases, gives_up_silently, "readers wait for readers";
    a_waiter_is_preempted: Tasks by Tasks, is_preempted, "not preempted while it waits or holds";
}
