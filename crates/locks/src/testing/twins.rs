//! Locks that are wrong on purpose.

use crate::{Abortable, Algorithm, Deadline, Priority, Slot};
use core::marker::PhantomData;
use core::sync::atomic::{AtomicBool, Ordering};

/// Lets everybody in.
pub(crate) struct Nothing<A>(PhantomData<fn() -> A>);

// SAFETY: it breaks its promise; the tests it is for must fail, on data that bears it.
#[allow(unsafe_code)]
unsafe impl<A: Algorithm> Algorithm for Nothing<A> {
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

// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl<A: Abortable> Abortable for Nothing<A> {
    fn acquire_until(&self, _: A::Request<'_>, _: impl Deadline) -> Option<()> {
        Some(())
    }
}

/// Forgets its first release.
pub(crate) struct LosesHandOff<A> {
    inner: A,
    /// Not an atomic of the model: it belongs to the test.
    lost: AtomicBool,
}

// SAFETY: as the inner one; that a release is lost excludes more, not less.
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
            // SAFETY: the caller's promise.
            unsafe { self.inner.release(hold) };
        }
    }
}

// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl<A: Abortable> Abortable for LosesHandOff<A> {
    fn acquire_until(&self, request: A::Request<'_>, deadline: impl Deadline) -> Option<A::Hold> {
        self.inner.acquire_until(request, deadline)
    }
}
