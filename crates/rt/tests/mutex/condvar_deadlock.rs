//! Cycles of owners through a wait for a condition: a waiter that is woken into a cycle gets the error, a waiter that
//! was moved into one is found, and no cycle is reported that does not exist.

use crate::support::*;
use lockwright::mutex::{
    Builder, Condvar, Cycle, FifoMutex, Guard, LockError, Mutex, MutexProtocol, RawMutex, WaitEnd,
};
use lockwright::once::Once;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longer than any step here takes, and shorter than the watchdog.
const LONG: Duration = Duration::from_secs(16);
const SHORT: Duration = Duration::from_secs(8);

/// The mutexes of a waiter: the one it keeps, and the one it waits with.
struct Board {
    kept: Mutex<()>,
    shown: Mutex<()>,
    condvar: Condvar,
}

impl Board {
    fn new(kept: Builder, shown: Builder) -> Arc<Self> {
        Arc::new(Self { kept: kept.build(()), shown: shown.build(()), condvar: Condvar::new() })
    }
}

#[derive(PartialEq, Eq, Debug)]
enum End {
    Came,
    TimedOut,
    Deadlock(Option<Cycle>),
}

fn end_of<T>(result: Result<T, LockError<'_, ()>>) -> End {
    match result {
        Ok(_) => End::Came,
        Err(LockError::TimedOut) => End::TimedOut,
        Err(LockError::Deadlock { cycle }) => End::Deadlock(cycle.map(|cycle| *cycle)),
        Err(error) => panic!("{error}"),
    }
}

/// Starts a thread that holds one mutex and waits for a signal with the other.
fn waiter(board: &Arc<Board>) -> Player<End> {
    let ours = Arc::clone(board);
    let player = Player::enter(None, move || {
        let _kept = ours.kept.lock().expect("the mutex is free");
        let shown = ours.shown.lock().expect("the mutex is free");
        match ours.condvar.wait_for(shown, LONG) {
            Ok((_, WaitEnd::TimedOut)) => End::TimedOut,
            ended => end_of(ended.map(drop)),
        }
    });
    until_waiting_at(player.tid, &board.condvar);
    player
}

/// Locks within `limit`, if there is one. A wait with a limit is not part of a deadlock, because it ends by itself.
fn lock_within(mutex: &Mutex<()>, limit: Option<Duration>) -> Result<Guard<'_, ()>, LockError<'_, ()>> {
    limit.map_or_else(|| mutex.lock(), |limit| mutex.lock_for(limit))
}

/// Starts a thread that locks the mutex that the waiter waits with, calls `first`, and requests the mutex that the
/// waiter holds.
fn opponent(board: &Arc<Board>, limit: Option<Duration>, first: impl FnOnce(&Condvar) + Send + 'static) -> Player<End> {
    let ours = Arc::clone(board);
    Player::enter(None, move || {
        let _shown = ours.shown.lock().expect("the mutex is free");
        first(&ours.condvar);
        end_of(lock_within(&ours.kept, limit))
    })
}

fn unchecked(protocol: MutexProtocol) -> Builder {
    Mutex::builder().protocol(protocol).check_deadlocks(false)
}

fn named(cycle: &Cycle) -> Vec<(u32, usize)> {
    cycle.links().iter().map(|link| (link.thread, link.mutex)).collect()
}

fn address(mutex: &RawMutex) -> usize {
    std::ptr::from_ref(mutex).addr()
}

/// The kernel refuses to let a waiter wait for a mutex whose owner waits for the waiter's mutex. The waiter is woken
/// all the same, and gets the error.
#[test]
fn a_signal_into_a_cycle_reaches_the_waiter() {
    let Some(_stage) = Stage::set() else { return };
    let kinds = [unchecked(MutexProtocol::Inherit), unchecked(MutexProtocol::Inherit).robustly(true), Mutex::builder()];
    for (kept, shown) in kinds.into_iter().flat_map(|kept| kinds.map(|shown| (kept, shown))) {
        for all in [false, true] {
            let board = Board::new(kept, shown);
            let (waiter, start) = (waiter(&board), Instant::now());
            let opponent = opponent(&board, None, |_| ());
            until_waiting(opponent.tid, board.kept.inside());
            if all {
                board.condvar.broadcast();
            } else {
                board.condvar.signal();
            }
            let told = waiter.end();
            assert!(start.elapsed() < SHORT, "{kept:?}, {shown:?}, all: {all}: the signal woke no waiter");
            assert!(matches!(told, End::Deadlock(_)), "{kept:?}, {shown:?}: {told:?}");
            assert_eq!(opponent.end(), End::Came, "the waiter unlocked its mutex");
        }
    }
}

/// The same if the waiter holds a FIFO mutex, or executes an initialiser, for which the opponent waits.
#[test]
fn a_signal_reaches_a_waiter_that_holds_another_kind_of_lock() {
    type Locks = (FifoMutex<()>, Once, Mutex<()>, Condvar);
    let Some(_stage) = Stage::set() else { return };
    for initialises in [false, true] {
        let (fifo, once) = (FifoMutex::new(()), Once::new());
        let board: Arc<Locks> = Arc::new((fifo, once, unchecked(MutexProtocol::Inherit).build(()), Condvar::new()));
        let enter = |body: fn(&Locks, bool) -> End| {
            let board = Arc::clone(&board);
            Player::enter(None, move || body(&board, initialises))
        };
        let waiter = enter(|(fifo, once, shown, condvar), initialises| {
            let waits = || match condvar.wait_for(shown.lock().expect("the mutex is free"), LONG) {
                Ok((_, WaitEnd::TimedOut)) => End::TimedOut,
                ended => end_of(ended.map(drop)),
            };
            let mut end = End::TimedOut;
            if initialises {
                once.call(|| end = waits()).expect("it returns");
            } else {
                let _kept = fifo.lock().expect("the mutex is free");
                end = waits();
            }
            end
        });
        until_waiting_at(waiter.tid, &board.3);
        let start = Instant::now();
        let opponent = enter(|(fifo, once, shown, _), initialises| {
            let _shown = shown.lock().expect("the mutex is free");
            match initialises {
                true => once.call(|| ()).map_err(drop),
                false => fifo.lock_for(LONG).map(drop).map_err(drop),
            }
            .map_or(End::TimedOut, |()| End::Came)
        });
        if initialises {
            // It waits at a word that no test knows.
            until("the opponent locks", || board.2.inside().owner() == opponent.tid);
            std::thread::sleep(ms(100));
        } else {
            until_waiting_in(opponent.tid, &board.0);
        }
        board.3.signal();
        let told = waiter.end();
        assert!(start.elapsed() < SHORT, "initialises: {initialises}: the signal woke no waiter");
        assert_ne!(told, End::TimedOut);
        drop(opponent.end());
    }
}

/// A waiter that holds no other mutex is still served by the kernel.
#[test]
fn a_waiter_without_another_mutex_is_given_the_mutex() {
    let Some(stage) = Stage::set() else { return };
    for kept in [unchecked(MutexProtocol::None), unchecked(MutexProtocol::Inherit)] {
        let board = Board::new(kept, unchecked(MutexProtocol::Inherit));
        let nests = kept == unchecked(MutexProtocol::Inherit);
        let waiter = waiter(&board);
        let ours = Arc::clone(&board);
        let tid = waiter.tid;
        // The waiter is not a real-time thread, and this one keeps its processor: only the kernel can make the waiter
        // the owner.
        let is_given = stage
            .thread(50, move || {
                pin_other(tid, cpus()[0]);
                ours.condvar.signal();
                ours.shown.inside().owner() == tid
            })
            .end();
        assert_eq!(waiter.end(), End::Came);
        assert_eq!(is_given, !nests, "{kept:?}");
    }
}

fn pin_other(tid: u32, cpu: usize) {
    // SAFETY: all zeros is an empty set, `cpu` is within it, and it is valid for reading.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(tid as libc::pid_t, size_of::<libc::cpu_set_t>(), &raw const set);
    }
}

fn checked_kinds() -> impl Iterator<Item = Builder> {
    let kinds = [MutexProtocol::None, MutexProtocol::Protect(60)].map(|protocol| Mutex::builder().protocol(protocol));
    kinds.into_iter().flat_map(|kind| UNLOCKS.map(|unlock| kind.unlock(unlock)))
}

/// The owner's signal moves the waiter to the mutex; then the owner requests the mutex that the waiter holds. (A waiter
/// of a mutex with a ceiling is woken instead, and either thread may close the cycle; see below.)
#[test]
fn a_cycle_through_a_moved_waiter_is_found() {
    let Some(_stage) = Stage::set() else { return };
    let moved = UNLOCKS.map(|unlock| Mutex::builder().protocol(MutexProtocol::None).unlock(unlock));
    for shown in moved.into_iter().chain([Mutex::builder()]) {
        let board = Board::new(Mutex::builder().protocol(MutexProtocol::None), shown);
        let waiter = waiter(&board);
        let opponent = opponent(&board, None, Condvar::signal);
        let (ours, waits) = (opponent.tid, waiter.tid);
        let told = opponent.end();
        let End::Deadlock(Some(cycle)) = told else { panic!("{shown:?}: {told:?}") };
        assert_eq!(named(&cycle), [(ours, address(board.kept.inside())), (waits, address(board.shown.inside()))]);
        assert_eq!(waiter.end(), End::Came, "the waiter gets both in the end");
    }
}

/// The mutant: a waiter without a signal waits for the signal, not for the mutex.
#[test]
fn a_waiter_that_was_not_moved_closes_no_cycle() {
    let Some(_stage) = Stage::set() else { return };
    for shown in checked_kinds().chain([Mutex::builder()]) {
        let board = Board::new(Mutex::builder().protocol(MutexProtocol::None), shown);
        let waiter = waiter(&board);
        assert_eq!(opponent(&board, Some(ms(30)), |_| ()).end(), End::TimedOut, "{shown:?}");
        board.condvar.signal();
        assert_eq!(waiter.end(), End::Came);
    }
}

/// Two threads wait, and one is moved or woken; the other still waits for a signal. A request for the first waiter's
/// mutex closes a cycle, and one of the two threads gets the error. A request for the other waiter's mutex does not.
#[test]
fn of_two_waiters_the_moved_one_closes_a_cycle() {
    let Some(stage) = Stage::set() else { return };
    for shown in checked_kinds() {
        for asks_for_moved in [false, true] {
            let kept = Mutex::builder().protocol(MutexProtocol::None);
            let boards = Arc::new(([kept.build(()), kept.build(())], shown.build(()), Condvar::new()));
            let waiters = [30, 20].map(|level| {
                let ours = Arc::clone(&boards);
                let player = stage.thread(level, move || {
                    let _kept = ours.0[usize::from(level == 20)].lock().expect("the mutex is free");
                    let shown = ours.1.lock().expect("the mutex is free");
                    end_of(ours.2.wait(shown).map(drop))
                });
                until_waiting_at(player.tid, &boards.2);
                player
            });
            let ours = Arc::clone(&boards);
            let opponent = Player::enter(None, move || {
                let _shown = ours.1.lock().expect("the mutex is free");
                // The more urgent waiter is moved.
                ours.2.signal();
                let limit = (!asks_for_moved).then(|| ms(30));
                end_of(lock_within(&ours.0[usize::from(!asks_for_moved)], limit))
            });
            let start = Instant::now();
            let told = opponent.end();
            boards.2.broadcast();
            let [moved, other] = waiters.map(Player::end);
            assert!(start.elapsed() < SHORT, "{shown:?}: no thread got the error");
            assert_eq!(other, End::Came, "{shown:?}");
            if asks_for_moved {
                let cycle = match (&told, &moved) {
                    (End::Deadlock(Some(cycle)), End::Came) | (End::Came, End::Deadlock(Some(cycle))) => cycle,
                    both => panic!("{shown:?}: {both:?}"),
                };
                assert_eq!(cycle.links().len(), 2);
            } else {
                assert_eq!((told, moved), (End::TimedOut, End::Came), "{shown:?}");
            }
        }
    }
}

/// A broadcast by a thread without the mutex wakes the first waiter and moves the second, for which the mutex's owner
/// waits.
#[test]
fn a_move_by_another_thread_is_checked_for_cycles() {
    let Some(stage) = Stage::set() else { return };
    for shown in checked_kinds() {
        let board = Board::new(Mutex::builder().protocol(MutexProtocol::None), shown);
        let ours = Arc::clone(&board);
        let first = stage.thread(30, move || {
            let shown = ours.shown.lock().expect("the mutex is free");
            end_of(ours.condvar.wait(shown).map(drop))
        });
        until_waiting_at(first.tid, &board.condvar);
        let (second, start) = (waiter(&board), Instant::now());
        let opponent = opponent(&board, None, |_| ());
        until_waiting(opponent.tid, board.kept.inside());
        board.condvar.broadcast();
        let told = second.end();
        assert!(start.elapsed() < SHORT, "{shown:?}: no thread got the error");
        let End::Deadlock(Some(cycle)) = told else { panic!("{shown:?}: {told:?}") };
        assert_eq!(cycle.links().len(), 2);
        assert_eq!((opponent.end(), first.end()), (End::Came, End::Came), "{shown:?}");
    }
}

/// A waiter whose deadline passed requests the mutex like any other thread, and is then on the cycle.
#[test]
fn a_waiter_that_timed_out_finds_the_cycle() {
    let Some(_stage) = Stage::set() else { return };
    let board =
        Board::new(Mutex::builder().protocol(MutexProtocol::None), Mutex::builder().protocol(MutexProtocol::None));
    let ours = Arc::clone(&board);
    let late = Player::enter(None, move || {
        let _kept = ours.kept.lock().expect("the mutex is free");
        let shown = ours.shown.lock().expect("the mutex is free");
        end_of(ours.condvar.wait_for(shown, ms(1_000)).map(drop))
    });
    until_waiting_at(late.tid, &board.condvar);
    let opponent = opponent(&board, None, |_| ());
    assert!(matches!(late.end(), End::Deadlock(Some(_))));
    assert_eq!(opponent.end(), End::Came);
}
