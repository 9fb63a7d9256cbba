//! The states a machine under test can reach.

extern crate std;

use core::hash::Hash;
use foldhash::fast::FixedState;
use std::collections::HashSet;
use std::vec::Vec;

/// Visits each state that can be reached from `first`, once; `visit` says where it leads. Returns how many there are.
pub(crate) fn reach<S: Eq + Hash>(first: S, mut visit: impl FnMut(&S, &mut Vec<S>)) -> usize {
    let mut seen: HashSet<S, FixedState> = HashSet::default();
    let mut todo = std::vec![first];
    // BOUND: each round takes one, and each state leads to others but once.
    while let Some(state) = todo.pop() {
        if !seen.contains(&state) {
            visit(&state, &mut todo);
            seen.insert(state);
        }
    }
    seen.len()
}
