//! Hand-offs go as the specification says.
//!
//! The script decides who asks when, and who holds how long; it waits until a request is made before it goes on. So the order is
//! known, on real threads too, and each entry can be held against `lockwright_protocol::Waiting`.
//!
//! Loom explores the hand-offs, from the release until the next holder is inside. How one request arrives while nothing else
//! happens is not explored: there, threads only wait for each other.

use super::Order;
use super::run::{Arc, mpsc, thread, unexplored};
use crate::{Algorithm, Priority, Slot, SpinLock};
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

/// Slot 0 holds; each of `arrivals` is who asks while the next holder holds: the priorities of new requests.
/// Slots are numbered as they come.
#[allow(unsafe_code)]
pub(crate) fn scripted<A: Probe + Send + Sync + 'static>(order: Order, arrivals: &[&[u32]]) {
    let lock = Arc::new(SpinLock::<A, ()>::new(()));
    // Who is inside says so; who hears that it leaves does.
    let (inside, enters) = mpsc::channel();
    let mut leaves = Vec::new();
    let mut spec = Waiting::new(order);
    let mut waiters = 0;
    let mut threads = Vec::new();
    // SAFETY: the numbers of the others begin at 1, and the lock is theirs.
    let first = unsafe { Slot::new(0) };
    let mut held = Some(lock.lock_with(A::request(&first, Priority(0))));
    let mut holder = 0;
    let mut arrivals = arrivals.iter();
    loop {
        unexplored(|| {
            for &priority in arrivals.next().copied().unwrap_or_default() {
                let slot = threads.len() + 1;
                let (here, inside) = (Arc::clone(&lock), inside.clone());
                let (leave, told) = mpsc::channel();
                leaves.push(leave);
                threads.push(thread::spawn(move || {
                    // SAFETY: each thread has a number of its own, and the lock is theirs.
                    let name = unsafe { Slot::new(slot) };
                    let guard = here.lock_with(A::request(&name, Priority(priority)));
                    inside.send(slot).expect("the script listens");
                    told.recv().expect("the script says when");
                    drop(guard);
                }));
                waiters += 1;
                while !lock.algorithm().has_asked(slot, waiters) {
                    thread::yield_now();
                }
                spec.request(slot, lockwright_model::Priority::base(priority));
            }
            while !lock.algorithm().has_settled(waiters) {
                thread::yield_now();
            }
        });
        match held.take() {
            Some(guard) => drop(guard),
            None => leaves[holder - 1].send(()).expect("the holder listens"),
        }
        if spec.is_empty() {
            break;
        }
        holder = enters.recv().expect("somebody enters");
        spec.hand_off(holder);
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
            use $crate::testing::{
                Order,
                checks::{self, OUT_OF_ORDER, caught, explore},
                run::Effort,
            };

            type Lock = $algorithm;

            const EFFORT: Effort = Effort { preemptions: 3, schedules: 100 };

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

            #[test]
            fn another_order_is_caught() {
                assert!(caught(OUT_OF_ORDER, || explore(EFFORT, || checks::two_waiters::<Lock>(other($order)))));
            }

            /// Too many threads for loom.
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

pub(crate) use order;
