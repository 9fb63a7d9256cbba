//! Random seeds.

use std::hash::{BuildHasher, Hasher, RandomState};

/// A random seed of 32 bits, short enough to type.
#[must_use]
pub fn draw() -> u64 {
    RandomState::new().build_hasher().finish() >> 32
}
