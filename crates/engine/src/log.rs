//! The log of one thread: a list of fixed capacity, written only by that thread and read when it is done.
//!
//! Writing allocates nothing, and every page is touched beforehand. When the log is full, later entries are counted and
//! dropped.

use lockwright_model::{Event, Instant, Record, TaskId};

/// The log of one thread. Times are in nanoseconds of the monotonic clock.
#[derive(Debug, Default)]
pub(crate) struct Log {
    entries: Vec<(u64, Event)>,
    dropped: u64,
}

impl Log {
    /// A log for `capacity` entries, with every page touched.
    pub(crate) fn new(capacity: usize) -> Self {
        let mut entries = vec![(1, Event::Arrive); capacity];
        entries.clear();
        Self { entries, dropped: 0 }
    }

    #[inline]
    pub(crate) fn push(&mut self, at_ns: u64, event: Event) {
        if self.entries.len() < self.entries.capacity() {
            self.entries.push((at_ns, event));
        } else {
            self.dropped += 1;
        }
    }

    /// How many entries still fit.
    pub(crate) fn room(&self) -> usize {
        self.entries.capacity() - self.entries.len()
    }

    /// Counts entries that were dropped without a call of [`Log::push`].
    pub(crate) fn drop_unseen(&mut self, entries: u64) {
        self.dropped += entries;
    }

    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// The entries as records of `task`, relative to `start_ns`.
    pub(crate) fn records(&self, task: TaskId, start_ns: u64) -> impl Iterator<Item = Record> {
        let record = move |&(at, event): &(u64, Event)| {
            let at = Instant::from_ns(at.saturating_sub(start_ns));
            Record { at, task, event }
        };
        self.entries.iter().map(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_log_counts_what_it_drops() {
        let mut log = Log::new(2);
        for at in 10..15 {
            log.push(at, Event::Run);
        }
        assert_eq!(log.dropped(), 3);
        let times: Vec<u64> = log.records(TaskId(0), 10).map(|record| record.at.as_ns()).collect();
        assert_eq!(times, [0, 1]);
    }
}
