//! Semaphores.

use crate::support::*;
use lockwright::mutex::{Clock, Deadline, Limit};
use lockwright::semaphore::{Semaphore, SemaphoreError};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

const LONG: Duration = Duration::from_secs(20);

type Acquires = fn(&Semaphore, Limit) -> Result<(), SemaphoreError>;

/// Threads of all levels on all processors take the units of a semaphore, and give up now and then. Returns whether
/// never more threads had a unit than there are units, and none was lost.
fn stress(acquires: Acquires, threads: u32, units: u32, rounds: u64) -> bool {
    let Some(_stage) = Stage::set_for(Duration::from_secs(120)) else { return true };
    let shared = Arc::new((Semaphore::new(units), AtomicU32::new(0), AtomicBool::new(true)));
    let cpus = cpus();
    let players: Vec<_> = (0..threads)
        .map(|index| {
            let shared = Arc::clone(&shared);
            Player::enter(Some((10 + index as u8, cpus[index as usize % cpus.len()])), move || {
                let (semaphore, inside, is_right) = &*shared;
                let mut chance = Chance::new(u64::from(index) + 1);
                for _ in 0..rounds {
                    let limit = match chance.below(8) {
                        0 => Limit::Now,
                        1 | 2 => Limit::At(Deadline::after(Duration::from_micros(chance.below(60)))),
                        _ => Limit::Never,
                    };
                    match acquires(semaphore, limit) {
                        // ORDERING: SeqCst: a count that other threads compare.
                        Ok(()) => {
                            if inside.fetch_add(1, Ordering::SeqCst) >= units {
                                is_right.store(false, Ordering::SeqCst);
                            }
                            spin(Duration::from_micros(chance.below(4)));
                            inside.fetch_sub(1, Ordering::SeqCst);
                            semaphore.release().expect("a unit that was there");
                        }
                        Err(error) => assert!(matches!(error, SemaphoreError::Empty | SemaphoreError::TimedOut)),
                    }
                    if chance.below(16) == 0 {
                        std::thread::sleep(Duration::from_micros(chance.below(100)));
                    }
                }
            })
        })
        .collect();
    players.into_iter().for_each(Player::end);
    let (semaphore, _, is_right) = &*shared;
    is_right.load(Ordering::SeqCst) && semaphore.available() == units && !semaphore.is_waited_for()
}

#[test]
fn no_unit_is_lost_or_used_twice() {
    assert!(stress(Semaphore::acquire_within, 8, 1, 4_000));
    assert!(stress(Semaphore::acquire_within, 8, 3, 4_000));
    assert!(stress(Semaphore::acquire_within, 3, 1, 10_000));
}

/// The mutant: a time-out counts as a unit.
#[test]
fn a_unit_too_many_is_noticed() {
    let lies: Acquires = |semaphore, limit| match semaphore.acquire_within(limit) {
        Err(SemaphoreError::TimedOut) => Ok(()),
        acquired => acquired,
    };
    if Stage::set().is_some() {
        assert!(!stress(lies, 8, 1, 4_000));
    }
}

fn waiter<T: Send + 'static>(
    stage: &Stage,
    level: u8,
    semaphore: &Arc<Semaphore>,
    then: impl FnOnce() -> T + Send + 'static,
) -> Player<T> {
    let ours = Arc::clone(semaphore);
    let player = stage.thread(level, move || {
        ours.acquire_for(LONG).expect("a unit comes");
        then()
    });
    until_waiting_in(player.tid, &**semaphore);
    player
}

#[test]
fn the_most_urgent_waiter_is_served_first() {
    let Some(stage) = Stage::set() else { return };
    for at_once in [false, true] {
        let semaphore = Arc::new(Semaphore::new(0));
        // A served thread takes a number and does nothing else before: one that allocated or locked a mutex could
        // block, and a thread of the same level would come first.
        let next = Arc::new(AtomicUsize::new(0));
        let waiters: Vec<_> = [20, 40, 30, 40, 10, 30]
            .into_iter()
            .map(|level| {
                let place = Arc::new(AtomicUsize::new(usize::MAX));
                let (next, own) = (Arc::clone(&next), Arc::clone(&place));
                let take = move || own.store(next.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
                (waiter(&stage, level, &semaphore, take), place)
            })
            .collect();
        if at_once {
            assert_eq!(semaphore.release_many(6), Ok(()));
        } else {
            (1..7).for_each(|count| {
                assert_eq!(semaphore.release(), Ok(()));
                until("it is served", || next.load(Ordering::Relaxed) == count);
            });
        }
        let place = |(waiter, place): (Player<()>, Arc<AtomicUsize>)| {
            waiter.end();
            place.load(Ordering::Relaxed)
        };
        let places: Vec<usize> = waiters.into_iter().map(place).collect();
        assert_eq!(places, [4, 0, 2, 1, 5, 3], "at once: {at_once}");
    }
}

/// The waiter cannot execute meanwhile: it is less urgent, on the same processor.
#[test]
fn a_later_thread_cannot_take_a_unit_that_was_handed_over() {
    let Some(stage) = Stage::set() else { return };
    let semaphore = Arc::new(Semaphore::new(0));
    let waiters = [10, 12].map(|level| waiter(&stage, level, &semaphore, || ()));
    let urgent = stage.thread(30, {
        let semaphore = Arc::clone(&semaphore);
        move || {
            assert_eq!(semaphore.release(), Ok(()));
            assert_eq!(semaphore.try_acquire(), Err(SemaphoreError::Empty));
            assert_eq!(semaphore.acquire_for(ms(0)), Err(SemaphoreError::TimedOut));
            assert!(semaphore.is_waited_for());
            assert_eq!(semaphore.release_many(3), Ok(()));
            assert_eq!(semaphore.available(), 2, "what the waiters do not need is free");
            assert_eq!([(); 3].map(|()| semaphore.try_acquire().is_ok()), [true, true, false]);
        }
    });
    urgent.end();
    waiters.into_iter().for_each(Player::end);
    assert!(!semaphore.is_waited_for());
}

#[test]
fn too_many_units_are_refused() {
    let semaphore = Semaphore::new(u32::MAX);
    assert_eq!(semaphore.available(), Semaphore::MAX);
    assert_eq!(semaphore.release(), Err(SemaphoreError::Overflow));
    assert_eq!(semaphore.release_many(u32::MAX), Err(SemaphoreError::Overflow));
    assert_eq!(semaphore.release_many(0), Ok(()));
    assert_eq!(semaphore.try_acquire(), Ok(()));
    assert_eq!(semaphore.release_many(2), Err(SemaphoreError::Overflow));
    assert_eq!(semaphore.release(), Ok(()));
    assert_eq!(semaphore.available(), Semaphore::MAX);
}

#[test]
fn waits_end_at_their_deadline_and_not_with_a_signal() {
    let _watchdog = watch(Duration::from_secs(60));
    let_interrupt(libc::SIGUSR1);
    let semaphore = Arc::new(Semaphore::new(0));
    for clock in [Clock::Monotonic, Clock::Realtime] {
        let start = Instant::now();
        let now_ns = match clock {
            Clock::Monotonic => Deadline::after(Duration::ZERO).at_ns,
            Clock::Realtime => SystemTime::UNIX_EPOCH.elapsed().expect("after 1970").as_nanos() as u64,
        };
        let waiter = Player::enter(None, {
            let semaphore = Arc::clone(&semaphore);
            move || semaphore.acquire_until(Deadline { clock, at_ns: now_ns + 100_000_000 })
        });
        until_waiting_in(waiter.tid, &*semaphore);
        for _ in 0..20 {
            // SAFETY: the call takes integers. The thread has not been joined, so the id is its own.
            unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), waiter.tid, libc::SIGUSR1) };
            std::thread::sleep(ms(1));
        }
        assert_eq!(waiter.end(), Err(SemaphoreError::TimedOut));
        assert!(start.elapsed() >= ms(99));
    }
    assert_eq!(semaphore.release(), Ok(()));
    assert_eq!(semaphore.available(), 1, "those who gave up are not counted");
}

/// A thread acquires the last unit and unmaps the semaphore at once, while the releasing thread returns. Returns
/// whether the process survives.
fn survives_freeing(release: fn(&Semaphore) -> Result<(), SemaphoreError>) -> bool {
    const ROUNDS: usize = 20_000;
    let child = Child::start(|| {
        let (send, receive) = std::sync::mpsc::sync_channel::<&'static Semaphore>(0);
        let releaser = std::thread::spawn(move || receive.iter().for_each(|semaphore| _ = release(semaphore)));
        for round in 0..ROUNDS {
            // Never dropped: this thread unmaps the memory, or the releasing thread is still there.
            let memory = std::mem::ManuallyDrop::new(Shared::new(Semaphore::new(0)));
            send.send(memory.0).expect("the other thread receives");
            if round % 2 == 0 {
                spin(Duration::from_micros(round as u64 % 8));
            }
            memory.0.acquire().expect("a unit comes");
            drop(std::mem::ManuallyDrop::into_inner(memory));
        }
        drop(send);
        releaser.join().is_ok()
    });
    child.status() == 0
}

#[test]
fn the_thread_that_gets_the_last_unit_may_free_the_memory() {
    let _watchdog = watch(Duration::from_secs(100));
    assert!(survives_freeing(Semaphore::release));
    // The mutant looks once more after the release.
    assert!(!survives_freeing(|semaphore| {
        semaphore.release()?;
        std::thread::sleep(Duration::from_micros(100));
        semaphore.is_waited_for();
        Ok(())
    }));
}

#[test]
fn processes_share_a_semaphore() {
    const ROUNDS: u32 = 20_000;
    let _watchdog = watch(Duration::from_secs(60));
    let shared = Shared::new((Semaphore::shared(0), Semaphore::shared(0)));
    let child = Child::start(|| (0..ROUNDS).all(|_| shared.0.0.acquire().is_ok() && shared.0.1.release().is_ok()));
    for _ in 0..ROUNDS {
        assert_eq!(shared.0.0.release(), Ok(()));
        assert_eq!(shared.0.1.acquire_for(LONG), Ok(()));
    }
    assert!(child.end());
}

#[test]
fn a_child_process_forgets_the_waiters_of_its_parent() {
    let _watchdog = watch(Duration::from_secs(60));
    let semaphore = Arc::new(Semaphore::new(0));
    let waiters: Vec<_> = (0..3)
        .map(|_| {
            let semaphore = Arc::clone(&semaphore);
            Player::enter(None, move || semaphore.acquire_for(LONG))
        })
        .collect();
    waiters.iter().for_each(|waiter| until_waiting_in(waiter.tid, &*semaphore));
    let ours = Arc::clone(&semaphore);
    let child = Child::start(move || {
        let is_released = ours.release().is_ok() && ours.available() == 1;
        is_released && ours.try_acquire().is_ok() && ours.acquire_for(ms(1)) == Err(SemaphoreError::TimedOut)
    });
    assert!(child.end());
    assert_eq!(semaphore.release_many(3), Ok(()));
    waiters.into_iter().for_each(|waiter| assert_eq!(waiter.end(), Ok(())));
    assert_eq!(semaphore.available(), 0);
}
