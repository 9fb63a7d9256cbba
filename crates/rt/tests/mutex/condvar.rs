//! Condition variables: which waiter is woken, when it executes, and the priority that it lends meanwhile.

use crate::support::*;
use lockwright::mutex::{
    Acquired, Builder, Condvar, Deadline, Limit, LockError, Mutex, MutexProtocol, RawCondvar, RawError, Unlock,
    WaitEnd, attributes,
};
use std::sync::Arc;
use std::time::{Duration, Instant};

fn each_protocol() -> impl Iterator<Item = Builder> {
    PROTOCOLS.into_iter().map(|protocol| Mutex::builder().protocol(protocol).unlock(Unlock::Serial))
}

/// The state that the waiters of the order test share.
struct Board {
    mutex: Mutex<State>,
    condvar: Condvar,
}

#[derive(Default)]
struct State {
    tokens: u32,
    over: bool,
    /// How often a waiter of the order test began to wait.
    waits: usize,
    /// The levels of the waiters that got a token, in order.
    order: Vec<u8>,
}

/// Eight waiters of eight levels; each signal wakes the most urgent remaining one. Returns how many of the signals did.
fn in_order(stage: &Stage, kind: Builder, shared: bool, rounds: usize, holds: bool) -> usize {
    in_changed_order(stage, kind, shared, rounds, holds, (false, |own| own))
}

/// As [`in_order`]; once all wait, the waiter of each level gets the level `now` of it. A signal then wakes all waiters
/// if `wakes_all`, and else one.
fn in_changed_order(
    stage: &Stage,
    kind: Builder,
    shared: bool,
    rounds: usize,
    holds: bool,
    (wakes_all, now): (bool, fn(u8) -> u8),
) -> usize {
    let levels = [13_u8, 17, 11, 18, 12, 16, 14, 15];
    let condvar = if shared { Condvar::shared() } else { Condvar::new() };
    let board = Arc::new(Board { mutex: kind.build(State::default()), condvar });
    let mut right = 0;
    for _ in 0..rounds {
        let players: Vec<_> = levels
            .iter()
            .map(|&own| {
                let ours = Arc::clone(&board);
                let player = stage.thread(own, move || {
                    let mut state = ours.mutex.lock().expect("the lock succeeds");
                    while state.tokens == 0 {
                        state.waits += 1;
                        state = ours.condvar.wait(state).expect("the wait succeeds");
                    }
                    state.tokens -= 1;
                    state.order.push(now(own));
                });
                until_waiting_at(player.tid, &board.condvar);
                player
            })
            .collect();
        for (player, &own) in players.iter().zip(&levels).filter(|&(_, &own)| now(own) != own) {
            set_fifo(player.tid, now(own));
        }
        for place in 0..levels.len() {
            let mut state = board.mutex.lock().expect("the lock succeeds");
            state.tokens += 1;
            if holds {
                board.condvar.signal();
                if wakes_all && place == 0 {
                    // All waiters are awake, and wait for the mutex once they have executed.
                    std::thread::sleep(ms(10));
                }
                drop(state);
            } else {
                drop(state);
                board.condvar.signal();
            }
            // The others wait again before the next signal.
            let waits = levels.len() + if wakes_all { levels.len() - 1 } else { 0 };
            until("a waiter was woken", || {
                let state = board.mutex.lock().expect("the lock succeeds");
                state.order.len() > place && state.waits == waits
            });
            let done = board.mutex.lock().expect("the lock succeeds").order.clone();
            for (player, _) in players.iter().zip(&levels).filter(|&(_, &own)| !done.contains(&now(own))) {
                until_waiting_at(player.tid, &board.condvar);
            }
        }
        players.into_iter().for_each(Player::end);
        let order = std::mem::take(&mut *board.mutex.lock().expect("the lock succeeds")).order;
        right += order.iter().zip((11..=18).rev()).filter(|(got, wanted)| **got == *wanted).count();
    }
    right
}

#[test]
fn signals_wake_the_most_urgent_waiter() {
    let Some(stage) = Stage::set() else { return };
    for kind in each_protocol() {
        assert_eq!(in_order(&stage, kind, false, 25, true), 200, "{kind:?}, signalled by the owner");
        assert_eq!(in_order(&stage, kind, false, 25, false), 200, "{kind:?}, signalled by another thread");
    }
    assert_eq!(in_order(&stage, Mutex::builder().shared(true), true, 25, true), 200, "between processes");
    assert_eq!(in_order(&stage, Mutex::builder().protocol(MutexProtocol::None).robustly(true), false, 25, true), 200);
}

/// The kernel sorts its queue only when a thread suspends.
#[test]
fn signals_wake_the_waiter_that_is_the_most_urgent_by_now() {
    let Some(stage) = Stage::set() else { return };
    let right =
        |kind, shared, holds, wakes_all| in_changed_order(&stage, kind, shared, 10, holds, (wakes_all, |own| 29 - own));
    // Of these waiters, a signal wakes the one that it is for.
    let robust = Mutex::builder().protocol(MutexProtocol::None).robustly(true);
    let protocols = [MutexProtocol::None, MutexProtocol::Protect(60)];
    for kind in protocols.map(|protocol| Mutex::builder().protocol(protocol)).into_iter().chain([robust]) {
        assert_eq!(right(kind, false, true, false), 80, "{kind:?}, signalled by the owner");
        assert_eq!(right(kind, false, false, false), 80, "{kind:?}, signalled by another thread");
    }
    // The kernel sorts these once the first signal has queued all of them at the mutex.
    assert_eq!(right(Mutex::builder(), false, true, true), 80, "inherit");
    assert_eq!(right(Mutex::builder().shared(true), true, true, true), 80, "between processes");
}

/// Eight waiters, and one broadcast by an owner that holds the mutex for a while. Returns how often the waiters
/// executed meanwhile, and the order in which they finished.
fn broadcast(stage: &Stage, kind: Builder, condvar: Condvar) -> (u64, Vec<u8>) {
    let levels = [13_u8, 17, 11, 18, 12, 16, 14, 15];
    let board = Arc::new(Board { mutex: kind.build(State::default()), condvar });
    let players: Vec<_> = levels
        .iter()
        .map(|&own| {
            let ours = Arc::clone(&board);
            let player = stage.thread(own, move || {
                let mut state = ours.mutex.lock().expect("the lock succeeds");
                while !state.over {
                    state = ours.condvar.wait(state).expect("the wait succeeds");
                }
                state.order.push(own);
            });
            until_waiting_at(player.tid, &board.condvar);
            player
        })
        .collect();
    let mut state = board.mutex.lock().expect("the lock succeeds");
    let executed = || players.iter().map(|player| suspensions(player.tid)).sum::<u64>();
    state.over = true;
    let before = executed();
    board.condvar.broadcast();
    std::thread::sleep(ms(20));
    let meanwhile = executed() - before;
    drop(state);
    players.into_iter().for_each(Player::end);
    let order = std::mem::take(&mut board.mutex.lock().expect("the lock succeeds").order);
    (meanwhile, order)
}

#[test]
fn a_broadcast_moves_waiters_without_waking_them() {
    let Some(stage) = Stage::set() else { return };
    let by_level: Vec<u8> = (11..=18).rev().collect();
    for kind in [Mutex::builder(), Mutex::builder().protocol(MutexProtocol::None)] {
        assert_eq!(broadcast(&stage, kind, Condvar::new()), (0, by_level.clone()), "{kind:?}");
    }
    // These rise to the ceiling before they request the mutex.
    let (meanwhile, order) = broadcast(&stage, Mutex::builder().protocol(MutexProtocol::Protect(60)), Condvar::new());
    assert_eq!(order, by_level);
    assert!(meanwhile >= 8, "{meanwhile}");
    // The mutant: between processes all waiters are woken.
    let (meanwhile, order) = broadcast(&stage, Mutex::builder().shared(true), Condvar::shared());
    assert_eq!(order, by_level);
    assert!(meanwhile >= 8, "{meanwhile}");
}

/// Without an owner of the mutex, one waiter is woken, and the others follow one after the other.
#[test]
fn a_broadcast_without_the_mutex_reaches_all() {
    let Some(stage) = Stage::set() else { return };
    for kind in kinds() {
        let board = Arc::new(Board { mutex: kind.build(State::default()), condvar: Condvar::new() });
        let players: Vec<_> = (11_u8..15)
            .map(|own| {
                let ours = Arc::clone(&board);
                let player = stage.thread(own, move || {
                    let mut state = ours.mutex.lock().expect("the lock succeeds");
                    while !state.over {
                        state = ours.condvar.wait(state).expect("the wait succeeds");
                    }
                });
                until_waiting_at(player.tid, &board.condvar);
                player
            })
            .collect();
        board.mutex.lock().expect("the lock succeeds").over = true;
        board.condvar.broadcast();
        players.into_iter().for_each(Player::end);
        assert!(board.mutex.try_lock().is_ok(), "{kind:?}");
    }
}

/// A signalled waiter that waits for the mutex lends its level to the owner.
#[test]
fn a_moved_waiter_lends_its_level() {
    let Some(stage) = Stage::set() else { return };
    for kind in [Mutex::builder(), Mutex::builder().robustly(true), Mutex::builder().kernel_owned(true)] {
        for all in [false, true] {
            let board = Arc::new(Board { mutex: kind.build(State::default()), condvar: Condvar::new() });
            let ours = Arc::clone(&board);
            let waiter = stage.thread(50, move || {
                let mut state = ours.mutex.lock().expect("the lock succeeds");
                while !state.over {
                    state = ours.condvar.wait(state).expect("the wait succeeds");
                }
            });
            until_waiting_at(waiter.tid, &board.condvar);
            let ours = Arc::clone(&board);
            stage
                .thread(10, move || {
                    let mut state = ours.mutex.lock().expect("the lock succeeds");
                    state.over = true;
                    assert_eq!(level(tid()), 10);
                    if all {
                        ours.condvar.broadcast();
                    } else {
                        ours.condvar.signal();
                    }
                    assert_eq!(level(tid()), 50);
                    drop(state);
                    assert_eq!(level(tid()), 10);
                })
                .end();
            waiter.end();
        }
    }
}

#[test]
fn a_wait_ends_at_its_deadline() {
    let Some(_stage) = Stage::set() else { return };
    for kind in kinds() {
        for condvar in [Condvar::new(), Condvar::shared()] {
            let mutex = kind.build(());
            let before = scheduling(tid());
            let start = Instant::now();
            let (guard, end) =
                condvar.wait_for(mutex.lock().expect("the mutex is free"), ms(3)).expect("the wait succeeds");
            assert_eq!(end, WaitEnd::TimedOut, "{kind:?}");
            assert!(start.elapsed() >= ms(3));
            assert!(matches!(mutex.try_lock(), Err(LockError::Busy)), "the wait locks the mutex again: {kind:?}");
            drop(guard);
            assert_eq!(scheduling(tid()), before);
            // A signal without a waiter is not kept.
            condvar.signal();
            condvar.broadcast();
            let (_guard, end) =
                condvar.wait_for(mutex.lock().expect("the mutex is free"), ms(1)).expect("the wait succeeds");
            assert_eq!(end, WaitEnd::TimedOut, "{kind:?}");
        }
    }
}

/// The deadline of a moved waiter passes while it waits for the mutex: the wait still ends by the signal.
#[test]
fn a_deadline_after_the_move_does_not_hide_the_signal() {
    let Some(stage) = Stage::set() else { return };
    for kind in kinds() {
        // On a busy machine a short deadline passes before the signal.
        let is_shown = [20, 100, 500, 2_500].into_iter().any(|wait_ms| {
            let board = Arc::new(Board { mutex: kind.build(State::default()), condvar: Condvar::new() });
            let ours = Arc::clone(&board);
            let start = Instant::now();
            let waiter = stage.thread(20, move || {
                let state = ours.mutex.lock().expect("the mutex is free");
                let (state, end) = ours.condvar.wait_for(state, ms(wait_ms)).expect("the wait succeeds");
                (state.over, end)
            });
            until("the thread waits, or its deadline has passed", || {
                waits_at(waiter.tid, std::ptr::from_ref(&board.condvar).addr()) || start.elapsed() > ms(wait_ms)
            });
            let mut state = board.mutex.lock().expect("the lock succeeds");
            board.condvar.signal();
            let is_in_time = start.elapsed() < ms(wait_ms);
            std::thread::sleep(ms(wait_ms + 5));
            state.over = true;
            drop(state);
            let (over, end) = waiter.end();
            assert!(!is_in_time || (over, end) == (true, WaitEnd::Woken), "{kind:?}: {over}, {end:?}");
            is_in_time
        });
        assert!(is_shown, "{kind:?}: no signal came before the deadline");
    }
}

/// One condition variable with several mutexes of different kinds, one after the other.
#[test]
fn one_condvar_serves_different_mutexes_over_time() {
    let Some(stage) = Stage::set() else { return };
    let condvar = Arc::new(Condvar::new());
    for round in 0..2 {
        for kind in kinds() {
            let mutex = Arc::new(kind.build(false));
            let (ours, c) = (Arc::clone(&mutex), Arc::clone(&condvar));
            let waiter = stage.thread(20, move || {
                let mut is_set = ours.lock().expect("the mutex is free");
                while !*is_set {
                    is_set = c.wait(is_set).expect("the wait succeeds");
                }
            });
            until_waiting_at(waiter.tid, &*condvar);
            let mut is_set = mutex.lock().expect("the lock succeeds");
            *is_set = true;
            if round == 0 {
                condvar.signal();
            }
            drop(is_set);
            if round == 1 {
                condvar.signal();
            }
            waiter.end();
        }
    }
}

/// Processes pass a token back and forth.
#[test]
fn processes_wait_for_each_other() {
    const ROUNDS: u32 = 300;
    let Some(_stage) = Stage::set() else { return };
    for protocol in PROTOCOLS {
        for robust in [false, true] {
            let kind = Mutex::builder().protocol(protocol).robustly(robust).shared(true);
            let table = Shared::new((kind.build(0_u32), Condvar::shared()));
            let play = |parity: u32| {
                let (mutex, condvar) = table.0;
                for _ in 0..ROUNDS {
                    let mut turn = mutex.lock().expect("the lock succeeds");
                    while *turn % 2 != parity {
                        let waited = condvar.wait_for(turn, Duration::from_secs(10)).expect("the wait succeeds");
                        turn = waited.0;
                        if waited.1 == WaitEnd::TimedOut && *turn % 2 != parity {
                            return false;
                        }
                    }
                    *turn += 1;
                    condvar.signal();
                }
                true
            };
            let children = [0, 1].map(|parity| Child::start(|| play(parity)));
            assert!(children.iter().all(Child::end), "{kind:?}");
            assert_eq!(*table.0.0.lock().expect("the lock succeeds"), 2 * ROUNDS);
        }
    }
}

/// A recursive mutex that was locked twice is unlocked once for the wait and stays the caller's: the wait ends all the
/// same.
#[test]
fn a_wait_with_a_mutex_locked_twice_ends() {
    let Some(_stage) = Stage::set() else { return };
    for family in [
        0,
        attributes::INHERIT,
        attributes::PROTECT,
        attributes::ROBUST,
        attributes::ROBUST | attributes::INHERIT,
        attributes::SHARED,
    ] {
        let mutex = raw_mutex(family | attributes::RECURSIVE, 60);
        let condvar = Arc::new(RawCondvar::new(false));
        for _ in 0..2 {
            mutex.lock(Limit::Never).expect("the mutex is free or already held");
        }
        let ended = condvar.wait(&mutex, Some(Deadline::after(ms(2))));
        assert_eq!(ended, Ok((Acquired::Clean, WaitEnd::TimedOut)), "{family:#x}");
        let (me, ours) = (tid(), Arc::clone(&condvar));
        let other = Player::enter(None, move || {
            until_waiting_at(me, &*ours);
            ours.signal();
        });
        let ended = condvar.wait(&mutex, Some(Deadline::after(ms(10_000))));
        assert_eq!(ended, Ok((Acquired::Clean, WaitEnd::Woken)), "{family:#x}");
        other.end();
        assert_eq!([mutex.unlock(), mutex.unlock()], [Ok(()), Ok(())]);
        assert_eq!(mutex.unlock(), Err(RawError::NotOwner), "{family:#x}");
    }
}

/// A real-time thread that was moved to the mutex counts as a real-time waiter, so automatic mode is serial.
#[test]
fn a_moved_waiter_makes_automatic_mode_serial() {
    let Some(stage) = Stage::set() else { return };
    let board = Arc::new(Board {
        mutex: Mutex::builder().protocol(MutexProtocol::None).unlock(Unlock::Auto).build(State::default()),
        condvar: Condvar::new(),
    });
    let ours = Arc::clone(&board);
    let waiter = stage.thread(20, move || {
        let state = ours.mutex.lock().expect("the mutex is free");
        ours.condvar.wait(state).expect("the wait succeeds").over = true;
    });
    until_waiting_at(waiter.tid, &board.condvar);
    let ours = Arc::clone(&board);
    let thief = stage.thread(50, move || {
        let state = ours.mutex.lock().expect("the lock succeeds");
        ours.condvar.signal();
        drop(state);
        // The waiter has not executed since.
        ours.mutex.try_lock().is_ok()
    });
    assert!(!thief.end());
    waiter.end();
    assert!(board.mutex.lock().expect("the lock succeeds").over);
}

/// In serial mode a waiter that was woken by a thread which does not hold the mutex does not overtake the heir of that
/// mutex.
#[test]
fn a_woken_waiter_does_not_steal_a_handed_mutex() {
    let Some(stage) = Stage::set() else { return };
    let kind = Mutex::builder().protocol(MutexProtocol::None).unlock(Unlock::Serial);
    let board = Arc::new(Board { mutex: kind.build(State::default()), condvar: Condvar::new() });
    let ours = Arc::clone(&board);
    let woken = stage.thread(20, move || {
        let state = ours.mutex.lock().expect("the mutex is free");
        let mut state = ours.condvar.wait(state).expect("the wait succeeds");
        state.order.push(20);
    });
    until_waiting_at(woken.tid, &board.condvar);
    let (ours, gate) = (Arc::clone(&board), Gate::default());
    let passed = gate.clone();
    let owner = stage.thread(50, move || {
        let state = ours.mutex.lock().expect("the lock succeeds");
        passed.pass();
        // No other thread executes on this processor until both are done.
        drop(state);
        ours.condvar.signal();
    });
    until("the owner holds the mutex", || board.mutex.inside().owner() == owner.tid);
    let ours = Arc::clone(&board);
    let handed = stage.thread(10, move || ours.mutex.lock().expect("the lock succeeds").order.push(10));
    until_waiting(handed.tid, board.mutex.inside());
    gate.open();
    owner.end();
    woken.end();
    handed.end();
    assert_eq!(board.mutex.lock().expect("the lock succeeds").order, [10, 20]);
}
