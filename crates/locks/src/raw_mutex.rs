//! `lock_api::RawMutex` for the locks that need no argument.

use crate::{Algorithm, Relax, Tas, Ticket};
use lock_api::{GuardNoSend, RawMutex};

macro_rules! raw_mutex {
    ($lock:ident, |$self:ident| $hold:expr) => {
        // SAFETY: `Algorithm` promises exclusion; who holds the lock unlocks it, as GuardNoSend makes sure.
        #[allow(unsafe_code)]
        unsafe impl<R: Relax> RawMutex for $lock<R> {
            #[allow(clippy::declare_interior_mutable_const)] // What the trait asks for.
            const INIT: Self = Self::FREE;
            type GuardMarker = GuardNoSend;

            #[inline]
            fn lock(&self) {
                self.acquire(());
            }

            #[inline]
            fn try_lock(&self) -> bool {
                self.try_acquire(()).is_some()
            }

            #[inline]
            unsafe fn unlock(&$self) {
                // SAFETY: the caller holds the lock, with this hold.
                unsafe { $self.release($hold) };
            }

            fn is_locked(&self) -> bool {
                self.is_taken()
            }
        }
    };
}

raw_mutex!(Tas, |self| ());
// Nobody but the holder writes `serving`: it says which ticket is held.
raw_mutex!(Ticket, |self| self.after_serving());

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    fn counts<L: RawMutex + Send + Sync>() {
        let mutex = lock_api::Mutex::<L, u32>::new(0);
        assert!(!mutex.is_locked());
        {
            let guard = mutex.lock();
            assert!(mutex.is_locked());
            assert!(mutex.try_lock().is_none());
            drop(guard);
        }
        assert!(!mutex.is_locked());
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| (0..1_000).for_each(|_| *mutex.lock() += 1));
            }
        });
        assert_eq!(*mutex.lock(), 2_000);
    }

    #[test]
    fn both_are_mutexes_of_lock_api() {
        counts::<Tas<crate::testing::Patient>>();
        counts::<Ticket<crate::testing::Patient>>();
    }
}
