//! The lock on its atomics.

use super::*;
use crate::testing;

/// How often each slot looked in vain while it waits.
#[derive(Debug)]
pub(super) struct Looks([core::sync::atomic::AtomicUsize; SLOTS_MAX]);

impl Looks {
    pub(super) const NONE: Self = Self([const { core::sync::atomic::AtomicUsize::new(0) }; SLOTS_MAX]);

    pub(super) fn look(&self, slot: usize) {
        self.0[slot].fetch_add(1, Ordering::SeqCst);
    }

    pub(super) fn end(&self, slot: usize) {
        self.0[slot].store(0, Ordering::SeqCst);
    }
}

testing::exclusion!(Bpl<8, usize, testing::Patient>);
testing::abort!(Bpl<8, u32, testing::Patient>);
