//! Threads and processes that are killed, or stop for ever, in the middle of a section do not affect others.

use crate::support::{Chance, Child, Shared, Stage};
use lockwright::ics::{Commit, Ics, Locked, Var, Word, Writer};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const WORDS: usize = 5;
type Object = Ics<[Word; WORDS], 3, WORDS>;

/// Adds one to every word, so that all words are always equal.
fn add<C: Commit>(slot: &mut Writer<'_, [Word; WORDS], 3, WORDS, C>) {
    let done = slot.update(|section| {
        let first: u64 = section.read(Var::new(0))?;
        for word in 0..WORDS {
            let value: u64 = section.read(Var::new(word))?;
            assert_eq!(value, first, "an inconsistent state");
            section.write(Var::new(word), value + 1)?;
        }
        Ok(())
    });
    assert_eq!(done, Ok(()));
}

fn all_same(ics: &Object) -> u64 {
    let first = ics.query(|view| {
        let first: u64 = view.read(Var::new(0))?;
        for word in 1..WORDS {
            assert_eq!(view.read::<u64>(Var::new(word))?, first, "an inconsistent state");
        }
        Ok(first)
    });
    first.expect("the section does not stop")
}

struct Memory {
    ics: Object,
    /// The sections that a child has finished, as the child counts them.
    finished: AtomicU64,
}

/// Processes in shared memory are killed at any instant. The next one takes over the slot, and another one continues
/// all the while.
fn killings(children: usize) {
    let memory = Shared::new(Memory { ics: Ics::new([const { Word::new(0) }; WORDS]), finished: AtomicU64::new(0) });
    let mut chance = Chance::new(7);
    // SAFETY: no other thread in any process has this number.
    let mut mine = unsafe { memory.0.ics.shared_writer(0) }.expect("there are three slots");
    let (mut own, mut extra) = (0, 0);
    for _ in 0..children {
        let shared = memory.0;
        let child = Child::start(move || {
            // SAFETY: the previous child was killed and waited for.
            let mut slot = unsafe { shared.ics.shared_writer(1) }.expect("there are three slots");
            // BOUND: the child is killed.
            loop {
                add(&mut slot);
                shared.finished.fetch_add(1, Ordering::Release);
            }
        });
        let (start, until) = (Instant::now(), Duration::from_micros(500 + chance.below(3000)));
        while start.elapsed() < until {
            add(&mut mine);
            own += 1;
        }
        child.kill();
        child.end();
        // All sections that it counted are there, and at most one more: committed, and not yet counted when the child
        // was killed.
        let (sum, finished) = (all_same(&memory.0.ics), memory.0.finished.load(Ordering::Acquire));
        let more = sum.checked_sub(own + finished);
        assert!(more == Some(extra) || more == Some(extra + 1), "{sum} of {own} + {finished} + {extra}");
        extra = more.unwrap_or(extra);
    }
    // Another writer takes over the slot.
    // SAFETY: all children have ended.
    let mut slot = unsafe { memory.0.ics.shared_writer(1) }.expect("there are three slots");
    let before = all_same(&memory.0.ics);
    (0..100).for_each(|_| add(&mut slot));
    assert_eq!(all_same(&memory.0.ics), before + 100);
}

#[test]
fn killed_processes_do_not_affect_others() {
    killings(150);
}

#[test]
#[ignore = "a minute: cargo test --release -p lockwright --test ics killed -- --ignored"]
fn thousands_of_killed_processes_do_not_affect_others() {
    killings(10_000);
}

/// A thread stops in the middle of a section, and does not execute again before the end.
#[test]
fn a_thread_that_stops_in_a_section_does_not_affect_others() {
    let Some(stage) = Stage::set() else { return };
    let ics = Arc::new(Ics::<[Word; WORDS], 3, WORDS, Locked>::new([const { Word::new(0) }; WORDS]));
    let (stopped, goes_on) = (crate::support::Gate::default(), crate::support::Gate::default());
    let low = {
        let (ics, stopped, goes_on) = (Arc::clone(&ics), stopped.clone(), goes_on.clone());
        stage.thread(10, move || {
            let mut slot = ics.writer().expect("there are three slots");
            let mut attempts = 0;
            slot.update(|section| {
                attempts += 1;
                for word in 0..WORDS {
                    let value: u64 = section.read(Var::new(word))?;
                    section.write(Var::new(word), value + 1)?;
                }
                if attempts == 1 {
                    stopped.open();
                    goes_on.pass();
                }
                Ok(())
            })
            .expect("the section does not stop");
            attempts
        })
    };
    stopped.pass();
    let mut slot = ics.writer().expect("there are three slots");
    (0..1000).for_each(|_| add(&mut slot));
    assert_eq!((all_same(&ics), slot.stats().commits, slot.stats().restarts), (1000, 1000, 0));
    goes_on.open();
    assert_eq!(low.end(), 2, "one conflict and a second attempt");
    assert_eq!(all_same(&ics), 1001);
}
