//! The one door to atomics.
//!
//! | build | atomics |
//! |---|---|
//! | library | those of `core` |
//! | unit tests | those of `core`; each access is a step that a test counts and can stop at |
//! | `--cfg lockwright_steps`, the package in `steps/` | likewise, for measurements |
//! | `--cfg lockwright_loom`, `--cfg lockwright_shuttle` | likewise, those of a model that explores interleavings |

mod constant;

#[cfg(not(any(test, lockwright_loom, lockwright_shuttle, lockwright_steps)))]
pub use core::sync::atomic::{AtomicU64, fence};

#[cfg(any(test, lockwright_loom, lockwright_shuttle, lockwright_steps))]
mod counted;
#[cfg(any(test, lockwright_loom, lockwright_shuttle, lockwright_steps))]
pub use counted::steps;
#[cfg(any(test, lockwright_loom, lockwright_shuttle, lockwright_steps))]
pub use counted::{AtomicU64, fence};

pub(crate) use constant::{array, constructor};

/// Loom treats sequentially consistent accesses as acquire and release ones, and only fences as they are. A model
/// therefore has a fence between two such accesses whose order counts, and does not notice if one of them is weaker.
/// Miri executes the accesses as they are: `testing::order` fails there if a reader, a writer or an attempt makes its
/// second access an acquire. That the others are sequentially consistent rests on the arguments beside them.
#[inline]
pub(crate) fn in_sequence() {
    #[cfg(lockwright_loom)]
    fence(core::sync::atomic::Ordering::SeqCst);
}
