//! The interface between an algorithm and [`SpinLock`](crate::SpinLock).

use crate::{Priority, Slot};

/// A spinlock without the data that it protects.
///
/// # Safety
/// Between a successful acquire and the release of its hold, no other acquire succeeds.
/// Everything before a release happens before the next successful acquire.
/// Both also hold if a [`Relax`](crate::Relax) releases the lock for which its slot waits. Waiters may then be lost.
/// [`SpinLock`](crate::SpinLock) gives access to its value on these guarantees.
///
/// # Examples
/// Generic code makes requests with [`Algorithm::request`]:
/// ```
/// use lockwright_locks::{Algorithm, Mcs, Priority, Slot, SpinLock, Ticket};
///
/// fn increment<A: Algorithm>(count: &SpinLock<A, u32>, slot: &Slot) -> u32 {
///     let mut count = count.lock_with(A::request(slot, Priority::new(1)));
///     *count += 1;
///     *count
/// }
///
/// let slot = Slot::claim().expect("fewer than 64 threads have a slot");
/// assert_eq!(increment(&SpinLock::<Ticket, _>::new(0), &slot), 1);
/// assert_eq!(increment(&SpinLock::<Mcs<4>, _>::new(1), &slot), 2);
/// ```
#[allow(unsafe_code)] // Each implementation guarantees the contract above.
pub unsafe trait Algorithm: Sized {
    /// The arguments of a request: `()`, `&Slot`, or `(&Slot, Priority)`.
    type Request<'r>: Copy;
    /// The state that the holder keeps for the release.
    type Hold;

    /// The free lock.
    #[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
    const FREE: Self;

    /// Creates the free lock. Models have no constant atomics.
    #[cfg(any(lockwright_loom, lockwright_shuttle))]
    fn free() -> Self;

    /// Makes the request of a slot with a priority, for code that works with every algorithm.
    fn request(slot: &Slot, priority: Priority) -> Self::Request<'_>;

    /// Acquires the lock, and waits for it as the algorithm specifies.
    ///
    /// # Panics
    /// If the slot is not one of the lock's slots, or waits for a lock already.
    fn acquire(&self, request: Self::Request<'_>) -> Self::Hold;

    /// Acquires the lock if it is free, without waiting.
    ///
    /// A lock with an order is not free while a thread waits that a release has seen.
    ///
    /// # Panics
    /// If the slot is not one of the lock's slots, or waits for a lock already.
    fn try_acquire(&self, request: Self::Request<'_>) -> Option<Self::Hold>;

    /// Releases the lock.
    ///
    /// # Safety
    /// An acquire of this lock returned `hold`, which has not been released.
    /// The slot of that acquire is alive.
    /// Its other requests to this lock since then have failed or given up, or the lock is released in a pause of one
    /// that waits; see [`Relax`](crate::Relax).
    /// A hold does not borrow the slot; a guard of [`SpinLock`](crate::SpinLock) does.
    unsafe fn release(&self, hold: Self::Hold);
}

/// An algorithm whose waiters can give up.
///
/// # Safety
/// The guarantees of [`Algorithm`] also hold for this acquire.
///
/// # Examples
/// ```
/// use lockwright_locks::{Batched, Priority, Slot, SpinLock};
///
/// static STATE: SpinLock<Batched<8>, u32> = SpinLock::new(0);
/// let slot = Slot::claim().expect("fewer than 64 threads have a slot");
/// let mut checks = 0;
/// let guard = STATE.lock_until((&slot, Priority::new(1)), || {
///     checks += 1;
///     checks > 1_000
/// });
/// assert!(guard.is_some());
/// ```
#[allow(unsafe_code)] // Each implementation guarantees the contract above.
pub unsafe trait Abortable: Algorithm {
    /// Acquires the lock, or gives up at the first check after `deadline` has passed.
    ///
    /// A lock that is handed to the caller while it gives up is acquired.
    ///
    /// # Panics
    /// If the slot is not one of the lock's slots, or waits for a lock already.
    fn acquire_until(&self, request: Self::Request<'_>, deadline: impl Deadline) -> Option<Self::Hold>;
}

/// An algorithm whose lock readers can share. Its [`Algorithm::acquire`] is that of a writer.
///
/// # Safety
/// Between a successful shared acquire and its release, no [`Algorithm::acquire`] succeeds, and between a successful
/// acquire and its release, no shared acquire does.
/// Everything before a release happens before each later acquire that this release allows.
/// [`RwSpinLock`](crate::RwSpinLock) gives access to its value on these guarantees.
///
/// # Examples
/// ```
/// use lockwright_locks::{PhaseFair, RwSpinLock, Shareable, TaskFair};
///
/// fn set_and_read<A: Shareable>(value: &RwSpinLock<A, u32>) -> u32 {
///     *value.write() = 7;
///     *value.read()
/// }
///
/// assert_eq!(set_and_read(&RwSpinLock::<PhaseFair, _>::new(0)), 7);
/// assert_eq!(set_and_read(&RwSpinLock::<TaskFair, _>::new(0)), 7);
/// ```
#[allow(unsafe_code)] // Each implementation guarantees the contract above.
pub unsafe trait Shareable: for<'r> Algorithm<Request<'r> = ()> {
    /// Acquires the lock for reading, and waits for it as the algorithm specifies.
    fn acquire_shared(&self);

    /// Acquires the lock for reading if no writer holds it or waits for it, without waiting. Returns whether it did.
    fn try_acquire_shared(&self) -> bool;

    /// Releases the lock for reading.
    ///
    /// # Safety
    /// A shared acquire of this lock succeeded and has not been released.
    unsafe fn release_shared(&self);
}

/// The condition to give up.
///
/// Every `FnMut() -> bool` implements it, and with the feature `std` also `std::time::Instant`.
/// A deadline that panics gives up, and the lock is not acquired.
/// It must not drop a guard of the lock for which the slot waits, as a [`Relax`](crate::Relax) must not.
///
/// # Examples
/// ```
/// use lockwright_locks::Deadline;
///
/// let mut checks = 3;
/// let mut deadline = || {
///     checks -= 1;
///     checks == 0
/// };
/// assert!(!Deadline::passed(&mut deadline) && !Deadline::passed(&mut deadline));
/// assert!(Deadline::passed(&mut deadline));
/// ```
pub trait Deadline {
    /// Returns whether the deadline has passed. A waiter calls it once per check of the lock.
    fn passed(&mut self) -> bool;
}

impl<F: FnMut() -> bool> Deadline for F {
    fn passed(&mut self) -> bool {
        self()
    }
}

#[cfg(feature = "std")]
impl Deadline for std::time::Instant {
    fn passed(&mut self) -> bool {
        std::time::Instant::now() >= *self
    }
}
