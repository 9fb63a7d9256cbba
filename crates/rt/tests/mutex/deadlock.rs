//! Cycles of owners: exactly one thread of a cycle finds it and gets it in full, and no thread finds one that does not
//! exist.

use crate::support::*;
use lockwright::mutex::{
    Attributes, Builder, CHAIN_MAX, Cycle, Limit, LockError, Mutex, MutexProtocol, RawError, RawMutex,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Thread k holds mutex k and requests mutex k + 1, round the ring. Returns the cycle that each thread found, the
/// threads' ids, and the mutexes' addresses. `limited` is a thread that waits no longer than 100 ms.
fn ring(kinds: &[Builder], limited: Option<usize>) -> (Vec<Option<Cycle>>, BTreeSet<u32>, BTreeSet<usize>) {
    let mutexes: Arc<Vec<_>> = Arc::new(kinds.iter().map(|kind| kind.build(())).collect());
    let addresses = mutexes.iter().map(|mutex| std::ptr::from_ref(mutex.inside()).addr()).collect();
    let all_have = Gate::default();
    let players: Vec<_> = (0..kinds.len())
        .map(|place| {
            let (mutexes, all_have) = (Arc::clone(&mutexes), all_have.clone());
            Player::enter(None, move || {
                let _own = mutexes[place].lock().expect("the mutex is free");
                all_have.pass();
                let next = &mutexes[(place + 1) % mutexes.len()];
                match if limited == Some(place) { next.lock_for(ms(100)) } else { next.lock() } {
                    Ok(_) | Err(LockError::TimedOut) => None,
                    Err(LockError::Deadlock { cycle }) => Some(*cycle.expect("all mutexes of the ring are checked")),
                    Err(error) => panic!("{error}"),
                }
            })
        })
        .collect();
    until("each thread holds its mutex", || mutexes.iter().all(|mutex| mutex.inside().owner() != 0));
    let ids = players.iter().map(|player| player.tid).collect();
    all_have.open();
    (players.into_iter().map(Player::end).collect(), ids, addresses)
}

fn looks(protocol: MutexProtocol) -> Builder {
    Mutex::builder().protocol(protocol).check_deadlocks(true)
}

/// Attributes for the mutexes of a ring: all alike, or mixed.
fn mixes(length: usize) -> Vec<Vec<Builder>> {
    let all = |protocol| vec![looks(protocol); length];
    let mut mixes = vec![all(MutexProtocol::None), all(MutexProtocol::Inherit)];
    mixes.push((0..length).map(|place| looks(PROTOCOLS[place % 2]).robustly(place % 3 == 0)).collect());
    mixes.push((0..length).map(|place| looks(PROTOCOLS[place % 3]).unlock(UNLOCKS[place / 2 % 3])).collect());
    mixes
}

#[test]
fn a_ring_is_found_once_and_reported_in_full() {
    let Some(_stage) = Stage::set() else { return };
    for length in 2..=16 {
        for kinds in mixes(length) {
            let (found, threads, mutexes) = ring(&kinds, None);
            let found: Vec<_> = found.into_iter().flatten().collect();
            let [cycle] = found.as_slice() else { panic!("found {} times in a ring of {length}", found.len()) };
            assert_eq!(cycle.links().len(), length);
            assert_eq!(cycle.links().iter().map(|link| link.thread).collect::<BTreeSet<_>>(), threads);
            assert_eq!(cycle.links().iter().map(|link| link.mutex).collect::<BTreeSet<_>>(), mutexes);
            let said = cycle.to_string();
            assert!(threads.iter().all(|thread| said.matches(&format!("thread {thread} ")).count() == 2), "{said}");
        }
    }
}

#[test]
fn ab_ba_is_found_every_time() {
    let Some(_stage) = Stage::set() else { return };
    for round in 0..100 {
        let (found, ..) = ring(&mixes(2)[round % 4], None);
        assert_eq!(found.into_iter().flatten().count(), 1);
    }
}

#[test]
fn a_thread_that_would_wait_for_itself_gets_an_error() {
    let Some(_stage) = Stage::set() else { return };
    for protocol in PROTOCOLS {
        let mutex = looks(protocol).build(());
        let _guard = mutex.lock().expect("the mutex is free");
        let Err(LockError::Deadlock { cycle: Some(cycle) }) = mutex.lock() else { panic!("{protocol:?}") };
        let address = std::ptr::from_ref(mutex.inside()).addr();
        assert_eq!(cycle.links(), [lockwright::mutex::Link { thread: tid(), mutex: address }]);
    }
}

/// The mutant: with one unchecked mutex in the ring, no thread finds the cycle.
#[test]
fn a_ring_with_an_unchecked_mutex_is_not_found() {
    let Some(_stage) = Stage::set() else { return };
    let mut kinds = vec![looks(MutexProtocol::None); 4];
    kinds[2] = kinds[2].check_deadlocks(false);
    let (found, ..) = ring(&kinds, Some(1));
    assert_eq!(found.into_iter().flatten().count(), 0);
}

/// A ring of normal mutexes. Returns the lengths of the cycles that are found within a second. Then the main thread
/// unlocks the first mutex, so that all threads come to their end.
fn lengths_found(length: usize) -> Vec<usize> {
    // SAFETY: the mutexes are not robust.
    let mutexes: Vec<_> =
        (0..length).map(|_| unsafe { RawMutex::new(Attributes::NORMAL | Attributes::CHECKED, 0) }).collect();
    let mutexes = Arc::new(mutexes);
    let (all_have, lengths) = (Gate::default(), Arc::new(Mutex::new(Vec::new())));
    let players: Vec<_> = (0..length)
        .map(|place| {
            let (mutexes, all_have, lengths) = (Arc::clone(&mutexes), all_have.clone(), Arc::clone(&lengths));
            Player::enter(None, move || {
                mutexes[place].lock(Limit::Never).expect("the mutex is free");
                all_have.pass();
                let next = &mutexes[(place + 1) % length];
                match next.lock(Limit::Never) {
                    Ok(_) => next.unlock().expect("the caller holds it"),
                    Err(RawError::Deadlock(Some(cycle))) => {
                        lengths.lock().expect("the lock succeeds").push(cycle.links().len());
                    }
                    Err(error) => panic!("{error:?}"),
                }
                mutexes[place].unlock().expect("the caller holds it");
            })
        })
        .collect();
    until("each thread holds its mutex", || mutexes.iter().all(|mutex| mutex.owner() != 0));
    all_have.open();
    std::thread::sleep(ms(1_000));
    let found = lengths.lock().expect("the lock succeeds").clone();
    mutexes[0].unlock().expect("any thread may unlock it");
    players.into_iter().for_each(Player::end);
    found
}

#[test]
fn the_longest_detectable_ring_is_found() {
    let Some(_stage) = Stage::set() else { return };
    assert_eq!(lengths_found(CHAIN_MAX), [CHAIN_MAX]);
    assert_eq!(lengths_found(CHAIN_MAX + 1), []);
}

/// Many threads lock several mutexes in one order, so no cycle is possible, and none is found. They give up now and
/// then, and wait for each other in long chains.
#[test]
fn no_deadlock_is_found_where_there_is_none() {
    const MUTEXES: u64 = 6;
    let Some(_stage) = Stage::set() else { return };
    let mutexes: Arc<Vec<_>> = Arc::new((0..MUTEXES as usize).map(|place| mixes(6)[3][place].build(0_u64)).collect());
    let late = Arc::new(AtomicU64::new(0));
    let until = Instant::now() + ms(1_500);
    let players: Vec<_> = (0..8)
        .map(|seed| {
            let (mutexes, late) = (Arc::clone(&mutexes), Arc::clone(&late));
            Player::enter(None, move || {
                let mut chance = Chance::new(seed + 11);
                while Instant::now() < until {
                    let mut held = Vec::new();
                    for mutex in mutexes.iter() {
                        if chance.below(2) == 0 {
                            continue;
                        }
                        let limited = chance.below(4) == 0;
                        let taken = if limited {
                            mutex.lock_for(Duration::from_micros(chance.below(200)))
                        } else {
                            mutex.lock()
                        };
                        match taken {
                            Ok(mut guard) => {
                                *guard += 1;
                                held.push(guard);
                            }
                            Err(LockError::TimedOut) => _ = late.fetch_add(1, Ordering::Relaxed),
                            Err(error) => panic!("{error}"),
                        }
                    }
                    if chance.below(8) == 0 {
                        std::thread::yield_now();
                    }
                    // Unlocks in any order.
                    while !held.is_empty() {
                        drop(held.swap_remove(chance.below(held.len() as u64) as usize));
                    }
                }
            })
        })
        .collect();
    players.into_iter().for_each(Player::end);
    assert!(mutexes.iter().all(|mutex| *mutex.try_lock().expect("the mutex is free") > 0));
    assert!(late.load(Ordering::Relaxed) > 0, "no thread gave up");
}

/// All threads lock in one order, so there is no cycle. A thread that is preempted while it begins to wait can see one:
/// the owner that it looks at unlocks meanwhile, and then waits for a mutex of that thread itself.
#[test]
fn mutexes_that_are_locked_in_one_order_are_never_in_a_deadlock() {
    let Some(_stage) = Stage::set() else { return };
    let mutexes: Arc<[Mutex<u64>; 4]> =
        Arc::new([(); 4].map(|()| Mutex::builder().protocol(MutexProtocol::Inherit).check_deadlocks(false).build(0)));
    let cpus = cpus();
    let enter = |index: u32| {
        let mutexes = Arc::clone(&mutexes);
        let cpu = cpus[index as usize % cpus.len()];
        Player::enter(Some((10 + index as u8, cpu)), move || {
            let mut chance = Chance::new(u64::from(index) + 1);
            for _ in 0..2_000 {
                let chosen = 1 + chance.below(15);
                let chosen = (0..4).filter(|mutex| chosen >> mutex & 1 == 1);
                let _held: Vec<_> = chosen.map(|mutex| mutexes[mutex].lock().expect("there is no cycle")).collect();
            }
        })
    };
    (0..8).map(enter).collect::<Vec<_>>().into_iter().for_each(Player::end);
}
