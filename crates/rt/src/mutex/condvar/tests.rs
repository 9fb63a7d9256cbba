//! What a test from outside cannot bring about: two threads at certain instructions.

use super::*;
use crate::mutex::{Builder, Mutex, Protocol, Unlock};
use std::sync::atomic::AtomicBool;
use std::thread::{Scope as Threads, ScopedJoinHandle, scope};
use std::time::{Duration, Instant};

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(20), "not in time: {what}");
        std::thread::sleep(Duration::from_micros(50));
    }
}

/// A signal that moves waiters counts that before it moves them, in one look. Who comes in between, and waits for its turn to look, knows that it may be
/// moved: it has read the count before. A waiter that is not moved takes nothing that was handed to another, so it must not take itself for one.
#[test]
fn who_comes_while_others_are_moved_may_be_moved() {
    let mutex = Mutex::builder().protocol(Protocol::None).unlock(Unlock::Serial).build_raw();
    let condvar = RawCondvar::new(false);
    let me = gettid();
    assert!(condvar.look.lock(me).is_ok());
    scope(|threads| {
        let waiter = threads.spawn(|| {
            mutex.lock(Limit::Never).expect("free");
            // SAFETY: it rejoins below, and the mutex outlives it.
            let waiting = unsafe { condvar.enlist(&mutex, true) }.expect("its own");
            let moves = waiting.moves;
            condvar.rejoin(waiting, &mutex, Suspended(Ended::Changed)).expect("a lock");
            mutex.unlock().expect("its own");
            moves
        });
        until("it wants to look", || condvar.look.has_waiters());
        condvar.moves.fetch_add(1, Ordering::Relaxed);
        assert!(condvar.look.unlock(me).is_ok());
        assert_eq!(waiter.join().expect("a thread"), 0, "it was counted before that");
    });
}

/// A mutex that inherits, and waiters at one condition variable: those the kernel gives the mutex, and those that hold another one.
struct Hall {
    mutex: RawMutex,
    condvar: RawCondvar,
    back: [AtomicBool; 2],
}

const GIVEN: usize = 0;
const STRANGER: usize = 1;

impl Hall {
    fn new() -> Self {
        Self { mutex: Builder::new().build_raw(), condvar: RawCondvar::new(false), back: Default::default() }
    }

    /// Comes back when it waits.
    fn lie_down<'scope>(
        &'scope self,
        threads: &'scope Threads<'scope, '_>,
        way: usize,
    ) -> ScopedJoinHandle<'scope, ()> {
        let waiters = || self.condvar.waiters.load(Ordering::Relaxed);
        let before = waiters();
        let sleeper = threads.spawn(move || {
            let other = Builder::new().build_raw();
            if way == STRANGER {
                other.lock(Limit::Never).expect("free");
            }
            self.mutex.lock(Limit::Never).expect("a lock");
            self.condvar.wait(&self.mutex, None).expect("a wait");
            self.mutex.unlock().expect("its own");
            if way == STRANGER {
                other.unlock().expect("its own");
            }
            self.back[way].store(true, Ordering::Relaxed);
        });
        until("it is counted", || waiters() == before + WAITER);
        // Then it suspends.
        std::thread::sleep(Duration::from_millis(20));
        sleeper
    }

    fn is_back(&self) -> [bool; 2] {
        [GIVEN, STRANGER].map(|way| self.back[way].load(Ordering::Relaxed))
    }
}

/// Between a signal's look at the waiters and what it does others come: it reaches one all the same, and a broadcast all.
#[test]
fn a_signal_that_saw_less_than_there_is_reaches_somebody() {
    // What waited when it looked, as it saw that: (inherits, is mixed).
    for (first, seen) in [(STRANGER, (false, true)), (GIVEN, (true, false))] {
        for comes_first in [false, true] {
            for all in [false, true] {
                let what = format!("{first} waited, all {all}, who came is first {comes_first}");
                let hall = Hall::new();
                scope(|threads| {
                    let order = if comes_first { [1 - first, first] } else { [first, 1 - first] };
                    let sleepers = order.map(|way| hall.lie_down(threads, way));
                    hall.condvar.signals.fetch_add(1, Ordering::SeqCst);
                    hall.condvar.take_off_seen(all, seen.0, seen.1);
                    let wanted = if all { 2 } else { 1 };
                    let is_there = || hall.is_back().into_iter().filter(|back| *back).count() >= wanted;
                    let start = Instant::now();
                    while !is_there() && start.elapsed() < Duration::from_secs(2) {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                    let reached = is_there();
                    // Whoever is left must come back, or the test does not end.
                    until(&what, || {
                        hall.condvar.broadcast();
                        hall.is_back() == [true; 2]
                    });
                    sleepers.into_iter().for_each(|sleeper| sleeper.join().expect("a thread"));
                    assert!(reached, "{what}");
                });
            }
        }
    }
}
