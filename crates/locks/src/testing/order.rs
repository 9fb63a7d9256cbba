//! Hand-offs follow the specification.
//!
//! A script determines when each slot requests the lock and how long it holds it, and waits until a request is made.
//! The order is thus known, on real threads too, and each entry is compared with `lockwright_protocol::Waiting`.
//!
//! Loom explores the hand-offs, from the release to the entry of the next holder.
//! It does not explore how one request arrives while nothing else happens, because threads only wait for each other
//! there.

use super::run::{Arc, mpsc, thread, unexplored};
use crate::{Algorithm, Priority, Slot, SpinLock};
use lockwright_protocol::{Order, Waiting};
use std::vec::Vec;

/// The view of a lock that a script needs.
pub(crate) trait Probe: Algorithm {
    /// Whether the request from `slot`, the `waiters`-th one that waits, has its place. All earlier ones have theirs.
    fn has_requested(&self, slot: usize, waiters: usize) -> bool;

    /// Whether the lock can be released: the `waiters` have found their order, if they do so themselves.
    fn has_settled(&self, _waiters: usize) -> bool {
        true
    }
}

/// Slot 0 holds the lock. Each of `arrivals` has the priorities of the requests that arrive while the next holder holds
/// it.
///
/// Slots are numbered in order of arrival.
#[allow(unsafe_code)]
pub(crate) fn scripted<A: Probe + Send + Sync + 'static>(order: Order, arrivals: &[&[u32]]) {
    let lock = Arc::new(SpinLock::<A, ()>::new(()));
    // A thread reports its entry, and leaves on a message.
    let (inside, enters) = mpsc::channel();
    let mut leaves = Vec::new();
    let mut spec = Waiting::new(order);
    let mut waiters = 0;
    let mut threads = Vec::new();
    // SAFETY: the numbers of the other threads begin at 1, and only they use the lock.
    let first = unsafe { Slot::new(0) };
    let mut held = Some(lock.lock_with(A::request(&first, Priority::new(0))));
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
                    // SAFETY: each thread has its own number, and only they use the lock.
                    let name = unsafe { Slot::new(slot) };
                    let guard = here.lock_with(A::request(&name, Priority::new(priority)));
                    inside.send(slot).expect("the script receives");
                    told.recv().expect("the script sends");
                    drop(guard);
                }));
                waiters += 1;
                while !lock.algorithm().has_requested(slot, waiters) {
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
            None => leaves[holder - 1].send(()).expect("the holder receives"),
        }
        if spec.is_empty() {
            break;
        }
        holder = enters.recv().expect("a waiter enters");
        spec.hand_off(holder);
        waiters -= 1;
    }
    threads.into_iter().for_each(|thread| thread.join().expect("the thread ends"));
}

/// Two waiters of different priorities, the less urgent one first: the smallest script that distinguishes the orders.
pub(crate) fn two_waiters<A: Probe + Send + Sync + 'static>(order: Order) {
    scripted::<A>(order, &[&[1, 5]]);
}
