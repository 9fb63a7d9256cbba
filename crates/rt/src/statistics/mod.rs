//! The statistics of the mutexes of a process, read from this or another process.
//!
//! `liblockwright_pthread.so` counts the mutexes of a preloaded program under `LOCKWRIGHT_STATS`. `lockwright watch`
//! shows them. Statistics of task sets are [`tasks::Statistics`](crate::tasks::Statistics).

mod counters;

pub use counters::{Asked, MutexCounters};

use counters::{head, of_mutex};
use lockwright_model::Duration;
use lockwright_sys::clock;
use lockwright_sys::sched::ThreadName;
use lockwright_sys::shared::read_named;
use std::io;

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

/// The statistics of one mutex. Mutexes that follow each other at one address count as one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct MutexStatistics {
    /// Its address.
    pub address: u64,
    /// The number of locks.
    pub sections: u64,
    /// The number of locks that found it locked and waited.
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
    /// Its name at that time, padded with zeros.
    name: [u8; 16],
}

impl SeenThread {
    /// The name of the thread at that time.
    #[must_use]
    pub fn name(&self) -> impl std::fmt::Display {
        ThreadName(self.name)
    }
}

impl Mutexes {
    /// Reads the statistics of another process on this machine; `None` if it counts nothing.
    ///
    /// # Errors
    /// Those of [`tasks::Statistics::of_process`](crate::tasks::Statistics::of_process).
    pub fn of_process(process: u32) -> io::Result<Option<Self>> {
        let all = read_named(process, counters::NAME)?;
        let Some(words) = all.first().filter(|words| words.first() != Some(&0)) else { return Ok(None) };
        let word = |at: usize| words.get(at).copied();
        let other = || io::Error::new(io::ErrorKind::InvalidData, "the process has statistics of another version");
        if word(0) != Some(head::MAGIC) {
            return Err(other());
        }
        let now_ns = clock::now_ns();
        let since = |ns: u64| Duration::from_ns(now_ns.saturating_sub(ns));
        Ok(Some(Self {
            counted: since(word(head::SINCE).ok_or_else(other)?),
            mutexes: each(&word, now_ns).collect(),
            left_out: word(head::LEFT_OUT).unwrap_or(0),
        }))
    }
}

impl MutexCounters {
    /// Calls `each` with the statistics of every mutex. Allocates nothing, so a signal handler may call it.
    pub fn for_each(&self, call: impl FnMut(MutexStatistics)) {
        each(&self.words(), clock::now_ns()).for_each(call);
    }
}

/// The mutexes in these words.
fn each<'w>(word: &'w impl Fn(usize) -> Option<u64>, now_ns: u64) -> impl Iterator<Item = MutexStatistics> + 'w {
    let entries = (head::WORDS..).step_by(of_mutex::WORDS);
    let known = entries.map_while(move |at| {
        let get = |index| word(at + index).unwrap_or(0);
        let thread = |index| {
            let mut name = [0; 16];
            for (half, index) in name.chunks_exact_mut(size_of::<u64>()).zip([index + 1, index + 2]) {
                half.copy_from_slice(&get(index).to_le_bytes());
            }
            let id = u32::try_from(get(index)).unwrap_or(0);
            (id > 0).then_some(SeenThread { id, name })
        };
        let owner = u32::try_from(get(of_mutex::OWNER)).unwrap_or(0);
        let time = |index| Duration::from_ns(get(index).min(i64::MAX as u64));
        let held_ns = now_ns.saturating_sub(get(of_mutex::SINCE));
        word(at + of_mutex::WORDS - 1)?;
        Some(MutexStatistics {
            address: get(of_mutex::ADDRESS),
            sections: get(of_mutex::SECTIONS),
            waits: get(of_mutex::WAITS),
            total_wait: time(of_mutex::TOTAL_WAIT),
            longest_wait: time(of_mutex::LONGEST_WAIT),
            waiter: thread(of_mutex::WAITER),
            holder: thread(of_mutex::HOLDER),
            longest_section: time(of_mutex::LONGEST_SECTION),
            longest_by: thread(of_mutex::LONGEST_BY),
            held: (owner > 0).then_some((owner, Duration::from_ns(held_ns))),
            waiting: get(of_mutex::WAITING),
        })
    });
    known.filter(|mutex| mutex.address != 0 && mutex.sections > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockwright_sys::sched::gettid;

    #[test]
    fn locks_waits_and_holders_are_counted() {
        let counters = MutexCounters::new();
        let (me, other, mutex) = (gettid().0, u32::MAX, 0x5000);
        counters.locked(mutex, other, None);
        let asked = counters.asks(mutex, other);
        let seen = || {
            let mut seen = Vec::new();
            counters.for_each(|mutex| seen.push(mutex));
            assert_eq!(seen.len(), 1, "{seen:?}");
            seen[0]
        };
        assert_eq!((seen().waiting, seen().held.map(|held| held.0)), (1, Some(other)));
        counters.unlocking(mutex, other);
        counters.locked(mutex, me, Some(asked));
        counters.locked(mutex, me, None);
        counters.unlocking(mutex, me);
        // A mutex that is locked twice is held until it is unlocked twice.
        assert_eq!(seen().held.map(|held| held.0), Some(me));
        counters.unlocking(mutex, me);
        // What does not hold it does not unlock it.
        counters.unlocking(mutex, other);
        let seen = seen();
        assert_eq!((seen.address, seen.sections, seen.waits, seen.waiting, seen.held), (0x5000, 2, 1, 0, None));
        assert!(seen.longest_wait > Duration::ZERO && seen.total_wait == seen.longest_wait, "{seen:?}");
        let named = seen.waiter.expect("it waited");
        assert_eq!((named.id, named.name().to_string()), (me, ThreadName::of(gettid()).to_string()));
        assert_eq!(seen.holder.map(|holder| (holder.id, holder.name().to_string())), Some((other, String::new())));
        let of_process = Mutexes::of_process(std::process::id()).expect("it is this process").expect("it counts");
        assert!(of_process.left_out == 0 && of_process.mutexes.iter().any(|one| one.sections == 2), "{of_process:?}");
    }

    #[test]
    fn mutexes_beyond_the_table_are_left_out() {
        let counters = MutexCounters::new();
        for mutex in 1..=5_000 {
            counters.locked(mutex * 40, 7, None);
        }
        let mut count = 0;
        counters.for_each(|_| count += 1);
        let left_out = counters.words()(head::LEFT_OUT);
        assert!(count > 3_000 && left_out == Some(5_000 - count), "{count} of 5000, {left_out:?}");
    }
}
