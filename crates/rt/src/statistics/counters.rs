//! Counters of mutexes, in memory that other processes may read.
//!
//! Each mutex has an entry, which its address determines. Only the thread that holds the mutex writes most of it, so
//! the counters need no other order than that of the mutex. None of this allocates or waits. A thread reads its own
//! name before its first lock and before each wait, and leaves it with each mutex that it locks. While it holds a
//! mutex, it makes no system call but a reading of the clock, which needs none on most machines.

use crate::groups::{GROUPS, add, group};
use lockwright_sys::clock;
use lockwright_sys::sched::ThreadName;
use lockwright_sys::shared::SharedWords;
use std::cell::Cell;
use std::ffi::CStr;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// The name of the shared memory.
pub(super) const NAME: &CStr = c"lockwright-mutexes";
/// How many mutexes are counted without a distribution of waits, and how many with it.
const MUTEXES_MAX: usize = 4096;
pub(super) const DETAILED_MAX: usize = 256;
/// How many places are tried for an entry: all of those with the distribution.
const PROBES: usize = DETAILED_MAX;
/// The key of a place whose mutex was destroyed: the address of none.
const LEFT: u64 = 1;

/// The first words.
pub(super) mod head {
    /// The first word: the kind of memory, and the version of its layout.
    pub const MAGIC: u64 = u64::from_le_bytes(*b"LWMUTEX2");
    /// The monotonic clock when counting began.
    pub const SINCE: usize = 1;
    /// How many mutexes found no place, counted once for each lock.
    pub const LEFT_OUT: usize = 2;
    /// The words of each mutex.
    pub const EACH: usize = 3;
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
    /// How many threads wait. Every thread writes it.
    pub const WAITING: usize = 6;
    /// The thread that holds it, or 0, with its name; since when; and how often more.
    pub const OWNER: usize = 7;
    pub const SINCE: usize = 10;
    pub const AGAIN: usize = 11;
    /// Threads, each with its name: that of the longest wait, the holder at its request, that of the longest section.
    pub const WAITER: usize = 12;
    pub const HOLDER: usize = 15;
    pub const LONGEST_BY: usize = 18;
    /// The words without the distribution.
    pub const WORDS: usize = 24;
    /// If the distribution of waits is counted: the number of waits in each group of times.
    pub const GROUPS: usize = WORDS;
    pub const DETAILED_WORDS: usize = WORDS + super::GROUPS;
}

/// The counters of all mutexes.
#[derive(Debug)]
pub struct MutexCounters {
    words: SharedWords,
    /// The words of each mutex.
    each: usize,
    /// The address of the mutex of each place, 0 if none ever had the place, or LEFT. They are side by side, so that
    /// many are found at little cost.
    keys: SharedWords,
}

/// The name of a thread as two words, its first byte the lowest one.
type Name = [u64; 2];

const UNKNOWN: Name = [0; 2];

/// A thread that is about to lock a mutex.
#[derive(Debug)]
pub struct Asked {
    name: Name,
    wait: Option<Wait>,
}

/// Its wait.
#[derive(Debug)]
struct Wait {
    since_ns: u64,
    holder: u32,
    /// The holder may have ended when the wait ends.
    holder_name: Name,
}

thread_local! {
    /// The name of the calling thread, as it read it last. A name may be empty.
    static NAME_OF_THREAD: Cell<Option<Name>> = const { Cell::new(None) };
}

impl Default for MutexCounters {
    fn default() -> Self {
        Self::new()
    }
}

impl MutexCounters {
    /// Begins to count, without the distribution of waits.
    #[must_use]
    pub fn new() -> Self {
        Self::with(MUTEXES_MAX, of_mutex::WORDS)
    }

    /// Begins to count, with the distribution of waits.
    #[must_use]
    pub fn detailed() -> Self {
        Self::with(DETAILED_MAX, of_mutex::DETAILED_WORDS)
    }

    fn with(mutexes: usize, each: usize) -> Self {
        let words = SharedWords::new(NAME, head::WORDS + mutexes * each);
        words[head::SINCE].store(clock::now_ns(), Ordering::Relaxed);
        words[head::EACH].store(each as u64, Ordering::Relaxed);
        // ORDERING: Release: who reads the first word finds the others.
        words[0].store(head::MAGIC, Ordering::Release);
        Self { words, each, keys: SharedWords::private(mutexes) }
    }

    /// All words, as they are now.
    pub(super) fn words(&self) -> impl Fn(usize) -> Option<u64> {
        // ORDERING: Acquire: the words are read in the order of their places, so who finds an owner finds its time.
        |at| Some(self.words.get(at)?.load(Ordering::Acquire))
    }

    /// The words of each mutex.
    pub(super) fn words_each(&self) -> usize {
        self.each
    }

    /// Returns the entry of a mutex, which it gets now if it has none and there is a place.
    fn entry(&self, mutex: usize) -> Option<&[AtomicU64]> {
        self.find(mutex, true)
    }

    /// Returns the words of a mutex that was used.
    pub(super) fn words_of(&self, mutex: usize) -> Option<&[AtomicU64]> {
        self.find(mutex, false)
    }

    /// Gives a mutex its entry, with all counts 0. No thread uses the mutex. Returns whether there is a place.
    pub fn start(&self, mutex: usize) -> bool {
        // Only here is a place used again: threads that lock a mutex for the first time could take two places for it.
        let place = self.place_of(mutex, false).or_else(|| {
            let is_taken = |&place: &usize| self.claim(place, 0, mutex) || self.claim(place, LEFT, mutex);
            self.places(mutex).find(is_taken)
        });
        let Some(entry) = place.map(|place| self.words_at(place)) else { return false };
        // ORDERING: Relaxed, here and below: the thread that makes a mutex publishes it.
        entry[1..].iter().for_each(|word| word.store(0, Ordering::Relaxed));
        entry[of_mutex::ADDRESS].store(mutex as u64, Ordering::Relaxed);
        true
    }

    /// Forgets a mutex, which no thread uses any more. Its place is free for a mutex that [`start`](Self::start)s.
    pub fn forget(&self, mutex: usize) {
        if let Some(place) = self.place_of(mutex, false) {
            self.words_at(place)[of_mutex::ADDRESS].store(0, Ordering::Relaxed);
            // ORDERING: Release pairs with the Acquire of the next claim.
            self.keys[place].store(LEFT, Ordering::Release);
        }
    }

    fn find(&self, mutex: usize, may_claim: bool) -> Option<&[AtomicU64]> {
        self.place_of(mutex, may_claim).map(|place| self.words_at(place))
    }

    /// The place of a mutex. If it has none, it gets the first one that no mutex ever had.
    ///
    /// BOUND: PROBES.
    fn place_of(&self, mutex: usize, may_claim: bool) -> Option<usize> {
        let key = mutex as u64;
        for place in self.places(mutex) {
            // ORDERING: Relaxed, here and below: the mutex orders what its holders write; readers want no order.
            let found = self.keys[place].load(Ordering::Relaxed);
            if found == key {
                return Some(place);
            }
            // Further places are only taken after this one.
            if found == 0 && !may_claim {
                return None;
            }
            if found == 0 && self.claim(place, 0, mutex) {
                self.words_at(place)[of_mutex::ADDRESS].store(key, Ordering::Relaxed);
                return Some(place);
            }
        }
        None
    }

    /// Gives a mutex the place with the key `before`. Returns whether the place is its own.
    fn claim(&self, place: usize, before: u64, mutex: usize) -> bool {
        let key = mutex as u64;
        let claim = self.keys[place].compare_exchange(before, key, Ordering::Acquire, Ordering::Relaxed);
        claim.map_or_else(|other| other == key, |_| true)
    }

    /// The places at which a mutex may be.
    fn places(&self, mutex: usize) -> impl Iterator<Item = usize> {
        /// 2^64 divided by the golden ratio, which spreads addresses evenly.
        const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
        let first = ((mutex as u64).wrapping_mul(SPREAD) >> 32) as usize;
        let mutexes = self.keys.len();
        (0..PROBES).map(move |probe| (first + probe) % mutexes)
    }

    fn words_at(&self, place: usize) -> &[AtomicU64] {
        let at = head::WORDS + place * self.each;
        &self.words[at..at + self.each]
    }

    /// The caller is about to lock a mutex, and to wait for `holder` if there is one.
    #[must_use]
    pub fn asks(&self, mutex: usize, holder: Option<u32>) -> Asked {
        let known = NAME_OF_THREAD.get().filter(|_| holder.is_none());
        let name = known.unwrap_or_else(own_name);
        let wait = holder.map(|holder| {
            let entry = self.entry(mutex);
            if let Some(entry) = entry {
                entry[of_mutex::WAITING].fetch_add(1, Ordering::Relaxed);
            }
            let holder_name = entry.map_or(UNKNOWN, |entry| owner_name(entry, holder));
            Wait { since_ns: clock::now_ns(), holder, holder_name }
        });
        Asked { name, wait }
    }

    /// The caller has not got the mutex.
    pub fn refused(&self, mutex: usize, asked: &Asked) {
        if let (Some(_), Some(entry)) = (&asked.wait, self.entry(mutex)) {
            entry[of_mutex::WAITING].fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// The caller has locked the mutex.
    pub fn locked(&self, mutex: usize, thread: u32, asked: Asked) {
        let Some(entry) = self.entry(mutex) else {
            self.words[head::LEFT_OUT].fetch_add(1, Ordering::Relaxed);
            return;
        };
        let now = clock::now_ns();
        // An owner that died is still there.
        entry[of_mutex::OWNER].store(0, Ordering::Relaxed);
        entry[of_mutex::AGAIN].store(0, Ordering::Relaxed);
        entry[of_mutex::SINCE].store(now, Ordering::Relaxed);
        // ORDERING: Release, with the fence in `owner_name`: who finds a part of this name finds that the owner before
        // is gone.
        fence(Ordering::Release);
        put_name(&entry[of_mutex::OWNER + 1..], asked.name);
        // ORDERING: Release: who finds the owner finds its name and its time.
        entry[of_mutex::OWNER].store(thread.into(), Ordering::Release);
        add(&entry[of_mutex::SECTIONS], 1);
        let Some(Wait { since_ns, holder, holder_name }) = asked.wait else { return };
        entry[of_mutex::WAITING].fetch_sub(1, Ordering::Relaxed);
        let wait_ns = now.saturating_sub(since_ns);
        add(&entry[of_mutex::WAITS], 1);
        add(&entry[of_mutex::TOTAL_WAIT], wait_ns);
        if let Some(waits) = entry.get(of_mutex::GROUPS + group(wait_ns)) {
            add(waits, 1);
        }
        if wait_ns > get(&entry[of_mutex::LONGEST_WAIT]) {
            entry[of_mutex::LONGEST_WAIT].store(wait_ns, Ordering::Relaxed);
            put_thread(&entry[of_mutex::WAITER..], thread.into(), asked.name);
            put_thread(&entry[of_mutex::HOLDER..], holder.into(), holder_name);
        }
    }

    /// The caller, which held the mutex, has locked it once more.
    pub fn locked_again(&self, mutex: usize) {
        if let Some(entry) = self.entry(mutex) {
            add(&entry[of_mutex::AGAIN], 1);
        }
    }

    /// How many locks were not counted.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        get(&self.words[head::LEFT_OUT])
    }

    /// The caller is about to unlock the mutex. If the mutex serves as a semaphore, another thread may have locked it,
    /// whose section this is.
    pub fn unlocking(&self, mutex: usize) {
        let Some(entry) = self.entry(mutex) else { return };
        let owner = get(&entry[of_mutex::OWNER]);
        if owner == 0 {
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
            put_thread(&entry[of_mutex::LONGEST_BY..], owner, name(&entry[of_mutex::OWNER + 1..]));
        }
        entry[of_mutex::OWNER].store(0, Ordering::Relaxed);
    }
}

fn get(word: &AtomicU64) -> u64 {
    word.load(Ordering::Relaxed)
}

/// The name of the owner of a mutex, if this thread owns it.
fn owner_name(entry: &[AtomicU64], owner: u32) -> Name {
    // ORDERING: Acquire, here and of the fence: the name is of this owner, or the second look finds another one.
    let is_owner = |ordering| entry[of_mutex::OWNER].load(ordering) == u64::from(owner);
    if !is_owner(Ordering::Acquire) {
        return UNKNOWN;
    }
    let name = name(&entry[of_mutex::OWNER + 1..]);
    fence(Ordering::Acquire);
    if is_owner(Ordering::Relaxed) { name } else { UNKNOWN }
}

/// Reads the name of the calling thread, which it gets from now on.
#[cold]
fn own_name() -> Name {
    let ThreadName(bytes) = ThreadName::own();
    let half = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
    let name = [half(0), half(size_of::<u64>())];
    NAME_OF_THREAD.set(Some(name));
    name
}

/// The name in two words.
fn name(place: &[AtomicU64]) -> Name {
    [get(&place[0]), get(&place[1])]
}

/// Writes a thread and its name into three words.
fn put_thread(place: &[AtomicU64], thread: u64, name: Name) {
    place[0].store(thread, Ordering::Relaxed);
    put_name(&place[1..], name);
}

/// Writes a name into two words.
fn put_name(place: &[AtomicU64], [first, second]: Name) {
    place[0].store(first, Ordering::Relaxed);
    place[1].store(second, Ordering::Relaxed);
}
