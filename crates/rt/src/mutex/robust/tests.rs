//! The words of robust mutexes, in states that a test from outside could reach only by ending a thread at a certain
//! instruction.

use super::*;
use crate::mutex::word::{DIED, WAITERS};
use crate::mutex::{Builder, Limit, MutexProtocol};
use lockwright_sys::futex::{self, Deadline};

/// A locked robust mutex, whose word holds the owner and no waiters.
fn taken() -> RawMutex {
    // SAFETY: it stays where it is until all threads have unlocked it.
    let robust = unsafe { Builder::new().protocol(MutexProtocol::None).robust(true) };
    let mutex = robust.check_deadlocks(false).build_raw();
    assert_eq!(mutex.lock(Limit::Never), Ok(Acquired::Clean));
    mutex
}

/// A mutex released with a dead owner's mark keeps WAITERS, so that the next owner wakes others even if the word has
/// lost track of them.
#[test]
fn a_mutex_of_a_dead_owner_still_announces_waiters() {
    let mutex = taken();
    mutex.word.store(gettid().0 | WAITERS, Ordering::Relaxed);
    assert_eq!(mutex.release_dead(mutex.attributes()), Ok(()));
    assert_eq!(mutex.word.load(Ordering::Relaxed), DIED | WAITERS);
    assert_eq!(mutex.lock(Limit::Now), Ok(Acquired::OwnerDied));
    assert_eq!(mutex.make_consistent(), Ok(()));
    assert_eq!(mutex.unlock(), Ok(()));
    assert!(mutex.is_free(), "nobody waited");
}

/// Waiters sleep that the word no longer announces, because the owner ended between its unlock and its wake-up. Once
/// the mutex is not recoverable, the thread that finds this wakes them.
#[test]
fn unlocking_a_not_recoverable_mutex_wakes_all_waiters() {
    let mutex = taken();
    std::thread::scope(|scope| {
        let waiters =
            [0, 1].map(|_| scope.spawn(|| mutex.lock(Limit::At(Deadline::after(std::time::Duration::from_secs(5))))));
        let is_waited_for = || futex::has_waiters(RawMutex::scope(mutex.attributes()), &mutex.word);
        while !is_waited_for() {
            std::thread::yield_now();
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
        mutex.state.store(NOT_RECOVERABLE, Ordering::Relaxed);
        // The state after a dead owner freed the mutex and another thread locked it: no WAITERS.
        mutex.word.store(gettid().0, Ordering::Relaxed);
        assert_eq!(mutex.unlock(), Ok(()));
        for waiter in waiters {
            assert_eq!(waiter.join().expect("the thread does not panic"), Err(RawError::NotRecoverable));
        }
    });
}
