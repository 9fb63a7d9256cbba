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

/// The cells by which the head and the tail advance. Models have short segments.
const SEGMENT: usize = if cfg!(any(test, lockwright_loom, lockwright_shuttle)) { 2 } else { 8 };

/// A lock-free bounded queue in a ring of cells.
///
/// A value is written into a place that its producer owns.
/// One compare-and-swap then exchanges this place for the place in the cell at the tail: this commits the push.
/// One compare-and-swap that marks the cell at the head as free commits a pop.
/// Each position of the ring has its own tag.
///
/// A push begins where the last push of its participant ended; if that cell is used, it continues from the tail over
/// all cells that are used.
/// The tail advances only by segments of 8 cells: the push that fills the last cell of a segment advances it, and so
/// does a push that finds all cells of the segment used. So none waits for another one.
/// Pops do the same with the head.
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
    /// Beside each cell is the place of its own number.
    cells: [(AtomicU64, AtomicU64); CAPACITY],
    owners: [CachePadded<Owner>; SLOTS],
    holds: PhantomData<fn(T) -> T>,
}

/// The part of the queue that one participant owns.
struct Owner {
    /// The place that it owns; zero stands for its own `value`.
    spare: AtomicU64,
    /// The place whose number is `CAPACITY` and the number of the slot.
    value: AtomicU64,
    /// The position after its last push.
    pushed: AtomicU64,
    /// The position after its last pop.
    popped: AtomicU64,
}

impl<T: Value, const CAPACITY: usize, const SLOTS: usize> LockFreeQueue<T, CAPACITY, SLOTS> {
    const IS_VALID: () = assert!(
        CAPACITY > 0 && CAPACITY < PLACES_MAX - SLOTS,
        "a queue has a capacity of at least 1, and at most 65535 values and slots"
    );

    /// The bound of [`Queue::push`]. Overlapping pushes of others interfere.
    pub const PUSH: Bound = Bound { once: 6 + SEGMENT as u64, attempt: 4, attempts: None };
    /// The bound of [`Queue::pop`]. Overlapping pops of others interfere.
    pub const POP: Bound = Bound { once: 3 + SEGMENT as u64, attempt: 5, attempts: None };

    constructor! {
        /// Creates an empty queue.
        #[must_use]
        pub fn new() -> Self {
            let () = Self::IS_VALID;
            Self {
                head: CachePadded::new(AtomicU64::new(0)),
                tail: CachePadded::new(AtomicU64::new(0)),
                cells: array!((AtomicU64::new(0), AtomicU64::new(0))),
                owners: array!(CachePadded::new(Owner {
                    spare: AtomicU64::new(0),
                    value: AtomicU64::new(0),
                    pushed: AtomicU64::new(0),
                    popped: AtomicU64::new(0),
                })),
                holds: PhantomData,
            }
        }
    }

    #[inline]
    fn value(&self, place: usize) -> &AtomicU64 {
        self.cells.get(place).map_or_else(|| &self.owners[place - CAPACITY].value, |cell| &cell.1)
    }

    /// Advances an end, the head or the tail, over the segment that ends with a position, of which all cells are used.
    /// Returns the position after it and, if the segment does not end there, does nothing else.
    #[inline]
    fn advance(end: &AtomicU64, position: u64) -> u64 {
        let next = if index(position) + 1 == CAPACITY { tagged(tag(position) + 1, 0) } else { position + 1 };
        if index(next).is_multiple_of(SEGMENT) {
            let first = position - (index(position) % SEGMENT) as u64;
            // A failure means that another participant has advanced it.
            // ORDERING: the release pairs with the acquire of the next user of this end, which must find the cells
            // used.
            let _ = end.compare_exchange(first, next, Release, Relaxed);
        }
        next
    }

    /// Fills the cell of a position with a place of a participant. Returns `None` if the cell is used.
    #[inline]
    fn fill(&self, owner: &Owner, position: u64, spare: usize) -> Option<Result<(), Full>> {
        let cell = &self.cells[index(position)].0;
        // ORDERING: the acquire pairs with the pop that freed the cell, which has read the place before.
        let mut seen = cell.load(Acquire);
        let free = 2 * tag(position);
        if tag(seen) + 1 == free {
            // The value of the round before is there, and so are all that follow it.
            // ORDERING: the fence pairs with that of a pop. Otherwise a push that finds the queue full could overlook a
            // pop that overlooks an earlier push.
            fence(SeqCst);
            seen = cell.load(Acquire);
            if tag(seen) + 1 == free {
                return Some(Err(Full));
            }
        }
        // ORDERING: the release pairs with the acquire of the pop, which reads the value. The acquire of the failure
        // pairs with the push that was faster: what it has seen, the next attempt sees.
        if tag(seen) != free || cell.compare_exchange(seen, tagged(free + 1, field(spare)), Release, Acquire).is_err() {
            return None;
        }
        if !removed!(Exchange) {
            owner.spare.store(field(place(index(seen), index(position))) as u64, Relaxed);
        }
        owner.pushed.store(Self::advance(&self.tail, position), Relaxed);
        Some(Ok(()))
    }

    /// Takes the value from the cell of a position. Returns `None` if the cell is used.
    #[inline]
    fn take(&self, owner: &Owner, position: u64) -> Option<Option<T>> {
        let cell = &self.cells[index(position)].0;
        // ORDERING: the acquire pairs with the push that filled the cell.
        let mut seen = cell.load(Acquire);
        let full = 2 * tag(position) + 1;
        if tag(seen) + 1 == full {
            // No push has filled this cell, and none the cells that follow.
            // ORDERING: see `fill`.
            fence(SeqCst);
            seen = cell.load(Acquire);
            if tag(seen) + 1 == full {
                return Some(None);
            }
        }
        if tag(seen) != full {
            return None;
        }
        // The value is another one if a pop and a push have changed the cell meanwhile. The exchange then fails.
        let bits = self.value(place(index(seen), index(position))).load(Relaxed);
        // ORDERING: the release pairs with the acquire of the push that reuses the place. The acquire of the failure
        // pairs with the pop that was faster: what it has seen, the next attempt sees.
        if cell.compare_exchange(seen, tagged(full + 1, index(seen)), Release, Acquire).is_err() {
            return None;
        }
        owner.popped.store(Self::advance(&self.head, position), Relaxed);
        Some(Some(T::from_bits(bits)))
    }

    /// Repeats an attempt, from a position whose cell is used, or from an end if it is beyond.
    #[cold]
    fn search<R>(end: &AtomicU64, position: u64, attempt: impl Fn(u64) -> Option<R>) -> R {
        let mut position = position.max(end.load(Acquire));
        // BOUND: the operations that have ended have used fewer cells after this end than a segment has. Each other
        // cell that is used belongs to an operation of another participant that overlaps.
        loop {
            if let Some(answer) = attempt(position) {
                return answer;
            }
            position = if removed!(Help) { end.load(Acquire) } else { Self::advance(end, position) };
        }
    }
}

impl<T: Value, const CAPACITY: usize, const SLOTS: usize> Queue<T> for LockFreeQueue<T, CAPACITY, SLOTS> {
    /// Appends a value.
    ///
    /// # Bound
    /// 14 steps, and 4 for each attempt. There are as many attempts as pushes of others overlap, and one more.
    #[inline]
    fn push(&self, slot: &Slot, value: T) -> Result<(), Full> {
        // First, because it is code of the user, which may change the same queue.
        let bits = value.to_bits();
        let me = participant(slot, SLOTS);
        let owner = &self.owners[me];
        let spare = place(owner.spare.load(Relaxed) as usize, CAPACITY + me);
        self.value(spare).store(bits, Relaxed);
        let last = owner.pushed.load(Relaxed);
        self.fill(owner, last, spare)
            .unwrap_or_else(|| Self::search(&self.tail, last, |position| self.fill(owner, position, spare)))
    }

    /// Removes the oldest value, and returns `None` if the queue is empty.
    ///
    /// # Bound
    /// 11 steps, and 5 for each attempt. There are as many attempts as pops of others overlap, and one more.
    #[inline]
    fn pop(&self, slot: &Slot) -> Option<T> {
        let owner = &self.owners[participant(slot, SLOTS)];
        let last = owner.popped.load(Relaxed);
        self.take(owner, last).unwrap_or_else(|| Self::search(&self.head, last, |position| self.take(owner, position)))
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
