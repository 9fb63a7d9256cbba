//! What the machine's clock and its priority changes cost: measured before every run, for they decide what
//! counts as execution.

use lockwright_model::Duration;
use lockwright_sys::{SysError, clock, sched};

/// How often each thing is measured.
const SAMPLES: usize = 1_001;
/// Least gap while burning, whatever the clock costs.
const GAP_NS_MIN: u64 = 1_000;
/// Reads of the clock in a gap, at least.
const GAP_READS: u64 = 20;
/// Least gap around a lock operation.
const CALL_GAP_NS_MIN: u64 = 5_000;
/// Priority changes in a gap around a lock operation, at least. An operation makes at most two.
const CALL_GAP_CHANGES: u64 = 4;

/// Measured costs, and the thresholds that follow from them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Calibration {
    /// Median cost of one reading of the clock.
    pub clock_read: Duration,
    /// Median cost of one change of a thread's own priority.
    pub priority_change: Duration,
    /// While executing: two readings further apart than this have something else between them (another thread,
    /// an interrupt, the host), which does not count as execution.
    pub gap: Duration,
    /// The same around a lock operation, which may itself change a priority.
    pub call_gap: Duration,
}

/// Measures on the calling thread, which must be under SCHED_FIFO and comes out at level 1.
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
        sched::set_level(me, 2 - (index % 2) as u8)?;
        *change = clock::now_ns() - before;
    }
    sched::set_level(me, 1)?;
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
