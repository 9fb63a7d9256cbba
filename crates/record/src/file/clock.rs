//! From stamps to nanoseconds since the start of the recording.

use super::read::{Contents, Header, Moment, Problem};

/// The two clocks of a recording, and the moments at which both were read.
pub(super) struct Clock {
    start: Header,
    moments: Vec<Moment>,
}

impl Clock {
    pub(super) fn new(contents: &Contents) -> Result<Self, Problem> {
        let mut moments = contents.moments.clone();
        moments.sort_by_key(|moment| moment.stamp);
        // Two moments of one stamp have no slope.
        moments.dedup_by_key(|moment| moment.stamp);
        if moments.len() < 2 {
            return Err(Problem::new(0, "the program ended before anything was recorded"));
        }
        Ok(Self { start: contents.header, moments })
    }

    /// Returns the time of a stamp that counts from the start of the recording.
    pub(super) fn at_ns(&self, since_start: u64) -> u64 {
        let stamp = self.start.stamp.saturating_add(since_start);
        let after = self.moments.partition_point(|moment| moment.stamp <= stamp).clamp(1, self.moments.len() - 1);
        let (low, high) = (self.moments[after - 1], self.moments[after]);
        let span = i128::from(high.stamp) - i128::from(low.stamp);
        let length = i128::from(high.monotonic_ns) - i128::from(low.monotonic_ns);
        let offset = (i128::from(stamp) - i128::from(low.stamp)) * length / span;
        let at = i128::from(low.monotonic_ns) + offset - i128::from(self.start.monotonic_ns);
        u64::try_from(at.max(0)).unwrap_or(u64::MAX)
    }

    /// Returns the time since the start of a time of the monotonic clock.
    pub(super) fn since_start(&self, monotonic_ns: u64) -> u64 {
        monotonic_ns.saturating_sub(self.start.monotonic_ns)
    }

    /// Returns the instant, since the start, that the program named by a clock. `at_ns` is when it did so.
    pub(super) fn instant(&self, clock: i32, named_ns: u64, at_ns: u64) -> i64 {
        let start = self.start.monotonic_ns;
        let real_time = || {
            let after = self.moments.partition_point(|moment| moment.monotonic_ns <= at_ns.saturating_add(start));
            let moment = self.moments[after.saturating_sub(1)];
            i128::from(moment.realtime_ns) - i128::from(moment.monotonic_ns)
        };
        let offset = match clock {
            MONOTONIC => i128::from(start),
            REALTIME => i128::from(start) + real_time(),
            _ => 0,
        };
        let instant = i128::from(named_ns.cast_signed()) - offset;
        i64::try_from(instant.clamp(i128::from(i64::MIN), i128::from(i64::MAX))).unwrap_or_default()
    }
}

/// The numbers of the clocks in the kernel.
pub(super) const REALTIME: i32 = 0;
pub(super) const MONOTONIC: i32 = 1;
