//! `lock_api::RawRwLock` for the locks that readers share.

use crate::{Algorithm, PhaseFair, Relax, Shareable, TaskFair};
use lock_api::{GuardNoSend, RawRwLock};

macro_rules! raw_rw_lock {
    ($($lock:ident)+) => {$(
        // SAFETY: `Shareable` guarantees exclusion. `GuardNoSend` keeps the unlock on the thread that locked.
        #[allow(unsafe_code)]
        unsafe impl<R: Relax> RawRwLock for $lock<R> {
            #[allow(clippy::declare_interior_mutable_const)] // The trait requires it.
            const INIT: Self = Self::FREE;
            type GuardMarker = GuardNoSend;

            #[inline]
            fn lock_shared(&self) {
                self.acquire_shared();
            }

            #[inline]
            fn try_lock_shared(&self) -> bool {
                self.try_acquire_shared()
            }

            #[inline]
            unsafe fn unlock_shared(&self) {
                // SAFETY: `unlock_shared` requires that the caller holds the lock for reading, so a shared acquire has
                // not been released.
                unsafe { self.release_shared() };
            }

            #[inline]
            fn lock_exclusive(&self) {
                self.acquire(());
            }

            #[inline]
            fn try_lock_exclusive(&self) -> bool {
                self.try_acquire(()).is_some()
            }

            #[inline]
            unsafe fn unlock_exclusive(&self) {
                // SAFETY: `unlock_exclusive` requires that the caller is the writer, and only the writer changes the
                // word from which `hold` is read. So this is the writer's hold.
                unsafe { self.release(self.hold()) };
            }
        }
    )+};
}

raw_rw_lock!(PhaseFair TaskFair);

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    fn counts<L: RawRwLock + Send + Sync>() {
        let lock = lock_api::RwLock::<L, u32>::new(0);
        {
            let (one, other) = (lock.read(), lock.read());
            assert!(lock.try_write().is_none(), "{one} and {other} are read");
        }
        {
            let _guard = lock.write();
            assert!(lock.is_locked() && lock.try_read().is_none() && lock.try_write().is_none());
        }
        assert!(!lock.is_locked());
        let rounds = if cfg!(miri) { 50 } else { 1_000 };
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..rounds {
                        let before = *lock.read();
                        *lock.write() += 1;
                        assert!(*lock.read() > before);
                    }
                });
            }
        });
        assert_eq!(*lock.read(), 2 * rounds);
    }

    #[test]
    fn both_are_lock_api_locks() {
        counts::<PhaseFair<crate::testing::Patient>>();
        counts::<TaskFair<crate::testing::Patient>>();
    }
}
