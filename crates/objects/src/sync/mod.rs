//! The one door to atomics.
//!
//! | build | atomics |
//! |---|---|
//! | library | those of `core` |
//! | unit tests | those of `core`; each access is a step that a test counts and can stop at |
//! | `--cfg lockwright_loom`, `--cfg lockwright_shuttle` | likewise, those of a model that explores interleavings |

mod constant;

#[cfg(not(any(test, lockwright_loom, lockwright_shuttle)))]
pub use core::sync::atomic::{AtomicU64, fence};

#[cfg(any(test, lockwright_loom, lockwright_shuttle))]
mod counted;
#[cfg(any(test, lockwright_loom, lockwright_shuttle))]
pub(crate) use counted::steps;
#[cfg(any(test, lockwright_loom, lockwright_shuttle))]
pub use counted::{AtomicU64, fence};

pub(crate) use constant::{array, constructor};
