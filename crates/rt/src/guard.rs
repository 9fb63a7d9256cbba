//! The guard around a machine: short mutual exclusion between threads of any priority.
//!
//! A waiter suspends and the holder inherits its priority; nobody spins. Uncontended it is one atomic
//! operation each way. What is done under it is bounded: a machine's decision, or one priority change.

use crate::pi_word::PiWord;
use crate::sys::sched::gettid;
use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};

/// A value for one thread at a time.
#[derive(Debug)]
pub(crate) struct Guarded<T> {
    word: PiWord,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached through `Guard` only, which one thread at a time has; it moves between threads, so it is Send.
unsafe impl<T: Send> Sync for Guarded<T> {}

/// The right to the value, given back when dropped, in a panic too.
#[derive(Debug)]
pub(crate) struct Guard<'a, T>(&'a Guarded<T>);

impl<T> Guarded<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self { word: PiWord::new(), value: UnsafeCell::new(value) }
    }

    /// Waits for the value.
    ///
    /// BOUND: what each of the threads before it does under the guard; the holder runs with the caller's priority.
    ///
    /// # Panics
    /// When the thread has the guard already, or the holder has ended without giving it back: both are faults of
    /// this crate.
    pub(crate) fn lock(&self) -> Guard<'_, T> {
        if let Err(error) = self.word.lock(gettid()) {
            panic!("a guard is taken once by a thread and given back by the same: {error:?}");
        }
        Guard(self)
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        let unlocked = self.0.word.unlock(gettid());
        debug_assert!(unlocked.is_ok(), "the guard is given back by the thread that has it: {unlocked:?}");
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: this thread owns the word for as long as `self` lives.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this thread owns the word for as long as `self` lives, and `self` is borrowed mutably.
        unsafe { &mut *self.0.value.get() }
    }
}
