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
        let offset = (i128::from(stamp) - i128::from(low.stamp)).saturating_mul(length) / span;
        let at = offset.saturating_add(i128::from(low.monotonic_ns) - i128::from(self.start.monotonic_ns));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn clock() -> Clock {
        let moment = |stamp, monotonic_ns, realtime_ns| Moment { stamp, monotonic_ns, realtime_ns };
        // The counter has 3 cycles in a nanosecond, then 2; the real-time clock is set in between.
        let moments = vec![moment(3_000, 5_000, 90_000), moment(6_000, 6_000, 91_000), moment(8_000, 7_000, 150_000)];
        let header = Header { stamp: 3_000, monotonic_ns: 5_000, ..Header::default() };
        Clock::new(&Contents { header, moments, ..Contents::default() }).expect("two moments")
    }

    #[test]
    fn time_is_interpolated_between_moments() {
        let clock = clock();
        let times = [0, 300, 3_000, 3_002, 5_000].map(|since| clock.at_ns(since));
        assert_eq!(times, [0, 100, 1_000, 1_001, 2_000]);
        // Beyond the last moment, at its rate.
        assert_eq!(clock.at_ns(7_000), 3_000);
        assert_eq!(clock.since_start(5_100), 100);
    }

    #[test]
    fn instants_of_each_clock_count_from_the_start() {
        let clock = clock();
        assert_eq!(clock.instant(MONOTONIC, 5_500, 0), 500);
        assert_eq!(clock.instant(MONOTONIC, 4_000, 0), -1_000);
        assert_eq!(clock.instant(REALTIME, 90_500, 100), 500);
        assert_eq!(clock.instant(REALTIME, 150_500, 2_100), 2_500);
        assert_eq!(clock.instant(7, 150_500, 0), 150_500);
    }

    #[test]
    fn moments_that_no_machine_has_do_not_overflow() {
        let moment = |stamp, monotonic_ns| Moment { stamp, monotonic_ns, realtime_ns: 0 };
        let header = Header { stamp: u64::MAX, monotonic_ns: u64::MAX, ..Header::default() };
        let moments = vec![moment(0, 0), moment(1, u64::MAX)];
        let clock = Clock::new(&Contents { header, moments, ..Contents::default() }).expect("two moments");
        assert_eq!(clock.at_ns(u64::MAX), u64::MAX);
    }

    #[test]
    fn a_single_moment_is_no_clock() {
        let moments = vec![Moment { stamp: 1, monotonic_ns: 1, realtime_ns: 1 }];
        assert!(Clock::new(&Contents { moments, ..Contents::default() }).is_err());
    }
}
