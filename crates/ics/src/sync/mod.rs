//! The one door to atomics, which are those of one of three sources.
//!
//! | build | atomics |
//! |---|---|
//! | library | those of `core` |
//! | unit tests | those of `core`, with a preemption point before each access (`testing::nested`) |
//! | `--cfg lockwright_loom`, `--cfg lockwright_shuttle` | those of a model that explores interleavings |

#[cfg(not(any(test, lockwright_loom, lockwright_shuttle)))]
pub use core::sync::atomic::{AtomicU32, AtomicU64, fence};

#[cfg(all(test, not(any(lockwright_loom, lockwright_shuttle))))]
mod preempted;
#[cfg(all(test, not(any(lockwright_loom, lockwright_shuttle))))]
pub use preempted::{AtomicU32, AtomicU64, fence};

#[cfg(lockwright_loom)]
pub(crate) mod fences;
#[cfg(lockwright_loom)]
pub use {
    fences::fence,
    loom::sync::atomic::{AtomicU32, AtomicU64},
};

#[cfg(lockwright_shuttle)]
pub use shuttle::sync::atomic::{AtomicU32, AtomicU64, fence};

/// A constructor, which is constant except in a model.
#[cfg(not(any(lockwright_loom, lockwright_shuttle)))]
macro_rules! constructor {
    ($(#[$attribute:meta])* $visibility:vis fn $($rest:tt)+) => { $(#[$attribute])* $visibility const fn $($rest)+ };
}
#[cfg(any(lockwright_loom, lockwright_shuttle))]
macro_rules! constructor {
    ($($function:tt)+) => { $($function)+ };
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

pub(crate) use {array, constructor};
