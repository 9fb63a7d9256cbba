//! Stress on real threads.

use super::run::{Arc, thread};
use crate::{Algorithm, Priority, Slot, SpinLock};
use std::vec::Vec;

/// More threads than cores lock, with sections and pauses of random length.
#[allow(unsafe_code)]
pub(crate) fn stress<A: Algorithm + Send + Sync + 'static>(threads: usize, rounds: usize, seed: u64) {
    std::eprintln!("seed {seed}");
    let lock = Arc::new(SpinLock::<A, (usize, usize)>::new((0, 0)));
    let others: Vec<_> = (0..threads)
        .map(|index| {
            let lock = Arc::clone(&lock);
            thread::spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed + index as u64);
                // SAFETY: each thread has its own number, and only they use the lock.
                let slot = unsafe { Slot::new(index) };
                for _ in 0..rounds {
                    let mut guard = lock.lock_with(A::request(&slot, Priority::new(random.u32(0..4))));
                    guard.0 += 1;
                    jitter(&mut random);
                    guard.1 += 1;
                    assert_eq!(guard.0, guard.1, "another thread is inside");
                    drop(guard);
                    jitter(&mut random);
                }
            })
        })
        .collect();
    others.into_iter().for_each(|other| other.join().expect("the thread ends"));
    // SAFETY: the other threads have ended.
    let slot = unsafe { Slot::new(0) };
    assert_eq!(*lock.lock_with(A::request(&slot, Priority::new(0))), (threads * rounds, threads * rounds));
}

fn jitter(random: &mut fastrand::Rng) {
    match random.u8(..) {
        0..4 => thread::yield_now(),
        4..64 => (0..random.u32(0..200)).for_each(|_| core::hint::spin_loop()),
        _ => {}
    }
}
