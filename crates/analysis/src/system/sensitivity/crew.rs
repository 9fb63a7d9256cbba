//! Threads that share searches.

use super::growth::Progress;
use std::iter::from_fn;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread::{Builder, ScopedJoinHandle, available_parallelism, scope, sleep};
use std::time::Duration;

/// How often the caller looks whether the other threads have ended.
const PAUSE: Duration = Duration::from_millis(1);

/// The least number of searches for each thread. Tests have few searches, and use several threads all the same.
const SEARCHES_MIN: usize = if cfg!(test) { 1 } else { 64 };

/// The shared state of the threads of a search.
#[derive(Default)]
pub(super) struct Crew {
    found: AtomicUsize,
    is_stopped: AtomicBool,
}

/// Stops the other threads if the one that has it panics.
struct StopsAtPanic<'a>(&'a AtomicBool);

impl Drop for StopsAtPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Relaxed);
        }
    }
}

impl Crew {
    /// Records that more factors were found.
    pub(super) fn add(&self, count: usize) {
        self.found.fetch_add(count, Relaxed);
    }

    /// Reports the progress to the caller, and stops the other threads if the search should end. Returns whether it
    /// should continue.
    pub(super) fn report(&self, progress: &Progress<impl FnMut(usize, usize) -> bool>) -> bool {
        progress.set(self.found.load(Relaxed));
        let goes_on = progress.asked();
        if !goes_on {
            self.is_stopped.store(true, Relaxed);
        }
        goes_on
    }

    /// Returns whether the search continues.
    pub(super) fn goes_on(&self) -> bool {
        !self.is_stopped.load(Relaxed)
    }

    /// Returns a result for each index below `count`, in order, each of which stands for some of the `searches`, or
    /// `None` if the search was interrupted. The caller executes `own`, and one thread for each other CPU executes
    /// `other`. Each of them draws its indices from the iterator. A thread that cannot be created leaves its indices to
    /// the others. While the caller waits for the others, it calls `goes_on`, which stops them if the search should
    /// end.
    pub(super) fn each<R: Send>(
        &self,
        (count, searches): (usize, usize),
        goes_on: &dyn Fn() -> bool,
        own: impl FnOnce(&mut dyn Iterator<Item = usize>) -> Option<Vec<(usize, R)>>,
        other: impl Fn(&mut dyn Iterator<Item = usize>) -> Option<Vec<(usize, R)>> + Sync,
    ) -> Option<Vec<R>> {
        let next = AtomicUsize::new(0);
        let draw = || Some(next.fetch_add(1, Relaxed)).filter(|&index| index < count);
        // A few searches take less time than the threads.
        let threads = available_parallelism().map_or(1, usize::from).min(searches.div_ceil(SEARCHES_MIN)).min(count);
        let mut found = scope(|scope| {
            let help = || {
                let _end = StopsAtPanic(&self.is_stopped);
                other(&mut from_fn(draw))
            };
            let helpers: Vec<_> = (1..threads).filter_map(|_| Builder::new().spawn_scoped(scope, help).ok()).collect();
            let _end = StopsAtPanic(&self.is_stopped);
            let mut found = own(&mut from_fn(draw))?;
            // BOUND: the others end with the indices, or when the search is stopped.
            while !helpers.iter().all(ScopedJoinHandle::is_finished) && goes_on() {
                sleep(PAUSE);
            }
            for helper in helpers {
                found.extend(helper.join().unwrap_or_else(|panic| resume_unwind(panic))?);
            }
            self.goes_on().then_some(found)
        })?;
        found.sort_unstable_by_key(|&(index, _)| index);
        Some(found.into_iter().map(|(_, result)| result).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order_on_any_thread() {
        let (crew, count) = (Crew::default(), 100 * SEARCHES_MIN);
        let squares =
            |indices: &mut dyn Iterator<Item = usize>| Some(indices.map(|index| (index, index * index)).collect());
        let found = crew.each((count, count), &|| true, squares, squares);
        assert_eq!(found, Some((0..count).map(|index| index * index).collect()));
    }

    /// The caller has no searches left, and asks while it waits.
    #[test]
    fn an_interruption_ends_the_other_threads() {
        let crew = Crew::default();
        let asked = AtomicUsize::new(0);
        let goes_on = || {
            let goes_on = asked.fetch_add(1, Relaxed) < 3;
            crew.is_stopped.store(!goes_on, Relaxed);
            goes_on
        };
        let own = |_: &mut dyn Iterator<Item = usize>| Some(Vec::new());
        let other = |indices: &mut dyn Iterator<Item = usize>| {
            // BOUND: the third call of `goes_on`.
            while crew.goes_on() {
                sleep(PAUSE);
            }
            let found: Vec<(usize, ())> = indices.take(0).map(|index| (index, ())).collect();
            crew.goes_on().then_some(found)
        };
        let has_others = available_parallelism().is_ok_and(|count| count.get() > 1);
        assert_eq!(crew.each((2 * SEARCHES_MIN, 2 * SEARCHES_MIN), &goes_on, own, other).is_none(), has_others);
    }

    #[test]
    fn a_panic_of_another_thread_reaches_the_caller() {
        let (crew, caller) = (Crew::default(), std::thread::current().id());
        let search = |indices: &mut dyn Iterator<Item = usize>| {
            assert!(std::thread::current().id() == caller, "of another thread");
            sleep(Duration::from_millis(20));
            Some(indices.map(|index| (index, ())).collect())
        };
        let found =
            std::panic::catch_unwind(|| crew.each((2 * SEARCHES_MIN, 2 * SEARCHES_MIN), &|| true, search, search));
        let has_others = available_parallelism().is_ok_and(|count| count.get() > 1);
        assert_eq!(found.is_err(), has_others);
    }
}
