//! The share of each second that a measurement may use.

use lockwright_sys::clock;

/// The level of measurements: above all other threads except the watchdog.
pub(crate) const LEVEL: u8 = 90;

/// The part of each second that a measurement uses at most.
const BUSY_NS: u64 = 700_000_000;
const SECOND_NS: u64 = 1_000_000_000;

/// Decides when a thread of the measurement may execute.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    start_ns: u64,
    busy_ns: u64,
}

impl Pace {
    /// Creates a pace that begins now. Each piece of work begins early enough to take `longest_ns`.
    pub(super) fn new(longest_ns: u64) -> Self {
        // If such a piece does not fit, a tenth of the share is left.
        let busy_ns = BUSY_NS.saturating_sub(longest_ns).max(BUSY_NS / 10);
        Self { start_ns: clock::now_ns(), busy_ns }
    }

    /// Returns the beginning of the next second if the share of this one is spent.
    pub(super) fn spent(&self, now_ns: u64) -> Option<u64> {
        let into_second = now_ns.saturating_sub(self.start_ns) % SECOND_NS;
        (into_second >= self.busy_ns).then(|| now_ns - into_second + SECOND_NS)
    }

    /// Sleeps until the next second if the share of this one is spent.
    pub(super) fn rest(&self) {
        if let Some(next_ns) = self.spent(clock::now_ns()) {
            // If the sleep is refused, the measurement uses more than its share.
            let _ = clock::sleep_until(next_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_each_second_belongs_to_others() {
        let pace = Pace { start_ns: 5 * SECOND_NS, busy_ns: BUSY_NS };
        for second in [5, 6, 1_000] {
            let at = |ms: u64| pace.spent(second * SECOND_NS + ms * 1_000_000);
            assert_eq!((at(0), at(699)), (None, None));
            let next = Some((second + 1) * SECOND_NS);
            assert_eq!((at(700), at(999)), (next, next));
        }
        assert_eq!(pace.spent(0), None, "a clock that is read before the start");
    }

    #[test]
    fn long_work_begins_early_enough() {
        assert_eq!(Pace::new(100_000_000).busy_ns, 600_000_000);
        assert!(Pace::new(10 * SECOND_NS).busy_ns > 0, "some of each second is left");
    }
}
