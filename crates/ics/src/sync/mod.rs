//! The one door to atomics, which are those of one of three sources.
//!
//! | build | atomics |
//! |---|---|
//! | library | those of `core` |
//! | unit tests | those of `core`, with a preemption point before each access (`testing::nested`) |
//! | `--cfg lockwright_loom`, `--cfg lockwright_shuttle` | those of a model that explores interleavings |

mod constant;

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

pub(crate) use constant::{array, constructor};
