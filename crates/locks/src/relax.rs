//! The pause of a waiter between two checks.

use crate::sync;

/// The pause of a waiter between two checks. Each wait creates a new value.
///
/// An implementation must not panic.
/// A waiter that cannot give up cannot leave its queue; if it panics, the lock is never handed over and stays held.
/// That is sound: the slot keeps waiting, and its further requests panic.
/// A lock without slots counts the requests that are left behind, and too many of them abort the program.
/// [`Batched`](crate::Batched), [`Bpl`](crate::Bpl) and [`Tas`](crate::Tas) remain usable.
///
/// An implementation must not drop a guard of the lock for which it pauses.
/// A holder that requests its lock again waits for itself. If it releases the lock in a pause of that wait, waiters may
/// be lost, because a queue has one place for its slot: they wait forever, and so may the release.
/// Exclusion still holds.
///
/// # Examples
/// ```
/// use lockwright_locks::{Relax, SpinLock, Ticket};
///
/// /// Yields to other threads of the system.
/// #[derive(Default)]
/// struct Yield;
///
/// impl Relax for Yield {
///     fn relax(&mut self) {
///         std::thread::yield_now();
///     }
/// }
///
/// static COUNT: SpinLock<Ticket<Yield>, u32> = SpinLock::new(0);
/// *COUNT.lock() += 1;
/// ```
pub trait Relax: Default {
    /// Pauses after a check that found the lock held.
    fn relax(&mut self);
}

/// One spin-loop hint of the processor per check, which suits short and bounded waits.
///
/// # Examples
/// ```
/// use lockwright_locks::{Relax, Spin};
///
/// Spin.relax();
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Spin;

impl Relax for Spin {
    #[inline]
    fn relax(&mut self) {
        sync::spin_loop();
    }
}

/// Exponential backoff: up to [`Backoff::HINTS_MAX`] hints per check.
///
/// It reduces the traffic on the cache line of the lock, and delays the check that finds the lock free.
///
/// # Examples
/// ```
/// use lockwright_locks::{Backoff, SpinLock, Tas};
///
/// static COUNT: SpinLock<Tas<Backoff>, u32> = SpinLock::new(0);
/// *COUNT.lock() += 1;
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Backoff(u32);

impl Backoff {
    /// The maximum number of hints between two checks.
    pub const HINTS_MAX: u32 = 64;
}

impl Relax for Backoff {
    #[inline]
    fn relax(&mut self) {
        // BOUND: HINTS_MAX hints.
        for _ in 0..1 << self.0 {
            sync::spin_loop();
        }
        if 1 << self.0 < Self::HINTS_MAX {
            self.0 += 1;
        }
    }
}
