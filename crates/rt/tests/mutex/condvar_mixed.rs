//! Condition variables with different sorts of waiters: with two mutexes, and with a wait that is refused.

use crate::support::*;
use lockwright::mutex::{Acquired, Deadline, Limit, RawCondvar, RawError, RawMutex, WaitEnd, attributes};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const FAMILIES: [u32; 6] = [
    0,
    attributes::SERIAL,
    attributes::INHERIT,
    attributes::PROTECT,
    attributes::ROBUST,
    attributes::ROBUST | attributes::INHERIT,
];

fn pairs() -> impl Iterator<Item = (u32, u32)> {
    FAMILIES.into_iter().flat_map(|first| FAMILIES.map(|second| (first, second)))
}

fn mutex_of(family: u32, more: u32) -> Arc<RawMutex> {
    Arc::new(raw_mutex(family | more, 60))
}

/// A thread that locks the mutex several times and waits. The gate is open once it has unlocked everything.
struct Sleeper {
    player: Player<()>,
    is_over: Gate,
}

impl Sleeper {
    /// Starts a sleeper, and returns once it waits.
    fn lie_down(condvar: &Arc<RawCondvar>, mutex: &Arc<RawMutex>, times: usize) -> Self {
        let (ours, their, is_over) = (Arc::clone(condvar), Arc::clone(mutex), Gate::default());
        let over = is_over.clone();
        let player = Player::enter(None, move || {
            for _ in 0..times {
                their.lock(Limit::Never).expect("the mutex is free or already held");
            }
            assert_eq!(ours.wait(&their, None), Ok((Acquired::Clean, WaitEnd::Woken)));
            for _ in 0..times {
                their.unlock().expect("the caller holds it");
            }
            over.open();
        });
        until_waiting_at(player.tid, &**condvar);
        Self { player, is_over }
    }

    #[track_caller]
    fn wakes(self, what: &str) {
        until(what, || self.is_over.is_open());
        self.player.end();
    }
}

/// A signal or a broadcast, by a thread that holds the mutex or one that does not.
fn wake(condvar: &RawCondvar, mutex: &RawMutex, all: bool, holds: bool) {
    if holds {
        mutex.lock(Limit::Never).expect("the lock succeeds");
    }
    if all {
        condvar.broadcast();
    } else {
        condvar.signal();
    }
    if holds {
        mutex.unlock().expect("the caller holds it");
    }
}

const WAYS: [(bool, bool); 4] = [(false, false), (false, true), (true, false), (true, true)];

/// Two mutexes are used with one condition variable. After its waiter timed out, the memory of one mutex is freed:
/// signals do not read it, and wake the waiter of the other.
#[test]
fn a_mutex_may_be_freed_while_others_wait() {
    let Some(_stage) = Stage::beside_others() else { return };
    for (stays, goes) in pairs() {
        for (all, holds) in WAYS {
            for goes_first in [false, true] {
                let what = format!("{stays:#x} stays, {goes:#x} goes; all {all}, holds {holds}, first {goes_first}");
                let (condvar, mutex) = (Arc::new(RawCondvar::new(false)), mutex_of(stays, attributes::ERROR_CHECK));
                let mut sleeper = (!goes_first).then(|| Sleeper::lie_down(&condvar, &mutex, 1));
                let ours = Arc::clone(&condvar);
                let leaver = Player::enter(None, move || {
                    let memory = Shared::new(raw_mutex(goes | attributes::ERROR_CHECK, 60));
                    memory.0.lock(Limit::Never).expect("the mutex is free");
                    let ended = ours.wait(memory.0, Some(Deadline::after(ms(3))));
                    memory.0.unlock().expect("the caller holds it");
                    ended
                });
                if goes_first {
                    sleeper = Some(Sleeper::lie_down(&condvar, &mutex, 1));
                }
                assert_eq!(leaver.end(), Ok((Acquired::Clean, WaitEnd::TimedOut)), "{what}");
                wake(&condvar, &mutex, all, holds);
                sleeper.expect("the sleeper waits").wakes(&what);
            }
        }
    }
}

/// A broadcast wakes the waiters of both mutexes.
#[test]
fn a_broadcast_reaches_the_waiters_of_two_mutexes() {
    let Some(_stage) = Stage::beside_others() else { return };
    for (first, second) in pairs() {
        for holds in [false, true] {
            let what = format!("{first:#x}, then {second:#x}; holds {holds}");
            let condvar = Arc::new(RawCondvar::new(false));
            let mutexes = [first, second].map(|family| mutex_of(family, attributes::ERROR_CHECK));
            let sleepers = [0, 1, 0, 1].map(|place: usize| Sleeper::lie_down(&condvar, &mutexes[place], 1));
            wake(&condvar, &mutexes[0], true, holds);
            for sleeper in sleepers {
                sleeper.wakes(&what);
            }
            assert!(!condvar.is_waited_for(), "{what}");
        }
    }
}

/// The owner of a recursive mutex, locked twice, keeps it while it waits, beside a waiter that unlocked its mutex: one
/// broadcast of a third thread wakes both.
#[test]
fn a_broadcast_reaches_waiters_that_keep_and_that_unlock_their_mutex() {
    let Some(_stage) = Stage::beside_others() else { return };
    for family in FAMILIES {
        let (condvar, mutex) = (Arc::new(RawCondvar::new(false)), mutex_of(family, attributes::RECURSIVE));
        // The waiter that keeps the mutex comes last, because no other thread could lock it afterwards.
        let sleepers = [1, 1, 2].map(|times| Sleeper::lie_down(&condvar, &mutex, times));
        wake(&condvar, &mutex, true, false);
        for sleeper in sleepers {
            sleeper.wakes(&format!("{family:#x}"));
        }
        assert_eq!(mutex.lock(Limit::Now), Ok(Acquired::Clean), "{family:#x}");
        assert_eq!(mutex.unlock(), Ok(()));
    }
}

/// A wait that is refused, because the caller does not hold the mutex, leaves the waiters of another mutex reachable by
/// signals.
#[test]
fn a_refused_wait_hides_no_waiter() {
    let Some(_stage) = Stage::beside_others() else { return };
    for (waits, is_refused) in pairs() {
        for (all, holds) in WAYS {
            let what = format!("{waits:#x} waits, {is_refused:#x} is refused; all {all}, holds {holds}");
            let (condvar, mutex) = (Arc::new(RawCondvar::new(false)), mutex_of(waits, attributes::ERROR_CHECK));
            let other = mutex_of(is_refused, attributes::ERROR_CHECK);
            assert_eq!(condvar.wait(&other, None), Err(RawError::NotOwner), "{what}");
            let sleeper = Sleeper::lie_down(&condvar, &mutex, 1);
            assert_eq!(condvar.wait(&other, None), Err(RawError::NotOwner), "{what}");
            assert!(!other.is_in_use(), "{what}");
            wake(&condvar, &mutex, all, holds);
            sleeper.wakes(&what);
            assert!(!condvar.is_waited_for(), "{what}");
        }
    }
}

/// Inheriting mutexes, combined with waiters that are not moved: their mutex is of this family and locked this many
/// times. Such waiters lock their mutex themselves, even if they were the first to wait.
const WITH: [u32; 2] = [attributes::INHERIT, attributes::ROBUST | attributes::INHERIT];
const BESIDE: [(u32, usize); 4] = [
    (attributes::ROBUST, 1),
    (attributes::RECURSIVE, 2),
    (attributes::INHERIT | attributes::RECURSIVE, 2),
    (attributes::SHARED | attributes::INHERIT, 1),
];

/// The kernel gives an inheriting mutex to some waiters, and others are woken and lock theirs, in every order. Each
/// signal wakes at least one, and one signal for each waiter, or one broadcast, leaves none.
#[test]
fn each_signal_reaches_a_waiter_of_either_sort() {
    const WAITERS: usize = 4;
    let Some(_stage) = Stage::beside_others() else { return };
    let families = WITH.into_iter().flat_map(|with| BESIDE.map(|beside| (with, beside)));
    for ((with, (beside, times)), order) in
        families.flat_map(|family| (0..1 << WAITERS).map(move |order| (family, order)))
    {
        for (all, holds) in WAYS {
            let what = format!(
                "{with:#x}, beside {beside:#x} taken {times} times, order {order:#b}; all {all}, holds {holds}"
            );
            let (condvar, mutex) = (Arc::new(RawCondvar::new(false)), mutex_of(with, attributes::ERROR_CHECK));
            let sleepers = [0, 1, 2, 3].map(|place: usize| match order >> place & 1 {
                0 => Sleeper::lie_down(&condvar, &mutex, 1),
                _ => Sleeper::lie_down(&condvar, &mutex_of(beside, 0), times),
            });
            for signals in 1..=WAITERS {
                if signals == 1 || !all {
                    wake(&condvar, &mutex, all, holds);
                }
                until(&what, || sleepers.iter().filter(|sleeper| sleeper.is_over.is_open()).count() >= signals);
            }
            for sleeper in sleepers {
                sleeper.wakes(&what);
            }
            assert!(!condvar.is_waited_for(), "{what}");
        }
    }
}

/// The same with waiters that come and go: each token is signalled to one waiter, of either mutex. Some may have
/// deadlines that race with the signals. A patient waiter that finds a token at the end of its wait has missed the
/// signal.
#[test]
fn no_signal_gets_lost_between_two_mutexes() {
    const TOKENS: u64 = 1_000;
    const LOST_AFTER: Duration = Duration::from_secs(3);
    let Some(stage) = Stage::set() else { return };
    let pairs =
        [(0, attributes::ROBUST), (1, attributes::SHARED | attributes::INHERIT), (0, attributes::INHERIT), (1, 0)];
    for ((with, beside), patient) in pairs.into_iter().flat_map(|pair| [(pair, 6), (pair, 2)]) {
        let mutexes = Arc::new([mutex_of(WITH[with], 0), mutex_of(beside, 0)]);
        let condvar = Arc::new(RawCondvar::new(false));
        // Tokens not yet consumed, consumed, and lost.
        let counts = Arc::new([const { AtomicU64::new(0) }; 3]);
        let players: Vec<_> = (0..6_u8)
            .map(|number| {
                let (mutexes, condvar, counts) = (Arc::clone(&mutexes), Arc::clone(&condvar), Arc::clone(&counts));
                // All have one level, so that the first to come is served first, however it waits.
                stage.thread(11, move || {
                    let [left, taken, lost] = &*counts;
                    let (mutex, mut chance) = (&mutexes[usize::from(number % 2)], Chance::new(u64::from(number) + 5));
                    // ORDERING: Relaxed, here and below: a thread that adds a token holds both mutexes.
                    while taken.load(Ordering::Relaxed) < TOKENS && lost.load(Ordering::Relaxed) == 0 {
                        mutex.lock(Limit::Never).expect("the lock succeeds");
                        let take = |left: u64| left.checked_sub(1);
                        let mut has = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok();
                        if !has {
                            let is_patient = number < patient;
                            let limit = if is_patient { LOST_AFTER } else { Duration::from_micros(chance.below(300)) };
                            let start = Instant::now();
                            condvar.wait(mutex, Some(Deadline::after(limit))).expect("the wait succeeds");
                            has = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok();
                            let is_lost = has && start.elapsed() >= LOST_AFTER;
                            lost.fetch_add(u64::from(is_lost), Ordering::Relaxed);
                        }
                        mutex.unlock().expect("the caller holds it");
                        if has && taken.fetch_add(1, Ordering::Relaxed) + 1 == TOKENS {
                            condvar.broadcast();
                        }
                    }
                })
            })
            .collect();
        let mut chance = Chance::new(1);
        for _ in 0..TOKENS {
            mutexes.iter().for_each(|mutex| _ = mutex.lock(Limit::Never).expect("the lock succeeds"));
            counts[0].fetch_add(1, Ordering::Relaxed);
            let signals_inside = chance.below(2) == 0;
            if signals_inside {
                condvar.signal();
            }
            mutexes.iter().for_each(|mutex| mutex.unlock().expect("the caller holds it"));
            if !signals_inside {
                condvar.signal();
            }
            spin(Duration::from_micros(chance.below(40)));
        }
        players.into_iter().for_each(Player::end);
        let counts = [0, 1, 2].map(|place| counts[place].load(Ordering::Relaxed));
        assert_eq!(counts, [0, TOKENS, 0], "left, taken, lost: {:#x} and {beside:#x}, {patient} patient", WITH[with]);
    }
}

/// One broadcast wakes more waiters than the kernel is asked in rounds, beside one to which it gives the mutex.
#[test]
fn a_broadcast_reaches_many_waiters_of_either_sort() {
    const MANY: u64 = 1_200;
    let _watchdog = watch(Duration::from_secs(60));
    let (condvar, mutex) = (Arc::new(RawCondvar::new(false)), mutex_of(attributes::INHERIT, attributes::ERROR_CHECK));
    // Waiting, and back.
    let counts = Arc::new([const { AtomicU64::new(0) }; 2]);
    let players: Vec<_> = (0..=MANY)
        .map(|number| {
            let (condvar, mutex, counts) = (Arc::clone(&condvar), Arc::clone(&mutex), Arc::clone(&counts));
            let body = move || {
                // A waiter that holds another mutex is woken. The last one holds none.
                let other = mutex_of(attributes::INHERIT, 0);
                if number < MANY {
                    other.lock(Limit::Never).expect("the mutex is free");
                }
                mutex.lock(Limit::Never).expect("the lock succeeds");
                counts[0].fetch_add(1, Ordering::Relaxed);
                let ended = condvar.wait(&mutex, Some(Deadline::after(Duration::from_secs(20))));
                mutex.unlock().expect("the caller holds it");
                if number < MANY {
                    other.unlock().expect("the caller holds it");
                }
                counts[1].fetch_add(u64::from(ended == Ok((Acquired::Clean, WaitEnd::Woken))), Ordering::Relaxed);
            };
            std::thread::Builder::new().stack_size(64 << 10).spawn(body).expect("the thread starts")
        })
        .collect();
    until("all wait", || counts[0].load(Ordering::Relaxed) == MANY + 1);
    // A counted waiter holds the mutex until it waits; then it suspends.
    mutex.lock(Limit::Never).expect("the lock succeeds");
    mutex.unlock().expect("the caller holds it");
    std::thread::sleep(ms(200));
    condvar.broadcast();
    let start = Instant::now();
    while counts[1].load(Ordering::Relaxed) <= MANY && start.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(ms(1));
    }
    let back = counts[1].load(Ordering::Relaxed);
    condvar.broadcast();
    players.into_iter().for_each(|player| player.join().expect("the thread does not panic"));
    assert_eq!(back, MANY + 1, "all waiters returned");
}
