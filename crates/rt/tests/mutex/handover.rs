//! The owner of a mutex between the unlock and the next owner: hand-off and stealing.

use crate::support::*;
use lockwright::mutex::{Builder, Deadline, LockError, Mutex, MutexProtocol, Unlock};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

/// On one processor, a more urgent owner unlocks while a waiter is suspended that cannot execute yet, and tries again
/// at once. Returns how often it got the mutex before the waiter did.
fn steals(stage: &Stage, kind: Builder, waiter_level: u8) -> u32 {
    const ROUNDS: u32 = 50;
    let mutex = Arc::new(kind.build(0_u32));
    let (waiting, over) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicBool::new(false)));
    let waiter = stage.thread(40, {
        let (mutex, waiting, over) = (Arc::clone(&mutex), Arc::clone(&waiting), Arc::clone(&over));
        move || {
            if waiter_level == 0 {
                set_other(tid());
            } else {
                set_fifo(tid(), waiter_level);
            }
            // ORDERING: Relaxed, here and below: the mutex orders what matters.
            while !over.load(Ordering::Relaxed) {
                waiting.store(1, Ordering::Relaxed);
                *mutex.lock().expect("the lock succeeds") += 1;
                waiting.store(0, Ordering::Relaxed);
                std::thread::sleep(Duration::from_micros(200));
            }
        }
    });
    let waiter_tid = waiter.tid;
    let thief = stage.thread(50, move || {
        let mut steals = 0;
        for _ in 0..ROUNDS {
            let guard = mutex.lock().expect("the lock succeeds");
            let before = *guard;
            // Lets the less urgent waiter come.
            until_waiting(waiter_tid, mutex.inside());
            drop(guard);
            // The waiter has not executed since, because it is less urgent and on the same processor.
            for _ in 0..100 {
                match mutex.try_lock() {
                    Ok(guard) if *guard == before => {
                        steals += 1;
                        break;
                    }
                    Ok(_) => break,
                    Err(LockError::Busy) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            until("the waiter held the mutex", || *mutex.lock().expect("the lock succeeds") > before);
        }
        over.store(true, Ordering::Relaxed);
        steals
    });
    let steals = thief.end();
    waiter.end();
    steals
}

fn none() -> Builder {
    Mutex::builder().protocol(MutexProtocol::None)
}

#[test]
fn no_thread_steals_in_serial_mode() {
    let Some(stage) = Stage::set() else { return };
    for level in [0, 10] {
        for checked in [false, true] {
            let serial = none().unlock(Unlock::Serial).check_deadlocks(checked);
            assert_eq!(steals(&stage, serial, level), 0);
            assert_eq!(steals(&stage, serial.shared(true), level), 0);
            assert_eq!(steals(&stage, serial.robustly(true), level), 0);
            assert_eq!(steals(&stage, Mutex::builder().check_deadlocks(checked), level), 0, "with inheritance");
        }
    }
    assert_eq!(steals(&stage, none().protocol(MutexProtocol::Protect(60)).unlock(Unlock::Serial), 10), 0);
}

/// The mutant of the test above: without hand-off the same thief gets the mutex every time.
#[test]
fn a_running_thread_steals_in_parallel_mode() {
    let Some(stage) = Stage::set() else { return };
    assert_eq!(steals(&stage, none().unlock(Unlock::Parallel), 10), 50);
    assert_eq!(steals(&stage, none().unlock(Unlock::Parallel).shared(true), 0), 50);
    for shared in [false, true] {
        assert_eq!(steals(&stage, none().unlock(Unlock::Parallel).shared(shared).robustly(true), 10), 50, "robust");
    }
}

#[test]
fn automatic_mode_is_serial_if_a_real_time_thread_waits() {
    let Some(stage) = Stage::set() else { return };
    for robust in [false, true] {
        let auto = none().unlock(Unlock::Auto).robustly(robust);
        assert_eq!(steals(&stage, auto, 10), 0, "robust: {robust}");
        assert_eq!(steals(&stage, auto, 0), 50, "an ordinary waiter, robust: {robust}");
    }
}

/// The data of two threads that wait for each other, which thieves also lock.
#[derive(Default)]
struct Loot {
    count: u32,
    /// A thread waited at the last unlock.
    promised: bool,
}

/// Two threads pass the mutex to each other, while a thief of the given level spins on another processor. Returns the
/// number of hand-offs, and how often the thief got the mutex in between.
fn hand_overs_and_steals(stage: &Stage, kind: Builder, thief_level: u8) -> (u32, u32) {
    const ROUNDS: u32 = 200;
    let mutex = Arc::new(kind.build(Loot::default()));
    let over = Arc::new(AtomicBool::new(false));
    let ids = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
    let guard = mutex.lock().expect("the mutex is free");
    let waiters: Vec<_> = (0..2)
        .map(|place| {
            let (ours, ids) = (Arc::clone(&mutex), Arc::clone(&ids));
            let player = stage.thread(20, move || {
                let mut hand_overs = 0;
                ids[place].store(tid(), Ordering::Relaxed);
                for _ in 0..ROUNDS {
                    let mut guard = ours.lock().expect("the lock succeeds");
                    guard.count += 1;
                    hand_overs += u32::from(guard.promised);
                    // Waits until the other thread waits again, unless it is done.
                    let start = std::time::Instant::now();
                    let other = ids[1 - place].load(Ordering::Relaxed);
                    guard.promised = loop {
                        let waits = is_waiting(other, ours.inside());
                        if waits || start.elapsed() > ms(2) {
                            break waits;
                        }
                        std::thread::sleep(Duration::from_micros(20));
                    };
                }
                hand_overs
            });
            until_waiting(player.tid, mutex.inside());
            player
        })
        .collect();
    let thief = Player::enter(Some((thief_level, cpus()[1])), {
        let (mutex, over) = (Arc::clone(&mutex), Arc::clone(&over));
        move || {
            let mut steals = 0;
            while !over.load(Ordering::Relaxed) {
                for _ in 0..1_000 {
                    if let Ok(mut guard) = mutex.try_lock() {
                        steals += u32::from(guard.promised);
                        guard.promised = false;
                    }
                }
                // Other threads also use this processor.
                std::thread::sleep(Duration::from_micros(50));
            }
            steals
        }
    });
    drop(guard);
    let hand_overs = waiters.into_iter().map(Player::end).sum();
    over.store(true, Ordering::Relaxed);
    let steals = thief.end();
    assert_eq!(mutex.lock().expect("the lock succeeds").count, 2 * ROUNDS);
    (hand_overs, steals)
}

#[test]
fn thieves_that_spin_elsewhere_get_nothing_in_serial_mode() {
    let Some(stage) = Stage::set() else { return };
    if cpus().len() < 2 {
        return;
    }
    for thief_level in [20, 30] {
        for kind in [none().unlock(Unlock::Serial), none().unlock(Unlock::Auto), Mutex::builder()] {
            let (hand_overs, steals) = hand_overs_and_steals(&stage, kind, thief_level);
            assert_eq!(steals, 0, "{kind:?}, by level {thief_level}");
            assert!(hand_overs > 100, "{hand_overs}");
        }
    }
    // The mutant: in parallel mode the thief succeeds.
    let (_, steals) = hand_overs_and_steals(&stage, none().unlock(Unlock::Parallel), 20);
    assert!(steals > 0);
}

/// In serial mode waiters are served by level, and in order of arrival within a level.
#[test]
fn waiters_are_served_by_level() {
    let Some(stage) = Stage::set() else { return };
    let levels = [12_u8, 14, 11, 14, 13, 12];
    let kinds = [none().unlock(Unlock::Serial), none().unlock(Unlock::Auto), Mutex::builder()];
    for kind in kinds.into_iter().flat_map(|kind| [kind, kind.robustly(true), kind.shared(true)]) {
        let mutex = Arc::new(kind.build(Vec::new()));
        let guard = mutex.lock().expect("the mutex is free");
        let players: Vec<_> = levels
            .iter()
            .enumerate()
            .map(|(place, &own)| {
                let ours = Arc::clone(&mutex);
                let player = stage.thread(own, move || ours.lock().expect("the lock succeeds").push(place));
                until_waiting(player.tid, mutex.inside());
                player
            })
            .collect();
        drop(guard);
        players.into_iter().for_each(Player::end);
        assert_eq!(*mutex.lock().expect("the lock succeeds"), [1, 3, 4, 0, 5, 2], "{kind:?}");
    }
}

/// A waiter that gives up at the instant of the hand-off must not leave a mutex handed to nobody.
#[test]
fn a_hand_off_without_a_waiter_frees_the_mutex() {
    const ROUNDS: u64 = 800;
    let Some(_stage) = Stage::set() else { return };
    for kind in [none().unlock(Unlock::Serial), none().unlock(Unlock::Serial).shared(true).robustly(true)] {
        let mutex = kind.build(());
        // On a busy machine, a thread may begin only after a short hold has ended.
        let has_both = [1, 4, 16, 64].into_iter().any(|stretch| {
            let (rounds, mut came) = (ROUNDS / u64::from(stretch), 0);
            for round in 0..rounds {
                std::thread::scope(|scope| {
                    let guard = mutex.lock().expect("the lock succeeds");
                    let start = std::time::Instant::now();
                    let limit = Deadline::after(Duration::from_micros(250) * stretch);
                    let asks = &mutex;
                    let late = scope.spawn(move || asks.lock_until(limit).is_ok());
                    while start.elapsed() < Duration::from_micros(240 + round % 90) * stretch {}
                    drop(guard);
                    came += u64::from(late.join().expect("the thread does not panic"));
                });
                assert!(mutex.try_lock().is_ok(), "round {round}: the mutex is not free");
            }
            println!("{came} of {rounds} came");
            came > 0 && came < rounds
        });
        assert!(has_both, "no waiter gave up, or all did");
    }
}

/// A deadline holds for a thread that finds the mutex handed to another one.
#[test]
fn a_deadline_holds_during_a_hand_off() {
    let Some(stage) = Stage::set() else { return };
    let Some(&other) = cpus().get(1) else { return };
    for kind in [none(), none().shared(true), none().robustly(true)] {
        let mutex = Arc::new(kind.unlock(Unlock::Serial).build(()));
        let (on_its_way, over) = (Gate::default(), Gate::default());
        let (send, heir_comes) = std::sync::mpsc::channel();
        let owner = stage.thread(50, {
            let (mutex, on_its_way, over) = (Arc::clone(&mutex), on_its_way.clone(), over.clone());
            move || {
                let guard = mutex.lock().expect("the mutex is free");
                let heir = heir_comes.recv().expect("the heir");
                until_waiting(heir, mutex.inside());
                set_fifo(tid(), 98);
                drop(guard);
                on_its_way.open();
                // The heir does not execute meanwhile.
                let start = std::time::Instant::now();
                while !over.is_open() && start.elapsed() < scaled(ms(10_000)) {}
                over.is_open()
            }
        });
        until("the owner holds the mutex", || mutex.inside().owner() == owner.tid);
        let heir = {
            let mutex = Arc::clone(&mutex);
            stage.thread(10, move || drop(mutex.lock().expect("the lock succeeds")))
        };
        // Ordinary threads cannot delay this thread, so the owner executes until it has asked.
        let late = Player::enter(Some((50, other)), {
            let mutex = Arc::clone(&mutex);
            move || {
                on_its_way.pass();
                let result = mutex.lock_for(ms(3)).map(drop);
                let tried = mutex.try_lock().map(drop);
                over.open();
                let expected = [matches!(result, Err(LockError::TimedOut)), matches!(tried, Err(LockError::Busy))];
                (expected, format!("{result:?}, {tried:?}"))
            }
        });
        send.send(heir.tid).expect("the owner waits");
        let (expected, text) = late.end();
        assert!(owner.end(), "{kind:?}: the heir executed before the late thread had asked");
        assert_eq!(expected, [true; 2], "{kind:?}: timed out, then busy: {text}");
        heir.end();
        assert!(mutex.try_lock().is_ok());
    }
}
