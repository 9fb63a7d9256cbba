//! One at a time; each sees what the last one wrote; all get it.

use super::order::Probe;
use super::run::{Arc, Effort, NEVER_ENDS, OUT_OF_ORDER, TWO_INSIDE, caught, explore, thread, unexplored};
#[cfg(lockwright_loom)]
use crate::sync::fault::{self, Fault};
use crate::{Algorithm, Priority, Slot, SpinLock};
use std::string::String;
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
    pub(super) fn add_one(&mut self) -> usize {
        self.0.with_mut(|count| {
            // SAFETY: borrowed mutably; loom checks that the lock made it so.
            let count = unsafe { &mut *count };
            *count += 1;
            *count
        })
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
    pub(super) fn add_one(&mut self) -> usize {
        let seen = core::hint::black_box(self.0);
        thread::yield_now();
        self.0 = core::hint::black_box(seen + 1);
        self.0
    }
    pub(super) fn get(&mut self) -> usize {
        self.0
    }
}

/// `threads` threads, one of them this one, take the lock `rounds` times each. Every third time they try first, as users do.
pub(crate) fn excludes<A: Algorithm + Send + Sync + 'static>(threads: usize, rounds: usize) {
    all_take::<A>(threads, rounds, |index, round| (index + round) % 3 == 2);
}

/// The same, where they try first each time.
pub(crate) fn excludes_who_tries<A: Algorithm + Send + Sync + 'static>(threads: usize, rounds: usize) {
    all_take::<A>(threads, rounds, |_, _| true);
}

#[allow(unsafe_code)]
fn all_take<A: Algorithm + Send + Sync + 'static>(threads: usize, rounds: usize, tries: fn(usize, usize) -> bool) {
    let lock = Arc::new(SpinLock::<A, Count>::new(Count::new()));
    let work = move |lock: &SpinLock<A, Count>, index: usize| {
        // SAFETY: each thread has a number of its own, and the lock is theirs.
        let slot = unsafe { Slot::new(index) };
        for round in 0..rounds {
            let request = A::request(&slot, Priority((index ^ round) as u32));
            let tried = if tries(index, round) { lock.try_lock_with(request) } else { None };
            let mut guard = tried.unwrap_or_else(|| lock.lock_with(request));
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

/// A slot of a script: its priority, and how often it asks in all.
pub(crate) type Asks = (u32, usize);

/// The first slot holds, others wait, having asked one after the other; then the first one releases, while another arrives that is less
/// urgent than one of them. Who asks again tries first, and the holder tries only. Loom explores what happens from the release on.
#[allow(unsafe_code)]
pub(crate) fn against_an_arrival<A: Probe + Send + Sync + 'static>(holds: Asks, wait: &[Asks], arrives: u32) {
    let lock = Arc::new(SpinLock::<A, Count>::new(Count::new()));
    let next = (0..wait.len()).rev().max_by_key(|&waiter| wait[waiter].0).map_or(0, |waiter| waiter + 1);
    let spawned = |index: usize, (priority, rounds): Asks| {
        let lock = Arc::clone(&lock);
        thread::spawn(move || {
            // SAFETY: each thread has a number of its own, and the lock is theirs.
            let slot = unsafe { Slot::new(index) };
            let request = A::request(&slot, Priority(priority));
            for round in 0..rounds {
                let tried = if round > 0 { lock.try_lock_with(request) } else { None };
                let section = tried.unwrap_or_else(|| lock.lock_with(request)).add_one();
                assert!(section != 2 || index == next, "{index} is not next of the waiters: {next} is");
            }
        })
    };
    // SAFETY: as above.
    let slot = unsafe { Slot::new(0) };
    let request = A::request(&slot, Priority(holds.0));
    let (mut others, mut guard) = unexplored(|| {
        let guard = lock.lock_with(request);
        let waiters = wait.iter().enumerate().map(|(before, &waits)| {
            let thread = spawned(before + 1, waits);
            while !lock.algorithm().has_asked(before + 1, before + 1) {
                thread::yield_now();
            }
            thread
        });
        (waiters.collect::<Vec<_>>(), guard)
    });
    others.push(spawned(wait.len() + 1, (arrives, 1)));
    guard.add_one();
    drop(guard);
    let mut tries = 0;
    for _ in 1..holds.1 {
        // Here and inside, others go on without a preemption.
        thread::yield_now();
        if let Some(mut guard) = lock.try_lock_with(request) {
            thread::yield_now();
            guard.add_one();
            tries += 1;
        }
    }
    others.into_iter().for_each(|other| other.join().expect("a thread that ends"));
    let asked: usize = wait.iter().map(|&(_, rounds)| rounds).sum();
    assert_eq!(lock.lock_with(request).get(), 1 + asked + 1 + tries, "the count is off");
}

/// An ordering left out, and the line it is on.
#[cfg(lockwright_loom)]
pub(crate) type LeftOut<'a> = (Fault, &'a str);

/// Leaves out each ordering that `checks` come by, alone, but for the `kept` ones.
///
/// # Panics
/// When no check fails without one of them.
#[cfg(lockwright_loom)]
pub(crate) fn each_ordering_is_needed(kept: &[LeftOut<'_>], checks: &[(Effort, fn())]) {
    let explore_all = || checks.iter().for_each(|&(effort, check)| explore(effort, check));
    let words = [TWO_INSIDE, NEVER_ENDS, OUT_OF_ORDER].concat();
    let mut kept = kept.to_vec();
    for (site, fault) in fault::sites(explore_all) {
        let line = line(site);
        if let Some(place) = kept.iter().position(|left_out| *left_out == (fault, &line)) {
            kept.remove(place);
            continue;
        }
        fault::set_at(site, fault);
        let caught = caught(&words, explore_all);
        fault::set(Fault::None);
        assert!(caught, "{fault:?} at {site} goes unnoticed: {line}");
    }
    assert!(kept.is_empty(), "there is no {kept:?}");
}

#[cfg(lockwright_loom)]
fn line(site: fault::Site) -> String {
    // As the compiler knows it: from the root of the workspace.
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(site.file());
    let text = std::fs::read_to_string(path).expect("the text this was made of");
    String::from(text.lines().nth(site.line() as usize - 1).unwrap_or_default().trim())
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
                // SAFETY: each thread has a number of its own, and the lock is theirs.
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
                explore(TWO, || checks::excludes_who_tries::<Lock>(2, 1));
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
                    for check in [checks::excludes::<Lock>, checks::excludes_who_tries::<Lock>] {
                        fault::set(fault);
                        let caught = caught(TWO_INSIDE, || explore(TWO, move || check(2, 1)));
                        fault::set(Fault::None);
                        assert!(caught, "{fault:?} goes unnoticed");
                    }
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
                    explore(EFFORT, move || checks::excludes_who_tries::<Lock>(threads, 2));
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

/// Each ordering at each place of the text is needed: left out alone, a check fails. `kept` are those of which no check says so. Scripts
/// are checks more than those of [`exclusion!`], each with the preemptions it takes.
macro_rules! orderings {
    ($algorithm:ty, $kept:expr $(, $preemptions:literal: $script:expr)* $(,)?) => {
        mod orderings {
            #[allow(unused_imports)]
            use super::*;
            #[allow(unused_imports)]
            use $crate::testing::{checks, run::Effort};

            #[cfg(lockwright_loom)]
            #[test]
            fn each_is_needed() {
                #[allow(unused_imports)]
                use $crate::sync::fault::Fault::{NoAcquire, NoRelease};
                let effort = |preemptions| Effort { preemptions, schedules: 0 };
                let kept: &[checks::LeftOut<'_>] = &$kept;
                checks::each_ordering_is_needed(kept, &[
                    (effort(3), || checks::excludes::<$algorithm>(2, 1)),
                    (effort(3), || checks::excludes_who_tries::<$algorithm>(2, 1)),
                    $((effort($preemptions), || $script),)*
                ]);
            }

            $crate::testing::scripts!($($script),*);
        }
    };
}

/// In loom they are explored above.
macro_rules! scripts {
    () => {};
    ($($script:expr),+) => {
        #[cfg(not(lockwright_loom))]
        #[test]
        fn scripts() {
            $(checks::explore(Effort { preemptions: 0, schedules: 500 }, || $script);)+
        }
    };
}

pub(crate) use {exclusion, orderings, scripts};
