//! Counters of mutexes, in memory that other processes may read.
//!
//! Each mutex has an entry, which its address determines. Only the thread that holds the mutex writes most of it, so
//! the counters need no other order than that of the mutex. None of this allocates or waits.

use lockwright_sys::clock;
use lockwright_sys::sched::{ThreadName, Tid};
use lockwright_sys::shared::SharedWords;
use std::ffi::CStr;
use std::sync::atomic::{AtomicU64, Ordering};

/// The name of the shared memory.
pub(super) const NAME: &CStr = c"lockwright-mutexes";
/// How many mutexes are counted: a power of two.
const MUTEXES_MAX: usize = 4096;
/// How many places are tried for an entry.
const PROBES: usize = 64;

/// The first words.
pub(super) mod head {
    /// The first word: the kind of memory, and the version of its layout.
    pub const MAGIC: u64 = u64::from_le_bytes(*b"LWMUTEX1");
    /// The monotonic clock when counting began.
    pub const SINCE: usize = 1;
    /// How many mutexes found no place, counted once for each lock.
    pub const LEFT_OUT: usize = 2;
    pub const WORDS: usize = 8;
}

/// The words of a mutex.
pub(super) mod of_mutex {
    /// Its address; 0 if the entry is free.
    pub const ADDRESS: usize = 0;
    pub const SECTIONS: usize = 1;
    pub const WAITS: usize = 2;
    pub const TOTAL_WAIT: usize = 3;
    pub const LONGEST_WAIT: usize = 4;
    pub const LONGEST_SECTION: usize = 5;
    /// The thread that holds it, or 0; since when; and how often more.
    pub const OWNER: usize = 6;
    pub const SINCE: usize = 7;
    pub const AGAIN: usize = 8;
    /// How many threads wait. Every thread writes it.
    pub const WAITING: usize = 9;
    /// Threads, each with its name: that of the longest wait, the holder at its request, that of the longest section.
    pub const WAITER: usize = 12;
    pub const HOLDER: usize = 15;
    pub const LONGEST_BY: usize = 18;
    pub const WORDS: usize = 24;
}

/// The counters of all mutexes.
#[derive(Debug)]
pub struct MutexCounters {
    words: SharedWords,
}

/// A thread that is about to lock a mutex.
#[derive(Debug)]
pub struct Asked {
    since_ns: u64,
    holder: u32,
    /// The holder may have ended when the wait ends.
    name: ThreadName,
}

impl Default for MutexCounters {
    fn default() -> Self {
        Self::new()
    }
}

impl MutexCounters {
    /// Begins to count.
    #[must_use]
    pub fn new() -> Self {
        let words = SharedWords::new(NAME, head::WORDS + MUTEXES_MAX * of_mutex::WORDS);
        words[head::SINCE].store(clock::now_ns(), Ordering::Relaxed);
        // ORDERING: Release: who reads the first word finds the second.
        words[0].store(head::MAGIC, Ordering::Release);
        Self { words }
    }

    /// All words, as they are now.
    pub(super) fn words(&self) -> impl Fn(usize) -> Option<u64> {
        |at| Some(self.words.get(at)?.load(Ordering::Relaxed))
    }

    /// Returns the entry of a mutex, if there is a place.
    ///
    /// BOUND: PROBES.
    fn entry(&self, mutex: usize) -> Option<&[AtomicU64]> {
        /// 2^64 divided by the golden ratio, which spreads addresses evenly.
        const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
        let first = ((mutex as u64).wrapping_mul(SPREAD) >> 32) as usize;
        for probe in 0..PROBES {
            let at = head::WORDS + (first + probe) % MUTEXES_MAX * of_mutex::WORDS;
            let entry = &self.words[at..at + of_mutex::WORDS];
            // ORDERING: Relaxed, here and below: the mutex orders what its holders write; readers want no order.
            let found = entry[0].load(Ordering::Relaxed);
            let claimed = || {
                let claim = entry[0].compare_exchange(0, mutex as u64, Ordering::Relaxed, Ordering::Relaxed);
                claim.map_or_else(|other| other == mutex as u64, |_| true)
            };
            if found == mutex as u64 || (found == 0 && claimed()) {
                return Some(entry);
            }
        }
        self.words[head::LEFT_OUT].fetch_add(1, Ordering::Relaxed);
        None
    }

    /// The caller is about to wait for a mutex that `holder` holds.
    #[must_use]
    pub fn asks(&self, mutex: usize, holder: u32) -> Asked {
        if let Some(entry) = self.entry(mutex) {
            entry[of_mutex::WAITING].fetch_add(1, Ordering::Relaxed);
        }
        Asked { since_ns: clock::now_ns(), holder, name: ThreadName::of(Tid(holder)) }
    }

    /// The wait has ended without the mutex.
    pub fn refused(&self, mutex: usize) {
        if let Some(entry) = self.entry(mutex) {
            entry[of_mutex::WAITING].fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// The caller has locked the mutex, after this wait if it had to wait.
    pub fn locked(&self, mutex: usize, thread: u32, waited: Option<Asked>) {
        let Some(entry) = self.entry(mutex) else { return };
        if waited.is_some() {
            entry[of_mutex::WAITING].fetch_sub(1, Ordering::Relaxed);
        }
        if get(&entry[of_mutex::OWNER]) == u64::from(thread) {
            add(&entry[of_mutex::AGAIN], 1);
            return;
        }
        let now = clock::now_ns();
        entry[of_mutex::OWNER].store(thread.into(), Ordering::Relaxed);
        entry[of_mutex::AGAIN].store(0, Ordering::Relaxed);
        entry[of_mutex::SINCE].store(now, Ordering::Relaxed);
        add(&entry[of_mutex::SECTIONS], 1);
        let Some(Asked { since_ns, holder, name }) = waited else { return };
        let wait_ns = now.saturating_sub(since_ns);
        add(&entry[of_mutex::WAITS], 1);
        add(&entry[of_mutex::TOTAL_WAIT], wait_ns);
        if wait_ns > get(&entry[of_mutex::LONGEST_WAIT]) {
            entry[of_mutex::LONGEST_WAIT].store(wait_ns, Ordering::Relaxed);
            put_thread(&entry[of_mutex::WAITER..], thread, ThreadName::of(Tid(thread)));
            put_thread(&entry[of_mutex::HOLDER..], holder, name);
        }
    }

    /// The caller, which holds the mutex, is about to unlock it.
    pub fn unlocking(&self, mutex: usize, thread: u32) {
        let Some(entry) = self.entry(mutex) else { return };
        if get(&entry[of_mutex::OWNER]) != u64::from(thread) {
            return;
        }
        let again = get(&entry[of_mutex::AGAIN]);
        if again > 0 {
            entry[of_mutex::AGAIN].store(again - 1, Ordering::Relaxed);
            return;
        }
        let section_ns = clock::now_ns().saturating_sub(get(&entry[of_mutex::SINCE]));
        if section_ns > get(&entry[of_mutex::LONGEST_SECTION]) {
            entry[of_mutex::LONGEST_SECTION].store(section_ns, Ordering::Relaxed);
            put_thread(&entry[of_mutex::LONGEST_BY..], thread, ThreadName::of(Tid(thread)));
        }
        entry[of_mutex::OWNER].store(0, Ordering::Relaxed);
    }
}

fn get(word: &AtomicU64) -> u64 {
    word.load(Ordering::Relaxed)
}

/// Adds to a counter that only the holder of the mutex writes.
fn add(counter: &AtomicU64, more: u64) {
    counter.store(get(counter).saturating_add(more), Ordering::Relaxed);
}

/// Writes a thread and its name into three words.
fn put_thread(place: &[AtomicU64], thread: u32, ThreadName(name): ThreadName) {
    place[0].store(thread.into(), Ordering::Relaxed);
    for (word, half) in place[1..].iter().zip(name.chunks_exact(size_of::<u64>())) {
        word.store(u64::from_le_bytes(half.try_into().unwrap_or_default()), Ordering::Relaxed);
    }
}
