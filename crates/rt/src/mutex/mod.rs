//! Mutexes and condition variables for real-time threads.
//!
//! | wanted | how |
//! |---|---|
//! | no priority inversion, whoever takes it | [`Protocol::Inherit`] |
//! | the same at a cost known before, and no deadlocks among those of one processor | [`Protocol::Protect`] |
//! | to go on after a thread or process that ended with it | [`Builder::robust`] |
//! | order of service, or throughput | [`Unlock`] |
//!
//! Without contention lock and unlock are one atomic operation each, and no system call (but for ceilings, robust ones' list, and
//! [`Builder::kernel_owned`]). Nothing spins, and nothing but the report of a deadlock allocates: who waits suspends, in the order of priorities.
//!
//! ```
//! use lockwright::mutex::{Mutex, Protocol};
//!
//! static SHARED: Mutex<u32> = Mutex::builder().protocol(Protocol::Inherit).build(0);
//!
//! *SHARED.lock()? += 1;
//! # Ok::<(), lockwright::mutex::LockError<'static, u32>>(())
//! ```

mod ceiling;
mod condvar;
mod cycle;
mod error;
#[cfg(test)]
mod held;
mod inherit;
pub mod kind;
mod lock;
#[cfg(test)]
mod model;
mod protect;
mod raw;
mod robust;
mod unlock;
mod wait;
mod word;

pub use ceiling::{note_own, own_scheduling, set_own_scheduling};
pub use condvar::{Destroyed, RawCondvar, Suspended, Suspension, WaitEnd, Waiting};
pub use cycle::{CHAIN_MAX, Cycle, Link, OnCycle, on_cycle};
pub use error::{Acquired, Limit, RawError};
pub use lockwright_sys::futex::{Clock, Deadline};
pub use raw::RawMutex;

use lockwright_sys::SysError;
use lockwright_sys::robust::List;
use lockwright_sys::{KeepErrno, clock, futex, sched};
use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// Asks the system now for what is asked for once a process, or once a thread, so that no lock of the calling thread does.
pub fn warm_up() {
    sched::gettid();
    cycle::warm_up();
    ceiling::warm_up();
    // Where it is not to be had, those who need it are told.
    let _ = List::of_this_thread();
}

/// Sleeps for so long, or until `limit` comes: then says so. No point where a thread may be cancelled.
pub fn nap(ns: u64, limit: Limit) -> bool {
    let _errno = KeepErrno::now();
    let nap = Deadline::monotonic(clock::now_ns().saturating_add(ns));
    let nowhere = AtomicU32::new(0);
    if let Limit::At(until) = limit
        && until.left_ns() < ns
    {
        return futex::wait(futex::Scope::Private, &nowhere, 0, Some(until)) == futex::Ended::TimedOut;
    }
    let _ = futex::wait(futex::Scope::Private, &nowhere, 0, Some(nap));
    limit == Limit::Now
}

/// The calling thread's id, as the kernel has it.
pub fn thread_id() -> u32 {
    sched::gettid().0
}

/// How priority inversion is kept away.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Protocol {
    /// Not at all: a medium thread can delay an urgent one for ever.
    None,
    /// The owner has the priority of the most urgent waiter, along chains of owners: the kernel's PI futex.
    #[default]
    Inherit,
    /// The owner has this level of SCHED_FIFO (1 to 99), if its own is lower: immediate priority ceiling.
    Protect(u8),
}

/// Whose a mutex is between the unlock and the next owner.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Unlock {
    /// The first waiter's, from the unlock on: nobody comes between, and each hand-over costs two switches. Mutexes that inherit
    /// do so always, but for a more urgent thread that waits for it before the first waiter executes.
    Serial,
    /// Nobody's: a running thread may take it before the waiter that was woken. Robust ones are serial all the same: a waiter that ends is
    /// missed by nobody else.
    Parallel,
    /// Serial where a real-time thread waits, else parallel.
    #[default]
    Auto,
}

/// A mutex to be. Get it from [`Mutex::builder`].
///
/// The first lock with a ceiling, and the first that waits and looks for a deadlock, ask the C library once for what a child process has to forget.
/// After [`warm_up`] none does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Builder {
    protocol: Protocol,
    unlock: Unlock,
    robust: bool,
    kernel_owned: bool,
    checked: bool,
    shared: bool,
}

impl Builder {
    /// Default: inherit, automatic unlock, looking for deadlocks; neither robust nor shared between processes.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            protocol: Protocol::Inherit,
            unlock: Unlock::Auto,
            robust: false,
            kernel_owned: false,
            checked: true,
            shared: false,
        }
    }

    /// See [`Protocol`].
    #[must_use]
    pub const fn protocol(self, protocol: Protocol) -> Self {
        Self { protocol, ..self }
    }

    /// See [`Unlock`].
    #[must_use]
    pub const fn unlock(self, unlock: Unlock) -> Self {
        Self { unlock, ..self }
    }

    /// Whether it survives the end of its owner: the next one gets [`LockError::OwnerDied`].
    ///
    /// # Safety
    /// Of a robust one: it stays where it is while a thread has it, also one that forgot its guard (`std::mem::forget`) or ended with it. A
    /// static does, and one in memory that processes share; so does any other whose guards are dropped. The kernel and the thread's
    /// other robust mutexes know its address.
    #[must_use]
    pub const unsafe fn robust(self, robust: bool) -> Self {
        Self { robust, ..self }
    }

    /// Whether each lock goes through the kernel, so that it knows every owner. Only for those that inherit; for others it changes nothing.
    #[must_use]
    pub const fn kernel_owned(self, kernel_owned: bool) -> Self {
        Self { kernel_owned, ..self }
    }

    /// Whether a thread looks for a deadlock before it waits. Costs about two uncontended locks a wait, nothing without contention.
    #[must_use]
    pub const fn check_deadlocks(self, checked: bool) -> Self {
        Self { checked, ..self }
    }

    /// Whether threads of several processes meet at it, in memory they share.
    #[must_use]
    pub const fn shared(self, shared: bool) -> Self {
        Self { shared, ..self }
    }

    /// The mutex, as memory.
    ///
    /// # Panics
    /// When a ceiling is not a level of SCHED_FIFO, 1 to 99.
    #[must_use]
    pub const fn build_raw(self) -> RawMutex {
        let (mut bits, ceiling) = match self.protocol {
            Protocol::None => (kind::ERROR_CHECK, 0),
            Protocol::Inherit => (kind::ERROR_CHECK | kind::INHERIT, 0),
            Protocol::Protect(ceiling) => (kind::ERROR_CHECK | kind::PROTECT, ceiling),
        };
        assert!(
            bits & kind::PROTECT == 0 || (ceiling >= 1 && ceiling <= 99),
            "a ceiling is a level of SCHED_FIFO, 1 to 99"
        );
        bits |= match self.unlock {
            Unlock::Serial => kind::SERIAL,
            Unlock::Parallel => 0,
            Unlock::Auto => kind::AUTO,
        };
        if self.robust {
            bits |= kind::ROBUST;
        }
        if self.kernel_owned {
            bits |= kind::KERNEL_OWNED;
        }
        if self.checked {
            bits |= kind::CHECKED;
        }
        if self.shared {
            bits |= kind::SHARED;
        }
        // SAFETY: `Builder::robust` makes the caller promise it.
        unsafe { RawMutex::new(bits, ceiling) }
    }

    /// The mutex, with what it protects.
    ///
    /// # Panics
    /// Where [`Builder::build_raw`] does.
    #[must_use]
    pub const fn build<T>(self, value: T) -> Mutex<T> {
        Mutex { raw: self.build_raw(), value: UnsafeCell::new(value) }
    }
}

impl Default for Builder {
    fn default() -> Self {
        Self::new()
    }
}

/// A value for one thread at a time.
///
/// # Bound
/// On one processor, with [`Protocol::Inherit`] and [`Protocol::Protect`], the sections of less urgent threads that `lockwright check` charges
/// under `pip` and `icpp`. With [`Protocol::None`] there is none.
///
/// # Reference
/// The fusyn paper (see REFERENCES.md) for what it does; the kernel's PI futexes (`futex(2)`) for inheritance.
///
/// # Examples
/// ```
/// use lockwright::mutex::{LockError, Mutex, Protocol};
///
/// // SAFETY: guards are dropped, not forgotten.
/// let positions = unsafe { Mutex::builder().protocol(Protocol::Inherit).robust(true) }.build([0.0; 3]);
/// match positions.lock() {
///     Ok(mut guard) => guard[0] = 1.0,
///     Err(LockError::OwnerDied(mut guard)) => {
///         *guard = [0.0; 3];
///         guard.make_consistent();
///     }
///     Err(error) => return Err(error.to_string()),
/// }
/// # Ok::<(), String>(())
/// ```
///
/// A mutex that shares memory with other processes needs a value that means the same in all of them.
#[repr(C)]
pub struct Mutex<T: ?Sized> {
    raw: RawMutex,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached through a guard, which one thread at a time has; so it moves between threads.
unsafe impl<T: ?Sized + Send> Sync for Mutex<T> {}
// SAFETY: it is moved while nobody has it.
unsafe impl<T: ?Sized + Send> Send for Mutex<T> {}

impl Mutex<()> {
    /// A mutex to be.
    #[must_use]
    pub const fn builder() -> Builder {
        Builder::new()
    }
}

impl<T> Mutex<T> {
    /// As [`Builder::new`] has it: priority inheritance.
    #[must_use]
    pub const fn new(value: T) -> Self {
        Builder::new().build(value)
    }

    /// What it protected.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Takes the mutex.
    ///
    /// # Errors
    /// [`LockError::OwnerDied`] and [`LockError::NotRecoverable`] of robust ones; [`LockError::Deadlock`], except for a
    /// cycle in which a thread waits until a deadline; [`LockError::PriorityAboveCeiling`]; [`LockError::Sys`].
    pub fn lock(&self) -> Result<Guard<'_, T>, LockError<'_, T>> {
        self.lock_within(Limit::Never)
    }

    /// Takes the mutex if it is free.
    ///
    /// # Errors
    /// [`LockError::Busy`], and those of [`Mutex::lock`].
    pub fn try_lock(&self) -> Result<Guard<'_, T>, LockError<'_, T>> {
        self.lock_within(Limit::Now)
    }

    /// Takes the mutex, unless `deadline` comes first. One that has passed still takes a free one.
    ///
    /// # Errors
    /// [`LockError::TimedOut`], and those of [`Mutex::lock`].
    pub fn lock_until(&self, deadline: Deadline) -> Result<Guard<'_, T>, LockError<'_, T>> {
        self.lock_within(Limit::At(deadline))
    }

    /// As [`Mutex::lock_until`], so long from now by the monotonic clock.
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

    /// What it protects, of a mutex nobody else knows.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    /// The thread that has it, as the kernel names it, if one has.
    pub fn owner(&self) -> Option<u32> {
        Some(self.raw.owner()).filter(|&owner| owner != 0)
    }

    /// The mutex without the value.
    ///
    /// # Safety
    /// It is not given back, nor lent to a condition variable, beside a guard.
    pub unsafe fn raw(&self) -> &RawMutex {
        &self.raw
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T: ?Sized> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the value: to take a mutex is not for those who only look.
        f.debug_struct("Mutex").field("owner", &self.owner()).finish_non_exhaustive()
    }
}

/// The right to the value, given back when dropped, in a panic too; by the thread that has it.
#[must_use = "the mutex is given back when this is dropped"]
pub struct Guard<'a, T: ?Sized> {
    mutex: &'a Mutex<T>,
    /// Neither `Send` nor `Sync` by itself: the word holds the id of this thread.
    here: PhantomData<*mut ()>,
}

// SAFETY: a shared guard is a shared value.
unsafe impl<T: ?Sized + Sync> Sync for Guard<'_, T> {}

impl<T: ?Sized> Guard<'_, T> {
    /// After [`LockError::OwnerDied`]: the value is whole again. A guard that is dropped without leaves a mutex that is
    /// [not recoverable](LockError::NotRecoverable), for everyone. On other guards it does nothing.
    pub fn make_consistent(&self) {
        // Refused where there is nothing to make consistent.
        let _ = self.mutex.raw.make_consistent();
    }
}

impl<T: ?Sized> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the guard is the right to it.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T: ?Sized> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard is the right to it, and is borrowed for as long.
        unsafe { &mut *self.mutex.value.get() }
    }
}

impl<T: ?Sized> Drop for Guard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        let given = self.mutex.raw.unlock();
        // The kernel has no reason to refuse; a mutex that stays taken would suspend everybody, and nobody would be told why.
        debug_assert!(
            given.is_ok() || std::thread::panicking(),
            "a guard is dropped by the thread that has it: {given:?}"
        );
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Guard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// Why a mutex was not taken as it should.
#[non_exhaustive]
pub enum LockError<'a, T: ?Sized> {
    /// Taken, but the owner before ended while it had it: heal the value, then call [`Guard::make_consistent`], or give up by dropping the guard.
    OwnerDied(Guard<'a, T>),
    /// An owner ended, and the next one gave up. No lock of this mutex succeeds any more.
    NotRecoverable,
    /// The caller would wait for itself.
    Deadlock {
        /// Every thread and mutex on the cycle, from the caller on. Unknown (`None`) where other processes, or mutexes that are not
        /// looked at, are part of it.
        cycle: Option<Box<Cycle>>,
    },
    /// The deadline has passed.
    TimedOut,
    /// [`Mutex::try_lock`]: somebody has it.
    Busy,
    /// The caller is more urgent than the mutex's ceiling: raise the ceiling to the most urgent user's level.
    PriorityAboveCeiling,
    /// The kernel refused; with EPERM, to raise the caller to the ceiling.
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
            RawError::NotOwner | RawError::TooOften | RawError::BadKind => {
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
                f.write_str("the owner of the mutex ended while it had it; heal the value, then make it consistent")
            }
            Self::NotRecoverable => {
                f.write_str("an owner of the mutex ended, and the next one gave up: it is not recoverable")
            }
            Self::Deadlock { cycle: Some(cycle) } => write!(f, "a deadlock: {cycle}"),
            Self::Deadlock { cycle: None } => f.write_str("a deadlock: the caller would wait for itself"),
            Self::TimedOut => f.write_str("the deadline passed before the mutex was free"),
            Self::Busy => f.write_str("another thread has the mutex"),
            Self::PriorityAboveCeiling => f.write_str(
                "the caller is more urgent than the mutex's ceiling; raise the ceiling to its most urgent user's level",
            ),
            Self::Sys(error) => write!(f, "the mutex was not taken: {error}"),
        }
    }
}

impl<T: ?Sized> std::error::Error for LockError<'_, T> {}

/// Lets threads that hold a mutex wait until another one says that something changed.
///
/// A signal takes the most urgent waiter off, and moves it to the mutex: it executes when it has that. Waits may end without a signal:
/// look at the condition again.
///
/// # Bound
/// A wait for a signal has none; after it, that of the mutex. All that is locked inside is a look at the mutex, under inheritance.
///
/// # Examples
/// ```
/// use lockwright::mutex::{Condvar, Mutex};
///
/// static QUEUE: Mutex<Vec<u32>> = Mutex::new(Vec::new());
/// static FILLED: Condvar = Condvar::new();
///
/// std::thread::spawn(|| {
///     QUEUE.lock().unwrap().push(7);
///     FILLED.signal();
/// });
/// let mut queue = QUEUE.lock().unwrap();
/// while queue.is_empty() {
///     queue = FILLED.wait(queue).unwrap();
/// }
/// assert_eq!(queue.pop(), Some(7));
/// ```
#[repr(transparent)]
#[derive(Debug)]
pub struct Condvar(RawCondvar);

impl Condvar {
    /// For threads of this process.
    #[must_use]
    pub const fn new() -> Self {
        Self(RawCondvar::new(false))
    }

    /// For threads of all processes that map it.
    #[must_use]
    pub const fn shared() -> Self {
        Self(RawCondvar::new(true))
    }

    /// Gives the mutex back and waits, for a signal or for no reason; takes it again.
    ///
    /// # Errors
    /// Those of [`Mutex::lock`].
    pub fn wait<'a, T: ?Sized>(&self, guard: Guard<'a, T>) -> Result<Guard<'a, T>, LockError<'a, T>> {
        self.wait_within(guard, None).map(|(guard, _)| guard)
    }

    /// As [`Condvar::wait`], at most until `deadline`.
    ///
    /// # Errors
    /// Those of [`Mutex::lock`]; a time-out is none.
    pub fn wait_until<'a, T: ?Sized>(
        &self,
        guard: Guard<'a, T>,
        deadline: Deadline,
    ) -> Result<(Guard<'a, T>, WaitEnd), LockError<'a, T>> {
        self.wait_within(guard, Some(deadline))
    }

    /// As [`Condvar::wait_until`], so long from now by the monotonic clock.
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
        // The mutex is given back, and taken again, without the guard.
        let mutex = ManuallyDrop::new(guard).mutex;
        let again = Guard { mutex, here: PhantomData };
        match self.0.wait(&mutex.raw, until) {
            Ok((Acquired::Clean, end)) => Ok((again, end)),
            Ok((Acquired::OwnerDied, _)) => Err(LockError::OwnerDied(again)),
            Err(error) => {
                // Where the mutex could not be given back the caller has it still, and gives it back by this guard.
                if !mutex.raw.is_mine() {
                    std::mem::forget(again);
                }
                Err(LockError::of(error))
            }
        }
    }

    /// Takes the most urgent waiter off, if there is one. Its holder's signal moves it to the mutex; others wake it.
    pub fn signal(&self) {
        self.0.signal();
    }

    /// Takes all waiters off.
    pub fn broadcast(&self) {
        self.0.broadcast();
    }
}

impl Default for Condvar {
    fn default() -> Self {
        Self::new()
    }
}
