//! Measures the costs of the clock and of priority changes. Each run does so first, because they decide what counts as
//! execution.

use lockwright::raw::WATCHDOG_LEVEL;
use lockwright_model::Duration;
use lockwright_sys::{SysError, clock, sched};

/// The number of samples of each cost.
const SAMPLES: usize = 1_001;
/// The shortest gap while burning, however fast the clock is, in nanoseconds.
const GAP_NS_MIN: u64 = 1_000;
/// The shortest gap in readings of the clock.
const GAP_READS: u64 = 20;
/// The shortest gap around a lock operation, in nanoseconds.
const CALL_GAP_NS_MIN: u64 = 5_000;
/// The shortest gap around a lock operation in priority changes. An operation makes at most two.
const CALL_GAP_CHANGES: u64 = 4;

/// Measured costs, and the thresholds that follow from them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Calibration {
    /// Median cost of one reading of the clock.
    pub clock_read: Duration,
    /// Median cost of one change of a thread's own priority.
    pub priority_change: Duration,
    /// The gap while executing. If two readings of the clock are further apart, something else executed between them
    /// (another thread, an interrupt, the host), and the time does not count as execution.
    pub gap: Duration,
    /// The gap around a lock operation, which may itself change a priority.
    pub call_gap: Duration,
}

/// Measures on the calling thread, which must be under SCHED_FIFO. It stays at level 98 or 99: below a busy thread of
/// another program it might never execute again, and a run has no watchdog yet.
///
/// BOUND: 2 * SAMPLES steps, a few milliseconds.
pub(crate) fn calibrate() -> Result<Calibration, SysError> {
    let mut reads = [0; SAMPLES];
    let mut last = clock::now_ns();
    for read in &mut reads {
        let now = clock::now_ns();
        *read = now - last;
        last = now;
    }
    let me = sched::gettid();
    let mut changes = [0; SAMPLES];
    for (index, change) in changes.iter_mut().enumerate() {
        let before = clock::now_ns();
        sched::set_level(me, WATCHDOG_LEVEL - (index % 2) as u8)?;
        *change = clock::now_ns() - before;
    }
    Ok(from_costs(median(&mut reads), median(&mut changes)))
}

fn from_costs(read: u64, change: u64) -> Calibration {
    Calibration {
        clock_read: Duration::from_ns(read),
        priority_change: Duration::from_ns(change),
        gap: Duration::from_ns(GAP_NS_MIN.max(GAP_READS * read)),
        call_gap: Duration::from_ns(CALL_GAP_NS_MIN.max(CALL_GAP_CHANGES * change)),
    }
}

fn median(samples: &mut [u64]) -> u64 {
    samples.sort_unstable();
    samples[samples.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_clock_widens_the_gap() {
        assert_eq!(from_costs(25, 900).gap, Duration::from_us(1));
        assert_eq!(from_costs(1_000, 900).gap, Duration::from_us(20));
        assert_eq!(from_costs(25, 900).call_gap, Duration::from_us(5));
        assert_eq!(from_costs(25, 5_000).call_gap, Duration::from_us(20));
    }
}
