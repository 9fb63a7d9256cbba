//! Locks that are wrong on purpose.

use crate::{Abortable, Algorithm, Deadline, Priority, Slot};
use core::marker::PhantomData;
use core::sync::atomic::{AtomicBool, Ordering};

/// Admits every request.
pub(crate) struct NoExclusion<A>(PhantomData<fn() -> A>);

// SAFETY: the contract is broken on purpose; the data are integers, which stay valid.
#[allow(unsafe_code)]
unsafe impl<A: Algorithm> Algorithm for NoExclusion<A> {
    type Request<'r> = A::Request<'r>;
    type Hold = ();

    #[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
    const FREE: Self = Self(PhantomData);

    #[cfg(any(lockwright_loom, lockwright_shuttle))]
    fn free() -> Self {
        Self(PhantomData)
    }

    fn request(slot: &Slot, priority: Priority) -> A::Request<'_> {
        A::request(slot, priority)
    }

    fn acquire(&self, _: A::Request<'_>) {}

    fn try_acquire(&self, _: A::Request<'_>) -> Option<()> {
        Some(())
    }

    unsafe fn release(&self, (): ()) {}
}

// SAFETY: the contract is broken on purpose; the data are integers, which stay valid.
#[allow(unsafe_code)]
unsafe impl<A: Abortable> Abortable for NoExclusion<A> {
    fn acquire_until(&self, _: A::Request<'_>, _: impl Deadline) -> Option<()> {
        Some(())
    }
}

/// Omits its first release.
pub(crate) struct LosesHandOff<A> {
    inner: A,
    /// It belongs to the test and is no atomic of the model.
    lost: AtomicBool,
}

// SAFETY: the inner lock guarantees the contract. A lost release excludes more, not less.
#[allow(unsafe_code)]
unsafe impl<A: Algorithm> Algorithm for LosesHandOff<A> {
    type Request<'r> = A::Request<'r>;
    type Hold = A::Hold;

    #[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
    const FREE: Self = Self { inner: A::FREE, lost: AtomicBool::new(false) };

    #[cfg(any(lockwright_loom, lockwright_shuttle))]
    fn free() -> Self {
        Self { inner: A::free(), lost: AtomicBool::new(false) }
    }

    fn request(slot: &Slot, priority: Priority) -> A::Request<'_> {
        A::request(slot, priority)
    }

    fn acquire(&self, request: A::Request<'_>) -> A::Hold {
        self.inner.acquire(request)
    }

    fn try_acquire(&self, request: A::Request<'_>) -> Option<A::Hold> {
        self.inner.try_acquire(request)
    }

    unsafe fn release(&self, hold: A::Hold) {
        if self.lost.swap(true, Ordering::Relaxed) {
            // SAFETY: the contract is the same.
            unsafe { self.inner.release(hold) };
        }
    }
}

// SAFETY: the inner lock guarantees the contract.
#[allow(unsafe_code)]
unsafe impl<A: Abortable> Abortable for LosesHandOff<A> {
    fn acquire_until(&self, request: A::Request<'_>, deadline: impl Deadline) -> Option<A::Hold> {
        self.inner.acquire_until(request, deadline)
    }
}
