//! A value behind an algorithm that readers can share.

use crate::spin_lock::{Guard, SpinLock};
use crate::{Algorithm, Shareable};
use core::fmt;
use core::marker::PhantomData;
use core::ops::Deref;

/// A value that either several readers or one writer access. The algorithm determines their order and their bound.
///
/// A thread must not request the lock again while it holds it, not even to read: a writer may wait in between.
///
/// # Examples
/// ```
/// use lockwright_locks::{PhaseFair, RwSpinLock};
///
/// static LIMITS: RwSpinLock<PhaseFair, (u32, u32)> = RwSpinLock::new((0, 10));
/// *LIMITS.write() = (5, 15);
/// let limits = LIMITS.read();
/// assert_eq!(limits.1 - limits.0, 10);
/// ```
pub struct RwSpinLock<A, T: ?Sized> {
    /// Readers on several threads access the value, so a lock is `Sync` only if the value is.
    shares: PhantomData<T>,
    lock: SpinLock<A, T>,
}

/// The shared access to the value until the guard is dropped, even by a panic. A guard stays on its thread.
///
/// # Examples
/// ```
/// use lockwright_locks::{ReadGuard, RwSpinLock, TaskFair};
///
/// fn sum(pair: &ReadGuard<'_, TaskFair, (u32, u32)>) -> u32 {
///     pair.0 + pair.1
/// }
///
/// let lock = RwSpinLock::<TaskFair, _>::new((3, 4));
/// assert_eq!(sum(&lock.read()), 7);
/// ```
#[must_use = "the lock is released when the guard is dropped"]
pub struct ReadGuard<'a, A: Shareable, T: ?Sized> {
    lock: &'a RwSpinLock<A, T>,
    /// A guard is not `Send`, as that of a [`SpinLock`]. It is `Sync` by the impl below.
    here: PhantomData<*mut ()>,
}

// SAFETY: a shared guard gives only shared access to the value, for which `T: Sync` is enough.
unsafe impl<A: Shareable, T: ?Sized + Sync> Sync for ReadGuard<'_, A, T> {}

impl<A: Algorithm, T> RwSpinLock<A, T> {
    /// Creates a free lock with a value.
    #[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
    #[must_use]
    pub const fn new(value: T) -> Self {
        Self { shares: PhantomData, lock: SpinLock::new(value) }
    }

    /// Creates a free lock with a value. Models have no constant atomics.
    #[cfg(any(lockwright_loom, lockwright_shuttle))]
    #[must_use]
    pub fn new(value: T) -> Self {
        Self { shares: PhantomData, lock: SpinLock::new(value) }
    }

    /// Consumes the lock and returns the value.
    #[must_use]
    pub fn into_inner(self) -> T {
        self.lock.into_inner()
    }
}

impl<A: Shareable, T: ?Sized> RwSpinLock<A, T> {
    /// Acquires the lock for reading.
    ///
    /// # Bound
    /// The bound of the algorithm.
    #[inline]
    pub fn read(&self) -> ReadGuard<'_, A, T> {
        self.lock.algorithm().acquire_shared();
        ReadGuard { lock: self, here: PhantomData }
    }

    /// Acquires the lock for reading if no writer holds it or waits for it, without waiting. It may also fail while
    /// another thread enters or leaves.
    #[inline]
    pub fn try_read(&self) -> Option<ReadGuard<'_, A, T>> {
        self.lock.algorithm().try_acquire_shared().then(|| ReadGuard { lock: self, here: PhantomData })
    }

    /// Acquires the lock for writing.
    ///
    /// # Bound
    /// The bound of the algorithm.
    #[inline]
    pub fn write(&self) -> Guard<'_, A, T> {
        self.lock.lock()
    }

    /// Acquires the lock for writing if it is free, without waiting.
    ///
    /// It may also fail while another thread tries.
    #[inline]
    pub fn try_write(&self) -> Option<Guard<'_, A, T>> {
        self.lock.try_lock()
    }

    /// Returns the value of a lock that is borrowed mutably and therefore free.
    pub fn get_mut(&mut self) -> &mut T {
        self.lock.get_mut()
    }

    #[cfg(test)]
    pub(crate) fn algorithm(&self) -> &A {
        self.lock.algorithm()
    }
}

impl<A: Algorithm, T> From<T> for RwSpinLock<A, T> {
    /// As [`RwSpinLock::new`].
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<A: Algorithm, T: Default> Default for RwSpinLock<A, T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<A, T: ?Sized> fmt::Debug for RwSpinLock<A, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RwSpinLock").finish_non_exhaustive()
    }
}

impl<A: Shareable, T: ?Sized> Drop for ReadGuard<'_, A, T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the lock was acquired when the guard was made, and a guard is dropped once.
        unsafe { self.lock.lock.algorithm().release_shared() };
    }
}

impl<A: Shareable, T: ?Sized> Deref for ReadGuard<'_, A, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the lock is locked for reading while this guard lives, so there are other readers at most.
        unsafe { &*self.lock.lock.value() }
    }
}

impl<A: Shareable, T: ?Sized + fmt::Debug> fmt::Debug for ReadGuard<'_, A, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TaskFair;
    use core::cell::Cell;

    #[test]
    fn the_lock_is_shared_as_its_value_is() {
        trait IsSync {
            const IS_SYNC: bool = false;
        }
        impl<T: ?Sized> IsSync for T {}
        struct Of<T: ?Sized>(PhantomData<T>);
        #[allow(dead_code)]
        impl<T: ?Sized + Sync> Of<T> {
            const IS_SYNC: bool = true;
        }
        const {
            assert!(Of::<RwSpinLock<TaskFair, u32>>::IS_SYNC);
            assert!(!Of::<RwSpinLock<TaskFair, Cell<u32>>>::IS_SYNC, "readers would share the cell");
            assert!(Of::<SpinLock<TaskFair, Cell<u32>>>::IS_SYNC, "the holder has the cell alone");
        }
    }
}
