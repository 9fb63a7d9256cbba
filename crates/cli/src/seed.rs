//! Seeds that nobody gave.

use std::hash::{BuildHasher, Hasher, RandomState};

/// 32 bits that nobody chose; short enough to be typed again.
#[must_use]
pub fn draw() -> u64 {
    RandomState::new().build_hasher().finish() >> 32
}
