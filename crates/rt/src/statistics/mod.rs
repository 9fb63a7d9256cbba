//! The statistics of the mutexes of a process, read from this or another process.
//!
//! A program counts those of its own mutexes that are built with
//! [`Builder::counted`](crate::mutex::Builder::counted), from [`count_mutexes`] on.
//! `liblockwright_pthread.so` counts the mutexes of a preloaded program under `LOCKWRIGHT_STATS`. `lockwright watch`
//! shows both. Statistics of task sets are [`tasks::Statistics`](crate::tasks::Statistics).

mod counters;
mod own;

pub use counters::{Asked, MutexCounters};
pub use own::{COUNTED_MAX, count_all_mutexes, count_mutexes, own_counters};

use crate::groups::group_end;
use counters::{head, of_mutex};
use lockwright_model::Duration;
use lockwright_sys::clock;
use lockwright_sys::sched::ThreadName;
use lockwright_sys::shared::read_named;
use std::io;
use std::sync::atomic::Ordering;

/// The mutexes of a process that were used since counting began.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Mutexes {
    /// How long they have been counted.
    pub counted: Duration,
    /// The mutexes, in no particular order.
    pub mutexes: Vec<MutexStatistics>,
    /// How many locks were not counted, because there were too many mutexes.
    pub left_out: u64,
}

/// The statistics of one mutex.
///
/// A lock after a wait for a condition is a lock like any other. If a signal moved the thread to the mutex, the time
/// until the thread had it is part of its wait for the condition, and no wait for the mutex. If a program frees a mutex
/// and makes another one at the same address, both count as one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct MutexStatistics {
    /// Its address.
    pub address: u64,
    /// The number of locks. A further lock by the owner of a recursive mutex is none.
    pub sections: u64,
    /// The number of locks that found it locked and waited. A wait that ended without the mutex is not counted.
    pub waits: u64,
    /// The sum of these waits.
    pub total_wait: Duration,
    /// The longest wait.
    pub longest_wait: Duration,
    /// The thread of the longest wait.
    pub waiter: Option<SeenThread>,
    /// The thread that held the mutex at the request of the longest wait.
    pub holder: Option<SeenThread>,
    /// The longest time from a lock to its unlock, preemption included.
    pub longest_section: Duration,
    /// The thread of the longest section.
    pub longest_by: Option<SeenThread>,
    /// The thread that holds the mutex now, and for how long.
    pub held: Option<(u32, Duration)>,
    /// How many threads wait for it now.
    pub waiting: u64,
}

/// A thread that was seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SeenThread {
    /// Its id in the kernel.
    pub id: u32,
    /// Its name, padded with zeros.
    name: [u8; 16],
}

impl SeenThread {
    /// The name of the thread, as it was when the thread last waited, or when it locked a mutex for the first time.
    #[must_use]
    pub fn name(&self) -> impl std::fmt::Display {
        ThreadName(self.name)
    }

    /// The bytes of the name: at most 15, and zeros.
    #[must_use]
    pub const fn name_bytes(&self) -> [u8; 16] {
        self.name
    }
}

impl Mutexes {
    /// Reads the statistics of another process on this machine; `None` if it counts nothing.
    ///
    /// # Errors
    /// Those of [`tasks::Statistics::of_process`](crate::tasks::Statistics::of_process).
    pub fn of_process(process: u32) -> io::Result<Option<Self>> {
        let all = read_named(process, counters::NAME)?;
        let now_ns = clock::now_ns();
        let tables: io::Result<Vec<Self>> = all.iter().map(|words| Self::of_table(words, now_ns)).collect();
        // A preloaded program that also counts its own mutexes has two tables.
        Ok(tables?.into_iter().reduce(|mut one, other| {
            one.counted = one.counted.max(other.counted);
            one.mutexes.extend(other.mutexes);
            one.left_out += other.left_out;
            one
        }))
    }

    /// Reads the words of [`MutexCounters`].
    fn of_table(words: &[u64], now_ns: u64) -> io::Result<Self> {
        let word = |at: usize| words.get(at).copied();
        let other = || io::Error::new(io::ErrorKind::InvalidData, "the process has statistics of another version");
        if word(0) != Some(head::MAGIC) {
            return Err(other());
        }
        let words_each = word(head::EACH).and_then(|each| usize::try_from(each).ok());
        let words_each = words_each.filter(|&each| each >= of_mutex::WORDS).ok_or_else(other)?;
        let since_ns = word(head::SINCE).ok_or_else(other)?;
        Ok(Self {
            counted: Duration::from_ns(now_ns.saturating_sub(since_ns)),
            mutexes: each(&word, words_each, now_ns).collect(),
            left_out: word(head::LEFT_OUT).unwrap_or(0),
        })
    }
}

impl MutexCounters {
    /// Calls `each` with the statistics of every mutex. Allocates nothing, so a signal handler may call it.
    pub fn for_each(&self, call: impl FnMut(MutexStatistics)) {
        each(&self.words(), self.words_each(), clock::now_ns()).for_each(call);
    }

    /// Returns the statistics of one mutex, or `None` if no lock of it was counted. Allocates nothing.
    #[must_use]
    pub fn of(&self, mutex: usize) -> Option<MutexStatistics> {
        let words = self.words_of(mutex)?;
        // ORDERING: Acquire: as in `MutexCounters::words`.
        let word = |at: usize| words.get(at).map_or(0, |word| word.load(Ordering::Acquire));
        Some(read(word, clock::now_ns())).filter(|read| read.sections > 0)
    }

    /// Returns the distribution of the waits for one mutex: for each group of waits in which there are any, the longest
    /// wait of the group, at most a sixteenth longer than the shortest, and the number of waits.
    pub fn histogram(&self, mutex: usize) -> impl Iterator<Item = (Duration, u64)> {
        let groups = self.words_of(mutex).and_then(|words| words.get(of_mutex::GROUPS..)).unwrap_or_default();
        // ORDERING: Relaxed: each value was there at some moment.
        let waits = groups.iter().map(|waits| waits.load(Ordering::Relaxed)).enumerate();
        waits.filter(|&(_, waits)| waits > 0).map(|(group, waits)| (time(group_end(group)), waits))
    }
}

fn time(ns: u64) -> Duration {
    Duration::from_ns(ns.min(i64::MAX as u64))
}

/// The mutexes in these words.
fn each<'w>(
    word: &'w impl Fn(usize) -> Option<u64>,
    words_each: usize,
    now_ns: u64,
) -> impl Iterator<Item = MutexStatistics> + 'w {
    let entries = (head::WORDS..).step_by(words_each);
    let known = entries.map_while(move |at| {
        word(at + words_each - 1)?;
        Some(read(|index| word(at + index).unwrap_or(0), now_ns))
    });
    known.filter(|mutex| mutex.address != 0 && mutex.sections > 0)
}

/// The mutex whose words are these.
fn read(word: impl Fn(usize) -> u64, now_ns: u64) -> MutexStatistics {
    let thread = |index| {
        let mut name = [0; 16];
        for (half, index) in name.chunks_exact_mut(size_of::<u64>()).zip([index + 1, index + 2]) {
            half.copy_from_slice(&word(index).to_le_bytes());
        }
        let id = u32::try_from(word(index)).unwrap_or(0);
        (id > 0).then_some(SeenThread { id, name })
    };
    let owner = u32::try_from(word(of_mutex::OWNER)).unwrap_or(0);
    let held_ns = now_ns.saturating_sub(word(of_mutex::SINCE));
    MutexStatistics {
        address: word(of_mutex::ADDRESS),
        sections: word(of_mutex::SECTIONS),
        waits: word(of_mutex::WAITS),
        total_wait: time(word(of_mutex::TOTAL_WAIT)),
        longest_wait: time(word(of_mutex::LONGEST_WAIT)),
        waiter: thread(of_mutex::WAITER),
        holder: thread(of_mutex::HOLDER),
        longest_section: time(word(of_mutex::LONGEST_SECTION)),
        longest_by: thread(of_mutex::LONGEST_BY),
        held: (owner > 0).then_some((owner, Duration::from_ns(held_ns))),
        waiting: word(of_mutex::WAITING),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockwright_sys::sched::gettid;
    use std::sync::{Mutex, MutexGuard, PoisonError};

    /// Counters, which are the only ones of this process meanwhile.
    fn counters() -> (MutexGuard<'static, ()>, MutexCounters) {
        static ALONE: Mutex<()> = Mutex::new(());
        (ALONE.lock().unwrap_or_else(PoisonError::into_inner), MutexCounters::new())
    }

    #[test]
    fn locks_waits_and_holders_are_counted() {
        let (_alone, counters) = counters();
        let (me, other, mutex) = (gettid().0, u32::MAX, 0x5000);
        let free = |mutex| counters.asks(mutex, None);
        counters.locked(mutex, other, free(mutex));
        let asked = counters.asks(mutex, Some(other));
        let seen = || {
            let mut seen = Vec::new();
            counters.for_each(|mutex| seen.push(mutex));
            assert_eq!(seen.len(), 1, "{seen:?}");
            seen[0]
        };
        assert_eq!((seen().waiting, seen().held.map(|held| held.0)), (1, Some(other)));
        let late = counters.asks(mutex, Some(7));
        assert_eq!(seen().waiting, 2);
        counters.refused(mutex, &late);
        counters.refused(mutex, &free(mutex));
        counters.unlocking(mutex);
        counters.locked(mutex, me, asked);
        counters.locked_again(mutex);
        counters.unlocking(mutex);
        // A mutex that is locked twice is held until it is unlocked twice.
        assert_eq!(seen().held.map(|held| held.0), Some(me));
        counters.unlocking(mutex);
        // A free mutex is not unlocked.
        counters.unlocking(mutex);
        let seen = seen();
        assert_eq!((seen.address, seen.sections, seen.waits, seen.waiting, seen.held), (0x5000, 2, 1, 0, None));
        assert!(seen.longest_wait > Duration::ZERO && seen.total_wait == seen.longest_wait, "{seen:?}");
        let named = seen.waiter.expect("it waited");
        let name = ThreadName::of(gettid()).to_string();
        assert_eq!((named.id, named.name().to_string()), (me, name.clone()));
        // Whoever locks a mutex leaves its name, and here this thread locked it for the other one.
        assert_eq!(seen.holder.map(|holder| (holder.id, holder.name().to_string())), Some((other, name)));
        assert!(seen.longest_section > Duration::ZERO && seen.longest_by.is_some(), "{seen:?}");
        let of_process = Mutexes::of_process(std::process::id()).expect("it is this process").expect("it counts");
        assert!(of_process.left_out == 0 && of_process.mutexes.iter().any(|one| one.sections == 2), "{of_process:?}");
    }

    /// One thread locks and another one unlocks, as programs do that use a mutex as a semaphore.
    #[test]
    fn each_lock_of_a_semaphore_is_a_section() {
        let (_alone, counters) = counters();
        for _ in 0..2 {
            let asked = counters.asks(0x5000, None);
            counters.locked(0x5000, 1, asked);
            std::thread::scope(|scope| scope.spawn(|| counters.unlocking(0x5000)).join()).expect("it does not panic");
        }
        let mut seen = Vec::new();
        counters.for_each(|mutex| seen.push((mutex.sections, mutex.held, mutex.longest_by.map(|by| by.id))));
        // The section is that of the thread that locked.
        assert_eq!(seen, [(2, None, Some(1))]);
    }

    /// A holder is named only if the mutex is still its own.
    #[test]
    fn the_name_of_another_holder_is_not_taken() {
        let (_alone, counters) = counters();
        let asked = counters.asks(0x5000, None);
        counters.locked(0x5000, 1, asked);
        let asked = counters.asks(0x5000, Some(2));
        counters.unlocking(0x5000);
        counters.locked(0x5000, 3, asked);
        let mut holders = Vec::new();
        counters.for_each(|mutex| holders.extend(mutex.holder.map(|holder| (holder.id, holder.name().to_string()))));
        assert_eq!(holders, [(2, String::new())]);
    }

    /// A thread that renamed itself is known by the new name once it waits.
    #[test]
    fn names_are_read_before_waits() {
        let (_alone, counters) = counters();
        let named = |holder| {
            let asked = counters.asks(0x5000, holder);
            counters.locked(0x5000, 1, asked);
            counters.unlocking(0x5000);
            let mut owner = Vec::new();
            counters.for_each(|mutex| owner.extend(mutex.longest_by.map(|by| by.name().to_string())));
            owner
        };
        let before = ThreadName::own();
        assert_eq!(before, ThreadName::of(gettid()));
        assert_eq!(named(None), [before.to_string()]);
        std::fs::write("/proc/thread-self/comm", "renamed").expect("a thread may name itself");
        assert_eq!(ThreadName::own().to_string(), "renamed");
        named(Some(2));
        let mut waiters = Vec::new();
        counters.for_each(|mutex| waiters.extend(mutex.waiter.map(|waiter| waiter.name().to_string())));
        assert_eq!(waiters, ["renamed"]);
    }

    /// An empty name is one, too.
    #[test]
    fn a_thread_reads_its_name_once_without_waits() {
        let (_alone, counters) = counters();
        let rename = |name| std::fs::write("/proc/thread-self/comm", name).expect("a thread may name itself");
        let named = || {
            rename("\0");
            let empty = counters.asks(0x5000, None);
            rename("renamed");
            (format!("{empty:?}"), format!("{:?}", counters.asks(0x5000, None)))
        };
        let (before, after) = std::thread::scope(|scope| scope.spawn(named).join()).expect("it does not panic");
        assert_eq!(before, after);
    }

    #[test]
    fn mutexes_beyond_the_table_are_left_out() {
        let (_alone, counters) = counters();
        for mutex in 1..=5_000 {
            // Each lock counts once, also if it waited.
            let asked = counters.asks(mutex * 40, Some(8));
            counters.locked(mutex * 40, 7, asked);
            counters.unlocking(mutex * 40);
        }
        let mut count = 0;
        counters.for_each(|_| count += 1);
        let left_out = counters.words()(head::LEFT_OUT);
        assert!(count > 3_000 && left_out == Some(5_000 - count), "{count} of 5000, {left_out:?}");
    }
}
