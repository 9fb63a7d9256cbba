//! The one door to atomics.
//!
//! | build | atomics |
//! |---|---|
//! | library | those of `core` |
//! | unit tests | those of `core`; each access is a step that a test counts and can stop at |
//! | `--cfg lockwright_loom`, `--cfg lockwright_shuttle` | likewise, those of a model that explores interleavings |

#[cfg(not(any(test, lockwright_loom, lockwright_shuttle)))]
pub use core::sync::atomic::{AtomicU64, fence};

#[cfg(any(test, lockwright_loom, lockwright_shuttle))]
mod counted;
#[cfg(any(test, lockwright_loom, lockwright_shuttle))]
pub(crate) use counted::steps;
#[cfg(any(test, lockwright_loom, lockwright_shuttle))]
pub use counted::{AtomicU64, fence};

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
