//! The cost of locks without contention.

use super::counter::{Counter, TooCoarse};
use super::harness::{Batches, Timed, in_turns, measuring, one_cpu};
use super::subject::{ALL, Candidate, Subject};
use lockwright_engine::{Control, RunError};
use lockwright_locks::Slot;
use lockwright_sys::cycles;
use std::fmt;

/// Longer than any batch: 65,536 operations of a microsecond.
const BATCH_NS_MAX: u64 = 65_536_000;

/// Lock and unlock of every lock, without contention.
#[derive(Clone, PartialEq, Debug)]
pub struct Costs {
    /// Cycles of the time-stamp counter per nanosecond.
    pub cycles_per_ns: f64,
    /// Mean cycles of an empty reading with warm caches. It is subtracted from each batch.
    pub harness_cycles: f64,
    /// Mean cycles of an empty reading with cold caches, or 0 if caches cannot be emptied. It is subtracted from each
    /// operation.
    pub cold_harness_cycles: f64,
    /// Whether the readings were taken under SCHED_FIFO. Otherwise other threads may have disturbed them.
    pub realtime: bool,
    /// Each lock with warm caches, and then each with cold caches if they can be emptied.
    pub costs: Vec<Cost>,
}

/// The readings of one lock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cost {
    /// Its name.
    pub lock: &'static str,
    /// Whether the lock was in memory each time, rather than in the nearest cache.
    pub cold: bool,
    /// Cycles of lock and unlock together.
    pub cycles: Batches,
}

impl Costs {
    /// The number of readings of each lock.
    #[must_use]
    pub fn readings(&self) -> usize {
        self.costs.first().map_or(0, |cost| cost.cycles.total.count())
    }
}

/// Costs could not be measured.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum CostError {
    /// The thread of the measurement failed.
    Run(RunError),
    /// The steps of the time-stamp counter are too long for a reading of three digits.
    CoarseCounter {
        /// The lock that was to be measured.
        lock: &'static str,
        /// The step, in cycles; `u64::MAX` if the counter stands still.
        step: u64,
    },
}

impl fmt::Display for CostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run(error) => error.fmt(f),
            Self::CoarseCounter { step: u64::MAX, .. } => write!(f, "the time-stamp counter stands still"),
            Self::CoarseCounter { lock, step } => {
                write!(f, "the time-stamp counter is too coarse for `{lock}`: its step is {step} cycles")
            }
        }
    }
}

impl std::error::Error for CostError {}

impl From<RunError> for CostError {
    fn from(error: RunError) -> Self {
        Self::Run(error)
    }
}

/// Takes `readings` readings (at least one) of each lock, with warm and with cold caches, on one CPU. Each reading is a
/// batch of locks and unlocks. If `control` is stopped, it takes no more readings.
///
/// # Errors
/// Fails if the thread of the measurement cannot be started or bound, and if the time-stamp counter is too coarse. It
/// needs no permission for real-time priorities.
pub fn cost(readings: usize, control: &Control) -> Result<Costs, CostError> {
    cost_of(&ALL, readings, control)
}

pub(super) fn cost_of<S: Subject + ?Sized>(
    all: &'static [Candidate<S>],
    readings: usize,
    control: &Control,
) -> Result<Costs, CostError> {
    let (cpu, own) = (one_cpu()?, control.clone());
    measuring(cpu, control, move |realtime| measure(all, Counter::of_processor(), readings, (cpu, realtime), &own))
}

fn measure<S: Subject + ?Sized>(
    candidates: &[Candidate<S>],
    counter: Counter,
    readings: usize,
    (cpu, realtime): (usize, bool),
    control: &Control,
) -> Result<Costs, CostError> {
    let slot = Slot::claim().ok_or(RunError::NoSlot)?;
    let locks: Vec<Box<S>> = candidates.iter().map(|candidate| (candidate.new)()).collect();
    let mut costs = Vec::new();
    let mut harnesses = [0.0; 2];
    for cold in [false, true] {
        if cold && (!cycles::CAN_FLUSH || control.is_stopped()) {
            break;
        }
        harnesses[usize::from(cold)] = counter.empty(cold);
        let timed = candidates.iter().zip(&locks).map(|(candidate, lock)| {
            let time = |batch: &_| lock.time(&slot, cpu, batch);
            let batch = counter.batch(cold, time);
            let batch = batch.map_err(|TooCoarse { step }| CostError::CoarseCounter { lock: candidate.name, step })?;
            Ok(Timed { what: candidate.name, count: batch.count, batch: Box::new(move || time(&batch)) })
        });
        let timed = timed.collect::<Result<Vec<_>, CostError>>()?;
        let seen = in_turns(timed, counter.step, readings, BATCH_NS_MAX, control);
        costs.extend(seen.into_iter().map(|(lock, cycles)| Cost { lock, cold, cycles }));
    }
    let [harness_cycles, cold_harness_cycles] = harnesses;
    Ok(Costs { cycles_per_ns: cycles::per_ns(), harness_cycles, cold_harness_cycles, realtime, costs })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::alone;
    use crate::slots::all_slots;

    #[test]
    fn each_lock_is_read_as_often_as_requested() {
        let _machine = alone();
        let _slots = all_slots();
        let costs = cost(25, &Control::new()).expect("needs no permission");
        assert!(costs.cycles_per_ns > 0.0);
        let warm: Vec<&Cost> = costs.costs.iter().filter(|cost| !cost.cold).collect();
        assert_eq!(warm.len(), ALL.len());
        for cost in &costs.costs {
            assert_eq!(cost.cycles.total.count(), 25, "{}", cost.lock);
            assert!(cost.cycles.each(0.0) > 0.0 && cost.cycles.half_width() > 0.0, "{cost:?}");
            assert!(cost.cycles.step < cost.cycles.total.quantile(0.5) / 500, "three digits: {cost:?}");
        }
    }

    #[test]
    fn coarse_counters_give_no_costs() {
        let _machine = alone();
        let _slots = all_slots();
        // The mutant of the counter has steps of 268 million cycles.
        let coarse = Counter::new(|| cycles::now() >> 28 << 28);
        let refused = measure(&ALL, coarse, 25, (one_cpu().expect("a CPU set"), false), &Control::new());
        assert!(matches!(refused, Err(CostError::CoarseCounter { lock: "tas", .. })), "{refused:?}");
    }

    #[test]
    fn a_stopped_measurement_has_one_reading_of_each() {
        let _machine = alone();
        let control = Control::new();
        control.stop();
        let _slots = all_slots();
        let costs = cost(1_000, &control).expect("needs no permission");
        assert_eq!(costs.costs.len(), ALL.len());
        assert!(costs.costs.iter().all(|cost| !cost.cold && cost.cycles.total.count() == 1));
    }
}
