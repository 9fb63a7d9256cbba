//! The guard around a protocol's state machine: short mutual exclusion between threads of any priority.
//!
//! A waiter suspends, and the holder inherits its priority. No thread spins in user space. (The kernel itself spins
//! while the owner executes on another CPU.) Without contention, lock and unlock are one atomic operation each.
//!
//! Every section under the guard is bounded. It is one decision of a state machine, which puts its priorities into
//! effect before the next decision, or it is one priority change.

use crate::pi_word::PiWord;
use crate::sched::gettid;
use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

/// A value that one thread at a time may access.
#[derive(Debug)]
pub struct Guarded<T> {
    word: PiWord,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached only through `Guard`, and only the thread that owns the word has one. So the value moves
// between threads, and `T: Send` is enough.
unsafe impl<T: Send> Sync for Guarded<T> {}

/// Access to the value. The thread that locked it unlocks it when the guard is dropped, also in a panic.
#[derive(Debug)]
pub struct Guard<'a, T> {
    guarded: &'a Guarded<T>,
    /// Neither `Send` nor `Sync`: the word holds the id of this thread.
    here: PhantomData<*mut ()>,
}

impl<T> Guarded<T> {
    /// Guards `value`.
    #[must_use]
    pub const fn new(value: T) -> Self {
        Self { word: PiWord::new(), value: UnsafeCell::new(value) }
    }

    /// As [`Guarded::lock`], but also succeeds after a holder ended without unlocking. Returns `None` if the caller
    /// already holds the guard (it is then a signal handler of the holder), or if the kernel refuses.
    ///
    /// BOUND: as in `lock`.
    #[inline]
    pub fn lock_or_inherit(&self) -> Option<Guard<'_, T>> {
        let me = gettid();
        if self.word.is_owned_by(me) {
            return None;
        }
        self.word.lock_or_inherit(me).ok().map(|_| Guard { guarded: self, here: PhantomData })
    }

    /// Unlocks it in a child process, which has no other threads.
    ///
    /// # Safety
    /// No [`Guard`] of this value is used again in this process.
    #[inline]
    pub unsafe fn reset(&self) {
        self.word.reset();
    }

    /// Locks the value. Waits while another thread holds it.
    ///
    /// BOUND: one section under the guard of each thread before the caller; the holder executes with at least the
    /// caller's priority.
    ///
    /// # Panics
    /// If the thread already holds the guard, or the holder ended without unlocking. Both are faults of this crate.
    #[inline]
    pub fn lock(&self) -> Guard<'_, T> {
        if let Err(error) = self.word.lock(gettid()) {
            panic!("a thread locks a guard once and unlocks it before it ends: {error:?}");
        }
        Guard { guarded: self, here: PhantomData }
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        let unlocked = self.guarded.word.unlock(gettid());
        // A guard that stayed locked would suspend every later caller without a message.
        assert!(unlocked.is_ok(), "the thread that holds the guard can unlock it: {unlocked:?}");
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this thread owns the word while `self` lives, so no other thread has a guard, and `self` is borrowed
        // shared.
        unsafe { &*self.guarded.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this thread owns the word while `self` lives, so no other thread has a guard, and `self` is borrowed
        // mutably.
        unsafe { &mut *self.guarded.value.get() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::require_realtime;
    use crate::{clock, sched};
    use std::sync::Arc;
    use std::thread::spawn;

    const MS: u64 = 1_000_000;

    fn become_fifo(cpu: usize, level: u8) {
        let me = gettid();
        sched::set_affinity(me, &[cpu]).expect("an allowed CPU");
        sched::set_fifo(me, level).expect("permission was checked");
    }

    /// Executes for `ns` of CPU time; preemptions do not count.
    fn burn(ns: u64) {
        let (mut left, mut last) = (ns, clock::now_ns());
        while left > 0 {
            let now = clock::now_ns();
            left = left.saturating_sub((now - last).min(MS / 10));
            last = now;
        }
    }

    /// Runs three threads on one CPU: a low one holds the lock for 10 ms, a medium one executes for 40 ms, and a high
    /// one requests the lock. Returns whether the high one acquired it before the medium one was done.
    fn high_is_served_before_medium<L: Send + Sync + 'static>(lock: L, with: fn(&L, &mut dyn FnMut())) -> bool {
        let cpu = sched::affinity().expect("a CPU set")[0];
        let lock = Arc::new(lock);
        let start = clock::now_ns() + 20 * MS;
        let low = spawn({
            let lock = Arc::clone(&lock);
            move || {
                become_fifo(cpu, 1);
                clock::sleep_until(start).expect("a sleep");
                with(&lock, &mut || burn(10 * MS));
            }
        });
        let medium = spawn(move || {
            become_fifo(cpu, 2);
            clock::sleep_until(start + 2 * MS).expect("a sleep");
            burn(40 * MS);
            clock::now_ns()
        });
        let high = spawn(move || {
            become_fifo(cpu, 3);
            clock::sleep_until(start + 4 * MS).expect("a sleep");
            let mut got = 0;
            with(&lock, &mut || got = clock::now_ns());
            got
        });
        let (got, ended) = (high.join().expect("high"), medium.join().expect("medium"));
        low.join().expect("low");
        got < ended
    }

    /// With a guard that spins, the high thread would never acquire it, because the holder would never execute again.
    #[test]
    fn the_holder_inherits_the_priority_of_its_waiter() {
        let Some(_machine) = require_realtime() else { return };
        assert!(high_is_served_before_medium(Guarded::new(()), |guarded, section| {
            let _guard = guarded.lock();
            section();
        }));
    }

    /// The control experiment, with a lock without inheritance. If the high thread were served first here, the test
    /// above would prove nothing.
    #[test]
    fn a_plain_mutex_suffers_priority_inversion() {
        let Some(_machine) = require_realtime() else { return };
        assert!(!high_is_served_before_medium(std::sync::Mutex::new(()), |mutex, section| {
            let _guard = mutex.lock();
            section();
        }));
    }

    #[test]
    fn no_update_is_lost_between_threads_of_all_priorities() {
        const THREADS: u8 = 6;
        const ROUNDS: u64 = 20_000;
        let Some(_machine) = require_realtime() else { return };
        let cpus = sched::affinity().expect("a CPU set");
        let guarded = Arc::new(Guarded::new(0_u64));
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let (guarded, cpu) = (Arc::clone(&guarded), cpus[usize::from(thread) % cpus.len()]);
                spawn(move || {
                    become_fifo(cpu, 1 + thread);
                    for round in 0..ROUNDS {
                        *guarded.lock() += 1;
                        if round % 64 == 0 {
                            clock::sleep_until(clock::now_ns() + 1_000).expect("a sleep");
                        }
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().expect("a thread"));
        assert_eq!(*guarded.lock(), u64::from(THREADS) * ROUNDS);
    }

    #[test]
    fn a_panic_unlocks_the_guard() {
        let guarded = Arc::new(Guarded::new(0));
        let thread = spawn({
            let guarded = Arc::clone(&guarded);
            move || {
                let _guard = guarded.lock();
                panic!("a test of unlocking in a panic");
            }
        });
        assert!(thread.join().is_err());
        *guarded.lock() += 1;
        assert_eq!(*guarded.lock(), 1);
    }

    #[test]
    fn locking_a_word_twice_is_a_deadlock_error() {
        let word = PiWord::new();
        let me = gettid();
        assert_eq!(word.lock(me), Ok(false));
        assert_eq!(word.lock(me), Err(crate::pi_word::PiError::Deadlock));
        assert_eq!(word.unlock(me), Ok(()));
        assert_eq!(word.lock(me), Ok(false));
    }
}
