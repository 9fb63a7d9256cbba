//! The structures under every schedule of one processor: they are linearizable.
//!
//! The answers are those of a sequential structure, in some order that respects which operation ended before another
//! began.

use super::mutants::Unchecked;
use super::nested::{Explored, SCHEDULES_MAX, Task, explore};
use crate::mutation::Mutation;
use crate::sync::AtomicU64;
use crate::{Commit, Locked, OrderedMap, PriorityQueue, Stop};
use core::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::vec::Vec;

/// An operation on a structure, and on its sequential counterpart.
trait Operation: Copy + 'static {
    type Real: 'static;
    type Sequential: Clone + Default;
    type Answer: PartialEq + Copy;

    fn make(commit: Helper) -> Self::Real;
    fn execute(self, real: &Self::Real, writer: usize) -> Self::Answer;
    fn specify(self, model: &mut Self::Sequential) -> Self::Answer;
}

/// An operation that was executed.
struct Done<O: Operation> {
    operation: O,
    begin: usize,
    end: usize,
    answer: O::Answer,
}

/// Whether there is an order for the operations that are left.
fn is_linearizable<O: Operation>(model: &O::Sequential, left: &[&Done<O>]) -> bool {
    left.is_empty()
        || left.iter().enumerate().any(|(index, done)| {
            // An operation can be the first one if no other one ended before it began.
            let mut after = model.clone();
            left.iter().all(|other| other.end >= done.begin) && done.operation.specify(&mut after) == done.answer && {
                let mut rest = left.to_vec();
                rest.remove(index);
                is_linearizable(&after, &rest)
            }
        })
}

/// A strategy that is correct, or whose helpers check nothing.
#[derive(Clone, Copy)]
enum Helper {
    Correct,
    Unchecked,
}

// SAFETY: `Correct` is `Locked`. `Unchecked` breaks the contract on purpose; the data are integers, which stay valid.
#[allow(unsafe_code)]
unsafe impl Commit for Helper {
    fn post(&self, head: &AtomicU64, seen: u64, new: u64) -> bool {
        Locked.post(head, seen, new)
    }
    fn perform(&self, head: &AtomicU64, seen: u64, word: &AtomicU64, old: u64, new: u64) {
        match self {
            Self::Correct => Locked.perform(head, seen, word, old, new),
            Self::Unchecked => Unchecked.perform(head, seen, word, old, new),
        }
    }
}

/// Executes a script in all schedules, and at most in `most`, and then `last` alone.
fn hold<O: Operation>(helper: Helper, script: &[&'static [O]], last: &'static [O], most: usize) -> Explored {
    explore(0, 1, most, || {
        let real = Rc::new(O::make(helper));
        let (clock, history) = (Rc::new(Cell::new(0)), Rc::new(RefCell::new(Vec::new())));
        let execute = {
            let (real, history) = (Rc::clone(&real), Rc::clone(&history));
            Rc::new(move |writer: usize, operation: O| {
                let tick = || clock.replace(clock.get() + 1);
                let begin = tick();
                let answer = operation.execute(&real, writer);
                history.borrow_mut().push(Done { operation, begin, end: tick(), answer });
            })
        };
        let task = |(writer, operations): (usize, &&'static [O])| {
            let (execute, next, operations) = (Rc::clone(&execute), Cell::new(0), *operations);
            (operations.len(), Rc::new(move || execute(writer, operations[next.replace(next.get() + 1)])) as Task)
        };
        let tasks = script.iter().enumerate().map(task).collect();
        let check = move |_: &[bool]| {
            last.iter().for_each(|&operation| execute(0, operation));
            let history = history.borrow();
            is_linearizable(&O::Sequential::default(), &history.iter().collect::<Vec<_>>())
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
    /// It has room for two entries.
    type Real = PriorityQueue<5, 3, Helper>;
    type Sequential = Vec<(u64, u64)>;
    type Answer = Result<Option<(u64, u64)>, Stop>;

    fn make(helper: Helper) -> Self::Real {
        PriorityQueue::with(helper)
    }
    fn execute(self, real: &Self::Real, writer: usize) -> Self::Answer {
        // SAFETY: each task has its own number.
        let mut writer = unsafe { real.shared_writer(writer) }.expect("three writers");
        match self {
            Enqueue(priority, value) => writer.enqueue(priority, value).map(|()| None),
            Dequeue => writer.dequeue(),
        }
    }
    fn specify(self, model: &mut Self::Sequential) -> Self::Answer {
        match self {
            Enqueue(..) if model.len() == 2 => Err(Stop::Full),
            Enqueue(priority, value) => {
                let place = model.iter().position(|&(other, _)| other < priority).unwrap_or(model.len());
                model.insert(place, (priority, value));
                Ok(None)
            }
            Dequeue if model.is_empty() => Ok(None),
            Dequeue => Ok(Some(model.remove(0))),
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
    /// It has room for two entries.
    type Real = OrderedMap<5, 3, Helper>;
    type Sequential = BTreeMap<u64, u64>;
    type Answer = Result<Option<(u64, u64)>, Stop>;

    fn make(helper: Helper) -> Self::Real {
        OrderedMap::with(helper)
    }
    fn execute(self, real: &Self::Real, writer: usize) -> Self::Answer {
        // SAFETY: each task has its own number.
        let mut writer = unsafe { real.shared_writer(writer) }.expect("three writers");
        let of = |key: u64| move |value: Option<u64>| value.map(|value| (key, value));
        match self {
            Insert(key, value) => writer.insert(key, value).map(of(key)),
            Remove(key) => writer.remove(key).map(of(key)),
            Get(key) => Ok(of(key)(real.get(key))),
            From(key) => Ok(real.first_from(key)),
        }
    }
    fn specify(self, model: &mut Self::Sequential) -> Self::Answer {
        let of = |key: u64| move |value: u64| (key, value);
        match self {
            Insert(key, _) if model.len() == 2 && !model.contains_key(&key) => Err(Stop::Full),
            Insert(key, value) => Ok(model.insert(key, value).map(of(key))),
            Remove(key) => Ok(model.remove(&key).map(of(key))),
            Get(key) => Ok(model.get(&key).copied().map(of(key))),
            From(key) => Ok(model.range(key..).next().map(|(&key, &value)| (key, value))),
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
        let explored = hold(Helper::Correct, script, EMPTIED, SCHEDULES_MAX);
        std::println!("{script:?}: {} schedules", explored.schedules);
        assert_eq!(explored.wrong, 0);
    }
}

#[test]
fn maps_are_linearizable() {
    for script in MAPS {
        let explored = hold(Helper::Correct, script, READ, SCHEDULES_MAX);
        std::println!("{script:?}: {} schedules", explored.schedules);
        assert_eq!(explored.wrong, 0);
    }
}

/// Whether one of the scripts catches a mutant.
fn shows(helper: Helper) -> bool {
    QUEUES.iter().any(|script| hold(helper, script, EMPTIED, usize::MAX).wrong > 0)
        || MAPS.iter().any(|script| hold(helper, script, READ, usize::MAX).wrong > 0)
}

/// The mutant prepares a pooled node, as the paper has it.
#[test]
fn a_section_that_prepares_a_pooled_node_is_caught() {
    assert!(Mutation::PooledNode.during(|| shows(Helper::Correct)));
}

#[cfg_attr(miri, ignore = "catches a mutant only after many schedules")]
#[test]
fn missing_checks_are_caught() {
    assert!(Mutation::NoValidation.during(|| shows(Helper::Correct)), "sections without validation are not caught");
    assert!(shows(Helper::Unchecked), "a helper that checks nothing is not caught");
}

/// Memory of zeros is no structure: its first node leads to itself.
#[test]
fn a_ring_is_reported() {
    // SAFETY: the structure consists of integers, for which zeros are valid.
    #[allow(unsafe_code)]
    let map: OrderedMap<3, 1> = unsafe { core::mem::zeroed() };
    let mut writer = map.writer().expect("a writer");
    assert_eq!((writer.insert(5, 1), writer.remove(5)), (Err(Stop::Damaged), Err(Stop::Damaged)));
    assert_eq!(map.get(5), None);
}
