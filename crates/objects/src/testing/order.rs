//! Threads of Miri, which executes sequentially consistent accesses as such and lets other loads see old values.

use super::history::Answer;
use super::history::Operation::{self, Pop, Read, Write};
use super::subjects::{HelpingQueue, HoldingBuffer, Subject};
use super::{fails, slot};
use crate::mutation::Part;
use crate::sync::steps;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;
use std::boxed::Box;
use std::sync::Arc;
use std::thread;

/// The executions among which a mutant must be caught.
const EXECUTIONS: usize = 200;

/// The number of operations that are asked for at the end.
const END: u64 = u64::MAX;

struct Shared<S> {
    object: S,
    /// The operations of slot 1 that slot 0 has asked for, and those that are done.
    asked: AtomicU64,
    done: AtomicU64,
}

/// Ends slot 1, also if an assertion of slot 0 fails.
struct End<'a>(&'a AtomicU64);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(END, Relaxed);
    }
}

fn without<R>(part: Option<Part>, work: impl FnOnce() -> R) -> R {
    match part {
        Some(part) => part.without(work),
        None => work(),
    }
}

/// Slot 0 performs an operation, and before each step in `at` it awaits an operation of slot 1, in turn those in
/// `other`. They meet by relaxed accesses, so only the object orders what they see.
fn execute<S: Subject>(part: Option<Part>, one: Operation, other: [Operation; 2], at: &[u64]) -> Answer {
    let shared = Arc::new(Shared { object: S::new(), asked: AtomicU64::new(0), done: AtomicU64::new(0) });
    let serve = || {
        for number in 0.. {
            let asked = loop {
                let asked = shared.asked.load(Relaxed);
                if asked > number {
                    break asked;
                }
                thread::yield_now();
            };
            if asked == END {
                return;
            }
            shared.object.perform(&slot(1), other[number as usize % 2]);
            shared.done.store(number + 1, Relaxed);
        }
    };
    let ask = |(number, step): (usize, &u64)| {
        let (shared, number) = (Arc::clone(&shared), number as u64);
        let work = move || {
            shared.asked.store(number + 1, Relaxed);
            while shared.done.load(Relaxed) <= number {
                thread::yield_now();
            }
        };
        (*step, Box::new(work) as Box<dyn FnOnce()>)
    };
    thread::scope(|scope| {
        scope.spawn(|| without(part, serve));
        let _end = End(&shared.asked);
        let events = at.iter().enumerate().map(ask).collect();
        without(part, || steps::interrupted(events, || shared.object.perform(&slot(0), one)).0)
    })
}

/// A read is interrupted by one write before it wants a place or while it holds one, and by another one between the two
/// words.
fn buffer(part: Option<Part>, first: u64) {
    let answer = execute::<HoldingBuffer>(part, Read, [Write(1), Write(2)], &[first, 5]);
    assert!(answer != Answer::Torn, "not linearizable");
}

/// Each of the five attempts of a pop, of 33 steps, is interrupted by another pop after the load of the head.
fn queue(part: Option<Part>) {
    let attempts: [u64; 5] = core::array::from_fn(|attempt| 3 + 33 * attempt as u64 + 5);
    let answer = execute::<HelpingQueue>(part, Pop, [Pop, Pop], &attempts);
    assert!(answer == Answer::Value(None), "not linearizable");
}

#[test]
fn loads_are_in_one_order() {
    for _ in 0..EXECUTIONS / 10 {
        buffer(None, 1);
        buffer(None, 4);
        queue(None);
    }
}

#[test]
fn buffer_needs_its_order() {
    for (part, first) in [(Part::ReaderInOrder, 1), (Part::WriterInOrder, 4)] {
        let is_caught = (0..EXECUTIONS).any(|_| fails(|| buffer(Some(part), first)));
        assert!(is_caught, "the mutant without {part:?} is not caught");
    }
}

#[test]
fn construction_needs_its_order() {
    assert!((0..EXECUTIONS).any(|_| fails(|| queue(Some(Part::RequestInOrder)))), "the mutant is not caught");
}
