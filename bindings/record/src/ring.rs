//! The ring of a thread: words that its owner appends and the spill thread removes.
//!
//! The first word of an event is written last, and is never zero: from then on the spill thread may read the event. It
//! clears the words before it gives the room back. A signal handler that comes in the middle of an event reserves words
//! behind it, so both events are whole.

use crate::clock;
use std::arch::asm;
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// The most rings, and so the most threads at one time that are recorded.
pub(crate) const RINGS_MAX: usize = 4096;
/// Room that is never used up, for signal handlers that come between the look at the room and the reservation.
const MARGIN: u64 = 1024;
/// How many words ahead memory is fetched.
const AHEAD: u64 = 64;
/// The bytes before the words.
const HEAD: usize = 4096;

/// The states of a ring.
mod state {
    /// For no thread.
    pub(super) const FREE: u32 = 0;
    /// For a thread that executes, but not with its number yet.
    pub(super) const CLAIMED: u32 = 1;
    /// For a thread that executes.
    pub(super) const USED: u32 = 2;
    /// For a thread that ended, whose last events may still be there.
    pub(super) const ENDED: u32 = 3;
}

#[repr(C)]
pub(crate) struct Ring {
    /// The next word to reserve; written by the owner and its signal handlers only.
    next: UnsafeCell<u64>,
    /// How many events did not fit.
    lost: AtomicU64,
    /// The number of words, a power of two.
    size: u64,
    /// Above 0 while the owner is in a function of the next library that may call functions of this one.
    inside: AtomicU32,
    _line: [u64; 4],
    /// The first word that the spill thread has not removed.
    tail: AtomicU64,
    state: AtomicU32,
    /// The thread's number in the file.
    number: AtomicU32,
    /// The thread's number in the kernel.
    pub(crate) id: AtomicU32,
    /// The thread's name when it ended.
    pub(crate) name: [AtomicU64; 2],
}

// SAFETY: only the thread that owns the ring accesses `next`; all other fields are atomic, or constant once the ring is
// shown to other threads.
unsafe impl Sync for Ring {}

static RINGS: [AtomicPtr<Ring>; RINGS_MAX] = [const { AtomicPtr::new(std::ptr::null_mut()) }; RINGS_MAX];
static NUMBERS: AtomicU32 = AtomicU32::new(0);
/// How many threads found no ring.
pub(crate) static WITHOUT_RING: AtomicU32 = AtomicU32::new(0);

/// All rings, used or not.
pub(crate) fn all() -> impl Iterator<Item = &'static Ring> {
    // ORDERING: Acquire pairs with the Release in `claim`.
    let rings = RINGS.iter().map(|ring| ring.load(Ordering::Acquire));
    // SAFETY: `claim` stored the address of a complete ring, and never unmaps it afterwards.
    rings.take_while(|ring| !ring.is_null()).map(|ring| unsafe { &*ring })
}

/// Returns a ring for the calling thread, or `None` if there are too many threads or no memory.
///
/// BOUND: RINGS_MAX looks and one mapping.
pub(crate) fn claim(bytes: usize) -> Option<&'static Ring> {
    for ring in all() {
        if ring.is_claimed() {
            ring.begin();
            return Some(ring);
        }
    }
    let new = map(bytes)?;
    // SAFETY: the mapping is new, so no other thread has its address, and its zeros are a valid ring except for the
    // size. It is unmapped only if no other thread has seen it.
    let ring = unsafe {
        (*new).size = (bytes / size_of::<u64>()) as u64;
        &*new
    };
    ring.begin();
    for place in &RINGS {
        // ORDERING: Release pairs with the Acquire in `all`.
        if place.compare_exchange(std::ptr::null_mut(), new, Ordering::Release, Ordering::Relaxed).is_ok() {
            return Some(ring);
        }
    }
    // SAFETY: all places were taken, so no other thread has the address, and this function does not use the ring any
    // more.
    unsafe { libc::munmap(new.cast(), HEAD + bytes) };
    None
}

fn map(bytes: usize) -> Option<*mut Ring> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
    // SAFETY: the kernel chooses a free range for the mapping, so no memory in use is affected.
    let mapped =
        unsafe { libc::mmap(std::ptr::null_mut(), HEAD + bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    (mapped != libc::MAP_FAILED).then_some(mapped.cast())
}

impl Ring {
    /// Takes the ring, if it is free, for the calling thread. Returns whether it did.
    fn is_claimed(&self) -> bool {
        // ORDERING: Acquire pairs with the Release of the spill thread in `free`.
        self.state.compare_exchange(state::FREE, state::CLAIMED, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    fn begin(&self) {
        // ORDERING: Relaxed: the state releases them.
        self.number.store(NUMBERS.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        self.lost.store(0, Ordering::Relaxed);
        self.inside.store(0, Ordering::Relaxed);
        // ORDERING: Release pairs with the Acquire in `owner`: the number is there.
        self.state.store(state::USED, Ordering::Release);
    }

    /// After the last event of the thread.
    pub(crate) fn end(&self) {
        // ORDERING: Release pairs with the Acquire in `owner`: the last events are there.
        self.state.store(state::ENDED, Ordering::Release);
    }

    /// The number in the file of the thread that has the ring, and whether it ended. `None` if there is no such thread.
    /// For the spill thread, which alone gives the ring to another one.
    pub(crate) fn owner(&self) -> Option<(u32, bool)> {
        // ORDERING: Acquire pairs with the Release in `begin` and in `end`.
        let state = self.state.load(Ordering::Acquire);
        let has_owner = matches!(state, state::USED | state::ENDED);
        has_owner.then(|| (self.number.load(Ordering::Relaxed), state == state::ENDED))
    }

    /// Gives the ring of a thread that ended to a new one.
    pub(crate) fn free(&self) {
        // ORDERING: Release: the words are cleared before another thread uses the ring.
        self.state.store(state::FREE, Ordering::Release);
    }

    /// The number of words that fit.
    pub(crate) fn size(&self) -> usize {
        self.size as usize
    }

    pub(crate) fn lost(&self) -> u64 {
        // ORDERING: Relaxed: a counter.
        self.lost.load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn word(&self, at: u64) -> &AtomicU64 {
        let words = std::ptr::from_ref(self).wrapping_byte_add(HEAD).cast::<AtomicU64>();
        // SAFETY: `claim` mapped `size` words behind the head, `size` is a power of two, and rings stay mapped; so the
        // masked index is inside.
        unsafe { &*words.add((at & (self.size - 1)) as usize) }
    }

    /// Reserves words, also against signal handlers of this thread: they come before or after one instruction.
    #[inline(always)]
    fn reserve(&self, words: u64) -> u64 {
        let mut at = words;
        // SAFETY: `next` is inside the ring, and only the owner's thread and its signal handlers access it, each by
        // whole instructions.
        unsafe { asm!("xadd qword ptr [{next}], {at}", next = in(reg) self.next.get(), at = inout(reg) at) };
        at
    }

    /// Appends an event of the owner.
    #[inline(always)]
    pub(crate) fn put<const N: usize>(&self, kind: u8, values: [u64; N]) {
        let stamp = clock::stamp();
        // SAFETY: `next` is inside the ring, and only the owner's thread and its signal handlers write it.
        let next = unsafe { self.next.get().read_volatile() };
        // ORDERING: Acquire pairs with the Release in `take`: the words are clear.
        if next.wrapping_sub(self.tail.load(Ordering::Acquire)) > self.size - MARGIN {
            return self.lose();
        }
        let at = self.reserve(N as u64 + 1);
        for (index, value) in values.into_iter().enumerate() {
            // ORDERING: Relaxed: the first word releases it.
            self.word(at + 1 + index as u64).store(value, Ordering::Relaxed);
        }
        // ORDERING: Release pairs with the Acquire in `take`.
        self.word(at).store(stamp << 8 | u64::from(kind), Ordering::Release);
        // The spill thread's processor has the words of the last lap. The next lock would wait for them.
        // SAFETY: the instruction is a hint without effect on memory, and the address lies within the ring.
        unsafe { asm!("prefetchw [{}]", in(reg) self.word(at + AHEAD), options(nostack, preserves_flags, readonly)) };
    }

    #[cold]
    fn lose(&self) {
        // ORDERING: Relaxed: a counter of one thread.
        self.lost.store(self.lost.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// Removes whole events, as many as there are and fit. Returns how many words were copied. For the spill thread.
    ///
    /// BOUND: `to`.
    pub(crate) fn take(&self, to: &mut [u64]) -> usize {
        // ORDERING: Relaxed: only the spill thread writes it.
        let tail = self.tail.load(Ordering::Relaxed);
        let mut copied = 0;
        loop {
            // ORDERING: Acquire pairs with the Release in `put`.
            let first = self.word(tail + copied as u64).load(Ordering::Acquire);
            let Some(length) = lockwright_record::file::format::words((first & 0xFF) as u8) else { break };
            if first == 0 || copied + length > to.len() {
                break;
            }
            for (index, place) in to[copied..copied + length].iter_mut().enumerate() {
                let word = self.word(tail + (copied + index) as u64);
                *place = word.load(Ordering::Relaxed);
                word.store(0, Ordering::Relaxed);
            }
            copied += length;
        }
        // ORDERING: Release pairs with the Acquire in `put`.
        self.tail.store(tail + copied as u64, Ordering::Release);
        copied
    }

    /// Calls a function of the next library that may call functions of this one, which then record nothing.
    #[inline(always)]
    pub(crate) fn within<T>(&self, call: impl FnOnce() -> T) -> T {
        // ORDERING: Relaxed: of one thread.
        self.inside.store(self.inside.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        let answer = call();
        self.inside.store(self.inside.load(Ordering::Relaxed).saturating_sub(1), Ordering::Relaxed);
        answer
    }

    /// Whether the owner is in such a function.
    pub(crate) fn is_inside(&self) -> bool {
        self.inside.load(Ordering::Relaxed) > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockwright_record::file::format::event;

    #[test]
    fn a_ring_has_an_owner_only_while_it_has_its_number() {
        let ring = claim(1 << 16).expect("memory");
        let (first, has_ended) = ring.owner().expect("an owner");
        assert!(!has_ended);
        ring.put(event::END, []);
        ring.end();
        assert_eq!(ring.owner(), Some((first, true)));
        assert_eq!(ring.take(&mut [0; 8]), 1);
        ring.free();
        assert_eq!(ring.owner(), None);
        // A thread that is preempted here has no number yet.
        assert!(ring.is_claimed());
        assert_eq!(ring.owner(), None);
        ring.begin();
        assert_eq!(ring.owner(), Some((first + 1, false)));
    }
}
