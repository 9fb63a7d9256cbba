//! Owners that end while they hold mutexes: the next owner is told, can recover or give up, and no thread waits for
//! ever.

use crate::support::*;
use lockwright::mutex::{Acquired, Builder, Guard, Limit, LockError, Mutex, MutexProtocol, RawError, attributes};
use std::sync::Arc;
use std::time::Duration;

fn robust_kinds() -> impl Iterator<Item = Builder> {
    kinds().into_iter().map(|kind| kind.robustly(true))
}

/// Runs a thread that locks all of these and ends with them locked.
fn dies_with<T: Send + Sync + 'static>(mutexes: &[Arc<Mutex<T>>]) {
    let ours = mutexes.to_vec();
    Player::enter(None, move || {
        for mutex in &ours {
            std::mem::forget(mutex.lock().expect("the mutex is free"));
        }
    })
    .end();
}

#[test]
fn the_next_owner_is_told_and_recovers() {
    let Some(_stage) = Stage::set() else { return };
    for kind in robust_kinds() {
        let mutex = Arc::new(kind.build(1));
        for _ in 0..3 {
            dies_with(&[Arc::clone(&mutex)]);
            match mutex.lock() {
                Err(LockError::OwnerDied(mut guard)) => {
                    *guard = 1;
                    Guard::make_consistent(&guard);
                }
                other => panic!("{kind:?}: {other:?}"),
            }
            assert_eq!(*mutex.lock().expect("the mutex is consistent again"), 1, "{kind:?}");
        }
        dies_with(&[Arc::clone(&mutex)]);
        assert!(matches!(mutex.try_lock(), Err(LockError::OwnerDied(_))), "a try is also told: {kind:?}");
    }
}

/// The heir dies as well, before it made the mutex consistent: its successor is told.
#[test]
fn an_heir_may_die_too() {
    let Some(_stage) = Stage::set() else { return };
    for kind in robust_kinds() {
        let mutex = Arc::new(kind.build(()));
        dies_with(&[Arc::clone(&mutex)]);
        let heir = Arc::clone(&mutex);
        Player::enter(None, move || match heir.lock() {
            Err(LockError::OwnerDied(guard)) => std::mem::forget(guard),
            other => panic!("{other:?}"),
        })
        .end();
        assert!(matches!(mutex.lock(), Err(LockError::OwnerDied(_))), "{kind:?}");
        assert!(matches!(mutex.lock(), Err(LockError::NotRecoverable)), "{kind:?}");
    }
}

/// Threads wait while the owner ends. One is told. If it recovers, the others get a consistent mutex; if it gives up,
/// all others get the error.
#[test]
fn waiters_are_woken_when_the_owner_ends() {
    let Some(_stage) = Stage::set() else { return };
    for kind in robust_kinds() {
        for heals in [true, false] {
            let mutex = Arc::new(kind.build(()));
            let (ends, owner_mutex) = (Gate::default(), Arc::clone(&mutex));
            let owner = Player::enter(None, {
                let ends = ends.clone();
                move || {
                    std::mem::forget(owner_mutex.lock().expect("the mutex is free"));
                    ends.pass();
                }
            });
            until("the owner holds the mutex", || mutex.inside().owner() == owner.tid);
            let waiters: Vec<_> = (0..4)
                .map(|_| {
                    let ours = Arc::clone(&mutex);
                    let waiter = Player::enter(None, move || match ours.lock_for(Duration::from_secs(5)) {
                        Ok(_) => 'o',
                        Err(LockError::OwnerDied(guard)) => {
                            if heals {
                                Guard::make_consistent(&guard);
                            }
                            'd'
                        }
                        Err(LockError::NotRecoverable) => 'n',
                        Err(error) => panic!("{kind:?}: {error}"),
                    });
                    until_waiting(waiter.tid, mutex.inside());
                    waiter
                })
                .collect();
            ends.open();
            owner.end();
            let mut got: Vec<_> = waiters.into_iter().map(Player::end).collect();
            got.sort_unstable();
            let expected = if heals { ['d', 'o', 'o', 'o'] } else { ['d', 'n', 'n', 'n'] };
            assert_eq!(got, expected, "{kind:?}");
        }
    }
}

/// A thread holds many mutexes at once, some of them the C library's own, and unlocks them in any order: the list stays
/// consistent, and the kernel marks the remaining ones.
#[test]
fn the_list_stays_consistent_among_other_mutexes() {
    let Some(_stage) = Stage::set() else { return };
    for seed in 1..40 {
        let mut chance = Chance::new(seed);
        let mutexes: Vec<_> = (0..6)
            .map(|_| {
                Arc::new(robust_kinds().nth(chance.below(72) as usize).expect("there are that many kinds").build(()))
            })
            .collect();
        let theirs: Vec<_> = (0..4).map(|place| Arc::new(Theirs::new(place % 2 == 0))).collect();
        let (ours, c) = (mutexes.clone(), theirs.clone());
        let left = Player::enter(None, move || {
            let mut held: Vec<(usize, Option<_>)> = Vec::new();
            let mut order: Vec<usize> = (0..10).collect();
            for place in (1..10).rev() {
                order.swap(place, chance.below(place as u64 + 1) as usize);
            }
            for place in order {
                if place < 6 {
                    held.push((place, Some(ours[place].lock().expect("the mutex is free"))));
                } else {
                    assert_eq!(c[place - 6].lock(), 0);
                    held.push((place, None));
                }
            }
            // Unlocks some of them, in another order.
            for _ in 0..chance.below(10) {
                let (place, guard) = held.swap_remove(chance.below(held.len() as u64) as usize);
                if place >= 6 {
                    assert_eq!(c[place - 6].unlock(), 0);
                }
                drop(guard);
            }
            let left: Vec<usize> = held.iter().map(|(place, _)| *place).collect();
            // The thread ends with the others.
            held.into_iter().filter_map(|(_, guard)| guard).for_each(std::mem::forget);
            left
        })
        .end();
        for place in 0..10 {
            let (died, got) = if place < 6 {
                let got = mutexes[place].lock();
                (
                    matches!(got, Err(LockError::OwnerDied(_))),
                    format!("{got:?} of {:#x}", mutexes[place].inside().attributes()),
                )
            } else {
                let got = theirs[place - 6].lock();
                // The mutex is in this thread's list and is about to be freed.
                assert_eq!(theirs[place - 6].unlock(), 0);
                (got == libc::EOWNERDEAD, got.to_string())
            };
            assert_eq!(died, left.contains(&place), "mutex {place} of seed {seed}: {got}");
        }
    }
}

/// A robust mutex of the C library.
struct Theirs(Box<std::cell::UnsafeCell<libc::pthread_mutex_t>>);

// SAFETY: the C library's functions synchronise the threads that use a mutex, and the mutex is in a box.
unsafe impl Send for Theirs {}
// SAFETY: the C library's functions synchronise the threads that use a mutex, and nothing else accesses it.
unsafe impl Sync for Theirs {}

impl Theirs {
    fn new(inherits: bool) -> Self {
        // SAFETY: attributes and mutex are valid for writing, and stay where they are.
        unsafe {
            let mut attributes: libc::pthread_mutexattr_t = std::mem::zeroed();
            libc::pthread_mutexattr_init(&raw mut attributes);
            libc::pthread_mutexattr_setrobust(&raw mut attributes, libc::PTHREAD_MUTEX_ROBUST);
            if inherits {
                libc::pthread_mutexattr_setprotocol(&raw mut attributes, libc::PTHREAD_PRIO_INHERIT);
            }
            let mutex = Box::new(std::cell::UnsafeCell::new(std::mem::zeroed()));
            assert_eq!(libc::pthread_mutex_init(mutex.get(), &raw const attributes), 0);
            Self(mutex)
        }
    }

    fn lock(&self) -> i32 {
        // SAFETY: the mutex was initialised and is not destroyed.
        unsafe { libc::pthread_mutex_lock(self.0.get()) }
    }

    fn unlock(&self) -> i32 {
        // SAFETY: the mutex was initialised and is not destroyed.
        unsafe { libc::pthread_mutex_unlock(self.0.get()) }
    }
}

/// The heir of a recursive mutex holds it once, however often the dead owner had locked it.
#[test]
fn depth_is_not_inherited() {
    let Some(_stage) = Stage::set() else { return };
    for family in [0, attributes::INHERIT, attributes::PROTECT] {
        let mutex = Arc::new(raw_mutex(family | attributes::ROBUST | attributes::RECURSIVE, 60));
        let ours = Arc::clone(&mutex);
        Player::enter(None, move || (0..3).for_each(|_| _ = ours.lock(Limit::Never).expect("the mutex is free"))).end();
        assert_eq!(mutex.lock(Limit::Never), Ok(Acquired::OwnerDied));
        assert_eq!(mutex.make_consistent(), Ok(()));
        assert_eq!(mutex.unlock(), Ok(()));
        assert_eq!(mutex.unlock(), Err(RawError::NotOwner), "{family:#x}");
    }
}

/// Without robustness the mutex stays locked for requests after the death, and deadlines hold.
#[test]
fn a_mutex_that_is_not_robust_stays_locked() {
    let Some(_stage) = Stage::set() else { return };
    for protocol in [MutexProtocol::None, MutexProtocol::Protect(60)] {
        let mutex = Arc::new(Mutex::builder().protocol(protocol).check_deadlocks(false).build(()));
        dies_with(&[Arc::clone(&mutex)]);
        assert!(matches!(mutex.try_lock(), Err(LockError::Busy)));
        assert!(matches!(mutex.lock_for(ms(5)), Err(LockError::TimedOut)));
    }
    let mutex = Arc::new(Mutex::new(()));
    dies_with(&[Arc::clone(&mutex)]);
    assert!(matches!(mutex.try_lock(), Err(LockError::Busy)));
    assert!(matches!(mutex.lock_for(ms(5)), Err(LockError::Sys(error)) if error.errno == libc::ESRCH));
}

/// The kernel gives a mutex that inherits to a thread that waits when the owner ends, robust or not.
#[test]
fn a_waiter_gets_a_mutex_that_is_not_robust() {
    let Some(_stage) = Stage::set() else { return };
    let mutex = Arc::new(Mutex::new(()));
    let (ours, gate) = (Arc::clone(&mutex), Gate::default());
    let is_over = gate.clone();
    let owner = Player::enter(None, move || {
        std::mem::forget(ours.lock().expect("the mutex is free"));
        is_over.pass();
    });
    until("the owner holds the mutex", || mutex.inside().owner() == owner.tid);
    let ours = Arc::clone(&mutex);
    let waiter = Player::enter(None, move || matches!(ours.lock(), Err(LockError::OwnerDied(_))));
    until_waiting(waiter.tid, mutex.inside());
    gate.open();
    owner.end();
    assert!(waiter.end(), "it gets the mutex, and learns of the death");
    assert!(mutex.lock().is_ok(), "the waiter unlocked it");
}

/// A request between the end of the owner and the first execution of its heir, which the kernel answers with EINVAL,
/// waits for the heir.
#[test]
fn a_request_before_the_heir_executes_waits_for_it() {
    let Some(_stage) = Stage::set() else { return };
    let (mutex, cpu) = (Arc::new(Mutex::new(())), cpus()[0]);
    let (holds, leave) = (Gate::default(), Gate::default());
    let requests = |level, parks: bool| {
        let mutex = Arc::clone(&mutex);
        Player::enter(Some((level, cpu)), move || {
            if parks {
                std::thread::park();
            }
            let has_tried = mutex.try_lock().is_ok();
            (has_tried, mutex.lock().map(drop).map_err(|error| matches!(error, LockError::OwnerDied(_))))
        })
    };
    // On one processor: when the owner has ended, the more urgent request is made before the heir executes.
    let urgent = requests(20, true);
    let owner = Player::enter(Some((30, cpu)), {
        let (mutex, holds, leave) = (Arc::clone(&mutex), holds.clone(), leave.clone());
        let urgent = urgent.thread().clone();
        move || {
            std::mem::forget(mutex.lock().expect("the mutex is free"));
            holds.open();
            leave.pass();
            urgent.unpark();
        }
    });
    holds.pass();
    let heir = requests(10, false);
    until_waiting(heir.tid, mutex.inside());
    leave.open();
    owner.end();
    assert_eq!(urgent.end(), (false, Ok(())));
    assert_eq!(heir.end(), (false, Err(true)), "it learns of the death");
}

/// A waiter of a condition variable that dies, and an owner that dies while others wait there.
#[test]
fn a_wait_returns_the_death_of_an_owner() {
    let Some(_stage) = Stage::set() else { return };
    for kind in robust_kinds() {
        let (mutex, condvar) = (Arc::new(kind.build(())), Arc::new(lockwright::mutex::Condvar::new()));
        let waiter = Player::enter(None, {
            let (mutex, condvar) = (Arc::clone(&mutex), Arc::clone(&condvar));
            move || {
                let guard = mutex.lock().expect("the mutex is free");
                match condvar.wait(guard) {
                    Err(LockError::OwnerDied(guard)) => Guard::make_consistent(&guard),
                    other => panic!("{kind:?}: {other:?}"),
                }
            }
        });
        until_waiting_at(waiter.tid, &*condvar);
        let (ours, c) = (Arc::clone(&mutex), Arc::clone(&condvar));
        Player::enter(None, move || {
            std::mem::forget(ours.lock().expect("the mutex is free"));
            c.signal();
        })
        .end();
        waiter.end();
        assert!(mutex.lock().is_ok(), "{kind:?}");
    }
}

/// Printing a mutex only reads it: the next owner is told of the dead owner all the same.
#[test]
fn printing_a_mutex_changes_nothing() {
    let Some(_stage) = Stage::set() else { return };
    for kind in robust_kinds() {
        let mutex = Arc::new(kind.build(1));
        dies_with(&[Arc::clone(&mutex)]);
        for _ in 0..2 {
            assert!(format!("{mutex:?}").starts_with("Mutex"), "{kind:?}");
        }
        match mutex.lock() {
            Err(LockError::OwnerDied(guard)) => {
                assert!(format!("{mutex:?}").contains(&tid().to_string()), "the output names the owner: {kind:?}");
                Guard::make_consistent(&guard);
            }
            other => panic!("{kind:?}: {other:?}"),
        }
        assert!(format!("{mutex:?}").contains("None"), "{kind:?}");
        assert_eq!(*mutex.lock().expect("the mutex is consistent again"), 1, "{kind:?}");
    }
}
