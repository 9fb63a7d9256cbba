//! Hand-offs go as the specification says.
//!
//! The script decides who asks when, and who holds how long; it waits until a request is made before it goes on. So the order is
//! known, on real threads too, and each entry can be held against `lockwright_protocol::Waiting`.

use super::Order;
use super::run::{Arc, Patient, thread};
use crate::sync::AtomicUsize;
use crate::{Algorithm, Priority, Relax, Slot, SpinLock};
use core::sync::atomic::Ordering;
use lockwright_protocol::Waiting;
use std::vec::Vec;

/// What a script must see of a lock.
pub(crate) trait Probe: Algorithm {
    /// Whether the `waiters`-th request that waits, made from `slot`, is in its place. All requests before it were.
    fn has_asked(&self, slot: usize, waiters: usize) -> bool;

    /// Whether the lock can be released: where waiters find their order themselves, whether all `waiters` of them have.
    fn has_settled(&self, _waiters: usize) -> bool {
        true
    }
}

fn wait_until(condition: impl Fn() -> bool) {
    let mut relax = Patient;
    while !condition() {
        relax.relax();
    }
}

/// Nobody's.
const NOBODY: usize = usize::MAX;

struct Script<A> {
    lock: SpinLock<A, ()>,
    /// Who entered last.
    inside: AtomicUsize,
    /// Who may leave.
    leaves: AtomicUsize,
}

/// Slot 0 holds; each of `arrivals` is who asks while the next holder holds: the priorities of new requests.
/// Slots are numbered as they come.
#[allow(unsafe_code)]
pub(crate) fn scripted<A: Probe + Send + Sync + 'static>(order: Order, arrivals: &[&[u32]]) {
    let script = Arc::new(Script::<A> {
        lock: SpinLock::new(()),
        inside: AtomicUsize::new(NOBODY),
        leaves: AtomicUsize::new(NOBODY),
    });
    let mut spec = Waiting::new(order);
    let mut waiters = 0;
    let mut threads = Vec::new();
    // SAFETY: the numbers of the others begin at 1, and no test claims slots while this one runs.
    let first = unsafe { Slot::new(0) };
    let mut held = Some(script.lock.lock_with(A::request(&first, Priority(0))));
    let mut arrivals = arrivals.iter();
    loop {
        for &priority in arrivals.next().copied().unwrap_or_default() {
            let slot = threads.len() + 1;
            let here = Arc::clone(&script);
            threads.push(thread::spawn(move || {
                // SAFETY: each thread has a number of its own.
                let name = unsafe { Slot::new(slot) };
                let guard = here.lock.lock_with(A::request(&name, Priority(priority)));
                here.inside.store(slot, Ordering::Release);
                wait_until(|| here.leaves.load(Ordering::Acquire) == slot);
                drop(guard);
            }));
            waiters += 1;
            wait_until(|| script.lock.algorithm().has_asked(slot, waiters));
            spec.request(slot, lockwright_model::Priority::base(priority));
        }
        let holder = script.inside.load(Ordering::Acquire);
        wait_until(|| script.lock.algorithm().has_settled(waiters));
        match held.take() {
            Some(guard) => drop(guard),
            None => script.leaves.store(holder, Ordering::Release),
        }
        if spec.is_empty() {
            break;
        }
        wait_until(|| script.inside.load(Ordering::Acquire) != holder);
        spec.hand_off(script.inside.load(Ordering::Acquire));
        waiters -= 1;
    }
    threads.into_iter().for_each(|thread| thread.join().expect("a thread that ends"));
}

/// Two waiters of different priority, the less urgent one first: the smallest script that tells orders apart.
pub(crate) fn two_waiters<A: Probe + Send + Sync + 'static>(order: Order) {
    scripted::<A>(order, &[&[1, 5]]);
}

/// The check of order for one algorithm, and its twin: another order.
macro_rules! order {
    ($algorithm:ty, $order:expr) => {
        mod hands_over {
            #[allow(unused_imports)]
            use super::*;
            use $crate::testing::{Order, checks, run::Effort};

            #[cfg(lockwright_loom)]
            const EFFORT: Effort = Effort { preemptions: 1, schedules: 0 };
            #[cfg(not(lockwright_loom))]
            const EFFORT: Effort = Effort { preemptions: 0, schedules: 100 };

            fn other(order: Order) -> Order {
                match order {
                    Order::Fifo => Order::Priority,
                    Order::Priority | Order::Batched => Order::Fifo,
                }
            }

            #[test]
            fn two_waiters() {
                checks::explore(EFFORT, || checks::two_waiters::<$algorithm>($order));
            }

            #[test]
            fn another_order_is_caught() {
                assert!(checks::caught(|| checks::explore(EFFORT, || checks::two_waiters::<$algorithm>(other(
                    $order
                )))));
            }

            /// Too many threads for loom.
            #[cfg(not(lockwright_loom))]
            #[test]
            fn waiters_that_come_and_go() {
                checks::explore(EFFORT, || {
                    checks::scripted::<$algorithm>($order, &[&[3, 1, 4], &[1, 5], &[], &[9, 2], &[], &[6]]);
                    checks::scripted::<$algorithm>($order, &[&[2], &[7, 1], &[8], &[2, 8]]);
                });
            }
        }
    };
}

pub(crate) use order;
