//! Owners that end while they hold: who is next is told, can heal or give up, and nobody waits for ever.

use crate::support::*;
use lockwright::mutex::{Acquired, Builder, Limit, LockError, Mutex, Protocol, RawError, kind};
use std::sync::Arc;
use std::time::Duration;

fn robust_kinds() -> impl Iterator<Item = Builder> {
    kinds().into_iter().map(|kind| kind.robustly(true))
}

/// A thread that takes all of these and ends with them.
fn dies_with<T: Send + Sync + 'static>(mutexes: &[Arc<Mutex<T>>]) {
    let ours = mutexes.to_vec();
    Player::enter(None, move || {
        for mutex in &ours {
            std::mem::forget(mutex.lock().expect("free"));
        }
    })
    .end();
}

#[test]
fn the_next_owner_is_told_and_heals() {
    let Some(_stage) = Stage::set() else { return };
    for kind in robust_kinds() {
        let mutex = Arc::new(kind.build(1));
        for _ in 0..3 {
            dies_with(&[Arc::clone(&mutex)]);
            match mutex.lock() {
                Err(LockError::OwnerDied(mut guard)) => {
                    *guard = 1;
                    guard.make_consistent();
                }
                other => panic!("{kind:?}: {other:?}"),
            }
            assert_eq!(*mutex.lock().expect("healed"), 1, "{kind:?}");
        }
        dies_with(&[Arc::clone(&mutex)]);
        assert!(matches!(mutex.try_lock(), Err(LockError::OwnerDied(_))), "a try is told, too: {kind:?}");
    }
}

/// The heir dies as well, before it healed: the one after is told.
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

/// Threads wait while the owner ends. One is told; where it heals the others get a whole one, where it gives up all are told so.
#[test]
fn who_waits_while_the_owner_ends_is_woken() {
    let Some(_stage) = Stage::set() else { return };
    for kind in robust_kinds() {
        for heals in [true, false] {
            let mutex = Arc::new(kind.build(()));
            let (ends, owner_mutex) = (Gate::default(), Arc::clone(&mutex));
            let owner = Player::enter(None, {
                let ends = ends.clone();
                move || {
                    std::mem::forget(owner_mutex.lock().expect("free"));
                    ends.pass();
                }
            });
            until("it has it", || mutex.inside().owner() == owner.tid);
            let waiters: Vec<_> = (0..4)
                .map(|_| {
                    let ours = Arc::clone(&mutex);
                    let waiter = Player::enter(None, move || match ours.lock_for(Duration::from_secs(5)) {
                        Ok(_) => 'o',
                        Err(LockError::OwnerDied(guard)) => {
                            if heals {
                                guard.make_consistent();
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

/// Many are held at once, given back in any order, some of them the C library's own: the list stays whole, and tells of the rest.
#[test]
fn the_list_stays_whole_among_others() {
    let Some(_stage) = Stage::set() else { return };
    for seed in 1..40 {
        let mut chance = Chance::new(seed);
        let mutexes: Vec<_> = (0..6)
            .map(|_| Arc::new(robust_kinds().nth(chance.below(72) as usize).expect("a kind").build(())))
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
                    held.push((place, Some(ours[place].lock().expect("free"))));
                } else {
                    assert_eq!(c[place - 6].lock(), 0);
                    held.push((place, None));
                }
            }
            // Some are given back, in another order.
            for _ in 0..chance.below(10) {
                let (place, guard) = held.swap_remove(chance.below(held.len() as u64) as usize);
                if place >= 6 {
                    assert_eq!(c[place - 6].unlock(), 0);
                }
                drop(guard);
            }
            let left: Vec<usize> = held.iter().map(|(place, _)| *place).collect();
            // The thread ends with these.
            held.into_iter().filter_map(|(_, guard)| guard).for_each(std::mem::forget);
            left
        })
        .end();
        for place in 0..10 {
            let died = if place < 6 {
                matches!(mutexes[place].lock(), Err(LockError::OwnerDied(_)))
            } else {
                let died = theirs[place - 6].lock() == libc::EOWNERDEAD;
                // Its memory goes; a thread must not have it then, for it is in that thread's list.
                assert_eq!(theirs[place - 6].unlock(), 0);
                died
            };
            assert_eq!(died, left.contains(&place), "mutex {place} of seed {seed}");
        }
    }
}

/// A robust mutex of the C library.
struct Theirs(Box<std::cell::UnsafeCell<libc::pthread_mutex_t>>);

// SAFETY: it is made for several threads.
unsafe impl Send for Theirs {}
// SAFETY: as above.
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
        // SAFETY: it was made, and is not unmade.
        unsafe { libc::pthread_mutex_lock(self.0.get()) }
    }

    fn unlock(&self) -> i32 {
        // SAFETY: as above.
        unsafe { libc::pthread_mutex_unlock(self.0.get()) }
    }
}

/// A recursive one is its heir's once, however often the dead had taken it.
#[test]
fn depth_is_not_inherited() {
    let Some(_stage) = Stage::set() else { return };
    for family in [0, kind::INHERIT, kind::PROTECT] {
        let mutex = Arc::new(raw_mutex(family | kind::ROBUST | kind::RECURSIVE, 60));
        let ours = Arc::clone(&mutex);
        Player::enter(None, move || (0..3).for_each(|_| _ = ours.lock(Limit::Never).expect("free"))).end();
        assert_eq!(mutex.lock(Limit::Never), Ok(Acquired::OwnerDied));
        assert_eq!(mutex.make_consistent(), Ok(()));
        assert_eq!(mutex.unlock(), Ok(()));
        assert_eq!(mutex.unlock(), Err(RawError::NotOwner), "{family:#x}");
    }
}

/// Without robustness the mutex stays taken: nobody is told anything else, and deadlines hold.
#[test]
fn what_is_not_robust_stays_taken() {
    let Some(_stage) = Stage::set() else { return };
    for protocol in [Protocol::None, Protocol::Protect(60)] {
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

/// A waiter of a condition variable that dies, and an owner that dies while others wait there.
#[test]
fn a_condition_variable_tells_of_a_dead_owner() {
    let Some(_stage) = Stage::set() else { return };
    for kind in robust_kinds() {
        let (mutex, condvar) = (Arc::new(kind.build(())), Arc::new(lockwright::mutex::Condvar::new()));
        let waiter = Player::enter(None, {
            let (mutex, condvar) = (Arc::clone(&mutex), Arc::clone(&condvar));
            move || {
                let guard = mutex.lock().expect("free");
                match condvar.wait(guard) {
                    Err(LockError::OwnerDied(guard)) => guard.make_consistent(),
                    other => panic!("{kind:?}: {other:?}"),
                }
            }
        });
        until_waiting_at(waiter.tid, &*condvar);
        let (ours, c) = (Arc::clone(&mutex), Arc::clone(&condvar));
        Player::enter(None, move || {
            std::mem::forget(ours.lock().expect("free"));
            c.signal();
        })
        .end();
        waiter.end();
        assert!(mutex.lock().is_ok(), "{kind:?}");
    }
}
