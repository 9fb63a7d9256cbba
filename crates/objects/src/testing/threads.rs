//! Histories of threads: real ones, those of loom, and those of shuttle.

use super::history::{
    History,
    Operation::{self, Pop, Push, Read, Write},
};
use super::subjects::{
    HelpingHeap, HelpingQueue, HoldingBuffer, LargerHelpingHeap, LargerHelpingQueue, LargerRepeatingHeap, LongerQueue,
    RepeatingBuffer, RepeatingHeap, SmallQueue, Subject,
};
use super::{fails, slot};
use crate::mutation::Part;
use crate::sync::steps;
#[cfg(lockwright_loom)]
use loom::thread;
#[cfg(lockwright_shuttle)]
use shuttle::thread;
use std::sync::Arc;
#[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
use std::thread;
use std::vec::Vec;

/// Lets one thread execute each script after those of `first`, and checks the history.
fn execute<S: Subject>(first: &[Operation], scripts: &[&'static [Operation]]) {
    let shared = Arc::new((S::new(), History::default()));
    fn perform<S: Subject>(shared: &(S, History), thread: usize, operations: &[Operation]) {
        let slot = slot(thread);
        for operation in operations {
            shared.1.record(thread, *operation, || Some(steps::count(|| shared.0.perform(&slot, *operation))));
        }
    }
    perform(&shared, 0, first);
    let others: Vec<_> = scripts
        .iter()
        .copied()
        .enumerate()
        .skip(1)
        .map(|(index, script)| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || perform(&shared, index, script))
        })
        .collect();
    perform(&shared, 0, scripts[0]);
    others.into_iter().for_each(|other| other.join().expect("the thread ends"));
    shared.1.check(S::sequential(), S::bound, S::interferes);
}

#[cfg(lockwright_loom)]
fn explore(check: impl Fn() + Send + Sync + 'static) {
    explore_with(3, check);
}

#[cfg(lockwright_loom)]
fn explore_with(preemptions: usize, check: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.max_branches = 20_000;
    model.check(check);
}

#[cfg(lockwright_shuttle)]
fn explore(check: impl Fn() + Send + Sync + 'static) {
    let check = Arc::new(check);
    let again = Arc::clone(&check);
    shuttle::check_random(move || again(), 5_000);
    shuttle::check_pct(move || check(), 5_000, 3);
}

#[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
fn explore(check: impl Fn() + Send + Sync + 'static) {
    for _ in 0..if cfg!(miri) { 3 } else { 500 } {
        check();
    }
}

fn queue<S: Subject>() {
    if cfg!(any(lockwright_loom, miri)) {
        explore(|| execute::<S>(&[], &[&[Push(1), Pop], &[Push(2), Pop]]));
        explore(|| execute::<S>(&[Push(1), Push(2)], &[&[Pop, Push(3)], &[Pop, Push(4)]]));
        explore(|| execute::<S>(&[Push(1)], &[&[Push(2), Push(3)], &[Pop, Pop]]));
    } else {
        explore(|| {
            execute::<S>(
                &[Push(9)],
                &[
                    &[Push(1), Pop, Push(2), Pop],
                    &[Pop, Push(3), Push(4), Pop],
                    &[Push(5), Push(6), Pop, Pop],
                    &[Pop, Push(7), Pop, Push(8)],
                ],
            );
        });
    }
}

fn buffer<S: Subject>() {
    if cfg!(any(lockwright_loom, miri)) {
        explore(|| execute::<S>(&[], &[&[Write(1), Read], &[Write(2), Read]]));
        explore(|| execute::<S>(&[Write(1)], &[&[Read, Read], &[Write(2), Write(3)]]));
    } else {
        explore(|| {
            execute::<S>(
                &[Write(9)],
                &[
                    &[Write(1), Read, Write(2), Read],
                    &[Read, Read, Read, Write(3)],
                    &[Write(4), Write(5), Write(6), Read],
                    &[Read, Write(7), Write(8), Read],
                ],
            );
        });
    }
}

#[test]
fn lock_free_buffer() {
    buffer::<RepeatingBuffer>();
}

#[test]
fn wait_free_buffer() {
    buffer::<HoldingBuffer>();
}

#[cfg(any(lockwright_loom, lockwright_shuttle))]
#[test]
fn lock_free_buffer_needs_its_parts() {
    assert!(Part::Validation.without(|| fails(buffer::<RepeatingBuffer>)));
}

#[cfg(any(lockwright_loom, lockwright_shuttle))]
#[test]
fn wait_free_buffer_needs_its_parts() {
    assert!(Part::Holding.without(|| fails(buffer::<HoldingBuffer>)));
}

#[test]
fn lock_free_queue() {
    queue::<SmallQueue>();
    queue::<LongerQueue>();
}

/// Loom and shuttle execute all threads on the thread that removes the part.
#[cfg(any(lockwright_loom, lockwright_shuttle))]
#[test]
fn lock_free_queue_needs_its_parts() {
    assert!(Part::Exchange.without(|| fails(queue::<SmallQueue>)));
}

/// The constructed objects have many steps, so loom executes shorter scripts.
fn constructed<S: Subject>() {
    #[cfg(lockwright_loom)]
    {
        explore_with(2, || execute::<S>(&[], &[&[Push(1)], &[Push(2)]]));
        explore_with(2, || execute::<S>(&[Push(1)], &[&[Pop], &[Pop]]));
    }
    #[cfg(not(lockwright_loom))]
    queue::<S>();
}

/// The same on objects of two blocks, with values in both. One thread overwrites the table that it has replaced.
fn larger<S: Subject>() {
    #[cfg(lockwright_loom)]
    {
        explore_with(2, || execute::<S>(&[Push(3), Push(1)], &[&[Push(2)], &[Pop, Pop]]));
        explore_with(2, || execute::<S>(&[Push(3), Push(1), Push(4), Push(2)], &[&[Pop], &[Pop, Push(5)]]));
    }
    #[cfg(not(lockwright_loom))]
    queue::<S>();
}

#[test]
fn wait_free_queue() {
    constructed::<HelpingQueue>();
    larger::<LargerHelpingQueue>();
}

#[test]
fn lock_free_heap() {
    constructed::<RepeatingHeap>();
    larger::<LargerRepeatingHeap>();
}

#[test]
fn wait_free_heap() {
    constructed::<HelpingHeap>();
    larger::<LargerHelpingHeap>();
}

#[cfg(lockwright_loom)]
#[test]
fn construction_needs_its_exchange() {
    fn check<S: Subject>() {
        explore_with(2, || execute::<S>(&[Push(1)], &[&[Pop, Push(2)], &[Pop]]));
    }
    for check in [check::<RepeatingHeap>, check::<LargerRepeatingHeap>] {
        assert!(Part::Exchange.without(|| fails(check)), "the mutant is not caught");
    }
}

#[cfg(lockwright_loom)]
#[test]
fn construction_needs_its_validation() {
    // The pop of slot 1 also performs that of slot 0, whose turn it is, and the push then overwrites a table.
    fn check() {
        explore_with(3, || {
            execute::<LargerHelpingQueue>(&[Push(3), Push(1), Push(4), Push(2)], &[&[Pop], &[Pop, Push(5)]]);
        });
    }
    check();
    assert!(Part::Validation.without(|| fails(check)), "the mutant is not caught");
}

#[cfg(lockwright_shuttle)]
#[test]
fn construction_needs_its_parts() {
    for part in [Part::Exchange, Part::Validation] {
        for check in [queue::<RepeatingHeap>, queue::<LargerRepeatingHeap>] {
            assert!(part.without(|| fails(check)), "the mutant without {part:?} is not caught");
        }
    }
}
