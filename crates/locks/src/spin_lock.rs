//! A value behind an algorithm, reached through a guard.

use crate::{Abortable, Algorithm, Deadline};
use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};

/// A value for one holder at a time. How it waits, for whom and for how long is the algorithm's: see there.
///
/// # Examples
/// ```
/// use lockwright_locks::{SpinLock, Ticket};
///
/// static COUNT: SpinLock<Ticket, u64> = SpinLock::new(0);
/// *COUNT.lock() += 1;
/// ```
pub struct SpinLock<A, T: ?Sized> {
    algorithm: A,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached through a guard only, and the algorithm gives one at a time; so it moves between threads.
unsafe impl<A: Algorithm + Sync, T: ?Sized + Send> Sync for SpinLock<A, T> {}

/// The right to the value, until dropped: in a panic too. It stays with the thread, and borrows the slot it was taken from.
#[must_use = "the lock is released when the guard is dropped"]
pub struct Guard<'a, A: Algorithm, T: ?Sized> {
    lock: &'a SpinLock<A, T>,
    hold: ManuallyDrop<A::Hold>,
    /// Neither `Send` nor, by itself, `Sync`: who takes the lock releases it.
    here: PhantomData<(A::Request<'a>, *mut ())>,
}

// SAFETY: a shared guard gives shared access to the value and nothing else.
unsafe impl<A: Algorithm, T: ?Sized + Sync> Sync for Guard<'_, A, T> {}

impl<A: Algorithm, T> SpinLock<A, T> {
    /// Free, with `value` in it.
    #[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
    pub const fn new(value: T) -> Self {
        Self { algorithm: A::FREE, value: UnsafeCell::new(value) }
    }

    /// Free, with `value` in it. The models have no constant atomics.
    #[cfg(any(lockwright_loom, lockwright_shuttle))]
    pub fn new(value: T) -> Self {
        Self { algorithm: A::free(), value: UnsafeCell::new(value) }
    }

    /// The value, by the right of having the lock itself.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<A: Algorithm, T: ?Sized> SpinLock<A, T> {
    /// Takes the lock for `request`: `&slot`, or `(&slot, priority)`.
    ///
    /// # Panics
    /// When the slot is beyond those of the lock.
    ///
    /// # Bound
    /// The algorithm's.
    #[inline]
    pub fn lock_with<'a>(&'a self, request: A::Request<'a>) -> Guard<'a, A, T> {
        self.guard(self.algorithm.acquire(request))
    }

    /// Takes the lock if it is free, as it is not while somebody waits whom a release has seen; never waits.
    ///
    /// # Panics
    /// When the slot is beyond those of the lock.
    #[inline]
    pub fn try_lock_with<'a>(&'a self, request: A::Request<'a>) -> Option<Guard<'a, A, T>> {
        self.algorithm.try_acquire(request).map(|hold| self.guard(hold))
    }

    /// Takes the lock, or gives up at the first look after `deadline` has passed.
    ///
    /// # Panics
    /// When the slot is beyond those of the lock.
    ///
    /// # Examples
    /// ```
    /// use lockwright_locks::{SpinLock, Tas};
    ///
    /// let lock: SpinLock<Tas, ()> = SpinLock::new(());
    /// let mut looks = 0;
    /// let guard = lock.lock_until((), || { looks += 1; looks > 1_000 });
    /// assert!(guard.is_some());
    /// ```
    #[inline]
    pub fn lock_until<'a>(&'a self, request: A::Request<'a>, deadline: impl Deadline) -> Option<Guard<'a, A, T>>
    where
        A: Abortable,
    {
        self.algorithm.acquire_until(request, deadline).map(|hold| self.guard(hold))
    }

    /// The value, by the right of having the lock itself.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    #[inline]
    fn guard(&self, hold: A::Hold) -> Guard<'_, A, T> {
        Guard { lock: self, hold: ManuallyDrop::new(hold), here: PhantomData }
    }

    #[cfg(test)]
    pub(crate) fn algorithm(&self) -> &A {
        &self.algorithm
    }
}

impl<A: for<'r> Algorithm<Request<'r> = ()>, T: ?Sized> SpinLock<A, T> {
    /// Takes the lock.
    ///
    /// # Bound
    /// The algorithm's.
    #[inline]
    pub fn lock(&self) -> Guard<'_, A, T> {
        self.lock_with(())
    }

    /// Takes the lock if it is free, as it is not while somebody waits whom a release has seen; never waits.
    #[inline]
    pub fn try_lock(&self) -> Option<Guard<'_, A, T>> {
        self.try_lock_with(())
    }
}

impl<A: Algorithm, T: Default> Default for SpinLock<A, T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<A, T: ?Sized> fmt::Debug for SpinLock<A, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpinLock").finish_non_exhaustive()
    }
}

impl<A: Algorithm, T: ?Sized> Drop for Guard<'_, A, T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the guard is dropped once, and its hold is not used after.
        let hold = unsafe { ManuallyDrop::take(&mut self.hold) };
        // SAFETY: it came from an acquire of this lock, and a guard releases once.
        unsafe { self.lock.algorithm.release(hold) };
    }
}

impl<A: Algorithm, T: ?Sized> Deref for Guard<'_, A, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this guard holds the lock for as long as it lives.
        unsafe { &*self.lock.value.get() }
    }
}

impl<A: Algorithm, T: ?Sized> DerefMut for Guard<'_, A, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this guard holds the lock for as long as it lives, and is borrowed mutably.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<A: Algorithm, T: ?Sized + fmt::Debug> fmt::Debug for Guard<'_, A, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
