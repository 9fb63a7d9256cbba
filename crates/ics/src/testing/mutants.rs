//! Commits that break the contract of [`Commit`]. The tests that use them must fail, on data that tolerates it.

use crate::sync::{AtomicU64, fence};
use crate::{Commit, Locked};
use core::sync::atomic::Ordering;

/// Posts without a check whether another section committed first.
pub(super) struct Blind;

// SAFETY: the contract is broken on purpose; the data are integers, which stay valid.
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

/// Performs by a check of the head and then a store, between which another thread can run.
pub(super) struct CheckThenStore;

// SAFETY: the contract is broken on purpose; the data are integers, which stay valid.
#[allow(unsafe_code)]
unsafe impl Commit for CheckThenStore {
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

/// Performs without a check of the head or of the word.
pub(super) struct Unchecked;

// SAFETY: the contract is broken on purpose; the data are integers, which stay valid.
#[allow(unsafe_code)]
unsafe impl Commit for Unchecked {
    fn post(&self, head: &AtomicU64, seen: u64, new: u64) -> bool {
        Locked.post(head, seen, new)
    }
    fn perform(&self, _: &AtomicU64, _: u64, word: &AtomicU64, _: u64, new: u64) {
        word.store(new, Ordering::Release);
    }
}
