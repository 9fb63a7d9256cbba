//! Distributions of times: groups that are at most a sixteenth wide, 16 for each power of two.

use std::sync::atomic::{AtomicU64, Ordering};

const GROUP_BITS: u32 = 4;
/// The number of groups.
pub(crate) const GROUPS: usize = (64 - GROUP_BITS as usize + 1) << GROUP_BITS;

/// Adds to a counter that no other thread writes.
pub(crate) fn add(counter: &AtomicU64, more: u64) {
    // ORDERING: Relaxed: a report is read while threads execute, and promises no more than that each value was there at
    // some moment.
    counter.store(counter.load(Ordering::Relaxed).saturating_add(more), Ordering::Relaxed);
}

/// The group of a time.
pub(crate) fn group(ns: u64) -> usize {
    let power = (u64::BITS - ns.leading_zeros()).saturating_sub(GROUP_BITS + 1);
    ((power as usize) << GROUP_BITS) + (ns >> power) as usize
}

/// The longest time of a group.
pub(crate) fn group_end(group: usize) -> u64 {
    // Groups of the same width begin at a multiple of 16 from 16 on.
    let power = (group >> GROUP_BITS).saturating_sub(1) as u32;
    let first = (group - ((power as usize) << GROUP_BITS)) as u64;
    (first << power) | ((1 << power) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_cover_all_times_in_order() {
        let mut times: Vec<u64> = (0..64).flat_map(|bit| [1_u64 << bit, (1 << bit) + 1, (1_u64 << bit) - 1]).collect();
        times.extend([0, 15, 16, 17, 31, 32, 33, 1_000, 123_456_789, u64::MAX]);
        times.sort_unstable();
        for &ns in &times {
            let group = group(ns);
            let end = group_end(group);
            assert!(group < GROUPS && ns <= end && end - ns <= ns / 16, "{ns}: group {group} ends at {end}");
            assert!(group == 0 || group_end(group - 1) < ns, "{ns}: the group before ends at {}", group_end(group - 1));
        }
        assert_eq!(group(u64::MAX), GROUPS - 1);
    }
}
