//! One-time initialisation. The tests take turns, because they share the slots of the process.

use crate::support::*;
use lockwright::once::{Once, OnceError};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex as StdMutex};
use std::time::Duration;

/// Threads of all levels on all processors initialise the same values in different orders; some initialisers panic.
/// Returns whether each value was initialised once before anybody used it.
fn stress(call: fn(&Once, &mut dyn FnMut()) -> Result<(), OnceError>, threads: u64, rounds: u64) -> bool {
    const VALUES: usize = 8;
    let Some(_stage) = Stage::set_for(Duration::from_secs(120)) else { return true };
    let cpus = cpus();
    (0..rounds).all(|round| {
        let values: Arc<[(Once, AtomicU32)]> = (0..VALUES).map(|_| (Once::new(), AtomicU32::new(0))).collect();
        let players: Vec<_> = (0..threads)
            .map(|index| {
                let values = Arc::clone(&values);
                Player::enter(Some((10 + index as u8, cpus[index as usize % cpus.len()])), move || {
                    let mut chance = Chance::new(round * threads + index + 1);
                    (0..VALUES as u64).all(|_| {
                        let (once, value) = &values[chance.below(VALUES as u64) as usize];
                        let fails = chance.below(4) == 0;
                        let called = catch_unwind(AssertUnwindSafe(|| {
                            call(once, &mut || {
                                spin(Duration::from_micros(chance.below(20)));
                                if fails {
                                    std::panic::resume_unwind(Box::new(()));
                                }
                                // ORDERING: Relaxed: the once orders it.
                                value.fetch_add(1, Ordering::Relaxed);
                            })
                        }));
                        match called {
                            Ok(Ok(())) => value.load(Ordering::Relaxed) == 1,
                            Ok(Err(_)) => false,
                            Err(_) => fails,
                        }
                    })
                })
            })
            .collect();
        let are_right: Vec<bool> = players.into_iter().map(Player::end).collect();
        !are_right.contains(&false)
    })
}

#[test]
fn each_value_is_initialised_once() {
    assert!(stress(|once, initialise| once.call(initialise), 6, 150));
}

/// The mutant does not wait for other threads.
#[test]
fn a_second_initialiser_is_noticed() {
    if Stage::set().is_some() {
        let calls: fn(&Once, &mut dyn FnMut()) -> Result<(), OnceError> = |once, initialise| {
            if !once.is_done() {
                initialise();
            }
            once.call(|| ())
        };
        // It fails only where two threads ask at the same time.
        assert!((0..20).any(|_| !stress(calls, 6, 150)));
    }
}

/// Starts a thread whose initialiser waits for the gate.
fn initialiser(stage: &Stage, level: u8, once: &Arc<Once>, gate: &Gate) -> Player<Result<(), OnceError>> {
    let (began, once, gate) = (Gate::default(), Arc::clone(once), gate.clone());
    let player = stage.thread(level, {
        let began = began.clone();
        move || {
            once.call(|| {
                began.open();
                gate.pass();
            })
        }
    });
    began.pass();
    player
}

/// Waits until a thread is suspended in a futex call.
fn until_suspended(tid: u32) {
    until("a thread waits", || {
        let call = std::fs::read_to_string(format!("/proc/self/task/{tid}/syscall")).unwrap_or_default();
        call.starts_with(&format!("{} ", libc::SYS_futex))
    });
}

#[test]
fn the_initialiser_has_the_level_of_its_most_urgent_waiter() {
    let Some(stage) = Stage::set() else { return };
    let (once, gate, order) = (Arc::new(Once::new()), Gate::default(), Arc::new(StdMutex::new(Vec::new())));
    let first = initialiser(&stage, 10, &once, &gate);
    assert_eq!(level(first.tid), 10);
    let waiters: Vec<_> = [20_u8, 50, 30, 40]
        .into_iter()
        .map(|level| {
            let (once, order) = (Arc::clone(&once), Arc::clone(&order));
            let waiter = stage.thread(level, move || {
                let called = once.call(|| unreachable!("another thread initialises"));
                order.lock().expect("no panic").push(level);
                called
            });
            until_suspended(waiter.tid);
            waiter
        })
        .collect();
    assert_eq!(level(first.tid), 50);
    gate.open();
    assert_eq!(first.end(), Ok(()));
    waiters.into_iter().for_each(|waiter| assert_eq!(waiter.end(), Ok(())));
    assert_eq!(*order.lock().expect("no panic"), [50, 40, 30, 20]);
}

#[test]
fn an_initialiser_that_waits_for_itself_gets_an_error() {
    let Some(_stage) = Stage::set() else { return };
    let once = Once::new();
    let mut inner = Ok(());
    assert_eq!(once.call(|| inner = once.call(|| unreachable!("it has begun"))), Ok(()));
    assert_eq!(inner, Err(OnceError::Deadlock));
    assert!(once.is_done());
}

#[test]
fn the_kernel_finds_cycles_of_initialisers() {
    let Some(stage) = Stage::set() else { return };
    let both = Arc::new((Once::new(), Once::new()));
    let (waits, has, asks) = (Gate::default(), Gate::default(), Arc::new(AtomicBool::new(false)));
    let other = stage.thread(10, {
        let (both, waits, has, asks) = (Arc::clone(&both), waits.clone(), has.clone(), Arc::clone(&asks));
        move || {
            let mut inner = Ok(());
            let outer = both.0.call(|| {
                has.open();
                waits.pass();
                asks.store(true, Ordering::Relaxed);
                inner = both.1.call(|| ());
            });
            (outer, inner)
        }
    });
    let one = stage.thread(11, {
        let (both, tid) = (Arc::clone(&both), other.tid);
        move || {
            has.pass();
            let mut inner = Ok(());
            let outer = both.1.call(|| {
                waits.open();
                // It sleeps in the gate at first.
                while !asks.load(Ordering::Relaxed) {
                    std::thread::sleep(ms(1));
                }
                until_suspended(tid);
                inner = both.0.call(|| ());
            });
            (outer, inner)
        }
    });
    assert_eq!(one.end(), (Ok(()), Err(OnceError::Deadlock)));
    assert_eq!(other.end(), (Ok(()), Ok(())));
}

#[test]
fn the_next_caller_initialises_after_a_panic_or_the_end_of_the_thread() {
    let Some(stage) = Stage::set() else { return };
    for ends in [false, true] {
        for has_waiters in [false, true] {
            let (once, gate, began) = (Arc::new(Once::new()), Gate::default(), Gate::default());
            let (ours, its_gate, its_began) = (Arc::clone(&once), gate.clone(), began.clone());
            let first = move || {
                let _ = catch_unwind(AssertUnwindSafe(|| {
                    ours.call(|| {
                        its_began.open();
                        its_gate.pass();
                        if ends {
                            // SAFETY: the call ends this thread, which nobody joins, so its stack stays mapped.
                            unsafe { libc::syscall(libc::SYS_exit, 0) };
                        }
                        std::panic::resume_unwind(Box::new(()));
                    })
                }));
            };
            // A thread that ends like this is never joined.
            let player = std::mem::ManuallyDrop::new(stage.thread(10, first));
            began.pass();
            let count = Arc::new(AtomicU32::new(0));
            let call = |level| {
                let (once, count) = (Arc::clone(&once), Arc::clone(&count));
                stage.thread(level, move || once.call(|| _ = count.fetch_add(1, Ordering::Relaxed)))
            };
            let mut callers = Vec::new();
            if has_waiters {
                callers = vec![call(20), call(30), call(25)];
                callers.iter().for_each(|caller| until_suspended(caller.tid));
            }
            gate.open();
            if ends {
                until("the thread has ended", || !std::fs::exists(format!("/proc/self/task/{}", player.tid)).unwrap());
            }
            callers.push(call(15));
            callers.into_iter().for_each(|caller| assert_eq!(caller.end(), Ok(())));
            assert_eq!(count.load(Ordering::Relaxed), 1, "ends: {ends}, waiters: {has_waiters}");
            assert!(once.is_done());
        }
    }
}

#[test]
fn too_many_initialisers_at_once_are_refused() {
    fn nest(left: &[Once]) -> Result<(), OnceError> {
        let Some((first, rest)) = left.split_first() else { return Ok(()) };
        let mut inner = Ok(());
        first.call(|| inner = nest(rest))?;
        inner
    }
    let Some(_stage) = Stage::set() else { return };
    let onces: Vec<Once> = (0..65).map(|_| Once::new()).collect();
    assert_eq!(nest(&onces), Err(OnceError::TooMany));
    assert!(onces[63].is_done() && !onces[64].is_done());
    assert_eq!(onces[64].call(|| ()), Ok(()));
    assert_eq!(nest(&(0..64).map(|_| Once::new()).collect::<Vec<_>>()), Ok(()), "all slots are free again");
}

/// In the child, an initialiser gets the slot of one that a thread of the parent executes, and calls that one.
#[test]
fn initialisers_of_a_child_call_one_that_the_parent_executes() {
    let Some(stage) = Stage::set() else { return };
    let (once, gate) = (Arc::new(Once::new()), Gate::default());
    let first = initialiser(&stage, 10, &once, &gate);
    let ours = Arc::clone(&once);
    let child = Child::start(move || {
        let mut inner = Err(OnceError::TooMany);
        let outer = Once::new().call(|| inner = ours.call(|| ()));
        outer.is_ok() && inner.is_ok() && ours.is_done()
    });
    assert!(child.end());
    assert!(!once.is_done());
    gate.open();
    assert_eq!(first.end(), Ok(()));
}

/// A child that was forked while other threads initialise finds nobody to wait for.
#[test]
fn a_child_of_a_fork_during_an_initialiser_continues() {
    const ROUNDS: usize = 300;
    let Some(_stage) = Stage::set_for(Duration::from_secs(100)) else { return };
    for round in 0..ROUNDS {
        let values: Arc<[Once; 2]> = Arc::new([Once::new(), Once::new()]);
        // The standard library holds a lock while a thread begins or ends, which a child would wait for.
        let (gate, end) = (Gate::default(), Gate::default());
        let begun = Arc::new(AtomicU32::new(0));
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let (values, gate, end) = (Arc::clone(&values), gate.clone(), end.clone());
                let begun = Arc::clone(&begun);
                std::thread::spawn(move || {
                    begun.fetch_add(1, Ordering::Relaxed);
                    gate.pass();
                    values.iter().for_each(|once| {
                        once.call(|| spin(Duration::from_micros(200))).expect("no cycle");
                    });
                    end.pass();
                })
            })
            .collect();
        until("the threads have begun", || begun.load(Ordering::Relaxed) == 2);
        gate.open();
        spin(Duration::from_micros(round as u64 % 300));
        let ours = Arc::clone(&values);
        let child = Child::start(move || {
            // Two threads of the child also wait for each other.
            let other = std::thread::spawn({
                let ours = Arc::clone(&ours);
                move || ours.iter().all(|once| once.call(|| spin(Duration::from_micros(20))).is_ok())
            });
            ours.iter().all(|once| once.call(|| spin(Duration::from_micros(20))).is_ok())
                && other.join().unwrap_or(false)
                && ours.iter().all(Once::is_done)
        });
        end.open();
        assert!(child.end(), "round {round}");
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    }
}
