//! The counter that times short operations, and batches that are long enough for it.

use lockwright_sys::cycles;
use std::fmt;
use std::hint::black_box;

/// A batch takes at least this many steps of the counter, so that a reading has three digits.
const STEPS_MIN: u64 = 1_000;
/// The most operations in a batch. A counter that needs more of them is refused.
const BATCH_MAX: u64 = 1 << 16;
/// The readings of which a step is the least difference.
const STEP_READINGS: usize = 100_000;
/// The readings of a batch whose least time must be long enough: an interruption lengthens only some of them.
const BATCH_READINGS: usize = 5;
/// The empty readings of which the mean is subtracted.
const EMPTY_READINGS: u64 = 1_000;

/// The counter has steps that are too long for the operations that it is to time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct TooCoarse {
    /// The step, in cycles.
    pub(super) step: u64,
}

/// A counter of cycles.
#[derive(Clone, Copy)]
pub(super) struct Counter {
    now: fn() -> u64,
    /// The least difference of two readings that differ.
    pub(super) step: u64,
}

impl fmt::Debug for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counter").field("step", &self.step).finish_non_exhaustive()
    }
}

impl Counter {
    /// The counter of the processor.
    pub(super) fn of_processor() -> Self {
        Self::new(cycles::now)
    }

    /// A counter that `now` reads. If it stands still, its step is `u64::MAX`.
    pub(super) fn new(now: fn() -> u64) -> Self {
        let mut last = now();
        let step = |_| {
            let next = now();
            next.saturating_sub(std::mem::replace(&mut last, next))
        };
        Self { now, step: (0..STEP_READINGS).map(step).filter(|&step| step > 0).min().unwrap_or(u64::MAX) }
    }

    /// Chooses the batch of an operation: `time` executes a batch and returns its time.
    pub(super) fn batch(self, cold: bool, mut time: impl FnMut(&Batch) -> u64) -> Result<Batch, TooCoarse> {
        let refused = TooCoarse { step: self.step };
        let time_min = self.step.checked_mul(STEPS_MIN).ok_or(refused)?;
        let empty = self.empty(cold);
        let mut batch = Batch { counter: self, count: 1, cold, empty };
        // BOUND: BATCH_MAX is reached after 17 sizes, each read at most BATCH_READINGS times.
        while (0..BATCH_READINGS).any(|_| time(&batch) < time_min) {
            batch.count *= 2;
            if batch.count > BATCH_MAX {
                return Err(refused);
            }
        }
        Ok(batch)
    }

    /// The mean time of an empty reading.
    pub(super) fn empty(self, cold: bool) -> f64 {
        let mut times: Vec<f64> = (0..11)
            .map(|_| Batch { counter: self, count: EMPTY_READINGS, cold, empty: 0.0 })
            .map(|batch| batch.singles(&[0_u64; 8], || black_box(())) as f64 / EMPTY_READINGS as f64)
            .collect();
        times.sort_unstable_by(f64::total_cmp);
        times[times.len() / 2]
    }
}

/// How a batch of operations is timed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Batch {
    counter: Counter,
    /// The number of operations.
    pub(super) count: u64,
    /// Whether the caches are emptied before each operation.
    cold: bool,
    /// The mean time of an empty reading, which is subtracted.
    empty: f64,
}

impl Batch {
    /// The time of a batch of `operation` on `subject`, at least one step.
    ///
    /// With warm caches, the batch is timed as a whole, after one operation that is not timed. With cold caches, each
    /// operation is timed, and the times are added up: the errors of single readings cancel each other out.
    #[inline(always)]
    pub(super) fn time<S>(&self, subject: &S, operation: impl Fn()) -> u64 {
        let (time, readings) = if self.cold {
            (self.singles(subject, operation), self.count)
        } else {
            operation();
            let before = (self.counter.now)();
            for _ in 0..self.count {
                operation();
            }
            ((self.counter.now)().saturating_sub(before), 1)
        };
        time.saturating_sub((readings as f64 * self.empty).round() as u64).max(self.counter.step)
    }

    #[inline(always)]
    fn singles<S>(&self, subject: &S, operation: impl Fn()) -> u64 {
        let single = || {
            if self.cold {
                cycles::flush(subject);
            }
            let before = (self.counter.now)();
            operation();
            (self.counter.now)().saturating_sub(before)
        };
        (0..self.count).map(|_| single()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    thread_local! {
        static TIME: Cell<u64> = const { Cell::new(0) };
    }

    /// A counter that takes three cycles to read, and whose value is a multiple of `STEP`.
    fn stepping<const STEP: u64>() -> u64 {
        TIME.set(TIME.get() + 3);
        TIME.get() / STEP * STEP
    }

    /// An operation of 21 cycles.
    fn operation() {
        TIME.set(TIME.get() + 21);
    }

    /// The time of one operation, with the size of the batch.
    fn seen<const STEP: u64>(cold: bool) -> Result<(u64, f64), TooCoarse> {
        let batch = Counter::new(stepping::<STEP>).batch(cold, |batch| batch.time(&(), operation))?;
        Ok((batch.count, batch.time(&(), operation) as f64 / batch.count as f64))
    }

    #[test]
    fn batches_are_long_enough_for_the_step() {
        // Single readings of this counter have errors that repeat, and do not cancel each other out entirely.
        for (cold, error) in [(false, 0.2), (true, 2.0)] {
            for (count, time) in [seen::<1>(cold), seen::<26>(cold)].map(|seen| seen.expect("is fine")) {
                assert!(count >= 64 && (time - 21.0).abs() < error, "{cold}: {count} operations of {time}");
            }
        }
        assert_eq!(Counter::new(stepping::<26>).step, 26);
    }

    #[test]
    fn interruptions_do_not_shorten_batches() {
        // Each third operation of a batch of one is interrupted for longer than a batch lasts.
        let operations = Cell::new(0);
        let interrupted = || {
            operations.set(operations.get() + 1);
            TIME.set(TIME.get() + if operations.get() % 3 == 0 { 100_000 } else { 21 });
        };
        let single = |batch: &Batch| Batch { count: 1, ..*batch }.time(&(), interrupted);
        let refused = Counter::new(stepping::<26>).batch(false, single);
        assert_eq!(refused.err(), Some(TooCoarse { step: 26 }));
    }

    #[test]
    fn coarse_counters_are_refused() {
        // 65,536 operations of 21 cycles take 1,000 steps of 1,376 cycles.
        assert!(seen::<1_300>(false).is_ok());
        for cold in [false, true] {
            assert_eq!(seen::<1_400>(cold), Err(TooCoarse { step: 1_400 }));
        }
        assert_eq!(Counter::new(|| 7).batch(false, |_| 0).err(), Some(TooCoarse { step: u64::MAX }), "a still one");
    }

    #[test]
    fn operations_without_time_are_refused() {
        let counter = Counter::new(stepping::<26>);
        for cold in [false, true] {
            assert!(counter.batch(cold, |batch| batch.time(&(), || {})).is_err());
        }
    }
}
