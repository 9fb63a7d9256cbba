//! Ceilings: the level while some are held, in every order and beside inheritance, and refusals.

use crate::support::*;
use lockwright::mutex::{
    Acquired, Condvar, Guard, Limit, LockError, Mutex, MutexProtocol, RawError, attributes, note_own,
};
use lockwright::section::Lazy;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

fn protects(ceiling: u8) -> Mutex<()> {
    Mutex::builder().protocol(MutexProtocol::Protect(ceiling)).build(())
}

fn mine() -> (i32, i32) {
    scheduling(tid())
}

const FIFO: i32 = libc::SCHED_FIFO;

/// Three ceilings, locked and unlocked in every order: the level is the highest one held, and in the end the thread's
/// own.
#[test]
fn the_level_is_the_highest_ceiling_held() {
    const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    let Some(stage) = Stage::set() else { return };
    stage
        .thread(10, || {
            for ceilings in [[20, 30, 40], [20, 20, 30], [10, 30, 30]] {
                let mutexes = ceilings.map(protects);
                for (taken, given) in ORDERS.iter().flat_map(|taken| ORDERS.iter().map(move |given| (taken, given))) {
                    let mut guards = [None, None, None];
                    let highest = |guards: &[Option<_>; 3]| {
                        let held = guards.iter().zip(ceilings).filter(|(guard, _)| guard.is_some());
                        held.map(|(_, ceiling)| i32::from(ceiling)).max().unwrap_or(10).max(10)
                    };
                    for &place in taken {
                        guards[place] = Some(mutexes[place].lock().expect("the mutex is free"));
                        assert_eq!(mine(), (FIFO, highest(&guards)), "taken {taken:?}, given {given:?}");
                    }
                    for &place in given {
                        guards[place] = None;
                        assert_eq!(mine(), (FIFO, highest(&guards)), "taken {taken:?}, given {given:?}");
                    }
                }
            }
        })
        .end();
}

/// Another managed thread of the processor holds the ceiling, but not the mutex.
#[test]
fn a_try_by_a_managed_thread_does_not_wait() {
    const HOLD: Duration = Duration::from_millis(300);
    let Some(stage) = Stage::set() else { return };
    let (cpu, managed, is_held) = (stage.cpu, Gate::default(), Arc::new(AtomicBool::new(false)));
    let other = stage.thread(20, {
        let (managed, is_held) = (managed.clone(), Arc::clone(&is_held));
        move || {
            // A thread that becomes managed later would wait for the ceiling here.
            let _managed = Lazy::manage(cpu).expect("the thread has a level");
            managed.open();
            while !is_held.load(Ordering::Relaxed) {
                std::thread::sleep(ms(1));
            }
            let (free, start) = (protects(50), Instant::now());
            let tried = matches!(free.try_lock(), Err(LockError::Busy));
            let took = start.elapsed();
            (tried, took, free.lock().is_ok())
        }
    });
    managed.pass();
    let holder = stage.thread(10, move || {
        let _managed = Lazy::manage(cpu).expect("the thread has a level");
        let held = protects(50);
        let _guard = held.lock().expect("the mutex is free");
        is_held.store(true, Ordering::Relaxed);
        let start = Instant::now();
        while start.elapsed() < HOLD {}
    });
    let (tried, took, locked) = other.end();
    holder.end();
    assert!(tried && took < HOLD / 2, "a try waited: {took:?}");
    assert!(locked, "a lock waits for the ceiling");
}

#[test]
fn an_ordinary_thread_returns_to_its_policy() {
    let Some(stage) = Stage::set() else { return };
    stage
        .thread(10, || {
            for policy in [libc::SCHED_OTHER, libc::SCHED_BATCH, libc::SCHED_OTHER | libc::SCHED_RESET_ON_FORK] {
                let param = libc::sched_param { sched_priority: 0 };
                // SAFETY: `param` is valid for reading.
                assert_eq!(unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const param) }, 0);
                let before = mine();
                let (low, high) = (protects(20), protects(30));
                let outer = low.lock().expect("the mutex is free");
                assert_eq!(mine().1, 20);
                let inner = high.lock().expect("the mutex is free");
                drop(outer);
                assert_eq!(mine().1, 30);
                drop(inner);
                assert_eq!(mine(), before);
            }
        })
        .end();
}

#[test]
fn a_thread_above_the_ceiling_is_refused() {
    let Some(stage) = Stage::set() else { return };
    stage
        .thread(30, || {
            let (low, high) = (protects(29), protects(40));
            for _ in 0..3 {
                assert!(matches!(low.lock(), Err(LockError::PriorityAboveCeiling)));
                assert!(matches!(low.try_lock(), Err(LockError::PriorityAboveCeiling)));
                assert_eq!(mine(), (FIFO, 30));
                let guard = high.lock().expect("the mutex is free");
                assert!(
                    matches!(low.lock(), Err(LockError::PriorityAboveCeiling)),
                    "the thread's own level is above the ceiling"
                );
                assert_eq!(mine(), (FIFO, 40));
                drop(guard);
                assert_eq!(mine(), (FIFO, 30));
                assert_eq!(low.inside().owner(), 0);
            }
            // Raised by another ceiling, the thread may have a lower level of its own.
            set_fifo(tid(), 10);
            let outer = high.lock().expect("the mutex is free");
            let inner = low.lock().expect("only the thread's own level counts");
            assert_eq!(mine(), (FIFO, 40));
            drop((outer, inner));
            assert_eq!(mine(), (FIFO, 10));
        })
        .end();
}

/// Without permission the lock fails and changes nothing.
#[test]
fn without_permission_the_lock_fails() {
    let Some(_stage) = Stage::set() else { return };
    let child = Child::start(|| {
        // SAFETY: the limit is valid for reading; the rest takes integers. Only this child is changed.
        unsafe {
            let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            if libc::setrlimit(libc::RLIMIT_RTPRIO, &raw const none) != 0 || libc::setuid(65_534) != 0 {
                return false;
            }
        }
        let mutex = protects(20);
        let is_refused = matches!(mutex.lock(), Err(LockError::Sys(error)) if error.is_permission());
        is_refused && mutex.inside().owner() == 0 && mine() == (libc::SCHED_OTHER, 0)
    });
    assert!(child.end());
}

/// A failed try and a passed deadline leave the level unchanged.
#[test]
fn a_failed_lock_leaves_the_level_unchanged() {
    let Some(stage) = Stage::set() else { return };
    let mutex = Arc::new(protects(30));
    let guard = mutex.lock().expect("the mutex is free");
    let ours = Arc::clone(&mutex);
    stage
        .thread(10, move || {
            assert!(matches!(ours.try_lock(), Err(LockError::Busy)));
            assert_eq!(mine(), (FIFO, 10));
            assert!(matches!(ours.lock_for(ms(5)), Err(LockError::TimedOut)));
            assert_eq!(mine(), (FIFO, 10));
            let other = protects(20);
            let outer = other.lock().expect("the mutex is free");
            assert!(matches!(ours.lock_for(ms(5)), Err(LockError::TimedOut)));
            assert_eq!(mine(), (FIFO, 20));
            drop(outer);
            assert_eq!(mine(), (FIFO, 10));
        })
        .end();
    drop(guard);
}

/// A ceiling inside inheritance and inheritance inside a ceiling: the effective level is the highest of all, in any
/// order of unlocks.
#[test]
fn ceilings_and_inheritance_nest() {
    let Some(stage) = Stage::set() else { return };
    for (inherits_first, given_first) in [(false, false), (false, true), (true, false), (true, true)] {
        let (inherits, ceiling) = (Arc::new(Mutex::new(())), Arc::new(protects(30)));
        let gates = [Gate::default(), Gate::default(), Gate::default()];
        let owner = stage.thread(10, {
            let (inherits, ceiling, gates) = (Arc::clone(&inherits), Arc::clone(&ceiling), gates.clone());
            move || {
                let (mut a, mut b) = (None, None);
                for step in [inherits_first, !inherits_first] {
                    if step {
                        a = Some(inherits.lock().expect("the mutex is free"));
                    } else {
                        b = Some(ceiling.lock().expect("the mutex is free"));
                    }
                }
                gates[0].pass();
                if given_first {
                    drop(a.take());
                } else {
                    drop(b.take());
                }
                gates[1].pass();
                drop((a.take(), b.take()));
                gates[2].pass();
            }
        });
        until("the owner holds both", || {
            inherits.inside().owner() == owner.tid && ceiling.inside().owner() == owner.tid
        });
        assert_eq!(level(owner.tid), 30, "the ceiling");
        let waiter = {
            let ours = Arc::clone(&inherits);
            stage.thread(40, move || drop(ours.lock().expect("the lock succeeds")))
        };
        until_waiting(waiter.tid, inherits.inside());
        assert_eq!(level(owner.tid), 40, "the waiter's level");
        set_fifo(waiter.tid, 20);
        assert_eq!(level(owner.tid), 30, "the ceiling again");
        assert_eq!(scheduling(owner.tid), (FIFO, 30));
        gates[0].open();
        if given_first {
            waiter.end();
            assert_eq!(level(owner.tid), 30, "the ceiling is still held");
            gates[1].open();
        } else {
            until("the mutex with the ceiling is unlocked", || ceiling.inside().owner() == 0);
            until("only the lent level is left", || level(owner.tid) == 20);
            gates[1].open();
            waiter.end();
        }
        until("everything is unlocked", || level(owner.tid) == 10);
        assert_eq!(scheduling(owner.tid), (FIFO, 10));
        gates[2].open();
        owner.end();
    }
}

/// A waiter that holds a ceiling lends the ceiling's level.
#[test]
fn a_ceiling_is_lent_on() {
    let Some(stage) = Stage::set() else { return };
    let inherits = Arc::new(Mutex::new(()));
    let gate = Gate::default();
    let owner = stage.thread(10, {
        let (inherits, gate) = (Arc::clone(&inherits), gate.clone());
        move || {
            let _guard = inherits.lock().expect("the mutex is free");
            gate.pass();
        }
    });
    until("the owner holds the mutex", || inherits.inside().owner() == owner.tid);
    let waiter = stage.thread(20, {
        let inherits = Arc::clone(&inherits);
        move || {
            let ceiling = protects(50);
            let _outer = ceiling.lock().expect("the mutex is free");
            drop(inherits.lock().expect("the lock succeeds"));
        }
    });
    until_waiting(waiter.tid, inherits.inside());
    assert_eq!(level(owner.tid), 50);
    gate.open();
    owner.end();
    waiter.end();
}

#[test]
fn a_level_noted_under_a_ceiling_applies_after_it() {
    let Some(stage) = Stage::set() else { return };
    stage
        .thread(10, || {
            assert!(!note_own(12), "no ceiling is held");
            let mutex = protects(30);
            let guard = mutex.lock().expect("the mutex is free");
            assert!(note_own(15));
            assert_eq!(mine(), (FIFO, 30));
            drop(guard);
            assert_eq!(mine(), (FIFO, 15));
        })
        .end();
}

/// A waiter of a condition variable has its own level while it waits. If that level rose above the ceiling meanwhile,
/// the wait returns an error at once, although another thread holds the mutex, and the mutex goes to the next waiter.
#[test]
fn a_waiter_that_rises_above_the_ceiling_waits_for_no_other() {
    let Some(stage) = Stage::set() else { return };
    for unlock in UNLOCKS {
        let kind = Mutex::builder().protocol(MutexProtocol::Protect(30)).unlock(unlock);
        let (mutex, condvar) = (Arc::new(kind.build(())), Arc::new(Condvar::new()));
        let waiter = stage.thread(10, {
            let (mutex, condvar) = (Arc::clone(&mutex), Arc::clone(&condvar));
            move || {
                let guard = mutex.lock().expect("the mutex is free");
                assert!(matches!(condvar.wait(guard), Err(LockError::PriorityAboveCeiling)));
                scheduling(tid())
            }
        });
        until_waiting_at(waiter.tid, &*condvar);
        assert_eq!(scheduling(waiter.tid), (FIFO, 10));
        let guard = mutex.lock().expect("the mutex is free");
        let next = stage.thread(9, {
            let mutex = Arc::clone(&mutex);
            move || drop(mutex.lock().expect("the lock succeeds"))
        });
        until_waiting(next.tid, mutex.inside());
        set_fifo(waiter.tid, 40);
        condvar.signal();
        assert_eq!(waiter.end(), (FIFO, 40));
        drop(guard);
        next.end();
        assert!(mutex.lock_for(ms(5_000)).is_ok(), "{unlock:?}");
    }
}

/// A thread at this level waits for the condition, with a mutex of this ceiling.
fn waits_under_a_ceiling(stage: &Stage, is_managed: bool) -> (Arc<Mutex<()>>, Arc<Condvar>, Player<()>) {
    let (mutex, condvar, cpu) = (Arc::new(protects(50)), Arc::new(Condvar::new()), stage.cpu);
    let waiter = stage.thread(10, {
        let (mutex, condvar) = (Arc::clone(&mutex), Arc::clone(&condvar));
        move || {
            let _managed = is_managed.then(|| Lazy::manage(cpu).expect("the thread has a level"));
            let guard = mutex.lock().expect("the mutex is free");
            drop(condvar.wait(guard).expect("the wait succeeds"));
        }
    });
    until_waiting_at(waiter.tid, &*condvar);
    (mutex, condvar, waiter)
}

/// The owner signals and locks the mutex again before the waiter has executed. If the waiter owned the mutex already,
/// each would wait for the other: for the mutex, and for the ceiling of the processor.
#[test]
fn a_managed_owner_signals_and_locks_again() {
    let Some(stage) = Stage::set() else { return };
    let (mutex, condvar, waiter) = waits_under_a_ceiling(&stage, true);
    let cpu = stage.cpu;
    let owner = stage.thread(20, move || {
        let _managed = Lazy::manage(cpu).expect("the thread has a level");
        for broadcasts in [false, true] {
            let guard = mutex.lock_for(ms(2_000)).expect("the mutex is free");
            if broadcasts {
                condvar.broadcast();
            } else {
                condvar.signal();
            }
            drop(guard);
        }
        mutex.lock_for(ms(2_000)).is_ok()
    });
    assert!(owner.end(), "the waiter owned the mutex and could not rise");
    waiter.end();
}

/// The same without managed threads: a thread between the two must not delay the more urgent one.
#[test]
fn an_owner_that_signals_and_locks_again_waits_for_no_lower_thread() {
    let Some(stage) = Stage::set() else { return };
    let (mutex, condvar, waiter) = waits_under_a_ceiling(&stage, false);
    let (gate, is_over) = (Gate::default(), Arc::new(AtomicBool::new(false)));
    let between = stage.thread(30, {
        let (gate, is_over) = (gate.clone(), Arc::clone(&is_over));
        move || {
            gate.pass();
            spin(ms(200));
            is_over.store(true, Ordering::Relaxed);
        }
    });
    let owner = stage.thread(40, move || {
        let guard = mutex.lock().expect("the mutex is free");
        condvar.signal();
        gate.open();
        // The thread in between becomes ready.
        spin(ms(50));
        drop(guard);
        drop(mutex.lock().expect("the lock succeeds"));
        is_over.load(Ordering::Relaxed)
    });
    assert!(!owner.end(), "a thread of a lower level delayed the owner");
    between.end();
    waiter.end();
}

/// The ceiling changes while a thread waits that rose to the previous one. Inside the section the thread has the new
/// ceiling, afterwards its own level.
#[test]
fn a_waiter_gets_the_new_ceiling_after_a_change() {
    let Some(stage) = Stage::set() else { return };
    let before = mine();
    for (unlock, robust) in UNLOCKS.into_iter().flat_map(|unlock| [(unlock, false), (unlock, true)]) {
        for ceiling in [20, 7] {
            let kind = Mutex::builder().protocol(MutexProtocol::Protect(10)).unlock(unlock).robustly(robust);
            let mutex = Arc::new(kind.build(()));
            let guard = mutex.lock().expect("the mutex is free");
            let waiter = stage.thread(5, {
                let mutex = Arc::clone(&mutex);
                move || {
                    let guard = mutex.lock().expect("the lock succeeds");
                    let inside = mine();
                    drop(guard);
                    (inside, mine())
                }
            });
            until_waiting(waiter.tid, mutex.inside());
            assert_eq!(scheduling(waiter.tid), (FIFO, 10));
            assert_eq!(mutex.inside().set_ceiling(ceiling), Ok(10), "{kind:?}");
            assert_eq!(mine().1, i32::from(ceiling), "the owner's level: {kind:?}");
            drop(guard);
            assert_eq!(waiter.end(), ((FIFO, i32::from(ceiling)), (FIFO, 5)), "{kind:?}");
            assert_eq!(mine(), before, "{kind:?}");
        }
    }
}

/// The ceiling falls below a waiter. The waiter is refused at its own level, and the waiter behind it is next.
#[test]
fn a_waiter_above_a_lowered_ceiling_is_refused() {
    let Some(stage) = Stage::set() else { return };
    for (unlock, robust) in UNLOCKS.into_iter().flat_map(|unlock| [(unlock, false), (unlock, true)]) {
        let kind = Mutex::builder().protocol(MutexProtocol::Protect(10)).unlock(unlock).robustly(robust);
        let mutex = Arc::new(kind.build(()));
        let guard = mutex.lock().expect("the mutex is free");
        let waiters = [8, 5].map(|own| {
            let ours = Arc::clone(&mutex);
            let waiter = stage.thread(own, move || {
                let is_taken = ours.lock().is_ok();
                (is_taken, mine())
            });
            until_waiting(waiter.tid, mutex.inside());
            waiter
        });
        assert_eq!(mutex.inside().set_ceiling(7), Ok(10), "{kind:?}");
        drop(guard);
        assert_eq!(waiters.map(Player::end), [(false, (FIFO, 8)), (true, (FIFO, 5))], "{kind:?}");
        assert!(mutex.lock_for(ms(5_000)).is_ok(), "{kind:?}");
    }
}

/// A waiter of a condition variable comes back above the ceiling, to a mutex whose owner ended. It is refused, and the
/// next owner is told of the death.
#[test]
fn a_refusal_after_a_wait_does_not_hide_a_death() {
    let Some(stage) = Stage::set() else { return };
    for unlock in UNLOCKS {
        for (has_signalled, is_followed) in [(false, false), (true, false), (true, true)] {
            let kind = Mutex::builder().protocol(MutexProtocol::Protect(10)).unlock(unlock).robustly(true);
            let (mutex, condvar) = (Arc::new(kind.build(())), Arc::new(Condvar::new()));
            let waiter = stage.thread(5, {
                let (mutex, condvar) = (Arc::clone(&mutex), Arc::clone(&condvar));
                move || {
                    let guard = mutex.lock().expect("the mutex is free");
                    assert!(matches!(condvar.wait(guard), Err(LockError::PriorityAboveCeiling)), "{kind:?}");
                    mine()
                }
            });
            until_waiting_at(waiter.tid, &*condvar);
            set_fifo(waiter.tid, 20);
            let ends = Gate::default();
            let owner = Player::enter(None, {
                let (mutex, condvar, ends) = (Arc::clone(&mutex), Arc::clone(&condvar), ends.clone());
                move || {
                    std::mem::forget(mutex.lock().expect("the mutex is free"));
                    if has_signalled {
                        condvar.signal();
                    }
                    ends.pass();
                }
            });
            until("the owner holds the mutex", || mutex.inside().owner() == owner.tid);
            let follower = is_followed.then(|| {
                let ours = Arc::clone(&mutex);
                let follower = stage.thread(4, move || match ours.lock() {
                    Err(LockError::OwnerDied(guard)) => Guard::make_consistent(&guard),
                    other => panic!("{kind:?}: {other:?}"),
                });
                until_waiting(follower.tid, mutex.inside());
                follower
            });
            ends.open();
            owner.end();
            if !has_signalled {
                condvar.signal();
            }
            assert_eq!(waiter.end(), (FIFO, 20), "{kind:?}");
            match follower {
                Some(follower) => follower.end(),
                None => match mutex.lock_for(ms(5_000)) {
                    Err(LockError::OwnerDied(guard)) => Guard::make_consistent(&guard),
                    other => panic!("{kind:?}: {other:?}"),
                },
            }
            assert!(mutex.lock_for(ms(5_000)).is_ok(), "{kind:?}");
        }
    }
}

/// The ceiling changes between the moment a thread reads it, to rise, and the moment it owns the mutex. Inside it has
/// the ceiling in force, afterwards its own level.
#[test]
fn a_lock_during_a_change_of_the_ceiling_gets_the_one_in_force() {
    const CEILINGS: [u8; 3] = [40, 20, 30];
    /// The locks of each thread that must find another ceiling than before.
    const CHANGES: u32 = 300;
    let Some(stage) = Stage::set() else { return };
    for (family, changes_inside) in [(0, true), (0, false), (attributes::SERIAL, true), (attributes::RECURSIVE, true)] {
        let mutex = Arc::new(raw_mutex(attributes::PROTECT | family, CEILINGS[0]));
        let (over, end) = (Gate::default(), Instant::now() + scaled(ms(2_000)));
        let changer = Player::enter(None, {
            let (mutex, over) = (Arc::clone(&mutex), over.clone());
            move || {
                // Under a higher ceiling its changes need no system calls, so many of them happen between two system
                // calls of the other thread.
                let above = protects(50);
                while !over.is_open() && Instant::now() < end {
                    let _outer = above.lock().expect("the mutex is free");
                    for ceiling in CEILINGS.into_iter().cycle().take(200) {
                        if changes_inside {
                            mutex.lock(Limit::Never).expect("the lock succeeds");
                            mutex.set_ceiling(ceiling).expect("the owner may change the ceiling");
                            mutex.unlock().expect("the caller holds it");
                        } else {
                            mutex.set_ceiling(ceiling).expect("any thread may change the ceiling");
                        }
                        spin(Duration::from_nanos(300));
                    }
                }
            }
        });
        let takers = [5, 6].map(|own| {
            let mutex = Arc::clone(&mutex);
            stage.thread(own, move || {
                let mut changes = 0;
                while changes < CHANGES && Instant::now() < end {
                    let before = mutex.ceiling();
                    let limit = if changes % 2 == 0 { Limit::Now } else { Limit::Never };
                    match mutex.lock(limit) {
                        Ok(Acquired::Clean) => {}
                        Err(RawError::Busy) => continue,
                        other => panic!("{family:#x}: {other:?}"),
                    }
                    // No thread changes the ceiling now.
                    let ceiling = mutex.ceiling();
                    assert_eq!(mine(), (FIFO, i32::from(ceiling)), "{family:#x}: inside; {before} before");
                    mutex.unlock().expect("the caller holds it");
                    assert_eq!(
                        mine(),
                        (FIFO, i32::from(own)),
                        "{family:#x}: afterwards; {ceiling} inside, {before} before"
                    );
                    changes += u32::from(ceiling != before);
                }
                changes
            })
        });
        let changes = takers.map(Player::end);
        over.open();
        changer.end();
        // On one processor no change can happen in between.
        assert!(
            cpus().len() == 1 || changes.iter().all(|&changes| changes > 0),
            "{family:#x}: no change happened in between: {changes:?}"
        );
    }
}
