//! Commits that break their promise: the tests they are for must fail, on data that bears it.

use crate::sync::{AtomicU64, fence};
use crate::{Commit, Locked};
use core::sync::atomic::Ordering;

/// Does not look whether another came before: the conflict flag left out.
pub(super) struct Blind;

// SAFETY: it breaks its promise; see above.
#[allow(unsafe_code)]
unsafe impl Commit for Blind {
    fn post(&self, head: &AtomicU64, _: u64, new: u64) -> bool {
        head.store(new, Ordering::Release);
        true
    }
    fn perform(&self, head: &AtomicU64, seen: u64, word: &AtomicU64, old: u64, new: u64) {
        Locked.perform(head, seen, word, old, new);
    }
}

/// A helper that looks at the head and then stores: another may come in between.
pub(super) struct LooksFirst;

// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl Commit for LooksFirst {
    fn post(&self, head: &AtomicU64, seen: u64, new: u64) -> bool {
        Locked.post(head, seen, new)
    }
    fn perform(&self, head: &AtomicU64, seen: u64, word: &AtomicU64, _: u64, new: u64) {
        fence(Ordering::Acquire);
        if head.load(Ordering::Relaxed) == seen {
            word.store(new, Ordering::Release);
        }
    }
}
