//! What becomes of the words of robust mutexes, where a test from outside would have to end a thread at a certain instruction.

use super::*;
use crate::mutex::word::{DIED, WAITERS};
use crate::mutex::{Builder, Limit, Protocol};
use lockwright_sys::futex::{self, Deadline};

/// One that is taken, with a word that says so, and nothing of waiters.
fn taken() -> RawMutex {
    // SAFETY: it stays where it is until all have unlocked it.
    let robust = unsafe { Builder::new().protocol(Protocol::None).robust(true) };
    let mutex = robust.check_deadlocks(false).build_raw();
    assert_eq!(mutex.lock(Limit::Never), Ok(Acquired::Clean));
    mutex
}

/// Given back as one of a dead owner: who takes it next wakes others, though nobody says of them that they wait.
#[test]
fn one_of_the_dead_goes_on_saying_that_others_wait() {
    let mutex = taken();
    mutex.word.store(gettid().0 | WAITERS, Ordering::Relaxed);
    assert_eq!(mutex.release_dead(mutex.kind()), Ok(()));
    assert_eq!(mutex.word.load(Ordering::Relaxed), DIED | WAITERS);
    assert_eq!(mutex.lock(Limit::Now), Ok(Acquired::OwnerDied));
    assert_eq!(mutex.make_consistent(), Ok(()));
    assert_eq!(mutex.unlock(), Ok(()));
    assert!(mutex.is_free(), "nobody was there");
}

/// A waiter sleeps of which the word says nothing any more, for the owner ended between giving back and waking: where the mutex is not recoverable it is
/// woken by whoever finds that.
#[test]
fn who_finds_that_it_is_lost_wakes_all() {
    let mutex = taken();
    std::thread::scope(|scope| {
        let waiters =
            [0, 1].map(|_| scope.spawn(|| mutex.lock(Limit::At(Deadline::after(std::time::Duration::from_secs(5))))));
        let is_waited_for = || futex::has_waiters(RawMutex::scope(mutex.kind()), &mutex.word);
        while !is_waited_for() {
            std::thread::yield_now();
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
        mutex.state.store(NOT_RECOVERABLE, Ordering::Relaxed);
        // As the dead left it, and somebody else took it: no WAITERS.
        mutex.word.store(gettid().0, Ordering::Relaxed);
        assert_eq!(mutex.unlock(), Ok(()));
        for waiter in waiters {
            assert_eq!(waiter.join().expect("a thread"), Err(RawError::NotRecoverable));
        }
    });
}
