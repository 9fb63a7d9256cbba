//! The tests of one algorithm, as macros over the checks.

/// The checks of exclusion for one algorithm, and their mutants.
///
/// Loom explores executions with the given numbers of preemptions, for two and for three threads. A lock with many
/// steps gets fewer.
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
                let (two, five) = if cfg!(miri) { (20, 4) } else { (2_000, 400) };
                checks::excludes::<Lock>(2, two);
                checks::excludes::<Lock>(5, five);
            }

            #[test]
            fn survives_stress() {
                checks::stress::<Lock>(4, if cfg!(miri) { 10 } else { 10_000 }, 7);
            }

            /// It runs for hours with `LOCKWRIGHT_STRESS_ROUNDS=100000000 cargo test --release -p lockwright-locks --
            /// --ignored stress`.
            #[test]
            #[ignore = "runs for LOCKWRIGHT_STRESS_ROUNDS rounds"]
            fn survives_long_stress() {
                let rounds = std::env::var("LOCKWRIGHT_STRESS_ROUNDS")
                    .map_or(1_000_000, |rounds| rounds.parse().expect("a number"));
                checks::stress::<Lock>(8, rounds, fastrand::u64(..));
            }

            #[cfg_attr(miri, ignore = "the mutant has data races, which Miri reports")]
            #[test]
            fn a_lock_without_exclusion_is_caught() {
                assert!(caught(TWO_INSIDE, || checks::excludes::<checks::NoExclusion<Lock>>(4, 2_000)));
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
                explore(TWO, || checks::excludes_tries::<Lock>(2, 1));
            }

            #[test]
            fn a_lock_without_exclusion_is_caught() {
                assert!(caught(TWO_INSIDE, || explore(TWO, || checks::excludes::<checks::NoExclusion<Lock>>(2, 1))));
            }

            #[test]
            fn a_lost_hand_off_is_caught() {
                assert!(caught(NEVER_ENDS, || explore(TWO, || checks::excludes::<checks::LosesHandOff<Lock>>(2, 1))));
            }

            #[test]
            fn weaker_orderings_are_caught() {
                for fault in [Fault::NoAcquire, Fault::NoRelease] {
                    for check in [checks::excludes::<Lock>, checks::excludes_tries::<Lock>] {
                        fault::set(fault);
                        let caught = caught(TWO_INSIDE, || explore(TWO, move || check(2, 1)));
                        fault::set(Fault::None);
                        assert!(caught, "{fault:?} is not caught");
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
                    explore(EFFORT, move || checks::excludes_tries::<Lock>(threads, 2));
                }
            }

            #[test]
            fn a_lock_without_exclusion_is_caught() {
                assert!(caught(TWO_INSIDE, || explore(EFFORT, || checks::excludes::<checks::NoExclusion<Lock>>(4, 3))));
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

/// Checks that each ordering at each place of the source text is needed. No check covers the `kept` ones.
///
/// Scripts are checks beyond those of [`exclusion!`], each with its number of preemptions.
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
                let kept: &[checks::Mutation<'_>] = &$kept;
                checks::each_ordering_is_needed(kept, &[
                    (effort(3), || checks::excludes::<$algorithm>(2, 1)),
                    (effort(3), || checks::excludes_tries::<$algorithm>(2, 1)),
                    $((effort($preemptions), || $script),)*
                ]);
            }

            $crate::testing::scripts!($($script),*);
        }
    };
}

/// The scripts outside loom, which explores them above.
macro_rules! scripts {
    () => {};
    ($($script:expr),+) => {
        #[cfg(not(lockwright_loom))]
        #[test]
        fn scripts() {
            $(checks::explore(Effort { preemptions: 0, schedules: if cfg!(miri) { 5 } else { 500 } }, || $script);)+
        }
    };
}

/// The check of the order of one algorithm, and its mutant, which is another order.
macro_rules! order {
    ($algorithm:ty, $order:expr) => {
        mod hands_over {
            #[allow(unused_imports)]
            use super::*;
            use lockwright_protocol::Order;
            use $crate::testing::{
                checks::{self, OUT_OF_ORDER, caught, explore},
                run::Effort,
            };

            type Lock = $algorithm;

            const EFFORT: Effort = Effort { preemptions: 3, schedules: if cfg!(miri) { 1 } else { 100 } };

            fn other(order: Order) -> Order {
                match order {
                    Order::Fifo => Order::Priority,
                    Order::Priority | Order::Batched => Order::Fifo,
                }
            }

            #[test]
            fn two_waiters() {
                explore(EFFORT, || checks::two_waiters::<Lock>($order));
            }

            #[cfg_attr(miri, ignore = "the mutant leaves threads behind, which Miri reports")]
            #[test]
            fn another_order_is_caught() {
                assert!(caught(OUT_OF_ORDER, || explore(EFFORT, || checks::two_waiters::<Lock>(other($order)))));
            }

            /// It has too many threads for loom.
            #[cfg(not(lockwright_loom))]
            #[test]
            fn waiters_that_come_and_go() {
                explore(EFFORT, || {
                    checks::scripted::<Lock>($order, &[&[3, 1, 4], &[1, 5], &[], &[9, 2], &[], &[6]]);
                    checks::scripted::<Lock>($order, &[&[2], &[7, 1], &[8], &[2, 8]]);
                });
            }
        }
    };
}

/// The checks of giving up for one algorithm, and their mutants.
macro_rules! abort {
    ($algorithm:ty) => {
        mod gives_up {
            #[allow(unused_imports)]
            use super::*;
            use $crate::testing::{
                checks::{self, TWO_INSIDE, caught, explore},
                run::Effort,
            };

            type Lock = $algorithm;

            const EFFORT: Effort = Effort { preemptions: 2, schedules: if cfg!(miri) { 4 } else { 200 } };
            const SERVED: (usize, usize) = if cfg!(any(lockwright_loom, miri)) { (2, 2) } else { (5, 20) };

            #[test]
            fn while_held() {
                explore(Effort { schedules: 1, ..EFFORT }, checks::gives_up_while_held::<Lock>);
            }

            #[test]
            fn a_lock_that_is_not_held_is_caught() {
                let effort = Effort { schedules: 1, ..EFFORT };
                assert!(caught(&["is held"], || explore(
                    effort,
                    checks::gives_up_while_held::<checks::NoExclusion<Lock>>
                )));
            }

            #[test]
            fn and_the_others_are_served() {
                let (threads, rounds) = SERVED;
                explore(EFFORT, move || checks::everyone_else_is_served::<Lock>(threads, rounds));
            }

            #[cfg_attr(miri, ignore = "the mutant has data races, which Miri reports")]
            #[test]
            fn a_lock_without_exclusion_is_caught() {
                let (threads, rounds) = SERVED;
                assert!(caught(TWO_INSIDE, || explore(EFFORT, move || {
                    checks::everyone_else_is_served::<checks::NoExclusion<Lock>>(threads, rounds);
                })));
            }

            /// It would wait forever on real threads.
            #[cfg(any(lockwright_loom, lockwright_shuttle))]
            #[test]
            fn a_lost_hand_off_is_caught() {
                assert!(caught(checks::NEVER_ENDS, || explore(EFFORT, || {
                    checks::everyone_else_is_served::<checks::LosesHandOff<Lock>>(2, 1);
                })));
            }

            #[cfg(lockwright_loom)]
            #[test]
            fn weaker_orderings_are_caught() {
                use $crate::sync::fault::{self, Fault};

                for fault in [Fault::NoAcquire, Fault::NoRelease] {
                    fault::set(fault);
                    let caught = caught(TWO_INSIDE, || {
                        explore(EFFORT, || {
                            checks::everyone_else_is_served::<Lock>(2, 1);
                        })
                    });
                    fault::set(Fault::None);
                    assert!(caught, "{fault:?} is not caught");
                }
            }
        }
    };
}

/// The checks of readers for one algorithm, and their mutants. `kept` are orderings that no check covers.
macro_rules! sharing {
    ($algorithm:ty, $order:expr, $kept:expr) => {
        mod shares {
            #[allow(unused_imports)]
            use super::*;
            #[allow(unused_imports)]
            use $crate::testing::{
                SharedOrder,
                checks::{self, NEVER_ENDS, OUT_OF_ORDER, TWO_INSIDE, caught, explore},
                run::Effort,
            };

            type Lock = $algorithm;

            const EFFORT: Effort = Effort { preemptions: 3, schedules: if cfg!(miri) { 1 } else { 100 } };
            /// Readers, writers and rounds.
            const SHARE: (usize, usize, usize) = if cfg!(lockwright_loom) { (1, 1, 2) } else { (3, 2, 10) };

            fn other(order: SharedOrder) -> SharedOrder {
                if order == SharedOrder::Fifo { SharedOrder::Phases } else { SharedOrder::Fifo }
            }

            #[test]
            fn readers_exclude_writers() {
                let (readers, writers, rounds) = SHARE;
                explore(EFFORT, move || checks::shares::<Lock>(readers, writers, rounds));
                explore(EFFORT, move || checks::shares_tries::<Lock>(readers, writers, rounds));
            }

            #[cfg(lockwright_loom)]
            #[test]
            fn three_threads() {
                let effort = Effort { preemptions: 2, ..EFFORT };
                explore(effort, || checks::shares::<Lock>(2, 1, 1));
                explore(effort, || checks::shares::<Lock>(1, 2, 1));
            }

            #[cfg_attr(miri, ignore = "the mutant has data races, which Miri reports")]
            #[test]
            fn a_lock_without_exclusion_is_caught() {
                let (readers, writers, rounds) = SHARE;
                let check = move || checks::shares::<checks::NoExclusion<Lock>>(readers, writers, rounds);
                assert!(caught(TWO_INSIDE, || explore(EFFORT, check)));
            }

            /// It would wait forever on real threads, as would the next one.
            #[cfg(any(lockwright_loom, lockwright_shuttle))]
            #[test]
            fn a_lost_release_is_caught() {
                assert!(caught(NEVER_ENDS, || explore(EFFORT, || {
                    checks::shares::<checks::LosesHandOff<Lock>>(1, 1, 2);
                })));
            }

            #[cfg(any(lockwright_loom, lockwright_shuttle))]
            #[test]
            fn readers_that_exclude_each_other_are_caught() {
                assert!(caught(NEVER_ENDS, || explore(EFFORT, checks::readers_meet::<checks::NoSharing<Lock>>)));
            }

            #[test]
            fn readers_meet() {
                explore(EFFORT, checks::readers_meet::<Lock>);
            }

            #[test]
            fn a_writer_then_a_reader() {
                explore(EFFORT, || checks::writer_then_reader::<Lock>($order));
            }

            #[cfg_attr(miri, ignore = "the mutant leaves threads behind, which Miri reports")]
            #[test]
            fn another_order_is_caught() {
                assert!(caught(OUT_OF_ORDER, || explore(EFFORT, || checks::writer_then_reader::<Lock>(other($order)))));
            }

            /// It has too many threads for loom.
            #[cfg(not(lockwright_loom))]
            #[test]
            fn readers_and_writers_come_and_go() {
                explore(EFFORT, || checks::busy_phases::<Lock>($order));
            }

            #[cfg(lockwright_loom)]
            #[test]
            fn each_ordering_is_needed() {
                #[allow(unused_imports)]
                use $crate::sync::fault::Fault::{NoAcquire, NoRelease};
                let kept: &[checks::Mutation<'_>] = &$kept;
                checks::each_ordering_is_needed(
                    kept,
                    &[
                        (EFFORT, || checks::excludes::<Lock>(2, 1)),
                        (EFFORT, || checks::excludes_tries::<Lock>(2, 1)),
                        (EFFORT, || checks::shares::<Lock>(1, 1, 1)),
                        (EFFORT, || checks::shares_tries::<Lock>(1, 1, 1)),
                        (EFFORT, || checks::shares::<Lock>(2, 1, 1)),
                    ],
                );
            }
        }
    };
}

pub(crate) use {abort, exclusion, order, orderings, scripts, sharing};
