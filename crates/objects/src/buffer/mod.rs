//! Buffers of several words.

pub(crate) mod lock_free;
pub(crate) mod wait_free;

use lockwright_locks::Slot;

/// A buffer of several words with many writers and many readers.
///
/// A read returns all the words of one write. Its operations are linearizable.
///
/// # Examples
/// ```
/// use lockwright_objects::{Buffer, LockFreeBuffer, WaitFreeBuffer};
/// use lockwright_locks::Slot;
///
/// fn copy<const WORDS: usize>(from: &impl Buffer<f64, WORDS>, to: &impl Buffer<f64, WORDS>, slot: &Slot) {
///     to.write(slot, from.read(slot));
/// }
///
/// let slot = Slot::claim().expect("fewer than 64 threads have a slot");
/// let (a, b) = (LockFreeBuffer::<f64, 3, 4>::new(), WaitFreeBuffer::<f64, 3, 4>::new());
/// a.write(&slot, [0.5, 1.5, 2.5]);
/// copy(&a, &b, &slot);
/// assert_eq!(b.read(&slot), [0.5, 1.5, 2.5]);
/// ```
pub trait Buffer<T, const WORDS: usize> {
    /// Returns the values of the last write, or, before the first write, values whose bits are all zero.
    ///
    /// # Panics
    /// If the slot is not one of the object's slots.
    fn read(&self, slot: &Slot) -> [T; WORDS];

    /// Replaces all values.
    ///
    /// # Panics
    /// If the slot is not one of the object's slots.
    fn write(&self, slot: &Slot, values: [T; WORDS]);
}
