//! Reader-writer locks for real-time threads.
//!
//! Readers share the lock, and a writer holds it alone. Phases alternate: after each writer, all waiting readers enter
//! together, and once a writer waits for the readers inside, later readers wait for this writer. So neither side
//! starves, and a reader never waits for a second writer.
//!
//! | waits | order | lends its priority to |
//! |---|---|---|
//! | a reader, for the writer inside or before it | all readers of a phase together | that writer |
//! | a writer, for other writers | by priority, then FIFO | the writer whose turn it is |
//! | a writer, for the readers inside | it is the only one | no thread |
//!
//! Without contention, a reader locks and unlocks with one atomic operation each, and a writer with two each. Neither
//! makes a system call. Nothing spins, and nothing allocates.
//!
//! # Bound
//! A request to read waits for one phase of readers and one writer. A request to write waits for the writer inside, for
//! the more urgent writers that wait or arrive meanwhile, and for a phase of readers before each of these and before
//! itself.
//! These phases are counted in critical sections. How long a section lasts depends on its priority:
//! - A writer executes with at least the priority of every thread that waits for it, as the owner of a mutex with
//!   [`MutexProtocol::Inherit`](crate::mutex::MutexProtocol::Inherit).
//! - A reader keeps its own priority, because the lock only counts readers and does not record which threads they are.
//!   A writer that waits for readers therefore waits for everything that preempts the least urgent of them. If that
//!   matters, keep the readers' sections short and their priorities high, or use a mutex.
//!
//! # Limits
//! - A thread that holds the lock must not request it again, not even to read: a writer may wait in between.
//!   [`RwLock::read_nested`] permits this, at the expense of writers.
//! - If more than four readers wait for one writer, they do not all wake independently: the fifth wakes once the first
//!   has executed.
//! - After a writer has given up at its deadline, the next writer may wait until readers that were admitted have
//!   executed once.
//! - The lock is not robust. Once a writer has ended without unlocking, every request that may wait returns ESRCH, and
//!   a try finds the lock busy. If the system gives the id of that writer to another thread of the process, requests
//!   wait for that thread instead. Once a reader has ended without unlocking, the next writer waits without end, and
//!   everything behind it does.
//! - A cycle of threads that wait is found by the kernel, not by [`on_cycle`](crate::mutex::on_cycle), and only if it
//!   leads through writers and mutexes that inherit.
//!
//! # Reference
//! B. Brandenburg, J. Anderson: Spin-based reader-writer synchronization for multiprocessor real-time systems,
//! Real-Time Systems 46(1), 2010, for the phases. The kernel's PI futexes (`futex(2)`) for inheritance.
//!
//! # Examples
//! ```
//! use lockwright::rwlock::RwLock;
//!
//! static LIMITS: RwLock<(u32, u32)> = RwLock::new((0, 10));
//!
//! *LIMITS.write()? = (5, 15);
//! let limits = LIMITS.read()?;
//! assert_eq!(limits.1 - limits.0, 10);
//! # Ok::<(), lockwright::rwlock::RwLockError>(())
//! ```

mod raw;
mod state;
#[cfg(test)]
mod walk;

pub use raw::RawRwLock;

use crate::mutex::{Deadline, Limit, RawError};
use lockwright_sys::SysError;
use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

/// A value that either several readers or one writer access.
///
/// # Bound
/// See the [module](self).
///
/// # Examples
/// ```
/// use lockwright::rwlock::{RwLock, RwLockError};
/// use std::time::Duration;
///
/// let positions = RwLock::new([0.0; 3]);
/// {
///     let (one, other) = (positions.read()?, positions.read_nested()?);
///     assert_eq!(one[0], other[0]);
///     assert_eq!(positions.write_for(Duration::from_millis(1)).unwrap_err(), RwLockError::TimedOut);
/// }
/// positions.write()?[0] = 1.0;
/// # Ok::<(), RwLockError>(())
/// ```
#[repr(C)]
pub struct RwLock<T: ?Sized> {
    raw: RawRwLock,
    value: UnsafeCell<T>,
}

// SAFETY: readers on several threads access the value together, which needs `Sync`, and writers move it between
// threads, which needs `Send`.
unsafe impl<T: ?Sized + Send + Sync> Sync for RwLock<T> {}
// SAFETY: moving the lock moves its value, for which `T: Send` is enough. A lock that a guard borrows cannot move.
unsafe impl<T: ?Sized + Send> Send for RwLock<T> {}

impl<T> RwLock<T> {
    /// Creates a lock for the threads of this process.
    #[must_use]
    pub const fn new(value: T) -> Self {
        Self { raw: RawRwLock::new(false, 0), value: UnsafeCell::new(value) }
    }

    /// Creates a lock for the threads of all processes that map it. The value must be valid in all of them.
    #[must_use]
    pub const fn shared(value: T) -> Self {
        Self { raw: RawRwLock::new(true, 0), value: UnsafeCell::new(value) }
    }

    /// Consumes the lock and returns its value.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Locks for reading.
    ///
    /// # Errors
    /// [`RwLockError::Deadlock`], [`RwLockError::TooManyReaders`], [`RwLockError::Sys`].
    pub fn read(&self) -> Result<ReadGuard<'_, T>, RwLockError> {
        self.reading(self.raw.read(Limit::Never))
    }

    /// Locks for reading, unless a writer is inside or waits for readers.
    ///
    /// # Errors
    /// [`RwLockError::Busy`], and those of [`RwLock::read`].
    pub fn try_read(&self) -> Result<ReadGuard<'_, T>, RwLockError> {
        self.reading(self.raw.read(Limit::Now))
    }

    /// Locks for reading, waiting at most until `deadline`.
    ///
    /// # Errors
    /// [`RwLockError::TimedOut`], and those of [`RwLock::read`].
    pub fn read_until(&self, deadline: Deadline) -> Result<ReadGuard<'_, T>, RwLockError> {
        self.reading(self.raw.read(Limit::At(deadline)))
    }

    /// Locks for reading like [`RwLock::read_until`], with a deadline `time` from now on the monotonic clock.
    ///
    /// # Errors
    /// Those of [`RwLock::read_until`].
    pub fn read_for(&self, time: Duration) -> Result<ReadGuard<'_, T>, RwLockError> {
        self.read_until(Deadline::after(time))
    }

    /// Locks for reading, for a caller that may already hold the lock for reading. It does not wait for a writer that
    /// waits for readers, so writers have no bound if threads do this again and again.
    ///
    /// # Errors
    /// Those of [`RwLock::read`].
    pub fn read_nested(&self) -> Result<ReadGuard<'_, T>, RwLockError> {
        self.reading(self.raw.read_nested(Limit::Never))
    }

    /// Locks for writing.
    ///
    /// # Errors
    /// [`RwLockError::Deadlock`], [`RwLockError::Sys`].
    pub fn write(&self) -> Result<WriteGuard<'_, T>, RwLockError> {
        self.writing(Limit::Never)
    }

    /// Locks for writing if the lock is free.
    ///
    /// # Errors
    /// [`RwLockError::Busy`], and those of [`RwLock::write`].
    pub fn try_write(&self) -> Result<WriteGuard<'_, T>, RwLockError> {
        self.writing(Limit::Now)
    }

    /// Locks for writing, waiting at most until `deadline`.
    ///
    /// # Errors
    /// [`RwLockError::TimedOut`], and those of [`RwLock::write`].
    pub fn write_until(&self, deadline: Deadline) -> Result<WriteGuard<'_, T>, RwLockError> {
        self.writing(Limit::At(deadline))
    }

    /// Locks for writing like [`RwLock::write_until`], with a deadline `time` from now on the monotonic clock.
    ///
    /// # Errors
    /// Those of [`RwLock::write_until`].
    pub fn write_for(&self, time: Duration) -> Result<WriteGuard<'_, T>, RwLockError> {
        self.write_until(Deadline::after(time))
    }

    /// Returns the value without locking: the exclusive borrow proves that no guard exists.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    #[inline]
    fn reading(&self, locked: Result<(), RawError>) -> Result<ReadGuard<'_, T>, RwLockError> {
        locked.map_err(RwLockError::of)?;
        Ok(ReadGuard { lock: self, here: PhantomData })
    }

    #[inline]
    fn writing(&self, limit: Limit) -> Result<WriteGuard<'_, T>, RwLockError> {
        self.raw.write(limit).map_err(RwLockError::of)?;
        Ok(WriteGuard { lock: self, here: PhantomData })
    }
}

impl<T> From<T> for RwLock<T> {
    /// As [`RwLock::new`].
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: Default> Default for RwLock<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T: ?Sized> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RwLock").field("raw", &self.raw).finish_non_exhaustive()
    }
}

/// Shared access to the value. Dropping it unlocks.
#[must_use = "the lock is released when the guard is dropped"]
pub struct ReadGuard<'a, T: ?Sized> {
    lock: &'a RwLock<T>,
    /// A guard stays on its thread, as that of a mutex.
    here: PhantomData<*mut ()>,
}

/// Exclusive access to the value. Dropping it unlocks.
#[must_use = "the lock is released when the guard is dropped"]
pub struct WriteGuard<'a, T: ?Sized> {
    lock: &'a RwLock<T>,
    /// A guard stays on its thread, which owns the lock.
    here: PhantomData<*mut ()>,
}

// SAFETY: a shared guard gives only shared access to the value, for which `T: Sync` is enough.
unsafe impl<T: ?Sized + Sync> Sync for ReadGuard<'_, T> {}
// SAFETY: a shared guard gives only shared access to the value, for which `T: Sync` is enough.
unsafe impl<T: ?Sized + Sync> Sync for WriteGuard<'_, T> {}

impl<T: ?Sized> Deref for ReadGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the lock is locked for reading while this guard lives, so there are other readers at most.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T: ?Sized> WriteGuard<'_, T> {
    /// Unlocks like dropping the guard does, and returns the error if that fails.
    ///
    /// This is an associated function, so that it hides no method of the value.
    ///
    /// # Errors
    /// [`RwLockError::Sys`] if the kernel refused to wake a waiter. The caller no longer holds the lock, and a thread
    /// that waits for it may stay suspended.
    ///
    /// # Examples
    /// ```
    /// use lockwright::rwlock::{WriteGuard, RwLock, RwLockError};
    ///
    /// let shared = RwLock::new(1);
    /// let guard = shared.write()?;
    /// WriteGuard::unlock(guard)?;
    /// assert_eq!(*shared.write()?, 1);
    /// # Ok::<(), RwLockError>(())
    /// ```
    #[inline]
    pub fn unlock(guard: Self) -> Result<(), RwLockError> {
        let lock = guard.lock;
        std::mem::forget(guard);
        lock.raw.unlock_write().map_err(RwLockError::of)
    }
}

impl<T: ?Sized> Deref for WriteGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the lock is locked for writing while this guard lives, so no other thread accesses the value.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T: ?Sized> DerefMut for WriteGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the lock is locked for writing while this guard lives, and the guard is borrowed mutably as long as
        // the value.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T: ?Sized> Drop for ReadGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // There is a reader to leave: this one.
        let _ = self.lock.raw.unlock_read();
    }
}

impl<T: ?Sized> Drop for WriteGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // The kernel has no reason to refuse. If it did, waiters would stay suspended; `unlock` returns the error.
        let _ = self.lock.raw.unlock_write();
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for ReadGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for WriteGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// Why a lock failed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum RwLockError {
    /// [`RwLock::try_read`] or [`RwLock::try_write`] found the lock held.
    Busy,
    /// The deadline passed.
    TimedOut,
    /// The caller would wait for itself.
    Deadlock,
    /// 65,535 readers hold the lock or wait for it.
    TooManyReaders,
    /// The kernel refused an operation. ESRCH means that a writer has ended without unlocking.
    Sys(SysError),
}

impl RwLockError {
    fn of(error: RawError) -> Self {
        match error {
            RawError::Busy => Self::Busy,
            RawError::TimedOut => Self::TimedOut,
            RawError::Deadlock(_) => Self::Deadlock,
            RawError::TooOften => Self::TooManyReaders,
            RawError::Sys(error) => Self::Sys(error),
            RawError::NotRecoverable | RawError::AboveCeiling | RawError::NotOwner | RawError::Inapplicable => {
                Self::Sys(SysError { call: "locking", errno: libc::EINVAL })
            }
        }
    }
}

impl fmt::Display for RwLockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy => f.write_str("other threads hold the lock"),
            Self::TimedOut => f.write_str("the deadline passed before the lock was free"),
            Self::Deadlock => f.write_str("a deadlock: the caller would wait for itself"),
            Self::TooManyReaders => f.write_str("too many readers hold the lock or wait for it"),
            Self::Sys(error) => write!(f, "the lock was not locked: {error}"),
        }
    }
}

impl std::error::Error for RwLockError {}
