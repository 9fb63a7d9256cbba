//! One at a time; each sees what the last one wrote; all get it.

use super::run::{Arc, thread};
use crate::{Algorithm, Priority, Slot, SpinLock};
use std::vec::Vec;

/// A number that only the holder may touch. In loom, two at once is a failure by itself.
#[cfg(lockwright_loom)]
pub(super) struct Count(super::run::UnsafeCell<usize>);

#[cfg(lockwright_loom)]
#[allow(unsafe_code)]
impl Count {
    pub(super) fn new() -> Self {
        Self(super::run::UnsafeCell::new(0))
    }
    pub(super) fn add_one(&mut self) {
        // SAFETY: borrowed mutably; loom checks that the lock made it so.
        self.0.with_mut(|count| unsafe { *count += 1 });
    }
    pub(super) fn get(&mut self) -> usize {
        // SAFETY: as above.
        self.0.with(|count| unsafe { *count })
    }
}

#[cfg(not(lockwright_loom))]
pub(super) struct Count(usize);

#[cfg(not(lockwright_loom))]
impl Count {
    pub(super) fn new() -> Self {
        Self(0)
    }
    /// Reads, lets others run, writes: whoever is inside too makes it lose.
    pub(super) fn add_one(&mut self) {
        let seen = core::hint::black_box(self.0);
        thread::yield_now();
        self.0 = core::hint::black_box(seen + 1);
    }
    pub(super) fn get(&mut self) -> usize {
        self.0
    }
}

/// `threads` threads, one of them this one, take the lock `rounds` times each.
#[allow(unsafe_code)]
pub(crate) fn excludes<A: Algorithm + Send + Sync + 'static>(threads: usize, rounds: usize) {
    let lock = Arc::new(SpinLock::<A, Count>::new(Count::new()));
    let work = move |lock: &SpinLock<A, Count>, index: usize| {
        // SAFETY: each thread has a number of its own, and no test claims slots while this one runs.
        let slot = unsafe { Slot::new(index) };
        for round in 0..rounds {
            let request = A::request(&slot, Priority((index ^ round) as u32));
            // Every third tries first, as users do.
            let mut guard = match (index + round) % 3 {
                2 => lock.try_lock_with(request).unwrap_or_else(|| lock.lock_with(request)),
                _ => lock.lock_with(request),
            };
            guard.add_one();
        }
    };
    let others: Vec<_> = (1..threads)
        .map(|index| {
            let lock = Arc::clone(&lock);
            thread::spawn(move || work(&lock, index))
        })
        .collect();
    work(&lock, 0);
    others.into_iter().for_each(|other| other.join().expect("a thread that ends"));
    // SAFETY: the others have ended.
    let slot = unsafe { Slot::new(0) };
    assert_eq!(lock.lock_with(A::request(&slot, Priority(0))).get(), threads * rounds, "the count is off");
}

/// Real threads with jitter: more of them than cores, sections and pauses of random length.
#[allow(unsafe_code)]
pub(crate) fn torture<A: Algorithm + Send + Sync + 'static>(threads: usize, rounds: usize, seed: u64) {
    std::eprintln!("seed {seed}");
    let lock = Arc::new(SpinLock::<A, (usize, usize)>::new((0, 0)));
    let others: Vec<_> = (0..threads)
        .map(|index| {
            let lock = Arc::clone(&lock);
            thread::spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed + index as u64);
                // SAFETY: each thread has a number of its own, and no test claims slots while this one runs.
                let slot = unsafe { Slot::new(index) };
                for _ in 0..rounds {
                    let mut guard = lock.lock_with(A::request(&slot, Priority(random.u32(0..4))));
                    guard.0 += 1;
                    jitter(&mut random);
                    guard.1 += 1;
                    assert_eq!(guard.0, guard.1, "somebody else is inside");
                    drop(guard);
                    jitter(&mut random);
                }
            })
        })
        .collect();
    others.into_iter().for_each(|other| other.join().expect("a thread that ends"));
    // SAFETY: the others have ended.
    let slot = unsafe { Slot::new(0) };
    assert_eq!(*lock.lock_with(A::request(&slot, Priority(0))), (threads * rounds, threads * rounds));
}

fn jitter(random: &mut fastrand::Rng) {
    match random.u8(..) {
        0..4 => thread::yield_now(),
        4..64 => (0..random.u32(0..200)).for_each(|_| core::hint::spin_loop()),
        _ => {}
    }
}

/// The checks of exclusion for one algorithm, and their twins. Loom explores executions of so many preemptions at most, with two threads and with
/// three: fewer where a lock takes many steps.
macro_rules! exclusion {
    ($algorithm:ty) => {
        $crate::testing::exclusion!($algorithm, 5, 2);
    };
    ($algorithm:ty, $with_two:literal, $with_three:literal) => {
        #[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
        mod on_real_threads {
            #[allow(unused_imports)]
            use super::*;
            use $crate::testing::checks::{self, TWO_INSIDE, caught};

            type Lock = $algorithm;

            #[test]
            fn excludes() {
                checks::excludes::<Lock>(2, 2_000);
                checks::excludes::<Lock>(5, 400);
            }

            #[test]
            fn survives_torture() {
                checks::torture::<Lock>(4, 10_000, 7);
            }

            /// For hours: LOCKWRIGHT_TORTURE_ROUNDS=100000000 cargo test --release -p lockwright-locks -- --ignored torture
            #[test]
            #[ignore = "as long as LOCKWRIGHT_TORTURE_ROUNDS says"]
            fn survives_long_torture() {
                let rounds = std::env::var("LOCKWRIGHT_TORTURE_ROUNDS")
                    .map_or(1_000_000, |rounds| rounds.parse().expect("a number"));
                checks::torture::<Lock>(8, rounds, fastrand::u64(..));
            }

            #[test]
            fn a_lock_that_does_nothing_is_caught() {
                assert!(caught(TWO_INSIDE, || checks::excludes::<checks::Nothing<Lock>>(4, 2_000)));
            }
        }

        #[cfg(lockwright_loom)]
        mod in_loom {
            #[allow(unused_imports)]
            use super::*;
            use $crate::sync::fault::{self, Fault};
            use $crate::testing::{
                checks::{self, NEVER_ENDS, TWO_INSIDE, caught, explore},
                run::Effort,
            };

            type Lock = $algorithm;

            const TWO: Effort = Effort { preemptions: $with_two, schedules: 0 };
            const THREE: Effort = Effort { preemptions: $with_three, schedules: 0 };

            #[test]
            fn excludes() {
                explore(TWO, || checks::excludes::<Lock>(2, 2));
                explore(THREE, || checks::excludes::<Lock>(3, 1));
            }

            #[test]
            fn a_lock_that_does_nothing_is_caught() {
                assert!(caught(TWO_INSIDE, || explore(TWO, || checks::excludes::<checks::Nothing<Lock>>(2, 1))));
            }

            #[test]
            fn a_lost_hand_off_is_caught() {
                assert!(caught(NEVER_ENDS, || explore(TWO, || checks::excludes::<checks::LosesHandOff<Lock>>(2, 1))));
            }

            #[test]
            fn weaker_orderings_are_caught() {
                for fault in [Fault::NoAcquire, Fault::NoRelease] {
                    fault::set(fault);
                    let caught = caught(TWO_INSIDE, || explore(TWO, || checks::excludes::<Lock>(2, 1)));
                    fault::set(Fault::None);
                    assert!(caught, "{fault:?} goes unnoticed");
                }
            }
        }

        #[cfg(lockwright_shuttle)]
        mod in_shuttle {
            #[allow(unused_imports)]
            use super::*;
            use $crate::testing::{
                checks::{self, NEVER_ENDS, TWO_INSIDE, caught, explore},
                run::Effort,
            };

            type Lock = $algorithm;

            const EFFORT: Effort = Effort { preemptions: 0, schedules: 500 };

            #[test]
            fn excludes() {
                for threads in 4..=6 {
                    explore(EFFORT, move || checks::excludes::<Lock>(threads, 3));
                }
            }

            #[test]
            fn a_lock_that_does_nothing_is_caught() {
                assert!(caught(TWO_INSIDE, || explore(EFFORT, || checks::excludes::<checks::Nothing<Lock>>(4, 3))));
            }

            #[test]
            fn a_lost_hand_off_is_caught() {
                assert!(caught(NEVER_ENDS, || explore(EFFORT, || checks::excludes::<checks::LosesHandOff<Lock>>(
                    4, 1
                ))));
            }
        }
    };
}

pub(crate) use exclusion;
