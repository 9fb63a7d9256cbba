//! The participants of an object.

use lockwright_locks::Slot;

/// Returns the number of a slot in an object with `slots` slots.
///
/// # Panics
/// If the number is not below `slots`.
#[inline]
pub(crate) fn participant(slot: &Slot, slots: usize) -> usize {
    let index = slot.index();
    if index >= slots {
        refuse(index, slots);
    }
    index
}

#[cold]
fn refuse(index: usize, slots: usize) -> ! {
    panic!("slot {index} uses an object that has {slots} slots, which are numbered from 0");
}
