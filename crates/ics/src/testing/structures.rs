//! The structures under every schedule of one processor: what each operation answered is what a plain one would have, in some order that contradicts
//! no operation's end and another's beginning (linearizability).

use super::nested::{Explored, Task, explore};
use crate::left_out::{Part, leaving_out};
use crate::{OrderedMap, PriorityQueue, Stop};
use core::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::vec::Vec;

/// What can be done to a structure, and its plain counterpart.
trait Operation: Copy + 'static {
    type Real: 'static;
    type Plain: Clone + Default;
    type Answer: PartialEq + Copy;

    fn make() -> Self::Real;
    fn really(self, real: &Self::Real, slot: usize) -> Self::Answer;
    fn plainly(self, plain: &mut Self::Plain) -> Self::Answer;
}

/// An operation that was executed.
struct Done<O: Operation> {
    operation: O,
    begin: usize,
    end: usize,
    answer: O::Answer,
}

/// Whether there is an order.
fn is_linearizable<O: Operation>(plain: &O::Plain, left: &[&Done<O>]) -> bool {
    left.is_empty()
        || left.iter().enumerate().any(|(index, done)| {
            // It can be the first of those left if none of them had ended before it began.
            let mut after = plain.clone();
            left.iter().all(|other| other.end >= done.begin) && done.operation.plainly(&mut after) == done.answer && {
                let mut rest = left.to_vec();
                rest.remove(index);
                is_linearizable(&after, &rest)
            }
        })
}

/// Executes a script in all schedules, and `last`, alone, at the end.
fn hold<O: Operation>(script: &[&'static [O]], last: &'static [O]) -> Explored {
    explore(0, 1, || {
        let real = Rc::new(O::make());
        let (clock, history) = (Rc::new(Cell::new(0)), Rc::new(RefCell::new(Vec::new())));
        let execute = {
            let (real, history) = (Rc::clone(&real), Rc::clone(&history));
            Rc::new(move |slot: usize, operation: O| {
                let tick = || clock.replace(clock.get() + 1);
                let begin = tick();
                let answer = operation.really(&real, slot);
                history.borrow_mut().push(Done { operation, begin, end: tick(), answer });
            })
        };
        let task = |(slot, operations): (usize, &&'static [O])| {
            let (execute, next, operations) = (Rc::clone(&execute), Cell::new(0), *operations);
            (operations.len(), Rc::new(move || execute(slot, operations[next.replace(next.get() + 1)])) as Task)
        };
        let tasks = script.iter().enumerate().map(task).collect();
        let check = move |_: &[bool]| {
            last.iter().for_each(|&operation| execute(0, operation));
            let history = history.borrow();
            is_linearizable(&O::Plain::default(), &history.iter().collect::<Vec<_>>())
        };
        (tasks, check)
    })
}

#[derive(Clone, Copy, Debug)]
enum Queue {
    Enqueue(u64, u64),
    Dequeue,
}
use Queue::{Dequeue, Enqueue};

#[allow(unsafe_code)]
impl Operation for Queue {
    /// Room for two.
    type Real = PriorityQueue<5, 3>;
    type Plain = Vec<(u64, u64)>;
    type Answer = Result<Option<(u64, u64)>, Stop>;

    fn make() -> Self::Real {
        PriorityQueue::new()
    }
    fn really(self, real: &Self::Real, slot: usize) -> Self::Answer {
        // SAFETY: each task has a number of its own.
        let mut slot = unsafe { real.shared_slot(slot) }.expect("three slots");
        match self {
            Enqueue(priority, value) => slot.enqueue(priority, value).map(|()| None),
            Dequeue => slot.dequeue(),
        }
    }
    fn plainly(self, plain: &mut Self::Plain) -> Self::Answer {
        match self {
            Enqueue(..) if plain.len() == 2 => Err(Stop::Full),
            Enqueue(priority, value) => {
                let place = plain.iter().position(|&(other, _)| other < priority).unwrap_or(plain.len());
                plain.insert(place, (priority, value));
                Ok(None)
            }
            Dequeue if plain.is_empty() => Ok(None),
            Dequeue => Ok(Some(plain.remove(0))),
        }
    }
}

const QUEUES: [&[&[Queue]]; 3] = [
    &[&[Enqueue(1, 10)], &[Enqueue(2, 20), Dequeue]],
    &[&[Enqueue(1, 10), Dequeue], &[Enqueue(1, 20), Dequeue]],
    &[&[Enqueue(1, 10)], &[Enqueue(1, 20)], &[Dequeue]],
];
const EMPTIED: &[Queue] = &[Dequeue, Dequeue, Enqueue(5, 1), Enqueue(5, 2), Enqueue(5, 3), Dequeue, Dequeue, Dequeue];

#[derive(Clone, Copy, Debug)]
enum Map {
    Insert(u64, u64),
    Remove(u64),
    Get(u64),
    From(u64),
}
use Map::{From, Get, Insert, Remove};

#[allow(unsafe_code)]
impl Operation for Map {
    /// Room for two.
    type Real = OrderedMap<5, 3>;
    type Plain = BTreeMap<u64, u64>;
    type Answer = Result<Option<(u64, u64)>, Stop>;

    fn make() -> Self::Real {
        OrderedMap::new()
    }
    fn really(self, real: &Self::Real, slot: usize) -> Self::Answer {
        // SAFETY: each task has a number of its own.
        let mut slot = unsafe { real.shared_slot(slot) }.expect("three slots");
        let of = |key: u64| move |value: Option<u64>| value.map(|value| (key, value));
        match self {
            Insert(key, value) => slot.insert(key, value).map(of(key)),
            Remove(key) => slot.remove(key).map(of(key)),
            Get(key) => Ok(of(key)(real.get(key))),
            From(key) => Ok(real.first_from(key)),
        }
    }
    fn plainly(self, plain: &mut Self::Plain) -> Self::Answer {
        let of = |key: u64| move |value: u64| (key, value);
        match self {
            Insert(key, _) if plain.len() == 2 && !plain.contains_key(&key) => Err(Stop::Full),
            Insert(key, value) => Ok(plain.insert(key, value).map(of(key))),
            Remove(key) => Ok(plain.remove(&key).map(of(key))),
            Get(key) => Ok(plain.get(&key).copied().map(of(key))),
            From(key) => Ok(plain.range(key..).next().map(|(&key, &value)| (key, value))),
        }
    }
}

const MAPS: [&[&[Map]]; 3] = [
    &[&[Insert(1, 10)], &[Insert(1, 20), Insert(2, 21), Remove(1)]],
    &[&[Insert(2, 10), From(0)], &[Insert(1, 20), Remove(2)]],
    &[&[Get(1)], &[Insert(1, 20)], &[Insert(1, 30), Remove(1)]],
];
const READ: &[Map] = &[
    From(0),
    From(2),
    Get(1),
    Insert(3, 1),
    Insert(4, 1),
    Insert(5, 1),
    Remove(1),
    Remove(3),
    From(0),
    Insert(6, 1),
    From(0),
];

#[test]
fn queues_are_linearizable() {
    for script in QUEUES {
        let explored = hold(script, EMPTIED);
        std::println!("{script:?}: {} schedules", explored.schedules);
        assert_eq!(explored.wrong, 0);
    }
}

#[test]
fn maps_are_linearizable() {
    for script in MAPS {
        let explored = hold(script, READ);
        std::println!("{script:?}: {} schedules", explored.schedules);
        assert_eq!(explored.wrong, 0);
    }
}

/// The twins: nodes prepared where others find them, as in the paper, and what the sections themselves rest on.
#[test]
fn each_part_is_needed() {
    for part in [Part::OwnNode, Part::StaleHelper, Part::Validation, Part::SecondPage] {
        let shows = || {
            QUEUES.iter().any(|script| hold(script, EMPTIED).wrong > 0)
                || MAPS.iter().any(|script| hold(script, READ).wrong > 0)
        };
        assert!(leaving_out(Some(part), shows), "{part:?} left out goes unnoticed");
    }
}

/// Memory of zeros is no structure: its first node leads to itself.
#[test]
fn a_ring_is_answered() {
    // SAFETY: words are integers.
    #[allow(unsafe_code)]
    let map: OrderedMap<3, 1> = unsafe { core::mem::zeroed() };
    let mut slot = map.slot().expect("a slot");
    assert_eq!((slot.insert(5, 1), slot.remove(5)), (Err(Stop::Damaged), Err(Stop::Damaged)));
    assert_eq!(map.get(5), None);
}
