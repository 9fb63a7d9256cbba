//! No signal gets lost, whatever deadlines, interruptions and other signals come beside it.

use crate::support::*;
use lockwright::mutex::{Builder, Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

struct Store {
    tokens: Mutex<u64>,
    filled: Condvar,
}

/// Producers give one signal a token, by turns with and without the mutex; consumers wait, some of them with deadlines that race with the
/// signals. The deadlines give up, so that a lost signal leaves a token, and one that waits for it for ever: the last wait has a long limit.
fn tokens_pass(kind: Builder, condvar: Condvar, tokens: u64) {
    const CONSUMERS: u64 = 4;
    let store = Arc::new(Store { tokens: kind.build(0), filled: condvar });
    let (taken, stuck) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let consumers: Vec<_> = (0..CONSUMERS)
        .map(|seed| {
            let (store, taken, stuck) = (Arc::clone(&store), Arc::clone(&taken), Arc::clone(&stuck));
            Player::enter(None, move || {
                let mut chance = Chance::new(seed + 3);
                // ORDERING: Relaxed, here and below: counts.
                while taken.load(Ordering::Relaxed) < tokens {
                    let mut left = store.tokens.lock().expect("a lock");
                    if *left == 0 {
                        // Half of them never give up by themselves before a lost signal shows.
                        let patient = seed % 2 == 0;
                        let limit = if patient { ms(3_000) } else { Duration::from_micros(chance.below(150)) };
                        let (guard, end) = store.filled.wait_for(left, limit).expect("a wait");
                        left = guard;
                        // A token that was there for so long, and nobody was told of it.
                        let is_late = end == lockwright::mutex::WaitEnd::TimedOut;
                        stuck.fetch_add(u64::from(patient && is_late && *left > 0), Ordering::Relaxed);
                    }
                    if *left > 0 {
                        *left -= 1;
                        if taken.fetch_add(1, Ordering::Relaxed) + 1 == tokens {
                            store.filled.broadcast();
                        }
                    }
                }
            })
        })
        .collect();
    let producers: Vec<_> = (0..2)
        .map(|seed| {
            let store = Arc::clone(&store);
            Player::enter(None, move || {
                let mut chance = Chance::new(seed + 17);
                for _ in 0..tokens / 2 {
                    let mut left = store.tokens.lock().expect("a lock");
                    *left += 1;
                    if chance.below(2) == 0 {
                        store.filled.signal();
                        drop(left);
                    } else {
                        drop(left);
                        store.filled.signal();
                    }
                    match chance.below(4) {
                        0 => spin(Duration::from_micros(chance.below(80))),
                        1 => std::thread::yield_now(),
                        _ => {}
                    }
                }
            })
        })
        .collect();
    producers.into_iter().for_each(Player::end);
    consumers.into_iter().for_each(Player::end);
    assert_eq!(stuck.load(Ordering::Relaxed), 0, "{kind:?}: a signal was lost");
    assert_eq!(taken.load(Ordering::Relaxed), tokens, "{kind:?}");
    assert_eq!(*store.tokens.lock().expect("a lock"), 0, "{kind:?}");
}

#[test]
fn no_signal_gets_lost() {
    let Some(_stage) = Stage::set() else { return };
    for kind in kinds() {
        tokens_pass(kind, Condvar::new(), 300);
    }
    for kind in kinds().into_iter().step_by(5) {
        tokens_pass(kind, Condvar::shared(), 300);
    }
}

/// Every ping has its pong: each side waits without a deadline, so one lost signal ends it all.
#[test]
fn two_threads_wait_for_each_other() {
    const ROUNDS: u64 = 400;
    let Some(_stage) = Stage::set() else { return };
    for kind in kinds() {
        let table = Arc::new((kind.build(0_u64), [Condvar::new(), Condvar::new()]));
        let players = [0, 1].map(|parity| {
            let table = Arc::clone(&table);
            Player::enter(None, move || {
                for _ in 0..ROUNDS {
                    let mut turn = table.0.lock().expect("a lock");
                    while *turn % 2 != parity {
                        turn = table.1[parity as usize].wait(turn).expect("a wait");
                    }
                    *turn += 1;
                    if *turn % 3 == 0 {
                        drop(turn);
                    }
                    table.1[1 - parity as usize].signal();
                }
            })
        });
        players.into_iter().for_each(Player::end);
        assert_eq!(*table.0.lock().expect("a lock"), 2 * ROUNDS, "{kind:?}");
    }
}

/// Signals of the operating system end waits, and nothing else.
#[test]
fn interruptions_end_waits_and_nothing_else() {
    extern "C" fn nothing(_signal: i32) {}
    let Some(_stage) = Stage::set() else { return };
    // SAFETY: all zeros is a valid action without SA_RESTART; the handler does nothing.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as *const () as usize;
        libc::sigaction(libc::SIGUSR2, &raw const action, std::ptr::null_mut());
    }
    for kind in kinds() {
        let store = Arc::new((kind.build(0_u64), Condvar::new()));
        let ours = Arc::clone(&store);
        let waiter = Player::enter(None, move || {
            let mut rounds = 0_u64;
            let mut guard = ours.0.lock().expect("a lock");
            while *guard < 40 {
                guard = ours.1.wait(guard).expect("a wait");
                assert!(matches!(ours.0.try_lock(), Err(lockwright::mutex::LockError::Busy)), "{kind:?}");
                rounds += 1;
            }
            rounds
        });
        for _ in 0..40 {
            // SAFETY: the thread ends only after the last of the increments below.
            unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), waiter.tid, libc::SIGUSR2) };
            let mut guard = store.0.lock().expect("a lock");
            *guard += 1;
            store.1.signal();
        }
        assert!(waiter.end() <= 81, "{kind:?}");
        assert!(store.0.try_lock().is_ok(), "{kind:?}");
    }
}

/// A waiter leaves, and its mutex goes, while somebody signals who does not hold it. Touched afterwards, it ends the process.
#[test]
fn a_signal_does_not_touch_a_mutex_that_is_gone() {
    let Some(_stage) = Stage::set() else { return };
    for protocol in PROTOCOLS {
        let (condvar, over) = (Arc::new(Condvar::new()), Arc::new(AtomicU64::new(0)));
        let signals = Player::enter(None, {
            let (condvar, over) = (Arc::clone(&condvar), Arc::clone(&over));
            move || {
                while over.load(Ordering::Relaxed) == 0 {
                    condvar.signal();
                    condvar.broadcast();
                }
            }
        });
        let mut chance = Chance::new(3);
        for _ in 0..4_000 {
            let shared = Shared::new(Mutex::builder().protocol(protocol).build(()));
            let guard = shared.0.lock().expect("free");
            let (guard, _) = condvar.wait_for(guard, Duration::from_micros(chance.below(30))).expect("a wait");
            drop(guard);
        }
        over.store(1, Ordering::Relaxed);
        signals.end();
    }
}
