//! Condition variables: who is woken, when it executes, and what it lends meanwhile.

use crate::support::*;
use lockwright::mutex::{
    Acquired, Builder, Condvar, Deadline, Limit, LockError, Mutex, Protocol, RawCondvar, RawError, Unlock, WaitEnd,
    kind,
};
use std::sync::Arc;
use std::time::{Duration, Instant};

fn each_protocol() -> impl Iterator<Item = Builder> {
    PROTOCOLS.into_iter().map(|protocol| Mutex::builder().protocol(protocol).unlock(Unlock::Serial))
}

/// What waiters of the order test meet at.
struct Board {
    mutex: Mutex<State>,
    condvar: Condvar,
}

#[derive(Default)]
struct State {
    tokens: u32,
    over: bool,
    /// Levels of those that took a token, in order.
    order: Vec<u8>,
}

/// Eight waiters of eight levels; each signal takes the most urgent of those that still wait. Says how many of the signals did.
fn in_order(stage: &Stage, kind: Builder, shared: bool, rounds: usize, holds: bool) -> usize {
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
                    let mut state = ours.mutex.lock().expect("a lock");
                    while state.tokens == 0 {
                        state = ours.condvar.wait(state).expect("a wait");
                    }
                    state.tokens -= 1;
                    state.order.push(own);
                });
                until_waiting_at(player.tid, &board.condvar);
                player
            })
            .collect();
        for place in 0..levels.len() {
            let mut state = board.mutex.lock().expect("a lock");
            state.tokens += 1;
            if holds {
                board.condvar.signal();
                drop(state);
            } else {
                drop(state);
                board.condvar.signal();
            }
            until("it was woken", || board.mutex.lock().expect("a lock").order.len() > place);
        }
        players.into_iter().for_each(Player::end);
        let order = std::mem::take(&mut board.mutex.lock().expect("a lock").order);
        right += order.iter().zip((11..=18).rev()).filter(|(got, wanted)| **got == *wanted).count();
    }
    right
}

#[test]
fn signals_take_the_most_urgent() {
    let Some(stage) = Stage::set() else { return };
    for kind in each_protocol() {
        assert_eq!(in_order(&stage, kind, false, 25, true), 200, "{kind:?}, by its holder");
        assert_eq!(in_order(&stage, kind, false, 25, false), 200, "{kind:?}, by somebody else");
    }
    assert_eq!(in_order(&stage, Mutex::builder().shared(true), true, 25, true), 200, "between processes");
    assert_eq!(in_order(&stage, Mutex::builder().protocol(Protocol::None).robustly(true), false, 25, true), 200);
}

/// Eight waiters, one broadcast by a holder that keeps the mutex for a while: how often they executed meanwhile, and in what order they
/// came.
fn broadcast(stage: &Stage, kind: Builder, condvar: Condvar) -> (u64, Vec<u8>) {
    let levels = [13_u8, 17, 11, 18, 12, 16, 14, 15];
    let board = Arc::new(Board { mutex: kind.build(State::default()), condvar });
    let players: Vec<_> = levels
        .iter()
        .map(|&own| {
            let ours = Arc::clone(&board);
            let player = stage.thread(own, move || {
                let mut state = ours.mutex.lock().expect("a lock");
                while !state.over {
                    state = ours.condvar.wait(state).expect("a wait");
                }
                state.order.push(own);
            });
            until_waiting_at(player.tid, &board.condvar);
            player
        })
        .collect();
    let mut state = board.mutex.lock().expect("a lock");
    let executed = || players.iter().map(|player| suspensions(player.tid)).sum::<u64>();
    state.over = true;
    let before = executed();
    board.condvar.broadcast();
    std::thread::sleep(ms(20));
    let meanwhile = executed() - before;
    drop(state);
    players.into_iter().for_each(Player::end);
    let order = std::mem::take(&mut board.mutex.lock().expect("a lock").order);
    (meanwhile, order)
}

#[test]
fn a_broadcast_moves_and_does_not_wake() {
    let Some(stage) = Stage::set() else { return };
    let by_level: Vec<u8> = (11..=18).rev().collect();
    for kind in each_protocol() {
        assert_eq!(broadcast(&stage, kind, Condvar::new()), (0, by_level.clone()), "{kind:?}");
    }
    // The twin: between processes all are woken.
    let (meanwhile, order) = broadcast(&stage, Mutex::builder().shared(true), Condvar::shared());
    assert_eq!(order, by_level);
    assert!(meanwhile >= 8, "{meanwhile}");
}

/// Nobody holds the mutex: one is woken, the others come one after the other.
#[test]
fn a_broadcast_without_the_mutex_reaches_all() {
    let Some(stage) = Stage::set() else { return };
    for kind in kinds() {
        let board = Arc::new(Board { mutex: kind.build(State::default()), condvar: Condvar::new() });
        let players: Vec<_> = (11_u8..15)
            .map(|own| {
                let ours = Arc::clone(&board);
                let player = stage.thread(own, move || {
                    let mut state = ours.mutex.lock().expect("a lock");
                    while !state.over {
                        state = ours.condvar.wait(state).expect("a wait");
                    }
                });
                until_waiting_at(player.tid, &board.condvar);
                player
            })
            .collect();
        board.mutex.lock().expect("a lock").over = true;
        board.condvar.broadcast();
        players.into_iter().for_each(Player::end);
        assert!(board.mutex.try_lock().is_ok(), "{kind:?}");
    }
}

/// Who was signalled and waits for the mutex lends its level to the holder.
#[test]
fn a_moved_waiter_lends_its_level() {
    let Some(stage) = Stage::set() else { return };
    for kind in [Mutex::builder(), Mutex::builder().robustly(true), Mutex::builder().kernel_owned(true)] {
        for all in [false, true] {
            let board = Arc::new(Board { mutex: kind.build(State::default()), condvar: Condvar::new() });
            let ours = Arc::clone(&board);
            let waiter = stage.thread(50, move || {
                let mut state = ours.mutex.lock().expect("a lock");
                while !state.over {
                    state = ours.condvar.wait(state).expect("a wait");
                }
            });
            until_waiting_at(waiter.tid, &board.condvar);
            let ours = Arc::clone(&board);
            stage
                .thread(10, move || {
                    let mut state = ours.mutex.lock().expect("a lock");
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
            let (guard, end) = condvar.wait_for(mutex.lock().expect("free"), ms(3)).expect("a wait");
            assert_eq!(end, WaitEnd::TimedOut, "{kind:?}");
            assert!(start.elapsed() >= ms(3));
            assert!(matches!(mutex.try_lock(), Err(LockError::Busy)), "it is held again: {kind:?}");
            drop(guard);
            assert_eq!(scheduling(tid()), before);
            // A signal nobody waits for is not kept.
            condvar.signal();
            condvar.broadcast();
            let (_guard, end) = condvar.wait_for(mutex.lock().expect("free"), ms(1)).expect("a wait");
            assert_eq!(end, WaitEnd::TimedOut, "{kind:?}");
        }
    }
}

/// A deadline passes while the waiter, which was moved, waits for the mutex: the signal was for it.
#[test]
fn a_deadline_in_the_wait_for_the_mutex_is_not_one_of_the_signal() {
    let Some(stage) = Stage::set() else { return };
    for kind in kinds() {
        let board = Arc::new(Board { mutex: kind.build(State::default()), condvar: Condvar::new() });
        let ours = Arc::clone(&board);
        let start = Instant::now();
        let waiter = stage.thread(20, move || {
            let state = ours.mutex.lock().expect("free");
            let (state, end) = ours.condvar.wait_for(state, ms(20)).expect("a wait");
            assert!(state.over, "the mutex is held");
            end
        });
        until_waiting_at(waiter.tid, &board.condvar);
        let mut state = board.mutex.lock().expect("a lock");
        board.condvar.signal();
        let late = start.elapsed() > ms(20);
        std::thread::sleep(ms(25));
        state.over = true;
        drop(state);
        let end = waiter.end();
        // Where the machine was so busy that the deadline passed before the signal there is nothing to be said.
        assert!(end == WaitEnd::Woken || late, "{kind:?}");
    }
}

/// One condition variable, one mutex after another, of several kinds.
#[test]
fn it_serves_different_mutexes_over_time() {
    let Some(stage) = Stage::set() else { return };
    let condvar = Arc::new(Condvar::new());
    for round in 0..2 {
        for kind in kinds() {
            let mutex = Arc::new(kind.build(false));
            let (ours, c) = (Arc::clone(&mutex), Arc::clone(&condvar));
            let waiter = stage.thread(20, move || {
                let mut is_set = ours.lock().expect("free");
                while !*is_set {
                    is_set = c.wait(is_set).expect("a wait");
                }
            });
            until_waiting_at(waiter.tid, &*condvar);
            let mut is_set = mutex.lock().expect("a lock");
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

/// Processes hand a token back and forth.
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
                    let mut turn = mutex.lock().expect("a lock");
                    while *turn % 2 != parity {
                        let waited = condvar.wait_for(turn, Duration::from_secs(10)).expect("a wait");
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
            assert_eq!(*table.0.0.lock().expect("a lock"), 2 * ROUNDS);
        }
    }
}

/// A recursive mutex that was taken twice is given back once for the wait, and is the caller's all the time: the wait ends all the same.
#[test]
fn a_mutex_taken_twice_does_not_hold_its_owner_up() {
    let Some(_stage) = Stage::set() else { return };
    for family in [0, kind::INHERIT, kind::PROTECT, kind::ROBUST, kind::ROBUST | kind::INHERIT, kind::SHARED] {
        let mutex = raw_mutex(family | kind::RECURSIVE, 60);
        let condvar = Arc::new(RawCondvar::new(false));
        for _ in 0..2 {
            mutex.lock(Limit::Never).expect("free, or its own");
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

/// A real-time thread that was moved to the mutex counts as one that waits: automatic is serial then.
#[test]
fn what_was_moved_makes_automatic_serial() {
    let Some(stage) = Stage::set() else { return };
    let board = Arc::new(Board {
        mutex: Mutex::builder().protocol(Protocol::None).unlock(Unlock::Auto).build(State::default()),
        condvar: Condvar::new(),
    });
    let ours = Arc::clone(&board);
    let waiter = stage.thread(20, move || {
        let state = ours.mutex.lock().expect("free");
        ours.condvar.wait(state).expect("a wait").over = true;
    });
    until_waiting_at(waiter.tid, &board.condvar);
    let ours = Arc::clone(&board);
    let thief = stage.thread(50, move || {
        let state = ours.mutex.lock().expect("a lock");
        ours.condvar.signal();
        drop(state);
        // The waiter has not executed since.
        ours.mutex.try_lock().is_ok()
    });
    assert!(!thief.end());
    waiter.end();
    assert!(board.mutex.lock().expect("a lock").over);
}

/// In serial mode a waiter that is woken by somebody who does not hold the mutex does not come before the one it was handed to.
#[test]
fn who_is_woken_does_not_take_what_was_handed_to_another() {
    let Some(stage) = Stage::set() else { return };
    let kind = Mutex::builder().protocol(Protocol::None).unlock(Unlock::Serial);
    let board = Arc::new(Board { mutex: kind.build(State::default()), condvar: Condvar::new() });
    let ours = Arc::clone(&board);
    let woken = stage.thread(20, move || {
        let state = ours.mutex.lock().expect("free");
        let mut state = ours.condvar.wait(state).expect("a wait");
        state.order.push(20);
    });
    until_waiting_at(woken.tid, &board.condvar);
    let (ours, gate) = (Arc::clone(&board), Gate::default());
    let passed = gate.clone();
    let owner = stage.thread(50, move || {
        let state = ours.mutex.lock().expect("a lock");
        passed.pass();
        // Nobody else executes on this processor until both are done.
        drop(state);
        ours.condvar.signal();
    });
    until("it has it", || board.mutex.inside().owner() == owner.tid);
    let ours = Arc::clone(&board);
    let handed = stage.thread(10, move || ours.mutex.lock().expect("a lock").order.push(10));
    until_waiting(handed.tid, board.mutex.inside());
    gate.open();
    owner.end();
    woken.end();
    handed.end();
    assert_eq!(board.mutex.lock().expect("a lock").order, [10, 20]);
}
