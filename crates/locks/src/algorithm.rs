//! What an algorithm of this crate offers: the door between it and [`SpinLock`](crate::SpinLock).

use crate::{Priority, Slot};

/// A spinlock without the data it protects.
///
/// # Safety
/// Between an acquire that succeeds and the release of what it returned, no other acquire succeeds; and what was done before
/// that release is seen by whoever acquires next. [`SpinLock`](crate::SpinLock) gives access to its value on this promise.
#[allow(unsafe_code)] // A promise to be made by each implementation.
pub unsafe trait Algorithm: Sized {
    /// What a caller says of itself: `()`, `&Slot`, or `(&Slot, Priority)`.
    type Request<'r>: Copy;
    /// What the holder keeps for the release.
    type Hold;

    /// Free, nobody waiting.
    #[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
    const FREE: Self;

    /// Free, nobody waiting. The models have no constant atomics.
    #[cfg(any(lockwright_loom, lockwright_shuttle))]
    fn free() -> Self;

    /// The request of a caller at `slot`, as urgent as `priority`, for code that works with every algorithm.
    fn request(slot: &Slot, priority: Priority) -> Self::Request<'_>;

    /// Takes the lock, waiting for it as long as the algorithm says.
    ///
    /// # Panics
    /// When the slot is beyond those of the lock.
    fn acquire(&self, request: Self::Request<'_>) -> Self::Hold;

    /// Takes the lock if it is free; never waits. A lock with an order is not free as long as somebody waits, once a release has seen that.
    ///
    /// # Panics
    /// When the slot is beyond those of the lock.
    fn try_acquire(&self, request: Self::Request<'_>) -> Option<Self::Hold>;

    /// Gives the lock back.
    ///
    /// # Safety
    /// `hold` came from an acquire of this very lock and has not been released; the slot it asked from lives, and has not asked this
    /// lock since. A hold does not borrow the slot: a guard of [`SpinLock`](crate::SpinLock) does.
    unsafe fn release(&self, hold: Self::Hold);
}

/// An algorithm whose waiters can give up.
///
/// # Safety
/// What [`Algorithm`] promises of its acquires holds for this one too.
#[allow(unsafe_code)] // A promise to be made by each implementation.
pub unsafe trait Abortable: Algorithm {
    /// Takes the lock, or gives up at the first look after `deadline` has passed. A lock that comes to the caller while it
    /// gives up is taken.
    ///
    /// # Panics
    /// When the slot is beyond those of the lock.
    fn acquire_until(&self, request: Self::Request<'_>, deadline: impl Deadline) -> Option<Self::Hold>;
}

/// When to give up. Any `FnMut() -> bool` is one; with the feature `std`, so is `std::time::Instant`.
///
/// One that panics gives up, and has not taken the lock.
pub trait Deadline {
    /// Whether the time has come. Asked once a look.
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
