//! The lock-free queue.

use super::{Full, Queue};
use crate::mutation::removed;
use crate::sync::{AtomicU64, array, constructor, fence};
use crate::word::{PLACES_MAX, field, index, place, tag, tagged};
use crate::{Bound, Value, participant};
use core::fmt;
use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use crossbeam_utils::CachePadded;
use lockwright_locks::Slot;

/// A lock-free bounded queue in a ring of cells.
///
/// A value is written into a place that its producer owns.
/// One compare-and-swap then exchanges this place for the place in the cell at the tail: this commits the push.
/// One compare-and-swap that marks the cell at the head as free commits a pop.
/// Each position of the ring has its own tag, and every participant advances a head or a tail that lags behind.
///
/// Pushes interfere with pushes only, and pops with pops only.
/// A participant that is preempted or killed in an operation delays the others by one attempt.
/// The slot of a participant that was killed in an operation must not be used for the same queue again.
///
/// A position returns after 2^47 rounds of the ring, and until then no tag returns.
///
/// # Reference
/// M. Michael, M. Scott: Simple, fast, and practical non-blocking and blocking concurrent queue algorithms. PODC 1996
/// (the tail that others advance).
/// C.-H. Shann, T.-L. Huang, C. Chen: A practical nonblocking queue algorithm using compare-and-swap. ICPADS 2000
/// (the ring).
/// A ring replaces the linked list because it needs no pool of nodes: a pool costs two more commits per value, and a
/// killed participant could empty it.
///
/// # Examples
/// ```
/// use lockwright_objects::{LockFreeQueue, Queue};
/// use lockwright_locks::Slot;
///
/// static QUEUE: LockFreeQueue<i32, 16, 4> = LockFreeQueue::new();
///
/// let slot = Slot::claim().expect("fewer than 64 threads have a slot");
/// QUEUE.push(&slot, -1)?;
/// QUEUE.push(&slot, -2)?;
/// assert_eq!(QUEUE.pop(&slot), Some(-1));
/// # Ok::<(), lockwright_objects::Full>(())
/// ```
pub struct LockFreeQueue<T, const CAPACITY: usize, const SLOTS: usize> {
    /// | round 48 | cell 16 |, the position of the next pop.
    head: CachePadded<AtomicU64>,
    /// | round 48 | cell 16 |, the position of the next push.
    tail: CachePadded<AtomicU64>,
    /// | tag 48 | place 16 |. In round `r`, the tag is `2r` until a push, then `2r + 1` until a pop, then `2r + 2`.
    /// The place zero stands for the place of the cell's own number.
    cells: [AtomicU64; CAPACITY],
    /// The places from zero.
    values: [AtomicU64; CAPACITY],
    producers: [CachePadded<Producer>; SLOTS],
    holds: PhantomData<fn(T) -> T>,
}

/// The part of the queue that one participant owns.
struct Producer {
    /// The place that it owns; zero stands for its own `value`.
    spare: AtomicU64,
    /// The place whose number is `CAPACITY` and the number of the slot.
    value: AtomicU64,
}

impl<T: Value, const CAPACITY: usize, const SLOTS: usize> LockFreeQueue<T, CAPACITY, SLOTS> {
    const IS_VALID: () = assert!(
        CAPACITY > 0 && CAPACITY < PLACES_MAX - SLOTS,
        "a queue has a capacity of at least 1, and at most 65535 values and slots"
    );

    /// The bound of [`Queue::push`]. Overlapping pushes of others interfere.
    pub const PUSH: Bound = Bound { once: 3, attempt: 5, attempts: None };
    /// The bound of [`Queue::pop`]. Overlapping pops of others interfere.
    pub const POP: Bound = Bound { once: 0, attempt: 6, attempts: None };

    constructor! {
        /// Creates an empty queue.
        #[must_use]
        pub fn new() -> Self {
            let () = Self::IS_VALID;
            Self {
                head: CachePadded::new(AtomicU64::new(0)),
                tail: CachePadded::new(AtomicU64::new(0)),
                cells: array!(AtomicU64::new(0)),
                values: array!(AtomicU64::new(0)),
                producers: array!(CachePadded::new(Producer { spare: AtomicU64::new(0), value: AtomicU64::new(0) })),
                holds: PhantomData,
            }
        }
    }

    fn value(&self, place: usize) -> &AtomicU64 {
        self.values.get(place).unwrap_or_else(|| &self.producers[place - CAPACITY].value)
    }

    /// Advances a head or a tail from a position that has been used.
    fn advance(end: &AtomicU64, from: u64) {
        let next = if index(from) + 1 == CAPACITY { tagged(tag(from) + 1, 0) } else { from + 1 };
        // A failure means that another participant has advanced it.
        // ORDERING: the release pairs with the acquire of the next user of this end, which must find the cells used.
        let _ = end.compare_exchange(from, next, Release, Relaxed);
    }
}

impl<T: Value, const CAPACITY: usize, const SLOTS: usize> Queue<T> for LockFreeQueue<T, CAPACITY, SLOTS> {
    /// Appends a value.
    ///
    /// # Bound
    /// 3 steps, and 5 for each attempt. There are as many attempts as pushes of others overlap, and one more.
    fn push(&self, slot: &Slot, value: T) -> Result<(), Full> {
        let me = participant(slot, SLOTS);
        let producer = &self.producers[me];
        let spare = place(producer.spare.load(Relaxed) as usize, CAPACITY + me);
        self.value(spare).store(value.to_bits(), Relaxed);
        // BOUND: each attempt that fails leaves the tail behind a push of another participant that overlaps.
        loop {
            let tail = self.tail.load(Acquire);
            let cell = &self.cells[index(tail)];
            // ORDERING: the acquire pairs with the pop that freed the cell, which has read the place before.
            let mut seen = cell.load(Acquire);
            let free = 2 * tag(tail);
            if tag(seen) + 1 == free {
                // The value of the round before is there, and so are all that follow it.
                // ORDERING: the fence pairs with that of a pop. Otherwise a push that finds the queue full could
                // overlook a pop that overlooks an earlier push.
                fence(SeqCst);
                seen = cell.load(Acquire);
                if tag(seen) + 1 == free {
                    return Err(Full);
                }
            }
            if tag(seen) == free {
                let new = tagged(free + 1, field(spare));
                // ORDERING: the release pairs with the acquire of the pop, which reads the value. The acquire of the
                // failure pairs with the push that was faster: what it has seen, the next attempt sees.
                if cell.compare_exchange(seen, new, Release, Acquire).is_ok() {
                    if !removed!(Exchange) {
                        producer.spare.store(field(place(index(seen), index(tail))) as u64, Relaxed);
                    }
                    Self::advance(&self.tail, tail);
                    return Ok(());
                }
            }
            if !removed!(Help) {
                Self::advance(&self.tail, tail);
            }
        }
    }

    /// Removes the oldest value, and returns `None` if the queue is empty.
    ///
    /// # Bound
    /// 6 steps for each attempt. There are as many attempts as pops of others overlap, and one more.
    fn pop(&self, slot: &Slot) -> Option<T> {
        participant(slot, SLOTS);
        // BOUND: each attempt that fails leaves the head behind a pop of another participant that overlaps.
        loop {
            let head = self.head.load(Acquire);
            let cell = &self.cells[index(head)];
            // ORDERING: the acquire pairs with the push that filled the cell.
            let mut seen = cell.load(Acquire);
            let full = 2 * tag(head) + 1;
            if tag(seen) + 1 == full {
                // No push has filled this cell, and none the cells that follow.
                // ORDERING: see `push`.
                fence(SeqCst);
                seen = cell.load(Acquire);
                if tag(seen) + 1 == full {
                    return None;
                }
            }
            if tag(seen) == full {
                // The value is another one if a pop and a push have changed the cell meanwhile. This attempt then
                // fails.
                let bits = self.value(place(index(seen), index(head))).load(Relaxed);
                // ORDERING: the release pairs with the acquire of the push that reuses the place. The acquire of the
                // failure pairs with the pop that was faster: what it has seen, the next attempt sees.
                if cell.compare_exchange(seen, tagged(full + 1, index(seen)), Release, Acquire).is_ok() {
                    Self::advance(&self.head, head);
                    return Some(T::from_bits(bits));
                }
            }
            if !removed!(Help) {
                Self::advance(&self.head, head);
            }
        }
    }
}

impl<T: Value, const CAPACITY: usize, const SLOTS: usize> Default for LockFreeQueue<T, CAPACITY, SLOTS> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, const CAPACITY: usize, const SLOTS: usize> fmt::Debug for LockFreeQueue<T, CAPACITY, SLOTS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockFreeQueue").finish_non_exhaustive()
    }
}
