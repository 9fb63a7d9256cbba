//! Bounded FIFO queues.

pub(crate) mod lock_free;

use core::fmt;
use lockwright_locks::Slot;

/// A bounded FIFO queue with many producers and many consumers.
///
/// Its operations are linearizable.
///
/// # Examples
/// ```
/// use lockwright_objects::{Full, LockFreeQueue, Queue};
/// use lockwright_locks::Slot;
///
/// fn move_one(from: &impl Queue<u32>, to: &impl Queue<u32>, slot: &Slot) -> Result<(), Full> {
///     from.pop(slot).map_or(Ok(()), |value| to.push(slot, value))
/// }
///
/// let slot = Slot::claim().expect("fewer than 64 threads have a slot");
/// let (a, b) = (LockFreeQueue::<u32, 2, 4>::new(), LockFreeQueue::<u32, 2, 4>::new());
/// a.push(&slot, 7)?;
/// move_one(&a, &b, &slot)?;
/// assert_eq!((a.pop(&slot), b.pop(&slot)), (None, Some(7)));
/// # Ok::<(), Full>(())
/// ```
pub trait Queue<T> {
    /// Appends a value.
    ///
    /// # Errors
    /// [`Full`] if the queue holds as many values as its capacity.
    ///
    /// # Panics
    /// If the slot is not one of the object's slots.
    fn push(&self, slot: &Slot, value: T) -> Result<(), Full>;

    /// Removes the oldest value, and returns `None` if the queue is empty.
    ///
    /// # Panics
    /// If the slot is not one of the object's slots.
    fn pop(&self, slot: &Slot) -> Option<T>;
}

/// The queue or priority queue holds as many values as its capacity.
///
/// # Examples
/// ```
/// use lockwright_objects::{Full, LockFreeQueue, Queue};
/// use lockwright_locks::Slot;
///
/// let slot = Slot::claim().expect("fewer than 64 threads have a slot");
/// let queue = LockFreeQueue::<u32, 1, 4>::new();
/// assert_eq!(queue.push(&slot, 1), Ok(()));
/// assert_eq!(queue.push(&slot, 2), Err(Full));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Full;

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the queue is full; remove a value first, or make the queue larger")
    }
}

impl core::error::Error for Full {}
