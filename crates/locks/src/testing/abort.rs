//! A waiter that gives up leaves, the others are served, and it is served when it returns.

use super::exclusion::Count;
use super::run::{Arc, thread};
use crate::{Abortable, Priority, Slot, SpinLock};
use std::vec::Vec;

/// A waiter for a lock that stays held gives up, and is served when the lock is free.
#[allow(unsafe_code)]
pub(crate) fn gives_up_while_held<A: Abortable + Send + Sync + 'static>() {
    let lock = SpinLock::<A, ()>::new(());
    // SAFETY: only this thread uses the lock.
    let (one, two) = unsafe { (Slot::new(0), Slot::new(1)) };
    for _ in 0..3 {
        let held = lock.lock_with(A::request(&one, Priority::new(1)));
        for checks in 0..3 {
            let mut left = checks;
            let waits = || {
                left -= 1;
                left < 0
            };
            assert!(lock.lock_until(A::request(&two, Priority::new(2)), waits).is_none(), "it is held");
        }
        drop(held);
        assert!(lock.lock_until(A::request(&two, Priority::new(2)), || false).is_some());
        drop(lock.lock_with(A::request(&one, Priority::new(1))));
    }
}

/// Threads request the lock `rounds` times each; the odd ones give up after a few checks and try again.
///
/// All are served, one at a time. A thread that is served while it gives up counts.
#[allow(unsafe_code)]
pub(crate) fn everyone_else_is_served<A: Abortable + Send + Sync + 'static>(threads: usize, rounds: usize) {
    let lock = Arc::new(SpinLock::<A, Count>::new(Count::new()));
    let work = move |lock: &SpinLock<A, Count>, index: usize| {
        // SAFETY: each thread has its own number, and only they use the lock.
        let slot = unsafe { Slot::new(index) };
        for round in 0..rounds {
            let request = A::request(&slot, Priority::new((index + round) as u32 % 3));
            let mut left = round % 3;
            let gives_up = || {
                left = left.saturating_sub(1);
                left == 0
            };
            let in_time = if index % 2 == 1 { lock.lock_until(request, gives_up) } else { None };
            in_time.unwrap_or_else(|| lock.lock_with(request)).add_one();
        }
    };
    let others: Vec<_> = (1..threads)
        .map(|index| {
            let lock = Arc::clone(&lock);
            thread::spawn(move || work(&lock, index))
        })
        .collect();
    work(&lock, 0);
    others.into_iter().for_each(|other| other.join().expect("the thread ends"));
    // SAFETY: the other threads have ended.
    let slot = unsafe { Slot::new(0) };
    assert_eq!(lock.lock_with(A::request(&slot, Priority::new(0))).get(), threads * rounds, "the count is off");
}
