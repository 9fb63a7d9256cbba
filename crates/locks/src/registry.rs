//! The claimed slots of this process, one bit each.

use core::sync::atomic::{AtomicUsize, Ordering};

/// The maximum number of slots of a lock.
pub const SLOTS_MAX: usize = 64;

const WORD: usize = usize::BITS as usize;

static CLAIMED: [AtomicUsize; SLOTS_MAX / WORD] = [const { AtomicUsize::new(0) }; SLOTS_MAX / WORD];

/// Claims the lowest free slot.
pub(crate) fn claim() -> Option<u8> {
    CLAIMED.iter().enumerate().find_map(|(word, claimed)| {
        // ORDERING: Acquire pairs with the Release of `release`: the actions of the last owner happen before.
        let before = claimed
            .fetch_update(Ordering::Acquire, Ordering::Relaxed, |bits| {
                let lowest = bits.trailing_ones();
                (lowest < usize::BITS).then(|| bits | 1 << lowest)
            })
            .ok()?;
        Some((word * WORD) as u8 + before.trailing_ones() as u8)
    })
}

/// Frees a slot.
pub(crate) fn release(index: u8) {
    let index = usize::from(index);
    // ORDERING: Release pairs with the Acquire of `claim`.
    CLAIMED[index / WORD].fetch_and(!(1 << (index % WORD)), Ordering::Release);
}

#[cfg(all(test, not(any(lockwright_loom, lockwright_shuttle))))]
mod tests {
    use crate::{SLOTS_MAX, Slot};
    use std::{collections::BTreeSet, iter, vec::Vec};

    #[test]
    fn every_slot_is_claimed_once_and_freed() {
        // No other test of this process claims slots; they use numbers, on locks of their own.
        let all: Vec<Slot> = iter::from_fn(Slot::claim).collect();
        assert_eq!(all.iter().map(Slot::index).collect::<BTreeSet<_>>(), (0..SLOTS_MAX).collect());
        assert!(Slot::claim().is_none());
        drop(all);
        assert_eq!(Slot::claim().map(|slot| slot.index()), Some(0));
    }
}
