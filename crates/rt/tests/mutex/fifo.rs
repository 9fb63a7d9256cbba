//! FIFO mutexes on real threads: the order of service is the order of requests, and the holder has the priority of all
//! waiters, whatever happens to them.

use crate::support::*;
use lockwright::mutex::{FifoError, FifoMutex, MutexProtocol};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(20);

/// A mutex, and the order in which it was locked.
#[derive(Default)]
struct Served {
    mutex: FifoMutex<Vec<u32>>,
}

/// Starts a thread that locks the mutex, and holds it until its gate opens.
fn holder(stage: &Stage, level: u8, served: &Arc<Served>) -> (Player<()>, Gate) {
    let (gate, has, served) = (Gate::default(), Gate::default(), Arc::clone(served));
    let player = stage.thread(level, {
        let (gate, has) = (gate.clone(), has.clone());
        move || {
            let guard = served.mutex.lock().expect("the mutex is free");
            has.open();
            gate.pass();
            drop(guard);
        }
    });
    has.pass();
    (player, gate)
}

/// Starts a thread that waits for the mutex for at most `time`, and returns the result. It enters its level.
fn waiter(stage: &Stage, level: u8, served: &Arc<Served>, time: Duration) -> Player<Result<(), FifoError>> {
    let ours = Arc::clone(served);
    let player = stage.thread(level, move || ours.mutex.lock_for(time).map(|mut order| order.push(u32::from(level))));
    until_waiting_in(player.tid, &**served);
    player
}

#[test]
fn requests_are_served_in_their_order_and_lend_their_priorities() {
    let Some(stage) = Stage::set() else { return };
    let served = Arc::new(Served::default());
    let (owner, unlock) = holder(&stage, 10, &served);
    let levels = [20, 12, 40, 15];
    let boosted = [20, 20, 40, 40];
    let waiters = levels.map(|level| waiter(&stage, level, &served, LONG));
    // The level at the time of each request is read below; here that of all of them.
    assert_eq!(level(owner.tid), boosted[3], "the holder has the level of the most urgent of the queue");
    assert_eq!(waiters.each_ref().map(|waiter| level(waiter.tid)), [40, 40, 40, 15], "so has each before that one");
    unlock.open();
    owner.end();
    waiters.into_iter().for_each(|waiter| assert_eq!(waiter.end(), Ok(())));
    assert_eq!(*served.mutex.lock().expect("the mutex is free"), levels.map(u32::from));
}

/// The mutant: a mutex with inheritance serves the most urgent waiter first.
#[test]
fn an_ordinary_mutex_does_not_keep_the_order() {
    let Some(stage) = Stage::set() else { return };
    let mutex = Arc::new(lockwright::mutex::Mutex::builder().protocol(MutexProtocol::Inherit).build(Vec::new()));
    let guard = mutex.lock().expect("the mutex is free");
    let waiters = [20_u8, 40].map(|level| {
        let ours = Arc::clone(&mutex);
        let player = stage.thread(level, move || ours.lock().expect("unlocked").push(level));
        until_waiting(player.tid, mutex.inside());
        player
    });
    drop(guard);
    waiters.into_iter().for_each(Player::end);
    assert_eq!(*mutex.lock().expect("the mutex is free"), [40, 20]);
}

#[test]
fn a_change_of_a_waiters_priority_reaches_the_holder() {
    let Some(stage) = Stage::set() else { return };
    let served = Arc::new(Served::default());
    let (owner, unlock) = holder(&stage, 10, &served);
    let first = waiter(&stage, 20, &served, LONG);
    let second = waiter(&stage, 30, &served, LONG);
    assert_eq!(level(owner.tid), 30);
    set_fifo(second.tid, 50);
    assert_eq!((level(first.tid), level(owner.tid)), (50, 50), "raised along the queue");
    set_fifo(second.tid, 15);
    assert_eq!((level(first.tid), level(owner.tid)), (20, 20), "lowered along the queue");
    unlock.open();
    owner.end();
    assert_eq!((first.end(), second.end()), (Ok(()), Ok(())));
    assert_eq!(*served.mutex.lock().expect("the mutex is free"), [20, 30], "the order has not changed");
}

#[test]
fn requests_that_give_up_leave_the_others_in_their_order() {
    let Some(stage) = Stage::set() else { return };
    // Each of the four waiters gives up or stays.
    for stays in 0..16_u32 {
        let served = Arc::new(Served::default());
        let (owner, unlock) = holder(&stage, 10, &served);
        let levels = [20_u8, 50, 30, 40];
        let stays = |index: usize| stays >> index & 1 == 1;
        let players: Vec<_> = (0..4)
            .map(|index| waiter(&stage, levels[index], &served, if stays(index) { LONG } else { ms(30) }))
            .collect();
        let (mut staying, mut expected) = (Vec::new(), Vec::new());
        for (index, player) in players.into_iter().enumerate() {
            if stays(index) {
                expected.push(u32::from(levels[index]));
                staying.push(player);
            } else {
                assert_eq!(player.end(), Err(FifoError::TimedOut));
            }
        }
        let most = expected.iter().copied().max().unwrap_or(10) as i32;
        until("the queue is linked again", || level(owner.tid) == most);
        unlock.open();
        owner.end();
        staying.into_iter().for_each(|player| assert_eq!(player.end(), Ok(())));
        assert_eq!(*served.mutex.lock().expect("the mutex is free"), expected);
    }
}

#[test]
fn a_try_neither_waits_nor_overtakes() {
    let Some(stage) = Stage::set() else { return };
    let served = Arc::new(Served::default());
    assert!(served.mutex.try_lock().is_ok());
    let (owner, unlock) = holder(&stage, 10, &served);
    assert_eq!(served.mutex.try_lock().err(), Some(FifoError::Busy));
    let next = waiter(&stage, 20, &served, LONG);
    assert_eq!(served.mutex.try_lock().err(), Some(FifoError::Busy));
    unlock.open();
    owner.end();
    assert_eq!(next.end(), Ok(()));
    assert!(served.mutex.try_lock().is_ok());
    let mine = served.mutex.lock().expect("the mutex is free");
    assert!(served.mutex.is_mine());
    assert_eq!(served.mutex.try_lock().err(), Some(FifoError::Busy));
    assert_eq!(served.mutex.lock().err(), Some(FifoError::Deadlock), "the caller holds it");
    assert_eq!(served.mutex.lock_for(ms(1)).err(), Some(FifoError::Deadlock), "whatever the deadline is");
    drop(mine);
    assert!(!served.mutex.is_mine() && served.mutex.try_lock().is_ok());
}

#[test]
fn a_cycle_of_two_mutexes_is_refused_and_can_be_left() {
    let Some(stage) = Stage::set() else { return };
    let mutexes: Arc<[FifoMutex<()>; 2]> = Arc::default();
    let mine = mutexes[0].lock().expect("the mutex is free");
    let other = stage.thread(20, {
        let mutexes = Arc::clone(&mutexes);
        move || {
            let _held = mutexes[1].lock().expect("the mutex is free");
            mutexes[0].lock().map(|_| ())
        }
    });
    until_waiting_in(other.tid, &mutexes[0]);
    assert_eq!(mutexes[1].lock().err(), Some(FifoError::Deadlock));
    drop(mine);
    assert_eq!(other.end(), Ok(()));
    assert!(mutexes.iter().all(|mutex| mutex.try_lock().is_ok()), "the refused request left nothing behind");
}

#[test]
fn a_holder_that_ends_is_told_to_all() {
    let Some(stage) = Stage::set() else { return };
    for waiters in 0..3_u8 {
        let served = Arc::new(Served::default());
        let (gate, has) = (Gate::default(), Gate::default());
        let dies = stage.thread(10, {
            let (served, gate, has) = (Arc::clone(&served), gate.clone(), has.clone());
            move || {
                std::mem::forget(served.mutex.lock().expect("the mutex is free"));
                has.open();
                gate.pass();
            }
        });
        has.pass();
        let waiting: Vec<_> = (0..waiters).map(|index| waiter(&stage, 20 + index, &served, LONG)).collect();
        gate.open();
        dies.end();
        waiting.into_iter().for_each(|waiter| assert_eq!(waiter.end(), Err(FifoError::OwnerDied)));
        let lost = Some(FifoError::OwnerDied);
        assert_eq!(served.mutex.lock().err(), lost, "{waiters} waiters");
        assert_eq!(served.mutex.lock_for(ms(1)).err(), lost);
        assert_eq!(served.mutex.try_lock().err(), lost);
    }
}

#[test]
fn more_threads_than_nodes_are_refused() {
    let Some(stage) = Stage::set() else { return };
    let mutex = Arc::new(FifoMutex::<u32, 4>::new(0));
    for _ in 0..3 {
        let guard = mutex.lock().expect("the mutex is free");
        let waiters: Vec<_> = (0..8)
            .map(|_| {
                let ours = Arc::clone(&mutex);
                stage.thread(20, move || ours.lock().map(|mut count| *count += 1))
            })
            .collect();
        let refused = || waiters.iter().filter(|waiter| waiter.is_over()).count();
        until("all others are refused", || refused() >= 5);
        drop(guard);
        let results: Vec<_> = waiters.into_iter().map(Player::end).collect();
        let served = results.iter().filter(|result| result.is_ok()).count();
        assert!((2..=3).contains(&served), "{served} of 8");
        assert!(results.iter().all(|result| matches!(result, Ok(()) | Err(FifoError::TooManyThreads))));
    }
}

#[test]
fn all_kinds_of_requests_are_exact_under_stress() {
    let Some(_stage) = Stage::set() else { return };
    let mutex = Arc::new(FifoMutex::<u64>::new(0));
    let expected = Arc::new(AtomicU32::new(0));
    let cpus = cpus();
    let enter = |index: u32| {
        let (mutex, expected) = (Arc::clone(&mutex), Arc::clone(&expected));
        let cpu = cpus[index as usize % cpus.len()];
        Player::enter(Some((10 + index as u8, cpu)), move || {
            let mut chance = Chance::new(u64::from(index) + 1);
            let mut served = 0;
            for _ in 0..2_000 {
                let locked = match chance.below(4) {
                    0 => mutex.try_lock(),
                    1 => mutex.lock_for(Duration::from_nanos(chance.below(60_000))),
                    _ => mutex.lock(),
                };
                match locked {
                    Ok(mut count) => {
                        *count += 1;
                        served += 1;
                    }
                    Err(FifoError::Busy | FifoError::TimedOut) => {}
                    Err(error) => panic!("{error}"),
                }
                if chance.below(8) == 0 {
                    std::thread::sleep(Duration::from_micros(chance.below(50)));
                }
            }
            // ORDERING: Relaxed: a count, read after the thread has ended.
            expected.fetch_add(served, Ordering::Relaxed);
        })
    };
    (0..6).map(enter).collect::<Vec<_>>().into_iter().for_each(Player::end);
    assert_eq!(*mutex.lock().expect("the mutex is free"), u64::from(expected.load(Ordering::Relaxed)));
}

#[test]
fn threads_of_sched_deadline_are_served() {
    let Some(_stage) = Stage::set() else { return };
    let mutex = Arc::new(FifoMutex::<u64>::new(0));
    let counts = || {
        let mutex = Arc::clone(&mutex);
        Player::enter(None, move || {
            // The kernel may refuse, for example because of the processors that the thread may use.
            let is_admitted = become_deadline(ms(1), ms(20));
            (0..500).for_each(|_| *mutex.lock().expect("the mutex is free") += 1);
            is_admitted
        })
    };
    let players: Vec<_> = (0..4).map(|_| counts()).collect();
    let admitted: Vec<_> = players.into_iter().map(Player::end).collect();
    if let Some(Err(error)) = admitted.into_iter().find(Result::is_err) {
        println!("skipped in part: no SCHED_DEADLINE for all threads here: {error}");
    }
    assert_eq!(*mutex.lock().expect("the mutex is free"), 2_000);
}
