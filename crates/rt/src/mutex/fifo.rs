//! A mutex that serves its users in the order of their requests, with priority inheritance.

#[cfg(test)]
mod model;
mod queue;
mod words;

use super::error::Limit;
use lockwright_sys::SysError;
use lockwright_sys::futex::Deadline;
use lockwright_sys::held;
use lockwright_sys::sched::gettid;
pub use queue::Node;
use queue::{Failure, NONE, Queue};
use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::AtomicU32;
use std::time::Duration;
use words::WordError;

/// The lock of a [`FifoMutex`], without a value. `N` holds the nodes of its queue.
#[derive(Debug)]
#[repr(transparent)]
pub struct RawFifo<N>(Queue<N>);

/// Creates a node; `used` is 1 if it belongs to the tail.
const fn node(used: u32) -> Node {
    Node { word: AtomicU32::new(0), left_for: AtomicU32::new(NONE), used: AtomicU32::new(used) }
}

impl<N> RawFifo<N> {
    /// Creates a queue of these nodes, of which only the first is in use.
    const fn of(nodes: N) -> Self {
        let [tail, holder, spare] = [AtomicU32::new(0), AtomicU32::new(0), AtomicU32::new(NONE)];
        Self(Queue { tail, holder, spare, nodes })
    }
}

impl<const NODES: usize> RawFifo<[Node; NODES]> {
    /// Creates a queue that nobody holds.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "a default would not be const")]
    pub const fn new() -> Self {
        const { assert!(NODES >= 2 && NODES <= 1024, "a mutex has 2 to 1,024 nodes") };
        let mut nodes = [const { node(0) }; NODES];
        nodes[0] = node(1);
        Self::of(nodes)
    }
}

impl RawFifo<Box<[Node]>> {
    /// Creates a mutex for this number of threads, which lock it without deadlines.
    pub(crate) fn for_threads(threads: usize) -> Self {
        // One node a thread, one for the tail, and one that waits in `spare`.
        Self::of((0..threads + 2).map(|index| node(u32::from(index == 0))).collect())
    }
}

impl<N: AsRef<[Node]>> RawFifo<N> {
    /// Locks the mutex within `limit`. Returns whether the caller waited.
    ///
    /// # Errors
    /// Those of [`FifoMutex::lock_until`] and [`FifoMutex::try_lock`].
    #[inline]
    pub fn lock(&self, limit: Limit) -> Result<bool, FifoError> {
        self.lock_noting(limit, || {})
    }

    /// As [`RawFifo::lock`]. Calls `entered` when the place of the caller in the queue is decided, before it waits. An
    /// attempt does not call it.
    #[inline]
    pub(crate) fn lock_noting(&self, limit: Limit, entered: impl FnOnce()) -> Result<bool, FifoError> {
        let me = gettid().0;
        let locked = match limit {
            Limit::Now => self.0.try_lock(me).map(|()| false),
            _ if self.is_held_by(me) => Err(Failure::Word(WordError::Deadlock)),
            _ => self.0.lock(me, limit, entered),
        };
        if locked.is_ok() {
            held::took_one();
        }
        locked.map_err(FifoError::of)
    }

    /// Unlocks the mutex, which the caller holds.
    ///
    /// # Errors
    /// [`FifoError::Sys`] if the kernel refuses, with `EPERM` if the caller does not hold the mutex.
    #[inline]
    pub fn unlock(&self) -> Result<(), FifoError> {
        let unlocked = self.0.unlock(gettid().0);
        if unlocked.is_ok() {
            held::gave_one_back();
        }
        unlocked.map_err(|errno| FifoError::Sys(SysError { call: "futex unlock", errno }))
    }

    /// The id of the thread that holds the mutex, or 0. A hint, unless the caller holds it.
    fn owner(&self) -> u32 {
        self.0.word() & libc::FUTEX_TID_MASK
    }

    /// Returns whether the caller holds the mutex.
    #[inline]
    pub fn is_mine(&self) -> bool {
        self.is_held_by(gettid().0)
    }

    #[inline]
    fn is_held_by(&self, thread: u32) -> bool {
        self.owner() == thread
    }
}

/// Why a [`FifoMutex`] was not locked.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum FifoError {
    /// [`FifoMutex::try_lock`] found the mutex locked.
    Busy,
    /// The deadline passed.
    TimedOut,
    /// The caller would wait for itself: it holds the mutex, or waits in a cycle with owners of other mutexes that
    /// inherit.
    Deadlock,
    /// A thread ended while it held the mutex. No lock of this mutex succeeds any more.
    OwnerDied,
    /// More threads use the mutex at once than it has nodes.
    TooManyThreads,
    /// The kernel refused an operation.
    Sys(SysError),
}

impl FifoError {
    #[cold]
    fn of(failure: Failure) -> Self {
        match failure {
            Failure::NoNode => Self::TooManyThreads,
            Failure::Word(WordError::Busy) => Self::Busy,
            Failure::Word(WordError::TimedOut) => Self::TimedOut,
            Failure::Word(WordError::Deadlock) => Self::Deadlock,
            Failure::Word(WordError::OwnerDied) => Self::OwnerDied,
            Failure::Word(WordError::Sys(errno)) => Self::Sys(SysError { call: "futex lock", errno }),
        }
    }
}

impl fmt::Display for FifoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy => f.write_str("another thread holds the mutex"),
            Self::TimedOut => f.write_str("the deadline passed before it was the caller's turn"),
            Self::Deadlock => f.write_str("a deadlock: the caller would wait for itself"),
            Self::OwnerDied => f.write_str("a thread ended while it held the mutex, which can no longer be locked"),
            Self::TooManyThreads => {
                f.write_str("more threads use the mutex at once than it has nodes; give it more: `FifoMutex<T, NODES>`")
            }
            Self::Sys(error) => write!(f, "the mutex was not locked: {error}"),
        }
    }
}

impl std::error::Error for FifoError {}

/// A mutex that serves its users in the order of their requests, whatever their priorities are. The holder has at least
/// the priority of every waiter, under SCHED_FIFO and SCHED_RR. Threads under SCHED_DEADLINE are served in the same
/// order, but Linux (seen on 6.18) lends the deadline of a waiter to such a holder only after the holder has used up
/// its own runtime. Until then a thread with a deadline between the two can delay both.
///
/// A [`Mutex`](super::Mutex) with inheritance serves the most urgent waiter first, so that a thread of low priority may
/// wait without bound. Here the number of sections that a thread waits for is known.
///
/// `NODES` is the number of places in the queue. Each thread that holds or requests the mutex needs one, and two more
/// are needed. If requests have deadlines, twice as many are usually enough: a request that gives up may need its place
/// until the next thread in the queue executes. A lock that finds no place fails with [`FifoError::TooManyThreads`].
///
/// The mutex is for the threads of one process. A waiter does not move when its priority changes; the priority that it
/// lends does. The kernel follows 1,024 waits at most (`kernel.max_lock_depth`), and a wait walks along all those
/// before it. The queues of nested mutexes count together; a lock beyond that fails with [`FifoError::Deadlock`], after
/// `NODES` + 1 such walks.
///
/// A thread that ends while it holds the mutex makes it unusable. If no thread waited then, and the system gives the id
/// of that thread to another thread of the process before the next request, that request waits for the other thread.
///
/// # Bound
/// Without contention, three exchanges, and no system call. Otherwise the critical sections of the requests that came
/// before: at most one of each other thread. On their processors the holders have at least the priority of the caller;
/// `lockwright check` charges what can execute beside them under `fmlp_long`. A thread that has entered the queue must
/// execute for a moment before it passes priorities on, and so must a waiter whose predecessor gives up, and one for
/// which the kernel reports a deadlock: it repeats its request to the kernel, up to `NODES` times, because a thread
/// that is preempted while it begins to wait can get that answer wrongly. The processor of that thread executes work at
/// least as urgent until then.
///
/// # Reference
/// A. Block, H. Leontyev, B. Brandenburg, J. Anderson: A flexible real-time locking protocol for multiprocessors, RTCSA
/// 2007, for the queue and its use. T. Craig: Building FIFO and priority-queuing spin locks from atomic swap, TR
/// 93-02-02, University of Washington, 1993, for the links, which are PI futexes here (`futex(2)`).
///
/// # Examples
/// ```
/// use lockwright::mutex::{FifoError, FifoMutex};
///
/// static TOTAL: FifoMutex<u32> = FifoMutex::new(0);
///
/// *TOTAL.lock()? += 1;
/// assert_eq!(*TOTAL.try_lock()?, 1);
/// # Ok::<(), FifoError>(())
/// ```
pub struct FifoMutex<T: ?Sized, const NODES: usize = 64> {
    raw: RawFifo<[Node; NODES]>,
    value: UnsafeCell<T>,
}

// SAFETY: only the guard gives access to the value, and one thread at a time has the guard. So the value moves between
// threads, and `Send` is enough.
unsafe impl<T: ?Sized + Send, const NODES: usize> Sync for FifoMutex<T, NODES> {}
// SAFETY: moving the mutex moves its value, for which `T: Send` is enough. A mutex that a guard borrows cannot move.
unsafe impl<T: ?Sized + Send, const NODES: usize> Send for FifoMutex<T, NODES> {}

impl<T, const NODES: usize> FifoMutex<T, NODES> {
    /// Creates a free mutex.
    #[must_use]
    pub const fn new(value: T) -> Self {
        Self { raw: RawFifo::<[Node; NODES]>::new(), value: UnsafeCell::new(value) }
    }

    /// Consumes the mutex and returns its value.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized, const NODES: usize> FifoMutex<T, NODES> {
    /// Locks the mutex.
    ///
    /// # Errors
    /// [`FifoError::Deadlock`], [`FifoError::OwnerDied`], [`FifoError::TooManyThreads`], [`FifoError::Sys`].
    #[inline]
    pub fn lock(&self) -> Result<FifoGuard<'_, T, NODES>, FifoError> {
        self.lock_within(Limit::Never)
    }

    /// Locks the mutex if no thread holds it or waits for it.
    ///
    /// # Errors
    /// [`FifoError::Busy`], and those of [`FifoMutex::lock`].
    pub fn try_lock(&self) -> Result<FifoGuard<'_, T, NODES>, FifoError> {
        self.lock_within(Limit::Now)
    }

    /// Locks the mutex, waiting at most until `deadline`. A free mutex is locked even after the deadline.
    ///
    /// # Errors
    /// [`FifoError::TimedOut`], and those of [`FifoMutex::lock`].
    pub fn lock_until(&self, deadline: Deadline) -> Result<FifoGuard<'_, T, NODES>, FifoError> {
        self.lock_within(Limit::At(deadline))
    }

    /// Locks the mutex like [`FifoMutex::lock_until`], with a deadline `time` from now on the monotonic clock.
    ///
    /// # Errors
    /// Those of [`FifoMutex::lock_until`].
    pub fn lock_for(&self, time: Duration) -> Result<FifoGuard<'_, T, NODES>, FifoError> {
        self.lock_within(Limit::At(Deadline::after(time)))
    }

    #[inline]
    fn lock_within(&self, limit: Limit) -> Result<FifoGuard<'_, T, NODES>, FifoError> {
        self.raw.lock(limit).map(|_| FifoGuard { mutex: self, here: PhantomData })
    }

    /// Returns the value without locking: the exclusive borrow proves that no guard exists.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    /// Whether the calling thread holds the mutex.
    pub fn is_mine(&self) -> bool {
        self.raw.is_mine()
    }
}

impl<T, const NODES: usize> From<T> for FifoMutex<T, NODES> {
    /// As [`FifoMutex::new`].
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: Default, const NODES: usize> Default for FifoMutex<T, NODES> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T: ?Sized, const NODES: usize> fmt::Debug for FifoMutex<T, NODES> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The value is left out: formatting must not lock the mutex.
        let owner = Some(self.raw.owner()).filter(|&owner| owner != 0);
        f.debug_struct("FifoMutex").field("owner", &owner).finish_non_exhaustive()
    }
}

/// A locked [`FifoMutex`]: gives access to the value, and unlocks the mutex when dropped, even during a panic. It stays
/// with the thread that locked the mutex.
#[must_use = "the mutex is unlocked when the guard is dropped"]
pub struct FifoGuard<'a, T: ?Sized, const NODES: usize = 64> {
    mutex: &'a FifoMutex<T, NODES>,
    /// Makes the guard neither `Send` nor `Sync`: the word holds the id of this thread.
    here: PhantomData<*mut ()>,
}

// SAFETY: a shared guard gives shared access to the value, which is `Sync`.
unsafe impl<T: ?Sized + Sync, const NODES: usize> Sync for FifoGuard<'_, T, NODES> {}

impl<T: ?Sized, const NODES: usize> FifoGuard<'_, T, NODES> {
    /// Unlocks the mutex like dropping the guard does, and returns the error if that fails.
    ///
    /// This is an associated function, so that it hides no method of the value.
    ///
    /// # Errors
    /// [`FifoError::Sys`] if the kernel refused. The mutex then stays locked.
    ///
    /// # Examples
    /// ```
    /// use lockwright::mutex::{FifoError, FifoGuard, FifoMutex};
    ///
    /// let shared: FifoMutex<u32> = FifoMutex::new(1);
    /// let guard = shared.lock()?;
    /// FifoGuard::unlock(guard)?;
    /// assert_eq!(*shared.lock()?, 1);
    /// # Ok::<(), FifoError>(())
    /// ```
    #[inline]
    pub fn unlock(guard: Self) -> Result<(), FifoError> {
        let mutex = guard.mutex;
        std::mem::forget(guard);
        mutex.raw.unlock()
    }
}

impl<T: ?Sized, const NODES: usize> Deref for FifoGuard<'_, T, NODES> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the guard's thread holds the mutex as long as the guard lives, so no other guard gives access.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T: ?Sized, const NODES: usize> DerefMut for FifoGuard<'_, T, NODES> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard's thread holds the mutex as long as the guard lives, and the guard is borrowed mutably as
        // long as the value.
        unsafe { &mut *self.mutex.value.get() }
    }
}

impl<T: ?Sized, const NODES: usize> Drop for FifoGuard<'_, T, NODES> {
    #[inline]
    fn drop(&mut self) {
        // The kernel has no reason to refuse. If it did, the mutex would stay locked; `unlock` returns the error.
        let _ = self.mutex.raw.unlock();
    }
}

impl<T: ?Sized + fmt::Debug, const NODES: usize> fmt::Debug for FifoGuard<'_, T, NODES> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
