//! Histories of operations, and the search for a linearization (Wing and Gong).

use crate::Bound;
use core::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::collections::{HashSet, VecDeque};
use std::sync::Mutex;
use std::vec::Vec;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Operation {
    Push(u64),
    Pop,
    Write(u64),
    Read,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Answer {
    Done,
    Full,
    Value(Option<u64>),
    /// A read returned parts of several values.
    Torn,
}

/// The sequential object.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Sequential {
    Queue(VecDeque<u64>, usize),
    /// In ascending order.
    Heap(Vec<u64>, usize),
    Buffer(u64),
}

impl Sequential {
    fn apply(&mut self, operation: Operation) -> Answer {
        match (self, operation) {
            (Self::Queue(values, capacity), Operation::Push(value)) => {
                if values.len() == *capacity {
                    return Answer::Full;
                }
                values.push_back(value);
                Answer::Done
            }
            (Self::Queue(values, _), Operation::Pop) => Answer::Value(values.pop_front()),
            (Self::Heap(values, capacity), Operation::Push(value)) => {
                if values.len() == *capacity {
                    return Answer::Full;
                }
                values.insert(values.partition_point(|other| *other < value), value);
                Answer::Done
            }
            (Self::Heap(values, _), Operation::Pop) => Answer::Value(values.pop()),
            (Self::Buffer(value), Operation::Read) => Answer::Value(Some(*value)),
            (Self::Buffer(value), Operation::Write(new)) => {
                *value = new;
                Answer::Done
            }
            (object, operation) => panic!("{object:?} has no {operation:?}"),
        }
    }
}

/// An operation, and its answer unless the participant was killed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    thread: usize,
    operation: Operation,
    answer: Option<Answer>,
    begin: u64,
    end: u64,
    steps: u64,
}

impl Event {
    /// Whether this operation ended before the other one began.
    fn precedes(&self, other: &Self) -> bool {
        if cfg!(lockwright_loom) {
            // Loom has no time that orders the operations of different threads.
            self.thread == other.thread && self.end < other.begin
        } else {
            self.end < other.begin
        }
    }
}

#[derive(Default, Debug)]
pub(crate) struct History {
    clock: AtomicU64,
    events: Mutex<Vec<Event>>,
}

impl History {
    /// Records an operation of a thread. The operation returns its answer, if it was not killed, and its steps.
    pub(crate) fn record(
        &self,
        thread: usize,
        operation: Operation,
        perform: impl FnOnce() -> Option<(Answer, u64)>,
    ) -> Option<Answer> {
        let begin = self.clock.fetch_add(1, SeqCst);
        let done = perform();
        let end = if done.is_some() { self.clock.fetch_add(1, SeqCst) } else { u64::MAX };
        let (answer, steps) = done.unzip();
        let event = Event { thread, operation, answer, begin, end, steps: steps.unwrap_or(0) };
        self.events.lock().expect("no panic while recording").push(event);
        answer
    }

    /// Checks that the history is linearizable, and that no operation exceeds its bound. Returns the most steps.
    pub(crate) fn check(
        &self,
        object: Sequential,
        bound: fn(Operation) -> Bound,
        interferes: fn(Operation, Operation) -> bool,
    ) -> u64 {
        let events = self.events.lock().expect("no panic while recording");
        assert!(is_linearizable(object, &events), "not linearizable: {events:?}");
        for event in events.iter().filter(|event| event.answer.is_some()) {
            let others = events.iter().filter(|other| {
                other.thread != event.thread
                    && interferes(event.operation, other.operation)
                    && !event.precedes(other)
                    && !other.precedes(event)
            });
            let bound = bound(event.operation).steps(others.count() as u64);
            assert!(event.steps <= bound, "more than {bound} steps: {event:?} in {events:?}");
        }
        events.iter().map(|event| event.steps).max().unwrap_or(0)
    }
}

/// Whether some order of the operations that respects their times gives their answers.
fn is_linearizable(object: Sequential, events: &[Event]) -> bool {
    assert!(events.len() <= 32, "a short history");
    search(object, 0, events, &mut HashSet::new())
}

/// Continues an order from an object after the operations `done`.
fn search(object: Sequential, done: u32, events: &[Event], seen: &mut HashSet<(u32, Sequential)>) -> bool {
    if !seen.insert((done, object.clone())) {
        return false;
    }
    let open = |index: &usize| done & 1 << index == 0;
    // A killed operation may have happened or not.
    if (0..events.len()).filter(open).all(|index| events[index].answer.is_none()) {
        return true;
    }
    (0..events.len()).filter(open).any(|index| {
        if (0..events.len()).filter(open).any(|other| events[other].precedes(&events[index])) {
            return false;
        }
        let mut object = object.clone();
        let answer = object.apply(events[index].operation);
        events[index].answer.is_none_or(|expected| expected == answer)
            && search(object, done | 1 << index, events, seen)
    })
}

#[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
mod tests {
    use super::*;

    fn event(thread: usize, operation: Operation, answer: Option<Answer>, begin: u64, end: u64) -> Event {
        Event { thread, operation, answer, begin, end, steps: 0 }
    }

    #[test]
    fn search_tells_histories_apart() {
        let queue = || Sequential::Queue(VecDeque::new(), 1);
        let pushed = event(0, Operation::Push(1), Some(Answer::Done), 0, 3);
        let pop = |value, begin, end| event(1, Operation::Pop, Some(Answer::Value(value)), begin, end);
        // Overlapping, a pop may be first or second.
        assert!(is_linearizable(queue(), &[pushed, pop(None, 1, 2)]));
        assert!(is_linearizable(queue(), &[pushed, pop(Some(1), 1, 2)]));
        assert!(!is_linearizable(queue(), &[pushed, pop(Some(2), 1, 2)]));
        // A later pop is second.
        assert!(!is_linearizable(queue(), &[pushed, pop(None, 4, 5)]));
        // No value is popped twice.
        assert!(!is_linearizable(queue(), &[pushed, pop(Some(1), 4, 5), pop(Some(1), 6, 7)]));
        // A killed push may have happened or not.
        let killed = event(0, Operation::Push(1), None, 0, u64::MAX);
        assert!(is_linearizable(queue(), &[killed, pop(None, 4, 5)]));
        assert!(is_linearizable(queue(), &[killed, pop(None, 4, 5), pop(Some(1), 6, 7)]));
        assert!(!is_linearizable(queue(), &[killed, pop(Some(1), 4, 5), pop(Some(1), 6, 7)]));
        let full = |end| event(1, Operation::Push(2), Some(Answer::Full), end - 1, end);
        assert!(is_linearizable(queue(), &[killed, full(2)]));
        assert!(!is_linearizable(queue(), &[killed, full(2), pop(None, 4, 5)]));
        assert!(!is_linearizable(Sequential::Buffer(0), &[event(0, Operation::Read, Some(Answer::Torn), 0, 1)]));
    }

    #[test]
    fn steps_above_the_bound_are_noticed() {
        let steps = |taken| {
            let history = History::default();
            history.record(0, Operation::Read, || Some((Answer::Value(Some(0)), taken)));
            let bound = |_| Bound { once: 2, attempt: 1, attempts: None };
            crate::testing::fails(|| _ = history.check(Sequential::Buffer(0), bound, |_, _| true))
        };
        assert!(!steps(3) && steps(4));
    }
}
