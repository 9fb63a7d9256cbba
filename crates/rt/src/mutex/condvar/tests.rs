//! Cases with two threads at certain instructions, which a test from outside cannot bring about.

use super::*;
use crate::mutex::{Builder, Limit, Mutex, MutexProtocol, Unlock};
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

/// A cancelled thread that waits with a mutex of the C library ends its wait this way.
#[test]
fn a_wait_that_is_cancelled_leaves_no_level() {
    let thread = std::thread::spawn(|| {
        let param = libc::sched_param { sched_priority: 1 };
        // SAFETY: the parameter outlives the call.
        if unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const param) } != 0 {
            let required = std::env::var_os("LOCKWRIGHT_REQUIRE_RT").is_some();
            assert!(!required, "SCHED_FIFO is not permitted");
            return println!("skipped: SCHED_FIFO is not permitted");
        }
        let mutex = Mutex::builder().protocol(MutexProtocol::None).build_raw();
        let condvar = RawCondvar::new(false);
        let mut waiting = condvar.enlist_stranger();
        let _suspension = condvar.suspension(&mut waiting, &mutex, None);
        assert_eq!(condvar.watched.load(Ordering::Relaxed), 1);
        condvar.leave_stranger(waiting, None);
        assert_eq!(condvar.watched.load(Ordering::Relaxed), 0);
    });
    thread.join().expect("the thread does not panic");
}

/// A signaller counts its move before it moves waiters, both under one look. A thread that begins to wait in between
/// has read the old count, so it knows that it may be moved. A waiter that is not moved must not mistake another
/// waiter's hand-off for its own.
#[test]
fn a_waiter_that_comes_during_a_move_may_be_moved() {
    let mutex = Mutex::builder().protocol(MutexProtocol::None).unlock(Unlock::Serial).build_raw();
    let condvar = RawCondvar::new(false);
    let me = gettid();
    assert!(condvar.look.lock(me).is_ok());
    scope(|threads| {
        let waiter = threads.spawn(|| {
            mutex.lock(Limit::Never).expect("the mutex is free");
            // SAFETY: the waiter rejoins below, and the mutex is a local of this function, so it stays where it is.
            let waiting = unsafe { condvar.enlist(&mutex, true) }.expect("the caller holds it");
            let moves = waiting.moves;
            condvar.rejoin(waiting, &mutex, Suspended(Ended::Changed)).locked.expect("the lock succeeds");
            mutex.unlock().expect("the caller holds it");
            moves
        });
        until("the waiter waits for the look", || condvar.look.has_waiters());
        condvar.moves.fetch_add(1, Ordering::Relaxed);
        assert!(condvar.look.unlock(me).is_ok());
        assert_eq!(waiter.join().expect("the thread does not panic"), 0, "the waiter read the count before the move");
    });
}

/// An inheriting mutex and a condition variable with both sorts of waiters: one to which the kernel gives the mutex,
/// and one that holds another inheriting mutex.
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

    /// Starts a waiter, and returns once it waits.
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
                other.lock(Limit::Never).expect("the mutex is free");
            }
            self.mutex.lock(Limit::Never).expect("the lock succeeds");
            self.condvar.wait(&self.mutex, None).expect("the wait succeeds");
            self.mutex.unlock().expect("the caller holds it");
            if way == STRANGER {
                other.unlock().expect("the caller holds it");
            }
            self.back[way].store(true, Ordering::Relaxed);
        });
        until("the waiter is counted", || waiters() == before + WAITER);
        // The waiter suspends soon after it is counted.
        std::thread::sleep(Duration::from_millis(20));
        sleeper
    }

    fn is_back(&self) -> [bool; 2] {
        [GIVEN, STRANGER].map(|way| self.back[way].load(Ordering::Relaxed))
    }
}

/// Waiters may come between a signal's look at the queue and its system call: a signal still reaches one waiter, and a
/// broadcast reaches all.
#[test]
fn a_signal_reaches_a_waiter_despite_newcomers() {
    // The sort of the waiter that was there first, and what the signal saw then: (inherits, is mixed).
    for (first, seen) in [(STRANGER, (false, true)), (GIVEN, (true, false))] {
        for comes_first in [false, true] {
            for all in [false, true] {
                let what = format!("waiter {first} was seen, all {all}, the newcomer is first {comes_first}");
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
                    // The remaining waiters must return, or the test does not end.
                    until(&what, || {
                        hall.condvar.broadcast();
                        hall.is_back() == [true; 2]
                    });
                    sleepers.into_iter().for_each(|sleeper| sleeper.join().expect("the thread does not panic"));
                    assert!(reached, "{what}");
                });
            }
        }
    }
}
