//! The words of robust mutexes, in states that a test from outside could reach only by ending a thread at a certain
//! instruction.

use super::*;
use crate::mutex::word::{DIED, HANDED, WAITERS};
use crate::mutex::{Builder, Limit, MutexProtocol, Unlock};
use lockwright_sys::futex::{self, Deadline};
use lockwright_sys::robust::unlocks_in_one_step;

/// A locked robust mutex, whose word holds the owner and no waiters.
fn taken() -> RawMutex {
    taken_of(Unlock::Auto)
}

fn free_of(unlock: Unlock) -> RawMutex {
    // SAFETY: it stays where it is until all threads have unlocked it.
    let robust = unsafe { Builder::new().protocol(MutexProtocol::None).robust(true) };
    robust.unlock(unlock).check_deadlocks(false).build_raw()
}

fn taken_of(unlock: Unlock) -> RawMutex {
    let mutex = free_of(unlock);
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

/// A waiter that was woken ends while another thread has the mutex. That thread wakes the next one, because the word
/// still announces it.
#[test]
fn a_running_thread_that_locks_an_open_mutex_remembers_the_others() {
    let mutex = taken_of(Unlock::Parallel);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| mutex.lock(Limit::At(Deadline::after(std::time::Duration::from_secs(5)))));
        while !futex::has_waiters(RawMutex::scope(mutex.attributes()), &mutex.word) {
            std::thread::yield_now();
        }
        // The state after an unlock whose wake-up went to a thread that ended at once.
        mutex.handed_at.store(OPEN, Ordering::Relaxed);
        mutex.word.store(HANDED, Ordering::Relaxed);
        assert_eq!(mutex.lock(Limit::Now), Ok(Acquired::Clean), "an open mutex is free for all");
        assert_eq!(mutex.word.load(Ordering::Relaxed), gettid().0 | WAITERS);
        assert_eq!(mutex.unlock(), Ok(()));
        assert_eq!(waiter.join().expect("the thread does not panic"), Ok(Acquired::Clean));
    });
}

/// A real-time waiter was killed, and its count with it. The next unlock without sleepers forgets the count.
#[test]
fn an_unlock_without_sleepers_forgets_killed_waiters() {
    for unlock in [Unlock::Auto, Unlock::Serial, Unlock::Parallel] {
        let mutex = taken_of(unlock);
        mutex.word.store(gettid().0 | WAITERS, Ordering::Relaxed);
        mutex.urgent.store(3, Ordering::Relaxed);
        assert_eq!(mutex.unlock(), Ok(()));
        assert!(mutex.is_free(), "{unlock:?}");
        assert_eq!(mutex.urgent.load(Ordering::Relaxed), 0, "{unlock:?}");
    }
}

/// A mutex is finished that was locked or taken out of the list without a call.
#[test]
fn what_was_begun_at_once_is_finished() {
    let mutex = free_of(Unlock::Auto);
    assert_eq!(mutex.lock(Limit::Now), Ok(Acquired::Clean));
    let list = List::of_this_thread().expect("the C library registered a list");
    for waiters in [0, WAITERS] {
        // The states after `unlock_at_once` of a word that announces no waiter, or one that has ended meanwhile.
        list.begin(&mutex.node, false);
        list.remove(&mutex.node);
        mutex.word.store(gettid().0 | waiters, Ordering::Relaxed);
        assert_eq!(mutex.finish_unlock(AtOnce::Begun), Ok(()));
        assert!(mutex.is_free());
        assert_eq!(mutex.lock(Limit::Now), Ok(Acquired::Clean));
    }
    assert_eq!(mutex.unlock(), Ok(()));
    mutex.state.store(NOT_RECOVERABLE, Ordering::Relaxed);
    for _ in 0..2 {
        let came = mutex.lock_at_once();
        assert_ne!(came, AtOnce::Done);
        assert_eq!(mutex.finish_lock(came, Limit::Now), Err(RawError::NotRecoverable));
        assert!(mutex.is_free());
    }
}

/// Mutexes are linked and unlinked in every order, at once and otherwise.
#[test]
fn mutexes_are_unlocked_in_any_order() {
    let mutexes: [_; 3] = std::array::from_fn(|_| free_of(Unlock::Auto));
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    // Twice, so that a link that was left behind would be followed.
    for order in orders.into_iter().chain(orders) {
        for mutex in &mutexes {
            assert_eq!(mutex.lock(Limit::Now), Ok(Acquired::Clean));
        }
        for mutex in order.map(|index: usize| &mutexes[index]) {
            assert_eq!(mutex.unlock(), Ok(()));
        }
        assert!(mutexes.iter().all(RawMutex::is_free));
    }
    // The last one is the first of the list, and needs no call where the layout of the C library is known.
    let mutex = &mutexes[0];
    assert_eq!(mutex.lock(Limit::Now), Ok(Acquired::Clean));
    let came = mutex.unlock_at_once();
    assert_eq!(came == AtOnce::Done, lockwright_sys::block::block().is_some() && !unlocks_in_one_step());
    assert_eq!(if came == AtOnce::Done { Ok(()) } else { mutex.finish_unlock(came) }, Ok(()));
    assert!(mutex.is_free());
}
