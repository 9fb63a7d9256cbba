//! Counted mutexes: no section and no wait is missed, for every kind.

use crate::support::*;
use lockwright::mutex::{Attributes, Builder, Condvar, Guard, LockError, Mutex, MutexProtocol, RawError, RawMutex};
use lockwright::statistics::{Mutexes, count_mutexes};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::scope;

/// Every kind that may be counted.
fn counted() -> impl Iterator<Item = Builder> {
    count_mutexes();
    // Those that processes share are refused.
    kinds().into_iter().filter(|kind| !format!("{kind:?}").contains("shared: true")).map(|kind| kind.counted(true))
}

/// A mutex whose address no other one of this process has.
fn alone(kind: Builder) -> &'static Mutex<u64> {
    Box::leak(Box::new(kind.build(0)))
}

/// Sections, waits, and the sum of the distribution of waits.
fn counts(mutex: &Mutex<u64>) -> (u64, u64, u64) {
    let in_groups = mutex.wait_histogram().map(|(_, waits)| waits).sum();
    mutex.statistics().map_or((0, 0, in_groups), |seen| (seen.sections, seen.waits, in_groups))
}

#[test]
fn waits_and_their_threads_are_counted_under_contention() {
    let Some(_stage) = Stage::set() else { return };
    for kind in counted() {
        let mutex = alone(kind);
        assert_eq!(mutex.statistics(), None, "{kind:?}");
        let guard = mutex.lock().expect("it is free");
        // A wait that ends without the mutex, and an attempt that does not wait, are not counted.
        let refused = Player::enter(None, || {
            assert!(matches!(mutex.try_lock(), Err(LockError::Busy)));
            assert!(matches!(mutex.lock_for(ms(1)), Err(LockError::TimedOut)));
        });
        refused.end();
        assert_eq!(counts(mutex), (1, 0, 0), "{kind:?}");
        assert_eq!(mutex.statistics().map(|seen| (seen.waiting, seen.held.map(|held| held.0))), Some((0, Some(tid()))));
        let waiter = Player::enter(None, || drop(mutex.lock().expect("it becomes free")));
        // SAFETY: the raw mutex is only looked at.
        until_waiting(waiter.tid, unsafe { mutex.raw() });
        assert_eq!(mutex.statistics().map(|seen| seen.waiting), Some(1), "{kind:?}");
        std::thread::sleep(ms(2));
        drop(guard);
        let waiter_id = waiter.tid;
        waiter.end();
        drop(mutex.try_lock().expect("it is free"));
        assert_eq!(counts(mutex), (3, 1, 1), "{kind:?}");
        let seen = mutex.statistics().expect("it is counted");
        assert_eq!(seen.waiter.map(|thread| thread.id), Some(waiter_id), "{kind:?}");
        let holder = seen.holder.expect("a thread held it");
        let name = std::fs::read_to_string("/proc/thread-self/comm").expect("this thread has a name");
        assert_eq!((holder.id, holder.name().to_string()), (tid(), name.trim_end().to_owned()), "{kind:?}");
        let slept = lockwright::model::Duration::from_ms(2);
        assert!(seen.longest_wait >= slept && seen.longest_section >= slept, "{kind:?}: {seen:?}");
        assert_eq!(seen.total_wait, seen.longest_wait, "{kind:?}");
        assert_eq!((seen.longest_by.map(|thread| thread.id), seen.held, seen.waiting), (Some(tid()), None, 0));
        let longest = mutex.wait_histogram().last().expect("a wait").0;
        assert!(longest >= seen.longest_wait, "{longest} is the end of the group of {}", seen.longest_wait);
    }
}

/// A thread that suspended for the mutex has waited for it, also if the mutex was free when it came.
#[test]
fn no_lock_that_suspends_is_missed() {
    const ROUNDS: u64 = 400;
    let Some(_stage) = Stage::set() else { return };
    for kind in counted() {
        let (mutex, suspended) = (alone(kind), AtomicU64::new(0));
        let begin = std::sync::Barrier::new(3);
        scope(|scope| {
            for thread in 0..3 {
                let (begin, suspended) = (&begin, &suspended);
                scope.spawn(move || {
                    let mut chance = Chance::new(thread + 1);
                    begin.wait();
                    for _ in 0..ROUNDS {
                        let before = voluntary_switches();
                        let guard = mutex.lock().expect("no thread ends with it");
                        suspended.fetch_add(u64::from(voluntary_switches() > before), Ordering::Relaxed);
                        spin(std::time::Duration::from_micros(chance.below(20)));
                        if chance.below(64) == 0 {
                            std::thread::sleep(std::time::Duration::from_micros(100));
                        }
                        drop(guard);
                    }
                });
            }
        });
        let (sections, waits, _) = counts(mutex);
        let suspended = suspended.into_inner();
        assert!(sections == 3 * ROUNDS && suspended <= waits, "{kind:?}: {suspended} suspended, {waits} waits");
    }
}

/// How often the calling thread has suspended itself.
fn voluntary_switches() -> i64 {
    // SAFETY: a structure of integers may be all zeros.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes to `usage`, which is borrowed during the call.
    assert_eq!(unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) }, 0);
    usage.ru_nvcsw
}

/// A broadcast by a thread without the mutex wakes one waiter, which waits for the mutex, and moves the others to it.
#[test]
fn the_wait_of_a_waiter_that_was_woken_is_counted() {
    let Some(_stage) = Stage::set() else { return };
    count_mutexes();
    let (mutex, filled) = (alone(Mutex::builder().protocol(MutexProtocol::None).counted(true)), Condvar::new());
    scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut guard = mutex.lock().expect("it becomes free");
                while *guard == 0 {
                    guard = filled.wait(guard).expect("the wait succeeds");
                }
            });
        }
        until("both wait", || counts(mutex).0 == 2 && mutex.statistics().is_some_and(|seen| seen.held.is_none()));
        std::thread::sleep(ms(20));
        let waits = counts(mutex).1;
        let mut guard = mutex.lock().expect("it is free");
        *guard = 1;
        scope.spawn(|| filled.broadcast()).join().expect("it does not panic");
        until("the woken one waits", || mutex.statistics().is_some_and(|seen| seen.waiting == 1));
        std::thread::sleep(ms(50));
        drop(guard);
        until("both have had it", || counts(mutex).0 == 5);
        assert_eq!(counts(mutex).1, waits + 1);
    });
    let seen = mutex.statistics().expect("it is counted");
    assert!(seen.longest_wait >= lockwright::model::Duration::from_ms(50), "{seen:?}");
    assert_eq!(seen.holder.map(|holder| holder.id), Some(tid()));
}

/// Each thread counts its locks itself, and no count gets lost.
#[test]
fn every_section_of_several_threads_is_counted() {
    const THREADS: u64 = 4;
    const ROUNDS: u64 = 50;
    let Some(_stage) = Stage::set() else { return };
    for kind in counted() {
        let mutex = alone(kind);
        let locked = AtomicU64::new(0);
        scope(|scope| {
            for thread in 0..THREADS {
                let locked = &locked;
                scope.spawn(move || {
                    let mut chance = Chance::new(thread + 1);
                    for _ in 0..ROUNDS {
                        let guard = match chance.below(3) {
                            0 => mutex.try_lock(),
                            1 => mutex.lock_for(std::time::Duration::from_micros(chance.below(50))),
                            _ => mutex.lock(),
                        };
                        if let Ok(mut guard) = guard {
                            *guard += 1;
                            locked.fetch_add(1, Ordering::Relaxed);
                            if chance.below(8) == 0 {
                                std::thread::yield_now();
                            }
                        }
                    }
                });
            }
        });
        let (sections, waits, in_groups) = counts(mutex);
        assert_eq!(sections, locked.into_inner(), "{kind:?}");
        assert!(waits == in_groups && waits <= sections, "{kind:?}: {waits} waits, {in_groups} in groups");
        assert_eq!(mutex.statistics().map(|seen| (seen.waiting, seen.held)), Some((0, None)), "{kind:?}");
    }
}

#[test]
fn the_heir_of_an_owner_that_ended_is_counted() {
    let Some(_stage) = Stage::set() else { return };
    for kind in counted().filter(|kind| format!("{kind:?}").contains("robust: true")) {
        let mutex = alone(kind);
        Player::enter(None, || std::mem::forget(mutex.lock().expect("it is free"))).end();
        match mutex.lock() {
            Err(LockError::OwnerDied(guard)) => Guard::make_consistent(&guard),
            other => panic!("{kind:?}: {other:?}"),
        }
        assert_eq!(counts(mutex), (2, 0, 0), "{kind:?}");
        assert_eq!(mutex.statistics().map(|seen| seen.held), Some(None), "the dead owner holds it no longer: {kind:?}");
    }
}

#[test]
fn a_recursive_mutex_has_one_section_for_all_locks_of_its_owner() {
    let Some(_stage) = Stage::set() else { return };
    count_mutexes();
    // SAFETY: it is not robust, so it may be dropped in any state.
    let raw = unsafe { RawMutex::new(Attributes::RECURSIVE | Attributes::INHERIT | Attributes::COUNTED, 0) };
    let mutex: &RawMutex = Box::leak(Box::new(raw));
    let lock = || mutex.lock(lockwright::mutex::Limit::Never).expect("it is its own or free");
    lock();
    lock();
    assert_eq!(mutex.unlock(), Ok(()));
    assert_eq!(mutex.statistics().and_then(|seen| seen.held).map(|held| held.0), Some(tid()));
    assert_eq!(mutex.unlock(), Ok(()));
    assert_eq!(mutex.unlock(), Err(RawError::NotOwner));
    let seen = mutex.statistics().expect("it is counted");
    assert_eq!((seen.sections, seen.held), (1, None));
}

/// A wait for a condition ends one section, and the lock after it begins another one.
#[test]
fn a_wait_for_a_condition_divides_a_section() {
    let Some(_stage) = Stage::set() else { return };
    for kind in counted() {
        let (mutex, filled) = (alone(kind), Condvar::new());
        scope(|scope| {
            let waiter = scope.spawn(|| {
                let mut guard = mutex.lock().expect("it becomes free");
                while *guard == 0 {
                    guard = filled.wait(guard).expect("the wait succeeds");
                }
            });
            until("the waiter waits", || counts(mutex).0 == 1 && mutex.statistics().is_some_and(|s| s.held.is_none()));
            *mutex.lock().expect("it is free") = 1;
            filled.signal();
            waiter.join().expect("it does not panic");
        });
        let (sections, waits, in_groups) = counts(mutex);
        // A wait may end without a signal; then the waiter locks once more.
        assert!((3..=4).contains(&sections) && waits == in_groups, "{kind:?}: {sections} sections, {waits} waits");
        assert_eq!(mutex.statistics().map(|seen| (seen.waiting, seen.held)), Some((0, None)), "{kind:?}");
    }
}

#[test]
fn only_counted_mutexes_are_counted() {
    count_mutexes();
    let plain = alone(Mutex::builder());
    drop(plain.lock());
    assert_eq!((plain.statistics(), plain.wait_histogram().count()), (None, 0));
    let counted = alone(Mutex::builder().counted(true));
    drop(counted.lock());
    let all = Mutexes::of_process(std::process::id()).expect("it is this process").expect("it counts");
    let at = |mutex: &Mutex<u64>| std::ptr::from_ref(mutex).addr() as u64;
    let seen = |mutex| all.mutexes.iter().filter(|one| one.address == at(mutex)).count();
    assert_eq!((seen(counted), seen(plain)), (1, 0));
}

#[test]
fn a_child_process_counts_nothing() {
    count_mutexes();
    let mutex = alone(Mutex::builder().counted(true));
    drop(mutex.lock());
    let child = Child::start(|| mutex.lock().is_ok() && mutex.statistics().is_none());
    assert!(child.end());
    assert_eq!(counts(mutex), (1, 0, 0));
}

#[test]
#[should_panic(expected = "belongs to one process")]
fn a_mutex_that_processes_share_is_not_counted() {
    let _ = Mutex::builder().counted(true).shared(true).build(());
}
