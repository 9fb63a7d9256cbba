//! Bounded priority queues.

use crate::Full;
use lockwright_locks::Slot;

/// A bounded priority queue with many participants.
///
/// Its operations are linearizable. The values of equal order are removed in any order.
///
/// Operations compare values in their middle: `Ord` and [`Value::from_bits`](crate::Value::from_bits) must neither use
/// the same queue with the same slot nor panic. Otherwise values may be lost or returned twice, or the caller waits for
/// itself. The operations of the other objects convert values before their first step or after their last one.
///
/// # Examples
/// ```
/// use lockwright_objects::{Full, PriorityQueue, WaitFreeHeap};
/// use lockwright_locks::Slot;
///
/// fn replace_max(queue: &impl PriorityQueue<u32>, slot: &Slot, value: u32) -> Result<Option<u32>, Full> {
///     let max = queue.extract_max(slot);
///     queue.insert(slot, value)?;
///     Ok(max)
/// }
///
/// let slot = Slot::claim().expect("fewer than 64 threads have a slot");
/// let queue = WaitFreeHeap::<u32, 2, 4>::new();
/// assert_eq!(replace_max(&queue, &slot, 7)?, None);
/// assert_eq!(replace_max(&queue, &slot, 3)?, Some(7));
/// # Ok::<(), Full>(())
/// ```
pub trait PriorityQueue<T> {
    /// Inserts a value.
    ///
    /// # Errors
    /// [`Full`] if the queue holds as many values as its capacity.
    ///
    /// # Panics
    /// If the slot is not one of the object's slots.
    fn insert(&self, slot: &Slot, value: T) -> Result<(), Full>;

    /// Removes a greatest value, and returns `None` if the queue is empty.
    ///
    /// # Panics
    /// If the slot is not one of the object's slots.
    fn extract_max(&self, slot: &Slot) -> Option<T>;
}
