//! The guard around a machine: short mutual exclusion between threads of any priority.
//!
//! A waiter suspends and the holder inherits its priority; nobody spins in user space. (The kernel itself spins for an owner that
//! is executing on another CPU, for as long as it does.) Uncontended it is one atomic
//! operation each way. What is done under it is bounded: a machine's decision, with the priorities that are in effect before the next, or one priority change.

use crate::pi_word::PiWord;
use crate::sched::gettid;
use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

/// A value for one thread at a time.
#[derive(Debug)]
pub struct Guarded<T> {
    word: PiWord,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached through `Guard` only, which one thread at a time has; it moves between threads, so it is Send.
unsafe impl<T: Send> Sync for Guarded<T> {}

/// The right to the value, given back when dropped, in a panic too; by the thread that has it, and by no other.
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

    /// As [`Guarded::lock`], also after a holder that ended. `None` where the caller has the guard, which it then is a signal handler of, or the
    /// kernel refuses.
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

    /// Makes it free in a child process, which has no other threads.
    ///
    /// # Safety
    /// No [`Guard`] of it is used again in this process.
    #[inline]
    pub unsafe fn reset(&self) {
        self.word.reset();
    }

    /// Waits for the value.
    ///
    /// BOUND: what each of the threads before it does under the guard; the holder runs with the caller's priority.
    ///
    /// # Panics
    /// When the thread has the guard already, or the holder has ended without giving it back: both are faults of
    /// this crate.
    #[inline]
    pub fn lock(&self) -> Guard<'_, T> {
        if let Err(error) = self.word.lock(gettid()) {
            panic!("a guard is taken once by a thread and given back by the same: {error:?}");
        }
        Guard { guarded: self, here: PhantomData }
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        let unlocked = self.guarded.word.unlock(gettid());
        // A guard that stays taken would suspend everybody who asks for it, and nobody would be told why.
        assert!(unlocked.is_ok(), "the guard is given back by the thread that has it: {unlocked:?}");
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this thread owns the word for as long as `self` lives.
        unsafe { &*self.guarded.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this thread owns the word for as long as `self` lives, and `self` is borrowed mutably.
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

    /// Executes for `ns`, whatever comes between.
    fn burn(ns: u64) {
        let (mut left, mut last) = (ns, clock::now_ns());
        while left > 0 {
            let now = clock::now_ns();
            left = left.saturating_sub((now - last).min(MS / 10));
            last = now;
        }
    }

    /// On one CPU: a low thread takes the lock for 10 ms, a medium one executes 40 ms, a high one wants the lock.
    /// Says whether the high one got it before the medium one was done.
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

    /// With a guard that is spun on, the high thread would never get it: the holder never runs again.
    #[test]
    fn a_holder_on_the_same_cpu_goes_on_at_the_priority_of_its_waiter() {
        let Some(_machine) = require_realtime() else { return };
        assert!(high_is_served_before_medium(Guarded::new(()), |guarded, section| {
            let _guard = guarded.lock();
            section();
        }));
    }

    /// The same with a lock that lends nothing: if this passed, the test above would say nothing.
    #[test]
    fn a_plain_mutex_lets_the_medium_thread_through() {
        let Some(_machine) = require_realtime() else { return };
        assert!(!high_is_served_before_medium(std::sync::Mutex::new(()), |mutex, section| {
            let _guard = mutex.lock();
            section();
        }));
    }

    #[test]
    fn nothing_is_lost_between_threads_of_all_priorities() {
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
    fn a_panic_gives_the_guard_back() {
        let guarded = Arc::new(Guarded::new(0));
        let thread = spawn({
            let guarded = Arc::clone(&guarded);
            move || {
                let _guard = guarded.lock();
                panic!("a test of what follows");
            }
        });
        assert!(thread.join().is_err());
        *guarded.lock() += 1;
        assert_eq!(*guarded.lock(), 1);
    }

    #[test]
    fn who_has_the_guard_is_told_that_it_would_wait_for_itself() {
        let word = PiWord::new();
        let me = gettid();
        assert_eq!(word.lock(me), Ok(false));
        assert_eq!(word.lock(me), Err(crate::pi_word::PiError::Deadlock));
        assert_eq!(word.unlock(me), Ok(()));
        assert_eq!(word.lock(me), Ok(false));
    }
}
