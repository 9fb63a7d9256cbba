//! `lock_api::RawMutex` for the locks without arguments.

use crate::{Algorithm, Relax, Tas, Ticket};
use lock_api::{GuardNoSend, RawMutex};

macro_rules! raw_mutex {
    ($lock:ident, |$self:ident| $hold:expr) => {
        // SAFETY: `Algorithm` guarantees exclusion. `GuardNoSend` keeps the unlock on the thread that locked.
        #[allow(unsafe_code)]
        unsafe impl<R: Relax> RawMutex for $lock<R> {
            #[allow(clippy::declare_interior_mutable_const)] // The trait requires it.
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
                // SAFETY: `unlock` requires that the lock is held, and this is the holder's hold.
                unsafe { $self.release($hold) };
            }

            fn is_locked(&self) -> bool {
                self.is_locked()
            }
        }
    };
}

raw_mutex!(Tas, |self| ());
// Only the holder writes `serving`, which therefore gives the ticket of the holder.
raw_mutex!(Ticket, |self| self.hold());

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
        let rounds = if cfg!(miri) { 50 } else { 1_000 };
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| (0..rounds).for_each(|_| *mutex.lock() += 1));
            }
        });
        assert_eq!(*mutex.lock(), 2 * rounds);
    }

    #[test]
    fn tas_and_ticket_are_lock_api_mutexes() {
        counts::<Tas<crate::testing::Patient>>();
        counts::<Ticket<crate::testing::Patient>>();
    }
}
