//! Every kind of mutex excludes, supports tries and deadlines, and refuses misuse.

use crate::support::*;
use lockwright::mutex::{Acquired, Deadline, Limit, LockError, Mutex, RawError, attributes};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{scope, spawn};
use std::time::{Duration, Instant};

/// Increments in two steps, sometimes with a pause in between: without exclusion some increments get lost.
fn increment(count: &mut u64) {
    let before = *std::hint::black_box(&*count);
    if before.is_multiple_of(32) {
        std::thread::yield_now();
    }
    *count = before + 1;
}

#[test]
fn every_kind_counts_exactly() {
    const THREADS: u64 = 4;
    const ROUNDS: u64 = 150;
    let Some(_stage) = Stage::set() else { return };
    for kind in kinds() {
        let mutex = Arc::new(kind.build(0_u64));
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let mutex = Arc::clone(&mutex);
                spawn(move || {
                    let mut chance = Chance::new(thread + 1);
                    for _ in 0..ROUNDS {
                        match chance.below(4) {
                            0 => {
                                // BOUND: until the other threads are done; then the mutex is free.
                                while mutex.try_lock().map(|mut guard| increment(&mut guard)).is_err() {
                                    std::thread::yield_now();
                                }
                            }
                            1 => increment(&mut mutex.lock_for(ms(10_000)).expect("the lock succeeds in time")),
                            _ => increment(&mut mutex.lock().expect("the lock succeeds")),
                        }
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().expect("the thread does not panic"));
        assert_eq!(*mutex.lock().expect("the lock succeeds"), THREADS * ROUNDS, "{kind:?}");
    }
}

/// Deadlines pass and signals arrive while other threads unlock: no waiter is lost, and no two threads are inside.
#[test]
fn deadlines_and_signals_race_with_grants() {
    let Some(_stage) = Stage::set() else { return };
    let_interrupt(libc::SIGUSR2);
    for kind in kinds() {
        let mutex = kind.build(0_u64);
        let (taken, late) = (AtomicU64::new(0), AtomicU64::new(0));
        let until = Instant::now() + ms(25);
        scope(|scope| {
            let mut ids = Vec::new();
            for thread in 0..3_u64 {
                let (mutex, taken, late) = (&mutex, &taken, &late);
                let (send, receive) = std::sync::mpsc::channel();
                scope.spawn(move || {
                    // SAFETY: the call takes no arguments and cannot fail.
                    send.send(unsafe { libc::pthread_self() }).expect("the test waits");
                    let mut chance = Chance::new(thread + 7);
                    // On a busy machine, the thread may begin after `until`. It locks once without a deadline in any
                    // case.
                    let mut is_first = true;
                    while is_first || Instant::now() < until {
                        let result = match chance.below(3) {
                            _ if is_first => mutex.lock(),
                            0 => mutex.lock(),
                            _ => mutex.lock_for(Duration::from_micros(chance.below(120))),
                        };
                        is_first = false;
                        match result {
                            Ok(mut guard) => {
                                increment(&mut guard);
                                if chance.below(4) == 0 {
                                    std::thread::sleep(Duration::from_micros(chance.below(60)));
                                }
                                taken.fetch_add(1, Ordering::Relaxed);
                            }
                            Err(LockError::TimedOut) => _ = late.fetch_add(1, Ordering::Relaxed),
                            Err(error) => panic!("{kind:?}: {error}"),
                        }
                    }
                    // The test sends signals until all threads are done, so this one stays until then.
                    while Instant::now() < until + ms(10) {
                        std::thread::sleep(ms(1));
                    }
                });
                ids.push(receive.recv().expect("the thread begins"));
            }
            while Instant::now() < until {
                for &id in &ids {
                    // SAFETY: the thread stays for 10 ms after `until`, so its id is valid.
                    unsafe { libc::pthread_kill(id, libc::SIGUSR2) };
                }
                std::thread::sleep(Duration::from_micros(100));
            }
        });
        assert_eq!(*mutex.lock().expect("the lock succeeds"), taken.load(Ordering::Relaxed), "{kind:?}");
        assert!(taken.load(Ordering::Relaxed) > 0, "{kind:?}");
    }
}

#[test]
fn tries_and_deadlines_return_their_errors() {
    let Some(_stage) = Stage::set() else { return };
    for kind in kinds() {
        let mutex = kind.build(());
        let guard = mutex.lock().expect("the lock succeeds");
        scope(|scope| {
            scope.spawn(|| {
                assert!(matches!(mutex.try_lock(), Err(LockError::Busy)), "{kind:?}");
                let start = Instant::now();
                assert!(matches!(mutex.lock_for(ms(5)), Err(LockError::TimedOut)), "{kind:?}");
                assert!(start.elapsed() >= ms(5), "{kind:?}");
                let past = Deadline { clock: lockwright::mutex::Clock::Realtime, at_ns: 1 };
                assert!(matches!(mutex.lock_until(past), Err(LockError::TimedOut)), "{kind:?}");
            });
        });
        assert!(matches!(mutex.try_lock(), Err(LockError::Busy)), "the caller's own mutex: {kind:?}");
        assert!(matches!(mutex.lock(), Err(LockError::Deadlock { .. })), "the caller's own mutex: {kind:?}");
        drop(guard);
        let past = Deadline { clock: lockwright::mutex::Clock::Monotonic, at_ns: 1 };
        assert!(mutex.lock_until(past).is_ok(), "a free mutex is locked: {kind:?}");
        assert!(mutex.try_lock().is_ok(), "{kind:?}");
    }
}

/// A waiter that timed out leaves nothing behind, neither a raised level nor a locked mutex.
#[test]
fn a_deadline_by_the_time_of_day_passes() {
    let Some(_stage) = Stage::set() else { return };
    for kind in kinds() {
        let mutex = kind.build(());
        let _guard = mutex.lock().expect("the lock succeeds");
        scope(|scope| {
            scope.spawn(|| {
                let now = std::time::UNIX_EPOCH.elapsed().expect("after 1970");
                let at_ns = (now + ms(3)).as_nanos() as u64;
                let until = Deadline { clock: lockwright::mutex::Clock::Realtime, at_ns };
                let before = scheduling(tid());
                assert!(matches!(mutex.lock_until(until), Err(LockError::TimedOut)), "{kind:?}");
                assert!(std::time::UNIX_EPOCH.elapsed().expect("after 1970") >= now + ms(3), "{kind:?}");
                assert_eq!(scheduling(tid()), before, "{kind:?}");
            });
        });
    }
}

const FAMILIES: [u32; 8] = [
    0,
    attributes::INHERIT,
    attributes::PROTECT,
    attributes::ROBUST,
    attributes::ROBUST | attributes::INHERIT,
    attributes::ROBUST | attributes::PROTECT,
    attributes::INHERIT | attributes::KERNEL_OWNED,
    attributes::SERIAL | attributes::SHARED,
];

#[test]
fn a_recursive_mutex_is_unlocked_as_often_as_it_was_locked() {
    let Some(_stage) = Stage::set() else { return };
    for family in FAMILIES {
        let mutex = raw_mutex(family | attributes::RECURSIVE, 60);
        let limits = [Limit::Never, Limit::Now, Limit::At(Deadline::after(ms(5)))];
        for limit in limits {
            assert_eq!(mutex.lock(limit), Ok(Acquired::Clean), "{family:#x}");
        }
        for left in (0..limits.len()).rev() {
            let elsewhere = scope(|scope| {
                scope
                    .spawn(|| {
                        assert_eq!(mutex.unlock(), Err(RawError::NotOwner), "{family:#x}");
                        mutex.lock(Limit::Now)
                    })
                    .join()
                    .expect("the thread does not panic")
            });
            assert_eq!(elsewhere, Err(RawError::Busy), "{family:#x}");
            assert_eq!(mutex.unlock(), Ok(()), "{family:#x}, {left} left");
        }
        assert_eq!(mutex.unlock(), Err(RawError::NotOwner), "{family:#x}");
        assert_eq!(mutex.owner(), 0);
    }
}

#[test]
fn misuse_returns_errors() {
    let Some(_stage) = Stage::set() else { return };
    for family in FAMILIES {
        let mutex = raw_mutex(family | attributes::ERROR_CHECK, 60);
        assert_eq!(mutex.unlock(), Err(RawError::NotOwner), "{family:#x}");
        assert!(matches!(mutex.make_consistent(), Err(RawError::Inapplicable)), "{family:#x}");
        assert_eq!(mutex.lock(Limit::Never), Ok(Acquired::Clean));
        assert!(mutex.is_mine());
        assert!(matches!(mutex.lock(Limit::Never), Err(RawError::Deadlock(_))), "{family:#x}");
        assert!(matches!(mutex.lock(Limit::At(Deadline::after(ms(1)))), Err(RawError::Deadlock(_))), "{family:#x}");
        assert_eq!(mutex.lock(Limit::Now), Err(RawError::Busy), "{family:#x}");
        let elsewhere = scope(|scope| scope.spawn(|| mutex.unlock()).join().expect("the thread does not panic"));
        assert_eq!(elsewhere, Err(RawError::NotOwner), "{family:#x}");
        assert!(matches!(mutex.make_consistent(), Err(RawError::Inapplicable)), "the mutex is consistent: {family:#x}");
        assert_eq!(mutex.unlock(), Ok(()), "{family:#x}");
    }
}

/// The last user may free the memory right after its unlock, while the previous owner is still inside its own unlock.
#[test]
fn memory_is_not_touched_after_the_unlock() {
    let Some(_stage) = Stage::set() else { return };
    for kind in kinds().into_iter().filter(|kind| !format!("{kind:?}").contains("shared: true")) {
        for round in 0..60 {
            let shared = Shared::new(kind.build(()));
            let mutex = shared.0;
            scope(|scope| {
                let guard = mutex.lock().expect("the lock succeeds");
                let other = scope.spawn(move || {
                    if round % 2 == 0 {
                        std::thread::yield_now();
                    }
                    drop(mutex.lock().expect("the lock succeeds"));
                    // Unmaps the memory.
                    drop(shared);
                });
                if round % 3 == 0 {
                    spin(Duration::from_micros(50));
                }
                drop(guard);
                other.join().expect("the thread does not panic");
            });
        }
    }
}

/// The value remains after a panic.
#[test]
fn a_panic_unlocks() {
    let Some(_stage) = Stage::set() else { return };
    for kind in kinds() {
        let mutex = kind.build(1);
        scope(|scope| {
            let panicked = scope.spawn(|| {
                let _guard = mutex.lock();
                std::panic::resume_unwind(Box::new("a deliberate panic inside a section"));
            });
            assert!(panicked.join().is_err());
        });
        assert_eq!(*mutex.try_lock().expect("the mutex is free again"), 1, "{kind:?}");
    }
    assert_eq!(Mutex::new(3).into_inner(), 3);
}
