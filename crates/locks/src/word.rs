//! The machine words of a lock, which limit its slots and counts.

#[cfg(target_has_atomic = "64")]
use crate::sync::AtomicU64;
use crate::sync::{AtomicU32, AtomicUsize};
use core::fmt::Debug;
use core::sync::atomic::Ordering;

/// The machine word of a lock: `u32`, `usize`, and `u64` on targets with 64-bit atomics.
///
/// One word holds a set of slots, so a lock has at most `BITS` slots.
///
/// # Examples
/// ```
/// use lockwright_locks::{Bpl, Priority, Slot, SpinLock};
///
/// static STATE: SpinLock<Bpl<32, u32>, u32> = SpinLock::new(0);
/// let slot = Slot::claim().expect("fewer than 64 threads have a slot");
/// *STATE.lock_with((&slot, Priority::new(1))) += 1;
/// ```
pub trait Word: Copy + Eq + Debug + sealed::Sealed {
    /// The atomic form.
    #[doc(hidden)]
    type Atomic: AtomicWord + Debug;

    /// The width in bits.
    const BITS: u32;
}

/// An atomic word whose value is passed as the lower `BITS` of 64 bits.
#[doc(hidden)]
#[allow(missing_docs)]
pub trait AtomicWord: Sized + Sync + sealed::Sealed {
    /// The word with all bits clear.
    #[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
    const ZEROS: Self;
    /// The word with all bits set.
    #[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
    const ONES: Self;
    /// All bits of the word.
    const MASK: u64;
    fn with(value: u64) -> Self;
    fn load(&self, order: Ordering) -> u64;
    fn store(&self, value: u64, order: Ordering);
    fn swap(&self, value: u64, order: Ordering) -> u64;
    fn compare_exchange(&self, current: u64, new: u64, success: Ordering, failure: Ordering) -> Result<u64, u64>;
    fn fetch_add(&self, value: u64, order: Ordering) -> u64;
    fn fetch_sub(&self, value: u64, order: Ordering) -> u64;
    fn fetch_or(&self, value: u64, order: Ordering) -> u64;
    fn fetch_and(&self, value: u64, order: Ordering) -> u64;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! word {
    ($value:ty, $atomic:ident) => {
        impl sealed::Sealed for $value {}
        impl sealed::Sealed for $atomic {}

        impl Word for $value {
            type Atomic = $atomic;
            const BITS: u32 = <$value>::BITS;
        }

        impl AtomicWord for $atomic {
            #[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
            const ZEROS: Self = Self::new(0);
            #[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
            const ONES: Self = Self::new(<$value>::MAX);
            const MASK: u64 = <$value>::MAX as u64;

            #[inline]
            fn with(value: u64) -> Self {
                Self::new(value as $value)
            }
            #[inline]
            fn load(&self, order: Ordering) -> u64 {
                $atomic::load(self, order) as u64
            }
            #[inline]
            fn store(&self, value: u64, order: Ordering) {
                $atomic::store(self, value as $value, order);
            }
            #[inline]
            fn swap(&self, value: u64, order: Ordering) -> u64 {
                $atomic::swap(self, value as $value, order) as u64
            }
            #[inline]
            fn compare_exchange(
                &self,
                current: u64,
                new: u64,
                success: Ordering,
                failure: Ordering,
            ) -> Result<u64, u64> {
                match $atomic::compare_exchange(self, current as $value, new as $value, success, failure) {
                    Ok(value) => Ok(value as u64),
                    Err(value) => Err(value as u64),
                }
            }
            #[inline]
            fn fetch_add(&self, value: u64, order: Ordering) -> u64 {
                $atomic::fetch_add(self, value as $value, order) as u64
            }
            #[inline]
            fn fetch_sub(&self, value: u64, order: Ordering) -> u64 {
                $atomic::fetch_sub(self, value as $value, order) as u64
            }
            #[inline]
            fn fetch_or(&self, value: u64, order: Ordering) -> u64 {
                $atomic::fetch_or(self, value as $value, order) as u64
            }
            #[inline]
            fn fetch_and(&self, value: u64, order: Ordering) -> u64 {
                $atomic::fetch_and(self, value as $value, order) as u64
            }
        }
    };
}

word!(u32, AtomicU32);
#[cfg(target_has_atomic = "64")]
word!(u64, AtomicU64);
word!(usize, AtomicUsize);

/// An atomic word with all bits clear, which is constant except in a model.
macro_rules! zeros {
    ($word:ty) => {{
        #[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
        {
            <<$word as $crate::Word>::Atomic as $crate::word::AtomicWord>::ZEROS
        }
        #[cfg(any(lockwright_loom, lockwright_shuttle))]
        {
            <<$word as $crate::Word>::Atomic as $crate::word::AtomicWord>::with(0)
        }
    }};
}
pub(crate) use zeros;
