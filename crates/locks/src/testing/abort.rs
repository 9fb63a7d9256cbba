//! Who gives up leaves; the others are served; who comes back is served too.

use super::run::{Arc, thread};
use crate::{Abortable, Priority, Slot, SpinLock};
use std::vec::Vec;

/// Whoever waits for a lock that stays held gives up, and is served when it is free.
#[allow(unsafe_code)]
pub(crate) fn gives_up_while_held<A: Abortable + Send + Sync + 'static>() {
    let lock = SpinLock::<A, ()>::new(());
    // SAFETY: this thread has both numbers, and no test claims slots while this one runs.
    let (one, two) = unsafe { (Slot::new(0), Slot::new(1)) };
    for _ in 0..3 {
        let held = lock.lock_with(A::request(&one, Priority(1)));
        for looks in 0..3 {
            let mut left = looks;
            let waits = || {
                left -= 1;
                left < 0
            };
            assert!(lock.lock_until(A::request(&two, Priority(2)), waits).is_none());
        }
        drop(held);
        assert!(lock.lock_until(A::request(&two, Priority(2)), || false).is_some());
        drop(lock.lock_with(A::request(&one, Priority(1))));
    }
}

/// `threads` threads, of which the odd ones give up after a few looks and try again; all are served `rounds` times.
#[allow(unsafe_code)]
pub(crate) fn everyone_else_is_served<A: Abortable + Send + Sync + 'static>(threads: usize, rounds: usize) {
    let lock = Arc::new(SpinLock::<A, usize>::new(0));
    let all: Vec<_> = (0..threads)
        .map(|index| {
            let lock = Arc::clone(&lock);
            thread::spawn(move || {
                // SAFETY: each thread has a number of its own, and no test claims slots while this one runs.
                let slot = unsafe { Slot::new(index) };
                for round in 0..rounds {
                    let request = A::request(&slot, Priority((index + round) as u32 % 3));
                    if index % 2 == 1 {
                        let mut left = round % 3;
                        let gives_up = || {
                            left = left.saturating_sub(1);
                            left == 0
                        };
                        if let Some(mut guard) = lock.lock_until(request, gives_up) {
                            *guard += 1;
                            continue;
                        }
                    }
                    *lock.lock_with(request) += 1;
                }
            })
        })
        .collect();
    all.into_iter().for_each(|thread| thread.join().expect("a thread that ends"));
    // SAFETY: the others have ended.
    let slot = unsafe { Slot::new(0) };
    assert_eq!(*lock.lock_with(A::request(&slot, Priority(0))), threads * rounds);
}

/// The checks of giving up for one algorithm.
macro_rules! abort {
    ($algorithm:ty) => {
        mod gives_up {
            #[allow(unused_imports)]
            use super::*;
            use $crate::testing::{checks, run::Effort};

            #[test]
            fn while_held() {
                checks::explore(Effort { preemptions: 2, schedules: 1 }, checks::gives_up_while_held::<$algorithm>);
            }

            #[test]
            fn and_the_others_are_served() {
                let (threads, rounds) = if cfg!(lockwright_loom) { (2, 1) } else { (5, 20) };
                let effort = Effort { preemptions: 2, schedules: 200 };
                checks::explore(effort, move || checks::everyone_else_is_served::<$algorithm>(threads, rounds));
            }
        }
    };
}

pub(crate) use abort;
