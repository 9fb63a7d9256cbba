//! Locks that are wrong on purpose.

use crate::{Abortable, Algorithm, Deadline, Priority, Shareable, Slot};
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

// SAFETY: the contract is broken on purpose; the data are integers, which stay valid.
#[allow(unsafe_code)]
unsafe impl<A: Shareable> Shareable for NoExclusion<A> {
    fn acquire_shared(&self) {}

    fn try_acquire_shared(&self) -> bool {
        true
    }

    unsafe fn release_shared(&self) {}
}

/// Omits its first release.
pub(crate) struct LosesHandOff<A> {
    inner: A,
    /// It belongs to the test and is no atomic of the model.
    lost: AtomicBool,
}

// SAFETY: every acquire is one of the inner lock, which excludes others. A lost release excludes more, not less.
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
            // SAFETY: `acquire` returned a hold of the inner lock, which its caller has not released before.
            unsafe { self.inner.release(hold) };
        }
    }
}

// SAFETY: the acquire is that of the inner lock, which excludes others.
#[allow(unsafe_code)]
unsafe impl<A: Abortable> Abortable for LosesHandOff<A> {
    fn acquire_until(&self, request: A::Request<'_>, deadline: impl Deadline) -> Option<A::Hold> {
        self.inner.acquire_until(request, deadline)
    }
}

// SAFETY: every shared acquire is one of the inner lock, which excludes writers. A lost release excludes more, not
// less.
#[allow(unsafe_code)]
unsafe impl<A: Shareable> Shareable for LosesHandOff<A> {
    fn acquire_shared(&self) {
        self.inner.acquire_shared();
    }

    fn try_acquire_shared(&self) -> bool {
        self.inner.try_acquire_shared()
    }

    unsafe fn release_shared(&self) {
        if self.lost.swap(true, Ordering::Relaxed) {
            // SAFETY: the caller has a shared acquire of the inner lock, which it has not released before.
            unsafe { self.inner.release_shared() };
        }
    }
}

/// A reader excludes all others, as a writer does.
pub(crate) struct NoSharing<A: Algorithm> {
    inner: A,
    /// The hold of the reader inside, for its release.
    hold: core::cell::UnsafeCell<Option<A::Hold>>,
}

// SAFETY: only the holder of the inner lock accesses `hold`.
#[allow(unsafe_code)]
unsafe impl<A: Algorithm + Sync> Sync for NoSharing<A> where A::Hold: Send {}

// SAFETY: every acquire and release is one of the inner lock, which excludes others.
#[allow(unsafe_code)]
unsafe impl<A: Algorithm> Algorithm for NoSharing<A> {
    type Request<'r> = A::Request<'r>;
    type Hold = A::Hold;

    #[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
    const FREE: Self = Self { inner: A::FREE, hold: core::cell::UnsafeCell::new(None) };

    #[cfg(any(lockwright_loom, lockwright_shuttle))]
    fn free() -> Self {
        Self { inner: A::free(), hold: core::cell::UnsafeCell::new(None) }
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
        // SAFETY: `acquire` returned a hold of the inner lock, which its caller has not released before.
        unsafe { self.inner.release(hold) };
    }
}

// SAFETY: a shared acquire is an acquire of the inner lock, which excludes readers and writers.
#[allow(unsafe_code)]
unsafe impl<A: Shareable> Shareable for NoSharing<A> {
    fn acquire_shared(&self) {
        let hold = self.inner.acquire(());
        // SAFETY: this thread has just acquired the inner lock, and only its holder accesses `hold`.
        unsafe { *self.hold.get() = Some(hold) };
    }

    fn try_acquire_shared(&self) -> bool {
        let Some(hold) = self.inner.try_acquire(()) else { return false };
        // SAFETY: this thread has just acquired the inner lock, and only its holder accesses `hold`.
        unsafe { *self.hold.get() = Some(hold) };
        true
    }

    unsafe fn release_shared(&self) {
        // SAFETY: the reader that calls this holds the inner lock, so no other thread accesses `hold`, which contains
        // that reader's hold.
        unsafe {
            let hold = (*self.hold.get()).take().expect("a reader is inside");
            self.inner.release(hold);
        }
    }
}
