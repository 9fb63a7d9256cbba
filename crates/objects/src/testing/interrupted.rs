//! Operations that others interrupt before each of their steps, and operations that are killed there.

use super::history::Operation::{self, Pop, Push, Read, Write};
use super::history::{Answer, History};
use super::subjects::{
    HelpingHeap, HelpingQueue, HoldingBuffer, LargerHelpingHeap, LargerHelpingQueue, LargerRepeatingHeap, LongerQueue,
    RepeatingBuffer, RepeatingHeap, SmallQueue, Subject,
};
use super::{fails, slot};
use crate::mutation::Part;
use crate::sync::steps;
use core::cell::Cell;
use std::boxed::Box;
use std::rc::Rc;
use std::vec::Vec;

/// The steps before which an operation is interrupted or killed: all of them, and under Miri 2, 16, 128, and so on.
fn places() -> impl Iterator<Item = u64> {
    let first = if cfg!(miri) { 2 } else { 0 };
    std::iter::successors(Some(first), |place| Some(if cfg!(miri) { place * 8 } else { place + 1 }))
}

/// The number of beginnings, and of pairs of operations after each of them.
const CASES: usize = if cfg!(miri) { 1 } else { usize::MAX };

struct Run<S> {
    object: S,
    history: History,
}

impl<S: Subject> Run<S> {
    /// The object after operations of slot 0.
    fn after(first: &[Operation]) -> Rc<Self> {
        let run = Rc::new(Self { object: S::new(), history: History::default() });
        first.iter().for_each(|operation| run.perform(0, *operation));
        run
    }

    fn perform(&self, thread: usize, operation: Operation) {
        self.history.record(thread, operation, || Some(steps::count(|| self.object.perform(&slot(thread), operation))));
    }

    /// Performs an operation of `thread`, and those of the threads after it before the steps in `at`. Returns whether
    /// the innermost operation was performed.
    fn interrupted(self: &Rc<Self>, thread: usize, operations: &[Vec<Operation>], at: &[u64]) -> bool {
        let mut all = true;
        let (operation, rest) = operations[0].split_first().expect("an operation");
        if let [step, at @ ..] = at {
            let inner = Rc::new(Cell::new(false));
            let work = {
                let (run, operations, at) = (Rc::clone(self), operations[1..].to_vec(), at.to_vec());
                let inner = Rc::clone(&inner);
                move || inner.set(run.interrupted(thread + 1, &operations, &at))
            };
            self.history.record(thread, *operation, || {
                let perform = || self.object.perform(&slot(thread), *operation);
                let (answer, steps, _) = steps::interrupted([(*step, Box::new(work) as _)].into(), perform);
                Some((answer, steps))
            });
            all = inner.get();
        } else {
            self.perform(thread, *operation);
        }
        rest.iter().for_each(|operation| self.perform(thread, *operation));
        all
    }

    /// Lets one slot empty the object, and checks the history. Returns the most steps of an operation.
    fn end(&self, last: &[Operation]) -> u64 {
        last.iter().for_each(|operation| self.perform(3, *operation));
        self.history.check(S::sequential(), S::bound, S::interferes)
    }
}

/// Interrupts the first operation of slot 0 before each step by the operations of slot 1, whose first operation is
/// interrupted before each step by those of slot 2. Returns the most steps of an operation.
pub(super) fn interrupts<S: Subject>(first: &[Operation], operations: &[Vec<Operation>; 3], last: &[Operation]) -> u64 {
    let alone = Run::<S>::after(first);
    let (_, steps) = steps::count(|| alone.object.perform(&slot(0), operations[0][0]));
    let mut most = 0;
    for outer in places().take_while(|&place| place < steps) {
        for inner in places() {
            let run = Run::<S>::after(first);
            let all = run.interrupted(0, operations, &[outer, inner]);
            most = most.max(run.end(last));
            if !all {
                break;
            }
        }
    }
    most
}

/// Interrupts an operation of slot 0 before each pair of its steps, each time by an operation of slot 1.
pub(super) fn interrupts_twice<S: Subject>(
    first: &[Operation],
    one: Operation,
    two: [Operation; 2],
    last: &[Operation],
) {
    for earlier in places() {
        for later in places().skip_while(|&place| place < earlier) {
            let run = Run::<S>::after(first);
            let all = Cell::new(false);
            run.history.record(0, one, || {
                let event = |step, operation| {
                    let run = Rc::clone(&run);
                    (step, Box::new(move || run.perform(1, operation)) as Box<dyn FnOnce()>)
                };
                let events = [event(earlier, two[0]), event(later + 1, two[1])].into();
                let (answer, steps, done) = steps::interrupted(events, || run.object.perform(&slot(0), one));
                all.set(done);
                Some((answer, steps))
            });
            run.end(last);
            if !all.get() && later == earlier {
                return;
            }
            if !all.get() {
                break;
            }
        }
    }
}

/// Kills slot 0 before each step of an operation; then slot 1 executes its operations. Returns the number of steps.
pub(super) fn kills<S: Subject>(first: &[Operation], killed: Operation, others: &[Operation]) -> u64 {
    for step in places() {
        let run = Run::<S>::after(first);
        let answer = run.history.record(0, killed, || steps::killed(step, || run.object.perform(&slot(0), killed)));
        others.iter().for_each(|operation| run.perform(1, *operation));
        run.end(&[]);
        if answer.is_some() {
            return step;
        }
    }
    unreachable!("every operation ends")
}

/// All interruptions and kills of the operations on a queue of two values, or on a heap of as many.
pub(super) fn queue<S: Subject>() -> u64 {
    queue_after::<S>(&[&[], &[Push(1)], &[Push(1), Push(2)], &[Push(1), Pop, Push(2)]], &[Pop; 3])
}

/// The same on an object of two blocks, whose beginnings have values in both. A heap of four values is full, and the
/// root of one of three has two children.
pub(super) fn larger<S: Subject>() -> u64 {
    queue_after::<S>(&[&[Push(3), Push(1), Push(2)], &[Push(3), Push(1), Push(4), Push(2)]], &[Pop; 5])
}

fn queue_after<S: Subject>(kinds: &[&[Operation]], last: &[Operation]) -> u64 {
    let mut most = 0;
    for first in kinds.iter().copied().rev().take(CASES) {
        for one in [Push(5), Pop] {
            let pairs = [[Push(6), Pop], [Pop, Push(6)], [Pop, Pop], [Push(6), Push(7)]];
            for two in pairs.into_iter().take(CASES) {
                interrupts_twice::<S>(first, one, two, last);
                let operations = [[one].to_vec(), two.to_vec(), [Pop, Push(8)].to_vec()];
                most = most.max(interrupts::<S>(first, &operations, last));
            }
            let others = [Pop, Push(6), Push(7), Push(8), Pop, Pop, Push(9), Pop, Pop];
            assert!(kills::<S>(first, one, &others) > 1, "killed before several steps");
        }
    }
    most
}

/// All interruptions and kills of the operations on a buffer.
pub(super) fn buffer<S: Subject>() -> u64 {
    let mut most = 0;
    let kinds: [&[Operation]; 3] = [&[], &[Write(1)], &[Write(1), Write(2), Write(3)]];
    for first in kinds.into_iter().rev().take(CASES) {
        for one in [Write(5), Read] {
            let pairs = [[Write(6), Write(7)], [Write(6), Read], [Read, Write(6)], [Read, Read]];
            for two in pairs.into_iter().take(CASES) {
                interrupts_twice::<S>(first, one, two, &[Read, Write(10), Read]);
                for three in [[Write(8), Write(9)], [Write(8), Read], [Read, Write(8)]] {
                    let operations = [[one].to_vec(), two.to_vec(), three.to_vec()];
                    most = most.max(interrupts::<S>(first, &operations, &[Read, Write(10), Read]));
                }
            }
            let others = [Read, Write(6), Read, Write(7), Write(8), Read];
            assert!(kills::<S>(first, one, &others) > 1, "killed before several steps");
        }
    }
    most
}

#[test]
fn lock_free_buffer() {
    let most = buffer::<RepeatingBuffer>();
    assert!(cfg!(miri) || most == RepeatingBuffer::READ.steps(1), "at most {most} steps");
}

#[test]
#[cfg_attr(miri, ignore = "catches a mutant only after many interruptions")]
fn lock_free_buffer_needs_its_parts() {
    for part in [Part::Exchange, Part::Validation] {
        assert!(
            part.without(|| fails(|| _ = buffer::<RepeatingBuffer>())),
            "the mutant without {part:?} is not caught"
        );
    }
}

#[test]
fn wait_free_buffer() {
    buffer::<HoldingBuffer>();
}

#[test]
#[cfg_attr(miri, ignore = "catches a mutant only after many interruptions")]
fn wait_free_buffer_needs_its_parts() {
    for part in [Part::Help, Part::Holding] {
        assert!(part.without(|| fails(|| _ = buffer::<HoldingBuffer>())), "the mutant without {part:?} is not caught");
    }
}

#[test]
fn lock_free_queue() {
    queue::<SmallQueue>();
    queue::<LongerQueue>();
}

#[test]
#[cfg_attr(miri, ignore = "catches a mutant only after many interruptions")]
fn lock_free_queue_needs_its_parts() {
    for part in [Part::Help, Part::Exchange] {
        for check in [queue::<SmallQueue>, queue::<LongerQueue>] {
            assert!(part.without(|| fails(|| _ = check())), "the mutant without {part:?} is not caught");
        }
    }
}

#[test]
fn wait_free_queue() {
    queue::<HelpingQueue>();
    larger::<LargerHelpingQueue>();
}

#[test]
fn lock_free_heap() {
    queue::<RepeatingHeap>();
    larger::<LargerRepeatingHeap>();
}

#[test]
fn wait_free_heap() {
    queue::<HelpingHeap>();
    larger::<LargerHelpingHeap>();
}

#[test]
#[cfg_attr(miri, ignore = "catches a mutant only after many interruptions")]
fn construction_needs_its_exchange() {
    for check in [queue::<HelpingQueue>, queue::<RepeatingHeap>, queue::<HelpingHeap>] {
        assert!(Part::Exchange.without(|| fails(|| _ = check())), "the mutant is not caught");
    }
    for check in [larger::<LargerHelpingQueue>, larger::<LargerRepeatingHeap>, larger::<LargerHelpingHeap>] {
        assert!(Part::Exchange.without(|| fails(|| _ = check())), "the mutant of two blocks is not caught");
    }
}

/// An interruption ends before what it interrupts, so none shows a wait-free object half of an answer. Loom does.
#[test]
#[cfg_attr(miri, ignore = "catches a mutant only after many interruptions")]
fn lock_free_construction_needs_its_validation() {
    for check in [queue::<RepeatingHeap>, larger::<LargerRepeatingHeap>] {
        assert!(Part::Validation.without(|| fails(|| _ = check())), "the mutant is not caught");
    }
}

/// The most operations of the adversary.
const MANY: u64 = if cfg!(miri) { 40 } else { 2_000 };

/// Numbers of its operations.
const SOME: &[u64] = if cfg!(miri) { &[0, 1, 10] } else { &[0, 1, 10, 100] };

/// Before each step of an operation of slot 0, slot 1 performs one, up to a number of them. Returns the steps of the
/// operation and its bound.
fn adversary<S: Subject>(one: Operation, other: [Operation; 2], operations: u64) -> (u64, u64) {
    let object = Rc::new(S::new());
    let event = |step: u64| {
        let object = Rc::clone(&object);
        let operation = other[step as usize % 2];
        (step, Box::new(move || _ = steps::count(|| object.perform(&slot(1), operation))) as Box<dyn FnOnce()>)
    };
    let (_, steps, _) = steps::interrupted((0..operations).map(event).collect(), || object.perform(&slot(0), one));
    let bound = S::bound(one).steps(operations);
    assert!(steps <= bound, "more than {bound} steps: {steps}");
    (steps, bound)
}

#[test]
fn wait_free_bounds_do_not_depend_on_the_adversary() {
    for one in [Push(1), Pop] {
        for &operations in SOME.iter().chain(&[MANY]) {
            adversary::<HelpingQueue>(one, [Push(2), Pop], operations);
            adversary::<HelpingHeap>(one, [Push(2), Pop], operations);
        }
        let few = HelpingHeap::bound().steps(5);
        assert_eq!(adversary::<HelpingHeap>(one, [Push(2), Pop], MANY).1, few, "it has five attempts at most");
    }
    for one in [Read, Write(1)] {
        adversary::<HoldingBuffer>(one, [Write(2), Write(3)], MANY);
    }
    adversary::<RepeatingBuffer>(Write(1), [Write(2), Write(3)], MANY);
}

#[test]
fn lock_free_bounds_count_the_adversary() {
    for &operations in SOME {
        adversary::<SmallQueue>(Push(1), [Push(2), Pop], operations);
        adversary::<SmallQueue>(Pop, [Push(2), Pop], operations);
        adversary::<RepeatingHeap>(Push(1), [Push(2), Pop], operations);
        adversary::<RepeatingHeap>(Pop, [Push(2), Pop], operations);
        adversary::<RepeatingBuffer>(Read, [Write(2), Write(3)], operations);
    }
    // The adversary makes lock-free operations longer. Under Miri it has too few operations for that.
    let steps = adversary::<RepeatingHeap>(Push(1), [Push(2), Pop], MANY).0;
    assert!(cfg!(miri) || steps > RepeatingHeap::bound().steps(5), "only {steps} steps");
}

#[test]
#[cfg_attr(miri, ignore = "catches a mutant only after many interruptions")]
fn wait_free_construction_needs_its_help() {
    let check = || _ = adversary::<HelpingHeap>(Push(1), [Push(2), Pop], MANY);
    assert!(Part::Help.without(|| fails(check)));
}
