//! A list of fixed capacity that threads fill with times and words. What does not fit is counted. A writer allocates
//! nothing and never waits.

use std::collections::TryReserveError;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

#[derive(Debug)]
pub(super) struct Log {
    entries: Box<[Entry]>,
    /// The number of entries that were begun, also beyond the capacity.
    next: AtomicUsize,
}

/// A time in nanoseconds of the monotonic clock, and a word. A time of 0 means that there is none.
#[derive(Debug)]
struct Entry {
    at_ns: AtomicU64,
    word: AtomicU64,
}

impl Log {
    /// Room for `capacity` entries, with every page touched.
    ///
    /// # Errors
    /// There is not enough memory.
    pub(super) fn new(capacity: usize) -> Result<Self, TryReserveError> {
        let mut entries = Vec::new();
        entries.try_reserve_exact(capacity)?;
        entries.extend((0..capacity).map(|_| Entry { at_ns: AtomicU64::new(0), word: AtomicU64::new(1) }));
        Ok(Self { entries: entries.into(), next: AtomicUsize::new(0) })
    }

    /// Writes an entry. Counts it if there is no room.
    pub(super) fn write(&self, word: u64, at_ns: impl FnOnce() -> u64) {
        // ORDERING: Relaxed: each entry has one writer.
        self.put(self.next.fetch_add(1, Ordering::Relaxed), word, at_ns);
    }

    /// As [`Log::write`], for a thread that is the only one that writes.
    pub(super) fn write_alone(&self, word: u64, at_ns: u64) {
        // ORDERING: Relaxed, here and below: no other thread writes it.
        let place = self.next.load(Ordering::Relaxed);
        self.next.store(place.saturating_add(1), Ordering::Relaxed);
        self.put(place, word, || at_ns);
    }

    fn put(&self, place: usize, word: u64, at_ns: impl FnOnce() -> u64) {
        if let Some(entry) = self.entries.get(place) {
            entry.word.store(word, Ordering::Relaxed);
            // ORDERING: Release: who finds the time finds the word.
            entry.at_ns.store(at_ns(), Ordering::Release);
        }
    }

    /// The entries that are complete, in the order in which they were begun.
    pub(super) fn entries(&self) -> impl Iterator<Item = (u64, u64)> {
        // ORDERING: Acquire pairs with the Release in `put`.
        let read = |entry: &Entry| (entry.at_ns.load(Ordering::Acquire), entry.word.load(Ordering::Relaxed));
        self.entries.iter().map(read).filter(|entry| entry.0 > 0)
    }

    /// The number of entries that did not fit.
    pub(super) fn dropped(&self) -> usize {
        // ORDERING: Relaxed: only a count.
        self.next.load(Ordering::Relaxed).saturating_sub(self.entries.len())
    }
}
