//! The one door to atomics: those of `core`, or those of a model that explores interleavings.
//!
//! `--cfg lockwright_loom` and `--cfg lockwright_shuttle` choose a model.

mod constant;

#[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
#[allow(unused_imports)] // Tests and models use all of them.
pub(crate) use core::{
    hint::spin_loop,
    sync::atomic::{AtomicU32, AtomicUsize, fence},
};

#[cfg(all(target_has_atomic = "64", not(any(lockwright_loom, lockwright_shuttle))))]
pub(crate) use core::sync::atomic::AtomicU64;

#[cfg(any(lockwright_loom, lockwright_shuttle))]
mod model;
#[cfg(any(lockwright_loom, lockwright_shuttle))]
pub(crate) use model::{AtomicU32, AtomicU64, AtomicUsize, fault, fence, spin_loop};

/// The free lock of [`Algorithm`](crate::Algorithm), made by `new()`.
#[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
macro_rules! free_by_new {
    () => {
        const FREE: Self = Self::new();
    };
}
#[cfg(any(lockwright_loom, lockwright_shuttle))]
macro_rules! free_by_new {
    () => {
        fn free() -> Self {
            Self::new()
        }
    };
}

pub(crate) use constant::{array, constructor};
pub(crate) use free_by_new;
