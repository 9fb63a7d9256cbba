//! The one door to atomics: those of `core`, or those of a model that explores interleavings.
//!
//! `--cfg lockwright_loom` and `--cfg lockwright_shuttle` choose a model.

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

/// A constructor, which is constant except in a model.
#[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
macro_rules! constructor {
    ($(#[$attribute:meta])* $visibility:vis fn $($rest:tt)+) => { $(#[$attribute])* $visibility const fn $($rest)+ };
}
#[cfg(any(lockwright_loom, lockwright_shuttle))]
macro_rules! constructor {
    ($($function:tt)+) => { $($function)+ };
}

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

/// An array of the values of an expression, which is constant except in a model.
#[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
macro_rules! array {
    ($element:expr) => {
        [const { $element }; _]
    };
}
#[cfg(any(lockwright_loom, lockwright_shuttle))]
macro_rules! array {
    ($element:expr) => {
        core::array::from_fn(|_| $element)
    };
}

pub(crate) use {array, constructor, free_by_new};
