//! Values behind mutexes: the mutex with its guard, the errors of locking, and the condition variable.

use super::builder::Builder;
use super::condvar::{RawCondvar, WaitEnd};
use super::cycle::Cycle;
use super::error::{Acquired, Limit, RawError};
use super::raw::RawMutex;
use crate::statistics::MutexStatistics;
use lockwright_sys::SysError;
use lockwright_sys::futex::Deadline;
use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

/// A value that one thread at a time can access.
///
/// # Bound
/// On one processor, with [`MutexProtocol::Inherit`] and [`MutexProtocol::Protect`], a lock waits at most for the
/// critical sections of less urgent threads that `lockwright check` charges under `pip` and `icpp`. With
/// [`MutexProtocol::None`] there is no bound.
///
/// # Reference
/// The fusyn paper (see REFERENCES.md) for the interface; the kernel's PI futexes (`futex(2)`) for inheritance.
///
/// # Examples
/// ```
/// use lockwright::mutex::{Guard, LockError, Mutex, MutexProtocol};
///
/// // SAFETY: guards are dropped, not forgotten.
/// let positions = unsafe { Mutex::builder().protocol(MutexProtocol::Inherit).robust(true) }.build([0.0; 3]);
/// match positions.lock() {
///     Ok(mut guard) => guard[0] = 1.0,
///     Err(LockError::OwnerDied(mut guard)) => {
///         *guard = [0.0; 3];
///         Guard::make_consistent(&guard);
///     }
///     Err(error) => return Err(error.to_string()),
/// }
/// # Ok::<(), String>(())
/// ```
///
/// The value of a mutex that several processes share must be valid in all of them.
///
/// [`MutexProtocol::Inherit`]: super::MutexProtocol::Inherit
/// [`MutexProtocol::None`]: super::MutexProtocol::None
/// [`MutexProtocol::Protect`]: super::MutexProtocol::Protect
#[repr(C)]
pub struct Mutex<T: ?Sized> {
    raw: RawMutex,
    value: UnsafeCell<T>,
}

// SAFETY: only the guard gives access to the value, and one thread at a time has the guard. So the value moves between
// threads, and `Send` is enough.
unsafe impl<T: ?Sized + Send> Sync for Mutex<T> {}
// SAFETY: moving the mutex moves its value, for which `T: Send` is enough. A mutex that a guard borrows cannot move.
unsafe impl<T: ?Sized + Send> Send for Mutex<T> {}

impl Mutex<()> {
    /// Returns a builder with the default attributes.
    #[must_use]
    pub const fn builder() -> Builder {
        Builder::new()
    }
}

impl Builder {
    /// Builds the mutex around the value that it protects.
    ///
    /// # Panics
    /// Panics if [`Builder::build_raw`] does.
    #[must_use]
    pub const fn build<T>(self, value: T) -> Mutex<T> {
        Mutex { raw: self.build_raw(), value: UnsafeCell::new(value) }
    }
}

impl<T> Mutex<T> {
    /// Creates a mutex with the attributes of [`Builder::new`].
    #[must_use]
    pub const fn new(value: T) -> Self {
        Builder::new().build(value)
    }

    /// Consumes the mutex and returns its value.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Locks the mutex.
    ///
    /// # Errors
    /// [`LockError::OwnerDied`] and [`LockError::NotRecoverable`] from a robust mutex; [`LockError::Deadlock`], except
    /// for a cycle in which a thread waits until a deadline; [`LockError::PriorityAboveCeiling`]; [`LockError::Sys`].
    ///
    /// If the owner of a mutex that inherits and is not robust ends while threads wait, the kernel gives it to the
    /// first one, which also gets [`LockError::OwnerDied`]; later locks succeed. If no thread waits, it stays locked,
    /// and requests fail.
    pub fn lock(&self) -> Result<Guard<'_, T>, LockError<'_, T>> {
        self.lock_within(Limit::Never)
    }

    /// Locks the mutex if it is free.
    ///
    /// # Errors
    /// [`LockError::Busy`], and those of [`Mutex::lock`].
    pub fn try_lock(&self) -> Result<Guard<'_, T>, LockError<'_, T>> {
        self.lock_within(Limit::Now)
    }

    /// Locks the mutex, waiting at most until `deadline`. A free mutex is locked even after the deadline.
    ///
    /// # Errors
    /// [`LockError::TimedOut`], and those of [`Mutex::lock`].
    pub fn lock_until(&self, deadline: Deadline) -> Result<Guard<'_, T>, LockError<'_, T>> {
        self.lock_within(Limit::At(deadline))
    }

    /// Locks the mutex like [`Mutex::lock_until`], with a deadline `time` from now on the monotonic clock.
    ///
    /// # Errors
    /// Those of [`Mutex::lock_until`].
    pub fn lock_for(&self, time: Duration) -> Result<Guard<'_, T>, LockError<'_, T>> {
        self.lock_within(Limit::At(Deadline::after(time)))
    }

    #[inline]
    fn lock_within(&self, limit: Limit) -> Result<Guard<'_, T>, LockError<'_, T>> {
        match self.raw.lock(limit) {
            Ok(Acquired::Clean) => Ok(Guard { mutex: self, here: PhantomData }),
            Ok(Acquired::OwnerDied) => Err(LockError::OwnerDied(Guard { mutex: self, here: PhantomData })),
            Err(error) => Err(LockError::of(error)),
        }
    }

    /// Returns the value without locking: the exclusive borrow proves that no guard exists.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    /// Returns the kernel's id of the thread that holds the mutex, or `None` if it is free.
    pub fn owner(&self) -> Option<u32> {
        Some(self.raw.owner()).filter(|&owner| owner != 0)
    }

    /// Returns what threads did with a [counted](Builder::counted) mutex, or `None` if no lock of it was counted. A
    /// value may be of another moment than the next one.
    pub fn statistics(&self) -> Option<MutexStatistics> {
        self.raw.statistics()
    }

    /// Returns the distribution of the waits for a [counted](Builder::counted) mutex: for each group of waits in which
    /// there are any, the longest wait of the group, at most a sixteenth longer than the shortest, and the number of
    /// waits. The shortest ones come first.
    pub fn wait_histogram(&self) -> impl Iterator<Item = (lockwright_model::Duration, u64)> {
        self.raw.wait_histogram()
    }

    /// Returns the mutex without its value.
    ///
    /// # Safety
    /// While a guard exists, the caller must not unlock the raw mutex nor pass it to a condition variable.
    pub unsafe fn raw(&self) -> &RawMutex {
        &self.raw
    }
}

impl<T> From<T> for Mutex<T> {
    /// As [`Mutex::new`].
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T: ?Sized> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The value is left out: formatting must not lock the mutex.
        f.debug_struct("Mutex").field("owner", &self.owner()).finish_non_exhaustive()
    }
}

/// A locked mutex: gives access to the value, and unlocks the mutex when dropped, even during a panic. It stays with
/// the thread that locked the mutex.
#[must_use = "the mutex is unlocked when the guard is dropped"]
pub struct Guard<'a, T: ?Sized> {
    mutex: &'a Mutex<T>,
    /// Makes the guard neither `Send` nor `Sync`: the word holds the id of this thread.
    here: PhantomData<*mut ()>,
}

// SAFETY: a shared guard gives shared access to the value, which is `Sync`.
unsafe impl<T: ?Sized + Sync> Sync for Guard<'_, T> {}

impl<T: ?Sized> Guard<'_, T> {
    /// Declares the value consistent again, after [`LockError::OwnerDied`]. If the guard is dropped without this call,
    /// the mutex is [not recoverable](LockError::NotRecoverable) for everyone. On other guards it does nothing.
    ///
    /// This is an associated function, so that it hides no method of the value: `Guard::make_consistent(&guard)`.
    pub fn make_consistent(guard: &Self) {
        // Refused if there is nothing to make consistent.
        let _ = guard.mutex.raw.make_consistent();
    }

    /// Unlocks the mutex like dropping the guard does, and returns the error if that fails.
    ///
    /// This is an associated function, so that it hides no method of the value.
    ///
    /// # Errors
    /// [`RawError::Sys`] if the kernel refused, and [`RawError::NotOwner`] in a child process whose parent locked the
    /// mutex. The mutex then stays locked, and with a ceiling the thread keeps its level.
    ///
    /// # Examples
    /// ```
    /// use lockwright::mutex::{Guard, Mutex};
    ///
    /// static SHARED: Mutex<u32> = Mutex::new(1);
    ///
    /// let guard = SHARED.lock()?;
    /// Guard::unlock(guard).expect("the kernel has no reason to refuse");
    /// assert_eq!(*SHARED.lock()?, 1);
    /// # Ok::<(), lockwright::mutex::LockError<'static, u32>>(())
    /// ```
    #[inline]
    pub fn unlock(guard: Self) -> Result<(), RawError> {
        let mutex = guard.mutex;
        std::mem::forget(guard);
        mutex.raw.unlock()
    }
}

impl<T: ?Sized> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the guard's thread holds the mutex as long as the guard lives, so no other guard gives access.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T: ?Sized> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard's thread holds the mutex as long as the guard lives, and the guard is borrowed mutably as
        // long as the value.
        unsafe { &mut *self.mutex.value.get() }
    }
}

impl<T: ?Sized> Drop for Guard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // The kernel has no reason to refuse. If it did, the mutex would stay locked; `unlock` returns the error.
        let _ = self.mutex.raw.unlock();
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Guard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// Why a lock failed, or succeeded in a mutex whose last owner ended.
#[non_exhaustive]
pub enum LockError<'a, T: ?Sized> {
    /// The mutex is locked, and the previous owner ended while it held it. Repair the value and call
    /// [`Guard::make_consistent`], or give up by dropping the guard.
    OwnerDied(Guard<'a, T>),
    /// An owner ended, and its successor gave up. No lock of this mutex succeeds any more.
    NotRecoverable,
    /// The caller would wait for itself.
    Deadlock {
        /// Every thread and mutex on the cycle, starting with the caller. `None` if the cycle is unknown, because other
        /// processes or mutexes without deadlock detection are part of it, or if
        /// [`OnCycle::RefuseOnly`](super::OnCycle::RefuseOnly) is set.
        cycle: Option<Box<Cycle>>,
    },
    /// The deadline passed.
    TimedOut,
    /// [`Mutex::try_lock`] found the mutex locked.
    Busy,
    /// The caller is more urgent than the mutex's ceiling. Raise the ceiling to the level of its most urgent user.
    PriorityAboveCeiling,
    /// The kernel refused an operation. EPERM means that it refused to raise the caller to the ceiling.
    Sys(SysError),
}

impl<T: ?Sized> LockError<'_, T> {
    fn of(error: RawError) -> Self {
        match error {
            RawError::Busy => Self::Busy,
            RawError::TimedOut => Self::TimedOut,
            RawError::Deadlock(cycle) => Self::Deadlock { cycle },
            RawError::NotRecoverable => Self::NotRecoverable,
            RawError::AboveCeiling => Self::PriorityAboveCeiling,
            RawError::Sys(error) => Self::Sys(error),
            RawError::NotOwner | RawError::TooOften | RawError::Inapplicable => {
                Self::Sys(SysError { call: "locking", errno: libc::EINVAL })
            }
        }
    }
}

impl<T: ?Sized> fmt::Debug for LockError<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OwnerDied(_) => f.write_str("OwnerDied"),
            Self::NotRecoverable => f.write_str("NotRecoverable"),
            Self::Deadlock { cycle } => f.debug_struct("Deadlock").field("cycle", cycle).finish(),
            Self::TimedOut => f.write_str("TimedOut"),
            Self::Busy => f.write_str("Busy"),
            Self::PriorityAboveCeiling => f.write_str("PriorityAboveCeiling"),
            Self::Sys(error) => f.debug_tuple("Sys").field(error).finish(),
        }
    }
}

impl<T: ?Sized> fmt::Display for LockError<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OwnerDied(_) => {
                f.write_str("the owner of the mutex ended while it held it; repair the value, then make it consistent")
            }
            Self::NotRecoverable => {
                f.write_str("an owner of the mutex ended, and the next owner gave up: the mutex is not recoverable")
            }
            Self::Deadlock { cycle: Some(cycle) } => write!(f, "a deadlock: {cycle}"),
            Self::Deadlock { cycle: None } => f.write_str("a deadlock: the caller would wait for itself"),
            Self::TimedOut => f.write_str("the deadline passed before the mutex was free"),
            Self::Busy => f.write_str("another thread holds the mutex"),
            Self::PriorityAboveCeiling => f.write_str(
                "the caller is more urgent than the mutex's ceiling; raise the ceiling to its most urgent user's level",
            ),
            Self::Sys(error) => write!(f, "the mutex was not locked: {error}"),
        }
    }
}

impl<T: ?Sized> std::error::Error for LockError<'_, T> {}

/// Lets threads that hold a mutex wait until another thread signals a change.
///
/// A signal takes the most urgent waiter from the queue and moves it to the mutex, so that the waiter executes once it
/// owns the mutex. A wait may also end without a signal, so check the condition again.
///
/// # Bound
/// The wait for a signal has no bound; the lock after it has that of the mutex. Internally, only short checks of the
/// mutex are locked, with priority inheritance.
///
/// # Examples
/// ```
/// use lockwright::mutex::{Condvar, LockError, Mutex};
///
/// static QUEUE: Mutex<Vec<u32>> = Mutex::new(Vec::new());
/// static FILLED: Condvar = Condvar::new();
///
/// fn fill() -> Result<(), LockError<'static, Vec<u32>>> {
///     QUEUE.lock()?.push(7);
///     FILLED.signal();
///     Ok(())
/// }
///
/// let filler = std::thread::spawn(|| fill().map_err(|error| error.to_string()));
/// let mut queue = QUEUE.lock()?;
/// while queue.is_empty() {
///     queue = FILLED.wait(queue)?;
/// }
/// assert_eq!(queue.pop(), Some(7));
/// assert_eq!(filler.join().expect("no panic"), Ok(()));
/// # Ok::<(), LockError<'static, Vec<u32>>>(())
/// ```
#[repr(transparent)]
#[derive(Debug)]
pub struct Condvar(RawCondvar);

impl Condvar {
    /// Creates a condition variable for the threads of this process.
    #[must_use]
    pub const fn new() -> Self {
        Self(RawCondvar::new(false))
    }

    /// Creates a condition variable for the threads of all processes that map it.
    #[must_use]
    pub const fn shared() -> Self {
        Self(RawCondvar::new(true))
    }

    /// Unlocks the mutex, waits for a signal, and locks the mutex again. The wait may also end without a signal.
    ///
    /// # Errors
    /// Those of [`Mutex::lock`].
    pub fn wait<'a, T: ?Sized>(&self, guard: Guard<'a, T>) -> Result<Guard<'a, T>, LockError<'a, T>> {
        self.wait_within(guard, None).map(|(guard, _)| guard)
    }

    /// Waits like [`Condvar::wait`], at most until `deadline`.
    ///
    /// # Errors
    /// Those of [`Mutex::lock`]. A time-out is not an error.
    pub fn wait_until<'a, T: ?Sized>(
        &self,
        guard: Guard<'a, T>,
        deadline: Deadline,
    ) -> Result<(Guard<'a, T>, WaitEnd), LockError<'a, T>> {
        self.wait_within(guard, Some(deadline))
    }

    /// Waits like [`Condvar::wait_until`], with a deadline `time` from now on the monotonic clock.
    ///
    /// # Errors
    /// Those of [`Condvar::wait_until`].
    pub fn wait_for<'a, T: ?Sized>(
        &self,
        guard: Guard<'a, T>,
        time: Duration,
    ) -> Result<(Guard<'a, T>, WaitEnd), LockError<'a, T>> {
        self.wait_within(guard, Some(Deadline::after(time)))
    }

    fn wait_within<'a, T: ?Sized>(
        &self,
        guard: Guard<'a, T>,
        until: Option<Deadline>,
    ) -> Result<(Guard<'a, T>, WaitEnd), LockError<'a, T>> {
        // The wait unlocks and locks the mutex itself, so the old guard is not dropped.
        let mutex = ManuallyDrop::new(guard).mutex;
        let again = Guard { mutex, here: PhantomData };
        match self.0.wait(&mutex.raw, until) {
            Ok((Acquired::Clean, end)) => Ok((again, end)),
            Ok((Acquired::OwnerDied, _)) => Err(LockError::OwnerDied(again)),
            Err(error) => {
                // If the unlock failed, the caller still holds the mutex, and this guard unlocks it.
                if !mutex.raw.is_mine() {
                    std::mem::forget(again);
                }
                Err(LockError::of(error))
            }
        }
    }

    /// Wakes the most urgent waiter, if there is one. If the caller holds the waiters' mutex, the waiter moves to that
    /// mutex instead.
    pub fn signal(&self) {
        self.0.signal();
    }

    /// Wakes all waiters.
    pub fn broadcast(&self) {
        self.0.broadcast();
    }
}

impl Default for Condvar {
    fn default() -> Self {
        Self::new()
    }
}
