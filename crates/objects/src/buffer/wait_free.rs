//! The wait-free buffer.

use super::Buffer;
use crate::mutation::{in_order, removed};
use crate::place::Place;
use crate::sync::{AtomicU64, array, constructor, in_sequence};
use crate::word::{PLACES_MAX, field, index, place, tag, tagged};
use crate::{Bound, Value, participant};
use core::fmt;
use core::marker::PhantomData;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use crossbeam_utils::CachePadded;
use lockwright_locks::Slot;

/// A wait-free buffer: reads take a number of steps that does not depend on other participants.
///
/// A reader holds the place that it reads, and no writer writes a place that is held.
/// To hold the current place, a reader announces that it wants one, looks up the current place, and notes that it holds
/// it.
/// A writer that replaces a place first answers all readers that want one, so no reader holds a place that was replaced
/// before it noted so.
/// Each writer owns `SLOTS` places, of which the other participants hold `SLOTS - 1` at most.
///
/// A participant that is preempted or killed keeps a place held, and delays no other participant.
/// The slot of a participant that was killed in a write must not be used for the same buffer again.
/// A tag returns after 2^46 reads of one participant.
///
/// The buffer needs `SLOTS * SLOTS + 1` places of `WORDS` words.
///
/// # Reference
/// J. Anderson, P. Holman: Efficient pure-buffer algorithms for real-time systems. RTCSA 2000.
/// The interface and the order of the costs are theirs; the algorithm is ours.
///
/// # Examples
/// ```
/// use lockwright_objects::{Buffer, WaitFreeBuffer};
/// use lockwright_locks::Slot;
///
/// static POSE: WaitFreeBuffer<f32, 3, 4> = WaitFreeBuffer::new();
///
/// let slot = Slot::claim().expect("fewer than 64 threads have a slot");
/// POSE.write(&slot, [1.0, 2.0, 0.5]);
/// assert_eq!(POSE.read(&slot), [1.0, 2.0, 0.5]);
/// ```
pub struct WaitFreeBuffer<T, const WORDS: usize, const SLOTS: usize> {
    /// The current place.
    current: CachePadded<AtomicU64>,
    /// The place zero.
    first: Place<WORDS>,
    /// | count 46 | 0 idle, 1 wants a place, 2 holds the place 2 | place 16 |
    readers: [CachePadded<AtomicU64>; SLOTS],
    writers: [CachePadded<Writer<WORDS, SLOTS>>; SLOTS],
    holds: PhantomData<fn(T) -> T>,
}

/// The part of the buffer that one writer owns.
struct Writer<const WORDS: usize, const SLOTS: usize> {
    /// The number in `owned` of the place for the next write, which no reader holds.
    next: AtomicU64,
    /// The places that it owns; zero stands for its own place of the same number.
    owned: [AtomicU64; SLOTS],
    /// The places whose numbers begin at 1 and the number of the slot times `SLOTS`.
    places: [Place<WORDS>; SLOTS],
}

/// The states of a reader, which are added to four times its count.
const WANTS: u64 = 1;
const HOLDS: u64 = 2;

/// Returns the state of a reader.
const fn state(reader: u64) -> u64 {
    tag(reader) & 3
}

impl<T: Value, const WORDS: usize, const SLOTS: usize> WaitFreeBuffer<T, WORDS, SLOTS> {
    const IS_VALID: () = assert!(SLOTS < 256 && SLOTS * SLOTS < PLACES_MAX - 1, "a buffer has at most 255 slots");

    /// The bound of [`Buffer::read`].
    pub const READ: Bound = Bound { once: 5 + WORDS as u64, attempt: 0, attempts: Some(1) };
    /// The bound of [`Buffer::write`].
    pub const WRITE: Bound = Bound { once: 5 + WORDS as u64 + 4 * SLOTS as u64, attempt: 0, attempts: Some(1) };

    constructor! {
        /// Creates a buffer of values whose bits are zero.
        #[must_use]
        pub fn new() -> Self {
            let () = Self::IS_VALID;
            Self {
                current: CachePadded::new(AtomicU64::new(0)),
                first: Place::new(),
                readers: array!(CachePadded::new(AtomicU64::new(0))),
                writers: array!(CachePadded::new(Writer {
                    next: AtomicU64::new(0),
                    owned: array!(AtomicU64::new(0)),
                    places: array!(Place::new()),
                })),
                holds: PhantomData,
            }
        }
    }

    #[inline]
    fn place(&self, place: usize) -> &Place<WORDS> {
        place.checked_sub(1).map_or(&self.first, |place| &self.writers[place / SLOTS].places[place % SLOTS])
    }

    /// Answers a reader that wants a place with the current one. Returns the place that the reader holds, if any.
    #[inline]
    fn answer(&self, reader: &AtomicU64) -> Option<usize> {
        // ORDERING: the pair of the write is its swap of the current place and this load; see `read`. The pair of an
        // answer is this load and that of the current place. If the load sees the swap of a read that wants a place, it
        // follows the swap in the order S of `read`, and the load of the current place follows both. A write that has
        // not seen this swap looked at the reader before it in S, and replaced the current place still earlier, so
        // this load of the current place sees that place or a later one. All of these are sequentially consistent.
        // The acquire pairs with the release of a read that has ended.
        let mut seen = reader.load(in_order!(WriterInOrder));
        if state(seen) == WANTS && !removed!(Help) {
            in_sequence();
            let held = tagged(tag(seen) + 1, self.current.load(SeqCst) as usize);
            // ORDERING: the release pairs with the acquire of the reader, which reads the place.
            seen = match reader.compare_exchange(seen, held, AcqRel, Acquire) {
                Ok(_) => held,
                Err(now) => now,
            };
        }
        (state(seen) == HOLDS).then_some(index(seen))
    }
}

impl<T: Value, const WORDS: usize, const SLOTS: usize> Buffer<T, WORDS> for WaitFreeBuffer<T, WORDS, SLOTS> {
    /// Returns the values of the last write, or, before the first write, values whose bits are all zero.
    ///
    /// # Bound
    /// `WORDS` + 5 steps.
    #[inline]
    fn read(&self, slot: &Slot) -> [T; WORDS] {
        let reader = &self.readers[participant(slot, SLOTS)];
        let idle = (tag(reader.load(Relaxed)) | 3) + 1;
        let wants = tagged(idle + WANTS, 0);
        // ORDERING: store and then load, on both sides: this read swaps its word and then loads the current place; a
        // write swaps the current place and then loads this word. All four accesses are sequentially consistent, so
        // they have one order S that agrees with the order in each thread. A load that misses a swap precedes it in S.
        // If both loads missed the swap of the other, then S would be a circle. So the write sees that this reader
        // wants a place, or this reader sees the place that the write made the current one, or a later one. Accesses of
        // these words that are weaker change nothing: they only make later values.
        // On x86 a swap is a full barrier. On Arm it ends with a store-release (STLXR, SWPAL), and no later
        // load-acquire (LDAR, as which a sequentially consistent load is compiled) is performed before it.
        reader.swap(wants, SeqCst);
        in_sequence();
        let held = tagged(idle + HOLDS, self.current.load(in_order!(ReaderInOrder)) as usize);
        // ORDERING: the acquire of the failure pairs with the release of the writer that answered.
        let held = match reader.compare_exchange(wants, held, Release, Acquire) {
            Ok(_) => held,
            Err(answered) => answered,
        };
        let words = self.place(index(held)).read();
        // ORDERING: the release pairs with the acquire of the writer that reuses the place.
        reader.store(tagged(idle, 0), Release);
        words.map(T::from_bits)
    }

    /// Replaces all values.
    ///
    /// # Bound
    /// `WORDS` + 4 `SLOTS` + 5 steps.
    #[inline]
    fn write(&self, slot: &Slot, values: [T; WORDS]) {
        // First, because it is code of the user, which may write the same buffer.
        let words = values.map(T::to_bits);
        let me = participant(slot, SLOTS);
        let writer = &self.writers[me];
        let next = writer.next.load(Relaxed) as usize;
        let own = |number: usize| place(writer.owned[number].load(Relaxed) as usize, 1 + me * SLOTS + number);
        let new = own(next);
        self.place(new).write(words);
        // ORDERING: see `read`. The release pairs with the acquire of those that read the place.
        let replaced = self.current.swap(new as u64, SeqCst);
        writer.owned[next].store(field(replaced as usize) as u64, Relaxed);
        in_sequence();
        let mut held = [None; SLOTS];
        for (other, held) in held.iter_mut().enumerate().filter(|(other, _)| *other != me) {
            *held = self.answer(&self.readers[other]);
        }
        // One of the places is free, as the others hold fewer than there are.
        let free = |number: &usize| removed!(Holding) || !held.contains(&Some(own(*number)));
        let next = (0..SLOTS).find(free).unwrap_or(next);
        writer.next.store(next as u64, Relaxed);
    }
}

impl<T: Value, const WORDS: usize, const SLOTS: usize> Default for WaitFreeBuffer<T, WORDS, SLOTS> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, const WORDS: usize, const SLOTS: usize> fmt::Debug for WaitFreeBuffer<T, WORDS, SLOTS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitFreeBuffer").finish_non_exhaustive()
    }
}
