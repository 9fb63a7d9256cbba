//! Places of several words.

use crate::sync::{AtomicU64, array, constructor};
use core::sync::atomic::Ordering::Relaxed;

/// The words of one value.
pub(crate) struct Place<const WORDS: usize>([AtomicU64; WORDS]);

impl<const WORDS: usize> Place<WORDS> {
    constructor! {
        pub(crate) fn new() -> Self {
            Self(array!(AtomicU64::new(0)))
        }
    }

    pub(crate) fn read(&self) -> [u64; WORDS] {
        core::array::from_fn(|word| self.0[word].load(Relaxed))
    }

    pub(crate) fn write(&self, words: [u64; WORDS]) {
        for (word, bits) in self.0.iter().zip(words) {
            word.store(bits, Relaxed);
        }
    }
}
