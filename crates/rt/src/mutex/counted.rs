//! Counted mutexes: what threads do with them is in the counters of the process.
//!
//! The attribute sends every lock and unlock to the slow path, which calls these functions. The paths of other mutexes
//! without contention do not look at it.

use super::attributes::COUNTED;
use super::error::{Acquired, Limit, RawError};
use super::raw::RawMutex;
use super::word::owner;
use crate::statistics::{Asked, MutexCounters, MutexStatistics, own_counters};
use lockwright_model::Duration;
use lockwright_sys::sched::Tid;
use std::sync::atomic::Ordering;

impl RawMutex {
    /// Locks by `lock` within `limit`, and counts that. It is a wait if the caller may wait and finds that another
    /// thread has the mutex.
    ///
    /// `lock` gets a limit, and whether the mutex was found locked. A mutex that may be free is first tried without
    /// waiting. So no thread suspends for the mutex before its wait is announced.
    pub(super) fn counting(
        &self,
        me: Tid,
        limit: Limit,
        lock: impl Fn(Limit, bool) -> Result<Acquired, RawError>,
    ) -> Result<Acquired, RawError> {
        let Some(counters) = own_counters() else { return lock(limit, false) };
        let place = self.place();
        // ORDERING: Relaxed, here and below: a thread that reads its own id wrote it, and another one is a hint.
        let mut holder = owner(self.word.load(Ordering::Relaxed));
        let is_mine = holder == me.0;
        if holder == 0 || is_mine || limit == Limit::Now {
            // A lock by the owner does not wait for another thread: it succeeds, or reports a deadlock, or is one.
            let asked = counters.asks(place, None);
            let locked = lock(if is_mine { limit } else { Limit::Now }, false);
            if locked != Err(RawError::Busy) || is_mine || limit == Limit::Now {
                return self.counted(counters, me, asked, locked);
            }
            // Of a mutex that was handed over, the next owner is not known, nor is an owner that is gone by now.
            holder = owner(self.word.load(Ordering::Relaxed));
        }
        let asked = counters.asks(place, Some(holder));
        self.counted(counters, me, asked, lock(limit, true))
    }

    fn counted(
        &self,
        counters: &MutexCounters,
        me: Tid,
        asked: Asked,
        locked: Result<Acquired, RawError>,
    ) -> Result<Acquired, RawError> {
        let place = self.place();
        match &locked {
            Err(_) => counters.refused(place, &asked),
            Ok(_) if self.is_taken_again() => counters.locked_again(place),
            Ok(_) => counters.locked(place, me.0, asked),
        }
        locked
    }

    /// Counts the end of a section, before the unlock. The caller may unlock.
    pub(super) fn count_unlock(&self) {
        if let Some(counters) = own_counters() {
            counters.unlocking(self.place());
        }
    }

    /// Returns what threads did with the mutex, or `None` if it is not counted or no lock of it was counted. A value
    /// may be of another moment than the next one. Allocates nothing.
    pub fn statistics(&self) -> Option<MutexStatistics> {
        self.counters()?.of(self.place())
    }

    /// Returns the distribution of the waits for a counted mutex: for each group of waits in which there are any, the
    /// longest wait of the group, at most a sixteenth longer than the shortest, and the number of waits. The shortest
    /// ones come first.
    pub fn wait_histogram(&self) -> impl Iterator<Item = (Duration, u64)> {
        self.counters().into_iter().flat_map(|counters| counters.histogram(self.place()))
    }

    fn counters(&self) -> Option<&'static MutexCounters> {
        own_counters().filter(|_| self.attributes() & COUNTED != 0)
    }

    /// The address by which it is counted.
    fn place(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutex::robust::OPEN;
    use crate::mutex::word::{FREE, HANDED};
    use crate::mutex::{Builder, MutexProtocol};
    use crate::statistics::count_mutexes;
    use lockwright_sys::futex;

    /// A robust mutex that was handed to nobody is free, though threads may wait for it.
    #[test]
    fn the_lock_of_an_open_mutex_is_no_wait() {
        count_mutexes();
        // SAFETY: it never moves, because it is leaked.
        let kind = unsafe { Builder::new().robust(true) }.protocol(MutexProtocol::None).counted(true);
        let mutex = Box::leak(Box::new(kind.build_raw()));
        mutex.handed_at.store(OPEN, Ordering::Relaxed);
        mutex.word.store(HANDED, Ordering::Relaxed);
        assert_eq!(mutex.lock(Limit::Never), Ok(Acquired::Clean));
        assert_eq!(mutex.unlock(), Ok(()));
        assert_eq!(mutex.statistics().map(|seen| (seen.sections, seen.waits)), Some((1, 0)));
    }

    /// The owner of a mutex that was handed over is not known before the heir executes.
    #[test]
    fn a_wait_behind_a_hand_over_is_counted_without_a_holder() {
        count_mutexes();
        let mutex = Builder::new().protocol(MutexProtocol::None).counted(true).build_raw();
        drop(mutex.lock(Limit::Never));
        drop(mutex.unlock());
        mutex.word.store(HANDED, Ordering::Relaxed);
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| mutex.lock(Limit::Never).and_then(|_| mutex.unlock()));
            // BOUND: until the other thread has executed.
            while mutex.statistics().is_some_and(|seen| seen.waiting == 0 && seen.sections == 1) {
                std::thread::yield_now();
            }
            mutex.word.store(FREE, Ordering::Relaxed);
            futex::wake(RawMutex::scope(mutex.attributes()), &raw const mutex.word, 1);
            assert_eq!(waiter.join().expect("it does not panic"), Ok(()));
        });
        let seen = mutex.statistics().expect("it is counted");
        assert_eq!((seen.sections, seen.waits, seen.holder), (2, 1, None));
    }
}
