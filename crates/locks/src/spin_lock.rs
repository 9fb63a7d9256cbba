//! A value behind an algorithm, accessed through a guard.

use crate::{Abortable, Algorithm, Deadline};
use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};

/// A value that one holder at a time accesses. The algorithm determines the order of waiters and their bound.
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

// SAFETY: only a guard gives shared access to the value, and the algorithm admits one guard at a time. The value thus
// moves between threads, which requires `Send`.
unsafe impl<A: Algorithm + Sync, T: ?Sized + Send> Sync for SpinLock<A, T> {}

/// The access to the value until the guard is dropped, even by a panic.
///
/// A guard stays on its thread and borrows the slot of its request.
///
/// # Examples
/// ```
/// use lockwright_locks::{Guard, SpinLock, Ticket};
///
/// fn clear(count: &mut Guard<'_, Ticket, u32>) {
///     **count = 0;
/// }
///
/// let lock = SpinLock::<Ticket, u32>::new(7);
/// clear(&mut lock.lock());
/// assert_eq!(lock.into_inner(), 0);
/// ```
#[must_use = "the lock is released when the guard is dropped"]
pub struct Guard<'a, A: Algorithm, T: ?Sized> {
    lock: &'a SpinLock<A, T>,
    hold: ManuallyDrop<A::Hold>,
    /// A guard is not `Send`, because the thread that acquires the lock releases it. It is `Sync` by the impl below.
    here: PhantomData<(A::Request<'a>, *mut ())>,
}

// SAFETY: a shared guard gives only shared access to the value, for which `T: Sync` is enough.
unsafe impl<A: Algorithm, T: ?Sized + Sync> Sync for Guard<'_, A, T> {}

impl<A: Algorithm, T> SpinLock<A, T> {
    /// Creates a free lock with a value.
    #[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
    #[must_use]
    pub const fn new(value: T) -> Self {
        Self { algorithm: A::FREE, value: UnsafeCell::new(value) }
    }

    /// Creates a free lock with a value. Models have no constant atomics.
    #[cfg(any(lockwright_loom, lockwright_shuttle))]
    #[must_use]
    pub fn new(value: T) -> Self {
        Self { algorithm: A::free(), value: UnsafeCell::new(value) }
    }

    /// Consumes the lock and returns the value.
    #[must_use]
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<A: Algorithm, T: ?Sized> SpinLock<A, T> {
    /// Acquires the lock for a request: `()`, `&slot`, or `(&slot, priority)`.
    ///
    /// # Panics
    /// If the slot is not one of the lock's slots, or waits for a lock already.
    ///
    /// # Bound
    /// The bound of the algorithm.
    #[inline]
    pub fn lock_with<'a>(&'a self, request: A::Request<'a>) -> Guard<'a, A, T> {
        self.guard(self.algorithm.acquire(request))
    }

    /// Acquires the lock if it is free, without waiting.
    ///
    /// A lock with an order is not free while a thread waits that a release has seen.
    ///
    /// # Panics
    /// If the slot is not one of the lock's slots, or waits for a lock already.
    #[inline]
    pub fn try_lock_with<'a>(&'a self, request: A::Request<'a>) -> Option<Guard<'a, A, T>> {
        self.algorithm.try_acquire(request).map(|hold| self.guard(hold))
    }

    /// Acquires the lock, or gives up at the first check after `deadline` has passed.
    ///
    /// # Panics
    /// If the slot is not one of the lock's slots, or waits for a lock already.
    ///
    /// # Examples
    /// ```
    /// use lockwright_locks::{SpinLock, Tas};
    ///
    /// let lock: SpinLock<Tas, ()> = SpinLock::new(());
    /// let mut checks = 0;
    /// let guard = lock.lock_until((), || {
    ///     checks += 1;
    ///     checks > 1_000
    /// });
    /// assert!(guard.is_some());
    /// ```
    #[inline]
    pub fn lock_until<'a>(&'a self, request: A::Request<'a>, deadline: impl Deadline) -> Option<Guard<'a, A, T>>
    where
        A: Abortable,
    {
        self.algorithm.acquire_until(request, deadline).map(|hold| self.guard(hold))
    }

    /// Returns the value of a lock that is borrowed mutably and therefore free.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    #[inline]
    fn guard(&self, hold: A::Hold) -> Guard<'_, A, T> {
        Guard { lock: self, hold: ManuallyDrop::new(hold), here: PhantomData }
    }

    pub(crate) fn algorithm(&self) -> &A {
        &self.algorithm
    }

    /// The value, which a holder may access.
    pub(crate) fn value(&self) -> *mut T {
        self.value.get()
    }
}

impl<A: for<'r> Algorithm<Request<'r> = ()>, T: ?Sized> SpinLock<A, T> {
    /// Acquires the lock.
    ///
    /// # Bound
    /// The bound of the algorithm.
    #[inline]
    pub fn lock(&self) -> Guard<'_, A, T> {
        self.lock_with(())
    }

    /// Acquires the lock if it is free, without waiting.
    ///
    /// A lock with an order is not free while a thread waits that a release has seen.
    #[inline]
    pub fn try_lock(&self) -> Option<Guard<'_, A, T>> {
        self.try_lock_with(())
    }
}

impl<A: Algorithm, T> From<T> for SpinLock<A, T> {
    /// As [`SpinLock::new`].
    fn from(value: T) -> Self {
        Self::new(value)
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
        // SAFETY: a guard is dropped once, and its hold is not used afterwards.
        let hold = unsafe { ManuallyDrop::take(&mut self.hold) };
        // SAFETY: the hold came from an acquire of this lock and is released once. The guard borrows the slot, so the
        // slot is alive. A further request from the slot waits for this guard, or fails or gives up without an effect
        // on the hold. A `Relax` or a `Deadline` may drop the guard in such a wait. Waiters may be lost then, but this
        // release still either frees the lock or grants it once, and each acquire takes a free lock or a grant.
        unsafe { self.lock.algorithm.release(hold) };
    }
}

impl<A: Algorithm, T: ?Sized> Deref for Guard<'_, A, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this guard holds the lock while it lives, so no other guard gives access to the value.
        unsafe { &*self.lock.value.get() }
    }
}

impl<A: Algorithm, T: ?Sized> DerefMut for Guard<'_, A, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this guard holds the lock while it lives, and is borrowed mutably as long as the value.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<A: Algorithm, T: ?Sized + fmt::Debug> fmt::Debug for Guard<'_, A, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
