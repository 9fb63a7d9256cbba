//! The lock-free buffer.

use super::Buffer;
use crate::mutation::removed;
use crate::place::Place;
use crate::sync::{AtomicU64, array, constructor, fence};
use crate::word::{PLACES_MAX, index, tag, tagged};
use crate::{Bound, Value, participant};
use core::fmt;
use core::marker::PhantomData;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use crossbeam_utils::CachePadded;
use lockwright_locks::Slot;

/// A lock-free buffer: a read is repeated if a write overlaps it, and a write is wait-free.
///
/// A value is written into a place that its writer owns.
/// One swap makes this place the current one, and the writer then owns the place that it has replaced.
/// Each place has a tag, which increases whenever the place becomes the current one.
///
/// The slot of a participant that was killed in a write must not be used for the same buffer again.
/// The tag of a place returns after 2^48 writes.
///
/// # Reference
/// P. Tsigas, Y. Zhang: Non-blocking data sharing in multiprocessor real-time systems. RTCSA 1999.
/// The places, the tag and the repeated read are theirs in purpose; here a writer owns its place between its writes and
/// does not search for a free one.
///
/// # Examples
/// ```
/// use lockwright_objects::{Buffer, LockFreeBuffer};
/// use lockwright_locks::Slot;
///
/// static POSE: LockFreeBuffer<f32, 3, 4> = LockFreeBuffer::new();
///
/// let slot = Slot::claim().expect("fewer than 64 threads have a slot");
/// POSE.write(&slot, [1.0, 2.0, 0.5]);
/// assert_eq!(POSE.read(&slot), [1.0, 2.0, 0.5]);
/// ```
pub struct LockFreeBuffer<T, const WORDS: usize, const SLOTS: usize> {
    /// | tag 48 | place 16 |
    current: CachePadded<AtomicU64>,
    /// The place zero.
    first: Place<WORDS>,
    writers: [CachePadded<Writer<WORDS>>; SLOTS],
    holds: PhantomData<fn(T) -> T>,
}

/// The part of the buffer that one participant owns.
struct Writer<const WORDS: usize> {
    /// One more than the word that last named its place; zero stands for its own `place`, before its first write.
    spare: AtomicU64,
    /// The place whose number is one more than that of the slot.
    place: Place<WORDS>,
}

impl<T: Value, const WORDS: usize, const SLOTS: usize> LockFreeBuffer<T, WORDS, SLOTS> {
    const IS_VALID: () = assert!(SLOTS < PLACES_MAX - 1, "a buffer has at most 65534 slots");

    /// The bound of [`Buffer::read`]. Overlapping writes of others interfere.
    pub const READ: Bound = Bound { once: 0, attempt: WORDS as u64 + 2, attempts: None };
    /// The bound of [`Buffer::write`].
    pub const WRITE: Bound = Bound { once: 3 + WORDS as u64, attempt: 0, attempts: Some(1) };

    constructor! {
        /// Creates a buffer of values whose bits are zero.
        #[must_use]
        pub fn new() -> Self {
            let () = Self::IS_VALID;
            Self {
                current: CachePadded::new(AtomicU64::new(0)),
                first: Place::new(),
                writers: array!(CachePadded::new(Writer { spare: AtomicU64::new(0), place: Place::new() })),
                holds: PhantomData,
            }
        }
    }

    #[inline]
    fn place(&self, place: usize) -> &Place<WORDS> {
        place.checked_sub(1).map_or(&self.first, |writer| &self.writers[writer].place)
    }
}

impl<T: Value, const WORDS: usize, const SLOTS: usize> Buffer<T, WORDS> for LockFreeBuffer<T, WORDS, SLOTS> {
    /// Returns the values of the last write, or, before the first write, values whose bits are all zero.
    ///
    /// # Bound
    /// `WORDS` + 2 steps for each attempt. There are as many attempts as writes of others overlap, and one more.
    #[inline]
    fn read(&self, slot: &Slot) -> [T; WORDS] {
        participant(slot, SLOTS);
        // BOUND: an attempt fails only if a write has changed the current place during it.
        loop {
            // ORDERING: the acquire pairs with the release of the write of this place.
            let seen = self.current.load(Acquire);
            let words = self.place(index(seen)).read();
            // ORDERING: the fence pairs with that of a write that reuses the place: if a word is from there, then the
            // current place has changed.
            fence(Acquire);
            if self.current.load(Relaxed) == seen || removed!(Validation) {
                return words.map(T::from_bits);
            }
        }
    }

    /// Replaces all values.
    ///
    /// # Bound
    /// `WORDS` + 3 steps.
    #[inline]
    fn write(&self, slot: &Slot, values: [T; WORDS]) {
        // First, because it is code of the user, which may write the same buffer.
        let words = values.map(T::to_bits);
        let me = participant(slot, SLOTS);
        let writer = &self.writers[me];
        let spare = writer.spare.load(Relaxed).checked_sub(1).unwrap_or(tagged(0, me + 1));
        // ORDERING: see `read`.
        fence(Release);
        self.place(index(spare)).write(words);
        // ORDERING: the release pairs with the acquire of a read. The acquire is for the next owner of the places: it
        // orders the stores of the place that is replaced before those that follow.
        let replaced = self.current.swap(tagged(tag(spare) + 1, index(spare)), AcqRel);
        if !removed!(Exchange) {
            writer.spare.store(replaced + 1, Relaxed);
        }
    }
}

impl<T: Value, const WORDS: usize, const SLOTS: usize> Default for LockFreeBuffer<T, WORDS, SLOTS> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, const WORDS: usize, const SLOTS: usize> fmt::Debug for LockFreeBuffer<T, WORDS, SLOTS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockFreeBuffer").finish_non_exhaustive()
    }
}
