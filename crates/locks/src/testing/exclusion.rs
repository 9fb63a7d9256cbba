//! One holder at a time; each holder sees the writes of the one before; every request is served.

use super::order::Probe;
use super::run::{Arc, thread, unexplored};
use crate::{Algorithm, Priority, Slot, SpinLock};
use std::vec::Vec;

/// A number that only the holder accesses. In loom, concurrent accesses are a failure by themselves.
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
            // SAFETY: the count is borrowed mutably; loom checks that the lock ensures it.
            let count = unsafe { &mut *count };
            *count += 1;
            *count
        })
    }
    pub(super) fn get(&mut self) -> usize {
        self.read()
    }
    pub(super) fn read(&self) -> usize {
        // SAFETY: the count is borrowed; loom checks that the lock ensures it.
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
    /// Reads, lets other threads run, and writes, so that a second holder loses a count.
    pub(super) fn add_one(&mut self) -> usize {
        let seen = core::hint::black_box(self.0);
        thread::yield_now();
        self.0 = core::hint::black_box(seen + 1);
        self.0
    }
    pub(super) fn get(&mut self) -> usize {
        self.0
    }
    /// Reads twice, and lets other threads run in between, so that a writer inside is noticed.
    pub(super) fn read(&self) -> usize {
        let seen = core::hint::black_box(self).0;
        thread::yield_now();
        assert_eq!(core::hint::black_box(self).0, seen, "the count is off");
        seen
    }
}

/// `threads` threads, of which this is one, lock `rounds` times each. Every third time they try first, as users do.
pub(crate) fn excludes<A: Algorithm + Send + Sync + 'static>(threads: usize, rounds: usize) {
    all_lock::<A>(threads, rounds, |index, round| (index + round) % 3 == 2);
}

/// The same, where the threads try first each time.
pub(crate) fn excludes_tries<A: Algorithm + Send + Sync + 'static>(threads: usize, rounds: usize) {
    all_lock::<A>(threads, rounds, |_, _| true);
}

#[allow(unsafe_code)]
fn all_lock<A: Algorithm + Send + Sync + 'static>(threads: usize, rounds: usize, tries: fn(usize, usize) -> bool) {
    let lock = Arc::new(SpinLock::<A, Count>::new(Count::new()));
    let work = move |lock: &SpinLock<A, Count>, index: usize| {
        // SAFETY: each thread has its own number, and only they use the lock.
        let slot = unsafe { Slot::new(index) };
        for round in 0..rounds {
            let request = A::request(&slot, Priority::new((index ^ round) as u32));
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
    others.into_iter().for_each(|other| other.join().expect("the thread ends"));
    // SAFETY: the other threads have ended.
    let slot = unsafe { Slot::new(0) };
    assert_eq!(lock.lock_with(A::request(&slot, Priority::new(0))).get(), threads * rounds, "the count is off");
}

/// The priority of a slot of a script, and the number of its requests.
pub(crate) type Requests = (u32, usize);

/// The first slot holds the lock, and others wait that requested it one after the other.
///
/// Then the first slot releases, while another one arrives that is less urgent than one of them.
/// A slot that requests the lock again tries first; the holder only tries. Loom explores the execution from the release
/// on.
#[allow(unsafe_code)]
pub(crate) fn against_an_arrival<A: Probe + Send + Sync + 'static>(holds: Requests, wait: &[Requests], arrives: u32) {
    let lock = Arc::new(SpinLock::<A, Count>::new(Count::new()));
    let next = (0..wait.len()).rev().max_by_key(|&waiter| wait[waiter].0).map_or(0, |waiter| waiter + 1);
    let spawned = |index: usize, (priority, rounds): Requests| {
        let lock = Arc::clone(&lock);
        thread::spawn(move || {
            // SAFETY: each thread has its own number, and only they use the lock.
            let slot = unsafe { Slot::new(index) };
            let request = A::request(&slot, Priority::new(priority));
            for round in 0..rounds {
                let tried = if round > 0 { lock.try_lock_with(request) } else { None };
                let section = tried.unwrap_or_else(|| lock.lock_with(request)).add_one();
                assert!(section != 2 || index == next, "{index} is not next of the waiters: {next} is");
            }
        })
    };
    // SAFETY: this thread has its own number too.
    let slot = unsafe { Slot::new(0) };
    let request = A::request(&slot, Priority::new(holds.0));
    let (mut others, mut guard) = unexplored(|| {
        let guard = lock.lock_with(request);
        let waiters = wait.iter().enumerate().map(|(before, &waits)| {
            let thread = spawned(before + 1, waits);
            while !lock.algorithm().has_requested(before + 1, before + 1) {
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
        // Here and inside, others continue without a preemption.
        thread::yield_now();
        if let Some(mut guard) = lock.try_lock_with(request) {
            thread::yield_now();
            guard.add_one();
            tries += 1;
        }
    }
    others.into_iter().for_each(|other| other.join().expect("the thread ends"));
    let requests: usize = wait.iter().map(|&(_, rounds)| rounds).sum();
    assert_eq!(lock.lock_with(request).get(), 1 + requests + 1 + tries, "the count is off");
}
